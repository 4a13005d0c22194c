"""Draw the pictures of reports in README and docs, or compare them (``--check``).

Each is what a command prints on a terminal of 80 columns, as SVG, for dark and for light pages.
``--check`` compares the words, not how they are drawn: rich may draw them otherwise.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from html import unescape
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from torchpin.cli import check
from torchpin.report import grouped, text
from torchpin.report.style import Style

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "docs" / "assets"
COLUMNS = 80
PICTURES = {
    "check": "check examples/legacy-cluster",
    "uv-project": "check examples/uv-project",
}
"""Name → the command, without ``torchpin``."""
COLORS = (
    [(27, 31, 36), (207, 34, 46), (17, 99, 41), (125, 78, 0), (9, 105, 218), (130, 80, 223)],
    [(72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34), (88, 166, 255), (188, 140, 255)],
)
LIGHT = TerminalTheme(
    (255, 255, 255),
    (31, 35, 40),
    [*COLORS[0], (27, 124, 131), (110, 119, 129)],
    [*COLORS[0], (27, 124, 131), (110, 119, 129)],
)
DARK = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [*COLORS[1], (57, 197, 207), (177, 186, 196)],
    [*COLORS[1], (57, 197, 207), (177, 186, 196)],
)
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
        font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{
        font: 15px ui-sans-serif, system-ui, "DejaVu Sans", sans-serif;
    }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" \
clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""


def report(command: str) -> str:
    """Return what ``torchpin COMMAND`` prints on a terminal that knows colours."""
    args = check.parser().parse(command.split()[1:])
    view, _ = check.checked(args)
    made = grouped if args.output_format == "grouped" else text
    style = Style(True, COLUMNS)
    prompt = style.paint("good", "$")
    return f"{prompt} torchpin {command}\n\n{made.render(view, style)}"


def svg(name: str, painted: str, theme: TerminalTheme) -> str:
    """Return a picture of a report."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(painted.rstrip("\n")), soft_wrap=True)
    theme_border = "#30363d" if theme is DARK else "#d0d7de"
    drawn = console.export_svg(title="torchpin", theme=theme, code_format=SVG, unique_id=name)
    drawn = drawn.replace("rgba(255,255,255,0.35)", theme_border)
    return re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE).rstrip("\n") + "\n"


def words(picture: str) -> list[str]:
    """Return the words in a picture."""
    return unescape(" ".join(re.findall(r">([^<>]+)</text>", picture))).split()


def pictures() -> dict[Path, str]:
    """Return every picture by its path."""
    os.chdir(ROOT)
    out: dict[Path, str] = {}
    for name, command in PICTURES.items():
        painted = report(command)
        for word, theme in (("dark", DARK), ("light", LIGHT)):
            out[ASSETS / f"{name}-{word}.svg"] = svg(f"{name}-{word}", painted, theme)
    return out


def main() -> int:
    """Write or compare the pictures; return 1 if one says something else."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare; write nothing")
    args = parser.parse_args()
    stale = []
    for path, picture in pictures().items():
        if args.check:
            if not path.exists() or words(path.read_text("utf-8")) != words(picture):
                stale.append(path.relative_to(ROOT).as_posix())
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(picture, "utf-8", newline="\n")
    if stale:
        print(f"out of date: {', '.join(stale)}: run python tools/draw_reports.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
