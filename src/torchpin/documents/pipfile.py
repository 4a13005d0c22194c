"""``Pipfile`` of pipenv: packages, and the sources that they come from.

A package with ``index = "NAME"`` comes from that source alone, every other one from the first
source alone (pipenv 2022.4 and newer restrict indexes so). So packages of one section and one
source are a part with that source as its only index. Source: https://pipenv.pypa.io/en/latest/indexes.html.
"""

from __future__ import annotations

from typing import Any

from torchpin.documents.base import Document, IndexLine, Span
from torchpin.documents.lines import Logical
from torchpin.documents.parts import Part, part_of, pieces
from torchpin.documents.requirement import canonical
from torchpin.documents.toml_view import View, opened_toml, read_toml
from torchpin.named import NamedTuple

KIND = "Pipfile"
_TABLES = frozenset(("source", "requires", "scripts", "pipfile", "pipenv"))
_MARKERS = (
    *("os_name", "sys_platform", "platform_machine", "platform_python_implementation"),
    *("platform_release", "platform_system", "platform_version", "python_version"),
    *("python_full_version", "implementation_name", "implementation_version"),
)
_ELSEWHERE = frozenset(("git", "hg", "svn", "bzr", "path", "file", "url", "editable"))
PYPI = "pypi"


class Source(NamedTuple):
    """One ``[[source]]``."""

    name: str
    url: str
    line: IndexLine | None
    """None where the place is not known."""


class Asked(NamedTuple):
    """One package of a section."""

    line: Logical
    name: str
    """In its canonical form."""
    source: str
    """Name of its source, ``""`` for the first."""
    version: Span | None = None
    """Where the version stands letter for letter: there it may be edited. ``*`` allows any."""


def read_pipfile(path: str, data: bytes) -> Document:
    """Return the document of a ``Pipfile``; never raises."""
    file, root = opened_toml(path, data, KIND)
    if root is None:
        return file
    python = _python(root)
    sources = _sources(root)
    parts: list[Part] = []
    for section in _sections(root):
        asked = [
            one for key, view in root.entries(section) if (one := asked_of(key, view)) is not None
        ]
        parts += parts_of(file, section, asked, sources, "toml", python)
    return file._replace(parts=tuple(parts))


def _sections(root: View) -> list[str]:
    """Return the sections of packages: pipenv's own two first, then the user's categories."""
    others = [key for key, value in root.value.items() if isinstance(value, dict)]
    known = [key for key in ("packages", "dev-packages") if key in others]
    return known + [key for key in others if key not in known and key not in _TABLES]


def parts_of(
    file: Document,
    section: str,
    asked: list[Asked],
    sources: list[Source],
    syntax: str,
    python: str | None,
) -> list[Part]:
    """Return one part for each source that packages of a section come from, torch's first."""
    groups: dict[str, list[Asked]] = {}
    first = sources[0].name if sources else ""
    for one in asked:
        groups.setdefault(one.source or first, []).append(one)
    found: list[Part] = []
    by_name = {one.name: one for one in sources}
    main = section in ("packages", "default")
    for name, some in sorted(
        groups.items(), key=lambda group: all(one.name != "torch" for one in group[1])
    ):
        source = by_name.get(name)
        start = min(one.line.line_span.start for one in some)
        part = part_of(
            file,
            [one.line for one in some],
            name=section if name == first else f"{section} from {name}",
            span=Span(start, max(one.line.line_span.end for one in some)),
            syntax=syntax,
        )
        part = part._replace(document=editable(part.document, some))
        if source is not None and source.line is not None:
            part = part._replace(document=part.document._replace(indexes=(source.line,)))
        unknown = None
        if name != first and source is None:
            unknown = f"the source {name!r} is not declared"
        found.append(
            part._replace(
                python=python,
                command=True,
                environment="pipenv" if main else f"pipenv/{section}",
                uncertain=unknown,
            )
        )
    return found


def editable(document: Document, asked: list[Asked]) -> Document:
    """Return a document in which versions that stand in the text may be edited there, whatever
    else of their line is put together."""
    places = {one.name: one.version for one in asked if one.version is not None}
    if not places:
        return document
    return document._replace(
        declarations=tuple(
            one._replace(specifier_span=places[one.name], from_variable=False)
            if one.name in places
            else one
            for one in document.declarations
        )
    )


