"""Edits of the pins of requirements files and commands, and of the hashes behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchpin.catalog.files import admits_python
from torchpin.catalog.model import FAMILY
from torchpin.catalog.store import Catalog
from torchpin.documents.base import Declaration, Document, Edit, Span
from torchpin.documents.pins import exact_version
from torchpin.patterns import regex
from torchpin.resolve.model import Plan
from torchpin.rewrite.draft import RefusedError
from torchpin.rewrite.parts import build_for, holding, part_of
from torchpin.rewrite.request import family_declarations, follower_declarations
from torchpin.rewrite.requirement_indexes import channel_lines, index_lines_for
from torchpin.rules.context import Way
from torchpin.select.environments import marker_holds
from torchpin.select.model import Placed

if TYPE_CHECKING:
    from torchpin.documents.parts import Part

OPERATOR = regex(r"[<>=!~]+([ \t]*)")


def pin_edits(
    way: Way,
    plan: Plan,
    catalog: Catalog,
    style: str,
    *,
    new_index: bool,
    labels: bool = False,
) -> list[tuple[Document, Edit]]:
    """Return the edits that pin every family declaration to the plan.

    Args:
        style: ``kept``: a pin without a label stays without one where the file names a channel;
            ``labelled``: every pin gets the label of its build.
        new_index: the file named no channel before.
        labels: whatever the indexes are, pins get labels.

    Raises:
        RefusedError: see ``drafts``.
    """
    alone = not any(index.kind.kind == "pypi" for index in way.install.indexes)
    if labels:
        alone = False
    elif new_index:
        alone = not channel_lines(way) and any(
            line.startswith("--index-url") for line in index_lines_for(way, plan)
        )
    edits: list[tuple[Document, Edit]] = []
    macs = serves_undeclared_macs(way, plan)
    for placed in family_declarations(way):
        some = pin_one(
            placed, plan, catalog, style, alone=alone, new_index=new_index, part=way.part
        )
        if macs and placed.declaration.marker is None and any("+" in edit.text for _, edit in some):
            raise RefusedError(
                f"the file serves macOS too, which takes no label on {placed.declaration.name}; "
                "declare a macOS group"
            )
        edits += some
    for placed in follower_declarations(way):
        if moves(placed, plan):
            edits += pin_one(
                placed, plan, catalog, style, alone=alone, new_index=False, part=way.part
            )
    return edits


def moves(placed: Placed, plan: Plan) -> bool:
    """True if a plan changes the pin of a package that follows torch, or the pin's label."""
    declaration = placed.declaration
    here = [target for target in plan.targets if holding(declaration, (target,))]
    if any(declaration.name in part_of(plan, target).moved for target in here):
        return True
    pin = exact_version(declaration.specifier)
    labels = {
        build.label
        for target in here
        if (build := build_for(plan, target, declaration.name)) is not None
    }
    return pin is not None and bool(pin[1]) and bool(labels) and labels != {pin[1]}


def serves_undeclared_macs(way: Way, plan: Plan) -> bool:
    """True if a marker of the family speaks of macOS and no target is a Mac."""
    if any(target.group.platform.startswith("macos") for target in plan.targets):
        return False
    return any(
        placed.declaration.name in FAMILY and "darwin" in (placed.declaration.marker or "").lower()
        for placed in way.install.requirements
    )


def pin_one(
    placed: Placed,
    plan: Plan,
    catalog: Catalog,
    style: str,
    *,
    alone: bool,
    new_index: bool,
    part: Part | None = None,
) -> list[tuple[Document, Edit]]:
    """Return the edits of one declaration; see ``pin_edits``."""
    document, declaration = placed
    by_platform: dict[str, str] = {}
    exact = set()
    pin = exact_version(declaration.specifier)
    bare = style == "kept" and not (pin and pin[1]) and (alone or (pin and not new_index))
    for target in plan.targets:
        if marker_holds(declaration.marker, target) is False:
            continue
        build = build_for(plan, target, declaration.name)
        if build is not None:
            text = build.version if bare else build.full_version
            by_platform[target.group.platform] = text
            exact.add((target.group.platform, text))
    if not by_platform:
        return []
    if declaration.url is not None:
        raise RefusedError(f"{declaration.name} is a direct URL")
    if declaration.from_variable and (part is None or document is not part.document):
        raise RefusedError(f"the version of {declaration.name} comes from a variable")
    if len(exact) != len(by_platform):
        raise RefusedError(f"{declaration.name} would need a line for each Python")
    versions = set(by_platform.values())
    if len(versions) == 1:
        version = versions.pop()
        if declaration.from_variable and part is not None:
            return version_of_variable(part, declaration, version)
        return [
            *pin_text(document, declaration, version),
            *hash_edits(document, declaration, plan, catalog, version),
        ]
    if declaration.hashes or declaration.options:
        raise RefusedError(
            f"{declaration.name} would need two lines, and carries hashes or options"
        )
    if document.kind == "part":
        raise RefusedError(f"{declaration.name} would need two requirements with markers")
    return [(document, Edit(declaration.span, two_lines(document, declaration, by_platform)))]


