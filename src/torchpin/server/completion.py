"""Completion: versions behind an operator, labels behind ``+``, channels in an index URL.

Only what exists is offered; what runs on the whole fleet comes first, the newest before others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    CompletionItemTag,
    CompletionList,
    Position,
    Range,
    TextEdit,
)
from packaging.version import InvalidVersion, Version

from torchpin.catalog.model import WATCHED, Build
from torchpin.documents.pins import exact_version
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.rules.context import Context, Way
from torchpin.server.analysis import Analysis
from torchpin.server.fits import Fit, Fits, served
from torchpin.server.positions import Lines

TRIGGERS = ["=", "+", "/", "<", ">", "~", '"', "^"]
_NAMES = "|".join(sorted(WATCHED, key=len, reverse=True))
_PIN = regex(
    rf"(?<![\w.-])(?P<name>{_NAMES})\s*(?:\[[^\]]*\])?\s*(?:\(\s*)?"
    r"(?:(?:===?|~=|>=|<=|!=|<|>)\s*[\w.*+!-]*\s*,\s*)*"
    r"(?P<operator>===?|~=|>=|<=|!=|<|>)\s*(?P<version>[\w.!*-]*)(?:\+(?P<label>[\w.]*))?\Z"
)
"""A requirement of PEP 508 up to the cursor."""
_KEY = regex(
    rf"^\s*[\"']?(?P<name>{_NAMES})[\"']?\s*=\s*(?:\{{.*?\bversion\s*=\s*)?[\"']"
    r"(?:[^\"'+]*,\s*)?(?P<operator>===?|~=|>=|<=|!=|<|>|\^|~)?\s*"
    r"(?P<version>[\w.!*-]*)(?:\+(?P<label>[\w.]*))?\Z"
)
"""A key of Poetry, Pipfile or Pixi up to the cursor."""
_URL = regex(r"[a-z+]+://[^\s\"'<>]*/whl/(?:nightly/|test/)?(?P<channel>[\w.]*)\Z")
_REST = regex(r"[\w.]*")


class Asked(NamedTuple):
    """What is being written at the cursor."""

    what: str
    """``version``, ``label`` or ``channel``."""
    package: str
    version: str
    """The version before a label."""
    start: int
    """Offset in the line of what a choice replaces."""


def asked(before: str) -> Asked | None:
    """Return what is being written, of the text of a line up to the cursor."""
    url = _URL.search(before)
    if url is not None:
        return Asked("channel", "torch", "", url.start("channel"))
    pin = _PIN.search(before) or _KEY.search(before)
    if pin is None or _in_comment(before, pin.start("name")):
        return None
    if pin["label"] is not None:
        return Asked("label", pin["name"], pin["version"], pin.start("label"))
    return Asked("version", pin["name"], "", pin.start("version"))


def _in_comment(before: str, offset: int) -> bool:
    head = before[:offset]
    return head.lstrip().startswith("#") or " #" in head or "\t#" in head


def completion(
    analysis: Analysis, path: str, lines: Lines, place: Position, fits: Fits | None
) -> CompletionList | None:
    """Return what may be written at a position of a text; None where torchpin has nothing to say.

    ``fits`` judges on the fleet of the analysis; None: no fleet is known.
    """
    context = analysis.context
    if context is None:
        return None
    if place.line >= len(lines.starts):
        return None
    begin, end = lines.bounds(place.line)
    cursor = lines.offset(place)
    what = asked(lines.text[begin:cursor])
    if what is None:
        return None
    rest = _REST.match(lines.text[cursor:end])
    stop = cursor + (len(rest[0]) if rest else 0)
    replaced = lines.range(begin + what.start, stop)
    ways = ways_of(context, path)
    if what.what == "version":
        choices = versions(context, what.package, ways, fits)
    elif what.what == "label":
        choices = labels(context, what.package, what.version, ways, fits)
    else:
        choices = channels(context, ways, fits)
    items = [_item(one, number, replaced) for number, one in enumerate(choices)]
    return CompletionList(is_incomplete=False, items=items) if items else None


class Choice(NamedTuple):
    """One thing that may be written."""

    text: str
    detail: str
    more: str
    rank: tuple[int, ...]
    ended: bool = False
    """Yanked: shown struck through."""


def _item(choice: Choice, number: int, replaced: Range) -> CompletionItem:
    return CompletionItem(
        label=choice.text,
        kind=CompletionItemKind.Value,
        detail=choice.detail or None,
        documentation=choice.more or None,
        sort_text=f"{number:05}",
        filter_text=choice.text,
        text_edit=TextEdit(replaced, choice.text),
        tags=[CompletionItemTag.Deprecated] if choice.ended else None,
        preselect=True if number == 0 else None,
    )


def ways_of(context: Context, path: str) -> list[Way]:
    """Return the ways in that read a file."""
    real = os.path.realpath(path)
    return [way for way in context.ways if any(os.path.realpath(one) == real for one in way.paths)]


def versions(
    context: Context, package: str, ways: Sequence[Way], fits: Fits | None
) -> list[Choice]:
    """Return the published versions of a package, best first."""
    catalog = context.catalog
    torch = pinned_torch(ways) if package != "torch" else None
    partners = catalog.partners(torch, package) if torch else ()
    out: list[Choice] = []
    for number, version in enumerate(reversed(catalog.versions(package))):
        builds = catalog.find(package, version=version)
        here = served(builds, ways)
        fit = fits.of(here) if fits is not None else Fit((), ())
        notes = [f"{fit.mark} {fit.text}"] if fit.groups and here else []
        if not here:
            notes.append(f"not on these indexes; on {places(builds)}")
        elif fit.rank and fits is not None:
            other = fits.of([one for one in builds if one not in here])
            if other.rank < fit.rank and other.builds:
                names = dict.fromkeys(one.place for one in other.builds)
                notes.append(f"{', '.join(names)} {other.text}")
        if here and partners:
            beside = "fits" if version in partners else "not known to fit"
            notes.append(f"{beside} torch {torch}")
        yanked = bool(builds) and all(one.yanked for one in builds)
        if yanked:
            notes.append("yanked")
        unmatched = len(partners) if version not in partners else partners.index(version)
        alone = bool(partners) and version not in partners
        ended = yanked or _pre(version)
        rank = (int(not here), int(ended), int(alone), fit.rank, unmatched, number)
        out.append(Choice(version, "; ".join(notes), _more(fit, builds), rank, yanked))
    return sorted(out, key=lambda one: one.rank)


def _pre(version: str) -> bool:
    try:
        return Version(version).is_prerelease
    except InvalidVersion:
        return True


def pinned_torch(ways: Sequence[Way]) -> str | None:
    """Return the version of torch that some ways select, if they agree."""
    found = {
        judged.selection.build.version
        for way in ways
        for judged_set in way.sets
        for judged in judged_set.judged
        if judged.selection.package == "torch" and judged.selection.build is not None
    }
    return found.pop() if len(found) == 1 else None


def places(builds: Iterable[Build]) -> str:
    """Return where some builds lie."""
    found = dict.fromkeys("PyPI" if one.home == "pypi" else one.channel for one in builds)
    return ", ".join(one for one in found if one)


def _more(fit: Fit, builds: Sequence[Build]) -> str:
    lines = [f"{name}: {why}" for name, _, why in fit.groups if why]
    if fit.builds:
        lines.append(f"as {', '.join(dict.fromkeys(one.place for one in fit.builds))}")
    known = places(builds)
    return "\n".join([*lines, *([f"published on {known}"] if known else [])])


def labels(
    context: Context, package: str, version: str, ways: Sequence[Way], fits: Fits | None
) -> list[Choice]:
    """Return the labels that builds of a version have, best first."""
    builds = context.catalog.find(package, version=_public(version, context, package))
    here = {one.label for one in served(builds, ways)}
    out: list[Choice] = []
    for number, label in enumerate(newest_first({one.label for one in builds if one.label})):
        some = [one for one in builds if one.label == label]
        fit = fits.of(some) if fits is not None else Fit((), ())
        notes = [f"{fit.mark} {fit.text}"] if fit.groups else []
        if label not in here:
            notes.append(f"needs the index of {places(some)}")
        rank = (int(label not in here), fit.rank, number)
        out.append(Choice(label, "; ".join(notes), _more(fit, some), rank))
    return sorted(out, key=lambda one: one.rank)


def _public(version: str, context: Context, package: str) -> str:
    """Return a version as the catalog spells it: ``2.14`` is ``2.14.0``."""
    try:
        wanted = Version(version)
    except InvalidVersion:
        return version
    return next(
        (one for one in context.catalog.versions(package) if Version(one) == wanted), version
    )


def channels(context: Context, ways: Sequence[Way], fits: Fits | None) -> list[Choice]:
    """Return the channels of torch, best first: by the release that is pinned there, or the
    channel's last."""
    catalog = context.catalog
    wanted = {
        pin[0]
        for way in ways
        for placed in way.install.requirements
        if placed.declaration.name == "torch"
        for pin in (exact_version(placed.declaration.specifier),)
        if pin is not None
    }
    pin = _public(wanted.pop(), context, "torch") if len(wanted) == 1 else None
    out: list[Choice] = []
    for number, channel in enumerate(newest_first(catalog.channels("torch"))):
        builds = catalog.find("torch", channel=channel, home="channel")
        last = builds[-1].version
        version = pin if pin is not None else last
        some = [one for one in builds if one.version == version]
        fit = fits.of(some) if fits is not None else Fit((), ())
        notes = [f"{fit.mark} torch {version} {fit.text}"] if fit.groups and some else []
        if not some:
            notes.append(f"has no torch {version}; its last is {last}")
        rank = (int(not some), fit.rank, number)
        out.append(Choice(channel, "; ".join(notes), f"last release: {last}", rank))
    return sorted(out, key=lambda one: one.rank)


def newest_first(names: Iterable[str]) -> list[str]:
    """Return channels or labels: CUDA, then CPU, ROCm, others; of each kind the newest first."""
    return sorted(names, key=_age)


def _age(name: str) -> tuple[int, tuple[int, ...], str]:
    from torchpin.catalog.labels import parse_label

    kind, number = parse_label(name)
    order = {"cuda": 0, "cpu": 1, "rocm": 2, "xpu": 3}.get(kind or "", 4)
    return order, tuple(-int(one) for one in (number or "").split(".") if one), name
