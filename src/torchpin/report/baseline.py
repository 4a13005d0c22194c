"""A baseline: findings that are known and wait, so that only new ones are told.

A finding is known again by its rule, file and package, and by the text of its line; what rests on
the hardware or the Python also by the node groups, or the Pythons. Neither its line number nor its
message counts: an edit above it, or a newer catalog, makes no new finding of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from torchpin.errors import ConfigError
from torchpin.named import NamedTuple
from torchpin.report.style import redact
from torchpin.rules.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
HARDWARE = "TP2"
"""Rules whose finding on another node group is another one."""
PYTHON = "TP102"
"""The rule whose finding for another Python is another one."""
LONGEST = 200
"""Characters of a line that are written down; a longer one ends in a digest of all of it."""


class Entry(NamedTuple):
    """What one or more findings are known by."""

    path: str
    """Relative to the folder of the baseline, with slashes."""
    code: str
    text: str
    """The line of the file, without blanks at its ends and without credentials."""
    package: str
    group: str
    python: str


class Split(NamedTuple):
    """The findings of a run, compared with a baseline."""

    new: tuple[Finding, ...]
    known: tuple[Finding, ...]
    gone: dict[Entry, int]
    """Entries that no finding of the run fits, and how many of each."""


class Baseline(NamedTuple):
    """A baseline that is in use."""

    path: str
    entries: dict[Entry, int]

    def split(self, findings: Sequence[Finding]) -> Split:
        """Return which findings are new, and what nothing fits any more."""
        return split(findings, self.entries, os.path.dirname(self.path))

    def new(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the findings that it does not hold."""
        return self.split(findings).new


def entry_of(finding: Finding, folder: str) -> Entry:
    """Return what a finding is known by; ``folder`` holds the baseline."""
    text = ""
    if finding.document is not None:
        whole = finding.document.text
        start = whole.rfind("\n", 0, finding.span.start) + 1
        end = whole.find("\n", finding.span.start)
        text = whole[start : end if end >= 0 else len(whole)].strip()
    path = os.path.relpath(os.path.realpath(finding.path), os.path.realpath(folder or "."))
    return Entry(
        path.replace(os.sep, "/"),
        finding.code,
        _short(redact(text)),
        finding.package or "",
        (finding.group or "") if finding.code.startswith(HARDWARE) else "",
        (finding.python or "") if finding.code == PYTHON else "",
    )


def _short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    from torchpin.seen import digest

    return f"{text[:LONGEST]}… {digest(text.encode('utf-8', 'surrogatepass'))}"


def counted(entries: Iterable[Entry]) -> dict[Entry, int]:
    """Return how often each entry occurs."""
    out: dict[Entry, int] = {}
    for entry in entries:
        out[entry] = out.get(entry, 0) + 1
    return out


def split(findings: Sequence[Finding], known: dict[Entry, int], folder: str) -> Split:
    """Return which findings are new, and which entries nothing fits any more."""
    left = dict(known)
    new: list[Finding] = []
    kept: list[Finding] = []
    for finding in findings:
        entry = entry_of(finding, folder)
        if left.get(entry, 0):
            left[entry] -= 1
            kept.append(finding)
        else:
            new.append(finding)
    gone = {entry: count for entry, count in left.items() if count}
    return Split(tuple(new), tuple(kept), gone)


def dump(entries: Mapping[Entry, int]) -> str:
    """Return the text of a baseline: one line an entry, sorted, so that diffs are short."""
    import json

    lines = []
    for entry, count in sorted(entries.items()):
        words = {key: value for key, value in zip(Entry._fields, entry, strict=True) if value}
        lines.append(json.dumps({**words, **({"count": count} if count > 1 else {})}))
    body = ",\n  ".join(lines)
    return f'{{"version": {VERSION}, "findings": [' + (f"\n  {body}\n" if lines else "") + "]}\n"


def load(text: str, path: str) -> dict[Entry, int]:
    """Return the entries of a baseline and their counts.

    Raises:
        ConfigError: the text is no baseline.
    """
    import json

    hint = "write it anew: torchpin baseline create --force"
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is no baseline: {error}", path=path, hint=hint) from error
    if not isinstance(data, dict) or not isinstance(data.get("findings"), list):
        raise ConfigError("is no baseline: it has no findings", path=path, hint=hint)
    if type(data.get("version")) is not int or data["version"] != VERSION:
        raise ConfigError(
            f"is a baseline of version {data.get('version')!r}, not {VERSION}", path=path, hint=hint
        )
    out: dict[Entry, int] = {}
    for number, item in enumerate(data["findings"], 1):
        words = {name: item.get(name, "") for name in Entry._fields} if type(item) is dict else {}
        count = item.get("count", 1) if type(item) is dict else 0
        if (
            not words
            or not all(isinstance(one, str) for one in words.values())
            or not (words["path"] and words["code"])
            or type(count) is not int
            or count < 1
        ):
            raise ConfigError(f"is no baseline: finding {number} is none", path=path, hint=hint)
        entry = Entry(**words)
        out[entry] = out.get(entry, 0) + count
    return out
