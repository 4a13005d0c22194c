"""From arguments to what the engine takes, and back to an exit code."""

from __future__ import annotations

import os
import sys

from torchpin.cli.arguments import Arguments
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.terminal import note
from torchpin.errors import TorchpinError, UsageError
from torchpin.fleet.model import Fleet
from torchpin.report.model import CheckView, ordered
from torchpin.report.style import clean
from torchpin.rules.model import SEVERITIES, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:  # --help and usage errors need no engine
    from collections.abc import Callable
    from typing import TypeVar

    from torchpin.engine import Options, Report

    _T = TypeVar("_T")


def options_of(args: Arguments) -> Options:
    """Return the options of the engine.

    Raises:
        UsageError: a path that does not exist, standard input beside other paths, an unknown
            rule code.
    """
    from torchpin.catalog.staleness import today
    from torchpin.engine import Options

    paths = tuple(args.paths) or (".",)
    stdin: bytes | None = None
    stdin_filename: str | None = None
    if "-" in paths:
        if len(paths) > 1:
            raise UsageError("- (standard input) cannot stand beside other paths")
        stdin_filename = args.stdin_filename or "requirements.txt"
        stdin = _read_stdin()
    elif args.stdin_filename:
        raise UsageError("--stdin-filename goes with - (standard input) only")
    else:
        for path in paths:
            _must_exist(path)
    return Options(
        paths=paths,
        client=args.client,
        select=_codes(getattr(args, "select", []), "--select"),
        ignore=_codes(getattr(args, "ignore", []), "--ignore"),
        per_file_ignores=_per_file(getattr(args, "per_file_ignores", [])),
        unsafe_fixes=getattr(args, "unsafe_fixes", False),
        profile=args.config,
        isolated=args.isolated,
        policy=getattr(args, "policy", None),
        stdin=stdin,
        stdin_filename=stdin_filename,
        today=today(os.environ),
        jobs=getattr(args, "jobs", 1),
    )


def known_paths(paths: list[str]) -> list[str]:
    """Return those of ``paths`` that a check of a folder would read, or that may be folders."""
    from torchpin.documents.kinds import FILES_PATTERN

    return [
        path
        for path in paths
        if path == "-"
        or not os.path.isfile(path)
        or os.path.basename(path) == "torchpin.toml"
        or FILES_PATTERN.search(path.replace(os.sep, "/"))
    ]


def watched(options: Options, args: Arguments, work: Callable[[Options], _T]) -> _T:
    """Return what ``work`` makes of ``options``; a terminal shows how far it is if it is long."""
    if getattr(args, "quiet", False) or not sys.stderr.isatty():
        return work(options)
    from torchpin.cli.progress import FilesBar

    with FilesBar(quiet=False) as bar:
        return work(options._replace(progress=bar.draw))


def _read_stdin() -> bytes:
    """Return all of standard input.

    Raises:
        UsageError: it is closed, cannot be read, or larger than any dependency file.
    """
    from torchpin.documents.loader import MAX_SIZE

    if sys.stdin is None:
        raise UsageError("standard input is closed")
    try:
        data = sys.stdin.buffer.read(MAX_SIZE + 1)
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from error
    if len(data) > MAX_SIZE:
        raise UsageError(f"standard input is too large: more than {MAX_SIZE // 1048576} MiB")
    return data


def declared_fleet(args: Arguments) -> Fleet | None:
    """Return the fleet that the command line declares, None if it declares none.

    Raises:
        ConfigError: an unknown or ambiguous GPU, an impossible version, a contradiction.
    """
    if not (args.gpu or args.driver or args.python or args.platform or args.glibc):
        return None
    from torchpin.fleet.profile import fleet_from_options

    gpus = tuple(name.strip() for value in args.gpu for name in value.split(",") if name.strip())
    return fleet_from_options(
        gpus=gpus,
        driver=args.driver,
        python=args.python,
        platform=args.platform,
        glibc=args.glibc,
    )


def fleet_of(args: Arguments, options: Options) -> Fleet | None:
    """Return the fleet: of the command line, else of the profile; None if there is neither.

    Groups on the command line replace those of the profile; its other settings stay.

    Raises:
        ConfigError: the profile or an option is wrong.
    """
    from torchpin.engine import find_fleet

    declared, profile = declared_fleet(args), find_fleet(options)
    if declared is None or profile is None:
        return declared or profile
    return declared._replace(settings=profile.settings)


