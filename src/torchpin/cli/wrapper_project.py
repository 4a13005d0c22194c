"""``torchpin uv -- sync`` and ``run``: does what they would install run on the group?

uv itself tells what that is: ``uv export`` with the extras, groups and packages of the command.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.cli.arguments import Arguments
from torchpin.cli.common import options_of
from torchpin.plugin.command import options_of_call, value_of

if TYPE_CHECKING:
    from torchpin.documents.command_options import Parsed
    from torchpin.plugin.command import Call

_CHOICE = frozenset(
    (
        *("--extra", "--no-extra", "--all-extras", "--group", "--no-group", "--only-group"),
        *("--all-groups", "--no-default-groups", "--dev", "--no-dev", "--only-dev", "--package"),
        *("--all-packages", "--frozen", "--offline", "--no-config", "--config-file", "--python"),
        *("--index", "--default-index", "--index-url", "--extra-index-url", "--find-links"),
        *("--no-index", "--index-strategy", "--resolution", "--prerelease", "--fork-strategy"),
        *("--exclude-newer", "--no-sources", "--directory", "--project", "--cache-dir"),
        *("--keyring-provider", "--allow-insecure-host"),
    )
)
"""Options of ``sync`` and ``run`` that ``export`` has, too, and that say what is installed."""
_NO_PROJECT = (("--no-sync", "UV_NO_SYNC"), ("--no-project", "UV_NO_PROJECT"))


def synced(args: Arguments, call: Call, program: str) -> bool:
    """Tell whether what ``uv sync`` or ``uv run`` installs runs on the group; say why not."""
    from torchpin import engine
    from torchpin.cli.wrapper import group_fleet, is_on
    from torchpin.report.style import clean, redact

    parsed = options_of_call(call)
    given = {option.name for option in parsed.options}
    if call.action == ("run",) and any(
        option in given or is_on(name) for option, name in _NO_PROJECT
    ):
        return True
    script = _script(call, parsed, given)
    if script == "":
        return True
    paths = _files(script) if script else _project(parsed)
    if not paths:
        return True  # uv tells
    args.paths = paths
    fleet = group_fleet(args)
    options = options_of(args)._replace(client="uv")
    exported = None if script else _exported(program, parsed, paths)
    if exported is not None:
        # Under a name that nothing has: beside the project its own lock would be judged.
        place = os.path.join(os.path.dirname(paths[0]), ".uv-export", "pylock.toml")
        options = options._replace(paths=("-",), stdin=exported, stdin_filename=place)
    report = engine.check(options, fleet)
    errors = [one for one in report.findings if one.severity == "error"]
    if not errors:
        return True
    group = clean(fleet.groups[0].name)
    what = "script" if script else "project"
    lines = [f"torchpin: not run: what the {what} installs does not run on {group}"]
    for one in errors:
        path = paths[-1] if exported is not None else one.path
        lines.append(f"  {clean(path)}: {one.code} {clean(one.message)}")
    lines.append(f"more: torchpin check {clean(shlex.join(paths))}")
    lines.append(f"to run it all the same: torchpin uv --force -- {shlex.join(call.words)}")
    sys.stderr.write(redact("\n".join(lines)) + "\n")
    return False


def _script(call: Call, parsed: Parsed, given: Iterable[str]) -> str | None:
    """Return the script whose own block says what is installed; ``""``: it cannot be read.

    None: the project says it.
    """
    if call.action == ("sync",):
        return value_of(parsed, "--script") or None
    target = call.words[parsed.rest] if parsed.rest < len(call.words) else None
    if target is None or not {"--module", "-m"}.isdisjoint(given):
        return None
    if target == "-" or target.startswith(("http://", "https://")):
        return ""
    if not {"--script", "-s", "--gui-script"}.isdisjoint(given) or target.endswith((".py", ".pyw")):
        path = os.path.join(value_of(parsed, "--directory"), target)
        try:
            with open(path, "rb") as file:
                return path if b"# /// script" in file.read(1 << 20) else None
        except OSError:
            return ""  # uv tells
    return None


def _files(script: str) -> list[str]:
    lock = f"{script}.lock"
    return [script, *([lock] if os.path.isfile(lock) else [])]


def _project(parsed: Parsed) -> list[str]:
    """Return the project file, and its lock where there is one; nothing without a project."""
    folder = value_of(parsed, "--directory") or os.environ.get("UV_WORKING_DIR", "")
    folder = os.path.join(folder, value_of(parsed, "--project") or os.environ.get("UV_PROJECT", ""))
    project = os.path.join(folder, "pyproject.toml")
    while not os.path.isfile(project):
        above = os.path.dirname(os.path.abspath(folder))
        if above == os.path.abspath(folder):
            return []
        folder = above
        project = os.path.join(folder, "pyproject.toml")
    lock = os.path.join(folder, "uv.lock")
    return [project, *([lock] if os.path.isfile(lock) else [])]


def _exported(program: str, parsed: Parsed, paths: list[str]) -> bytes | None:
    """Return what uv would install, as ``pylock.toml``; None where uv does not tell.

    The lock must be there and up to date: uv is not to write one here.
    """
    import subprocess

    from torchpin.documents.atoms import text_of

    if len(paths) < 2:
        return None
    words = ["export", "--quiet", "--format", "pylock.toml", "--no-emit-project"]
    for option in parsed.options:
        if option.name in _CHOICE:
            words.append(option.name)
            words += [text_of(option.value)] if option.value is not None else []
    if "--frozen" not in words:
        words.append("--locked")
    done = subprocess.run(
        [program, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.stdout if done.returncode == 0 and done.stdout else None
