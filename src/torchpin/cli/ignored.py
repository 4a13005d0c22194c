"""``torchpin check --ignored``: what comments and per-file settings silence, and why."""

from __future__ import annotations

from torchpin.cli.arguments import Arguments
from torchpin.cli.common import fleet_of, options_of, watched
from torchpin.cli.terminal import note, style, tell
from torchpin.errors import UsageError
from torchpin.report.concise import line
from torchpin.report.model import Locator, plural
from torchpin.report.style import Style, clean
from torchpin.rules.ignores import Ignored


def run(args: Arguments) -> int:
    """List what is silenced; 0, whatever is.

    Raises:
        UsageError: another report is asked for at the same time.
    """
    from torchpin import engine

    if args.diff or args.statistics or args.output_format != "text":
        raise UsageError("--ignored is a list of its own: it takes no other form of report")
    if args.baseline or args.changed_since or args.evidence:
        raise UsageError("--ignored takes no --baseline, --changed-since, --evidence: it lists all")
    options = options_of(args)
    fleet = fleet_of(args, options)
    report = watched(options, args, lambda one: engine.check(one, fleet))
    tell(render(report.ignored, style(no_color=args.no_color), closing=not args.quiet))
    if not args.quiet:
        for text in report.notes:
            note(clean(text))
    return 0


def render(found: tuple[Ignored, ...], style: Style, *, closing: bool = True) -> str:
    """Return a line a silenced finding, and below it who silences it, and why."""
    locator = Locator()
    ordered = sorted(found, key=lambda one: (one.finding.path, one.finding.span.start))
    lines: list[str] = []
    for one in ordered:
        lines += (line(one.finding, locator, style), f"  = {_ground(one, style)}\n")
    if closing:
        lines.append(_closing(ordered))
    return "".join(lines)


def _ground(one: Ignored, style: Style) -> str:
    if one.line is None:
        return f"per-file-ignores: {clean(one.reason)}"
    where = f"line {one.line}:"
    return f"{where} {clean(one.reason) or style.paint('warning', 'no reason is given')}"


def _closing(found: list[Ignored]) -> str:
    if not found:
        return "Nothing is ignored.\n"
    mute = sum(one.line is not None and not one.reason for one in found)
    less = f", {mute} without a reason" if mute else ""
    return f"{plural(len(found), 'finding')} ignored{less}.\n"
