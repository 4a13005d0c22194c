"""TP4: what several index lines do to each other, and one to PyPI: which of them counts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.catalog.model import FAMILY, WATCHED, Build, ChannelSpan
from torchpin.documents.base import line_starts, position
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.rules.context import Context, JudgedSet, Way, index_text
from torchpin.rules.exists import PIP_INDEX
from torchpin.rules.files import TWO_DEFAULTS, option_at
from torchpin.rules.model import ERROR, WARNING, Because, Finding, Related
from torchpin.rules.registry import Rule
from torchpin.select.channels import split_url
from torchpin.select.model import PlacedIndex

UV_INDEX = "https://docs.astral.sh/uv/concepts/indexes/"


def channel_indexes(way: Way) -> list[PlacedIndex]:
    """Return the effective channel indexes that hold more than one project."""
    return [
        index
        for index in way.install.indexes
        if index.kind.kind == "channel"
        and index.kind.project is None
        and index.option != "--find-links"
    ]


def unlabelled(judged_set: JudgedSet) -> list[str]:
    """Return the family packages that are asked for without a label."""
    return [
        one.selection.package
        for one in judged_set.judged
        if one.selection.package in FAMILY
        and one.selection.placed is not None
        and "+" not in one.selection.placed.declaration.specifier
        and one.selection.placed.declaration.url is None
    ]


class AmbiguousIndex(Rule):
    """Several indexes compete for a name.

    What it does: reports, for pip, family packages without a label beside two channels, or an open
    requirement that PyPI and a channel compete for; for uv, a channel that shadows other packages
    of the file with stale copies.

    Why it is bad: pip makes one pool of all indexes and takes the highest version, a label above
    none, so which CUDA comes depends on release dates. uv takes the first index that knows the
    name, and channels hold old copies of general packages.

    Example: ``torch`` beside ``--extra-index-url …/cu126``: PyPI's newer build wins.

    Fix: a label on the pin; in uv, one link page a package (``-f …/cu126/torch/``).

    Evidence: documented behaviour of pip and uv.
    """

    code = "TP401"
    name = "ambiguous-index"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield channel index lines that compete."""
        channels = channel_indexes(way)
        if not channels or not way.has_family or way.install.root.kind == "pyproject":
            return  # TP405 speaks of projects
        if way.install.client == "uv":
            yield from self._shadowing(way, context, channels)
            return
        names = {index.kind.channel for index in channels}
        for judged_set in way.sets:
            loose = unlabelled(judged_set)
            if len(names) > 1 and loose:
                index = channels[-1]
                if index.document is None or index.line is None:
                    continue
                listed = " and ".join(sorted(name for name in names if name))
                first = judged_set.of(loose[0])
                label = first.selection.build.label if first and first.selection.build else ""
                taken = f" (+{label})" if label else ""
                yield self.finding(
                    index.document,
                    index.line.url_span,
                    f"{listed} compete for {', '.join(loose)}: the highest label wins{taken}",
                    target=judged_set.target,
                    because=(Because("all indexes are one pool", PUBLISHED, PIP_INDEX),),
                )
                continue
            pypi = [index for index in way.install.indexes if index.kind.kind == "pypi"]
            for one in judged_set.judged:
                selection = one.selection
                if not pypi or selection.package not in loose or selection.build is None:
                    continue
                if selection.placed is None or selection.build.home != "pypi" or selection.exact:
                    continue
                index = channels[0]
                span = context.catalog.channel_span(
                    selection.package, index.kind.channel or "", selection.build.platform
                )
                if span is not None and span.closed and newer(selection.build, span):
                    continue  # TP106 says why
                held = context.catalog.find(
                    selection.package,
                    channel=index.kind.channel,
                    platform=judged_set.target.group.platform,
                )
                if not any(build.home == "channel" for build in held):
                    continue
                yield self.finding(
                    selection.placed.document,
                    selection.placed.declaration.span,
                    f"{selection.package} comes from PyPI ({selection.build.version}), "
                    f"not from {index_text(index)} that the file names",
                    package=selection.package,
                    target=judged_set.target,
                    because=(Because("all indexes are one pool", PUBLISHED, PIP_INDEX),),
                )

    def _shadowing(
        self, way: Way, context: Context, channels: list[PlacedIndex]
    ) -> Iterator[Finding]:
        stale = sorted(
            {placed.declaration.name for placed in way.install.requirements}
            & context.catalog.shadowed()
        )
        extra = [index for index in channels if index.option == "--extra-index-url"]
        if not stale or not extra:
            return
        index = extra[0]
        if index.document is None or index.line is None:
            return
        yield self.finding(
            index.document,
            index.line.url_span,
            f"uv takes {', '.join(stale)} from {index_text(index)}, which holds old copies",
            because=[
                Because(
                    "uv takes the first index that knows a name; PyPI comes last",
                    PUBLISHED,
                    UV_INDEX,
                ),
                *copies(stale, context),
            ],
        )


def copies(names: list[str], context: Context) -> Iterator[Because]:
    """Yield the newest copies of general packages that the channels hold, as far as known."""
    for row in context.catalog.health("*"):
        if row.kind != "shadowing":
            continue
        for name in names:
            match = re.search(rf"\b{re.escape(name)} (\d[\w.]*\w)", row.problem, re.IGNORECASE)
            if match:
                text = f"the newest {name} seen on the channels is {match.group(1)}"
                yield Because(text, PUBLISHED, row.source)


