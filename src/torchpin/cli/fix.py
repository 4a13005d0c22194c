"""``torchpin fix``: mend files, print what would change, or filter standard input."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.cli.arguments import Arguments
from torchpin.cli.check import PROSE, rendered
from torchpin.cli.common import exit_code, fleet_of, notes_of, options_of, view_of, watched
from torchpin.cli.parser import (
    Parser,
    add_baseline,
    add_fleet,
    add_output,
    add_paths,
    add_policy,
    add_rules,
)
from torchpin.cli.terminal import folded, note, out, style, tell
from torchpin.documents.base import Document
from torchpin.errors import TorchpinError, UsageError
from torchpin.report.model import has_edits, plural
from torchpin.report.style import clean

if TYPE_CHECKING:  # --help and usage errors need no engine
    from torchpin.engine import FixResult, Options, Report
    from torchpin.report.baseline import Baseline
    from torchpin.rewrite.relock import Relock
    from torchpin.rules.model import Finding


def parser() -> Parser:
    """Return the parser of ``fix``."""
    made = Parser(
        "fix",
        "Mend pins and index URLs; no other byte. Files are replaced all or none.\n"
        "With - the text goes to standard output, the report to standard error.",
    )
    add_paths(made, what="fix")
    made.add_argument("--diff", action="store_true", help="print the changes; write nothing")
    made.add_argument(
        "--unsafe-fixes",
        action="store_true",
        help="also fixes that move torch's version, put a GPU build\n"
        "in the place of a CPU build, or rest on a guess",
    )
    made.add_argument(
        "--prove",
        action="store_true",
        help="let pip or uv resolve, or uv, Poetry or PDM lock, what\n"
        "is mended, in a copy, before it is written (network)",
    )
    made.add_argument(
        "--relock",
        action="store_true",
        help="let uv, Poetry, PDM or pipenv make locks anew; if that\n"
        "fails, nothing is changed (network)",
    )
    made.add_argument(
        "--statistics", action="store_true", help="how often each rule still fires, instead"
    )
    add_policy(made)
    add_fleet(made)
    add_rules(made)
    add_baseline(made.add_argument_group("which findings are mended"))
    add_output(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``fix`` and return its exit code."""
    return run(parser().parse(argv))


def run(args: Arguments) -> int:
    """Run ``fix`` with parsed arguments (``check --diff`` too) and return its exit code."""
    from torchpin import engine

    options = options_of(args)
    if args.diff and args.output_format not in (*PROSE, "concise"):
        raise UsageError("--diff is a patch; it has no other --output-format")
    if args.relock and (args.diff or options.stdin is not None):
        raise UsageError("--relock runs the owner of the lock: not with --diff or -")
    fleet = fleet_of(args, options)
    from torchpin.cli.narrow import baseline_of

    known = baseline_of(args, fleet.settings.baseline if fleet is not None else "")
    mended = known.new if known is not None else None
    found = watched(options, args, lambda asked: engine.fix(asked, fleet, mended=mended))
    result = spared(found, known)
    if args.prove and result.changes:
        from torchpin.cli.prove import prove

        prove(result, options)
    if args.diff:
        _notes(found.report_before, known, args)
        return _diff(result, args)
    if options.stdin is not None:
        _print_fixed(result, options)
        report = rendered(view_of(result.report_after, unsafe_fixes=args.unsafe_fixes), args)
        sys.stderr.write(folded(report, sys.stderr) if args.output_format in PROSE else report)
    else:
        from torchpin.rewrite.apply import write_all

        changes = [(document.path, encoded(document), data) for document, data in result.changes]
        locks = stale_locks(result) if args.relock else []
        if locks:
            from torchpin.rewrite.relock import relock

            relock(changes, locks)
            found = found._replace(report_after=engine.check(options, fleet))
            result = spared(found, known)
        else:
            write_all(changes)
        _report(result, args)
        if not args.quiet:
            for lock in locks:
                note(f"made {clean(lock.lock)} anew: {' '.join(lock.command)}")
            if args.relock and not locks:
                note(no_lock(result))
    _notes(found.report_after, known, args)
    _skipped(result, args)
    notes_of(result.report_after, quiet=args.quiet)
    return exit_code(result.report_after.findings, args)


