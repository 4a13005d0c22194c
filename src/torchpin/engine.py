"""Floor 5: the five stages, in the order in which a question is answered.

read → select → judge → (rules) → resolve → rewrite. ``check`` stops after the rules and attaches
the fix that ``fix`` would make; ``fix`` carries it out in memory. Writing is left to the caller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from torchpin.catalog.drivers import load_drivers
from torchpin.catalog.model import PLATFORMS
from torchpin.catalog.store import Catalog, load_catalog
from torchpin.documents.base import Document
from torchpin.documents.discover import discover
from torchpin.documents.kinds import KINDS, REQUIREMENTS, kind_of
from torchpin.documents.loader import kind_by_text, load, read_as, read_bytes
from torchpin.errors import TorchpinError, UsageError
from torchpin.fleet.model import Fleet, NodeGroup, Settings
from torchpin.judge.alike import SharedJudge
from torchpin.judge.model import Verdict
from torchpin.judging import EarlierTorch, judge_install
from torchpin.named import NamedTuple
from torchpin.rules.context import Context, Way
from torchpin.rules.ignores import Ignored, idle_ignores, ignored, unknown_codes
from torchpin.rules.model import ERROR, INFO, Finding
from torchpin.rules.registry import Rule, all_rules, merge, run_rules
from torchpin.select.model import Selection
from torchpin.ways import (
    entries,
    files_of_groups,
    installed_by_none,
    project_of,
    within,
    without_echoes,
)

ROUNDS = 8
"""How often fixing looks again; two or three are usual."""
MOST_HARMFUL = 16
"""How many fixes are left out, one after the other, since they make another error."""

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchpin.progress import Progress
    from torchpin.resolve.model import Outcome
    from torchpin.rewrite.fixes import Mark
    from torchpin.rules.model import Fix

ASKS_FOR_NOTHING = "nothing that was read asks for PyTorch or a package of its family"


class Options(NamedTuple):
    """What the command line asks for."""

    paths: tuple[str, ...]
    client: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unsafe_fixes: bool = False
    profile: str | None = None
    isolated: bool = False
    policy: str | None = None
    stdin: bytes | None = None
    stdin_filename: str | None = None
    today: str = ""
    """ISO date; ``""``: the age of the catalog is not looked at."""
    files: tuple[str, ...] = ()
    """Files that are read in place of what ``paths`` name; an overlay may hold them alone."""
    jobs: int = 1
    """Processes that read the files of a large folder; 0: as many as pay."""
    progress: Progress | None = None
    """Is told how far the work is."""


class Report(NamedTuple):
    """What ``check`` found, with all that a report may want to show."""

    findings: tuple[Finding, ...]
    selections: tuple[tuple[Selection, Verdict | None], ...]
    documents: tuple[Document, ...]
    fleet: Fleet
    catalog_date: str
    catalog_digest: str
    notes: tuple[str, ...]
    stale: bool = False
    """The catalog is older than ``catalog-max-age``."""
    cells: tuple[tuple[tuple[str, str], ...], ...] = ()
    """For each of ``selections`` its cell of a matrix (names and values), empty without one."""
    ignored: tuple[Ignored, ...] = ()
    """What is found, and not told: comments and per-file settings silence it."""


class FixResult(NamedTuple):
    """What ``fix`` would write."""

    report_before: Report
    report_after: Report
    changes: tuple[tuple[Document, bytes], ...]
    skipped: tuple[str, ...]


class Stages(NamedTuple):
    """The answers of the first three stages."""

    context: Context
    documents: tuple[Document, ...]
    failures: tuple[Finding, ...]
    """Files that could not be read at all (TP001)."""


def neutral_fleet(settings: Settings) -> Fleet:
    """Return one target a platform, for the rules that need no hardware."""
    return Fleet(
        tuple(
            NodeGroup(name, (), (), name)
            for name in PLATFORMS
            if name not in ("macos-x86_64", "windows-arm64")
        ),
        settings,
        None,
    )


def find_fleet(options: Options) -> Fleet | None:
    """Return the fleet of the profile that belongs to the paths, or None.

    Raises:
        ConfigError: the profile is wrong.
    """
    if options.profile is None and options.isolated:
        return None
    from torchpin.fleet.profile import find_profile, load_profile

    path = options.profile
    if path is None:
        first = options.stdin_filename or (options.paths[0] if options.paths else ".")
        path = find_profile(first)
    return load_profile(path) if path is not None else None


class Reader:
    """Reads documents once; an overlay stands in for files that are not on disk as given."""

    def __init__(self, overlay: dict[str, bytes] | None = None) -> None:
        self.overlay = {
            os.path.realpath(path): (path, data) for path, data in (overlay or {}).items()
        }
        self.cache: dict[str, Document] = {}

    def __call__(self, path: str) -> Document:
        """Return the document at ``path``.

        Raises:
            TorchpinError: the file cannot be read.
        """
        key = os.path.realpath(path)
        if key in self.overlay:
            if key not in self.cache:
                name, data = self.overlay[key]
                kind = kind_of(name) or kind_by_text(data)
                self.cache[key] = read_as(kind, name, data, self.read)
            return self.cache[key]
        return load(path, self.cache, self.read)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file that another one is read with.

        Raises:
            TorchpinError: the file cannot be read.
        """
        held = self.overlay.get(os.path.realpath(path)) if self.overlay else None
        return held[1] if held is not None else read_bytes(path)


