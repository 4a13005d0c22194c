"""A plan as an edit of a ``Pipfile``: pins, and where none is there a source of its channel.

pipenv takes a package from the source that its ``index`` names, and from nowhere else: so each
package of the family gets an exact pin with its label and the source as its index. A
``Pipfile.lock`` is never edited: ``pipenv lock`` makes it anew from the ``Pipfile``.
Source: https://pipenv.pypa.io/en/latest/indexes.html.
"""

from __future__ import annotations

import os
from typing import Any

from torchpin.catalog.model import FAMILY, Build
from torchpin.documents.base import Document, Edit, Span, apply_edits
from torchpin.documents.pipfile import read_pipfile
from torchpin.documents.requirement import canonical
from torchpin.documents.toml_view import View, read_toml
from torchpin.errors import RewriteError
from torchpin.judge.alike import SharedJudge
from torchpin.judge.model import FAILS
from torchpin.resolve.model import Plan
from torchpin.rewrite.draft import RefusedError
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, FileEdits, Fix
from torchpin.select.alike import select_all
from torchpin.select.channels import channel_url, index_kind
from torchpin.select.installs import install_of

LOCK = "pipenv lock"
"""What makes ``Pipfile.lock`` anew."""
_SECTIONS = {"default": "packages", "develop": "dev-packages"}
"""Sections of the lock → those of the ``Pipfile``."""


def pipfile_fix(way: Way, context: Context, plan: Plan, text: str, safety: str) -> Fix:
    """Return the fix that writes a plan into the ``Pipfile`` of a way.

    Args:
        text: the plan in words.
        safety: how far the fix can be made without asking.

    Raises:
        RefusedError: there is no edit that gives exactly this plan.
    """
    path = way.install.root.path
    locked = path.endswith(".lock")
    pipfile = _pipfile(context, path.removesuffix(".lock"))
    if pipfile is None:
        raise RefusedError("the owner of a lock writes it: change Pipfile, then run `pipenv lock`")
    assert way.part is not None
    section = way.part.name.partition(" from ")[0]
    edits = plan_edits(pipfile, _SECTIONS.get(section, section) if locked else section, plan, way)
    changed = tuple(one for one in edits if pipfile.text[slice(*one.span)] != one.text)
    new = apply_edits(pipfile.text, changed)
    if not _holds(read_pipfile(pipfile.path, pipfile.encode(new)), way, context, plan):
        raise RefusedError("no edit of Pipfile gives exactly these builds")
    command = LOCK if locked else None
    if not changed:
        if not locked:
            raise RefusedError("no edit of Pipfile gives exactly these builds")
        return Fix(DISPLAY, f"Pipfile asks for {text}: lock it", command=command)
    return Fix(safety, text, (FileEdits(pipfile, changed),), command)


def _pipfile(context: Context, path: str) -> Document | None:
    real = os.path.realpath(path)
    found = (one for one in context.documents if one.kind == "Pipfile")
    return next((one for one in found if os.path.realpath(one.path) == real), None)


def plan_edits(pipfile: Document, section: str, plan: Plan, way: Way) -> tuple[Edit, ...]:
    """Return the edits that pin the family of one section to a plan.

    Raises:
        RefusedError: the section does not name torch itself, an entry has no place for the pin, or
            the plan takes builds from several places.
    """
    builds = {package: build for _, package, build in plan.builds}
    if plan.parts or len({(one.home, one.channel) for one in builds.values()}) != 1:
        raise RefusedError("builds of several places need one Pipfile each")
    read = read_toml(pipfile.text.encode("utf-8", "surrogatepass"))
    if read.problem is not None:
        raise RefusedError("Pipfile cannot be read")
    root = View(read.data, read.spans.root, "", pipfile.text, [])
    named = {canonical(key): view for key, view in root.entries(section)}
    if "torch" not in named:
        raise RefusedError(f"[{section}] of Pipfile does not name torch itself")
    edits: list[Edit] = []
    name = ""
    if plan.home == "channel":
        private = dict(way.private)
        name, source = _source(root, plan.channel or "", pipfile, private)
        edits += source
    for package, view in named.items():
        if package in FAMILY and package in builds:
            edits += _pinned(view, builds[package], name, pipfile)
    return tuple(edits)


