"""What a fix changes, as a unified diff that ``git apply`` reads."""

from __future__ import annotations

from torchpin.report.style import Style, redact

_COLOR = {"+": "good", "-": "bad", "@": "blue"}


def render(path: str, before: str, after: str, style: Style) -> str:
    """Return the diff from ``before`` to ``after``; lines keep their own line ends.

    Credentials of URLs are hidden: a patch that touches such a line does not apply.
    """
    from difflib import unified_diff

    name = path.replace("\\", "/").removeprefix("./")
    old, new = (name, name) if name.startswith("/") else (f"a/{name}", f"b/{name}")
    old, new = quoted(old), quoted(new)
    out: list[str] = []
    for line in unified_diff(_lines(before), _lines(after), old, new):
        text = redact(line)
        if not text.endswith("\n"):
            text += "\n\\ No newline at end of file\n"
        word = "bold" if line.startswith(("---", "+++")) else _COLOR.get(line[0], "")
        out.append(style.paint(word, text.rstrip("\n")) + "\n" if word and style.color else text)
    return "".join(out)


def quoted(name: str) -> str:
    """Return a path as git writes it in a patch: in quotes where it holds what could be taken for
    another line, or moves a terminal's cursor."""
    if name.isprintable() and '"' not in name:
        return name
    out = []
    for byte in name.encode("utf-8", "surrogateescape"):
        char = chr(byte)
        plain = 0x20 <= byte < 0x7F and char not in '"\\'
        out.append(char if plain else f"\\{char}" if char in '"\\' else f"\\{byte:03o}")
    return f'"{"".join(out)}"'


def _lines(text: str) -> list[str]:
    """Return ``text`` cut behind each LF (not at form feeds, as ``str.splitlines`` does)."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
