"""What the commands and sections of one file install, one after the other.

An installer leaves alone what is there and suffices. Of a later command, what an earlier one of
the same environment (a stage of a container, a script) or the base image has installed is left
out, unless it asks for another version or for an upgrade.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from torchpin.catalog.images import ImageFacts, image_facts
from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Document
from torchpin.documents.parts import Part
from torchpin.documents.pins import exact_version, same_version
from torchpin.named import NamedTuple
from torchpin.select.asks import name_of
from torchpin.select.installs import install_of
from torchpin.select.model import Install, Placed, SelectedSet, Selection
from torchpin.select.pools import admits, version_of


class Installed(NamedTuple):
    """A package that is there before a command runs."""

    version: str | None
    """Public version; None: some version, as an open requirement has chosen it."""
    placed: Placed | None
    """What asked for it; None: it comes with the image."""


class PartInstall(NamedTuple):
    """One part as an install, and what it finds."""

    part: Part
    install: Install
    """Without the requirements that are met already."""
    before: Mapping[str, Installed]


def part_installs(
    file: Document,
    load: Callable[[str], Document],
    *,
    client: str | None = None,
    private: Mapping[str, str] | None = None,
    extra_indexes: Sequence[str] = (),
) -> Iterator[PartInstall]:
    """Yield every part of a file as what it installs, in order.

    Args:
        file: a document with parts.
        load: reads an included document.
        client: whose rules to follow where the part itself does not tell (sections).
        private: what the profile says about URLs.
        extra_indexes: indexes of the group's command line.
    """
    held: dict[str, dict[str, Installed]] = {}
    for part in file.parts:
        before: dict[str, Installed] = {}
        if "#" not in part.environment:  # a virtual environment holds nothing of the image
            before = {name: Installed(text, None) for name, text in facts_of(part).packages}
        for above in _environments(part.environment):
            before.update(held.get(above, {}))
        for below, some in held.items():
            if below.startswith(f"{part.environment}/"):  # branches, of which one has run
                for name, one in some.items():
                    before.setdefault(name, Installed(None, one.placed))
        whole = install_of(
            part.document,
            load,
            client=part.client if part.command else client or part.client,
            private=private,
            extra_indexes=extra_indexes,
            part=part,
        )
        install = without_met(whole, part, before)
        yield PartInstall(part, install, before)
        mine = held.setdefault(part.environment, {})
        for placed in install.requirements:
            name = name_of(placed)
            if name in FAMILY and placed.declaration.marker is None:
                pin = exact_version(placed.declaration.specifier)
                known = pin is not None and "$" not in pin[0]
                mine[name] = Installed(pin[0] if pin is not None and known else None, placed)


def facts_of(part: Part) -> ImageFacts:
    """Return what is known of the image of a part."""
    return image_facts(part.image.reference) if part.image is not None else ImageFacts()


def without_met(install: Install, part: Part, before: Mapping[str, Installed]) -> Install:
    """Return an install without the requirements that are met by what is there."""
    if part.upgrade or not before:
        return install
    left = tuple(
        placed for placed in install.requirements if not _met(placed, before.get(name_of(placed)))
    )
    return install._replace(requirements=left)


def without_installed(chosen: SelectedSet, before: Mapping[str, Installed]) -> SelectedSet:
    """Return a selection without the torch that only a companion asks for and that is there."""
    builds = {one.package: one.build for one in chosen.selections}

    def there(selection: Selection) -> bool:
        have = before.get(selection.package)
        if have is None or selection.placed is not None or selection.build is None:
            return False
        if have.version is not None and same_version(have.version, selection.build.version):
            return True
        by = builds.get(selection.implied_by or "")
        if by is None or have.version is None:
            return False
        # What is there stays unless the companion surely wants another one.
        wanted = by.requires_torch
        return not wanted or admits(wanted, version_of(have.version))

    return chosen._replace(selections=tuple(one for one in chosen.selections if not there(one)))


def _environments(name: str) -> Iterator[str]:
    """Yield an environment and those that it builds on, the first one first."""
    at = name.find("/")
    while at >= 0:
        yield name[:at]
        at = name.find("/", at + 1)
    yield name


def _met(placed: Placed, there: Installed | None) -> bool:
    """True if what is there meets a declaration, so that the installer leaves it alone."""
    declaration = placed.declaration
    if there is None or declaration.url is not None or not declaration.valid:
        return False
    if not declaration.specifier:
        return True
    if "$" in declaration.specifier or "+" in declaration.specifier:
        return False
    if there.version is not None:
        return admits(declaration.specifier, version_of(there.version))
    exact = "==" in declaration.specifier or "~=" in declaration.specifier
    if there.placed is None:  # an image's, of some version: what may be met is not told of
        return not exact
    return not exact and "<" not in declaration.specifier