def view_of(
    report: Report, *, unsafe_fixes: bool, baseline: str = "", ignored: bool = False
) -> CheckView:
    """Return what the reporters take; ``ignored``: what is silenced, too."""
    silent = None
    if ignored:
        from torchpin.rules.ignores import in_order

        silent = in_order(one._replace(finding=_near(one.finding)) for one in report.ignored)
    return CheckView(
        findings=ordered(tuple(_near(finding) for finding in report.findings)),
        files=len(report.documents),
        catalog_date=report.catalog_date,
        catalog_digest=report.catalog_digest,
        unsafe_fixes=unsafe_fixes,
        stale=report.stale,
        documents=report.documents,
        baseline=baseline,
        ignored=silent,
    )


def _near(finding: Finding) -> Finding:
    """Return ``finding`` with related places named from here, as its own path is."""
    if not finding.related or os.path.isabs(finding.path):
        return finding
    here = os.path.join(os.getcwd(), "")
    return finding._replace(
        related=tuple(
            place._replace(path=place.path.removeprefix(here)) for place in finding.related
        )
    )


def notes_of(report: Report, *, quiet: bool) -> None:
    """Print the notes of a run: no fleet, nothing to read, …"""
    if not quiet:
        for text in report.notes:
            note(clean(text))


def exit_code(findings: tuple[Finding, ...], args: Arguments) -> int:
    """Return 1 if a finding is at least as grave as ``--severity``, else 0."""
    if args.exit_zero:
        return CLEAN
    low = SEVERITIES.index(args.severity)
    grave = any(SEVERITIES.index(finding.severity) >= low for finding in findings)
    return FINDINGS if grave else CLEAN


def _must_exist(path: str) -> None:
    """Refuse a path that does not exist; the nearest name is told, or what there is to check.

    Raises:
        UsageError: it does not exist.
    """
    try:
        os.lstat(path)
        return
    except PermissionError:  # who reads it tells
        return
    except (OSError, ValueError):
        pass
    from torchpin.cli.parser import nearest

    folder, name = os.path.split(path)
    while folder and not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder, name = os.path.split(folder)
    try:
        beside = sorted(os.listdir(folder or "."))
    except OSError:  # not there, or not to be listed: no name can be told
        beside = []
    hint = nearest(name, beside)
    if not hint and os.sep not in path:
        from torchpin.cli.parser import as_gpu

        hint = as_gpu(path)
    if not hint and os.path.join(folder, name) == path:
        from torchpin.documents.discover import discover
        from torchpin.documents.kinds import KINDS

        try:
            found = [one.path for one in discover([folder or "."], KINDS).files]
        except TorchpinError:  # who reads the folder tells
            found = []
        there = sorted(found, key=lambda one: (one.count(os.sep), one))
        if there:
            more = f" and {len(there) - 4} more" if len(there) > 4 else ""
            hint = f"there are: {', '.join(map(clean, there[:4]))}{more}"
    raise UsageError(f"no such file or folder: {clean(path)}", hint=hint)


def _codes(values: list[str], option: str) -> tuple[str, ...]:
    """Return the codes of a repeated, comma-separated option; each must begin a known code."""
    codes = tuple(
        code.strip().upper() for value in values for code in value.split(",") if code.strip()
    )
    if codes:
        from torchpin.rules.registry import all_rules

        known = [rule.code for rule in all_rules()]
        for code in codes:
            if code != "ALL" and not any(name.startswith(code) for name in known):
                from torchpin.cli.parser import nearest

                hint = nearest(code.lower(), [name.lower() for name in known]).replace("tp", "TP")
                raise UsageError(
                    f"{option}: no rule begins with {code!r}",
                    hint=hint or "`torchpin explain` lists all rules",
                )
    return tuple("TP" if code == "ALL" else code for code in codes)


def _per_file(values: list[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    out: list[tuple[str, tuple[str, ...]]] = []
    for value in values:
        pattern, colon, codes = value.rpartition(":")
        if not colon or not pattern or not codes:
            raise UsageError(
                f"--per-file-ignores: {value!r} is not PATTERN:CODES",
                hint="write 'legacy/*:TP201,TP203'",
            )
        out.append((pattern, _codes([codes], "--per-file-ignores")))
    return tuple(out)
