"""TP6: the horizon. What still works, and for how long (information only)."""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.catalog.model import Build
from torchpin.evidence import PROOF
from torchpin.fleet.model import Target
from torchpin.judge.model import Reason
from torchpin.rules.context import Context, Way, because
from torchpin.rules.hardware import gpu_names
from torchpin.rules.model import INFO, Because, Finding
from torchpin.rules.registry import Rule


class LastRelease(Rule):
    """The last release that runs on a group.

    What it does: tells, for a group whose hardware newer releases have dropped, which release of
    torch is the last with a wheel that runs on it.

    Why it matters: an upgrade of torch will need other machines, or a build from source.

    Example: Tesla V100: torch 2.14.1 from channel cu126 is the last.

    Fix: none.

    Evidence: kernel lists of all later builds.
    """

    code = "TP601"
    name = "last-release"
    severity = INFO

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield one finding a group whose last release is not the newest."""
        if not context.declared:
            return
        told: dict[Target, tuple[Build | None, Reason | None]] = {}
        for judged_set in way.sets:
            torch = judged_set.of("torch")
            if torch is None or not judged_set.target.group.gpus or torch.fails:
                continue
            if torch.selection.status == "skipped":
                continue
            hardware = judged_set.target._replace(python=None)  # TP603 speaks of Python
            if hardware not in told:
                told[hardware] = self._last(hardware, context)
            last, blocked = told[hardware]
            if last is None or blocked is None:
                continue
            document, span = judged_set.place(torch.selection)
            yield self.finding(
                document,
                span,
                f"{last.title} is the last release that runs {where(blocked, hardware)}",
                package="torch",
                target=judged_set.target,
                because=[because(blocked)],
            )

    def _last(self, target: Target, context: Context) -> tuple[Build | None, Reason | None]:
        """Return the last build that runs and why the newest does not; None where not proved."""
        key = (self.code, target)
        if key not in context.memo:
            context.memo[key] = self._found(target, context)
        found: tuple[Build | None, Reason | None] = context.memo[key]
        return found

    @staticmethod
    def _found(target: Target, context: Context) -> tuple[Build | None, Reason | None]:
        from torchpin.resolve.horizon import horizon, open_channels

        seen = horizon(target, context.catalog)
        if seen.last_build is None or seen.last_version == seen.newest_version:
            return None, None
        if open_channels(seen.newest_version, target, context.catalog, context.drivers):
            return None, None
        return seen.last_build, seen.blocked_by


def where(blocked: Reason, target: Target) -> str:
    """Return on what the newest release does not run."""
    if blocked.question == "driver":
        return f"with driver {target.group.driver}"
    if blocked.question == "glibc" and target.group.glibc:
        return f"with glibc {target.group.glibc}"
    if blocked.question == "macos" and target.group.macos:
        return f"on macOS {target.group.macos}"
    if blocked.gpu is not None:
        return f"on {gpu_names([blocked])}"
    return "here"


class ChannelEnding(Rule):
    """The channel of the file has ended.

    What it does: tells that the channel from which torch comes gets no further release.

    Why it matters: an open requirement stays at the channel's last release for ever.

    Example: cu128 ended with torch 2.11.0, cu126 with 2.14.1.

    Fix: none needed today; a move of the channel with the next upgrade.

    Evidence: first and last proved release of the channel.
    """

    code = "TP602"
    name = "channel-ending"
    severity = INFO

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield selections from closed channels; of an image the next tag may be any."""
        if way.part is not None and way.part.syntax == "image":
            return
        for judged_set in way.sets:
            torch = judged_set.of("torch")
            build = torch.selection.build if torch else None
            if torch is None or build is None or build.home != "channel":
                continue
            span = context.catalog.channel_span("torch", build.channel, build.platform)
            if span is None or not span.closed or span.evidence not in PROOF:
                continue
            document, place = judged_set.place(torch.selection)
            yield self.finding(
                document,
                place,
                f"channel {build.channel} ended with torch {span.last}",
                package="torch",
                target=judged_set.target,
                because=(
                    Because(
                        f"{build.channel} holds torch {span.first} to {span.last}",
                        span.evidence,
                        span.source,
                    ),
                ),
            )


class PythonEnding(Rule):
    """The Python of a group has no wheel of the newest torch.

    What it does: tells which declared Python the newest release has dropped.

    Why it matters: the group stays at the last release for its Python.

    Example: torch 2.15.0 has no wheels for Python 3.10; 2.14.1 is the last.

    Fix: none in the files.

    Evidence: the file list on PyPI.
    """

    code = "TP603"
    name = "python-ending"
    severity = INFO

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield targets whose Python is missing from the newest torch on PyPI."""
        if not context.declared:
            return
        newest = context.catalog.newest("torch")
        for judged_set in way.sets:
            torch = judged_set.of("torch")
            python = judged_set.target.python
            if torch is None or python is None or torch.selection.status != "selected":
                continue
            builds = context.catalog.find(
                "torch", version=newest, home="pypi", platform=judged_set.target.group.platform
            )
            if not builds or any(
                python.tag in build.pythons or "py3" in build.pythons for build in builds
            ):
                continue
            last = next(
                (
                    version
                    for version in reversed(context.catalog.versions("torch"))
                    if any(
                        python.tag in build.pythons
                        for build in context.catalog.find(
                            "torch", version=version, platform=judged_set.target.group.platform
                        )
                    )
                ),
                None,
            )
            document, span = judged_set.place(torch.selection)
            yield self.finding(
                document,
                span,
                f"torch {newest} has no wheel for Python {python}"
                + (f"; {last} is the last that has" if last else ""),
                package="torch",
                target=judged_set.target,
                because=[
                    Because(
                        f"wheels of {newest}: {', '.join(builds[0].pythons)}",
                        builds[0].evidence,
                        builds[0].source,
                    )
                ],
            )


RULES = (LastRelease, ChannelEnding, PythonEnding)