def sources_of(
    settings: Settings, profile: str | None, asked: Sequence[str], known: Sequence[str]
) -> list[str]:
    """Return the Python files that the setting ``sources`` names, as far as they lie in a folder
    that was asked for."""
    if not settings.sources:
        return []
    from torchpin.documents.discover import python_files

    base = os.path.dirname(profile) if profile is not None else ""
    return within(
        asked,
        python_files([os.path.normpath(os.path.join(base, one)) for one in settings.sources]),
        known,
    )


def read(
    options: Options,
    reader: Reader,
    fleet: Fleet | None = None,
) -> tuple[tuple[Document, ...], tuple[Finding, ...], tuple[str, ...]]:
    """Stage 1. Return the documents that the paths name, and what could not be read.

    Raises:
        UsageError: a path does not exist.
    """
    from torchpin.documents.base import Span
    from torchpin.rules.files import UnreadableFile

    rule = UnreadableFile()
    failures: list[Finding] = []
    notes: list[str] = []
    documents: list[Document] = []
    paths: Sequence[str]
    if options.stdin is not None:
        paths = (options.stdin_filename or "<stdin>",)
    elif options.files:
        paths = options.files
    else:
        found = discover(options.paths or (".",), KINDS)
        paths = [file.path for file in found.files]
        notes += found.notes()
        asked = options.paths or (".",)
        if fleet is not None:
            paths += sources_of(fleet.settings, fleet.path, asked, paths)
            paths += files_of_groups(fleet, asked, paths)
        if not paths:
            notes.append(
                "no dependency files found: torchpin reads requirements*.txt, pyproject.toml, "
                "lock files, and files that install PyTorch (Dockerfiles, CI files, scripts …)"
            )
    if options.jobs != 1 and len(paths) > 1 and not reader.overlay:
        from torchpin.parallel import jobs_for, read_ahead

        jobs = jobs_for(options.jobs, len(paths))
        if jobs > 1:
            read_ahead(paths, reader.cache, jobs)
    for path in counted(options, "reading files", paths):
        try:
            documents.append(reader(path))
        except UsageError:
            raise
        except TorchpinError as error:
            failures.append(
                Finding(
                    rule.code,
                    rule.name,
                    rule.severity,
                    None,
                    error.path or path,
                    Span(0, 0),
                    error.message,
                )
            )
    return tuple(documents), tuple(failures), tuple(notes)


_T = TypeVar("_T")


def counted(options: Options, what: str, items: Iterable[_T]) -> Iterable[_T]:
    """Return ``items``; where the progress is shown, it is told of each."""
    if options.progress is None:
        return items
    from torchpin.progress import counting

    return counting(options.progress, what, items)


def look(options: Options, fleet: Fleet | None, reader: Reader) -> tuple[Stages, tuple[str, ...]]:
    """Run the first three stages."""
    declared = fleet is not None and bool(fleet.groups)
    settings = fleet.settings if fleet is not None else Settings()
    used = fleet if fleet is not None and declared else neutral_fleet(settings)
    documents, failures, notes = read(options, reader, fleet)
    catalog = load_catalog(isolated=options.isolated)
    notes = (*notes, *catalog.notes)
    drivers = load_drivers()
    judge = SharedJudge(drivers)
    ways: list[Way] = []
    earlier = EarlierTorch()
    seen: dict[str, Document] = {}
    ins = entries(documents, options.client, used, reader)
    for entry in counted(options, "looking at what would be installed", ins):
        for document in entry.documents:
            seen.setdefault(document.path, document)
        ways.append(
            Way(
                entry.install,
                project_of(entry.install.root),
                judge_install(
                    entry.install,
                    entry.targets,
                    catalog,
                    judge,
                    declared,
                    entry.before,
                    earlier if entry.part is not None else None,
                ),
                entry.bound,
                settings.indexes,
                entry.indexes,
                entry.part,
                entry.before,
            )
        )
    ways = without_echoes(ways)
    for document in documents:
        seen.setdefault(document.path, document)
    context = Context(tuple(ways), used, declared, catalog, drivers, tuple(seen.values()))
    return Stages(context, tuple(seen.values()), failures), notes


