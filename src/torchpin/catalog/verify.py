"""Measure again what the catalog calls measured, and say what does not hold.

A wheel is found on the index page of its package by its file name and digest; its METADATA,
``version.py`` and device code are read by ranges. Nothing of an earlier reading is used. The digest
is that of the index page: no wheel is fetched as a whole.

What is compared, with the words of the report:

* ``digest``: every file of the build that the catalog knows by digest is on the page, unchanged;
* ``python``, ``glibc``, ``macos``: from the file names of all wheels of the build on the page;
  where the catalog's glibc is newer, from the symbols that the libraries ask for;
* ``yanked``: whether all of them are;
* ``requires-python``, ``requires-torch``: METADATA of the wheel that was read;
* ``channel``, ``cuda``: its ``version.py``; where that is silent, the CUDA runtime it links;
* ``kernels`` and ``kernels of NAME``: what torch states and what libraries hold, by the rule of
  ``torchpin.catalog.kernel_lists``; only where the catalog's list is measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from torchpin.catalog.bounded import InspectError
from torchpin.catalog.inspect import ARCH_LIBRARIES
from torchpin.catalog.inspection import Inspection
from torchpin.catalog.kernel_lists import counts, kernel_lists, sorted_targets
from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY, Build, Kernels
from torchpin.catalog.refresh.pages import File
from torchpin.catalog.store import Catalog
from torchpin.catalog.wheel_facts import NoWheelError
from torchpin.catalog.wheel_names import order_pythons, read_name
from torchpin.evidence import MEASURED
from torchpin.named import NamedTuple
from torchpin.patterns import regex

HOLDS, DIFFERS, UNREAD = "holds", "differs", "unread"
_NAMED = regex(r"([A-Za-z0-9_.+!-]+\.whl) sha256:([0-9a-f]{64})")


ReadWheel = Callable[[str, Callable[[str], bool]], Inspection]
Page = Mapping[str, File]
"""File name → what the page says of it."""


class Unit(NamedTuple):
    """A build to measure, and the wheels that the catalog knows of it."""

    build: Build
    wheels: tuple[tuple[str, str], ...]
    """(file name, digest); the first that its kernel list was read from, if one was."""

    @property
    def place(self) -> str:
        """Return where its page is: ``pypi`` or the channel."""
        return "pypi" if self.build.home == "pypi" else self.build.channel


class Difference(NamedTuple):
    """A fact that does not hold."""

    fact: str
    catalog: str
    wheel: str


class Outcome(NamedTuple):
    """What came out of one unit."""

    unit: Unit
    file: str
    """The wheel that was read; ``""`` if none was found."""
    sha256: str
    status: str
    checked: tuple[str, ...]
    """The facts that were compared."""
    differences: tuple[Difference, ...]
    reason: str
    """Why it could not be read."""
    notes: tuple[str, ...] = ()
    """What is odd about the wheel itself, though no fact of the catalog is wrong."""


def units(catalog: Catalog, packages: Sequence[str] = ()) -> tuple[Unit, ...]:
    """Return the builds that were measured: those of PyPI, and those of channels that were read.

    Args:
        catalog: where to look.
        packages: canonical names; none: all.
    """
    out = []
    for package in packages or catalog.packages():
        for build in catalog.builds(package):
            if build.evidence != MEASURED:
                continue
            known = catalog.hashes(
                package,
                build.full_version,
                build.platform,
                "pypi" if build.home == "pypi" else build.channel,
            )
            out.append(Unit(build, tuple(dict.fromkeys((*_named(build), *known)))))
    return tuple(out)


def _named(build: Build) -> Iterable[tuple[str, str]]:
    """Return the wheels of this build that its sources name, the one of its kernels first."""
    texts = [build.kernels.source] if build.kernels else []
    texts += [lists.source for _, lists in build.libraries]
    texts.append(build.source)
    for text in texts:
        for match in _NAMED.finditer(text):
            if _belongs(match[1], build):
                yield match[1], match[2]


def _belongs(file: str, build: Build) -> bool:
    read = read_name(file)
    return (
        read is not None
        and (read.package, read.label) == (build.package, build.label)
        and Version(read.version) == Version(build.version)
        and build.platform in read.platforms
    )


def sample(all_units: Sequence[Unit], count: int, seed: int) -> tuple[Unit, ...]:
    """Return some units, the same for the same seed, in the order of the catalog."""
    chosen = random.Random(seed).sample(range(len(all_units)), min(count, len(all_units)))
    return tuple(all_units[at] for at in sorted(chosen))


def asked(build: Build, library: str, *, deeper: bool = False) -> bool:
    """Return whether a library, a path in the wheel, tells of a fact that is called measured.

    Args:
        build: whose facts.
        library: its path in the wheel.
        deeper: the C library that the wheel needs is a question too; torch bundles a libgomp, a
            small file that asks for the newest one.
    """
    if deeper and (build.package != "torch" or "/libgomp" in library):
        return True
    measured = build.kernels is not None and build.kernels.evidence == MEASURED
    if measured and (build.package != "torch" or library in ARCH_LIBRARIES):
        return True
    return any(
        f"/{library}".endswith(f"/{name}") and kernels.evidence == MEASURED
        for name, kernels in build.libraries
    )


def verify(unit: Unit, page: Page, read_wheel: ReadWheel) -> Outcome:
    """Measure one build again.

    Args:
        unit: what to measure.
        page: the index page of its package.
        read_wheel: reads the wheel at a URL, and of its libraries those that are asked for; may
            raise ``InspectError``.
    """
    build = unit.build
    here = [
        (listed, name)
        for listed in page.values()
        if (name := read_name(listed.name)) is not None and _belongs(listed.name, build)
    ]
    if not here:
        what = f"the page holds no wheel of {build.title} for {build.platform}"
        return Outcome(unit, "", "", UNREAD, (), (), what)
    found = _Comparison()
    for file, sha256 in unit.wheels:
        listed = page.get(file)
        if listed is None:
            found.differ("digest", f"{file} {sha256}", "the page does not list it")
        elif listed.sha256:
            found.compare("digest", f"{file} {sha256}", f"{file} {listed.sha256}")
    live = [(one, name) for one, name in here if not one.yanked] or here
    found.compare(
        "python",
        " ".join(build.pythons),
        " ".join(order_pythons(tag for _, name in live for tag in name.pythons)),
    )
    tagged = _lowest(name.glibc for _, name in here)
    # The tag of old wheels admits more than their libraries do (manylinux1 with GLIBC_2.17).
    deeper = build.glibc is not None and (tagged is None or Version(tagged) < Version(build.glibc))
    if build.platform.startswith("linux") and not deeper:
        found.compare("glibc", build.glibc, tagged)
    if build.platform.startswith("macos"):
        found.compare("macos", build.macos, _lowest(name.macos for _, name in here))
    found.compare("yanked", str(build.yanked), str(all(one.yanked for one, _ in here)))
    files = [file for file, _ in unit.wheels if file in page]
    listed = page[files[0]] if files else live[0][0]
    read: Inspection | None = None
    notes: tuple[str, ...] = ()
    try:
        read = read_wheel(listed.url, lambda library: asked(build, library, deeper=deeper))
    except NoWheelError as error:
        notes = (error.message,)  # its name, place and digest are all that the catalog tells of it
    except InspectError as error:
        differs = tuple(found.differences)
        return Outcome(unit, listed.name, listed.sha256, UNREAD, (), differs, error.message)
    if read is not None:
        notes = read.notes
        if deeper:
            needs = [one.layout.glibc for one in read.libraries if one.layout]
            found.compare("glibc", build.glibc, _highest([tagged, *needs]))
        _compare_text(found, build, read, [one.requires_python for one, _ in here])
        _compare_kernels(found, build, read)
    return Outcome(
        unit,
        listed.name,
        listed.sha256,
        DIFFERS if found.differences else HOLDS,
        tuple(dict.fromkeys(found.checked)),
        tuple(found.differences),
        "",
        notes,
    )


class _Comparison:
    """Gathers what was compared and what differs."""

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.differences: list[Difference] = []

    def compare(self, fact: str, catalog: str | None, wheel: str | None) -> None:
        self.checked.append(fact)
        if catalog != wheel:
            self.differ(fact, catalog, wheel)

    def differ(self, fact: str, catalog: str | None, wheel: str | None) -> None:
        self.differences.append(Difference(fact, catalog or "none", wheel or "none"))


def _lowest(values: Iterable[str | None]) -> str | None:
    return min((value for value in values if value), key=Version, default=None)


def _highest(values: Iterable[str | None]) -> str | None:
    return max((value for value in values if value), key=Version, default=None)


def _compare_text(
    found: _Comparison, build: Build, read: Inspection, listed: Sequence[str | None]
) -> None:
    """Compare what METADATA and ``version.py`` say."""
    if read.requires_python is not None or build.requires_python is not None:
        # Wheels of one release may differ (a later upload): the catalog has what most say.
        said = _specifier(read.requires_python)
        holds = _specifier(build.requires_python)
        if said != holds and holds in {_specifier(text) for text in listed}:
            said = holds
        found.compare("requires-python", holds, said)
    if build.package != "torch" and build.requires_torch is not None:
        found.compare(
            "requires-torch", _words(build.requires_torch), _words(requires_torch(read.requires))
        )
    channel = channel_of(build.package, read)
    if build.channel and channel is not None:
        found.compare("channel", build.channel, channel)
    if build.cuda is not None and read.cuda is not None:
        size = min(build.cuda.count("."), read.cuda.count("."), 1) + 1
        found.compare("cuda", _numbers(build.cuda, size), _numbers(read.cuda, size))


def _numbers(text: str, count: int) -> str:
    return ".".join(text.split(".")[:count])


def _specifier(text: str | None) -> str:
    """Return a specifier in normal form; what cannot be parsed as it is."""
    try:
        return ",".join(sorted(str(one) for one in SpecifierSet(text or "")))
    except ValueError:
        return text or ""


def _words(specifier: str | None) -> str:
    if specifier is None:
        return "no torch"
    if specifier in ("", ">=0"):
        return "no torch" if specifier == "" else "any torch"
    return _specifier(specifier)


def requires_torch(requires: Iterable[str]) -> str:
    """Return the specifier on torch as the catalog writes it: ``""`` if torch is not required.

    ``>=0`` where it is required without bounds; requirements of extras do not count.
    """
    for line in requires:
        try:
            requirement = Requirement(line)
        except ValueError:  # InvalidRequirement, or more digits than Python reads
            continue
        if canonicalize_name(requirement.name) == "torch" and "extra" not in str(
            requirement.marker or ""
        ):
            return str(requirement.specifier) or ">=0"
    return ""


def channel_of(package: str, read: Inspection) -> str | None:
    """Return what a wheel says that it was built for; None where it does not tell."""
    label = (read.built or "").partition("+")[2]
    if kind_of_label(label) is not None:
        return label
    if read.cuda is not None and read.cuda.count("."):
        return "cu" + "".join(read.cuda.split(".")[:2])
    if read.cuda is None and read.hip is None and package in FAMILY and read.built is not None:
        return "cpu"
    return None


def _compare_kernels(found: _Comparison, build: Build, read: Inspection) -> None:
    """Compare kernel lists with those that the wheel gives by ``torchpin.catalog.kernel_lists``."""
    libraries = {
        one.name: counts(
            ((part.sass, part.ptx, part.fatbins) for part in one.fatbins.parts), one.fatbins.others
        )
        for one in read.libraries
        if one.layout is not None
    }
    stated = None
    if read.arches is not None:
        stated = (read.arches.sass, read.arches.ptx, read.arches.gfx)
    main, beside = kernel_lists(build.package, stated, libraries, "", MEASURED)
    if build.kernels is not None and build.kernels.evidence == MEASURED:
        found.compare(
            "kernels", targets(build.kernels), targets(main) if main else "no device code"
        )
    held = dict(beside)
    for name, kernels in build.libraries:
        if kernels.evidence != MEASURED:
            continue
        path = next((path for path in libraries if f"/{path}".endswith(f"/{name}")), None)
        if name in held:
            text = targets(held[name])
        elif path is None:
            text = "no such library"
        else:
            text = "the same as the build"
        found.compare(f"kernels of {name}", targets(kernels), text)


def targets(kernels: Kernels) -> str:
    """Return a kernel list in words: ``sm_80 sm_90 compute_90``."""
    words = [f"sm_{name}" for name in sorted_targets(kernels.sass)]
    words += [f"compute_{name}" for name in sorted_targets(kernels.ptx)]
    return " ".join([*words, *kernels.gfx]) or "none"
