"""The hook that ``torchpin init --pre-commit`` writes, or adds to what is there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchpin.cli.terminal import out
from torchpin.errors import UsageError
from torchpin.report.style import clean

if TYPE_CHECKING:
    from torchpin.documents.yaml_spans import Node

HOOKS = ".pre-commit-config.yaml"
HOOK = "torchpin-check"


def hook_lines() -> list[str]:
    """Return the hook for a project whose environment has torchpin, as an item of ``repos``.

    pre-commit passes the changed files; which of them count is torchpin's to know, not the file's.
    """
    return [
        "- repo: local",
        "  hooks:",
        f"    - id: {HOOK}",
        "      name: torchpin check",
        "      entry: torchpin check --skip-unknown",
        "      language: system",
        "      types: [text]",
    ]


def hook_text() -> str:
    """Return a whole configuration with the hook."""
    return "repos:\n" + "".join(f"  {line}\n" for line in hook_lines())


def pre_commit(folder: str) -> None:
    """Write the pre-commit configuration, or add the hook to the one that is there.

    One that cannot be added to without a doubt stays, and what to add is shown.

    Raises:
        UsageError: it cannot be read or written.
    """
    from torchpin.cli.init import write_new

    path = os.path.normpath(os.path.join(folder, HOOKS))
    shown = clean(path)
    if not os.path.lexists(path):
        write_new(path, hook_text())
        out(f"Wrote {shown}. Run: pre-commit install\n")
        return
    try:
        with open(path, "rb") as file:
            old = file.read()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", path=path) from error
    try:
        text = old.decode("utf-8")
        if has_hook(text):
            out(f"{shown} has the hook already.\n")
            return
        changed = with_hook(text)
    except UnicodeDecodeError:  # pre-commit reads UTF-8 alone: nothing of it is known
        changed = None
    if changed is None:
        out(f"{shown} is there already; add:\n\n{hook_text()}\n")
        return
    from torchpin.rewrite.apply import write_all

    write_all([(path, old, changed.encode("utf-8"))])
    out(f"Added the hook to {shown}. Run: pre-commit install\n")


def has_hook(text: str) -> bool:
    """Tell whether a configuration has the hook, from whatever repository."""
    from torchpin.documents.yaml_spans import scan_yaml

    root = scan_yaml(text.removeprefix("\ufeff")).root
    repos = root.get("repos") if root is not None else None
    for repo in repos.items if repos is not None else ():
        hooks = repo.get("hooks")
        for hook in hooks.items if hooks is not None else ():
            name = hook.get("id")
            if name is not None and name.value == HOOK:
                return True
    return False


def with_hook(text: str) -> str | None:
    """Return a configuration with the hook behind its last repository; all else stays as it is.

    None: where to add it is not sure. The result is read again: it must hold the hook, and beside
    it what was there.
    """
    from torchpin.documents.yaml_spans import scan_yaml

    read = scan_yaml(text)
    repos = read.root.get("repos") if read.root is not None else None
    if text.startswith("\ufeff") or len(read.roots) != 1 or repos is None:
        return None
    newline = "\r\n" if "\r\n" in text else "\n"
    if repos.kind == "sequence" and repos.style == "block" and repos.items:
        first = repos.items[0].start
        line = text[text.rfind("\n", 0, first) + 1 : first]
        indent = line[: len(line) - len(line.lstrip(" "))]
        at = _end(repos.items[-1])
        at = len(text) if (end := text.find("\n", at)) < 0 else end + 1
        before = "" if text[:at].endswith("\n") else newline
        added = before + "".join(f"{indent}{line}{newline}" for line in hook_lines())
        changed = text[:at] + added + text[at:]
    elif repos.kind == "sequence" and not repos.items:
        lines = newline + newline.join(f"  {line}" for line in hook_lines())
        changed = text[: repos.start].rstrip(" ") + lines + text[repos.end :]
    else:
        return None
    new = scan_yaml(changed).root
    (hook,) = _plain_of(scan_yaml(hook_text()).root)["repos"]
    if new is None or read.root is None:
        return None
    wanted = _plain_of(read.root)
    wanted["repos"] = [*wanted["repos"], hook]
    return changed if _plain_of(new) == wanted else None


def _end(node: Node) -> int:
    """Return where the last word of a value ends; a block itself ends where the next begins."""
    if node.kind == "scalar" or node.style == "flow":
        return node.end - 1 if node.style in ("|", ">") else node.end
    parts = [*node.items, *(part for entry in node.entries for part in entry)]
    return max((_end(part) for part in parts if part.start >= node.start), default=node.start)


def _plain_of(node: Node | None) -> dict[str, list[object]]:
    plain = _plain(node) if node is not None else {}
    return plain if isinstance(plain, dict) else {}


def _plain(node: Node) -> object:
    if node.kind == "scalar":
        return node.value
    if node.kind == "sequence":
        return [_plain(item) for item in node.items]
    return {str(_plain(key)): _plain(value) for key, value in node.entries}
