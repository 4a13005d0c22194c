"""Options in requirements files: the table of pip 26.3, read as shlex and optparse read it."""

from __future__ import annotations

from torchpin.named import NamedTuple
from torchpin.patterns import regex

FLAG = False
VALUE = True

LONG = {
    "--index-url": VALUE,
    "--pypi-url": VALUE,
    "--extra-index-url": VALUE,
    "--no-index": FLAG,
    "--constraint": VALUE,
    "--requirement": VALUE,
    "--editable": VALUE,
    "--find-links": VALUE,
    "--no-binary": VALUE,
    "--only-binary": VALUE,
    "--prefer-binary": FLAG,
    "--require-hashes": FLAG,
    "--no-require-hashes": FLAG,
    "--pre": FLAG,
    "--all-releases": VALUE,
    "--only-final": VALUE,
    "--trusted-host": VALUE,
    "--use-feature": VALUE,
    "--hash": VALUE,
    "--config-settings": VALUE,
}
"""Source: ``SUPPORTED_OPTIONS`` and ``SUPPORTED_OPTIONS_REQ`` of pip's ``req_file.py``."""
SHORT = {
    "i": "--index-url",
    "c": "--constraint",
    "r": "--requirement",
    "e": "--editable",
    "f": "--find-links",
    "C": "--config-settings",
}
_ALIASES = {"--pypi-url": "--index-url"}
FORMER = {"--global-option": VALUE, "--install-option": VALUE, "--build-option": VALUE}
"""Options that older releases of pip took; pip 26 refuses a file with one."""
STRONG_HASHES = ("sha256", "sha384", "sha512")

_WORD = regex(r"[^ \t\r\n]+")
_PLAIN = regex(r"[^ \t\r\n'\"\\]+")


class Token(NamedTuple):
    """One word of the options, unquoted, with its place in the logical line."""

    value: str
    start: int
    end: int


class Option(NamedTuple):
    """One option; offsets count in the logical line. ``error`` is set where pip refuses it."""

    name: str
    value: str | None
    start: int
    end: int
    value_start: int
    value_end: int
    error: str = ""


class Options(NamedTuple):
    """The options of a line, the words that belong to none of them, and a broken quote."""

    options: list[Option]
    words: list[Token]
    error: str = ""


def split_options(text: str) -> int:
    """Return where the options of a logical line begin (its length if there are none).

    As in pip: at the first word, between spaces (not tabs), that begins with ``-``.
    """
    if text[:1] == "-":
        return 0
    at = text.find(" -")
    return at + 1 if at >= 0 else len(text)


def tokenize(text: str, start: int) -> tuple[list[Token], str]:
    """Split ``text[start:]`` as ``shlex.split`` does; a broken quote ends it with an error."""
    if "'" not in text and '"' not in text and "\\" not in text:
        return [Token(m[0], m.start(), m.end()) for m in _WORD.finditer(text, start)], ""
    tokens: list[Token] = []
    at = start
    length = len(text)
    while at < length:
        if text[at] in " \t\r\n":
            at += 1
            continue
        begin = at
        value: list[str] = []
        while at < length and text[at] not in " \t\r\n":
            char = text[at]
            if char == "\\":
                if at + 1 >= length:
                    return tokens, "a backslash without a character behind it"
                value.append(text[at + 1])
                at += 2
            elif char == "'":
                close = text.find("'", at + 1)
                if close < 0:
                    return tokens, "a quote that is not closed"
                value.append(text[at + 1 : close])
                at = close + 1
            elif char == '"':
                at += 1
                while True:
                    if at >= length:
                        return tokens, "a quote that is not closed"
                    if text[at] == '"':
                        at += 1
                        break
                    if text[at] == "\\" and text[at + 1 : at + 2] in ('"', "\\"):
                        at += 1
                    value.append(text[at])
                    at += 1
            else:
                match = _PLAIN.match(text, at)
                assert match is not None
                value.append(match[0])
                at = match.end()
        tokens.append(Token("".join(value), begin, at))
    return tokens, ""


