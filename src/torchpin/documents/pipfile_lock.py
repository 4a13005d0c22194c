"""``Pipfile.lock`` of pipenv: exact versions with their digests, and the source of each.

``pipenv sync`` hands them to ``pip install --no-deps --require-hashes``, each with its source as
the index. So the packages of one section and one source are a part; they are judged and never
edited: ``pipenv lock`` makes the file anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from torchpin.documents.base import Document, IndexLine, Problem, Span
from torchpin.documents.parts import Part, file_of, pieces
from torchpin.documents.pipfile import Asked, Source, parts_of
from torchpin.documents.requirement import canonical
from torchpin.named import NamedTuple
from torchpin.patterns import regex

KIND = "Pipfile.lock"
_BLANK = regex(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_PLAIN = regex(r"[A-Za-z0-9._+!*=<>~, -]+")


class Member(NamedTuple):
    """One member of a JSON object."""

    key: str
    key_span: Span
    """Inside of the quotes."""
    value: Any
    start: int
    end: int


def read_pipfile_lock(path: str, data: bytes) -> Document:
    """Return the document of a ``Pipfile.lock``; never raises. Text that is no JSON gives a problem
    of the code ``json``."""
    file = file_of(path, data, KIND)
    if file.problems:
        return file
    text = file.text
    try:
        whole = json.loads(text)
        top = {one.key: one for one in members(text, _gap(text, 0))}
    except (ValueError, RecursionError) as error:
        at = min(getattr(error, "pos", 0), len(text))
        problem = Problem("is not valid JSON", Span(at, at), "json")
        return file._replace(problems=(problem,))
    if not isinstance(whole, dict):
        return file
    meta = top.get("_meta")
    sources = _sources(text, meta) if meta is not None else []
    python = _python(meta.value) if meta is not None else None
    parts: list[Part] = []
    for key, section in top.items():
        if key == "_meta" or not isinstance(section.value, dict):
            continue
        asked = [
            _asked(text, one)
            for one in members(text, section.start)
            if isinstance(one.value, dict) and isinstance(one.value.get("version"), str)
        ]
        parts += parts_of(file, key, asked, sources, "json", python)
    return file._replace(parts=tuple(parts))


def members(text: str, start: int) -> Iterator[Member]:
    """Yield the members of the JSON object at ``start``, with their places.

    Raises:
        ValueError: there is no object.
    """
    if text[start : start + 1] != "{":
        raise ValueError("no object")
    at = _gap(text, start + 1)
    while text[at : at + 1] == '"':
        key, end = _DECODER.raw_decode(text, at)
        value_at = _gap(text, _gap(text, end) + 1)
        value, value_end = _DECODER.raw_decode(text, value_at)
        yield Member(str(key), Span(at + 1, end - 1), value, value_at, value_end)
        at = _gap(text, value_end)
        if text[at : at + 1] != ",":
            return
        at = _gap(text, at + 1)


def _gap(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found is not None else at


def _sources(text: str, meta: Member) -> list[Source]:
    listed = meta.value.get("sources") if isinstance(meta.value, dict) else None
    found: list[Source] = []
    at = meta.start
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict) or not isinstance(one.get("url"), str):
            continue
        url = one["url"]
        place = text.find(json.dumps(url), at, meta.end)
        name = one["name"] if isinstance(one.get("name"), str) else ""
        if place < 0:
            place, span = meta.start, Span(meta.start, meta.start)
        else:
            span = Span(place + 1, place + 1 + len(json.dumps(url)) - 2)
            at = span.end
        line = IndexLine("--index-url", url, span, span, span, from_variable=True)
        found.append(Source(name, url, line))
    return found


def _python(meta: Any) -> str | None:
    requires = meta.get("requires") if isinstance(meta, dict) else None
    for key in ("python_full_version", "python_version"):
        value = requires.get(key) if isinstance(requires, dict) else None
        if isinstance(value, str) and "." in value:
            return value
    return None


def _asked(text: str, member: Member) -> Asked:
    table = member.value
    version: str = table["version"]
    place = member.key_span
    for one in members(text, member.start):
        if one.key == "version":
            place = Span(one.start + 1, one.end - 1)
    marker = table.get("markers")
    extras = table.get("extras")
    names = [one for one in extras if isinstance(one, str)] if isinstance(extras, list) else []
    line: list[tuple[str, int, int, bool]] = [(member.key, place.start, place.start, False)]
    if names:
        line.append((f"[{','.join(names)}]", place.start, place.start, False))
    if _PLAIN.fullmatch(version):
        line.append((version, place.start, place.end, False))
    if isinstance(marker, str):
        line.append((f" ; {marker}", place.end, place.end, False))
    hashes = table.get("hashes")
    for digest in hashes if isinstance(hashes, list) else ():
        if isinstance(digest, str) and re.fullmatch(r"[a-z0-9]+:[0-9a-f]+", digest):
            line.append((f" --hash={digest}", place.end, place.end, False))
    index = table.get("index")
    return Asked(
        pieces(line, place),
        canonical(member.key),
        index if isinstance(index, str) else "",
    )


def digest_of(text: str) -> tuple[str, Span] | None:
    """Return ``_meta.hash.sha256`` of a lock and where it stands; None if it has none."""
    found = re.search(r'"hash"\s*:\s*\{\s*"sha256"\s*:\s*"([0-9a-f]{64})"', text)
    return (found[1], Span(*found.span(1))) if found is not None else None
