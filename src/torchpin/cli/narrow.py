"""Of what ``check`` found, what is told: the new, the changed, the well known."""

from __future__ import annotations

import os

from torchpin.cli.arguments import Arguments
from torchpin.documents.kinds import LOCKS, kind_of
from torchpin.errors import UsageError
from torchpin.evidence import ORDER
from torchpin.report.baseline import Baseline, Entry, Split, load
from torchpin.report.model import CheckView, plural
from torchpin.rules.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from torchpin.documents.changed import Changes


def narrowed(view: CheckView, args: Arguments) -> tuple[CheckView, tuple[str, ...]]:
    """Return the view without what the arguments and the baseline leave out, and what is to be
    said of that.

    Raises:
        UsageError: no such revision, or the baseline cannot be read.
        ConfigError: the baseline is none.
    """
    findings, ignored, notes = view.findings, view.ignored or (), []
    # What is silenced is narrowed alike.
    findings += tuple(one.finding for one in ignored)
    if args.evidence is not None:
        findings = tuple(one for one in findings if known_by(one, args.evidence))
    if args.changed_since is not None:
        findings, note = changed(findings, args.changed_since, profile_of(args))
        notes.append(note)
    left = {*map(id, findings)}
    findings = tuple(one for one in view.findings if id(one) in left)
    ignored = tuple(one for one in ignored if id(one.finding) in left)
    known = baseline_of(args, view.baseline)
    if known is not None:
        found = known.split(findings)
        findings = found.new
        name = os.path.relpath(known.path)
        notes.append(waiting(len(found.known), known))
        if view.ignored is not None:
            from torchpin.rules.ignores import BASELINE, Ignored, in_order

            more = (Ignored(one, None, name, BASELINE) for one in found.known)
            ignored = in_order((*ignored, *more))
        if args.changed_since is None and args.evidence is None:
            notes.append(mended(found, known, args))
    if view.ignored is not None:
        view = view._replace(ignored=ignored)
    return view._replace(findings=findings), tuple(one for one in notes if one)


def baseline_of(args: Arguments, setting: str) -> Baseline | None:
    """Return the baseline in use: the option, else the setting; None if none is.

    Raises:
        UsageError: it cannot be read.
        ConfigError: it is none.
    """
    path: str = "" if args.no_baseline else args.baseline or setting
    return Baseline(path, load(read(path), path)) if path else None


def waiting(number: int, known: Baseline) -> str:
    """Return how many findings are in the baseline; ``""`` for none."""
    if not number:
        return ""
    are = "is" if number == 1 else "are"
    return f"{plural(number, 'finding')} {are} in the baseline, {os.path.relpath(known.path)}"


def mended(found: Split, known: Baseline, args: Arguments) -> str:
    """Return how many findings of the baseline are there no more; ``""`` for none."""
    gone = sum(count for one, count in found.gone.items() if asked_for(one, known.path, args))
    if not gone:
        return ""
    are, them = ("is", "it") if gone == 1 else ("are", "them")
    return (
        f"{plural(gone, 'finding')} of the baseline {are} mended: "
        f"torchpin baseline prune takes {them} out"
    )


def read(path: str) -> str:
    """Return the text of a baseline.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError as error:
        raise UsageError(
            "there is no such baseline", path=path, hint="write it: torchpin baseline create"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        told = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"cannot be read: {told}", path=path) from error


def asked_for(entry: Entry, path: str, args: Arguments) -> bool:
    """True if the run would have found an entry again: its file was among what was checked, or is
    gone, and what its rule needs was looked at."""
    if not _ran(entry, args):
        return False
    place = os.path.realpath(os.path.join(os.path.dirname(path), entry.path))
    if not os.path.exists(place):
        return True
    for one in args.paths or (".",):
        real = os.path.realpath(one)
        if place == real or place.startswith(os.path.join(real, "")):
            return True
    return False


def _ran(entry: Entry, args: Arguments) -> bool:
    """True if the rule of an entry ran on the machines that it is about."""
    from torchpin.rules.ignores import ACROSS

    select, ignore = (_words(values) for values in (args.select, args.ignore))
    spared = [code for value in args.per_file_ignores for code in _words(value.rpartition(":")[2:])]
    if select and not entry.code.startswith(select):
        return False
    if entry.code.startswith((*ignore, *spared)):
        return False
    if entry.code.startswith(ACROSS) and not any(map(os.path.isdir, args.paths or (".",))):
        return False  # files are compared with each other only where a folder is looked at
    if args.gpu:
        from torchpin.fleet.options import UNNAMED

        pythons = _words(args.python)
        return entry.group in ("", UNNAMED) and (not entry.python or entry.python in pythons)
    return not (args.isolated and (entry.group or entry.python))


def _words(values: Sequence[str]) -> tuple[str, ...]:
    """Return the words of options that take several, with commas between."""
    return tuple(word.strip().upper() for value in values for word in value.split(",") if word)


def known_by(finding: Finding, least: str) -> bool:
    """True if all that a finding rests on is known at least so well."""
    return all(ORDER.index(one.evidence) <= ORDER.index(least) for one in finding.because)


def profile_of(args: Arguments) -> str | None:
    """Return the path of the profile in use, None if there is none."""
    config: str | None = args.config
    if config is not None or args.isolated:
        return config
    from torchpin.fleet.profile import find_profile

    return find_profile(args.stdin_filename or (args.paths or (".",))[0])


def changed(
    findings: tuple[Finding, ...], revision: str, profile: str | None = None
) -> tuple[tuple[Finding, ...], str]:
    """Return the findings that changes since a revision may have brought.

    These are the findings in changed files, those that point to one, and those in the project file
    or the lock of a folder where either changed. A changed profile may have brought any. So may
    what lies outside of the repository: git does not tell whether it changed.
    """
    from torchpin.documents.changed import changed_since

    changes = changed_since(revision)
    profiles = [path for path in changes.files if os.path.basename(path) == "torchpin.toml"]
    if profile is not None and _fleet_changed(os.path.realpath(profile), changes):
        profiles.append(os.path.realpath(profile))
    if profiles:
        first = min(map(os.path.relpath, profiles))
        return findings, f"{first} changed since {revision}: all findings are told"
    projects = {
        os.path.dirname(path)
        for path in changes.files
        if os.path.basename(path) in _MANIFESTS or kind_of(path) in _LOCKS
    }

    def touched(finding: Finding) -> bool:
        place = os.path.realpath(finding.path)
        if changes.holds(place):
            return True
        if any(os.path.realpath(one.path) in changes.files for one in finding.related):
            return True
        told = os.path.basename(place) in _MANIFESTS or kind_of(place) in _LOCKS
        return told and os.path.dirname(place) in projects

    return tuple(one for one in findings if touched(one)), ""


def _fleet_changed(profile: str, changes: Changes) -> bool:
    """True if the settings in a profile differ; those in a ``pyproject.toml`` are a part of it."""
    if profile not in changes.files:
        return False
    if os.path.basename(profile) != "pyproject.toml":
        return True
    from torchpin.documents.toml_view import read_toml

    with open(profile, "rb") as file:
        now = read_toml(file.read()).data
    before = read_toml(changes.before(profile).encode()).data
    return _settings(now) != _settings(before)


def _settings(data: dict[str, Any]) -> object:
    tool = data.get("tool")
    return tool.get("torchpin") if isinstance(tool, dict) else None


_MANIFESTS = ("pyproject.toml", "uv.toml", "Pipfile", "pixi.toml")
_LOCKS = (*LOCKS, "Pipfile.lock", "pixi.lock")