def version_of_variable(
    part: Part, declaration: Declaration, version: str
) -> list[tuple[Document, Edit]]:
    """Return the edits of the variables in a command's requirement that pin it to a version.

    Raises:
        RefusedError: the value has no one place in the file.
    """
    from torchpin.rewrite.commands import specifier_edits

    edits = specifier_edits(part, declaration, f"=={version}")
    if edits is None:
        name = declaration.name
        if part.written_in:
            elsewhere = part.written_in
            raise RefusedError(f"the pin of {name} is not written in this file: see {elsewhere}")
        raise RefusedError(f"the version of {name} comes from a variable")
    return [(part.document, edit) for edit in edits]


def pin_text(
    document: Document, declaration: Declaration, version: str
) -> list[tuple[Document, Edit]]:
    """Return the edit that makes a declaration ``==version``."""
    span = declaration.specifier_span
    if span is not None:
        written = OPERATOR.match(document.text, span.start, span.end)
        blank = written.group(1) if written else ""
        return [(document, Edit(span, f"=={blank}{version}"))]
    at = after_name(document, declaration)
    return [(document, Edit(Span(at, at), f"=={version}"))]


def after_name(document: Document, declaration: Declaration) -> int:
    """Return the offset behind the name and its extras."""
    tail = document.text[declaration.name_span.end : declaration.span.end]
    match = re.match(r"\s*\[[^\]]*\]", tail)
    return declaration.name_span.end + (match.end() if match else 0)


def two_lines(document: Document, declaration: Declaration, by_platform: dict[str, str]) -> str:
    """Return a declaration written twice, with markers that exclude each other.

    Raises:
        RefusedError: more than two versions, or platforms that no simple marker tells apart.
    """
    versions = sorted(set(by_platform.values()), key=lambda text: "+" not in text)
    if len(versions) != 2:
        raise RefusedError(f"{declaration.name} would need {len(versions)} lines")
    first = {platform for platform, text in by_platform.items() if text == versions[0]}
    second = set(by_platform) - first
    marker = splitting_marker(first, second, cpu=versions[0].endswith("+cpu"))
    if marker is None:
        raise RefusedError(f"no simple marker tells {sorted(first)} from {sorted(second)}")
    head = document.text[declaration.span.start : after_name(document, declaration)]
    old = declaration.marker
    lines = []
    for version, own in zip(versions, marker, strict=True):
        text = own
        if old:
            text = f"({old}) and {own}" if " or " in old else f"{old} and {own}"
        lines.append(f"{head}=={version} ; {text}")
    return document.newline.join(lines)


def splitting_marker(
    first: set[str], second: set[str], *, cpu: bool = False
) -> tuple[str, str] | None:
    """Return two markers, one true on each set of platforms and both together always.

    ``cpu``: the first set takes ``+cpu`` builds, which Windows has as well.
    """
    systems = [{platform.split("-")[0] for platform in some} for some in (first, second)]
    machines = [{platform.split("-")[1] for platform in some} for some in (first, second)]
    if systems[1] == {"macos"} and "macos" not in systems[0] and cpu:
        return 'sys_platform != "darwin"', 'sys_platform == "darwin"'
    if systems[0] == {"linux"} and "linux" not in systems[1]:
        return 'sys_platform == "linux"', 'sys_platform != "linux"'
    if systems[1] == {"macos"} and "macos" not in systems[0]:
        return 'sys_platform != "darwin"', 'sys_platform == "darwin"'
    if systems[0] == systems[1] == {"linux"} and len(machines[0]) == len(machines[1]) == 1:
        name = next(iter(machines[0]))
        return f'platform_machine == "{name}"', f'platform_machine != "{name}"'
    return None


def hash_edits(
    document: Document, declaration: Declaration, plan: Plan, catalog: Catalog, version: str
) -> list[tuple[Document, Edit]]:
    """Return the edits that renew the hashes of a declaration.

    Raises:
        RefusedError: the digest of a wheel that a target installs is not known.
    """
    if not declaration.hashes:
        return []
    digests: dict[str, None] = {}
    for target in plan.targets:
        if plan.parts and not holding(declaration, (target,)):
            continue
        build = build_for(plan, target, declaration.name)
        if build is not None:
            platform, package = target.group.platform, declaration.name
            tag = target.python.tag if target.python is not None else None
            place = build.channel if build.home == "channel" else None
            known = [
                digest
                for name, digest in catalog.hashes(package, build.full_version, platform, place)
                if admits_python(name, tag)
            ]
            if not known:
                raise RefusedError(
                    f"{declaration.name} carries hashes, and the digest of "
                    f"{package} {build.full_version} for {target.text} is not known"
                )
            digests.update(dict.fromkeys(known))
    if {one.digest for one in declaration.hashes} >= set(digests):
        return []
    first, last = declaration.hashes[0].span, declaration.hashes[-1].span
    joined = f" \\{document.newline}    ".join(f"--hash=sha256:{digest}" for digest in digests)
    return [(document, Edit(Span(first.start, last.end), joined))]
