"""``.pre-commit-config.yaml``: what ``additional_dependencies`` of Python hooks install.

pre-commit makes an environment for each hook that has some and runs ``pip install . DEPENDENCIES``
in it, so that options may stand in the list too. Source: https://pre-commit.com/#config-additional_dependencies
and ``pre_commit/languages/python.py``.
"""

from __future__ import annotations

from torchpin.documents.base import Document
from torchpin.documents.install_words import Word, read_words
from torchpin.documents.parts import HOOK, Part, file_of, part_of
from torchpin.documents.yaml_spans import Node, scan_yaml
from torchpin.patterns import regex

KIND = "pre-commit"
_PYTHON = regex(r"(?:python|py)?(3\.\d+)(?:\.\d+)?")
_OTHERS = frozenset(
    ("node", "ruby", "rust", "golang", "lua", "perl", "r", "dart", "coursier", "docker", "swift")
)


def read_precommit_config(path: str, data: bytes) -> Document:
    """Return the document of a ``.pre-commit-config.yaml``; never raises."""
    file = file_of(path, data, KIND)
    if file.problems:
        return file
    read = scan_yaml(file.text)
    file = file._replace(comments=read.comments)
    if read.problem is not None:
        return file._replace(problems=(read.problem,))
    repos = read.root.get("repos") if read.root is not None else None
    if read.root is None or repos is None:
        return file
    default = read.root.get("default_language_version", "python")
    names: dict[str, int] = {}
    parts: list[Part] = []
    for repo in repos.items:
        hooks = repo.get("hooks")
        for hook in hooks.items if hooks is not None else ():
            part = _part(file, hook, default, names)
            if part is not None:
                parts.append(part)
    return file._replace(parts=tuple(parts))


def _part(file: Document, hook: Node, default: Node | None, names: dict[str, int]) -> Part | None:
    listed = hook.get("additional_dependencies")
    language = hook.get("language")
    if listed is None or not listed.items:
        return None
    if language is not None and language.value in _OTHERS:
        return None
    found = hook.get("id")
    name = f"hook {found.value if found is not None else '?'}"
    names[name] = names.get(name, 0) + 1
    if names[name] > 1:
        name = f"{name} {names[name]}"
    words = [
        Word(one.value, one.inner, file.text[one.inner.start : one.inner.end] == one.value)
        for one in listed.scalars()
    ]
    read = read_words(words)
    part = part_of(file, read.lines, name=name, span=listed.span, syntax="yaml")
    version = hook.get("language_version") or default
    python = _PYTHON.fullmatch(version.value.strip()) if version is not None else None
    first = listed.items[0]
    block = listed.style == "block" and file.text[listed.start : listed.start + 1] == "-"
    return part._replace(
        python=python[1] if python is not None else None,
        options_at=listed.start if block and first.kind == "scalar" else None,
        command=True,
        environment=name,
        elsewhere=HOOK,
    )
