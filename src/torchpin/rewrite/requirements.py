"""A plan as minimal edits of requirements files.

Several ways to write a plan are tried from the least change to the most; which one is taken is
decided by reading the edited text again and selecting from it (``rewrite.plan``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchpin.catalog.files import admits_python
from torchpin.catalog.model import FAMILY
from torchpin.catalog.store import Catalog
from torchpin.documents.base import Declaration, Document, Edit, Span
from torchpin.documents.pins import exact_version
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.resolve.model import Plan
from torchpin.rewrite.parts import build_for, holding, part_of
from torchpin.rewrite.request import family_declarations, follower_declarations
from torchpin.rules.context import Way
from torchpin.rules.model import FileEdits
from torchpin.select.channels import channel_url
from torchpin.select.environments import marker_holds
from torchpin.select.model import Placed, PlacedIndex

if TYPE_CHECKING:
    from torchpin.documents.parts import Part

CHANNEL_IN_URL = regex(r"(/whl/)(?:nightly/|test/)?[A-Za-z0-9.]+(?=/|$)")
OPERATOR = regex(r"[<>=!~]+([ \t]*)")
OPEN = regex(r"^\s*(>|!=|$)|~=\s*\d+\.\d+\s*$")


class RefusedError(Exception):
    """The plan cannot be written into this file; the message says why."""


class Draft(NamedTuple):
    """One way to write a plan."""

    edits: tuple[FileEdits, ...]
    pinned: bool
    """Every family package is pinned to the plan's version."""


def drafts(way: Way, plan: Plan, catalog: Catalog) -> Iterator[Draft]:
    """Yield ways to write ``plan``, least change first.

    Raises:
        RefusedError: a pin comes from a variable or a URL, or carries hashes that are not known;
            the file is a lock.
    """
    if way.part is not None and way.part.syntax == "json":
        raise RefusedError("the owner of a lock writes it: change Pipfile, then run `pipenv lock`")
    if way.part is not None and way.part.syntax == "lock":
        raise RefusedError("the owner of a lock writes it: change pixi.toml, then run `pixi lock`")
    for index_edits, unnamed in index_drafts(way, plan):
        if not unnamed and not needs_pins(way):
            yield draft(index_edits, [], pinned=False)
        for style in ("kept", "labelled"):
            pins = pin_edits(way, plan, catalog, style, new_index=unnamed)
            yield draft(index_edits, pins, pinned=True)


def replacing_drafts(way: Way, plan: Plan, catalog: Catalog) -> Iterator[Draft]:
    """Yield ways to make the channel an additional place, with labelled pins.

    Raises:
        RefusedError: see ``drafts``.
    """
    lines = channel_lines(way)
    pins = pin_edits(way, plan, catalog, "labelled", new_index=True, labels=True)
    if way.install.client == "uv":
        yield draft(link_pages(way, lines, plan), pins, pinned=True)
        return
    edits: list[tuple[Document, Edit]] = []
    for index in lines:
        assert index.document is not None
        assert index.line is not None
        if index.line.option == "--index-url":
            option = index.line.span.start
            end = index.line.url_span.start
            written = index.document.text[option:end]
            separator = "=" if written.rstrip().endswith("=") else " "
            edits.append((index.document, Edit(Span(option, end), f"--extra-index-url{separator}")))
        url = index.document.text[index.line.url_span.start : index.line.url_span.end]
        if index.kind.channel != plan.channel:
            new = CHANNEL_IN_URL.sub(rf"\g<1>{plan.channel}", url, count=1)
            edits.append((index.document, Edit(index.line.url_span, new)))
    yield draft(edits, pins, pinned=True)


def draft(
    index_edits: list[tuple[Document, Edit]],
    pins: list[tuple[Document, Edit]],
    *,
    pinned: bool,
) -> Draft:
    """Return edits of several documents as a draft."""
    by_path: dict[str, tuple[Document, list[Edit]]] = {}
    for document, edit in side_by_side(index_edits, pins):
        if document.text[edit.span.start : edit.span.end] != edit.text:
            by_path.setdefault(document.path, (document, []))[1].append(edit)
    return Draft(
        tuple(FileEdits(document, tuple(edits)) for document, edits in by_path.values()), pinned
    )


