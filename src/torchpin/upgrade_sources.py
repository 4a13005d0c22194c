"""What a torch release refuses in Python code: the rules on sources, on every file.

Part of floor 5, beside ``torchpin.upgrade``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from torchpin.documents.base import Document, line_starts, position
from torchpin.engine import Options, Reader, Stages
from torchpin.errors import TorchpinError
from torchpin.report.upgrade_model import Break
from torchpin.rules.ignores import suppressed
from torchpin.rules.model import INFO


def code_breaks(stages: Stages, options: Options, version: str, reader: Reader) -> Iterator[Break]:
    """Yield the calls that a release refuses or warns of, whatever the settings say of sources."""
    from packaging.version import Version

    from torchpin.rules.sources import RULES, SINCE

    if Version(version) < Version(SINCE):
        return
    per_file = (*options.per_file_ignores, *stages.context.fleet.settings.per_file_ignores)
    for document in python_documents(stages, options, reader):
        for rule in (kind() for kind in RULES):
            uses = rule.uses(document)
            for one in rule.told(document, uses, (version, True)) if uses else ():
                if suppressed(one, per_file):
                    continue
                yield Break(
                    "source",
                    one.message,
                    path=one.path,
                    line=line_of(document, one.span.start),
                    remedy="" if one.severity == INFO else rule.remedy,
                    because=one.because,
                    code=one.code,
                )


def python_documents(stages: Stages, options: Options, reader: Reader) -> Iterator[Document]:
    """Yield the Python files among the paths and below them."""
    seen: set[str] = set()
    for document in stages.documents:
        seen.add(os.path.realpath(document.path))
        if document.path.endswith(".py"):
            yield document
    if options.stdin is not None:
        return
    for path in below(options.paths or (".",)):
        if os.path.realpath(path) in seen:
            continue
        try:
            document = reader(path)
        except TorchpinError:  # no text
            continue
        yield document


def below(paths: Iterable[str]) -> Iterator[str]:
    """Yield the Python files among some paths and in the folders among them, but for what git
    ignores."""
    from torchpin.documents.discover import python_files
    from torchpin.documents.ignored import ignored_below

    for path in paths:
        ignored = ignored_below(path) if os.path.isdir(path) else frozenset()
        for file in python_files([path]):
            name = os.path.relpath(file, path).replace(os.sep, "/") if ignored else ""
            parts = name.split("/")
            if any("/".join(parts[: at + 1]) in ignored for at in range(len(parts))):
                continue
            yield os.path.normpath(file)


def line_of(document: Document, offset: int) -> int:
    """Return the line of an offset."""
    return position(line_starts(document.text), offset).line
