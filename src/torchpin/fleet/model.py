"""The words of the fleet: GPUs, node groups, targets."""

from __future__ import annotations

from torchpin.named import NamedTuple


class Gpu(NamedTuple):
    """One kind of GPU."""

    written: str
    """As the profile names it."""
    name: str
    """Product name from the table, or ``sm_70`` / ``gfx942`` where only that is declared."""
    vendor: str
    """``nvidia``, ``amd`` or ``intel``."""
    capability: tuple[int, int] | None
    """CUDA compute capability; None for other vendors."""
    gfx: str | None
    """AMD ISA name; None for other vendors."""
    tegra: bool = False
    datacenter: bool = False
    """May use the cuda-compat package (NVIDIA data-center product)."""
    source: str = ""
    product: str = ""
    """``datacenter``, ``workstation``, ``consumer``, ``jetson``, ``embedded``, or ``""`` where
    only the capability is declared."""
    host: str = ""
    """CPU architecture of the machine where the name tells it: ``aarch64`` (Grace, Jetson …) or
    the architecture of a cloud instance type; else ``""``."""

    @property
    def arch(self) -> str:
        """``sm_70`` or ``gfx942`` or ``""``."""
        if self.capability is not None:
            return f"sm_{self.capability[0]}{self.capability[1]}"
        return self.gfx or ""


class Python(NamedTuple):
    """A Python version that an installer runs on."""

    major: int
    minor: int
    free_threaded: bool = False

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{'t' if self.free_threaded else ''}"

    @property
    def tag(self) -> str:
        """Wheel tag of CPython: ``cp311``, ``cp314t``."""
        return f"cp{self.major}{self.minor}{'t' if self.free_threaded else ''}"


class Setting(NamedTuple):
    """Where a value of the profile is written: for related places and error messages."""

    key: str
    line: int


class NodeGroup(NamedTuple):
    """A group of like machines."""

    name: str
    gpus: tuple[Gpu, ...]
    """Empty: CPU only."""
    pythons: tuple[Python, ...]
    """Empty: not declared, nothing about Python is judged."""
    platform: str
    """One of ``catalog.model.PLATFORMS``."""
    driver: str | None = None
    glibc: str | None = None
    musl: bool = False
    cuda_compat: str | None = None
    macos: str | None = None
    wsl: bool = False
    jetpack: str | None = None
    rocm: str | None = None
    files: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    dependency_groups: tuple[str, ...] = ()
    client: str | None = None
    """``pip``, ``uv`` or None (by the project)."""
    indexes: tuple[str, ...] = ()
    """Index URLs of its command line or environment, in order; the first is ``--index-url``
    only if written ``--index-url URL``; else extra indexes."""
    path: str = "<command line>"
    line: int = 0
    settings: tuple[Setting, ...] = ()


class Target(NamedTuple):
    """One node group and one Python version: what an installer runs on."""

    group: NodeGroup
    python: Python | None
    """None: not declared."""

    @property
    def text(self) -> str:
        """For messages: ``training, Python 3.11``."""
        return (
            self.group.name if self.python is None else f"{self.group.name}, Python {self.python}"
        )


class Settings(NamedTuple):
    """``[tool.torchpin]`` without the fleet."""

    policy: str = "nearest"
    indexes: tuple[tuple[str, str], ...] = ()
    """Private URL → channel name, ``pypi`` or ``private``."""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    catalog_max_age: int = 90
    """Days after which a catalog is called old; 0: never."""
    sources: tuple[str, ...] = ()
    """Folders and files of Python code that rules may read, relative to the profile."""
    baseline: str = ""
    """Path of the findings that are known and wait; empty: none."""
    require_reasons: bool = False
    """Whether a comment that silences must say why (TP004)."""


class Fleet(NamedTuple):
    """All node groups and the settings beside them."""

    groups: tuple[NodeGroup, ...]
    settings: Settings
    path: str | None
    """The profile; None if there is none or it is the command line."""

    def targets(self) -> tuple[Target, ...]:
        """Return every target: each group with each of its Pythons."""
        return tuple(
            Target(group, python) for group in self.groups for python in (group.pythons or (None,))
        )