def _source(
    root: View, channel: str, pipfile: Document, private: dict[str, str]
) -> tuple[str, list[Edit]]:
    """Return the name of the source of a channel, and the edit that adds it where there is none."""
    taken: set[str] = set()
    last: View | None = None
    for item in root.items("source"):
        url, name = item.string("url"), item.string("name")
        if name is None or url is None:
            raise RefusedError("a source of Pipfile has no name")
        kind = index_kind(url.value, private)
        if kind.kind == "channel" and kind.channel == channel and kind.project is None:
            return name.value, []
        taken.add(name.value)
        last = item
    if last is None:
        raise RefusedError("Pipfile names no source: add those of PyPI and of the channel")
    name_text = f"pytorch-{channel}"
    while name_text in taken:
        name_text += "-torch"
    ends = [view.entry.end for _, view in last.entries()]
    at = pipfile.text.find("\n", max(ends))
    end = len(pipfile.text) if at < 0 else at + 1
    line = pipfile.newline
    lines = [
        *(["", ""] if at < 0 else [""]),
        "[[source]]",
        f'name = "{name_text}"',
        f'url = "{channel_url(channel)}"',
        "verify_ssl = true",
        "",
    ]
    return name_text, [Edit(Span(end, end), line.join(lines))]


def _pinned(view: View, build: Build, source: str, pipfile: Document) -> list[Edit]:
    """Return the edits of one entry: its exact version, and its source."""
    version = f"=={build.full_version}"
    text = pipfile.text
    if isinstance(view.value, str):
        if not view.plain or text[view.span.start - 1] not in "\"'":
            raise RefusedError("a version is written with escapes")
        if not source:
            return [Edit(view.span, version)]
        whole = Span(view.span.start - 1, view.span.end + 1)
        return [Edit(whole, f'{{version = "{version}", index = "{source}"}}')]
    given = view.string("version") if view.is_table() else None
    if given is None or not given.plain:
        raise RefusedError("an entry of Pipfile has no version to pin")
    edits = [Edit(given.span, version)]
    index = view.string("index")
    if index is not None and source:
        edits.append(Edit(index.span, source))
    elif index is not None:
        raise RefusedError("an entry of Pipfile names a source that does not hold this build")
    elif source:
        end = given.span.end + 1
        inline = text[view.entry.start : view.entry.start + 1] != "["
        between = ", " if inline else pipfile.newline
        edits.append(Edit(Span(end, end), f'{between}index = "{source}"'))
    return edits


def _holds(pipfile: Document, way: Way, context: Context, plan: Plan) -> bool:
    """True if an edited ``Pipfile`` selects the builds of the plan on each of its targets."""
    if pipfile.problems:
        return False
    verdict = SharedJudge(context.drivers)
    versions = dict(plan.versions)
    found = False
    for part in pipfile.parts:
        if not any(one.name == "torch" for one in part.document.declarations):
            continue
        install = install_of(
            part.document, _no_file, client="pip", private=dict(way.private), part=part
        )
        for chosen in select_all(install, plan.targets, context.catalog):
            for one in chosen.selections:
                if one.package not in versions or one.status == "skipped":
                    continue
                if one.build is None or one.build.version != versions[one.package]:
                    return False
                if context.declared and verdict(one.build, chosen.target).status == FAILS:
                    return False
                found = found or one.package == "torch"
    return found


def _no_file(path: str) -> Document:
    raise RewriteError("a Pipfile includes no files", path=path)


def check_pipfile_edit(before: Document, after_text: str, edits: tuple[Edit, ...]) -> None:
    """Raise unless an edit of a ``Pipfile`` leaves all but the family's pins and sources alone.

    Raises:
        RewriteError: the text is no TOML any more, or asks for something else.
    """
    if apply_edits(before.text, edits) != after_text:
        raise RewriteError("not edited: the text is not what the edits give", path=before.path)
    old = read_toml(before.text.encode("utf-8", "surrogatepass"))
    new = read_toml(after_text.encode("utf-8", "surrogatepass"))
    if new.problem is not None or _others(old.data) != _others(new.data):
        raise RewriteError("not edited: Pipfile would ask for something else", path=before.path)
    first, then = old.data.get("source", []), new.data.get("source", [])
    if then[: len(first)] != first or len(then) > len(first) + 1:
        raise RewriteError("not edited: the sources would change", path=before.path)


def _others(data: dict[str, Any]) -> dict[str, Any]:
    """Return a ``Pipfile`` without sources, and without version and index of the family."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        if key == "source":
            continue
        if isinstance(value, dict):
            value = {name: _bare(name, one) for name, one in value.items()}
        found[key] = value
    return found


def _bare(name: str, value: Any) -> Any:
    if canonical(name) not in FAMILY:
        return value
    if isinstance(value, dict):
        return {key: one for key, one in value.items() if key not in ("version", "index")}
    return {}
