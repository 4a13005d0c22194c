"""What a rule says about itself, for ``explain``, SARIF and the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.rules.registry import Rule

_SECTION = regex(r"^(what it does|why it is bad|example|fix|evidence)\s*:?\s*$", re.IGNORECASE)
_INLINE = regex(r"^(What it does|Why it is bad|Example|Fix|Evidence)\s*:\s+(?=\S)")


class RuleText(NamedTuple):
    """The documentation of one rule."""

    code: str
    name: str
    severity: str
    summary: str
    """One line."""
    body: str
    """The docstring behind its first line, as Markdown."""

    def markdown(self) -> str:
        """Return the whole page."""
        head = f"# {self.code} {self.name}\n\n*{self.severity}* · {self.summary}\n"
        return f"{head}\n{self.body}\n" if self.body else head


_NAMES = frozenset(
    (
        *("bitsandbytes", "conda", "macOS", "pip", "poetry", "pdm", "torch", "torchaudio"),
        *("torchtext", "torchvision", "transformers", "triton", "uv", "vllm"),
    )
)
"""Words that stay small at the beginning of a sentence."""


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter; names of programs and packages keep theirs."""
    first = text.split(None, 1)[0] if text.strip() else ""
    word = first.rstrip(",:;.")
    if word in _NAMES or not word.isalpha():
        return text
    return text[0].upper() + text[1:]


def describe(rule: Rule) -> RuleText:
    """Return the documentation of ``rule``."""
    from inspect import cleandoc

    doc = cleandoc(type(rule).__doc__ or "").replace("``", "`")
    summary, _, body = doc.partition("\n")
    return RuleText(rule.code, rule.name, rule.severity, summary.strip(), _markdown(body.strip()))


def describe_all(rules: Iterable[Rule]) -> tuple[RuleText, ...]:
    """Return the documentation of ``rules``, in their order."""
    return tuple(describe(rule) for rule in rules)


def _markdown(body: str) -> str:
    """Return ``body`` with its section words as Markdown headings."""
    out: list[str] = []
    for line in body.splitlines():
        inline = _INLINE.match(line)
        if _SECTION.match(line):
            out += ["", f"## {line.strip().rstrip(':').capitalize()}", ""]
        elif inline:
            rest = line[inline.end() :]
            out += ["", f"## {inline.group(1)}", "", sentence(rest)]
        else:
            out.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()
