"""What an input tells of machines, before it becomes a profile."""

from __future__ import annotations

from torchpin.named import NamedTuple

KEYS = ("driver", "rocm", "python", "platform", "glibc", "libc", "macos", "wsl", "jetpack")
"""Keys of a node group that an input may tell, in the order in which they are written."""


class SeenGpu(NamedTuple):
    """One GPU as an input tells it."""

    name: str
    """``""``: there is a GPU, of which the input tells no name."""
    capability: tuple[int, int] | None = None
    """CUDA compute capability, where the input tells it."""
    gfx: str = ""
    """AMD ISA name (``gfx942``), where the input tells it."""


class Told(NamedTuple):
    """One value of a node group."""

    value: str
    where: str
    """Where it comes from, for the comment beside it."""
    doubt: str = ""
    """Why it is written as a comment only; ``""``: it counts."""


class Machine(NamedTuple):
    """One machine as an input tells it."""

    name: str
    """``""``: the input tells no name."""
    gpus: tuple[SeenGpu, ...] | None
    """Empty: it has none; None: the input does not tell."""
    gpus_where: str
    facts: tuple[tuple[str, Told], ...] = ()
    """Key of a node group (one of ``KEYS``) and its value."""


class Found(NamedTuple):
    """What one input tells."""

    what: str
    """The kind of input, in words: ``nvidia-smi -q -x``."""
    machines: tuple[Machine, ...]
    notes: tuple[str, ...] = ()
    """What a person should know: hosts that did not answer …"""


def printable(text: object, limit: int = 100) -> str:
    """Return a text from an input on one line, without what a terminal or TOML does not take."""
    clean = " ".join(str(text)[: 4 * limit].split())
    clean = "".join(char if char.isprintable() else "?" for char in clean)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
