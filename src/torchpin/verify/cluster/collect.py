"""Put the lines of many nodes together, whatever else stands between them; pure.

Lines come from ``srun``, from files, or from ``kubectl logs``, with prefixes, time stamps and
lines of others. What is not from ``torchpin verify`` is passed over, and the last of it is kept: it
often tells why an answer is missing.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import Any

from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.report.style import clean, redact
from torchpin.verify.cluster.model import Answer, Expected
from torchpin.verify.cluster.pods import ITS_POD, Pod
from torchpin.verify.lines import LineError, read_line
from torchpin.verify.model import OK, Host, Record, Summary, Work

LONGEST = 1024 * 1024
"""Bytes of a line that is read; what is longer is from someone else."""
_START = regex(r'\{\s*"version"\s*:')
_POD = regex(r"\[pod/([^/\]\s]{1,253})/[^\]\s]{1,253}\] ?")
_MOST_DAMAGED = 8
_MOST_WORKS = 10_000
_SHOWN = 300
_KEPT = 3


class Lost(NamedTuple):
    """What a report of torchpin says of a node that gave no answer, or half of one."""

    node: str
    reason: str


class _Node:
    def __init__(self) -> None:
        self.host: Host | None = None
        self.works: list[Work] = []
        self.summary: Summary | None = None
        self.reason = ""
        self.damaged = ""
        self.again = False

    def take(self, record: Record) -> None:
        if isinstance(record, Host):
            self.again = self.again or self.host is not None
            self.host, self.works, self.summary, self.damaged = record, [], None, ""
        elif isinstance(record, Summary):
            self.summary = record
        elif len(self.works) < _MOST_WORKS:
            self.works.append(record)

    def answer(self, name: str) -> Answer:
        made = Answer(name, self.host, tuple(self.works), self.summary, self.reason)
        if self.summary is None and not self.reason:
            made = made._replace(reason=self.damaged or "its output ends before the summary")
        return made


class Collector:
    """Takes lines as they come and tells what the nodes answered."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._last: dict[str, str] = {}
        """Source → the node of its last record."""
        self._foreign: dict[str, deque[str]] = {}
        self._unplaced: list[Pod] = []

    def feed(self, line: str, source: str = "", node: str | None = None) -> tuple[Record, ...]:
        """Take one line and return the records in it.

        Args:
            line: as it comes.
            source: where it comes from; lines of one source come in order.
            node: the node that wrote it; None: the records tell.
        """
        pod = _POD.match(line)
        if pod is not None:
            source = f"pod {pod[1]}"
            line = line[pod.end() :]
        found, problem = records(line)
        taken: list[Record] = []
        for record in found:
            if isinstance(record, Lost):
                if not self.ended(record.node):
                    self.lost(record.node, record.reason)
                continue
            taken.append(record)
            self._last[source] = node or record.node
            self._of(node or record.node).take(record)
        if node is not None:
            self._last.setdefault(source, node)
        told = problem or ("" if found else line.strip())
        if told:
            self._foreign.setdefault(source, deque(maxlen=_KEPT)).append(told[:_SHOWN])
        if problem and source in self._last:
            self._of(self._last[source]).damaged = problem
        return tuple(taken)

    def place(self, pod: Pod) -> None:
        """Say on which node a pod is, and why it has not printed all.

        The reason counts if the node has not answered to the end.
        """
        if not pod.node:
            self._unplaced.append(pod)
            return
        source = f"pod {pod.name}"
        last = "" if source in self._last else self.last_words(source)
        self._last.setdefault(source, pod.node)
        if not self.ended(pod.node):
            told = f"{pod.reason}; the last that it printed: {last}" if last else pod.reason
            self.lost(pod.node, told)

    def lost(self, node: str, reason: str) -> None:
        """Say why a node gave no answer; what it has answered stays."""
        self._of(node).reason = clean(reason)

    def ended(self, node: str) -> bool:
        """Tell whether a node has answered to the end."""
        return node in self._nodes and self._nodes[node].summary is not None

    def is_well(self, node: str) -> bool:
        """Tell whether a node has answered that all is well."""
        return node in self._nodes and self._nodes[node].answer(node).status == OK

    def begun(self, node: str) -> bool:
        """Tell whether a node has begun to answer."""
        return node in self._nodes and self._nodes[node].host is not None

    def last_words(self, source: str) -> str:
        """Return the last line of a source that is none of ours, or ``""``."""
        kept = self._foreign.get(source)
        return clean(kept[-1]) if kept else ""

    def answers(self, expected: Iterable[Expected] = ()) -> tuple[Answer, ...]:
        """Return the answers in the order of the nodes' names, with the nodes that gave none.

        Pods that printed something else only are named too: their node is not known. A pod that
        is on no node stands for the nodes without an answer that it may get to.
        """
        lost: dict[str, str] = {}
        named: set[str] = set()
        for one in expected:
            # A host calls itself n01, a list of nodes may call it n01.example.com.
            if one.name in self._nodes or one.name.partition(".")[0] in self._nodes:
                continue
            reason = one.reason
            if not reason:
                here = [pod for pod in self._unplaced if pod.may_get_to(one.hostname or one.name)]
                named.update(pod.name for pod in here)
                reason = f"no pod is on it; {_waits(here[0])}" if here else ""
            lost[one.name] = reason or "no line of it was found"
        for pod in self._unplaced:
            if pod.name not in named:
                lost[f"pod {pod.name}"] = pod.reason
        for source in self._foreign:
            if source.startswith("pod ") and source not in {*self._last, *self._nodes}:
                lost[source] = f"it printed no result; its last line: {self.last_words(source)}"
        found = {name: node.answer(name) for name, node in self._nodes.items()}
        found.update({name: Answer(name, None, (), None, clean(lost[name])) for name in lost})
        return tuple(found[name] for name in sorted(found, key=natural_order))

    def notes(self) -> tuple[str, ...]:
        """Return what a person should know of the lines."""
        twice = [name for name, node in self._nodes.items() if node.again]
        if not twice:
            return ()
        from torchpin.fleet.importers.hosts import compress

        return (f"answered more than once, the last answer counts: {' '.join(compress(twice))}",)

    def _of(self, name: str) -> _Node:
        return self._nodes.setdefault(name, _Node())


