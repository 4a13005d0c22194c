"""``torchpin explain``: the documentation of a rule, or the list of rules."""

from __future__ import annotations

import re
import sys

from torchpin.cli.parser import Parser, nearest
from torchpin.cli.terminal import out, style
from torchpin.errors import UsageError
from torchpin.report.rule_docs import RuleText, describe_all


def parser() -> Parser:
    """Return the parser of ``explain``."""
    made = Parser("explain", "Explain rules: what, why, an example, the fix, the evidence.")
    made.add_argument(
        "codes", nargs="*", metavar="CODE", help="codes or names of rules (default: list all)"
    )
    made.add_argument("--all", action="store_true", help="explain every rule")
    made.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="how to print"
    )
    made.add_argument("--no-color", action="store_true", help="no colours")
    return made


def main(argv: list[str]) -> int:
    """Run ``explain`` and return 0."""
    args = parser().parse(argv)
    from torchpin.rules.registry import all_rules

    rules = describe_all(all_rules())
    chosen = [_find(code, rules) for code in args.codes] or list(rules)
    if args.output_format == "json":
        import json

        out(json.dumps({"version": 1, "rules": [r._asdict() for r in chosen]}, indent=2) + "\n")
    elif args.codes or args.all:
        _pages(chosen, color=style(no_color=args.no_color).color)
    else:
        from torchpin.report.wrap import wrap

        paint = style(no_color=args.no_color)
        wide = max((len(rule.name) for rule in rules), default=0)
        for rule in rules:
            severity = paint.paint(rule.severity, rule.severity.ljust(7))
            lead = f"{rule.code}  {severity}  {rule.name.ljust(wide)}  "
            out("\n".join(wrap(rule.summary, paint.columns or sys.maxsize, lead, _INDENT)) + "\n")
    return 0


_INDENT = 16
"""Where a summary goes on that the terminal breaks: below the names of the rules."""
_LETTERS = str.maketrans("ILO", "110")
"""Letters that stand for a digit: TP20l."""


def _find(word: str, rules: tuple[RuleText, ...]) -> RuleText:
    for rule in rules:
        if word.upper() == rule.code or word.lower() == rule.name:
            return rule
    hint = ""
    digits = word.upper().removeprefix("TP").translate(_LETTERS)
    if digits.isdecimal():
        near = [rule.code for rule in rules if rule.code.startswith(f"TP{digits}")]
        if near == [f"TP{digits}"]:
            hint = f"did you mean `{near[0]}`?"
        elif near:
            hint = f"there are {', '.join(near)}"
    elif code := re.fullmatch(r"TP(\d)\w*", word.upper()):
        family = f"TP{code[1]}"
        near = [rule.code.lower() for rule in rules if rule.code.startswith(family)]
        hint = nearest(word, near).replace("tp", "TP")
    else:
        hint = nearest(word, [rule.name for rule in rules])
    raise UsageError(f"no rule {word!r}", hint=hint or "run `torchpin explain` for the list")


def _pages(rules: list[RuleText], *, color: bool) -> None:
    text = "\n".join(rule.markdown() for rule in rules)
    if not color:
        out(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(file=sys.stdout, force_terminal=True).print(Markdown(text))
