"""Where the packages of a Poetry project come from: explicit sources, by package and marker.

Poetry takes a package that names a ``source`` from that one alone, everything else from the
sources that are not explicit. Its solver is not simulated: with the whole family from one place,
the newest versions that go together are what it locks; from several places it is not known.
Source: Poetry's pages on repositories and on dependency specification.
"""

from __future__ import annotations

from torchpin.catalog.model import FAMILY
from torchpin.documents.manifest import index_line
from torchpin.fleet.model import Target
from torchpin.select.channels import index_kind
from torchpin.select.environments import marker_holds
from torchpin.select.model import Install, PlacedIndex

MIXED = "the family comes from several sources, and Poetry's choice among them is not known"


def routed(install: Install, target: Target) -> Install | None:
    """Return the install with the one index that its family comes from on a target.

    It is returned as it is where no source is named; None where there are several places.
    """
    project = install.root.project
    if project is None:
        return install
    indexes = {one.name: one for one in project.indexes if one.tool == "poetry"}
    places: set[str] = set()
    for placed in install.requirements:
        name = placed.declaration.name
        if name not in FAMILY or marker_holds(placed.declaration.marker, target) is False:
            continue
        mine = {
            one.value
            for one in project.sources
            if one.package == name and marker_holds(one.marker, target) is not False
        }
        places |= mine or {""}
    if places <= {""}:
        return install
    index = indexes.get(next(iter(places)))
    if len(places) > 1 or index is None:
        return None
    kind = index_kind(index.url, dict(install.private), option=index.option)
    line = index_line(install.root.text, index)
    only = PlacedIndex(install.root, line, "--index-url", index.url, kind)
    return install._replace(indexes=(only,))
