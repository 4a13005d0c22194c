"""What uv 0.13.9 reads otherwise than pip in a requirements file; all of it measured.

uv takes the value of an option to the end of the physical line or to a ``#``, joins lines only
before ``--hash`` and comments, and takes a comparison in a marker that makes no sense to it for
none at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchpin.documents.base import Declaration, Document, Include, IndexLine
from torchpin.patterns import regex
from torchpin.select.channels import redact

_OPTIONS = frozenset(("--hash",))
_GLOBAL = frozenset(
    (
        "--no-binary",
        "--only-binary",
        "--pre",
        "--prefer-binary",
        "--require-hashes",
        "--trusted-host",
        "--use-feature",
    )
)
"""Global options that uv 0.13 reads or ignores; it stops at every other one."""
_SPELLINGS = regex(
    r"(?:--(?:requirement|constraint|index-url|extra-index-url|find-links|no-index)|-[rcif])"
    r"(?=[\s=]|\Z)"
)
"""How uv spells the options that it shares with pip: no abbreviations, no value stuck to ``-r``."""
_CONTINUED = regex(r"\\\r?\n|\\\Z")
_TAIL = regex(r"(?:[ \t]|\\\r?\n)+(?:--|#)")
_BREAKS = regex(r"[\v\f\x1c-\x1e\x85\u2028\u2029]")
_QUOTE = regex(r"\A[\"']")
_STUCK = regex(r"-[a-z]=")
_ONE_NAME = regex(r":all:|:none:|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSIONED = ("python_version", "python_full_version", "implementation_version")


def value_of(document: Document, start: int, value: str) -> str:
    """Return the value of an option at ``start`` as uv reads it: ``-r=a.txt`` and ``a.txt#x``."""
    if _STUCK.match(document.text, start):
        value = value.removeprefix("=")
    return value.partition("#")[0].rstrip()


def rest_of_line(document: Document, end: int) -> str:
    """Return what uv takes for a part of the value that ends at ``end``; ``""`` if nothing."""
    line = document.text[end:].partition("\n")[0]
    line = _QUOTE.sub("", line).partition("#")[0].strip()
    return "" if line == "\\" else line


def joined(document: Document, line: IndexLine) -> bool:
    """Return whether the value of an index line goes on on the next physical line, for pip only."""
    return _CONTINUED.search(document.text, *line.url_span) is not None


def unclear_places(document: Document) -> Iterator[tuple[str, int]]:
    """Yield where lines end for one client only: why nothing is known, and the offset."""
    for comment in document.comments:
        if _CONTINUED.search(document.text, *comment):
            yield "a comment goes on on the next line for pip, and not for uv", comment.start
    found = _BREAKS.search(document.text)
    if found is not None:
        yield "a line ends for pip where it does not for uv, at a control character", found.start()


def problems_of(document: Document) -> Iterator[tuple[str, int]]:
    """Yield what pip accepts and uv refuses: a message and its offset."""
    if document.encoding.lower() not in ("utf-8", "ascii", "utf-16", "utf-16-le", "utf-16-be"):
        yield f"uv reads UTF-8 only, not {document.encoding}", 0
    for declaration in document.declarations:
        yield from _of_requirement(document, declaration)
    for include in document.includes:
        yield from _of_include(document, include)
    asked = {one.line_span.start: one.span.start for one in reversed(document.declarations)}
    for line in document.indexes:
        if asked.get(line.line_span.start, line.span.start) < line.span.start:
            yield f"uv refuses {line.option} behind a requirement", line.span.start
        elif not line.misplaced:
            yield from _of_index(document, line)
    for option in document.options:
        if option.name not in _GLOBAL:
            yield f"uv refuses {option.name} in a requirements file", option.span.start
        elif option.name in ("--no-binary", "--only-binary") and option.value is not None:
            end = option.value_span.end if option.value_span else option.span.end
            if not _ONE_NAME.fullmatch(option.value) or rest_of_line(document, end):
                yield (
                    f"uv takes one name for {option.name}, to the end of the line",
                    (option.span.start),
                )


def _of_requirement(document: Document, declaration: Declaration) -> Iterator[tuple[str, int]]:
    for option in declaration.options:
        if option.name not in _OPTIONS:
            yield f"uv refuses {option.name} behind a requirement", option.span.start
    start = declaration.span.start
    if declaration.from_variable and declaration.url is None:
        yield "uv expands variables in URLs only", start
    raw = document.text[start : declaration.line_span.end]
    if "\\" in raw:
        tail = _TAIL.search(raw)
        if _CONTINUED.search(raw[: tail.start()] if tail else raw):
            yield "uv joins lines before --hash and comments only", start
    if declaration.hashes:
        rest = rest_of_line(document, declaration.hashes[-1].span.end)
        if rest and not rest.startswith("--"):
            yield "uv takes nothing behind --hash", start
    url = declaration.url_span
    if url is not None and document.text.startswith(";", url.end):
        yield "uv takes a semicolon behind a URL for a part of it", start
    marker = declaration.marker
    tail = _TAIL.search(raw)
    if not (marker or "").strip() and (raw[: tail.start()] if tail else raw).rstrip().endswith(";"):
        yield "uv refuses a semicolon without a marker", start
    elif marker is not None and "===" in marker:
        yield "uv refuses === in a marker", start


