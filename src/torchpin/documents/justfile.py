"""Justfiles: variables, parameters with defaults, and what their recipes install.

Source: https://just.systems/man/en/. Each line of a recipe is a script of its own, unless the
recipe begins with ``#!``; a recipe is an environment of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from torchpin.documents.atoms import Atom, Source, Word, cut, span_of, text_of, unknown
from torchpin.documents.base import Document
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.parts import Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import read_script
from torchpin.patterns import regex

_ASSIGN = regex(r"(?P<export>export\s+)?(?P<name>[A-Za-z_][\w-]*)\s*:=\s*")
_RECIPE = regex(r"@?(?P<name>[A-Za-z_][\w-]*)(?P<args>[^:]*):(?!=)")
_ARG = regex(
    r"[+*]*(?P<export>\$)?(?P<name>[A-Za-z_][\w-]*)\s*=\s*"
    r"(?:\"(?P<double>[^\"\\]*)\"|'(?P<single>[^']*)'|(?P<variable>[A-Za-z_][\w-]*)(?![\w(-]))"
)
_EXPORTS = regex(r"set\s+export\s*(?::=\s*(true|false)\s*)?(?:#.*)?")
_TEXT = regex(r"\"([^\"\\]*)\"|'([^']*)'")
_DEFAULT = regex(
    r"(?:env_var_or_default|env)\(\s*(?:\"[^\"]*\"|'[^']*')\s*,\s*(?:\"([^\"\\]*)\"|'([^']*)')\s*\)"
)
_USE = regex(r"\{\{\s*([^{}]*?)\s*\}\}")
_ATTRIBUTES = regex(r"\[(.*)\]\s*")
_SYSTEMS = {
    "linux": "sys_platform == 'linux'",
    "macos": "sys_platform == 'darwin'",
    "windows": "sys_platform == 'win32'",
    "unix": "sys_platform != 'win32'",
}


def read_justfile(path: str, data: bytes) -> Document:
    """Return the document of a justfile; never raises."""
    file = file_of(path, data, "justfile")
    if INSTALLS.search(file.text) is None:
        return file
    file = file._replace(comments=notes_in(file.text))
    parts: list[Part] = []
    variables: dict[str, Word] = {}
    exported: set[str] = set()
    recipes: list[tuple[str, str, re.Match[str], int, list[tuple[int, int]]]] = []
    all_exported = False
    systems: list[str] = []
    lines = list(re.finditer(r"[^\n]*(?:\n|\Z)", file.text))
    current: list[tuple[int, int]] | None = None
    for line in lines:
        body = line[0].rstrip("\r\n")
        if not body.strip():
            continue
        if body[0] in " \t":
            if current is not None:
                current.append((line.start(), line.start() + len(body)))
            continue
        current = None
        if body.startswith("#"):
            continue
        attributes = _ATTRIBUTES.fullmatch(body)
        if attributes is not None:
            named = [one.strip() for one in attributes[1].split(",")]
            systems += [_SYSTEMS[one] for one in named if one in _SYSTEMS]
            continue
        setting_line = _EXPORTS.fullmatch(body)
        if setting_line is not None:
            all_exported = setting_line[1] != "false"
            continue
        match = _ASSIGN.match(body)
        if match is not None:
            value = _value(body, match.end(), line.start())
            at = line.start()
            variables[match["name"]] = value or (unknown(match["name"], at, at),)
            if match["export"]:
                exported.add(match["name"])
            continue
        recipe = _RECIPE.match(body)
        if recipe is not None:
            current = []
            recipes.append((recipe["name"], " or ".join(systems), recipe, line.start(), current))
            systems = []
    for name, marker, head, offset, body_lines in recipes:
        where = f"recipe {name} {marker}" if marker else f"recipe {name}"
        setting = Setting(file, prefix=f"recipe {name}, ", environment=where)
        reader = Reader(setting)
        own, given = _parameters(head, offset, variables)
        scope = {**variables, **own}
        seen = set(scope) if all_exported else exported | given
        environ = {key: value for key, value in scope.items() if key in seen}
        for word in _scripts(file.text, body_lines):
            reader.fresh()
            reader.read(read_script(Source(_interpolated(word, scope)), environ))
        parts += [one._replace(marker=marker or None) for one in reader.parts]
    return file._replace(parts=tuple(parts))


def _value(body: str, at: int, offset: int) -> Word | None:
    match = _TEXT.match(body, at) or _DEFAULT.match(body, at)
    if match is None or body[match.end() :].split("#")[0].strip():
        return None
    which = 1 if match[1] is not None else 2
    return (Atom(match[which], offset + match.start(which), offset + match.end(which), True),)


def _parameters(
    head: re.Match[str], offset: int, variables: Mapping[str, Word]
) -> tuple[dict[str, Word], set[str]]:
    """Return the defaults of a recipe's parameters, and which of these it exports (``$name``)."""
    own: dict[str, Word] = {}
    exported: set[str] = set()
    for one in _ARG.finditer(head["args"]):
        name, variable = one["name"], one["variable"]
        if variable is not None:
            value = own.get(variable) or variables.get(variable)
            start = offset + head.start("args") + one.start("variable")
            span = (start, start + len(variable))
            own[name] = (
                tuple(atom.used_at(*span, variable) for atom in value)
                if value
                else (unknown(variable, *span),)
            )
        else:
            which = "double" if one["double"] is not None else "single"
            start = offset + head.start("args") + one.start(which)
            own[name] = (Atom(one[which], start, start + len(one[which]), True),)
        if one["export"]:
            exported.add(name)
    return own, exported


def _scripts(text: str, lines: list[tuple[int, int]]) -> Iterator[Word]:
    """Yield the scripts of a recipe: one a line, or all of it where it begins with ``#!``."""
    if lines and text[lines[0][0] : lines[0][1]].lstrip().startswith("#!"):
        first = text[lines[0][0] : lines[0][1]]
        if re.search(r"\b(?:ba|da|z|k)?sh\b", first):
            yield (Atom(text[lines[0][1] : lines[-1][1]], lines[0][1], lines[-1][1], True),)
        return
    at = 0
    while at < len(lines):
        start, end = lines[at]
        while text[end - 1] == "\\" and at + 1 < len(lines):
            at += 1
            end = lines[at][1]
        lead = re.match(r"[ \t]*[@-]*[ \t]*", text[start:end])
        start += lead.end() if lead is not None else 0
        yield (Atom(text[start:end], start, end, True),)
        at += 1


def _interpolated(word: Word, scope: Mapping[str, Word]) -> Word:
    """Return a recipe line with ``{{name}}`` replaced."""
    text = text_of(word)
    found: list[Atom] = []
    at = 0
    for match in _USE.finditer(text):
        found += cut(word, at, match.start())
        span = span_of(cut(word, match.start(), match.end()))
        value = scope.get(match[1])
        if value is None:
            found.append(unknown(match[1], *span))
        else:
            found += [atom.used_at(*span, match[1]) for atom in value]
        at = match.end()
    found += cut(word, at)
    return tuple(found)