def spared(found: FixResult, known: Baseline | None) -> FixResult:
    """Return a result without the findings that a baseline holds."""
    if known is None:
        return found
    before, after = found.report_before, found.report_after
    return found._replace(
        report_before=before._replace(findings=known.new(before.findings)),
        report_after=after._replace(findings=known.new(after.findings)),
    )


def _notes(report: Report, known: Baseline | None, args: Arguments) -> None:
    """Tell how many findings a baseline holds back, and how many of it are mended."""
    if known is None or args.quiet:
        return
    from torchpin.cli.narrow import mended, waiting

    found = known.split(report.findings)
    for text in (waiting(len(found.known), known), mended(found, known, args)):
        if text:
            note(clean(text))


def stale_locks(result: FixResult) -> list[Relock]:
    """Return the locks to make anew: their manifest was mended, or is right and they are not."""
    from torchpin.rewrite.relock import Relock, command_of
    from torchpin.rules.model import DISPLAY

    concerned = {document.path for document, _ in result.changes}
    concerned |= {
        finding.path
        for finding in result.report_after.findings
        if finding.fix is not None and finding.fix.command and finding.fix.safety == DISPLAY
    }
    found: list[Relock] = []
    for document in result.report_after.documents:
        if document.kind == "Pipfile.lock":
            stale = any(
                one.code == "TP503" and one.path == document.path
                for one in result.report_after.findings
            )
            if stale or concerned & {document.path, document.path.removesuffix(".lock")}:
                found.append(Relock(document.path, ("pipenv", "lock")))
            continue
        if document.lock is None or document.lock.tool not in ("uv", "poetry", "pdm"):
            continue
        if document.path.endswith(".py.lock"):  # of one script
            script = document.path.removesuffix(".lock")
            if concerned & {document.path, script}:
                asked = [one for one in result.report_after.documents if one.path == script]
                names = {one.name for each in asked for one in each.declarations}
                found.append(Relock(document.path, command_of(document, names)))
            continue
        folder = os.path.dirname(os.path.abspath(document.path))
        mine = [
            one
            for one in result.report_after.documents
            if one.project is not None and is_below(one.path, folder)
        ]
        if any(is_below(path, folder) for path in concerned if path_of_project(path)):
            declared = {one.name for each in mine for one in each.declarations}
            found.append(Relock(document.path, command_of(document, declared)))
    return found


def no_lock(result: FixResult) -> str:
    """Return why ``--relock`` has made no lock anew."""
    documents = result.report_after.documents
    if any(one.lock is not None or one.kind == "Pipfile.lock" for one in documents):
        return "--relock: no lock has to be made anew"
    makers = {"uv": "uv lock", "poetry": "poetry lock", "pdm": "pdm lock"}
    commands = [makers.get(one.project.tool, "") for one in documents if one.project is not None]
    commands += ["pipenv lock" for one in documents if one.kind == "Pipfile"]
    named = " and ".join(f"`{one}`" for one in dict.fromkeys(commands) if one)
    return "--relock: there is no lock here" + (f"; {named} makes one" if named else "")


def path_of_project(path: str) -> bool:
    """True for a project file or a lock; a script and its lock are no project."""
    from torchpin.documents.kinds import PART_KINDS, REQUIREMENTS, kind_of

    if path.endswith(".py.lock"):
        return False
    return kind_of(path) not in (None, REQUIREMENTS, "script", "pylock", *PART_KINDS)


def is_below(path: str, folder: str) -> bool:
    """True if a file stands in a folder or below it."""
    return os.path.abspath(path).startswith(os.path.join(folder, ""))


def encoded(document: Document) -> bytes:
    """Return the bytes that ``document`` was read from."""
    return document.encode(document.text)