def _of_include(document: Document, include: Include) -> Iterator[tuple[str, int]]:
    start = include.span.start
    begin = document.text.rfind("\n", 0, start) + 1
    others = [line.span for line in document.indexes if line.line_span.start == begin]
    others += [
        other.span for other in document.includes if begin <= other.span.start < include.order
    ]
    if others or rest_of_line(document, include.span.end):
        yield "uv takes the rest of the line for a part of the path", start
    elif _CONTINUED.search(document.text, *include.span):
        yield "uv looks for the path on the same line", start
    yield from _spelled(document, start, include.span.end)


def _of_index(document: Document, line: IndexLine) -> Iterator[tuple[str, int]]:
    start = line.span.start
    yield from _spelled(document, start, line.span.end)
    if line.option != "--no-index":
        if not line.url or (line.url.startswith("=") and not _STUCK.match(document.text, start)):
            yield f"uv finds no URL behind {line.option}", start
        elif _CONTINUED.search(document.text, start, line.url_span.start):
            yield f"uv looks for the URL of {line.option} on the same line", start


def _spelled(document: Document, start: int, end: int) -> Iterator[tuple[str, int]]:
    if _SPELLINGS.match(document.text, start) is None:
        word = document.text[start:end].split()[0]
        yield f"uv cannot read {redact(word)}", start


# -- what uv makes of requirements


def specifier_of(text: str) -> SpecifierSet:
    """Return a specifier as uv reads it: ``===`` compares versions, not their spelling.

    Raises:
        InvalidSpecifier: it cannot be parsed.
    """
    parsed = SpecifierSet(text)
    if "===" not in text:
        return parsed
    parts = [
        f"==={_exact_text(one.version)}" if one.operator == "===" else str(one) for one in parsed
    ]
    return SpecifierSet(",".join(parts))


def _exact_text(version: str) -> str:
    """Return a version as the catalog spells it: three numbers and what follows."""
    try:
        parsed = Version(version)
    except ValueError:
        return version
    if parsed.is_prerelease or parsed.is_postrelease or parsed.epoch:
        return str(parsed)
    numbers = [*parsed.release]
    while len(numbers) > 3 and not numbers[-1]:
        numbers.pop()
    numbers += [0] * (3 - len(numbers))
    local = f"+{parsed.local}" if parsed.local else ""
    return ".".join(map(str, numbers)) + local


def marker_is_unclear(marker: str | None) -> bool:
    """Return whether uv makes something else of a marker than the specification says.

    It warns of and leaves out a comparison of two values or two variables, of ``extra`` with what
    is no name, of a Python with what is no plain version, and an order of texts.
    """
    if marker is None or _PLAIN.fullmatch(marker) is not None:
        return False
    if "\\" in marker:
        return True
    from packaging.markers import Marker

    try:
        parsed = Marker(marker)
    except (ValueError, RecursionError):
        return False
    return any(_odd(*term) for term in _terms(parsed._markers))


_PLAIN = regex(
    r"\s*(?:sys_platform|platform_system|platform_machine|os_name|python_version)"
    r"\s*(?:==|!=)\s*(?:\"[A-Za-z][\w]*\"|'[A-Za-z][\w]*')\s*"
    r"|\s*python_version\s*(?:<|>=|<=|>|==|!=)\s*(?:\"3\.\d+\"|'3\.\d+')\s*"
)


def _terms(markers: Any) -> Iterator[tuple[Any, str, Any]]:
    for one in markers:
        if isinstance(one, tuple):
            yield one[0], one[1].value, one[2]
        elif isinstance(one, list):
            yield from _terms(one)


def _odd(left: Any, operator: str, right: Any) -> bool:
    """Return whether uv reads one comparison otherwise."""
    first, second = type(left).__name__ == "Variable", type(right).__name__ == "Variable"
    if first == second:
        return True
    variable, value = (left, right) if first else (right, left)
    name, text = str(variable.value), str(value.value)
    if name in _VERSIONED:
        return not _plain_versions(text, operator, second)
    if name == "extra":
        return operator not in ("==", "!=") or not _ONE_NAME.fullmatch(text) or text[0] == ":"
    return operator not in ("==", "!=", "in", "not in")


def _plain_versions(text: str, operator: str, reversed_: bool) -> bool:
    words = text.split() if operator in ("in", "not in") else [text]
    if reversed_ and operator in ("in", "not in"):
        return False
    for word in words:
        body = word.removesuffix(".*") if operator in ("==", "!=") and not reversed_ else word
        try:
            version = Version(body)
        except ValueError:
            return False
        if version.is_prerelease or version.is_postrelease or version.local or version.epoch:
            return False
    return bool(words)