def newer(build: Build, span: ChannelSpan) -> bool:
    """True if a build is newer than the last release of a channel."""
    from packaging.version import Version

    return Version(build.version) > Version(span.last)


class IndexReplacesPypi(Rule):
    """A channel as the only index of packages that it does not hold, or holds stale.

    What it does: reports ``--index-url`` with a channel in a file that lists other packages, when
    PyPI is not named beside it.

    Why it is bad: ``--index-url`` replaces PyPI for every package of the file: what the channel
    does not hold cannot be found, what it holds as an old copy stays old.

    Example: ``--index-url https://download.pytorch.org/whl/cu126`` above ``transformers``.

    Fix: ``--extra-index-url`` and labelled pins.

    Evidence: documented behaviour of pip; the list of packages that the channels hold. It is an
    error for pip where the file asks for a popular package that PyTorch's own index tool does not
    list: pip finds none and stops.
    """

    code = "TP407"
    name = "index-replaces-pypi"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield channel indexes that stand alone before foreign packages."""
        sources = [index for index in way.install.indexes if index.option != "--find-links"]
        if not sources or any(index.kind.kind != "channel" for index in sources):
            return
        others = sorted(
            {
                placed.declaration.name
                for placed in way.install.requirements
                if placed.declaration.name
                and placed.declaration.url is None
                and placed.declaration.name not in WATCHED
                and not placed.declaration.name.startswith(("nvidia-", "cuda-"))
                and placed.declaration.name not in context.catalog.mirrored()
            }
        )
        if not others:
            return
        index = next((one for one in sources if one.option == "--index-url"), sources[0])
        if index.document is None or index.line is None:
            return
        stale = [name for name in others if name in context.catalog.shadowed()]
        absent = [name for name in others if name not in stale]
        parts = []
        if absent:
            parts.append(f"{shorten(absent)} cannot come from it")
        if stale:
            parts.append(f"{shorten(stale)} would be an old copy")
        grounds = [
            Because("the default index stands for PyPI", PUBLISHED, UV_INDEX)
            if way.install.root.kind == "pyproject"
            else Because("--index-url replaces the default index", PUBLISHED, PIP_INDEX)
        ]
        unlisted = surely_absent(way, index)
        if unlisted:
            from torchpin.rules import channel_names

            parts.append("pip stops")
            text = f"no channel of download.pytorch.org lists {shorten(unlisted)}"
            grounds.insert(0, Because(text, PUBLISHED, channel_names.SOURCE))
        yield self.finding(
            index.document,
            index.line.span,
            f"{index_text(index)} replaces PyPI for every package: {'; '.join(parts)}",
            severity=ERROR if unlisted else WARNING,
            because=grounds,
        )


def surely_absent(way: Way, index: PlacedIndex) -> list[str]:
    """Return the packages for which pip stops: asked for on a target, and on no channel.

    Only where the file itself says ``--index-url`` (which throws away what the command line adds),
    names PyTorch's own host, and looks at no link page that could hold the package.
    """
    from torchpin.rules.channel_names import UNLISTED
    from torchpin.select.environments import marker_holds

    install = way.install
    host = (split_url(index.url) or ("", "", ""))[1]
    if install.client != "pip" or index.option != "--index-url" or install.unread:
        return []
    if host != "download.pytorch.org" or any(
        one.option == "--find-links" for one in install.indexes
    ):
        return []
    asked = [
        placed.declaration
        for placed in install.requirements
        if placed.declaration.name in UNLISTED and placed.declaration.url is None
    ]
    targets = [judged_set.target for judged_set in way.sets]
    return sorted(
        {
            one.name
            for one in asked
            if any(marker_holds(one.marker, target) is True for target in targets)
        }
    )


def shorten(names: list[str]) -> str:
    """Return a list of names, cut after three."""
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3} more"


class IndexDiscarded(Rule):
    """An index line without effect.

    What it does: reports, for pip, index lines that a later ``--index-url`` throws away; for uv,
    two different ``--index-url``.

    Why it is bad: pip reads index lines as a program: ``--index-url`` clears every index before it,
    also those of an included file. uv stops.

    Example: ``--extra-index-url …/cu126`` above ``--index-url https://pypi.example/simple``.

    Fix: put ``--index-url`` first, or make the second one ``--extra-index-url``.

    Evidence: pip 23.2.1 and 26.3, uv 0.13.9, tried.
    """

    code = "TP414"
    name = "index-discarded"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield discarded index lines (pip), and a second index URL (uv)."""
        for document, message, offset in way.install.problems:
            if message.startswith(TWO_DEFAULTS):
                yield self.finding(
                    document,
                    option_at(document, offset),
                    message,
                    severity=ERROR,
                    because=(Because("two values of one setting", MEASURED, "uv 0.13.9"),),
                )
        if way.install.client == "uv":
            return
        last = [index for index in way.install.indexes if index.option == "--index-url"]
        for index in way.install.discarded:
            if index.document is None or index.line is None:
                continue
            yield self.finding(
                index.document,
                index.line.span,
                "a later --index-url throws this index away",
                because=(Because("index lines take effect in order", MEASURED, "pip 26.3"),),
                related=[
                    Related(
                        one.document.path,
                        position(line_starts(one.document.text), one.line.span.start).line,
                        "this --index-url counts",
                    )
                    for one in last
                    if one.document is not None and one.line is not None
                ],
            )


RULES = (AmbiguousIndex, IndexReplacesPypi, IndexDiscarded)
