"""Writes what torchpin answers today into the golden folders, to be read before it is committed.

A golden folder holds ``input/`` (files and ``torchpin.toml``), ``options.json`` (``about`` and
``arguments``; for a rule also the codes that it ``fires`` and those that must stay ``silent``), and
what this script writes: ``expected.json`` and ``fixed/``.

    python tools/record_golden.py [NAME …]        all folders, or some
    python tools/record_golden.py --check          exit 1 if an answer differs from its folder
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from torchpin.cli.main import guarded
from torchpin.documents.kinds import PART_KINDS, kind_of
from torchpin.engine import Options, Reader, find_fleet, look

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "fixtures" / "golden"
"""Rows of the fix policy."""
PROJECTS = ROOT / "fixtures" / "projects"
"""Rows of the fix policy that start from a project."""
RULES = ROOT / "fixtures" / "rules"
"""Where each rule fires, and nearby where it must not."""
FILES = ROOT / "fixtures" / "files"
"""Files of other kinds: commands and sections that install."""
OPTIONS = "*/options.json"
PROFILE = "torchpin.toml"


class Done(NamedTuple):
    """What one run of the command line gave."""

    returncode: int
    stdout: str
    stderr: str


def torchpin(*arguments: str) -> Done:
    """Run the command line of this checkout, in this process (its start-up is tested elsewhere)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = guarded(list(arguments))
    return Done(code, out.getvalue(), err.getvalue())


