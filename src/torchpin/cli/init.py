"""``torchpin init``: write a commented fleet profile, and a pre-commit hook."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from torchpin.cli.arguments import Arguments
from torchpin.cli.init_ask import (
    NONE,
    Answers,
    Value,
    asked,
    complete_names,
    found_out,
    further,
    split,
)
from torchpin.cli.init_hook import HOOKS, pre_commit
from torchpin.cli.parser import Parser, add_platform
from torchpin.cli.terminal import out, tell
from torchpin.errors import TorchpinError, UsageError
from torchpin.report.style import clean

PROFILE = "torchpin.toml"


def parser() -> Parser:
    """Return the parser of ``init``."""
    made = Parser(
        "init",
        "Write a commented torchpin.toml: your GPUs, driver and Python. On a terminal it asks for\n"
        "what no option says, and offers what this machine and the project tell.",
    )
    made.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where (default: here)")
    made.add_argument("--group", default="main", metavar="NAME", help="name of the node group")
    made.add_argument(
        "--gpu",
        action="append",
        default=[],
        metavar="NAME",
        help="a GPU of the group: V100, sm_70, p3.2xlarge; none for CPU only (repeat for more)",
    )
    made.add_argument("--driver", metavar="VERSION", help="its driver: 550.54.15")
    made.add_argument("--python", metavar="VERSION", help="its Python: 3.11 or '>=3.10,<3.13'")
    add_platform(made, "linux-x86_64 …")
    made.add_argument("--glibc", metavar="VERSION", help="its glibc: 2.31")
    made.add_argument(
        "--pre-commit",
        action="store_true",
        help=f"write {HOOKS}, too, or add the hook to it; a profile that is there stays",
    )
    made.add_argument(
        "--yes", action="store_true", help="ask nothing: take what this machine tells"
    )
    return made


def main(argv: list[str]) -> int:
    """Run ``init`` and return 0.

    Raises:
        UsageError: a profile is there already and no hook is asked for, or nothing says which GPUs
            there are.
        ConfigError: a value is not accepted.
    """
    args = parser().parse(argv)
    folder: str = args.folder
    if not os.path.isdir(folder):
        raise UsageError("there is no such folder", path=folder)
    path = os.path.normpath(os.path.join(folder, PROFILE))
    there = profile_in(folder)
    if there:
        if not args.pre_commit:
            hint = "edit it; `torchpin fleet show`; --pre-commit adds the hook alone"
            raise UsageError("a profile is there already", path=there, hint=hint)
        out(f"{clean(there)} is there already and stays as it is.\n")
        pre_commit(folder)
        return 0
    groups = groups_of(args, folder)
    answers = groups[0][1]
    if answers.gpus is None:
        raise UsageError(
            "which GPUs does the fleet have?",
            hint="torchpin init --gpu V100 --driver 550.54.15 --python 3.11   (--gpu none: CPU)\n"
            "  torchpin init --yes   takes what this machine tells",
        )
    write_new(path, profile_text(groups))
    try:
        check_profile(path)
    except TorchpinError:
        os.unlink(path)
        raise
    out(f"Wrote {clean(path)}.\n")
    if answers.gpus.where and answers.gpus.text in NONE:
        tell(
            "No GPU was found on this machine: the profile is one of CPU only. Name the GPUs of "
            "the fleet there, or by --gpu.\n",
            every=True,
        )
    if args.pre_commit:
        pre_commit(folder)
    out("Next: torchpin check" + ("" if folder == "." else f" {clean(folder)}") + "\n")
    return 0


def profile_in(folder: str) -> str:
    """Return the profile of a folder itself: ``torchpin.toml``, or a ``pyproject.toml`` with its
    table; ``""`` if there is none.

    Raises:
        ConfigError: a candidate cannot be read.
    """
    from torchpin.fleet.profile import find_profile

    found = find_profile(folder)
    if found is None or os.path.dirname(found) != os.path.abspath(folder):
        return ""
    return os.path.normpath(os.path.join(folder, os.path.basename(found)))


def groups_of(args: Arguments, folder: str) -> list[tuple[str, Answers]]:
    """Return the groups that the profile is to hold, by name: what the options say, and if they
    name no GPU, what the person at the terminal answers, or with ``--yes`` what this machine
    tells."""
    given = Answers(
        *(
            Value(text) if text else None
            for text in (",".join(args.gpu), args.driver, args.python, args.platform, args.glibc)
        )
    )
    name: str = args.group
    if given.gpus is not None:
        checked_options(args)
        return [(name, given)]
    if args.yes:
        pairs = zip(given, found_out(folder), strict=True)
        return [(name, Answers(*(first or second for first, second in pairs)))]
    if not sys.stdin.isatty():
        return [(name, given)]
    complete_names()
    out("What must PyTorch run on? Enter takes what is in [brackets], - leaves it out.\n")
    groups = [(name, asked(given, found_out(folder)))]
    while another := further([name for name, _ in groups]):
        last = groups[-1][1]
        offered = Answers(python=last.python, platform=last.platform)
        groups.append((another, asked(Answers(), offered)))
    return groups


def checked_options(args: Arguments) -> None:
    """Refuse what no profile takes before one is written.

    Raises:
        ConfigError: a value is unknown, or two contradict each other.
    """
    from torchpin.fleet.options import fleet_from_options

    fleet_from_options(
        gpus=args.gpu,
        driver=args.driver,
        python=args.python,
        platform=args.platform,
        glibc=args.glibc,
    )


def quoted(text: str) -> str:
    """Return a string as TOML.

    Raises:
        UsageError: it holds control characters.
    """
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise UsageError(f"{text!r} holds control characters")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def profile_text(groups: Sequence[tuple[str, Answers]]) -> str:
    """Return a commented profile of groups by name; what is not known stands there as a comment."""
    lines = [
        "# What PyTorch must run on. `torchpin fleet show` prints how this is understood,",
        "# `torchpin check` compares the dependency files with it.",
        "",
        '# policy = "nearest"   # nearest to the files, or newest',
        "",
        '# Private index URLs: a channel, "pypi" or "private".',
        "# [indexes]",
        '# "https://wheels.corp.example/torch-cu126/" = "cu126"',
        "",
    ]
    for name, answers in groups:
        lines += group_lines(name, answers)
    lines += [
        "# More groups: one table each. A file, an extra or a group of one kind of machine:",
        "# [fleet.ci]",
        "# gpus = []",
        '# files = ["requirements-ci.txt"]',
        "",
    ]
    return "\n".join(lines)


def group_lines(group: str, answers: Answers) -> list[str]:
    """Return the table of a group, and the empty line below it."""

    from torchpin.fleet.options import versions

    def line(key: str, value: Value | None, example: str, comment: str) -> str:
        if value is None:
            return f'# {key} = "{example}"   # {comment}'
        about = f"from {value.where}" if value.where else comment
        texts = versions(value.text) if key == "python" else [value.text]
        written = ", ".join(quoted(text) for text in texts)
        return f"{key} = {written if len(texts) == 1 else f'[{written}]'}   # {about}"

    gpus = answers.gpus or Value(NONE[0])
    told = f" ({gpus.where})" if gpus.where else ""
    names = ", ".join(quoted(name) for name in split(gpus.text))
    return [
        f"[fleet.{group if group.replace('-', '').replace('_', '').isalnum() else quoted(group)}]",
        f"gpus = [{names}]   # names, sm_70, p3.2xlarge; [] for CPU only{told}",
        line("driver", answers.driver, "550.54.15", "as nvidia-smi shows it"),
        line("python", answers.python, "3.11", 'a version, or ">=3.10,<3.13"'),
        line(
            "platform",
            answers.platform,
            "linux-x86_64",
            "linux-aarch64, windows-x86_64, macos-arm64 …",
        ),
        line("glibc", answers.glibc, "2.31", "`ldd --version` on the nodes"),
        "",
    ]


def write_new(path: str, text: str) -> None:
    """Write a file that does not exist yet.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", path=path) from error


def check_profile(path: str) -> None:
    """Read the profile as every command does.

    Raises:
        ConfigError: a value is not accepted.
    """
    from torchpin.fleet.profile import load_profile

    load_profile(path)
