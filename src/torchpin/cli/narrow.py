"""Of what ``check`` found, what is told: the new, the changed, the well known."""

from __future__ import annotations

import os

from torchpin.cli.arguments import Arguments
from torchpin.documents.kinds import LOCKS, kind_of
from torchpin.errors import UsageError
from torchpin.evidence import ORDER
from torchpin.report.baseline import Entry, load, split
from torchpin.report.model import CheckView, plural
from torchpin.rules.model import Finding


def narrowed(view: CheckView, args: Arguments) -> tuple[CheckView, tuple[str, ...]]:
    """Return the view without what the arguments and the baseline leave out, and what is to be
    said of that.

    Raises:
        UsageError: no such revision, or the baseline cannot be read.
        ConfigError: the baseline is none.
    """
    findings, notes = view.findings, []
    if args.evidence is not None:
        findings = tuple(one for one in findings if known_by(one, args.evidence))
    if args.changed_since is not None:
        findings, note = changed(findings, args.changed_since)
        notes.append(note)
    path = baseline_of(view, args)
    if path:
        known = load(read(path), path)
        found = split(findings, known, os.path.dirname(path))
        findings = found.new
        name = os.path.relpath(path)
        if found.known:
            are = "is" if found.known == 1 else "are"
            notes.append(f"{plural(found.known, 'finding')} {are} in the baseline, {name}")
        gone = sum(count for one, count in found.gone.items() if asked_for(one, path, args))
        if gone and args.changed_since is None and args.evidence is None:
            are, them = ("is", "it") if gone == 1 else ("are", "them")
            notes.append(
                f"{plural(gone, 'finding')} of the baseline {are} mended: "
                f"torchpin baseline prune takes {them} out"
            )
    return view._replace(findings=findings), tuple(one for one in notes if one)


def baseline_of(view: CheckView, args: Arguments) -> str:
    """Return the path of the baseline in use: the option, else the setting; ``""`` if none is."""
    if args.no_baseline:
        return ""
    return args.baseline or view.baseline


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
    """True if the file of an entry was among what was checked, or is gone."""
    place = os.path.realpath(os.path.join(os.path.dirname(path), entry.path))
    if not os.path.exists(place):
        return True
    for one in args.paths or (".",):
        real = os.path.realpath(one)
        if place == real or place.startswith(os.path.join(real, "")):
            return True
    return False


def known_by(finding: Finding, least: str) -> bool:
    """True if all that a finding rests on is known at least so well."""
    return all(ORDER.index(one.evidence) <= ORDER.index(least) for one in finding.because)


def changed(findings: tuple[Finding, ...], revision: str) -> tuple[tuple[Finding, ...], str]:
    """Return the findings that changes since a revision may have brought.

    These are the findings in changed files, those that point to one, and those in a lock whose
    project file changed. A changed profile may have brought any.
    """
    from torchpin.documents.changed import changed_since

    files = changed_since(revision)
    profiles = sorted(
        os.path.relpath(path) for path in files if os.path.basename(path) == "torchpin.toml"
    )
    if profiles:
        return findings, f"{profiles[0]} changed since {revision}: all findings are told"
    projects = {os.path.dirname(path) for path in files if os.path.basename(path) in _MANIFESTS}

    def touched(finding: Finding) -> bool:
        places = {os.path.realpath(finding.path)}
        places.update(os.path.realpath(one.path) for one in finding.related)
        if places & files:
            return True
        folder = os.path.dirname(os.path.realpath(finding.path))
        return folder in projects and kind_of(finding.path) in _LOCKS

    return tuple(one for one in findings if touched(one)), ""


_MANIFESTS = ("pyproject.toml", "uv.toml", "Pipfile", "pixi.toml")
_LOCKS = (*LOCKS, "Pipfile.lock", "pixi.lock")
