"""What a pin resolves to, and where that runs: the text under the pointer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from torchpin.catalog.model import Build
from torchpin.documents.base import Document, Span
from torchpin.judge.model import BADNESS, FAILS, PARTLY, RUNS, RUNS_VIA_PTX, UNKNOWN, Verdict
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.report.style import clean
from torchpin.rules.context import Judged, JudgedSet, Way, index_text
from torchpin.server.analysis import Analysis

MARKS = {RUNS: "✓", RUNS_VIA_PTX: "✓", UNKNOWN: "?", PARTLY: "!", FAILS: "✗"}
WORDS = {
    RUNS: "runs",
    RUNS_VIA_PTX: "runs, compiled from PTX at the first use",
    UNKNOWN: "not known",
    PARTLY: "runs in part",
    FAILS: "does not run",
}
_MOST = 8
"""Grounds that are told of one group."""
_MARKUP = regex(r"[\\`*<\[\]]")


class Shown(NamedTuple):
    """One answer: what is installed somewhere, and whether it runs there."""

    judged: Judged
    beside: JudgedSet
    install: str | None
    """The extra, group or part of the file."""


class Text(NamedTuple):
    """What is shown, and of which words of the document."""

    markdown: str
    span: Span


def hover(analysis: Analysis, path: str, offset: int) -> Text | None:
    """Return what is to be said of the pin at ``offset`` of a file; None where there is none."""
    if analysis.context is None:
        return None
    span: Span | None = None
    found: list[Shown] = []
    for way in analysis.context.ways:
        for judged_set in way.sets:
            for judged in judged_set.judged:
                here = _place(way, judged, path, offset)
                if here is not None:
                    span = here
                    found.append(Shown(judged, judged_set, _name(way)))
    if span is None or all(one.judged.selection.status == "skipped" for one in found):
        return None
    return Text(text_of(found, declared=analysis.context.declared), span)


def _name(way: Way) -> str | None:
    return way.part.name if way.part is not None else way.install.name


def _place(way: Way, judged: Judged, path: str, offset: int) -> Span | None:
    """Return the span that asks for a package, if it is at ``offset`` of the file."""
    selection = judged.selection
    placed = selection.placed
    if placed is not None and _is(placed.document, path):
        declaration = placed.declaration
        if declaration.span.start <= offset <= declaration.span.end:
            return declaration.span
    lock = way.install.lock
    if lock is not None and lock.lock is not None and _is(lock, path) and judged.build is not None:
        for package in lock.lock.packages:
            if (
                package.name == selection.package
                and package.version.partition("+")[0] == judged.build.version
                and package.span.start <= offset <= package.span.end
            ):
                return package.version_span
    return None


def _is(document: Document, path: str) -> bool:
    return document.path == path or os.path.realpath(document.path) == os.path.realpath(path)


def text_of(found: list[Shown], *, declared: bool) -> str:
    """Return the Markdown on one pin."""
    lines: list[str] = []
    for what, some in _grouped(found, _what):
        lines += ["", f"**{escaped(what)}**"]
        where = index_text(some[0].judged.selection.chosen_from)
        if some[0].judged.selection.status == "selected":
            lines[-1] += f" from {escaped(where)}"
        known = _known(some[0].judged.build)
        if known:
            lines += ["", known]
        lines.append("")
        if declared:
            for group, here in _grouped(some, _group):
                lines += _verdict_lines(group, here)
        else:
            platforms = ", ".join(group for group, _ in _grouped(some, _platform))
            lines.append(f"- on {platforms}")
        lines += _beside_lines(some)
    if not declared:
        lines += ["", "No fleet is declared: hardware is not judged."]
    return "\n".join(lines).strip() + "\n"


def escaped(text: str) -> str:
    """Return a text on one line, without secrets, that marks nothing up; few editors show what a
    mark is escaped by."""
    return _MARKUP.sub(r"\\\g<0>", clean(text))


def _grouped(found: Iterable[Shown], key: Callable[[Shown], str]) -> list[tuple[str, list[Shown]]]:
    out: dict[str, list[Shown]] = {}
    for one in found:
        if one.judged.selection.status != "skipped":
            out.setdefault(key(one), []).append(one)
    return list(out.items())


def _what(one: Shown) -> str:
    selection = one.judged.selection
    if selection.build is not None:
        return selection.build.title
    if selection.miss is not None:
        return f"{selection.package}: {selection.miss.message} [{selection.miss.evidence}]"
    return f"{selection.package}: {selection.because}"


def _group(one: Shown) -> str:
    name = one.judged.selection.target.group.name
    return f"{name} ({one.install})" if one.install else name


def _platform(one: Shown) -> str:
    return one.judged.selection.target.group.platform


def _known(build: Build | None) -> str:
    """Return what is known of a build without a fleet: its CUDA and its kernels."""
    if build is None:
        return ""
    words = [f"CUDA {build.cuda}"] if build.cuda else []
    if build.kernels is not None:
        kernels = build.kernels
        names = [f"sm_{one}" for one in kernels.sass] + [f"PTX {one}" for one in kernels.ptx]
        names += kernels.gfx
        words.append(f"kernels for {', '.join(names)} [{kernels.evidence}]")
    words.append(f"exists [{build.evidence}]")
    return " · ".join(words)


def _verdict_lines(group: str, found: list[Shown]) -> Iterator[str]:
    """Yield what holds on one node group: its GPUs, the verdict, and why."""
    target = found[0].judged.selection.target
    pythons = dict.fromkeys(
        str(one.judged.selection.target.python)
        for one in found
        if one.judged.selection.target.python is not None
    )
    gpus = dict.fromkeys(gpu.name for gpu in target.group.gpus)
    about = ", ".join([*gpus] or ["no GPU"])
    if pythons:
        about += f"; Python {', '.join(pythons)}"
    verdicts = [one.judged.verdict for one in found if one.judged.verdict is not None]
    if not verdicts or found[0].judged.selection.build is None:
        yield f"- ✗ **{escaped(group)}** ({escaped(about)}): nothing can be installed"
        return
    worst = max(verdicts, key=lambda one: BADNESS.index(one.status))
    yield (
        f"- {MARKS[worst.status]} **{escaped(group)}** ({escaped(about)}): {WORDS[worst.status]}"
    )
    for words in _grounds(worst):
        yield f"    - {words}"


def _grounds(verdict: Verdict) -> list[str]:
    told = dict.fromkeys(
        f"{escaped(one.text)} [{one.evidence}]"
        for one in sorted(verdict.reasons, key=lambda one: -BADNESS.index(one.status))
    )
    return list(told)[:_MOST]


def _beside_lines(found: list[Shown]) -> Iterator[str]:
    """Yield what else of the family is installed with a pin, and whether it fits torch."""
    told: dict[str, None] = {}
    for one in found:
        for other in one.beside.judged:
            selection = other.selection
            if other is one.judged or selection.status not in ("selected", "none"):
                continue
            if selection.build is not None:
                mark = "✗ " if other.fails else ""
                told[f"{mark}{selection.build.title}"] = None
            elif selection.miss is not None:
                told[f"✗ {selection.package}: {selection.miss.message}"] = None
        told.update(
            (f"{MARKS[reason.status]} {reason.text} [{reason.evidence}]", None)
            for reason in one.judged.beside_torch
        )
    if told:
        yield ""
        yield "With it:"
        yield from (f"- {escaped(words)}" for words in told)
