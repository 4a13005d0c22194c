"""``tox.ini``, and ``[tox:tox]``-style sections of it: what each environment installs.

Each environment of the list is worked out as tox does it: its own section, else ``[testenv]``, and
of the lines of ``deps`` those whose condition holds. Environments that ask for the same lines are
one part. Source: https://tox.wiki/en/latest/config.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.documents.base import Document, IndexLine, Span
from torchpin.documents.ini_text import Ini, Line, Option, Section, scan_ini
from torchpin.documents.lines import Logical, comment_start
from torchpin.documents.parts import Part, file_of, part_of, pieces
from torchpin.documents.tox_names import (
    MOST,
    condition_of,
    expand,
    factors_of,
    holds,
    joined_name,
    marker_of,
    python_of,
    range_of,
)
from torchpin.named import NamedTuple
from torchpin.patterns import regex

if TYPE_CHECKING:
    from torchpin.documents.toml_view import View

KIND = "tox.ini"
BASE = "testenv"
_REFERENCE = regex(r"\{\[([^\]{}]+)\]([\w-]+)\}")
_SUBSTITUTION = regex(r"\{[^{}]*\}")
_FOLDERS = ("{toxinidir}", "{tox_root}", "{changedir}")
VARIABLES = {
    "PIP_INDEX_URL": "--index-url",
    "PIP_EXTRA_INDEX_URL": "--extra-index-url",
    "PIP_FIND_LINKS": "--find-links",
}
UV_VARIABLES = {
    "UV_INDEX_URL": "--index-url",
    "UV_DEFAULT_INDEX": "--index-url",
    "UV_EXTRA_INDEX_URL": "--extra-index-url",
    "UV_INDEX": "--extra-index-url",
    "UV_FIND_LINKS": "--find-links",
}
_OPTION = regex(
    r"(?P<name>--index-url|-i|--extra-index-url|--find-links|-f)[= ]\s*(?P<url>[^\s{}]+)"
)
_LONG = {"-i": "--index-url", "-f": "--find-links"}


class Given(NamedTuple):
    """What applies to one environment."""

    lines: tuple[Line, ...]
    indexes: tuple[IndexLine, ...]
    uncertain: str | None
    at: Option | None
    """The option that holds the lines."""
    marker: str | None = None
    """On which systems it installs."""


def read_tox_ini(path: str, data: bytes) -> Document:
    """Return the document of a ``tox.ini``; never raises."""
    file = file_of(path, data, KIND)
    if file.problems:
        return file
    ini = scan_ini(file.text)
    file = file._replace(comments=ini.comments)
    return file._replace(parts=tox_parts(file, ini))


def in_toml(file: Document, legacy: View) -> tuple[Part, ...]:
    """Return the parts of a ``tox.ini`` that stands in a string of a ``pyproject.toml``.

    Nothing is said of a text with escapes: the places inside are not known.
    """
    if not legacy.plain:
        return ()
    start, end = legacy.span
    blank = re.sub(r"[^\r\n]", " ", file.text[:start])
    return tox_parts(file, scan_ini(blank + file.text[start:end]))


def tox_parts(file: Document, ini: Ini) -> tuple[Part, ...]:
    """Return one part for each set of lines that environments of a tox file install."""
    groups: dict[tuple[object, ...], list[tuple[str, Given]]] = {}
    for name in environments(ini):
        given = given_to(ini, name)
        if given.lines:
            groups.setdefault((given.lines, given.indexes, given.marker), []).append((name, given))
    client = "uv" if _runs_uv(ini) else "pip"
    parts = []
    for some in groups.values():
        given = some[0][1]
        names = [name for name, _ in some]
        pythons = tuple(dict.fromkeys(_python(ini, name) for name in names))
        option = given.at
        part = part_of(
            file,
            [_logical(file.text, line) for line in given.lines],
            name=joined_name(names, "tox "),
            span=option.span if option is not None else Span(0, 0),
            syntax="ini",
            client=client,
        )
        document = part.document
        if given.indexes:
            document = document._replace(indexes=(*given.indexes, *document.indexes))
        parts.append(
            part._replace(
                document=document,
                options_at=_options_at(file.text, option),
                python=range_of(pythons),
                pythons=pythons if any(pythons) else (),
                uncertain=given.uncertain,
                environment=names[0],
                marker=given.marker,
            )
        )
    return tuple(parts)


def environments(ini: Ini) -> list[str]:
    """Return the names of a file's environments: of the list, of sections, and of conditions."""
    core = ini.section("tox") or ini.section("tox:tox")
    option = (core.get("env_list") or core.get("envlist")) if core is not None else None
    listed = expand(option.value) if option is not None else []
    for section in ini.sections:
        if section.name.startswith(f"{BASE}:"):
            listed += expand(section.name[len(BASE) + 1 :])
    base = ini.section(BASE)
    deps = base.get("deps") if base is not None else None
    for line in deps.lines if deps is not None else ():
        condition, _ = condition_of(line.text)
        if condition and not any(holds(condition, name) for name in listed):
            listed += factors_of(condition)
    return list(dict.fromkeys(listed))[:MOST] or ([BASE] if base is not None else [])


def section_of(ini: Ini, name: str) -> list[Section]:
    """Return the sections that speak of an environment, the nearest first."""
    own = [
        section
        for section in ini.sections
        if section.name.startswith(f"{BASE}:") and name in expand(section.name[len(BASE) + 1 :])
    ]
    base = ini.section(BASE)
    return [*own, *([base] if base is not None else [])]


