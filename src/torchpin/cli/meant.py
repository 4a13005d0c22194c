"""Options that people guess, and what they are called here. Loaded where an option is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchpin.cli.parser import nearest

_NAMES = {
    "--dry-run": "--diff",
    "--format": "--output-format",
    "--gpus": "--gpu",
    "--target": "--to",
    "--version": "torchpin --version",
    "--os": "--platform",
    "--arch": "--platform",
    "--strict": "--severity info",
    "--fail-on": "--severity",
    "--level": "--severity",
    "--exclude": "--per-file-ignores",
}
"""Option that others have → what it is called here, an option or a command."""
_WRITE = ("--write", "--apply", "--in-place", "--inplace", "--yes", "--force", "-i", "-w", "-y")
_WRITERS = {
    "fix": "fix writes without it; `--diff` shows what it would write",
    "check": "check writes nothing; did you mean `torchpin fix`?",
    "show": "show writes nothing; did you mean `torchpin fix`?",
    "upgrade": "upgrade writes nothing; its `--output-format json` holds the patches",
    "resolve": "did you mean `--write DIR`?",
}
"""Command → what to say to an option that asks to write."""
_SAID = {
    ("check", "--fix"): "did you mean `torchpin fix`?",
    ("upgrade", "--fix"): _WRITERS["upgrade"],
    ("resolve", "--fix"): _WRITERS["resolve"],
    ("fix", "--check"): "did you mean `--diff`, or `torchpin check`?",
}
_NEAR = 0.75
"""How like an option a word must be."""


def meant(
    command: str, words: Sequence[str], options: Sequence[str], formats: Iterable[str]
) -> str:
    """Return what to say of an unknown option, or ``""``.

    Args:
        command: without ``torchpin``.
        words: the option and what stands behind it.
        options: those that the command has.
        formats: what ``--output-format`` takes; empty if the command has no such option.
    """
    word, _, value = words[0].partition("=")
    value = value or (words[1] if len(words) > 1 else "")
    if word[2:] in formats:
        return f"did you mean `--output-format {word[2:]}`?"
    if word in ("-o", "-f", "--output", "--format") and value in formats:
        return f"did you mean `--output-format {value}`?"
    if (command, word) in _SAID:
        return _SAID[command, word]
    if word in _WRITE and command in _WRITERS:
        return _WRITERS[command]
    name = _NAMES.get(word, "")
    if name.split(" ")[0] in (*options, "torchpin"):
        return f"did you mean `{name}`?"
    if not word.startswith("--"):
        return ""
    for option in options:
        if word.startswith(f"{option}-") or (len(word) > 4 and option.startswith(f"{word}-")):
            return f"did you mean `{option}`?"
    return nearest(word, options, _NEAR)
