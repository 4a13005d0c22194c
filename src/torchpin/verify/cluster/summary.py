"""The answers of a cluster, like nodes together: as text, Markdown and JSON; pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from torchpin.fleet.importers.hosts import compress
from torchpin.named import NamedTuple
from torchpin.report.style import Style, clean
from torchpin.verify.cluster.model import CUT, SILENT, STATUSES, Answer
from torchpin.verify.lines import to_line
from torchpin.verify.model import FAILED, INCOMPLETE, OK, VERSION, Host, Record, Work

WIDTH = 79
_WORDS = {
    OK: "ok",
    FAILED: "failed",
    INCOMPLETE: "nothing tried",
    CUT: "cut short",
    SILENT: "no answer",
}
_COLORS = {OK: "good", FAILED: "bad", INCOMPLETE: "warning", CUT: "bad", SILENT: "bad"}
_NO_GROUP = "no node group"
_NO_ANSWER = "did not answer"
_MOST_OPERATIONS = 3
_MARKS = "\\`*_{}[]()#+!|~>$-<&"


class Row(NamedTuple):
    """Nodes that answered alike."""

    group: str
    status: str
    hardware: str
    """``4 x Tesla V100, driver 550.54.15, torch 2.14.1+cu126``"""
    details: tuple[str, ...]
    """What failed, and what is not as expected."""
    nodes: tuple[str, ...]


def all_ok(answers: Sequence[Answer]) -> bool:
    """Tell whether every node answered, and that all is well; False if there is none."""
    return bool(answers) and all(answer.status == OK for answer in answers)


def rows(answers: Iterable[Answer]) -> tuple[Row, ...]:
    """Return the answers, like ones folded, by group; in a group what is well comes first."""
    known: dict[Row, list[str]] = {}
    for answer in answers:
        known.setdefault(_row(answer), []).append(answer.node)
    found = [row._replace(nodes=tuple(names)) for row, names in known.items()]
    found.sort(
        key=lambda row: (
            row.group == _NO_ANSWER,
            row.group == _NO_GROUP,
            row.group,
            STATUSES.index(row.status),
        )
    )
    return tuple(found)


def counts(answers: Iterable[Answer]) -> dict[str, int]:
    """Return how many nodes have each status, every status named."""
    made = dict.fromkeys(STATUSES, 0)
    for answer in answers:
        made[answer.status] += 1
    return made


def text(answers: Sequence[Answer], style: Style) -> str:
    """Return the table, and a line that counts."""
    out: list[str] = []
    folded = rows(answers)
    wide = max((len(str(len(row.nodes))) for row in folded), default=1)
    group = None
    for row in folded:
        if row.group != group:
            group = row.group
            out += ([""] if out else []) + [style.paint("bold", clean(group))]
        word = _WORDS[row.status]
        count = f"{len(row.nodes):>{wide}} node{' ' if len(row.nodes) == 1 else 's'}"
        names = " ".join(compress(row.nodes))
        head = f"  {count}  {word:<{_wide(folded)}}  "
        lines = _wrapped(f"{names}: {row.hardware}" if row.hardware else names, len(head))
        out.append(head.replace(word, style.paint(_COLORS[row.status], word), 1) + lines[0])
        out += [" " * len(head) + line for line in lines[1:]]
        for detail in row.details:
            out += textwrap.wrap(
                clean(detail),
                WIDTH,
                initial_indent="      - ",
                subsequent_indent="        ",
                break_long_words=False,
                break_on_hyphens=False,
            )
    return "\n".join([*out, "", closing(answers, style), ""])


def closing(answers: Sequence[Answer], style: Style) -> str:
    """Return the line that counts."""
    told = [f"{number} {_WORDS[status]}" for status, number in counts(answers).items() if number]
    total = f"{len(answers)} node{'' if len(answers) == 1 else 's'}"
    word = style.paint("good" if all_ok(answers) else "bad", ", ".join(told) or "none answered")
    return f"{total}: {word}"


def markdown(answers: Sequence[Answer]) -> str:
    """Return a table for a ticket or a wiki; texts of nodes cannot mark anything up."""
    out = [f"### torchpin verify: {closing(answers, Style(color=False))}", ""]
    out += ["| group | nodes | | result | |", "|---|---|---|---|---|"]
    for row in rows(answers):
        names = " ".join(compress(row.nodes))
        told = "<br>".join(_marked(detail) for detail in row.details)
        result = _WORDS[row.status] if row.status == OK else f"**{_WORDS[row.status]}**"
        out.append(
            f"| {_marked(row.group)} | {len(row.nodes)}: {_marked(names)} | "
            f"{_marked(row.hardware)} | {result} | {told} |"
        )
    return "\n".join([*out, ""])


def json_report(answers: Sequence[Answer]) -> str:
    """Return all answers as one JSON object; its schema is ``verify-cluster.v1.json``."""
    nodes = [
        {
            **_plain(answer),
            "host": _record(answer.host),
            "work": [_record(work) for work in answer.works],
            "summary": _record(answer.summary),
        }
        for answer in answers
    ]
    made = {"version": VERSION, "nodes": nodes, "summary": _summary(answers)}
    return json.dumps(made, indent=2) + "\n"


def closing_lines(answers: Sequence[Answer]) -> str:
    """Return the JSON lines that follow those of the nodes: one a node, then one of all."""
    made: list[dict[str, Any]] = [
        {"version": VERSION, "kind": "node", **_plain(answer)} for answer in answers
    ]
    made.append({"version": VERSION, "kind": "cluster", **_summary(answers)})
    return "".join(json.dumps(one) + "\n" for one in made)


def _plain(answer: Answer) -> dict[str, Any]:
    return {
        "node": answer.node,
        "group": answer.group,
        "status": answer.status,
        "reason": answer.reason or None,
    }


def _summary(answers: Sequence[Answer]) -> dict[str, int]:
    told = counts(answers)
    return {"nodes": len(answers), **{key.replace("-", "_"): told[key] for key in told}}


def _record(record: Record | None) -> Any:
    """Return what a line of it holds."""
    return None if record is None else json.loads(to_line(record))


def _row(answer: Answer) -> Row:
    status = answer.status
    if status == SILENT:
        return Row(_NO_ANSWER, status, "", (answer.reason,), ())
    details = [*_failures(answer.works), *_surprises(answer.works)]
    if answer.host is not None:
        details += [f"differs: {text}" for text in answer.host.differences]
    if status == CUT:
        details.append(answer.reason)
    if status == INCOMPLETE:
        skipped = [work.message for work in answer.works if work.message]
        details += list(dict.fromkeys(skipped))[:1]
    return Row(answer.group or _NO_GROUP, status, _hardware(answer.host), tuple(details), ())


def _hardware(host: Host | None) -> str:
    if host is None:
        return ""
    gpus: dict[str, int] = {}
    for gpu in host.gpus:
        gpus[gpu.name] = gpus.get(gpu.name, 0) + 1
    told = [f"{number} x {name}" for name, number in gpus.items()] or ["no GPU"]
    told += [f"driver {host.driver}"] if host.driver else []
    told.append(f"torch {host.torch.version}" if host.torch is not None else "no torch")
    return ", ".join(told)


def _failures(works: Sequence[Work]) -> list[str]:
    """Return a sentence for each way to fail: which GPUs, which operations."""
    by_cause: dict[tuple[str, int | None, str], list[Work]] = {}
    for work in works:
        if work.status == FAILED:
            cause = (work.reason or "failed", work.error_code, work.message or "")
            by_cause.setdefault(cause, []).append(work)
    out = []
    for (reason, code, message), failed in by_cause.items():
        words = reason.replace("-", " ") + (f" (CUDA error {code})" if code is not None else "")
        words += f": {message}" if message else ""
        odd = any(work.agrees is False for work in failed)
        out.append(f"{_where(failed)}{_operations(failed)}: {words}{_predicted(odd, failed)}")
    return out


def _predicted(odd: bool, works: Sequence[Work]) -> str:
    if odd:
        told = dict.fromkeys(str(work.predicted) for work in works if work.agrees is False)
        return f"; predicted: {', '.join(told)}"
    return "; as predicted" if all(work.agrees for work in works) else ""


def _surprises(works: Sequence[Work]) -> list[str]:
    odd = [work for work in works if work.agrees is False and work.status == OK]
    if not odd:
        return []
    return [f"{_where(odd)}{_operations(odd)}: ran{_predicted(True, odd)}"]


def _where(works: Sequence[Work]) -> str:
    numbers = sorted({work.gpu for work in works if work.gpu is not None})
    if not numbers:
        return ""
    spans = [name.removeprefix("x") for name in compress(f"x{number}" for number in numbers)]
    return f"GPU {' '.join(spans).strip('[]').replace(',', ', ')}: "


def _operations(works: Sequence[Work]) -> str:
    names = list(dict.fromkeys(f"{work.library} {work.operation}" for work in works))
    left = len(names) - _MOST_OPERATIONS
    more = f" and {left} more" if left > 0 else ""
    return ", ".join(names[:_MOST_OPERATIONS]) + more


def _wide(folded: Sequence[Row]) -> int:
    return max(len(_WORDS[row.status]) for row in folded)


def _wrapped(words: str, used: int) -> list[str]:
    return textwrap.wrap(
        clean(words), max(WIDTH - used, 30), break_long_words=False, break_on_hyphens=False
    )


def _marked(words: str) -> str:
    return "".join(f"\\{char}" if char in _MARKS else char for char in clean(words))