def side_by_side(
    index_edits: list[tuple[Document, Edit]], pins: list[tuple[Document, Edit]]
) -> list[tuple[Document, Edit]]:
    """Return all edits; where both add text at one place (the end of a command), the pin's text
    comes first."""
    ends = {edit.span: edit for _, edit in pins if edit.span.start == edit.span.end}
    kept: list[tuple[Document, Edit]] = []
    for document, edit in index_edits:
        pin = ends.pop(edit.span, None) if document.kind == "part" else None
        if pin is None:
            kept.append((document, edit))
        else:
            kept.append((document, Edit(edit.span, pin.text + edit.text)))
            pins = [one for one in pins if one[1] != pin]
    return [*kept, *pins]


def needs_pins(way: Way) -> bool:
    """True if an open requirement competes with PyPI: then only pins bring the channel's build."""
    pypi = any(index.kind.kind == "pypi" for index in way.install.indexes)
    return pypi and any(
        OPEN.search(placed.declaration.specifier) and "<" not in placed.declaration.specifier
        for placed in family_declarations(way)
    )


def channel_lines(way: Way) -> list[PlacedIndex]:
    """Return the lines that name a place of PyTorch's own, each once."""
    found: dict[tuple[str, Span], PlacedIndex] = {}
    for index in (*way.install.indexes, *way.install.discarded):
        if index.document is None or index.line is None:
            continue
        if index.kind.kind in ("channel", "nightly", "test", "legacy", "root"):
            found.setdefault((index.document.path, index.line.span), index)
    return list(found.values())


def index_drafts(way: Way, plan: Plan) -> Iterator[tuple[list[tuple[Document, Edit]], bool]]:
    """Yield the edits of index lines, least change first, and whether the index is a new one."""
    backend = backend_edits(way, plan)
    if backend is not None:
        yield backend, False
        return
    lines = channel_lines(way)
    if plan.home == "pypi":
        yield [], not lines
        if lines:
            yield [delete_line(way, index) for index in lines], False
        return
    if lines:
        yield swap_channel(way, lines, plan.channel), False
        if way.install.client == "uv":
            yield link_pages(way, lines, plan), True
        return
    for document in dict.fromkeys((home_of(way), way.install.root)):
        yield [insert_index(way, document, plan)], True


def backend_edits(way: Way, plan: Plan) -> list[tuple[Document, Edit]] | None:
    """Return the edits that name the plan's channel as torch backend; None: the command names
    none.

    Raises:
        RefusedError: the plan needs PyPI, or the backend has no one place in the file.
    """
    if way.part is None or way.install.torch_backend is None:
        return None
    from torchpin.rewrite.commands import replaced

    edits = replaced(way.part.backend, plan.channel) if way.part.backend else None
    if edits is None or plan.home == "pypi":
        raise RefusedError("the torch backend stands elsewhere, or has no such channel")
    return [(way.part.document, edit) for edit in edits]


def swap_channel(way: Way, lines: list[PlacedIndex], channel: str) -> list[tuple[Document, Edit]]:
    """Point every line to ``channel``; lines that become the same are written once.

    Raises:
        RefusedError: a URL comes from a variable.
    """
    edits: list[tuple[Document, Edit]] = []
    seen: set[tuple[str, str]] = set()
    for index in lines:
        assert index.document is not None
        assert index.line is not None
        if index.line.from_variable:
            edits += channel_of_variable(way, index, channel)
            continue
        raw = index.document.text[index.line.url_span.start : index.line.url_span.end]
        option = index.line.option
        bare_links = option == "--find-links" and index.kind.project is None
        if index.kind.kind == "legacy" or (bare_links and index.kind.kind == "channel"):
            option, new = "--extra-index-url", channel_url(channel)
            edit = written_anew(way, index, [f"{option} {new}"])
        elif index.kind.kind == "root" or index.kind.channel is None:
            new = re.sub(r"(/whl)(/nightly|/test)?(?=/|$)", rf"\1/{channel}", raw, count=1)
            edit = Edit(index.line.url_span, new)
        else:
            new = CHANNEL_IN_URL.sub(rf"\g<1>{channel}", raw, count=1)
            edit = Edit(index.line.url_span, new)
        key = (option if option == "--index-url" else "extra", new.rstrip("/"))
        if key in seen:
            edits.append(delete_line(way, index))
            continue
        seen.add(key)
        edits.append((index.document, edit))
    return edits


