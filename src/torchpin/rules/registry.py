"""The rules, their register, and how their findings are gathered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from torchpin.documents.base import Document, Span
from torchpin.evidence import ORDER, PROOF
from torchpin.fleet.model import Target
from torchpin.rules.context import Context, Way
from torchpin.rules.model import ERROR, INFO, SEVERITIES, Because, Finding, Related


class Rule:
    """Base of all rules: a stable code, a name, a severity, a docstring, and ``check``."""

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[str]

    asked = False
    """The user selected the rule, or its family, by its code."""

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield every place where the rule does not hold in one way in."""
        raise NotImplementedError

    def check_document(self, document: Document, context: Context) -> Iterator[Finding]:
        """Yield every place where the rule does not hold in a file as a whole.

        Most rules look at ways in, and yield nothing here.
        """
        yield from ()

    def finding(
        self,
        document: Document,
        span: Span,
        message: str,
        *,
        severity: str | None = None,
        package: str | None = None,
        target: Target | None = None,
        because: Iterable[Because] = (),
        related: Iterable[Related] = (),
    ) -> Finding:
        """Return a finding of this rule at a place."""
        python = None
        group = None
        if target is not None and target.group.name:
            group = target.group.name
            python = str(target.python) if target.python is not None else None
        return Finding(
            self.code,
            self.name,
            severity or self.severity,
            document,
            document.path,
            span,
            message,
            package,
            group,
            python,
            tuple(because),
            tuple(related),
        )

    @classmethod
    def summary(cls) -> str:
        """Return the first sentence of the docstring."""
        return (cls.__doc__ or "").strip().split("\n", 1)[0]


def all_rules(*, projects: bool = True) -> tuple[Rule, ...]:
    """Return one instance of every rule, by code; without those on projects where none is read."""
    from torchpin.rules import (  # imported here: a rule module imports this one
        companions,
        dead_markers,
        disagree,
        drift,
        exists,
        family,
        files,
        hardware,
        horizon,
        ignores,
        index_order,
        indexes,
        names,
        withdrawn,
    )

    rules: list[Rule] = []
    modules = [
        *(files, ignores, exists, withdrawn, names, hardware, family, companions),
        *(indexes, index_order, dead_markers, drift, disagree, horizon),
    ]
    if projects:
        from torchpin.rules import (
            conda,
            containers,
            lock_places,
            locks,
            project_markers,
            project_routes,
            sources,
        )
        from torchpin.rules import projects as on_projects

        modules += [on_projects, project_markers, project_routes, locks, lock_places]
        modules += [conda, containers, sources]
    for module in modules:
        rules += [rule() for rule in module.RULES]
    return tuple(sorted(rules, key=lambda rule: rule.code))


def _join(first: str | None, second: str | None) -> str | None:
    parts = [part for text in (first, second) if text for part in text.split(", ")]
    return ", ".join(dict.fromkeys(parts)) or None


def grounds_once(grounds: Iterable[Because]) -> tuple[Because, ...]:
    """Return grounds, each text once and as well known as it is (other wheels say the same)."""
    seen: dict[str, Because] = {}
    for ground in grounds:
        have = seen.get(ground.text)
        if have is None or ORDER.index(ground.evidence) < ORDER.index(have.evidence):
            seen[ground.text] = ground
    return tuple(seen.values())


def merge(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with those that say the same of the same place made one.

    Groups, Pythons, grounds and related places are united; the gravest severity stays.
    """
    merged: dict[tuple[str, str, Span, str], Finding] = {}
    for finding in findings:
        key = (finding.code, finding.path, finding.span, finding.message)
        have = merged.get(key)
        if have is None:
            merged[key] = finding._replace(because=grounds_once(finding.because))
            continue
        merged[key] = have._replace(
            severity=max(have.severity, finding.severity, key=SEVERITIES.index),
            group=_join(have.group, finding.group),
            python=_join(have.python, finding.python),
            because=grounds_once(have.because + finding.because),
            related=tuple(dict.fromkeys(have.related + finding.related)),
            fix=have.fix or finding.fix,
            # What holds without a matrix holds in all of its cells.
            cells=tuple(dict.fromkeys(have.cells + finding.cells))
            if have.cells and finding.cells
            else (),
        )
    return tuple(
        sorted(merged.values(), key=lambda one: (one.path, one.span, one.code, one.message))
    )


def proved_only(finding: Finding) -> Finding:
    """Return an error without the grounds that are only inferred, where others are left.

    They may come from another target, of which the same is less certain, or add what else to take.
    """
    if finding.severity != ERROR:
        return finding
    proved = tuple(ground for ground in finding.because if ground.evidence in PROOF)
    return finding._replace(because=proved) if proved else finding


def run_rules(context: Context, rules: Iterable[Rule]) -> tuple[Finding, ...]:
    """Return all findings of ``rules`` on every way of ``context``, merged and in file order.

    Without a fleet the platforms stand in for it: what several say of one place in other words
    (other builds, other versions) is told as the first of them says it.
    """
    found: list[Finding] = []
    for rule in rules:
        for way in context.ways:
            speaks: dict[tuple[str, Span, str | None], str] = {}
            for finding in rule.check(way, context):
                if way.part is not None:
                    from torchpin.rules.containers import of_part

                    finding = of_part(finding, way.part)
                    if way.part.pythons and context.declared:
                        from torchpin.rules.environments import of_environment

                        meant = of_environment(finding, way.part, context.fleet)
                        if meant is None:
                            continue
                        finding = meant
                if not context.declared and finding.group:
                    key = (finding.path, finding.span, finding.package)
                    if speaks.setdefault(key, finding.group) != finding.group:
                        continue
                    finding = finding._replace(group=None, python=None)
                found.append(finding)
    for rule in rules:
        if type(rule).check_document is not Rule.check_document:
            for document in context.documents:
                found += rule.check_document(document, context)
    merged = tuple(map(proved_only, merge(found)))
    if any(finding.cells for finding in merged):
        from torchpin.rules.matrix import told_apart

        return told_apart(merged, context.ways)
    return merged


def is_info(finding: Finding) -> bool:
    """True if the finding only informs."""
    return finding.severity == INFO
