"""The arguments of ``pip install`` as words of a list (JSON, YAML, Python), not of a shell.

Each requirement and each option becomes a line of a requirements file, with the places of its
words, for ``parts.part_of``.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.documents.base import Span
from torchpin.documents.lines import Logical
from torchpin.documents.options import LONG, SHORT
from torchpin.documents.parts import pieces
from torchpin.named import NamedTuple

_NAMES = {
    "--index": "--extra-index-url",
    "--default-index": "--index-url",
    "--requirements": "--requirement",
    "--constraints": "--constraint",
}
"""How uv spells what pip has too."""
_VALUED = frozenset(
    (
        *("-t", "--target", "--platform", "--python-version", "--implementation", "--abi"),
        *("--root", "--prefix", "--src", "--upgrade-strategy", "--progress-bar", "--log"),
        *("--keyring-provider", "--proxy", "--retries", "--timeout", "--exists-action", "--cert"),
        *("--client-cert", "--cache-dir", "--report", "--root-user-action", "--python", "-p"),
        *("--group", "--extra", "--override", "--overrides", "--build-constraint", "--resolution"),
        *(
            "--prerelease",
            "--exclude-newer",
            "--index-strategy",
            "--link-mode",
            "--python-platform",
        ),
        *(
            "--refresh-package",
            "--reinstall-package",
            "--upgrade-package",
            "-P",
            "--config-setting",
        ),
    )
)
"""Options of the command that take the next word, and say nothing here."""


class Word(NamedTuple):
    """One argument."""

    value: str
    span: Span
    plain: bool = True
    """It stands in the text letter for letter."""


class Words(NamedTuple):
    """What the arguments say."""

    lines: tuple[Logical, ...]
    upgrade: bool
    torch_backend: str | None


def read_words(words: Sequence[Word]) -> Words:
    """Return the lines that arguments of ``pip install`` or ``uv pip install`` stand for."""
    lines: list[Logical] = []
    upgrade = False
    backend: str | None = None
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, equals, value = word.value.partition("=")
        if not word.value.startswith("-") or word.value == "-":
            lines.append(_line([_piece(word)], word.span))
            continue
        if name in ("-U", "--upgrade"):
            upgrade = True
            continue
        if name == "--torch-backend":
            if not equals and at < len(words):
                value = words[at].value
                at += 1
            backend = value
            continue
        known = _NAMES.get(name, SHORT.get(name[1:], name) if len(name) == 2 else name)
        if known not in LONG:
            glued = SHORT.get(word.value[1:2]) if word.value[:2] != "--" else None
            if glued is not None and len(word.value) > 2:
                lines.append(_line([_piece(word)], word.span))
            elif name in _VALUED and not equals:
                at += 1
            continue
        if equals:
            lines.append(_line(_named(word, name, known), word.span))
        elif LONG[known] and at < len(words):
            other = words[at]
            at += 1
            span = Span(word.span.start, other.span.end)
            head = (f"{known} ", word.span.start, word.span.end, True)
            lines.append(_line([head, _piece(other)], span))
        elif not LONG[known]:
            lines.append(_line([(known, *word.span, False)], word.span))
    return Words(tuple(lines), upgrade, backend)


def _piece(word: Word) -> tuple[str, int, int, bool]:
    return (word.value, word.span.start, word.span.end, word.plain)


def _named(word: Word, name: str, known: str) -> list[tuple[str, int, int, bool]]:
    """Return ``--index=URL`` as ``--extra-index-url=URL``, the place of the URL kept."""
    if not word.plain:
        return [(f"{known}{word.value[len(name) :]}", *word.span, False)]
    middle = word.span.start + len(name) + 1
    return [
        (f"{known}=", word.span.start, middle, True),
        (word.value[len(name) + 1 :], middle, word.span.end, True),
    ]


def _line(parts: list[tuple[str, int, int, bool]], span: Span) -> Logical:
    return pieces(parts, span)