def _waits(pod: Pod) -> str:
    return f"{pod.name} is {pod.reason.removeprefix(ITS_POD)}"


def records(line: str) -> tuple[list[Record | Lost], str]:
    """Return the records in a line, and what is wrong with one that is damaged or too new."""
    found: list[Record | Lost] = []
    problem = ""
    place = damaged = 0
    decoder = json.JSONDecoder()
    if len(line) > LONGEST:
        return [], f"a line of more than {LONGEST} characters"
    while damaged < _MOST_DAMAGED:
        start = _START.search(line, place)
        if start is None:
            break
        try:
            value, place = decoder.raw_decode(line, start.start())
        except (ValueError, RecursionError):
            problem = "its output was cut off in the middle of a line"
            damaged += 1
            place = start.end()
            continue
        if value.get("kind") in ("node", "cluster"):  # of a report that torchpin wrote
            node, reason = value.get("node"), value.get("reason")
            if isinstance(node, str) and isinstance(reason, str):
                found.append(Lost(redact(node), reason))
            continue
        try:
            told = line[start.start() : place]
            if any(mark in told for mark in ("@", "://", "\\")):  # else there is nothing to hide
                told = json.dumps(redacted(value))
            found.append(read_line(told))
        except LineError as error:
            problem = error.message
            damaged += 1
    return found, problem


def redacted(value: Any) -> Any:
    """Return a JSON value without credentials in its texts."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted(one) for one in value]
    if isinstance(value, dict):
        return {redact(key): redacted(one) for key, one in value.items()}
    return value


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts ``n2`` before ``n10``."""
    out = []
    for part in _PARTS.findall(name):
        number = part.isdecimal() and len(part) < 19
        out.append((0, int(part), part) if number else (1, 0, part))
    return tuple(out)


_PARTS = regex(r"[0-9]+|[^0-9]+")