def channel_of_variable(way: Way, index: PlacedIndex, channel: str) -> list[tuple[Document, Edit]]:
    """Return the edits of the variables in a command's URL that make its channel another.

    Raises:
        RefusedError: the value has no one place in the file.
    """
    document, line = index.document, index.line
    assert document is not None
    assert line is not None
    edits = None
    if way.part is not None and document is way.part.document:
        from torchpin.rewrite.commands import channel_edits

        edits = channel_edits(way.part, line, CHANNEL_IN_URL, channel)
    if edits is None:
        raise RefusedError("the index URL comes from a variable")
    return [(document, edit) for edit in edits]


def link_pages(way: Way, lines: list[PlacedIndex], plan: Plan) -> list[tuple[Document, Edit]]:
    """Put one link page a package in the place of the channel lines (fix policy F2, uv).

    A link page shadows nothing, and uv falls back to PyPI where it has no wheel for the platform.
    """
    if any(shares_line(index) for index in lines):
        raise RefusedError("another option stands on the line of the index")
    edits = [delete_line(way, index) for index in lines]
    document, first = edits[0]
    base = mirror_of(lines, plan.channel)
    if document.kind == "part":
        return [(document, written_anew(way, lines[0], pages_for(way, plan, base))), *edits[1:]]
    pages = "".join(page + document.newline for page in pages_for(way, plan, base))
    return [(document, first._replace(text=pages)), *edits[1:]]


def mirror_of(lines: list[PlacedIndex], channel: str) -> str | None:
    """Return the channel's URL on the host that the file names: a mirror stays a mirror.

    Raises:
        RefusedError: the URL comes from a variable.
    """
    for index in lines:
        assert index.document is not None
        assert index.line is not None
        if index.kind.kind != "channel":
            continue
        if index.line.from_variable:
            raise RefusedError("the index URL comes from a variable")
        raw = index.document.text[index.line.url_span.start : index.line.url_span.end]
        match = CHANNEL_IN_URL.search(raw)
        if match is not None:
            return raw[: match.start()] + match.group(1) + channel
    return None


def pages_for(way: Way, plan: Plan, base: str | None = None) -> list[str]:
    """Return the link pages of the channel for the packages of the file, and torch.

    ``base``: the channel's URL where it is not PyTorch's own host.
    """
    url = base or plan.index_url or channel_url(plan.channel)
    names = {placed.declaration.name for placed in family_declarations(way)} | {"torch"}
    pages = [name for name in FAMILY if name in names]
    followers = {placed.declaration.name for placed in follower_declarations(way)}
    pages += [
        name
        for name in dict.fromkeys(name for _, name, _ in plan.builds)
        if name in followers and any(b.home != "pypi" for _, n, b in plan.builds if n == name)
    ]
    return [f"-f {url}/{name}/" for name in pages]


def written_anew(way: Way, index: PlacedIndex, options: list[str]) -> Edit:
    """Return the edit that puts other options in the place of an index line.

    Raises:
        RefusedError: the command or section has no room for them.
    """
    assert index.document is not None
    assert index.line is not None
    if index.document.kind != "part" or way.part is None:
        return Edit(index.line.span, index.document.newline.join(options))
    from torchpin.rewrite.commands import replace_option

    edit = None if index.line.from_variable else replace_option(way.part, index.line.span, options)
    if edit is None:
        raise RefusedError("the index is not written as an option of its own")
    return edit


