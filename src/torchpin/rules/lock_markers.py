"""Do the markers and extras that a ``uv.lock`` recorded still mean what the project says?

uv writes them in a normal form of its own and divides an entry by the markers of its sources, so
that they are compared by what they admit, all entries of a package with one specifier together.
"""

from __future__ import annotations

from torchpin.catalog.model import PLATFORMS
from torchpin.documents.base import Declaration
from torchpin.documents.project import Lock, LockedRequirement, Project
from torchpin.documents.requirement import canonical

Places = frozenset[tuple[str, str]]


def marker_change(
    project: Project, one: Declaration, all_: list[Declaration], recorded: list[LockedRequirement]
) -> str:
    """Return how what is recorded differs from the declarations; ``""`` where it does not.

    Args:
        project: says which Pythons count.
        one: the declaration that is asked about.
        all_: it and the others of its package, scope and specifier.
        recorded: what the lock recorded of that package, scope and specifier.
    """
    extras = {canonical(e) for d in all_ for e in d.extras}
    known = {canonical(e) for r in recorded for e in r.extras}
    name = one.name
    if extras != known:
        was = f"{name}[{','.join(sorted(known))}]" if known else name
        now = f"{name}[{','.join(sorted(extras))}]" if extras else name
        return f"it was made for {was}, the project asks for {now}"
    scope = one.scope.partition("extra:")[2]
    texts = pythons(project)
    here = places([d.marker for d in all_], scope, texts)
    there = places([r.marker for r in recorded], scope, texts)
    if here is None or there is None or here == there:
        return ""
    if not there - here:
        return f"it was made before {name} was asked for on {told(here - there)}"
    return f"it was made for {name} on {told(there - here)}, too, where the project asks for none"


def environments_change(project: Project, lock: Lock) -> str:
    """Return how ``environments`` differ from those that the lock recorded; ``""`` if they do not.

    None are all.
    """
    texts = pythons(project)
    if not texts or not (project.environments or lock.supported_markers):
        return ""
    here = places(list(project.environments) or [None], "", texts)
    there = places(list(lock.supported_markers) or [None], "", texts)
    if here is None or there is None or here == there:
        return ""
    if here - there:
        return f"it was made before the project was for {told(here - there)}"
    return f"it was made for {told(there - here)}, too, which the environments leave out"


def same_reach(
    project: Project, all_: list[Declaration], recorded: list[LockedRequirement], extra: str
) -> bool:
    """Return whether a package is asked for at the same places, whatever its specifiers.

    uv 0.13.9 leaves a lock as it is where a requirement only came to overlap with another one of
    its package, so that the same builds serve the same places.
    """
    texts = pythons(project)
    here = places([d.marker for d in all_], extra, texts)
    return here is not None and here == places([r.marker for r in recorded], extra, texts)


def can_hold(project: Project, one: Declaration) -> bool:
    """Return whether a declaration is known to apply somewhere that the project is for."""
    if not one.marker:
        return True
    texts = pythons(project)
    some = places([one.marker], one.scope.partition("extra:")[2], texts)
    inside = places(list(project.environments), "", texts) if project.environments else some
    return bool(some and inside and some & inside)


def told(some: Places) -> str:
    """Return where, in few words."""
    platform, python = min(some)
    return f"{platform} with Python {'.'.join(python.split('.')[:2])}"


def pythons(project: Project) -> list[str]:
    """Return versions of Python that the project is for, on both sides of each limit."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        own = SpecifierSet(project.requires_python or "")
    except InvalidSpecifier:
        return []
    texts = [f"3.{minor}.{patch}" for minor in range(8, 20) for patch in (0, 1, 99)]
    return [text for text in texts if own.contains(text)]


def places(markers: list[str | None], extra: str, versions: list[str]) -> Places | None:
    """Return the places at which one of the markers holds; None where that is not known."""
    from torchpin.select.whole_lock import evaluate

    enabled = frozenset((canonical(extra), extra)) if extra else frozenset[str]()
    found: set[tuple[str, str]] = set()
    for platform in PLATFORMS:
        for version in versions:
            answers = [
                True if not marker else evaluate(marker, platform, version, enabled)
                for marker in markers
            ]
            if None in answers:
                return None
            if True in answers:
                found.add((platform, version))
    return frozenset(found)
