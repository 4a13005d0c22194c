"""TP5: several files of one project, and which torch each of them pins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from torchpin.documents.base import IMAGE, Document, Span, line_starts, position
from torchpin.documents.header import Header, header_of
from torchpin.documents.kinds import CHECKS
from torchpin.documents.pins import exact_version, same_version
from torchpin.evidence import PUBLISHED
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.rules.context import Context, Way, base_name
from torchpin.rules.model import INFO, WARNING, Because, Finding, Related
from torchpin.rules.project_view import FOLLOWING, home_of, is_ci, together_with, told
from torchpin.rules.registry import Rule

_PLAIN = frozenset(
    (
        *("requirements", "requirement", "reqs", "constraints", "pyproject", "uv", "poetry"),
        *("pdm", "pylock", "lock", "txt", "in", "pip", "toml", "base", "main", "prod"),
        *("production", "pipfile", "setup", "cfg", "py", "environment", "env", "conda", "yml"),
        *("yaml", "dockerfile", "containerfile", "tox", "ini", "noxfile", "pre", "commit"),
        *("config", "makefile", "gnumakefile", "justfile", "install", "sh", "docker", "compose"),
    )
)
"""Words of file names that say nothing about what a file is for."""
_PURPOSE = regex(
    r"(?<![a-z0-9])(?:cpu|gpu|cuda\d*|cu\d{2,3}|rocm[\d.]*|xpu|mps|dev|develop|docs?|lint|build)"
    r"(?![a-z0-9])"
)
"""Words of the name of a part that say what it is for."""


class Pins(NamedTuple):
    """The exact pins of torch in one file, or in one part of it."""

    way: Way | None
    document: Document
    kind: str
    """Of the file."""
    versions: dict[str, Span]
    """With its label: ``2.9.1+cu126``; conda's ``2.4.*`` for any patch release."""

    @property
    def text(self) -> str:
        """The versions for people."""
        return " and ".join(one.removesuffix(".*") for one in self.versions)


