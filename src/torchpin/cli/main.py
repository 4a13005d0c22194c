"""Find the command, run it, and turn what went wrong into a message and an exit code."""

from __future__ import annotations

import os
import sys

from torchpin import __version__
from torchpin.errors import TorchpinError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:  # what is only for types is not imported: a run is short
    from typing import Protocol

    class Command(Protocol):
        """What each command module offers."""

        def main(self, argv: list[str]) -> int:
            """Run the command and return its exit code."""


CLEAN, FINDINGS, USAGE, INTERNAL = 0, 1, 2, 3
"""Exit codes: clean or all fixed · findings · wrong usage or settings · a defect of torchpin."""
_SIGPIPE, _SIGINT = 141, 130

COMMANDS = {
    "check": "say what will not install or run, and why",
    "fix": "mend the pins and index URLs of files",
    "show": "show which builds would be installed, with their verdicts",
    "resolve": "find one set of versions that runs on the whole fleet",
    "init": "write a commented torchpin.toml (and a pre-commit hook)",
    "explain": "explain a rule: torchpin explain TP201",
    "upgrade": "say what another torch would break: torchpin upgrade --to 2.15",
    "recipe": "install or build torch for a GPU: torchpin recipe --gpu V100",
    "matrix": "which releases run on which GPUs: a table, or a web page (--html)",
    "baseline": "keep what is known apart, so that check tells what is new",
    "fleet": "show the declared fleet, import one, detect this machine",
    "verify": "try the installed torch on this machine, GPU by GPU",
    "inspect": "read a wheel or a library: its CUDA, its GPUs, does the fleet run it",
    "catalog": "look builds up (show torch 2.14.1), refresh, verify or diff them",
    "server": "serve an editor (LSP): findings as you type, fixes, completion",
    "constraints": "hold pip or uv to what runs on the fleet",
    "index": "a package index of what runs on the fleet: torchpin index build DIR",
    "pip": "run pip, held to what runs on a group: torchpin pip -- install torch",
    "uv": "run uv, held to what runs on a group: torchpin uv -- pip install torch",
    "completion": "complete commands, GPU names and rules in the shell",
}
"""Command → one line; ``cli/<command>.py`` holds it."""
_TOGETHER = (
    (("constraints", "index", "pip", "uv"), "hold installers to what runs on the fleet"),
    (("baseline", "server", "completion"), "for known findings, editors (LSP), shells"),
)
"""Commands that share a line of the help."""

_HELP = """\
torchpin: will the PyTorch that these files install run on this fleet?

usage: torchpin COMMAND [OPTIONS] [PATH ...]
{commands}

Try: torchpin check requirements.txt --gpu V100 --driver 550.54.15 --python 3.11
or declare the fleet once, in a file: torchpin init

options of a command: torchpin COMMAND -h (--help: all)   version: torchpin -V
exit code: 0 clean or fixed · 1 findings · 2 wrong usage · 3 internal failure
"""


def main(argv: list[str]) -> int:
    """Run torchpin with ``argv`` (without the program's name) and return the exit code.

    Raises:
        TorchpinError: the user asks for something impossible.
    """
    if not argv or argv[0] in ("-h", "--help", "help"):
        if len(argv) > 1 and argv[0] == "help":
            return _load(argv[1]).main(["--help"])
        sys.stdout.write(help_text())
        return CLEAN
    if argv[0] in ("-V", "--version"):
        sys.stdout.write(f"torchpin {__version__}\n")
        return CLEAN
    return _load(argv[0]).main(argv[1:])


def help_text() -> str:
    """Return the help of torchpin itself; it fits a screen of 24 lines."""
    together = {name for names, _ in _TOGETHER for name in names}
    rows = [f"  {name:<9}{text}" for name, text in COMMANDS.items() if name not in together]
    for names, text in _TOGETHER:
        rows.append(f"  {', '.join(name for name in names if name in COMMANDS)}: {text}")
    return _HELP.format(commands="\n".join(rows))


def guarded(argv: list[str]) -> int:
    """Run ``main`` and return an exit code whatever happens.

    A closed pipe ends the run quietly; an expected error prints its message; anything else is a
    defect: a short message, and the traceback only if ``TORCHPIN_DEBUG`` is set.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        # A character that the terminal cannot show must not end the run.
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        code = main(argv)
        _flush()
    except TorchpinError as error:
        return _fail(error)
    except BrokenPipeError:
        # Python flushes stdout once more on exit; give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except KeyboardInterrupt:
        return _SIGINT
    except Exception as error:  # noqa: BLE001 (the last resort: reported, never hidden)
        if isinstance(error, FileNotFoundError) and not _stands():
            return _fail(UsageError("the current folder does not exist any more"))
        return _defect(error)
    return code


def _stands() -> bool:
    """Tell whether the current folder exists: another process may have removed it."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TorchpinError(f"the output cannot be written: {error.strerror}") from error


def _load(name: str) -> Command:
    if name not in COMMANDS:
        from torchpin.cli.parser import nearest

        what = "option" if name.startswith("-") else "command"
        known = ("--help", "--version") if what == "option" else tuple(COMMANDS)
        hint = f"did you mean `torchpin --{name}`?" if name == "version" else nearest(name, known)
        if not hint and name in ("refresh", "diff"):
            hint = f"did you mean `torchpin catalog {name}`?"
        if not hint and what == "command" and os.path.exists(name):
            hint = f"did you mean `torchpin check {name}`?"
        raise UsageError(f"unknown {what} {name!r}", hint=hint or "run `torchpin --help`")
    # importlib would bring warnings with it: a hundredth of a short run.
    module: Command = __import__(f"torchpin.cli.{name}", fromlist=["main"])
    return module


def _fail(error: TorchpinError) -> int:
    from torchpin.cli.terminal import folded
    from torchpin.report.style import redact, visible

    text = str(error)
    if error.path:
        text = text.replace(error.path, visible(error.path))
    text = "\n".join(visible(line) for line in redact(text).split("\n"))
    sys.stderr.write(folded(f"torchpin: {text}\n", sys.stderr, every=True))
    return error.exit_code


def _defect(error: Exception) -> int:
    from torchpin.report.style import redact, visible

    if os.environ.get("TORCHPIN_DEBUG"):
        import traceback

        sys.stderr.write(redact(traceback.format_exc()))
    message = visible(redact(f"{type(error).__name__}: {error}"))
    sys.stderr.write(
        f"torchpin: internal failure: {message}\n"
        f"  This is a defect of torchpin {__version__}; no file was left half-written.\n"
        "  Please report it with the command, the files and the output of the same command\n"
        "  run with TORCHPIN_DEBUG=1 in the environment.\n"
    )
    return INTERNAL
