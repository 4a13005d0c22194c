"""What is said where no single set serves."""

from __future__ import annotations

from torchpin.report.lines import last_wheel, place_of, unique
from torchpin.report.style import clean
from torchpin.resolve.model import Outcome


def because_lines(outcome: Outcome) -> list[str]:
    """Return why there is no single plan, a line each."""
    lines = []
    for conflict in outcome.explanation:
        origin = conflict.origin
        place = f"{clean(origin.path)}:{origin.line}" if origin.line else clean(origin.path)
        lines.append(f"  {place}: {clean(conflict.text)} [{conflict.evidence}]")
        if conflict.without:
            lines.append(f"    without it: {clean(conflict.without)}")
    return lines


def split_text(outcome: Outcome, group: str | None) -> str:
    """Return the sets by group, what is not served, and why not one set."""
    where = f"group {clean(group)}" if group is not None else "the whole fleet"
    lines = [f"torchpin: no single set of versions runs on {where}"]
    for plan in outcome.plans:
        names = unique(clean(target.group.name) for target in plan.targets)
        shown = " ".join(
            unique(f"{package}=={build.full_version}" for _, package, build in plan.builds)
        )
        lines.append(f"  {', '.join(names)}: {shown} (from {place_of(plan)})")
    for unserved in outcome.unserved:
        last = f"; {last_wheel(unserved)}" if unserved.last_release else ""
        lines.append(f"  {clean(unserved.target.text)}: nothing: {clean(unserved.because)}{last}")
    why = because_lines(outcome)
    if why:
        lines += ["why not one set:" if outcome.plans else "why:", *why]
    if outcome.plans and group is None:
        name = clean(outcome.plans[0].targets[0].group.name)
        lines.append(f"one set a group: torchpin constraints --group {name}")
    return "\n".join(lines) + "\n"