def _sources(root: View) -> list[Source]:
    found: list[Source] = []
    for item in root.items("source"):
        if not item.is_table():
            continue
        url, name = item.string("url"), item.string("name")
        if url is None:
            continue
        span = Span(url.span.start, url.span.end)
        line = IndexLine(
            "--index-url",
            url.value,
            url.entry,
            span,
            url.entry,
            from_variable=not url.plain or "$" in url.value,
        )
        found.append(Source(name.value if name is not None else "", url.value, line))
    return found


def _python(root: View) -> str | None:
    for key in ("python_full_version", "python_version"):
        view = root.string("requires", key)
        if view is not None and view.value.count(".") >= 1:
            version: str = view.value
            return version.strip()
    return None


def asked_of(key: str, view: View, marker: str = "") -> Asked | None:
    """Return one package, None for what comes from no index. ``marker`` is that of its table."""
    span = Span(view.entry.start, view.entry.end)
    behind = f"; {marker}" if marker else ""
    if isinstance(view.value, str):
        line = _line(key, view.key, view, behind, span)
        return Asked(line, canonical(key), "", _place(view))
    if not view.is_table() or _ELSEWHERE & set(view.value):
        return None
    version, index = view.string("version"), view.string("index")
    line = _line(key, view.key, version, _rest(view.value, marker), span)
    return Asked(line, canonical(key), index.value if index is not None else "", _place(version))


def _place(version: View | None) -> Span | None:
    if version is None or not version.plain or version.value != version.value.strip():
        return None
    return Span(version.span.start, version.span.end)


def _line(key: str, place: Span, version: View | None, rest: str, span: Span) -> Logical:
    """Return ``torch = "==2.11.0"`` as the line ``torch==2.11.0``."""
    text = version.value.strip() if version is not None else "*"
    anything = text in ("", "*")
    found: list[tuple[str, int, int, bool]] = [(key, place.start, place.end, not anything)]
    extras, _, marker = rest.partition(";")
    if extras:
        found.append((extras, place.end, place.end, False))
    if version is not None and not anything:
        plain = version.plain and version.value == text
        found.append((specifier_of(text), version.span.start, version.span.end, plain))
    if marker:
        found.append((f" ;{marker}", span.end, span.end, False))
    return pieces(found, span)


def specifier_of(text: str) -> str:
    """Return a version as PEP 440 has it: pipenv takes a bare ``2.1`` for ``==2.1``."""
    return f"=={text}" if text[:1].isdigit() else text


def _rest(table: dict[str, Any], marker: str) -> str:
    """Return the extras and, behind ``;``, the marker of a package's table."""
    extras = table.get("extras")
    names = [one for one in extras if isinstance(one, str)] if isinstance(extras, list) else []
    markers = [marker] if marker else []
    markers += [table["markers"]] if isinstance(table.get("markers"), str) else []
    markers += [f"{key} {table[key]}" for key in _MARKERS if isinstance(table.get(key), str)]
    joined = " and ".join(f"({one})" if len(markers) > 1 else one for one in markers)
    return (f"[{','.join(names)}]" if names else "") + (f"; {joined}" if joined else "")


def content_hash(text: str) -> str | None:
    """Return the digest that pipenv writes into ``_meta.hash`` of the lock of a ``Pipfile``.

    None where the text is no TOML. Source: ``plette/pipfiles.py``, ``get_hash``.
    """
    import hashlib
    import json

    read = read_toml(text.encode("utf-8", "surrogatepass"))
    if read.problem is not None:
        return None
    data = read.data
    content: dict[str, Any] = {
        "_meta": {"sources": data.get("source"), "requires": data.get("requires", {})},
        "default": data.get("packages", {}),
        "develop": data.get("dev-packages", {}),
    }
    if content["_meta"]["sources"] is None:
        return None
    for key, values in data.items():
        if key not in (*_TABLES, "packages", "dev-packages", "default", "develop"):
            content[key] = values
    try:
        written = json.dumps(content, sort_keys=True, separators=(",", ":"))
    except TypeError:  # a date
        return None
    return hashlib.sha256(written.encode("utf-8")).hexdigest()
