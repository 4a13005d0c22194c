"""What an install asks of each package on a target: all declarations that hold there, as one."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from torchpin.catalog.model import WATCHED
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.select.environments import marker_holds
from torchpin.select.facts import Facts
from torchpin.select.model import Install, Placed
from torchpin.select.wheels import wheel_name


class Ask(NamedTuple):
    """Everything that an install asks of one package on one target."""

    package: str
    placed: Placed | None
    """The first declaration that holds; None if another package implies it."""
    implied_by: str | None
    specifier: SpecifierSet
    """Of all declarations and constraints that hold."""
    text: str
    """For messages: ``torch==2.14.0+cu124``."""
    pin: tuple[str, str] | None
    """Public version and label (lower case, ``""`` if none) if an exact version is asked for."""
    hashes: frozenset[str]
    url: str | None
    invalid: str = ""
    """The text that cannot be parsed."""
    unclear: str = ""
    """Why it cannot be known whether or what is asked for."""
    skipped: bool = False
    """No declaration applies to the target."""

    @property
    def exact(self) -> bool:
        """Whether the file fixes the version."""
        return self.pin is not None or self.url is not None or bool(self.hashes)


def watched(package: str, facts: Facts) -> bool:
    """Return whether selection speaks about ``package``."""
    return package in WATCHED or bool(facts.builds(package))


def name_of(placed: Placed) -> str:
    """Return the canonical name of a declaration; an unnamed URL is named by its wheel."""
    declaration = placed.declaration
    if declaration.name or not declaration.url:
        return declaration.name
    wheel = wheel_name(declaration.url)
    return wheel.project if wheel is not None else ""


def pin_of(specifier: SpecifierSet) -> tuple[str, str] | None:
    """Return public version and label of an ``==`` or ``===`` without a wildcard."""
    found: tuple[str, str] | None = None
    for one in specifier:
        if one.operator in ("==", "===") and not one.version.endswith(".*"):
            try:
                version = Version(one.version)
            except ValueError:  # or more digits than Python reads
                continue
            if found is None or version.local:
                found = (version.public, version.local or "")
    return found


def gather(install: Install, target: Target, facts: Facts) -> dict[str, Ask]:
    """Return what ``install`` asks of every watched package, in the order of declaration."""
    wanted: dict[str, list[Placed]] = {}
    for placed in install.requirements:
        name = name_of(placed)
        if name and watched(name, facts):
            wanted.setdefault(name, []).append(placed)
    limits: dict[str, list[Placed]] = {}
    for placed in install.constraints:
        limits.setdefault(name_of(placed), []).append(placed)
    return {
        name: bounded(
            combine(name, placed, tuple(limits.get(name, ())), target, uv=install.client == "uv"),
            install,
        )
        for name, placed in wanted.items()
    }


def bounded(ask: Ask, install: Install) -> Ask:
    """Return the ask as what is not read leaves it: unclear, or an exact pin under limits."""
    for one in install.unread:
        if not ask.unclear and not (one.constraint and ask.exact):
            return ask._replace(unclear=one.because)
    return ask


def implied(name: str, by: str, install: Install, target: Target) -> Ask:
    """Return the ask for a package that nothing declares and ``by`` needs."""
    limits = tuple(placed for placed in install.constraints if name_of(placed) == name)
    uv = install.client == "uv"
    return bounded(combine(name, [], limits, target, implied_by=by, uv=uv), install)


def _parsed(text: str, uv: bool) -> SpecifierSet:
    """Return a specifier as the client reads it; raises ``InvalidSpecifier``."""
    if not uv or "===" not in text:
        return SpecifierSet(text)
    from torchpin.select.uv_reading import specifier_of

    return specifier_of(text)


def combine(
    name: str,
    placed: list[Placed],
    limits: tuple[Placed, ...],
    target: Target,
    *,
    implied_by: str | None = None,
    uv: bool = False,
) -> Ask:
    """Return the declarations and constraints of one package that hold on ``target`` as one.

    ``uv``: as uv reads markers and ``===``.
    """
    texts: list[str] = []
    urls: list[str] = []
    hashes: set[str] = set()
    specifier = SpecifierSet("")
    first: Placed | None = None
    invalid = unclear = ""
    bare = False
    for one, constraint in [(p, False) for p in placed] + [(p, True) for p in limits]:
        declaration = one.declaration
        holds = marker_holds(declaration.marker, target)
        if uv and declaration.marker is not None:
            from torchpin.select.uv_reading import marker_is_unclear

            holds = None if marker_is_unclear(declaration.marker) else holds
        if holds is False:
            continue
        if holds is None and not unclear:
            unclear = f"it cannot be known whether the marker '{declaration.marker}' holds"
        if not constraint and first is None:
            first = one
        if "$" in declaration.specifier or (declaration.url and "$" in declaration.url):
            unclear = unclear or "it depends on a variable whose value is not known"
            continue
        if declaration.url is not None:
            if declaration.url not in urls:
                urls.append(declaration.url)
            continue
        try:
            specifier &= _parsed(declaration.specifier, uv)
        except InvalidSpecifier:
            invalid = invalid or f"{name}{declaration.specifier}"
            continue
        if not declaration.valid and not declaration.specifier:
            # What is wrong with the line may be its specifier.
            unclear = unclear or f"the line that asks for {name} cannot be read"
        if declaration.specifier and declaration.specifier not in texts:
            texts.append(declaration.specifier)
        if not constraint and not uv:
            bare = bare or not declaration.hashes
        if not constraint or not uv:
            hashes |= {h.digest.lower() for h in declaration.hashes if h.algorithm == "sha256"}
    if bare and hashes:
        unclear = unclear or f"pip wants a hash in each line that asks for {name}"
    if len(urls) > 1:
        unclear = unclear or f"{name} has two different URLs"
    return Ask(
        package=name,
        placed=first,
        implied_by=implied_by,
        specifier=specifier,
        text=name + ",".join(texts),
        pin=pin_of(specifier),
        hashes=frozenset(hashes),
        url=urls[0] if urls else None,
        invalid=invalid,
        unclear=unclear,
        skipped=first is None and implied_by is None,
    )
