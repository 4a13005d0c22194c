"""What a package outside the family, or a version of a companion, requires of the family.

METADATA that the project gives itself (``dependency-metadata``) wins; else the catalog tells what
pinned releases of popular packages and the versions of companions require.
"""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from torchpin.select.asks import pin_of
from torchpin.select.facts import Facts
from torchpin.select.forks import Need
from torchpin.select.uv_needs import Needs
from torchpin.select.uv_state import UnclearError
from torchpin.select.uv_versions import Offered

_REQUIRE_TORCH = ("torchvision", "torchaudio", "torchtext", "torchdata", "xformers")
"""Packages that require torch in their METADATA, whatever is known of it."""


def demanded(needs: Needs, facts: Facts, need: Need) -> tuple[str, ...]:
    """Return what a declared package outside the family requires of it, as requirements.

    Raises:
        UnclearError: it depends on the version that uv takes.
    """
    settings = needs.settings
    try:
        pin = pin_of(SpecifierSet(need.specifier)) if need.specifier else None
    except InvalidSpecifier:
        return ()
    given = settings.metadata_of(need.name, Version(pin[0]) if pin is not None else None)
    if given is not None:
        return given
    if pin is None:
        if need.name in settings.metadata:
            text = f"dependency-metadata is for some versions of {need.name}"
            raise UnclearError(f"{text}, and which one uv takes is not known")
        return ()
    found = facts.pins(need.name, pin[0])
    return (f"torch{found}",) if found else ()


def required(needs: Needs, offered: Offered) -> list[Need]:
    """Return what a version of a watched package requires of the family."""
    candidate = offered.first
    package = candidate.build.package
    given = needs.settings.metadata_of(package, offered.version)
    if given is not None:
        return needs.parsed(given)
    if package == "torch" or candidate.requires == "":
        return []
    if candidate.requires is not None:
        return [Need("torch", needs.grid.all, "", candidate.requires, None, None)]
    if package not in _REQUIRE_TORCH:
        return []
    return [Need("torch", needs.grid.all, "", "", None, None, accepts=candidate)]
