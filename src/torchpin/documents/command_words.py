"""What the words of a command say: a program, a requirement, a list, a version, a platform."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from torchpin.documents.atoms import Word, cut, text_of
from torchpin.documents.command_options import Parsed
from torchpin.documents.shell_words import Text
from torchpin.patterns import regex

_PYTHON_IN_WORD = regex(r"(?:cpython@?-?|python@?-?)?(\d+\.\d+t?)(?:\.\d+)?(?:-.*)?")
_GLOB = regex(r"[*?].*\.(?:whl|zip|gz)\Z|[*?].*/|/.*[*?]")
"""A pattern of file names, which the shell replaces."""
_LIST = regex(r",(?=[A-Za-z])")
"""Where one requirement of ``--with`` ends: no version begins with a letter."""


def program_of(word: Text) -> str:
    """Return the name of a program without its folder."""
    return word.value.replace("\\", "/").rsplit("/", 1)[-1]


def value_at(words: Sequence[Text], at: int) -> str:
    """Return the value of a word, empty where there is none."""
    return words[at].value if 0 <= at < len(words) else ""


def digits_of(program: str, name: str) -> str | None:
    """Return the version behind the name of a program: ``3.11`` of ``pip3.11``; else None."""
    version = program.removesuffix(".exe").removeprefix(name).lstrip("-")
    return version if "." in version else None


def module_at(words: Sequence[Text]) -> int:
    """Return the index behind the module of ``python … -m MODULE``, -1 if there is none."""
    at = 1
    while at < len(words):
        value = words[at].value
        if re.fullmatch(r"-[A-Za-z]*m", value):
            return at + 2 if at + 1 < len(words) else -1
        if value.startswith("-m") and len(value) > 2:
            return at + 1
        if not value.startswith("-") or value == "-c":
            return -1
        at += 2 if value in ("-X", "-W") else 1
    return -1


def with_requirements(parsed: Parsed) -> Parsed:
    """Return a command whose ``--with`` values are requirements, too."""
    more = [
        Text(word, option.span)
        for option in parsed.options
        if option.name in ("--with", "--from") and option.value is not None
        for word in _requirements_of(option.value)
    ]
    return parsed._replace(arguments=[*parsed.arguments, *more])


def _requirements_of(value: Word) -> Iterator[Word]:
    text = text_of(value)
    at = 0
    for match in _LIST.finditer(text):
        if text.count("[", at, match.start()) == text.count("]", at, match.start()):
            yield cut(value, at, match.start())
            at = match.end()
    yield cut(value, at)


def places(atoms: Word) -> list[tuple[str, int, int, bool]]:
    """Return the atoms of a word as ``parts.pieces`` takes them."""
    return [(atom.value, atom.start, atom.end, atom.plain) for atom in atoms]


def in_pieces(atoms: Word) -> bool:
    """True if quotes or backslashes stand inside a word: its text is not one stretch."""
    return any(one.end != other.start for one, other in pairwise(atoms))


def is_requirement(word: Text) -> bool:
    """True for a word that can be read as a requirement: no option, no bare stand-in, no glob."""
    value = word.value
    if _GLOB.search(value) is not None:
        return False
    if not word.known and value.endswith((".whl", ".zip", ".gz")):
        return False
    return bool(re.match(r"[A-Za-z0-9]", value)) and not value.startswith("${")


def split_values(value: Word, separators: str) -> list[Word]:
    """Return the values that blanks and ``separators`` part; without separators, the one value."""
    if not separators:
        return [value]
    found: list[Word] = []
    at = 0
    text = text_of(value)
    for match in re.finditer(f"[{re.escape(separators)}\\s]+", text):
        found.append(cut(value, at, match.start()))
        at = match.end()
    found.append(cut(value, at))
    return [one for one in found if one]


def is_true(word: Word | None) -> bool:
    """Return whether a variable of the environment switches something on."""
    return word is not None and text_of(word).lower() in ("1", "true", "yes", "on", "y", "t")


def python_in(text: str) -> str | None:
    """Return the version in the name of an interpreter: ``3.11``, ``cpython-3.11``,
    ``/usr/bin/python3.11``; None if there is none."""
    match = _PYTHON_IN_WORD.fullmatch(text.rsplit("/", 1)[-1])
    if match is not None:
        return match[1]
    return (
        text
        if re.fullmatch(r"[<>=!~]=?\s*\d+(\.\d+)*(\s*,\s*[<>=!~]=?\s*\d+(\.\d+)*)*", text)
        else None
    )


def platform_in(text: str) -> str | None:
    """Return the platform that a tag or triple names, in the words of the fleet; else None."""
    text = text.lower()
    machine = next(
        (
            name
            for name, words in (("x86_64", ("x86_64", "amd64")), ("aarch64", ("aarch64", "arm64")))
            if any(w in text for w in words)
        ),
        "",
    )
    if "linux" in text:
        return f"linux-{machine}" if machine else "linux-x86_64"
    if "win" in text and "darwin" not in text:
        return "windows-arm64" if machine == "aarch64" else "windows-x86_64"
    if "macos" in text or "darwin" in text:
        return "macos-x86_64" if machine == "x86_64" else "macos-arm64"
    return None