class FilesDisagree(Rule):
    """Two files of one project pin different versions of torch.

    What it does: compares the exact pins of torch in all files that install a project: those of one
    folder (the project file, its lock, requirements files, ``Pipfile``, ``environment.yml``,
    ``setup.cfg``), and the Dockerfiles, compose files, Makefiles, scripts and CI files beside and
    below it. Files and parts whose names speak of other hardware,
    systems or purposes (``requirements-gpu.txt``, ``requirements-dev.txt``) are compared with
    their like only, and a file that pins several versions itself (a matrix of tox) with none. A
    compiled file is compared with the file that its header names. Different labels of one version
    count, too.

    Why it is bad: what was tested is not what is installed; which file counts depends on who
    installs.

    Example: ``torch==2.11.0`` in ``pyproject.toml``, ``torch==2.9.1`` in ``requirements.txt``.

    Fix: one pin; compile the one file from the other.

    Evidence: the files.
    """

    code = "TP505"
    name = "files-disagree"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield files that pin another torch than the first of their kind."""
        ways = together_with(way, context)
        if way is not ways[0]:
            return
        groups: dict[tuple[str, frozenset[str], frozenset[str]], list[Pins]] = {}
        for pins in pins_in(ways, context):
            name = pins.way.install.name if pins.way is not None and pins.way.part else None
            bound = pins.way.bound if pins.way is not None else frozenset()
            path = pins.document.path
            purpose = purpose_of(path, name or "", ci=is_ci(pins.kind))
            key = (home_of(path, pins.kind, context), purpose, bound)
            groups.setdefault(key, []).append(pins)
        done: set[tuple[str, Span]] = set()
        for finding in self.compiled(ways, context):
            done.add((finding.path, finding.span))
            yield finding
        done.update(self.told_of_locks(ways, context))
        for some in groups.values():
            known = [one for one in some if one.versions and not several(one, some)]
            jobs = [one for one in known if is_ci(one.kind)]
            if any(not agree(one, jobs[0]) for one in jobs):  # a matrix over several files
                known = [one for one in known if not is_ci(one.kind)]
            for finding in self.compare(known):
                if (finding.path, finding.span) not in done:
                    yield finding

    def told_of_locks(self, ways: list[Way], context: Context) -> Iterator[tuple[str, Span]]:
        """Yield the pins that TP503 compares with the ``pylock.toml`` that was made from them."""
        for lock in {id(one.install.lock): one.install.lock for one in ways}.values():
            if lock is None or lock.kind != "pylock":
                continue
            from torchpin.rules.lock_inputs import left_out, sources_of

            for source, header in sources_of(lock, context):
                for asked, _ in left_out(lock, source, header, context):
                    yield source.path, asked.span

    def compare(self, known: list[Pins]) -> Iterator[Finding]:
        """Yield what differs from the first document."""
        if len(known) < 2:
            return
        base = known[0]
        for other in known[1:]:
            if other.document.path == base.document.path or agree(base, other):
                continue
            if (
                base.way is not None
                and other.way is not None
                and other.way.install.root.path == base.way.install.root.path
            ):
                continue  # one install: TP503, or a conflict of its own
            yield self.differs(base, other)

    def differs(self, base: Pins, other: Pins) -> Finding:
        """Return the finding on a second file."""
        version, span = next(iter(other.versions.items()))
        place = next(iter(base.versions.values()))
        line = position(line_starts(base.document.text), place.start).line
        return self.finding(
            other.document,
            span,
            f"torch {version.removesuffix('.*')} here, {base.text} in "
            f"{base_name(base.document.path)}",
            severity=INFO if {base.kind, other.kind} & CHECKS or overrides(base, other) else None,
            package="torch",
            because=(
                Because("both files pin it exactly", PUBLISHED, "the files"),
                *(
                    Because(text, PUBLISHED, "the files")
                    for text in (
                        told(base.document, base.text, place, base.way),
                        told(other.document, version, span, other.way),
                    )
                    if text
                ),
            ),
            related=(Related(base.document.path, line, "the other pin"),),
        )

    def compiled(self, ways: list[Way], context: Context) -> Iterator[Finding]:
        """Yield compiled files that pin another torch than the file they were made from."""
        for one in ways:
            document = one.install.root
            if document.kind != "requirements" or header_of(document) is None:
                continue
            from torchpin.rules.lock_inputs import sources_of

            for source, header in sources_of(document, context):
                if header is None:
                    continue
                base = Pins(None, source, source.kind, pins_of(source))
                other = Pins(one, document, document.kind, pins_of(document))
                if base.versions and other.versions:
                    if not agree(base, other):
                        finding = self.differs(base, other)
                        text = f"{finding.message}, which it was made from: run `{header.command}`"
                        yield finding._replace(message=text)
                    continue
                yield from self.unsatisfied(document, source, header, context)

    def unsatisfied(
        self, document: Document, source: Document, header: Header, context: Context
    ) -> Iterator[Finding]:
        """Yield what a compiled list no longer satisfies of the file that it was made from."""
        from torchpin.rules.lock_inputs import left_out

        for asked, version in left_out(document, source, header, context):
            text = "is not here"
            span = header.span
            if version is not None:
                text = f"leaves {asked.name} {version} out"
                span = next(x.span for x in document.declarations if x.name == asked.name)
            line = position(line_starts(source.text), asked.span.start).line
            yield self.finding(
                document,
                span,
                f"{asked.name}{asked.specifier} of {base_name(source.path)}, which this was made "
                f"from, {text}: run `{header.command}`",
                package=asked.name,
                because=(Because("the header names that file", PUBLISHED, "the files"),),
                related=(Related(source.path, line, "asked for here"),),
            )


def pins_in(ways: list[Way], context: Context) -> Iterator[Pins]:
    """Yield the pins of some ways: of locks, project files, lists of requirements, then all others.

    Each document comes once, and each part of a file.
    """
    found: dict[tuple[str, str], tuple[int, Pins]] = {}
    kinds, conda = _told_of(context)
    for way in ways:
        part = way.part
        if part is not None and (part.uncertain is not None or part.syntax == IMAGE):
            continue
        lock = way.install.lock
        for document in (*((lock,) if lock is not None else ()), *way.install.documents):
            rank = 0 if document.lock is not None else 1 if document.project is not None else 2
            name = way.install.name or "" if document.kind == "part" else ""
            kind = kinds.get(document.path, document.kind)
            rank = 4 if kind in CHECKS else 3 if kind in FOLLOWING else rank
            pins = Pins(way, document, kind, pins_of(document))
            found.setdefault((document.path, name), (rank, pins))
    folders = {folder_of(path) for path, _ in found} | {os.path.normpath(ways[0].project)}
    for document, folder in conda:
        if folder in folders:
            pins = Pins(None, document, document.kind, conda_pins(document))
            found.setdefault((document.path, "conda"), (3, pins))
    for _, (_, pins) in sorted(found.items(), key=lambda item: (item[1][0], item[0])):
        yield pins


def _told_of(context: Context) -> tuple[dict[str, str], list[tuple[Document, str]]]:
    """Return the kinds of the documents of a run by path, and those of conda with their folders."""
    if "kinds and conda" not in context.memo:
        context.memo["kinds and conda"] = (
            {one.path: one.kind for one in context.documents},
            [(one, folder_of(one.path)) for one in context.documents if one.conda is not None],
        )
    found: tuple[dict[str, str], list[tuple[Document, str]]] = context.memo["kinds and conda"]
    return found


def overrides(one: Pins, other: Pins) -> bool:
    """True if one file hands its version to the other as an argument, in the place of a default."""
    return any(
        os.path.realpath(path) == os.path.realpath(called.document.path)
        for caller, called in ((one, other), (other, one))
        for path, _ in caller.document.called
    )


def folder_of(path: str) -> str:
    """Return the folder of a file, ``.`` for the current one."""
    return os.path.normpath(os.path.dirname(path) or ".")


def several(pins: Pins, others: Iterable[Pins]) -> bool:
    """True if the file of some pins pins several versions itself."""
    return any(
        other.document.path == pins.document.path and other.versions and not agree(pins, other)
        for other in others
    )


def agree(one: Pins, other: Pins) -> bool:
    """True if some pin of the one allows what some pin of the other names.

    A hosted CI runner has no GPU: the label of what it installs may be another one.
    """
    if on_runner(one) or on_runner(other):
        return any(
            same(first.partition("+")[0], second.partition("+")[0])
            for first in one.versions
            for second in other.versions
        )
    return any(same(first, second) for first in one.versions for second in other.versions)


def on_runner(pins: Pins) -> bool:
    """True for what a hosted CI runner installs."""
    return pins.way is not None and pins.way.part is not None and pins.way.part.runner is not None


def same(one: str, other: str) -> bool:
    """True if two pins may mean one build: a label counts where both have one."""
    for first, second in ((one, other), (other, one)):
        if first.endswith(".*") and f"{second.partition('+')[0]}.".startswith(first[:-1]):
            return True
    (public, _, label), (other_public, _, other_label) = one.partition("+"), other.partition("+")
    return same_version(public, other_public) and (
        not label or not other_label or label == other_label
    )


def purpose_of(path: str, part: str = "", *, ci: bool = False) -> frozenset[str]:
    """Return the words of the names of a file and its part that say what it is for: ``{"gpu"}``.

    CI files (``ci``) have names of all kinds: only those words count that name hardware or the
    like.
    """
    if ci:
        return frozenset(_PURPOSE.findall(f"{base_name(path)} {part}".lower()))
    words = re.split(r"[^a-z0-9]+", base_name(path).lower())
    return (frozenset(words) - _PLAIN - {""}) | frozenset(_PURPOSE.findall(part.lower()))


def pins_of(document: Document) -> dict[str, Span]:
    """Return the versions of torch that a file pins, labels included, and where."""
    if document.lock is not None:
        return {
            package.version: package.version_span
            for package in document.lock.packages
            if package.name == "torch"
        }
    found: dict[str, Span] = {}
    for one in document.declarations:
        if one.name == "torch" and one.scope in ("", "constraint"):
            pin = exact_version(one.specifier)
            if one.from_variable and "$" in one.specifier:
                continue
            if pin is None:
                return {}  # whatever fits: no pin
            version = f"{pin[0]}+{pin[1]}" if pin[1] else pin[0]
            found.setdefault(version, one.span)
    return found


def conda_pins(document: Document) -> dict[str, Span]:
    """Return the version of torch that conda installs, where it is pinned to one release."""
    found: dict[str, Span] = {}
    for spec in document.conda.specs if document.conda is not None else ():
        if spec.name in ("pytorch", "pytorch-gpu", "pytorch-cpu"):
            version = spec.version.removeprefix("==")
            if spec.version.startswith("==") and "," not in version and version.count(".") >= 1:
                found.setdefault(version, spec.span)
    return found


RULES = (FilesDisagree,)
