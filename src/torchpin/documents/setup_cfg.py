"""``setup.cfg`` of setuptools: the declarations of a library's metadata.

``install_requires`` and ``extras_require`` are lists with one requirement a line, or several with
``;`` between them on one line; ``file:`` names requirements files. Source:
https://setuptools.pypa.io/en/latest/userguide/declarative_config.html. The document is that of a
project without a tool of its own: pip reads no index from it, and what it publishes gets neither a
label nor a cap.
"""

from __future__ import annotations

from torchpin.documents.base import Document, Include, Span
from torchpin.documents.ini_text import Ini, Line, Option, scan_ini
from torchpin.documents.parts import file_of, verbatim
from torchpin.documents.project import Project
from torchpin.documents.requirements import read_lines

KIND = "setup.cfg"


def read_setup_cfg(path: str, data: bytes) -> Document:
    """Return the document of a ``setup.cfg``; never raises.

    Without ``[options]`` (a file with settings of linters only) it declares nothing.
    """
    file = file_of(path, data, KIND)
    if file.problems:
        return file
    ini = scan_ini(file.text)
    file = file._replace(comments=ini.comments)
    options = ini.section("options")
    extras = ini.section("options.extras_require")
    if options is None and extras is None:
        return file
    asked: list[tuple[str, Option]] = []
    for key, scope in (("install_requires", ""), ("setup_requires", "build")):
        found = options.get(key) if options is not None else None
        if found is not None:
            asked.append((scope, found))
    names = []
    for one in extras.options if extras is not None else ():
        extra = one.key.partition(":")[0].strip()
        names.append(extra)
        asked.append((f"extra:{extra}", one))
    for scope, option in asked:
        file = _declare(file, scope, option)
    declarations = tuple(sorted(file.declarations, key=lambda one: one.span))
    python = options.get("python_requires") if options is not None else None
    return file._replace(
        declarations=declarations,
        problems=(*file.problems, *ini.problems),
        project=library(
            name=_value(ini, "metadata", "name"),
            extras=tuple(dict.fromkeys(names)),
            python=python.value if python is not None else None,
            python_span=python.lines[0].span if python is not None and python.lines else None,
        ),
    )


def library(
    *, name: str, extras: tuple[str, ...], python: str | None, python_span: Span | None
) -> Project:
    """Return what a library's metadata say beyond the declarations."""
    if python is not None and not _specifier(python):
        python, python_span = None, None
    return Project(
        tool="pip",
        name=name,
        requires_python=python,
        requires_python_span=python_span,
        extras=extras,
        groups=(),
        default_groups=(),
        sources=(),
        indexes=(),
        conflicts=(),
        environments=(),
        required_environments=(),
        settings=(),
        workspace_members=(),
        workspace_exclude=(),
        tables=(),
        package=True,
        published=True,
    )


def _specifier(text: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except (InvalidSpecifier, ValueError):
        return False
    return True


def _value(ini: Ini, section: str, key: str) -> str:
    found = ini.section(section)
    option = found.get(key) if found is not None else None
    return option.value if option is not None else ""


def _declare(file: Document, scope: str, option: Option) -> Document:
    """Return the document with what one list asks for."""
    first = option.lines[0] if option.lines else None
    if first is not None and first.text.startswith("file:"):
        if scope:
            return file
        return file._replace(includes=(*file.includes, *_files(option)))
    items: list[Line] = []
    for line in option.lines:
        items += _split(line) if len(option.lines) == 1 and option.inline else [line]
    found = read_lines(verbatim(file.text, *item.span) for item in items)
    return file._replace(
        declarations=(
            *file.declarations,
            *(one._replace(scope=scope) for one in found.declarations),
        ),
        problems=(*file.problems, *found.problems),
    )


def _split(line: Line) -> list[Line]:
    """Return the items of a list on one line, which ``;`` keeps apart."""
    found, at = [], 0
    for part in line.text.split(";"):
        text = part.strip()
        if text:
            lead = len(part) - len(part.lstrip())
            found.append(Line(text, line.start + at + lead))
        at += len(part) + 1
    return found


def _files(option: Option) -> list[Include]:
    """Return the files of ``file: one.txt, two.txt``."""
    found = []
    for index, line in enumerate(option.lines):
        skip = len("file:") if index == 0 else 0
        at = line.start + skip
        for part in line.text[skip:].split(","):
            name = part.strip()
            if name:
                start = at + len(part) - len(part.lstrip())
                found.append(Include(name, False, Span(start, start + len(name)), start))
            at += len(part) + 1
    return found
