"""Declarations and what a lock recorded of them, in one spelling, so that both compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpin.documents.base import Declaration
from torchpin.documents.project import ConflictItem
from torchpin.documents.requirement import canonical

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

PYTHONS = tuple(f"3.{minor}" for minor in range(20))


def scope_of(extra: str | None, group: str | None, kind: str) -> str:
    """Return the scope of what a lock recorded, as declarations have it."""
    if kind:
        return kind
    if group is not None:
        return f"group:{canonical(group)}"
    return f"extra:{canonical(extra)}" if extra is not None else ""


def at(one: Declaration) -> tuple[str, str]:
    """Return package and scope of a declaration, as ``scope_of`` writes it."""
    kind, colon, part = one.scope.partition(":")
    return one.name, f"{kind}{colon}{canonical(part)}" if part else kind


def where_of(one: Declaration) -> str:
    """Return where a declaration stands, for messages."""
    return f"in {one.scope.replace(':', ' ')}" if one.scope else "in dependencies"


def comparable(one: Declaration) -> bool:
    """True for what a lock records of the project: no build requirements, nothing unreadable."""
    kind = one.scope.partition(":")[0]
    return one.valid and not one.from_variable and kind in (
        "", "extra", "group", "constraint", "override"
    )  # fmt: skip


def wanted(specifier: str) -> SpecifierSet | str:
    """Return a specifier that equals every other spelling of it; text where it is none.

    ``>=2.0, <3`` and ``<3,>=2`` are the same. (packaging compares so; ``canonicalize_version``
    would cost the start-up path another import.)
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(specifier)
    except InvalidSpecifier:
        return specifier


def alike(one: SpecifierSet | str, other: SpecifierSet | str) -> bool:
    """Return whether two specifiers admit the same versions: uv leaves out what changes nothing.

    They are tried at, just below and just above each version that they name.
    """
    if isinstance(one, str) or isinstance(other, str) or one == other:
        return one == other
    bases = {part.version.removesuffix(".*").partition("+")[0] for part in (*one, *other)}
    tries = {"0", "99999"} | {
        f"{base}{ending}" for base in bases for ending in ("", ".1", ".dev0", ".post1", ".99999")
    }
    return all(
        one.contains(text, prereleases=True) == other.contains(text, prereleases=True)
        for text in filter(_is_version, tries)
    )


def _is_version(text: str) -> bool:
    from packaging.version import Version

    try:
        Version(text)
    except ValueError:  # or more digits than Python reads
        return False
    return True


def pythons(specifier: str | None) -> tuple[bool, ...] | None:
    """Return which minor versions of Python 3 a ``requires-python`` admits; None if unreadable."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        parsed = SpecifierSet(specifier or "")
    except InvalidSpecifier:
        return None
    return tuple(
        parsed.contains(version) or parsed.contains(f"{version}.99") for version in PYTHONS
    )


def members_of(items: tuple[ConflictItem, ...]) -> frozenset[tuple[str, str]]:
    """Return a conflict set without the package, which a lock always names."""
    return frozenset(
        (kind, canonical(value))
        for item in items
        for kind in ("extra", "group")
        if (value := getattr(item, kind)) is not None
    )


def bare(url: str) -> str:
    """Return a URL without credentials, which locks leave out."""
    scheme, sep, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{sep}{host.rpartition('@')[2]}{slash}{path}"