def delete_line(way: Way, index: PlacedIndex) -> tuple[Document, Edit]:
    """Return the edit that deletes an index line with its line end.

    Where something else stands on the line, only the option goes, with the blanks beside it.

    Raises:
        RefusedError: the option of a command comes from a variable.
    """
    assert index.document is not None
    assert index.line is not None
    if index.document.kind == "part" and way.part is not None:
        from torchpin.rewrite.commands import delete_option

        if index.line.from_variable or index.line.span == index.line.url_span:
            raise RefusedError("the index does not stand in the command itself")
        return index.document, delete_option(way.part, index.document, index.line.span)
    text, line = index.document.text, index.line.line_span
    if not shares_line(index):
        return index.document, Edit(whole_line(text, line), "")
    start, end = index.line.span
    while end < line.end and text[end] in " \t":
        end += 1
    while end == line.end and start > line.start and text[start - 1] in " \t":
        start -= 1
    return index.document, Edit(Span(start, end), "")


def shares_line(index: PlacedIndex) -> bool:
    """True if another option, an include or a requirement stands on the line of ``index``."""
    assert index.document is not None
    assert index.line is not None
    document, line, own = index.document, index.line.line_span, index.line.span
    if own == line:
        return False  # the usual line, told without a look at all others
    spans = [one.span for one in document.indexes]
    spans += [one.span for one in document.options]
    spans += [one.span for one in document.includes]
    spans += [one.span for one in document.declarations]
    return sum(line.start <= span.start < line.end for span in spans) > 1


def whole_line(text: str, line: Span) -> Span:
    """Return the span of a logical line with its line end."""
    end = line.end
    if text.startswith("\r\n", end):
        end += 2
    elif end < len(text) and text[end] in "\r\n":
        end += 1
    return Span(line.start, end)


def home_of(way: Way) -> Document:
    """Return the document that asks for torch, or else for another family package."""
    declared = [placed for placed in family_declarations(way) if placed in way.install.requirements]
    for placed in declared:
        if placed.declaration.name == "torch":
            return placed.document
    return declared[0].document if declared else way.install.root


def index_lines_for(way: Way, plan: Plan) -> list[str]:
    """Return the index lines that a file without any gets (fix policy F2)."""
    url = plan.index_url or channel_url(plan.channel)
    if way.install.client == "pip":
        return [f"--extra-index-url {url}"]
    others = any(placed.declaration.name not in FAMILY for placed in way.install.requirements)
    if not others and len({build.platform for _, _, build in plan.builds}) == 1:
        return [f"--index-url {url}"]
    return pages_for(way, plan)


def insert_index(way: Way, document: Document, plan: Plan) -> tuple[Document, Edit]:
    """Return the edit that adds index lines: behind the last index line, else at the top.

    Raises:
        RefusedError: the command or section has no place for them.
    """
    lines = index_lines_for(way, plan)
    if document.kind == "part" and way.part is not None:
        from torchpin.rewrite.commands import add_options

        edit = add_options(way.part, document, lines)
        if edit is None:
            wanted = lines[0] if lines else "the index"
            if way.part.syntax == "toml" and way.part.name.startswith("environment "):  # Pixi
                wanted = f'index = "{channel_url(plan.channel)}" at each of them'
            raise RefusedError(f"no index line can be added here; by hand: {wanted}")
        return document, edit
    newline = document.newline
    if document.indexes:
        end = max(line.line_span.end for line in document.indexes)
        return document, Edit(Span(end, end), "".join(newline + line for line in lines))
    starts = [declaration.line_span.start for declaration in document.declarations]
    starts += [include.span.start for include in document.includes]
    starts += [option.span.start for option in document.options]
    at = min(starts, default=0)
    at = max(document.text.rfind("\n", 0, at), document.text.rfind("\r", 0, at)) + 1
    return document, Edit(Span(at, at), "".join(line + newline for line in lines))


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
        raise RefusedError(f"the version of {declaration.name} comes from a variable")
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