def parse_options(text: str, start: int) -> Options:
    """Read the options in ``text[start:]`` as optparse does (abbreviations, glued short forms)."""
    tokens, broken = tokenize(text, start)
    options: list[Option] = []
    words: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        value = token.value
        if value.startswith("--hash=") and text.startswith("--hash=", token.start):
            start = token.start
            error = "" if value.startswith("--hash=sha256:") else value_error("--hash", value[7:])
            options.append(
                Option("--hash", value[7:], start, token.end, start + 7, token.end, error)
            )
        elif value == "--":
            words += tokens[at:]
            break
        elif value.startswith("--"):
            at = _long(text, tokens, at, options)
        elif value.startswith("-") and len(value) > 1:
            at = _short(text, tokens, at, options)
        else:
            words.append(token)
    return Options(options, words, broken)


def _long(text: str, tokens: list[Token], at: int, options: list[Option]) -> int:
    token = tokens[at - 1]
    written, equals, value = token.value.partition("=")
    name, takes, error = _match(written)
    if takes is FLAG or (takes is None and not equals):
        if equals and takes is FLAG:
            error = f"{name} takes no value"
        options.append(Option(name, None, token.start, token.end, token.end, token.end, error))
        return at
    if equals:
        begin, end = _inside_quotes(text, text.find("=", token.start) + 1, token.end, value)
        error = error or value_error(name, value)
        options.append(Option(name, value, token.start, token.end, begin, end, error))
        return at
    return _separate(text, tokens, at, name, error, options)


def _separate(
    text: str, tokens: list[Token], at: int, name: str, error: str, options: list[Option]
) -> int:
    """Take the next word as the value, whatever it looks like."""
    token = tokens[at - 1]
    if at >= len(tokens):
        options.append(
            Option(
                name, None, token.start, token.end, token.end, token.end, f"{name} lacks a value"
            )
        )
        return at
    following = tokens[at]
    begin, end = _inside_quotes(text, following.start, following.end, following.value)
    error = error or value_error(name, following.value)
    options.append(Option(name, following.value, token.start, following.end, begin, end, error))
    return at + 1


def _short(text: str, tokens: list[Token], at: int, options: list[Option]) -> int:
    token = tokens[at - 1]
    name = SHORT.get(token.value[1])
    if name is None:
        options.append(
            Option(
                token.value, None, token.start, token.end, token.end, token.end,
                f"pip knows no option {token.value[:2]}",
            )
        )  # fmt: skip
        return at
    if len(token.value) == 2:
        return _separate(text, tokens, at, name, "", options)
    value = token.value[2:]
    begin, end = _inside_quotes(text, token.start + 2, token.end, value)
    error = value_error(name, value)
    options.append(Option(name, value, token.start, token.end, begin, end, error))
    return at


def _match(written: str) -> tuple[str, bool | None, str]:
    """Return long name, whether it takes a value (None: not known), and an error."""
    takes = LONG.get(written)
    if takes is not None:
        return _ALIASES.get(written, written), takes, ""
    if written in FORMER:
        return written, FORMER[written], f"pip 26 no longer takes {written}"
    near = [name for name in LONG if name.startswith(written)]
    if len(near) == 1:
        return _ALIASES.get(near[0], near[0]), LONG[near[0]], ""
    if near:
        return written, None, f"{written} is ambiguous: {', '.join(sorted(near))}"
    return written, None, f"pip knows no option {written}"


def _inside_quotes(text: str, start: int, end: int, value: str) -> tuple[int, int]:
    """Return the place of the value itself where it is quoted as a whole."""
    if (
        end - start >= 2
        and text[start] in "'\""
        and text[end - 1] == text[start]
        and text[start + 1 : end - 1] == value
    ):
        return start + 1, end - 1
    return start, end


def value_error(name: str, value: str) -> str:
    """Return why pip refuses the value of an option, ``""`` if it does not."""
    if name == "--hash":
        algorithm, colon, _ = value.partition(":")
        if not colon or algorithm not in STRONG_HASHES:
            return f"pip takes --hash=ALGORITHM:DIGEST with one of {', '.join(STRONG_HASHES)}"
    if name == "--config-settings" and "=" not in value:
        return "--config-settings needs KEY=VALUE"
    return ""
