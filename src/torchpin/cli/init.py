"""``torchpin init``: write a commented fleet profile, and a pre-commit hook."""

from __future__ import annotations

import os
import sys

from torchpin.catalog.model import PLATFORMS
from torchpin.cli.init_hook import HOOKS, pre_commit
from torchpin.cli.parser import Parser
from torchpin.cli.terminal import out
from torchpin.errors import ConfigError, TorchpinError, UsageError
from torchpin.report.style import clean

PROFILE = "torchpin.toml"


def parser() -> Parser:
    """Return the parser of ``init``."""
    made = Parser("init", "Write a commented torchpin.toml: your GPUs, driver and Python.")
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
    made.add_argument("--platform", choices=PLATFORMS, metavar="NAME", help="linux-x86_64 …")
    made.add_argument("--glibc", metavar="VERSION", help="its glibc: 2.31")
    made.add_argument(
        "--pre-commit",
        action="store_true",
        help=f"write {HOOKS}, too, or add the hook to it; a profile that is there stays",
    )
    made.add_argument("--yes", action="store_true", help="ask nothing")
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
    path = os.path.join(folder, PROFILE)
    if os.path.exists(path):
        if not args.pre_commit:
            raise UsageError(
                "is there already",
                path=path,
                hint="edit it; `torchpin fleet show`; --pre-commit adds the hook alone",
            )
        out(f"{clean(path)} is there already and stays as it is.\n")
        pre_commit(folder)
        return 0
    gpus: list[str] = [name.strip() for text in args.gpu for name in text.split(",")]
    driver: str | None = args.driver
    python: str | None = args.python
    if not gpus and not args.yes and sys.stdin.isatty():
        gpus = ask_gpus()
        driver = driver or (ask("Driver, as nvidia-smi shows it (empty: unknown): ") or None)
        python = python or (ask("Python, like 3.11 or >=3.10,<3.13 (empty: any): ") or None)
    if not gpus:
        raise UsageError(
            "which GPUs does the fleet have?",
            hint="torchpin init --gpu V100 --driver 550.54.15 --python 3.11   (--gpu none: CPU)",
        )
    if gpus in (["none"], ["cpu"]):
        gpus = []
    text = profile_text(args.group, gpus, driver, python, args.platform, args.glibc)
    write_new(path, text)
    try:
        check_profile(path)
    except TorchpinError:
        os.unlink(path)
        raise
    out(f"Wrote {clean(path)}.\n")
    if args.pre_commit:
        pre_commit(folder)
    out("Next: torchpin check" + ("" if folder == "." else f" {clean(folder)}") + "\n")
    return 0


def ask(question: str) -> str:
    """Return the answer to a question on the terminal; the end of input answers nothing."""
    try:
        return input(question).strip()
    except EOFError:
        return ""


def ask_gpus() -> list[str]:
    """Ask for the GPUs until every name is known."""
    from torchpin.fleet.gpus import find_gpu

    while True:
        answer = ask("GPUs of the group, comma-separated (V100, RTX 4090 …; empty: CPU only): ")
        names = [name.strip() for name in answer.split(",") if name.strip()]
        if not names:
            return ["none"]
        try:
            for name in names:
                find_gpu(name)
        except ConfigError as error:
            sys.stderr.write(f"{error}\n")
            continue
        return names


def quoted(text: str) -> str:
    """Return a string as TOML.

    Raises:
        UsageError: it holds control characters.
    """
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise UsageError(f"{text!r} holds control characters")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def profile_text(
    group: str,
    gpus: list[str],
    driver: str | None,
    python: str | None,
    platform: str | None,
    glibc: str | None,
) -> str:
    """Return a commented profile; what is not known stands there as a comment."""

    def line(key: str, value: str | None, example: str, comment: str) -> str:
        if value is None:
            return f'# {key} = "{example}"   # {comment}'
        return f"{key} = {quoted(value)}   # {comment}"

    names = ", ".join(quoted(name) for name in gpus)
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
        f"[fleet.{group if group.replace('-', '').replace('_', '').isalnum() else quoted(group)}]",
        f"gpus = [{names}]   # names, sm_70, gfx942, cloud instance types; [] for CPU only",
        line("driver", driver, "550.54.15", "as nvidia-smi shows it"),
        line("python", python, "3.11", 'a version, or ">=3.10,<3.13"'),
        line("platform", platform, "linux-x86_64", "linux-aarch64, windows-x86_64, macos-arm64 …"),
        line("glibc", glibc, "2.31", "`ldd --version` on the nodes"),
        "",
        "# More groups: one table each. A file, an extra or a group of one kind of machine:",
        "# [fleet.ci]",
        "# gpus = []",
        '# files = ["requirements-ci.txt"]',
        "",
    ]
    return "\n".join(lines)


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