def answer(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what torchpin says of a golden folder: expectations, and the fixed files by name."""
    options = json.loads((folder / "options.json").read_text("utf-8"))
    arguments: list[str] = options["arguments"]
    with tempfile.TemporaryDirectory() as temp:
        work = Path(temp) / "project"
        shutil.copytree(folder / "input", work)
        report = findings(work, arguments)
        fixes = {
            (one["fix"]["safety"], one["fix"]["message"], one["fix"]["command"])
            for one in report
            if one["fix"] is not None
        }
        safe = torchpin("fix", "--quiet", *arguments, str(work))
        after_safe = files_of(work)
        unsafe = torchpin("fix", "--quiet", "--unsafe-fixes", *arguments, str(work))
        if {safe.returncode, unsafe.returncode} - {0, 1}:
            raise SystemExit(f"{folder.name}: {safe.stderr}{unsafe.stderr}")
        after = files_of(work)
        before = files_of(folder / "input")
        expected: dict[str, Any] = {
            "findings": sorted(line_of(one) for one in report),
            "fixes": sorted(
                f"{safety}: {message}" + (f"; then run: {command}" if command else "")
                for safety, message, command in fixes
            ),
            "safe_fix_changes": sorted(name for name in before if after_safe[name] != before[name]),
            "findings_after": sorted(line_of(one) for one in findings(work, arguments)),
            "installs": installs(work, arguments),
        }
        if "fires" in options:
            expected["details"] = [
                detail_of(one, folder) for one in report if one["code"] in options["fires"]
            ]
    fixed = {name: text for name, text in after.items() if text != before[name]}
    return expected, fixed


def folders(*roots: Path) -> list[Path]:
    """Return the golden folders of some roots, of all by default."""
    return sorted(
        path.parent
        for root in roots or (GOLDEN, PROJECTS, RULES, FILES)
        for path in root.glob(OPTIONS)
    )


def detail_of(finding: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the text that a finding underlines, its grounds and the places that belong to it."""
    path = folder / "input" / Path(finding["path"]).name
    lines = path.read_text("utf-8").split("\n") if path.is_file() else [""]
    first, last = finding["line"] - 1, finding["end_line"] - 1
    marked = lines[first : last + 1]
    marked[-1] = marked[-1][: finding["end_column"] - 1]
    marked[0] = marked[0][finding["column"] - 1 :]
    return {
        "code": finding["code"],
        "underlined": "\n".join(marked),
        "because": [f"{undated(one['text'])} [{one['evidence']}]" for one in finding["because"]],
        "related": [
            f"{Path(one['path']).name}:{one['line']} {one['message']}" for one in finding["related"]
        ],
    }


def findings(work: Path, arguments: list[str]) -> list[dict[str, Any]]:
    """Return the findings of a folder."""
    done = torchpin("check", "--output-format", "json", *arguments, str(work))
    if done.returncode not in (0, 1):
        raise SystemExit(f"{work}: {done.stderr}")
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def line_of(finding: dict[str, Any]) -> str:
    """Return a finding in one line without its grounds."""
    name = Path(finding["path"]).name
    group = f" ({finding['group']})" if finding["group"] else ""
    cells = [", ".join(map(" ".join, cell.items())) for cell in finding["matrix"]]
    matrix = f" in matrix {'; '.join(cells)}" if cells else ""
    return (
        f"{name}:{finding['line']}:{finding['column']} {finding['severity']} {finding['code']} "
        f"{undated(finding['message'])}{group}{matrix}"
    )


def undated(text: str) -> str:
    """Return ``text`` without the day of the catalog: each refresh of the data changes it."""
    return re.sub(r"\bcatalog of \d{4}-\d\d-\d\d", "catalog of DATE", text)


def installs(work: Path, arguments: list[str]) -> dict[str, dict[str, str]]:
    """Return target → package → version and channel of what the fixed files install.

    The extra or group of a project, or the command of a file, stands behind its target.
    """
    parts = any(kind_of(path.as_posix()) in PART_KINDS for path in work.rglob("*"))
    if not parts and not (work / "pyproject.toml").exists():
        return installs_of_requirements(work, arguments)
    client = arguments[arguments.index("--client") + 1] if "--client" in arguments else None
    options = Options((str(work),), client=client)
    stages, _ = look(options, find_fleet(options), Reader())
    found: dict[str, dict[str, str]] = {}
    for way in stages.context.ways:
        for chosen in way.sets:
            name = Path(way.install.root.path).name
            target = f"{name} {chosen.target.group.name} {chosen.target.python or ''}".strip()
            target += f" {way.install.name}" if way.install.name else ""
            for one in chosen.judged:
                if one.selection.status == "skipped":
                    continue
                build = one.selection.build
                where = "pypi" if build is not None and build.home == "pypi" else "channel"
                text = f"{build.full_version} ({where} {build.channel})" if build else "none"
                verdict = one.verdict.status if one.verdict else one.selection.status
                found.setdefault(target, {})[one.selection.package] = f"{text} {verdict}"
    return found


def installs_of_requirements(work: Path, arguments: list[str]) -> dict[str, dict[str, str]]:
    """Return the same as ``show`` tells it."""
    arguments = [one for one in arguments if one not in ("--unsafe-fixes",)]
    done = torchpin("show", "--output-format", "json", *arguments, str(work))
    found: dict[str, dict[str, str]] = {}
    for one in json.loads(done.stdout)["selections"]:
        if one["status"] == "skipped":
            continue
        name = Path(one["path"]).name
        target = f"{name} {one['group']} {one['python'] or ''}".strip()
        build = one["build"]
        text = f"{build['version']} ({build['index']} {build['channel']})" if build else "none"
        found.setdefault(target, {})[one["package"]] = f"{text} {one['verdict'] or one['status']}"
    return found


def files_of(folder: Path) -> dict[str, str]:
    """Return the dependency files of a folder by name, byte for byte (Latin-1 keeps bytes)."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode("latin-1")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != PROFILE and ".ruff_cache" not in path.parts
    }


def write(folder: Path, expected: dict[str, Any], fixed: dict[str, str]) -> None:
    """Write the answer into the folder."""
    text = json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    (folder / "expected.json").write_text(text, "utf-8", newline="\n")
    shutil.rmtree(folder / "fixed", ignore_errors=True)
    for name, content in fixed.items():
        path = folder / "fixed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("latin-1"))


def differs(folder: Path, expected: dict[str, Any], fixed: dict[str, str]) -> str:
    """Return how the answer differs from what the folder expects; ``""`` if it does not."""
    known = json.loads((folder / "expected.json").read_text("utf-8"))
    for key in sorted({*known, *expected}):
        if known.get(key) != expected.get(key):
            return f"{key}:\n  expected {known.get(key)}\n  got      {expected.get(key)}"
    have = files_of(folder / "fixed") if (folder / "fixed").exists() else {}
    if have != fixed:
        return f"fixed files:\n  expected {have}\n  got      {fixed}"
    return ""


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    wrong = 0
    for folder in folders():
        if args.names and folder.name not in args.names:
            continue
        expected, fixed = answer(folder)
        if args.check:
            text = differs(folder, expected, fixed)
            if text:
                wrong += 1
                print(f"{folder.name}: {text}")
        else:
            write(folder, expected, fixed)
            print(folder.name)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