def chosen_rules(
    options: Options, settings: Settings, *, projects: bool = True
) -> tuple[Rule, ...]:
    """Return the rules that ``--select`` and ``--ignore`` leave.

    Raises:
        UsageError: a code fits no rule.
    """
    wanted = options.select or settings.select
    unwanted = (*options.ignore, *settings.ignore)
    rules = all_rules(projects=projects or bool(wanted or unwanted))
    for code in (*wanted, *unwanted):
        if code != "ALL" and not any(rule.code.startswith(code) for rule in rules):
            raise UsageError(
                f"unknown rule code {code!r}", hint="`torchpin explain` lists all rules"
            )
    for rule in rules:
        rule.asked = any(rule.code.startswith(code) for code in wanted)
    return tuple(
        rule
        for rule in rules
        if (not wanted or any(code == "ALL" or rule.code.startswith(code) for code in wanted))
        and not any(code == "ALL" or rule.code.startswith(code) for code in unwanted)
    )


def orphans(context: Context, rules: Sequence[Rule]) -> Iterable[Finding]:
    """Return why files cannot be read that are no way in because of that."""
    from torchpin.rules.files import UnreadableFile

    for rule in rules:
        if isinstance(rule, UnreadableFile):
            yield from rule.orphans(context)


def old_catalog(catalog: Catalog, options: Options, settings: Settings) -> str:
    """Return what to say if the catalog is older than the settings allow, else ``""``."""
    from torchpin.catalog.staleness import is_stale, sentence

    if not options.today or not is_stale(catalog.date, options.today, settings.catalog_max_age):
        return ""
    return sentence(catalog.date, options.today)


def report_of(
    stages: Stages,
    options: Options,
    notes: tuple[str, ...],
    fixes: bool,
    only: frozenset[str] | None = None,
) -> Report:
    """Run the rules and gather the report; ``only``: the paths whose findings get fixes."""
    context = stages.context
    settings = context.fleet.settings
    projects = any(way.install.root.kind != REQUIREMENTS for way in context.ways) or any(
        one.conda is not None or one.path.endswith(".py") for one in stages.documents
    )
    rules = chosen_rules(options, settings, projects=projects)
    findings = merge((*run_rules(context, rules), *orphans(context, rules)))
    if fixes and any(finding.severity != INFO for finding in findings):
        from torchpin.rewrite.fixes import attach_fixes

        policy = options.policy or settings.policy
        findings = attach_fixes(
            findings, context, policy, only, lambda all_: counted(options, "planning fixes", all_)
        )
    told = merge((*stages.failures, *findings))
    if context.declared:
        told = (*told, *idle_ignores(stages.documents, rules, told, options.paths or (".",)))
    per_file = (*options.per_file_ignores, *settings.per_file_ignores)
    silenced = {one: found for one, each in enumerate(told) if (found := ignored(each, per_file))}
    findings = tuple(each for one, each in enumerate(told) if one not in silenced)
    rows = tuple((way, one) for way in context.ways for some in way.sets for one in some.judged)
    selections = tuple(
        (one.selection, one.verdict if one.would_be is None else None) for _, one in rows
    )
    cells = tuple(way.part.cell if way.part is not None else () for way, _ in rows)
    idle = installed_by_none(stages.documents, context.ways, context.fleet)
    notes = (*notes, *unknown_codes(stages.documents), *idle)
    if stages.documents and not selections and not findings:
        notes = (*notes, *(() if idle else (ASKS_FOR_NOTHING,)))
    elif not context.declared and stages.documents:
        notes = (
            *notes,
            "no fleet is declared: hardware is not judged "
            "(run `torchpin init`, or use --gpu, --driver and --python)",
        )
    old = old_catalog(context.catalog, options, settings)
    if old:
        notes = (*notes, old)
    return Report(
        findings,
        selections,
        stages.documents,
        context.fleet,
        context.catalog.date,
        context.catalog.digest,
        notes,
        bool(old),
        cells,
        tuple(silenced.values()),
    )


