"""A lock or list that a tool has made from other files: does it still satisfy them?

Only what is certain is told: a requirement without a marker that no locked version satisfies, or
whose package is not there at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Declaration, Document
from torchpin.documents.header import Header, header_of, places_of
from torchpin.documents.pins import exact_version
from torchpin.documents.requirement import canonical
from torchpin.patterns import regex
from torchpin.rules.context import Context

_OTHERWISE = regex(
    r"--(?:override|no-emit-|unsafe-package|only-|package|all-packages|prune|script|no-project)"
)
"""Options with which the result need not satisfy, or hold, what the file asks for."""
_PROJECTS_OWN = ("uv", "pdm", "poetry")
"""Tools that write ``pylock.toml`` from the project beside it, with or without a header."""


def documents_of(context: Context) -> dict[str, Document]:
    """Return the documents of a run by their real paths."""
    if "by path" not in context.memo:
        context.memo["by path"] = {os.path.realpath(one.path): one for one in context.documents}
    found: dict[str, Document] = context.memo["by path"]
    return found


def sources_of(document: Document, context: Context) -> Iterator[tuple[Document, Header | None]]:
    """Yield the files of the run that a file was made from, with what its header says."""
    by_path = documents_of(context)
    header = header_of(document)
    for name in header.inputs if header is not None else ():
        assert header is not None
        places = map(os.path.realpath, places_of(document.path, header, name))
        source = next((by_path[one] for one in places if one in by_path), None)
        if source is not None and source is not document:
            yield source, header
    if header is None and document.kind == "pylock":
        maker = re.search(r"(?m)^created-by[ \t]*=[ \t]*[\"'](\w+)", document.text[:4000])
        beside = os.path.join(os.path.dirname(document.path), "pyproject.toml")
        source = by_path.get(os.path.realpath(beside))
        if source is not None and maker is not None and maker[1].lower() in _PROJECTS_OWN:
            yield source, None


def left_out(
    document: Document, source: Document, header: Header | None, context: Context
) -> Iterator[tuple[Declaration, str | None]]:
    """Yield requirements of a source that a file made from it does not satisfy, with the version
    that it holds; None: it does not hold the package."""
    if header is not None and _OTHERWISE.search(header.command) is not None:
        return
    held = versions_of(document)
    if held is None:
        return
    overridden = overrides_near((document, source), context)
    scopes = {"", *scopes_of(header)}
    for one in source.declarations:
        if one.name not in WATCHED or one.marker or one.url is not None:
            continue
        if one.scope not in scopes:
            continue
        if not one.valid or one.from_variable or one.editable or one.name in overridden:
            continue
        versions = held.get(one.name, [])
        if not versions:
            if header is not None:
                yield one, None
            continue
        if not any(satisfies(one.specifier, version) for version in versions):
            yield one, versions[-1]


def scopes_of(header: Header | None) -> Iterator[str]:
    """Yield the extras and groups that the command of a header takes besides the plain ones."""
    command = header.command if header is not None else ""
    for kind, name in re.findall(r"--(extra|group)[= ]([\w.-]+)", command):
        yield f"{kind}:{canonical(name)}"


def satisfies(specifier: str, version: str) -> bool:
    """True if a specifier admits a version, or one of the two is not understood."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except ValueError:  # or more digits than Python reads
        return True


def versions_of(document: Document) -> dict[str, list[str]] | None:
    """Return the versions of the packages that a file holds; None if not all of it is known."""
    found: dict[str, list[str]] = {}
    if document.lock is not None:
        if not document.lock.complete:
            return None
        for package in document.lock.packages:
            if not package.version:  # from a folder or a repository
                return None
            found.setdefault(package.name, []).append(package.version)
        return found
    if document.problems or document.includes:
        return None
    for one in document.declarations:
        pin = exact_version(one.specifier)
        if pin is None:
            if one.name in WATCHED:
                return None
            continue
        found.setdefault(one.name, []).append(f"{pin[0]}+{pin[1]}" if pin[1] else pin[0])
    return found


def overrides_near(documents: tuple[Document, ...], context: Context) -> frozenset[str]:
    """Return the packages that project files in the folders of some documents override."""
    by_path = documents_of(context)
    found: set[str] = set()
    for document in documents:
        for name in ("pyproject.toml", "uv.toml"):
            place = os.path.realpath(os.path.join(os.path.dirname(document.path), name))
            project = by_path.get(place)
            if project is not None:
                found.update(one.name for one in project.declarations if one.scope == "override")
    return frozenset(found)
