"""Which files of the PyTorch family a fleet may have: those that run, one build a version.

A file is judged on every target of its platform whose Python takes it: it must run on all of them.
Of each torch version one build is kept (the one with the most companions, then what ``resolve``
would take), and of each companion the build that belongs to a kept torch. So whatever versions an
installer picks from the result, it cannot mix channels: a torchvision for CUDA 12.8 beside a torch
for CUDA 12.6 does not load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from torchpin.catalog.files import admits_python
from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY, Build
from torchpin.evidence import INFERRED
from torchpin.fleet.model import Target
from torchpin.judge.model import RUNS, RUNS_VIA_PTX, UNKNOWN
from torchpin.named import NamedTuple

if TYPE_CHECKING:
    from torchpin.catalog.drivers import Drivers
    from torchpin.catalog.store import Catalog

TRITONS = ("pytorch-triton-rocm", "triton-rocm", "pytorch-triton-xpu", "triton-xpu")
"""What torch's ROCm and XPU builds need, and PyPI does not have."""
PACKAGES = (*FAMILY, *TRITONS)
"""What an index may hold."""


class Wheel(NamedTuple):
    """A file that could be listed."""

    package: str
    filename: str
    python: str
    """Tag as ``catalog.wheel_names`` gives it: ``cp311``, ``cp313t``, ``cp39-abi3``, ``py3``."""
    build: Build
    """What is known of it: the build of the catalog, or one made of the file name alone."""
    url: str
    """Absolute; ``files/NAME`` for a file that is served with the index."""
    sha256: str = ""
    requires_python: str | None = None
    metadata: str = ""
    """PEP 658: ``""``: none, ``"true"``, or the SHA-256 of the file at ``url`` + ``.metadata``."""
    yanked: bool = False
    path: str | None = None
    """Of a local file."""

    @property
    def key(self) -> str:
        """Where it lies: ``pypi`` or a channel."""
        return "pypi" if self.build.home == "pypi" else self.build.channel


def unknown_build(
    package: str, version: str, label: str, platform: str, *, home: str, source: str
) -> Build:
    """Return a build of which nothing but its file name is known."""
    return Build(
        package=package,
        version=version,
        label=label,
        channel=label,
        home=home,
        platform=platform,
        pythons=(),
        pythons_inferred=(),
        kernels=None,
        libraries=(),
        cuda=None,
        glibc=None,
        macos=None,
        requires_torch=None,
        requires_python=None,
        yanked=False,
        released=None,
        evidence=INFERRED,
        source=source,
    )


class Filter:
    """Tells which files run on some targets.

    Args:
        targets: all that the index is for.
        unknown: take what is not known to run, too; never what fails or is thought to fail.
        drivers: the driver tables.
    """

    def __init__(self, targets: Sequence[Target], *, unknown: bool, drivers: Drivers) -> None:
        from torchpin.judge.alike import SharedJudge

        self.targets = targets
        self.good = {RUNS: 0, RUNS_VIA_PTX: 1}
        if unknown:
            self.good[UNKNOWN] = 2
        self.judge = SharedJudge(drivers)
        self._files: dict[tuple[Build, str], Build] = {}

    def takers(self, wheel: Wheel) -> list[Target]:
        """Return the targets that would install a file."""
        return [
            target
            for target in self.targets
            if target.group.platform == wheel.build.platform
            and admits_python(
                wheel.filename, target.python.tag if target.python is not None else None
            )
        ]

    def level(self, wheel: Wheel) -> int | None:
        """Return how well a file runs where it would be installed (0 best); None: not at all."""
        takers = self.takers(wheel)
        # The file is there: whether one exists for the Python is no question.
        build = self._files.setdefault(
            (wheel.build, wheel.python),
            wheel.build._replace(pythons=(wheel.python,), pythons_inferred=()),
        )
        kind = kind_of_label(build.channel)
        if kind not in (None, "cpu") and takers and not any(one.group.gpus for one in takers):
            return None if build.home != "pypi" else self._worst(build, takers)
        return self._worst(build, takers)

    def _worst(self, build: Build, takers: Iterable[Target]) -> int | None:
        worst: int | None = None
        for target in takers:
            verdict = self.judge(build, target)
            level = self.good.get(verdict.status)
            # What fails if a guess is right is no better than what fails.
            if level is None or any(reason.lacks for reason in verdict.reasons):
                return None
            worst = level if worst is None else max(worst, level)
        return worst


def chosen(wheels: Iterable[Wheel], keep: Filter, catalog: Catalog) -> tuple[Wheel, ...]:
    """Return the files for an index, by package, version and name."""
    rooms: dict[tuple[str, str], dict[Wheel, int]] = {}
    seen: set[tuple[str, str, str]] = set()
    for wheel in wheels:
        name = (wheel.filename, wheel.build.platform, wheel.key)
        if wheel.package not in PACKAGES or name in seen:
            continue
        level = keep.level(wheel)
        if level is not None:
            seen.add(name)
            rooms.setdefault((wheel.build.platform, wheel.python), {})[wheel] = level
    stable = {
        room: found for room, found in rooms.items() if room[1].startswith("py") or "abi" in room[1]
    }
    out: list[Wheel] = []
    for room, found in rooms.items():
        if room in stable:
            continue
        beside = dict(found)
        for (platform, _), more in stable.items():
            if platform == room[0]:
                beside.update(more)
        out += _coherent(beside, keep, catalog)
    return tuple(sorted(dict.fromkeys(out), key=_order))


def _order(wheel: Wheel) -> tuple[object, ...]:
    from packaging.version import Version

    return wheel.package, Version(wheel.build.full_version), wheel.filename


def _coherent(found: dict[Wheel, int], keep: Filter, catalog: Catalog) -> list[Wheel]:
    """Return the files of one platform and Python that fit together."""
    from packaging.version import Version

    from torchpin.resolve.policy import key_cost

    by_version: dict[tuple[str, str], dict[str, list[Wheel]]] = {}
    for wheel in found:
        places = by_version.setdefault((wheel.package, wheel.build.version), {})
        places.setdefault(wheel.key, []).append(wheel)
    torches = sorted(
        (version for package, version in by_version if package == "torch"),
        key=Version,
        reverse=True,
    )
    keys: dict[str, str] = {}
    for version in torches:
        places = by_version["torch", version]
        platform = next(iter(places.values()))[0].build.platform
        own = catalog.find("torch", version=version, platform=platform, home="pypi")
        default = own[0].channel if own and own[0].cuda else None

        def cost(key: str) -> tuple[object, ...]:
            wheel = places[key][0]  # noqa: B023
            lacking = 0
            for package in FAMILY[1:]:
                partners = catalog.partners(version, package)  # noqa: B023
                lacking += not any(key in by_version.get((package, one), {}) for one in partners)
            level = min(found[one] for one in places[key])  # noqa: B023
            price = key_cost(
                key,
                wheel.build.channel,
                current=None,
                default=default,  # noqa: B023
                cpu_only=not any(target.group.gpus for target in keep.takers(wheel)),
            )
            return lacking, level, price

        keys[version] = min(places, key=cost)
    out = [wheel for version in torches for wheel in by_version["torch", version][keys[version]]]
    for (package, version), places in by_version.items():
        if package in TRITONS:
            out += [one for key in set(keys.values()) for one in places.get(key, ())]
        elif package != "torch":
            # The newest torch that it was made for, or that takes it, decides.
            hosts = [one for one in torches if version in catalog.partners(one, package)]
            hosts.sort(key=lambda one: catalog.partners(one, package)[0] != version)
            out += next((places[keys[one]] for one in hosts if keys[one] in places), [])
    return out