def check(options: Options, fleet: Fleet | None, overlay: dict[str, bytes] | None = None) -> Report:
    """Say what will break, and why.

    Args:
        options: what to look at.
        fleet: the declared fleet; None: only the rules that need none.
        overlay: bytes that stand in for files on disk, by path.

    Raises:
        UsageError: a path or a rule code does not exist.
    """
    reader = Reader(overlay or stdin_overlay(options))
    stages, notes = look(options, fleet, reader)
    return report_of(stages, options, notes, fixes=True)


def resolve_paths(options: Options, fleet: Fleet | None) -> Outcome:
    """Return the plan for all that the paths ask for, on the whole fleet.

    Exact pins may move, ranges bind; no edit is made. Node groups that name files of their own are
    asked for what these say alone.

    Raises:
        UsageError: a path does not exist, or no fleet is declared.
    """
    from torchpin.resolve.model import Origin, Outcome, Request, Want
    from torchpin.resolve.solve import solve
    from torchpin.rewrite.request import current_channel, resolved_family, wants_of

    if fleet is None or not fleet.groups:
        raise UsageError(
            "resolve needs a fleet", hint="write torchpin.toml, or use --gpu, --driver and --python"
        )
    stages, _ = look(options, fleet, Reader(stdin_overlay(options)))
    context = stages.context
    outcomes: list[Outcome] = []
    for groups, ways in parts_of(context.ways, fleet):
        wants: dict[Want, None] = {}
        channel: str | None = None
        for way in ways:
            family = [*resolved_family(way)]
            wants.update(dict.fromkeys(wants_of(way, context, soften=False, family=family)))
            channel = channel or current_channel(way)
        if not wants:
            wants[Want("torch", "", Origin("<command line>", 1, "torch"))] = None
        policy = options.policy or fleet.settings.policy
        targets = tuple(one for one in fleet.targets() if one.group.name in groups)
        outcomes.append(solve(Request(tuple(wants), targets, policy, channel), context.catalog))
    if len(outcomes) == 1:
        return outcomes[0]
    nearer = any(one.alternative for one in outcomes)
    return Outcome(
        tuple(plan for one in outcomes for plan in one.plans),
        tuple(unserved for one in outcomes for unserved in one.unserved),
        tuple(conflict for one in outcomes for conflict in one.explanation),
        tuple(plan for one in outcomes for plan in one.alternative or one.plans) if nearer else (),
    )


def parts_of(ways: Sequence[Way], fleet: Fleet) -> list[tuple[frozenset[str], tuple[Way, ...]]]:
    """Return the parts of a fleet that install the same: names of groups, and their ways in.

    The whole fleet is one part, unless groups name files of their own.
    """
    asking = [way for way in ways if way.has_family]
    if not any(group.files for group in fleet.groups):
        return [(frozenset(group.name for group in fleet.groups), tuple(asking))]
    parts: dict[tuple[int, ...], list[str]] = {}
    for group in fleet.groups:
        mine = tuple(
            number
            for number, way in enumerate(asking)
            if any(one.target.group.name == group.name for one in way.sets)
        )
        parts.setdefault(mine, []).append(group.name)
    return [
        (frozenset(names), tuple(asking[number] for number in mine))
        for mine, names in parts.items()
    ]


def stdin_overlay(options: Options) -> dict[str, bytes]:
    """Return standard input as a file."""
    if options.stdin is None:
        return {}
    return {options.stdin_filename or "<stdin>": options.stdin}


