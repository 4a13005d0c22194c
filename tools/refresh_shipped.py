"""Renew the data that ship from the live indexes alone; nothing is written unless the floors hold.

    python -m tools.refresh_shipped [--report BODY.md] [--index URL ...] [--allow-removal]

What ``torchpin catalog refresh`` reads becomes the shipped catalog. Its beginning was made by
``tools.build_catalog`` from facts that were gathered once: ``catalog.json`` keeps their names and
digests (``facts``, ``measured``), each record its source, and ``previous`` names the catalog that
a refresh began with. A line goes to CHANGELOG.md, and ``--report`` writes what changed, as the body
of a pull request. Exit code 0: renewed, or nothing new; 1: refused, and why.

Floors, unless ``--allow-removal`` is given: no package and no channel has fewer builds than before,
no build, version, channel or digest goes, no digest changes, no measured kernel list goes or
changes, no evidence becomes weaker. Always: every file has its shape (``tools.check_data``), the
driver tables are whole, and all pages were read.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

if not __package__:  # run by its path, from any folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from packaging.version import Version
from tools._common import DATA, ROOT, FloorError, replace_all

from torchpin import __version__
from torchpin.catalog.diff import ADDED, REMOVED, Diff, Entry, compare
from torchpin.catalog.records import read_state, render
from torchpin.catalog.refresh.run import refresh
from torchpin.catalog.refresh.settings import Settings, addresses
from torchpin.catalog.schema import check_files, check_folder
from torchpin.catalog.store import Catalog
from torchpin.evidence import MEASURED
from torchpin.report.catalog_diff import markdown

CHANGELOG = ROOT / "CHANGELOG.md"
UNRELEASED = "## [Unreleased]"
SECTION = "### Changed"
_NAMED = 6
"""So many releases are named in the line of the changelog."""


def too_few(old: Catalog, new: Catalog) -> list[str]:
    """Return where a package or one of its channels has fewer builds than before."""

    def count(catalog: Catalog) -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for package in catalog.packages():
            for build in catalog.builds(package):
                found[package, ""] += 1
                found[package, "pypi" if build.home == "pypi" else build.channel] += 1
        return found

    before, after = count(old), count(new)
    return [
        f"{package}{f' on {place}' if place else ''}: {after[package, place]} builds, {held} before"
        for (package, place), held in sorted(before.items())
        if after[package, place] < held
    ]


def falls(entry: Entry) -> bool:
    """Return whether a difference takes away what was known."""
    if not entry.grave:
        return False
    if entry.kind == REMOVED:
        return entry.subject in ("build", "version", "channel", "digest", "driver")
    if entry.subject in ("digest", "newest"):
        return True
    known = entry.fact.startswith("kernels") and f"[{MEASURED}]" in entry.before
    return entry.subject == "build" and (entry.fact == "evidence" or known)


def floors(old: Catalog, new: Catalog, found: Diff) -> list[str]:
    """Return why the new catalog is refused; nothing: it is not."""
    out = too_few(old, new)
    for entry in found.entries:
        if falls(entry):
            told = f"{entry.fact}: {entry.before} → {entry.after or 'nothing'}"
            what = told if entry.fact else f"goes ({entry.before})" if entry.before else "goes"
            out.append(f"{entry.subject} {entry.package} {entry.name}: {what}")
    return out


def renewed(folder: Path, settings: Settings) -> tuple[dict[str, str], list[str]]:
    """Return the files of the next shipped catalog, and what could not be read.

    Raises:
        FloorError: nothing could be reached.
    """
    before = read_state(str(folder)).head
    with tempfile.TemporaryDirectory(prefix="torchpin-shipped-") as place:
        work = Path(place) / "data"
        shutil.copytree(folder, work)
        result = refresh(settings._replace(output=str(work)))
        failed = sorted(f"{one.part}: {one.why}" for one in result.failed)
        if not result.pages:
            raise FloorError("; ".join(["nothing could be reached", *failed]))
        state = read_state(str(work))
        # What a user's catalog says of its making has no meaning for the one that ships.
        own = {key: state.head[key] for key in state.head if key not in ("base", "files")}
        head = own | {"previous": before["digest"], "tool": __version__}
        files = render(state._replace(head=head))
        beside = {path.name: path.read_text(encoding="utf-8") for path in work.glob("*.json")}
    print(
        f"{result.pages} pages, {result.wheels} wheels read: {result.fetched / 1e6:.1f} MB in "
        f"{result.requests} requests, {result.seconds:.0f} s"
    )
    whole = beside | files
    names = sorted(whole, key=lambda name: (name == "catalog.json", name))
    return {name: whole[name] for name in names}, failed


def line(found: Diff, old: Catalog, new: Catalog) -> str:
    """Return the line of the changelog: new releases and channels by name, the rest counted."""
    releases = [
        f"{package} {version}"
        for package in new.packages()
        for version in new.versions(package)
        if version not in old.versions(package) and not Version(version).is_prerelease
    ]
    if len(releases) > _NAMED:
        releases = [*releases[:_NAMED], f"{len(releases) - _NAMED} more releases"]
    channels = [
        f"channel {entry.name}"
        for entry in found.entries
        if (entry.kind, entry.subject, entry.package) == (ADDED, "channel", "torch")
    ]
    builds = [entry for entry in found.entries if entry.subject == "build"]
    counts = [
        f"{count} builds {word}"
        for word, count in (
            ("more", sum(entry.kind == ADDED for entry in builds)),
            ("fewer", sum(entry.kind == REMOVED for entry in builds)),
            ("known better", len({(e.package, e.name) for e in builds if e.fact})),
        )
        if count
    ]
    told = "; ".join(filter(None, (", ".join([*releases, *channels]), ", ".join(counts))))
    return f"- Catalog of {new.date}: {told or 'smaller changes'}."


def with_line(changelog: str, text: str) -> str:
    """Return the changelog with a line under *Unreleased*, *Changed*.

    Raises:
        FloorError: it has no such heading.
    """
    lines = changelog.splitlines()
    if UNRELEASED not in lines:
        raise FloorError(f"CHANGELOG.md has no heading {UNRELEASED}")
    start = lines.index(UNRELEASED)
    end = next(
        (at for at in range(start + 1, len(lines)) if lines[at].startswith("## ")), len(lines)
    )
    if SECTION in lines[start:end]:
        at = lines.index(SECTION, start) + 1
        while at < end and not lines[at].startswith("#"):
            at += 1
        while not lines[at - 1]:
            at -= 1
        return "\n".join([*lines[:at], *wrapped(text), *lines[at:]]) + "\n"
    while end > start and not lines[end - 1]:
        end -= 1
    return "\n".join([*lines[:end], "", SECTION, "", *wrapped(text), *lines[end:]]) + "\n"


def wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        text, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def body(found: Diff, failed: list[str]) -> str:
    """Return the body of a pull request."""
    parts = [markdown(found)]
    if failed:
        parts += ["### Not read: what was known of it stays", ""]
        parts += [f"- `{text.replace('`', chr(39))}`" for text in failed[:50]]
    return "\n".join(parts).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--changelog", type=Path, default=CHANGELOG)
    parser.add_argument("--report", type=Path, help="write what changed there, as Markdown")
    parser.add_argument("--index", action="append", default=[], help="as for `catalog refresh`")
    parser.add_argument("--since", default="", help="as for `catalog refresh`")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--today", default="", help="the day that counts as today")
    parser.add_argument("--allow-removal", action="store_true", help="let go what the floors keep")
    parser.add_argument(
        "--allow-failures", action="store_true", help="keep the old data of what cannot be read"
    )
    options = parser.parse_args(arguments)
    problems = check_folder(str(options.data))
    if problems:
        raise FloorError(f"the data that ship are wrong: {problems[0]}")
    settings: Any = Settings(
        since=options.since,
        jobs=options.jobs,
        today=options.today,
        allow_removal=options.allow_removal,
    )
    files, failed = renewed(options.data, addresses(options.index, settings))
    for text in failed:
        print("not read:", text)
    if failed and not options.allow_failures:
        raise FloorError(f"{len(failed)} parts could not be read; --allow-failures keeps the old")
    problems = check_files({name: text.encode() for name, text in files.items()})
    if problems:
        raise FloorError(f"{len(problems)} wrong shapes, as {problems[0]}")
    with tempfile.TemporaryDirectory(prefix="torchpin-shipped-") as place:
        replace_all({Path(place) / name: text for name, text in files.items()})
        old, new = Catalog(str(options.data)), Catalog(place)
        found = compare(old, new, ("shipped", "refreshed"))
        refused = floors(old, new, found)
        told = line(found, old, new)
    if options.report is not None:
        replace_all({options.report: body(found, failed)})
    if refused and not options.allow_removal:
        for text in refused:
            print("falls below a floor:", text)
        raise FloorError(f"{len(refused)} floors do not hold; --allow-removal lets them")
    if not found.entries:
        print(f"nothing changed since the catalog of {old.date}")
        return 0
    changelog = with_line(options.changelog.read_text(encoding="utf-8"), told)
    replace_all({options.data / name: text for name, text in files.items()})
    replace_all({options.changelog: changelog})
    print(told)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
