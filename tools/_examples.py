"""The example on the page of a rule: the smallest fixture in which it fires, run for real."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from tools._terminal import inside, on_terminal
from tools.record_golden import PROFILE, RULES

from torchpin.report.rule_docs import sentence

LANGUAGES = {".toml": "toml", ".py": "python", ".yml": "yaml", ".yaml": "yaml", ".sh": "bash"}
LONGEST = 60
"""Lines of a file that a page shows."""


def example_of(code: str) -> Path | None:
    """Return the folder of the smallest example in which the rule fires."""
    folders = [
        path.parent
        for path in RULES.glob("*/options.json")
        if code in json.loads(path.read_text("utf-8")).get("fires", ())
    ]
    own = [folder for folder in folders if folder.name.startswith(code)]
    return min(own or folders, key=_weight, default=None)


def _weight(folder: Path) -> tuple[int, str]:
    return sum(path.stat().st_size for path in _inputs(folder)), folder.name


def _inputs(folder: Path) -> list[Path]:
    """Return the input files, the profile last."""
    files = [path for path in (folder / "input").rglob("*") if path.is_file()]
    return sorted(files, key=lambda path: (path.name == PROFILE, path))


def _fenced(text: str, language: str, title: str = "") -> list[str]:
    fence = "~~~" if "```" in text else "```"
    head = f'{language} title="{title}"' if title else language
    return [f"{fence}{head}", *text.rstrip("\n").split("\n"), fence, ""]


def try_it(code: str) -> str:
    """Return the section *Try it* of a rule's page: files, command, what torchpin answers.

    Raises:
        SystemExit: torchpin answers otherwise than an example must.
    """
    folder = example_of(code)
    if folder is None:
        return ""
    options = json.loads((folder / "options.json").read_text("utf-8"))
    arguments: list[str] = options["arguments"]
    lines = ["", "## Try it", "", f"{sentence(options['about'].rstrip('.'))}:", ""]
    for path in _inputs(folder):
        name = path.relative_to(folder / "input").as_posix()
        text = path.read_text("utf-8")
        if len(text.splitlines()) > LONGEST:
            lines += [f"`{name}` ({len(text.splitlines())} lines, in `fixtures/rules/`)", ""]
            continue
        language = LANGUAGES.get(path.suffix, "text")
        lines += _fenced(text, language, name)
    command = " ".join(("torchpin check", *arguments))
    with tempfile.TemporaryDirectory() as temp:
        work = Path(temp) / "project"
        shutil.copytree(folder / "input", work)
        with inside(work):
            checked = on_terminal("check", *arguments)
            fixed = on_terminal("fix", "--diff", *arguments)
    if checked.returncode not in (0, 1) or f"[{code}]" not in checked.stdout:
        raise SystemExit(f"{folder.name}: {command}\n{checked.stdout}{checked.stderr}")
    lines += _fenced(f"$ {command}\n{checked.stdout}", "console")
    if fixed.stdout.startswith("---"):
        command = " ".join(("torchpin fix --diff", *arguments))
        lines += [f"`{command}` shows the change:", "", *_fenced(fixed.stdout, "diff")]
    return "\n".join(lines)
