"""uv workspaces: which folders are members, and which root a file belongs to.

Indexes, conflicts and settings come from the root, sources from the member itself (a member
without a source for a package falls back to the root's). Source: uv's page on workspaces.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence

from torchpin.patterns import regex

MAX_FOLDERS = 20_000
"""Folders that ``**`` looks at before it stops."""
_MAGIC = regex(r"[*?\[]")


def members(
    patterns: Sequence[str],
    exclude: Sequence[str],
    folders: Callable[[str], Sequence[str]],
) -> tuple[str, ...]:
    """Return the folders that ``members`` names and ``exclude`` does not, sorted, with ``/``,
    relative to the root.

    ``folders(path)`` gives the names of the folders in a folder (``""``: the root); nothing is
    said about whether a project stands there.
    """
    found: set[str] = set()
    budget = [MAX_FOLDERS]
    for pattern in patterns:
        steps = [step for step in pattern.replace("\\", "/").split("/") if step not in ("", ".")]
        if len(steps) <= 40:
            _expand("", steps, folders, found, budget)
    out = [path for path in found if path and not _excluded(path, exclude)]
    return tuple(sorted(out))


def is_member(path: str, patterns: Sequence[str], exclude: Sequence[str]) -> bool:
    """Tell whether a folder (relative to the root, with ``/``) is a member by its name."""
    path = posixpath.normpath(path)
    if path in (".", "") or _excluded(path, exclude):
        return False
    return any(
        re.fullmatch(_regex(posixpath.normpath(pattern.replace("\\", "/")), "[^/]*"), path)
        for pattern in patterns
        if len(pattern) <= 1_000
    )


def _excluded(path: str, exclude: Sequence[str]) -> bool:
    # In uv's patterns of exclusion a star goes through folders as well.
    return any(
        re.fullmatch(_regex(posixpath.normpath(pattern.replace("\\", "/")), ".*"), path)
        for pattern in exclude
        if len(pattern) <= 1_000
    )


def _expand(
    at: str,
    steps: list[str],
    folders: Callable[[str], Sequence[str]],
    found: set[str],
    budget: list[int],
) -> None:
    if not steps:
        found.add(posixpath.normpath(at) if at else "")
        return
    step, rest = steps[0], steps[1:]
    if step == "**":
        _expand(at, rest, folders, found, budget)
        for name in _listed(at, folders, budget):
            _expand(posixpath.join(at, name), steps, folders, found, budget)
        return
    if _MAGIC.search(step) is None:
        _expand(posixpath.join(at, step), rest, folders, found, budget)
        return
    pattern = re.compile(_regex(step, "[^/]*"))
    for name in _listed(at, folders, budget):
        if pattern.fullmatch(name):
            _expand(posixpath.join(at, name), rest, folders, found, budget)


def _listed(at: str, folders: Callable[[str], Sequence[str]], budget: list[int]) -> Sequence[str]:
    if budget[0] <= 0 or at.count("/") > 40:
        return ()
    names = folders(at)
    budget[0] -= len(names) + 1
    return names


def _regex(pattern: str, star: str) -> str:
    """Return a shell pattern as a regular expression; ``star`` is what ``*`` stands for."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
            continue
        if pattern.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        if char == "*":
            if not out or out[-1] != star:
                out.append(star)
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = pattern[at + 1 : end]
            negated = inside[:1] == "!"
            inside = inside[negated:].replace("\\", "\\\\").replace("^", "\\^").replace("[", "\\[")
            choice = f"[{'^' if negated else ''}{inside}]"
            try:
                re.compile(choice)
            except re.error:  # [z-a]
                choice = "(?!)"
            out.append(choice)
            at = end
        else:
            out.append(re.escape(char))
        at += 1
    return "".join(out)
