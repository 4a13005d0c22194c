"""The text report of ``check`` and ``fix``: a block a finding, then what all of them come to."""

from __future__ import annotations

from torchpin.report.model import CheckView, count, plural
from torchpin.report.style import Style


def render(view: CheckView, style: Style, *, closing: bool = True) -> str:
    """Return the report, with its closing line unless ``closing`` is False."""
    blocks: list[str] = []
    if view.findings:  # a clean run shows no code
        from torchpin.report.block import Blocks

        made = Blocks(view, style)
        blocks = [made.block(finding) for finding in view.findings]
    if closing:
        blocks.append(summary(view, style))
    return "\n".join(blocks)


def summary(view: CheckView, style: Style) -> str:
    """Return the closing lines: counts, the catalog's date, what ``fix`` would mend."""
    counts = count(view.findings, unsafe=view.unsafe_fixes)
    catalog = style.paint("dim", f"Catalog of {view.catalog_date}.")
    if not view.findings:
        if not view.files:
            return f"Nothing to check. {catalog}\n"
        good = style.paint("good", f"No findings in {plural(view.files, 'file')}.")
        return f"{good} {catalog}\n"
    parts = [
        style.paint(severity, plural(number, word))
        for severity, number, word in (
            ("error", counts.errors, "error"),
            ("warning", counts.warnings, "warning"),
            ("info", counts.infos, "info"),
        )
        if number
    ]
    files = len({finding.path for finding in view.findings})
    where = f"{files} of {view.files} files" if files < view.files else plural(files, "file")
    line = f"Found {', '.join(parts)} in {where}. {catalog}\n"
    option = " --unsafe-fixes" if view.unsafe_fixes else ""
    mends = []
    if counts.fixable:
        mends.append(f"`torchpin fix{option}` mends {counts.fixable}")
    if counts.hidden:
        more = " more" if counts.fixable else ""
        mends.append(f"`torchpin fix --unsafe-fixes` mends {counts.hidden}{more}")
    return f"{line}{'; '.join(mends)}.\n" if mends else line