def decoded(document: Document, data: bytes) -> str:
    """Return the text of ``data``, which are new bytes of ``document``."""
    return data[len(document.bom) :].decode(document.encoding)


def _report(result: FixResult, args: Arguments) -> None:
    after = view_of(result.report_after, unsafe_fixes=args.unsafe_fixes)
    (tell if args.output_format in PROSE else out)(rendered(after, args))
    if args.quiet or args.output_format not in (*PROSE, "concise"):
        return
    if not result.changes:
        if result.report_after.documents:
            out("Nothing to change.\n")
        return
    names = ", ".join(clean(document.path) for document, _ in result.changes)
    paint = style(no_color=args.no_color, log=args.output_format in PROSE)
    mended, waiting, others = mended_by(result, unsafe=args.unsafe_fixes)
    if mended:
        files = plural(len(result.changes), "file")
        line = f"Mended {plural(mended, 'finding')} in {files}: {names}."
        if others:
            line += f" {others} more went with {'it' if mended == 1 else 'them'}."
    else:
        line = f"Wrote {names}."
    if waiting:
        line += f" {plural(waiting, 'finding')} will go when the lock is made anew."
    commands = dict.fromkeys(
        one.fix.command for one in result.report_after.findings if one.fix and one.fix.command
    )
    if commands:
        line += f" Now run {' and '.join(f'`{clean(one)}`' for one in commands)}."
    out(paint.paint("good", line) + "\n")


def mended_by(result: FixResult, *, unsafe: bool) -> tuple[int, int, int]:
    """Return what became of the findings that a check says ``fix`` mends: how many are mended, how
    many wait for a lock whose manifest is mended, and how many others went with them.
    """
    changed = {document.path for document, _ in result.changes}

    def keys(findings: Iterable[Finding]) -> Counter[tuple[str, ...]]:
        return Counter((one.severity, one.code, one.path, one.message) for one in findings)

    before = result.report_before.findings
    gone = keys(before) - keys(result.report_after.findings)
    fixable = [one for one in before if has_edits(one, unsafe=unsafe)]
    mended = (gone & keys(fixable)).total()
    later = [
        one
        for one in fixable
        if one.fix is not None
        and one.fix.command
        and any(edits.document.path in changed for edits in one.fix.edits)
    ]
    waiting = (keys(later) - gone).total()
    return mended, waiting, gone.total() - mended


def _diff(result: FixResult, args: Arguments) -> int:
    from torchpin.report import diff

    paint = style(no_color=args.no_color)
    for document, data in result.changes:
        out(diff.render(document.path, document.text, decoded(document, data), paint))
    _skipped(result, args)
    notes_of(result.report_before, quiet=args.quiet)
    if not result.changes and not args.quiet:
        note(nothing_to_change(result.report_before.findings))
    return exit_code(result.report_before.findings, args)


def nothing_to_change(findings: tuple[Finding, ...]) -> str:
    """Return what to say of an empty patch: what ``check`` finds all the same."""
    from torchpin.rules.model import ERROR, WARNING

    left = Counter(one.severity for one in findings)
    counts = [plural(left[one], one) for one in (ERROR, WARNING) if left[one]]
    if not counts:
        return "nothing to change"
    stays = "stays" if counts == [f"1 {ERROR}"] or counts == [f"1 {WARNING}"] else "stay"
    return f"nothing to change; {' and '.join(counts)} {stays}: `torchpin check` says why"


def _print_fixed(result: FixResult, options: Options) -> None:
    data = options.stdin or b""
    for document, changed in result.changes:
        if document.path == options.stdin_filename:
            data = changed
        else:
            note(f"{clean(document.path)} would change too; run torchpin fix on the file itself")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TorchpinError(f"the output cannot be written: {error.strerror}") from error


def _skipped(result: FixResult, args: Arguments) -> None:
    if not args.quiet:
        for text in result.skipped:
            note(clean(text))