def _option(ini: Ini, name: str, *keys: str) -> Option | None:
    for section in section_of(ini, name):
        for key in keys:
            found = section.get(key)
            if found is not None:
                return found
    return None


def given_to(ini: Ini, name: str) -> Given:
    """Return what one environment installs."""
    deps = _option(ini, name, "deps")
    uncertain: list[str] = []
    lines = _lines(ini, deps, name, uncertain, ()) if deps is not None else []
    indexes: list[IndexLine] = []
    for key in ("set_env", "setenv"):
        variables = _option(ini, name, key)
        if variables is not None:
            indexes += _from_variables(variables, name)
    command = _option(ini, name, "install_command")
    if command is not None:
        indexes += _from_command(command)
    reason = uncertain[0] if uncertain else None
    systems = _option(ini, name, "platform")
    chosen = [
        line.text[at:]
        for line in (systems.lines if systems is not None else ())
        for condition, at in [condition_of(line.text)]
        if not condition or holds(condition, name)
    ]
    return Given(tuple(lines), tuple(indexes), reason, deps, marker_of("".join(chosen)))


def _lines(
    ini: Ini, option: Option, name: str, uncertain: list[str], seen: tuple[str, ...]
) -> list[Line]:
    found: list[Line] = []
    for line in option.lines:
        text, start = line.text, line.start
        condition, at = condition_of(text)
        if condition:
            if not holds(condition, name):
                continue
            text, start = text[at:], start + at
        cut = comment_start(text)
        text = (text[:cut] if cut >= 0 else text).rstrip()
        reference = _REFERENCE.fullmatch(text)
        if reference is not None:
            section = ini.section(reference[1])
            other = section.get(reference[2].lower()) if section is not None else None
            key = f"{reference[1]} {reference[2]}"
            if other is not None and key not in seen:
                found += _lines(ini, other, name, uncertain, (*seen, key))
            continue
        inside = text
        for folder in _FOLDERS:
            inside = inside.replace(folder, "")
        if _SUBSTITUTION.search(inside) is not None:
            if inside.startswith("{") or "torch" in inside:
                uncertain.append(f"{text[:60]!r} holds a value that tox fills in")
            continue
        if text:
            found.append(Line(text, start))
    return found


def _logical(text: str, line: Line) -> Logical:
    """Return a line of ``deps``; what tox puts in for the folder of the file is left out."""
    parts: list[tuple[str, int, int, bool]] = []
    at = 0
    pattern = re.compile("(?:" + "|".join(map(re.escape, _FOLDERS)) + r")[/\\]?")
    for match in pattern.finditer(line.text):
        parts.append((line.text[at : match.start()], line.start + at, line.start, True))
        at = match.end()
    parts.append((line.text[at:], line.start + at, line.span.end, True))
    return pieces(parts, line.span)


def _from_variables(option: Option, name: str) -> Iterable[IndexLine]:
    """Yield the indexes that ``setenv`` gives to pip or uv."""
    for line in option.lines:
        text, start = line.text, line.start
        condition, at = condition_of(text)
        if condition:
            if not holds(condition, name):
                continue
            text, start = text[at:], start + at
        key, equals, value = text.partition("=")
        known = VARIABLES.get(key.strip()) or UV_VARIABLES.get(key.strip())
        if known is None or not equals:
            continue
        at = start + len(key) + 1
        for match in re.finditer(r"\S+", value):
            url = Span(at + match.start(), at + match.end())
            yield IndexLine(known, match[0], url, url, line.span, from_variable="{" in match[0])


def _from_command(option: Option) -> Iterable[IndexLine]:
    """Yield the indexes of ``install_command``."""
    for line in option.lines:
        for match in _OPTION.finditer(line.text):
            name = _LONG.get(match["name"], match["name"])
            span = Span(line.start + match.start(), line.start + match.end())
            url = Span(line.start + match.start("url"), line.start + match.end("url"))
            yield IndexLine(name, match["url"], span, url, line.span)


def _runs_uv(ini: Ini) -> bool:
    """Tell whether uv installs: by ``requires = tox-uv``, a ``runner`` or the install command."""
    core = ini.section("tox") or ini.section("tox:tox")
    requires = core.get("requires") if core is not None else None
    base = ini.section(BASE)
    runner = base.get("runner") if base is not None else None
    command = base.get("install_command") if base is not None else None
    return (
        (requires is not None and "tox-uv" in requires.value)
        or (runner is not None and runner.value.startswith("uv"))
        or (command is not None and command.value.split()[:1] == ["uv"])
    )


def _python(ini: Ini, name: str) -> str:
    """Return the Python of an environment, ``""`` if it takes any."""
    version = python_of(name)
    if version is None:
        option = _option(ini, name, "base_python", "basepython")
        version = python_of(option.value.strip()) if option is not None else None
    return version or ""


def _options_at(text: str, option: Option | None) -> int | None:
    """Return where a line of options may be inserted: before the first line of ``deps``."""
    if option is None or option.inline or not option.lines:
        return None
    first = option.lines[0]
    condition, _ = condition_of(first.text)
    if condition or text[: first.start].rpartition("\n")[2].strip():
        return None
    return first.start
