"""Text reports of ``show`` and ``resolve``."""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.judge.model import Verdict
from torchpin.report.lines import last_wheel, place_of, requirement_lines, unique
from torchpin.report.model import Locator, cells_text, plural
from torchpin.report.style import Style, clean
from torchpin.report.wrap import comment
from torchpin.resolve.model import Outcome, Plan, Unserved
from torchpin.rules.matrix import fewest
from torchpin.select.model import Selection

_VERDICT_COLOR = {
    "runs": "good",
    "runs-via-ptx": "warning",
    "partly": "warning",
    "fails": "error",
    "unknown": "dim",
}


Cell = tuple[tuple[str, str], ...]


def show(
    selections: tuple[tuple[Selection, Verdict | None], ...],
    style: Style,
    cells: Sequence[Cell] = (),
) -> str:
    """Return what would be installed: a block a file and target, with the reasons.

    Cells of a matrix of which the same is to be said are told together.
    """
    locator = Locator()
    blocks: dict[str, dict[tuple[str, ...], list[Cell]]] = {}
    path = ""
    for number, (selection, verdict) in enumerate(selections):
        target = selection.target
        if selection.placed is not None:
            path = selection.placed.document.path
        platform = target.group.platform
        where = platform if target.group.name == platform else f"{target.text} ({platform})"
        title = f"{clean(path)} on {clean(where)}"
        lines = tuple(_selection(selection, verdict, locator, style))
        alike = blocks.setdefault(title, {})
        alike.setdefault(lines, []).append(cells[number] if cells else ())
    if not blocks:
        return "Nothing of the PyTorch family is asked for here.\n"
    out: list[str] = []
    for title, block in blocks.items():
        out.append(style.paint("bold", title))
        for lines, meant in block.items():
            out += lines
            if all(meant):
                told = fewest(meant, {cell for some in block.values() for cell in some})
                out += [f"    in matrix: {clean(cells_text(told))}"] if told else []
        out.append("")
    return "\n".join(out)


def _selection(
    selection: Selection, verdict: Verdict | None, locator: Locator, style: Style
) -> list[str]:
    build = selection.build
    if selection.placed is not None:
        document, declaration = selection.placed
        origin = f"line {locator.at(document, declaration.span.start).line}"
    else:
        origin = f"implied by {selection.implied_by}" if selection.implied_by else "implied"
    if build is not None:
        home = "PyPI" if build.home == "pypi" else f"channel {build.channel}"
        kind = f"{build.channel} build" if build.channel else "build"
        what = f"{build.full_version}, {kind} from {home}"
        if build.home == "channel":
            what = f"{build.full_version} from {home}"
    else:
        what = {"none": "finds no build", "skipped": "not asked for here"}.get(
            selection.status, "unknown"
        )
    head = f"  {selection.package} ({origin}): "
    if verdict is not None:
        color = _VERDICT_COLOR[verdict.status]
        lines = [f"{head}{what}: {style.paint(color, verdict.status)}"]
    else:
        color = "bad" if selection.status == "none" else "dim"
        lines = [head + style.paint(color, what)]
    if selection.miss is not None:
        lines.append(f"    {clean(selection.miss.message)} [{selection.miss.evidence}]")
    elif selection.because:
        lines.append(f"    {clean(selection.because)}")
    if verdict is not None:
        lines += unique(
            f"    {clean(reason.text)} [{reason.evidence}]" for reason in verdict.reasons
        )
    return lines


def resolve(outcome: Outcome, style: Style, client: str = "pip", *, split: bool = False) -> str:
    """Return the plans with their requirement lines, what is unserved, and why; ``split``: one set
    would do, and was not wanted."""
    out: list[str] = []
    if len(outcome.plans) == 1 and not outcome.unserved:
        left = [package for package, _ in outcome.plans[0].unfit]
        if left:
            text = f"One set runs on every target, without {' and '.join(left)}: see below."
            out.append(style.paint("error", text))
        else:
            out.append(style.paint("good", "One set runs on every target."))
    elif outcome.plans:
        out.append(
            f"{plural(len(outcome.plans), 'set')}, each for its own part of the fleet."
            if split
            else f"{plural(len(outcome.plans), 'set')}: the fewest that serve "
            + ("the rest of the fleet." if outcome.unserved else "the whole fleet.")
        )
    else:
        out.append(style.paint("error", "No published set serves this fleet."))
    for plan in outcome.plans:
        out += ("", *_plan(plan, style, client))
    if outcome.explanation:
        why = "Why not one set for all:" if outcome.plans else "Why not:"
        out += ("", style.paint("bold", why))
        for conflict in outcome.explanation:
            origin = conflict.origin
            place = f"{clean(origin.path)}:{origin.line}" if origin.line else clean(origin.path)
            out.append(f"  {place}: {clean(conflict.text)} [{conflict.evidence}]")
            if conflict.without:
                out.append(f"    without it: {clean(conflict.without)}")
    alike: dict[object, list[Unserved]] = {}
    for unserved in outcome.unserved:
        alike.setdefault(unserved[1:], []).append(unserved)
    for some in alike.values():
        out += ("", *_unserved(some, style))
    return "\n".join(out) + "\n"


def _unserved(some: Sequence[Unserved], style: Style) -> list[str]:
    """Return what is said of targets that the same keeps from being served."""
    pythons: dict[str, list[str]] = {}
    for one in some:
        found = pythons.setdefault(one.target.group.name, [])
        found += [str(one.target.python)] if one.target.python is not None else []
    targets = "; ".join(
        f"{name}, Python {' '.join(found)}" if found else name for name, found in pythons.items()
    )
    first = some[0]
    gpu = f" ({clean(first.gpu)})" if first.gpu else ""
    out = [f"{style.paint('error', 'Not served')}: {clean(targets)}{gpu}"]
    out.append(f"  because: {clean(first.because)}")
    if first.last_release:
        out.append(f"  {last_wheel(first)}")
    if first.recipe:
        out.append("  or build it:")
    for line in map(clean, first.recipe):
        out += comment(line[2:], "    ", 2) if line.startswith("# ") else [f"    {line}"]
    return out


def _plan(plan: Plan, style: Style, client: str) -> list[str]:
    targets = "; ".join(unique(clean(target.text) for target in plan.targets))
    home = place_of(plan)
    if home == "PyPI":
        home = f"PyPI ({plan.channel} builds)"
    lines = [f"{style.paint('bold', targets)}: from {clean(home)}"]
    lines += [f"    {style.paint('good', line)}" for line in requirement_lines(plan, client)]
    lines += [f"  because: {clean(text)} [{evidence}]" for text, evidence, _ in plan.because]
    return lines