def fix(
    options: Options,
    fleet: Fleet | None,
    overlay: Mapping[str, bytes] | None = None,
    only: frozenset[str] | None = None,
    mended: Callable[[tuple[Finding, ...]], tuple[Finding, ...]] | None = None,
) -> FixResult:
    """Mend what can be mended, in memory.

    Fixes are made until none is left (a fix may uncover the next), at most ``ROUNDS`` rounds; a
    text that a file had before ends the run. A fix after which there is an error that was not there
    before is left out: it is told as advice.

    Args:
        options: what to look at.
        fleet: the declared fleet, as ``check`` takes it.
        overlay: bytes that stand in for files on disk, by path.
        only: the paths whose findings are mended (their fixes may change other files too); None:
            all.
        mended: tells which of the findings of a report are to be mended, as those that a baseline
            does not hold; None: all. The reports hold the others, too.

    Raises:
        UsageError: a path or a rule code does not exist.
    """
    from torchpin.rewrite.fixes import mark_of

    given = dict(stdin_overlay(options) if overlay is None else overlay)
    before = check(options, fleet, given)
    harmful: dict[Mark, str] = {}
    while True:
        result, rounds = _mend(options, fleet, given, before, only, mended, harmful)
        worse = new_error(before.findings, result.report_after.findings) if rounds else None
        if worse is None or len(harmful) == MOST_HARMFUL:
            break
        # What was made last may be what a new error comes from; the rounds end, as each of them
        # leaves out one fix more.
        last = cause_of(worse, rounds, harmful)
        harmful[mark_of(last)] = f"then {worse.code}: {worse.message}"
    if not harmful:
        return result
    notes = (
        f"{path}: not mended ({message}): {why}"
        for (message, texts), why in harmful.items()
        for path in dict.fromkeys(path for path, _ in texts)
    )
    after = result.report_after
    return result._replace(
        report_after=after._replace(findings=without_harm(after.findings, harmful)),
        skipped=(*result.skipped, *notes),
    )


def new_error(before: Iterable[Finding], after: Iterable[Finding]) -> Finding | None:
    """Return an error about a package that a file did not have before it was mended.

    What a machine cannot run (TP2xx) or an open pin floats to (TP5xx) is of another build once a
    declaration counts that did not before: such a fix uncovers it and is no harm.
    """
    had = {(one.path, one.code, one.package) for one in before if one.severity == ERROR}
    for one in after:
        if one.code.startswith(("TP2", "TP5")):
            continue
        if one.severity == ERROR and (one.path, one.code, one.package) not in had:
            return one
    return None


def cause_of(worse: Finding, rounds: Sequence[Fix], harmful: Collection[Mark]) -> Fix:
    """Return the fix that an error is put down to: the last one that wrote what it stands at into
    its file, else its package, else anything there, else the last one."""
    from torchpin.rewrite.fixes import mark_of

    left = [one for one in rounds if mark_of(one) not in harmful]
    there = [one for one in left if any(some.document.path == worse.path for some in one.edits)]

    def writing(text: str) -> list[Fix]:
        return [
            one
            for one in there
            if text and any(text in edit.text for some in one.edits for edit in some.edits)
        ]

    said = worse.document.text[worse.span.start : worse.span.end] if worse.document else ""
    return (writing(said) or writing(worse.package or "") or there or left)[-1]


def without_harm(findings: Iterable[Finding], harmful: Mapping[Mark, str]) -> tuple[Finding, ...]:
    """Return findings whose fixes would make another error with advice in their place."""
    from torchpin.rewrite.fixes import mark_of
    from torchpin.rules.model import DISPLAY, Fix

    return tuple(
        one._replace(fix=Fix(DISPLAY, f"{one.fix.message}; not written: {why}"))
        if one.fix is not None and (why := harmful.get(mark_of(one.fix)))
        else one
        for one in findings
    )


def _mend(
    options: Options,
    fleet: Fleet | None,
    given: Mapping[str, bytes],
    before: Report,
    only: frozenset[str] | None,
    mended: Callable[[tuple[Finding, ...]], tuple[Finding, ...]] | None,
    harmful: Collection[Mark],
) -> tuple[FixResult, list[Fix]]:
    """Return what ``fix`` would write without some fixes, and the fixes in the order made."""
    from torchpin.rewrite.fixes import apply_fixes

    overlay = dict(given)
    report = before
    made: list[Fix] = []
    originals: dict[str, Document] = {}
    skipped: dict[str, None] = {}
    seen: set[tuple[str, bytes]] = set()
    for _ in range(ROUNDS):
        told = report.findings if mended is None else mended(report.findings)
        findings = [one for one in told if only is None or one.path in only]
        changed, refused = apply_fixes(
            findings, unsafe=options.unsafe_fixes, harmful=harmful, made=made
        )
        skipped.update(dict.fromkeys(refused))
        seen.update((document.path, document.encode(document.text)) for document, _ in changed)
        changed = [one for one in changed if (one[0].path, one[1]) not in seen]
        if not changed:
            break
        for document, data in changed:
            originals.setdefault(document.path, document)
            overlay[document.path] = data
        report = check(options, fleet, overlay)
    changes = tuple(
        (document, overlay[path])
        for path, document in sorted(originals.items())
        if overlay[path] != document.encode(document.text)
    )
    return FixResult(before, report, changes, tuple(skipped)), made
