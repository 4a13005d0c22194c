"""``torchpin pip -- …`` and ``torchpin uv -- …``: the real client, held to what runs on a group."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from torchpin.cli.arguments import Arguments
from torchpin.cli.common import fleet_of, options_of
from torchpin.cli.main import FINDINGS
from torchpin.cli.parser import Parser, add_catalog, add_fleet
from torchpin.cli.terminal import note
from torchpin.errors import TorchpinError, UsageError

if TYPE_CHECKING:
    from torchpin.documents.base import Document
    from torchpin.fleet.model import Fleet
    from torchpin.plugin.command import Call, Steering
    from torchpin.plugin.configured import Configured
    from torchpin.resolve.model import Plan

EXAMPLE = {"pip": "install torch torchvision", "uv": "pip install torch torchvision"}


def parser(client: str) -> Parser:
    """Return the parser of what stands before ``--``."""
    from torchpin.cli.constraints import add_mirror

    if client == "pip":
        steered = (
            "install gets constraints, and links to the\n"
            "channel where that is needed. What cannot run there is refused; every other command\n"
            "runs as it is."
        )
    else:
        steered = (
            "pip install, pip sync, add, run --with, tool run\n"
            "and tool install get constraints, and links to the channel where that is needed.\n"
            "sync and run are checked first. What cannot run there is refused; every other\n"
            "command runs as it is."
        )
    made = Parser(
        client,
        f"Run {client}, held to the PyTorch that runs on a node group: {steered}\n"
        f"What {client}'s own configuration says counts. Input, output, signals and exit code are\n"
        f"those of {client}.",
        f"exit code: that of {client} · 1 refused · 2 wrong usage\n\n"
        f"example: torchpin {client} --group training -- {EXAMPLE[client]}",
    )
    made.usage = f"torchpin {client} [OPTIONS] -- [{client.upper()} ARGUMENTS ...]"
    made.add_argument(
        "--group", metavar="NAME", help="the node group (default: the only one of the fleet)"
    )
    made.add_argument(
        "--force",
        action="store_true",
        help="run what cannot run on the group, not held to anything",
    )
    add_mirror(made)
    add_catalog(made)
    add_fleet(made)
    made.add_argument("-q", "--quiet", action="store_true", help="no notes")
    made.set_defaults(paths=[], stdin_filename=None)
    return made


def run(client: str, argv: list[str]) -> int:
    """Run the client as ``argv`` says; return only if it is refused (or on Windows).

    Raises:
        UsageError: there is no ``--``, no such client, no fleet, or no such group.
    """
    at = argv.index("--") if "--" in argv else len(argv)
    if at == len(argv) and not {"-h", "--help"} & set(argv):
        raise UsageError(
            f"the arguments of {client} stand behind --",
            hint=_with_dashes(client, argv),
        )
    args = parser(client).parse(argv[:at])
    from torchpin.plugin.command import RUN, is_steered, read_call

    program = find(client)
    call = read_call(client, argv[at + 1 :])
    if not args.force and not asks_help(call):
        if client == "uv" and call.action in (("sync",), RUN):
            from torchpin.cli.wrapper_project import synced

            if not synced(args, call, program):
                return FINDINGS
        if is_steered(call):
            held = steered(args, call, program)
            if held is None:
                return FINDINGS
            return replace(program, held)
    return replace(program, call.words)


def asks_help(call: Call) -> bool:
    """Tell whether a command prints its help; what stands behind ``run`` is another program's."""
    words = call.words[: call.at + 1] if call.action[-1:] == ("run",) else call.words
    return any(word in ("-h", "--help") for word in words)


def _with_dashes(client: str, argv: list[str]) -> str:
    """Return the command as the user wrote it, with ``--`` before what is the client's."""
    from torchpin.report.style import clean, redact

    if not argv:
        return f"torchpin {client} -- {EXAMPLE[client]}"
    takes = {
        option: action.nargs != 0
        for action in parser(client)._actions
        for option in action.option_strings
    }
    at = 0
    while at < len(argv) and argv[at].partition("=")[0] in takes:
        at += 2 if takes[argv[at].partition("=")[0]] and "=" not in argv[at] else 1
    words = ["torchpin", client, *argv[:at], "--", *argv[at:]]
    tail = "" if argv[at:] else f" {EXAMPLE[client]}"
    return redact(clean(shlex.join(words) + tail))


def find(client: str) -> str:
    """Return the program that the shell would run.

    Raises:
        UsageError: there is none.
    """
    import shutil

    program = shutil.which(client)
    if program is None:
        hint = f"install {client}, or activate the environment that has it"
        raise UsageError(f"there is no {client} on PATH", hint=hint)
    return program


def group_fleet(args: Arguments) -> Fleet:
    """Return the fleet with the one group that the command is for.

    Raises:
        UsageError: no fleet, no such group, or several and none is named.
    """
    from torchpin.plugin.plan import targets_of

    fleet = fleet_of(args, options_of(args))
    targets = targets_of(fleet, args.group, one=True)
    assert fleet is not None
    return fleet._replace(groups=(targets[0].group,))


def steered(args: Arguments, call: Call, program: str) -> Sequence[str] | None:
    """Return the words to run the client with; None if the command is refused."""
    from torchpin.catalog.store import load_catalog
    from torchpin.documents.loader import load
    from torchpin.plugin import command, forms
    from torchpin.plugin.plan import places_of

    fleet = group_fleet(args)
    places = places_of(fleet.settings.indexes, args.mirror)
    catalog = load_catalog()
    cache: dict[str, Document] = {}
    private = dict(fleet.settings.indexes)
    configured = configuration(call, program, lambda path: load(path, cache))
    read = command.install_of_call(
        call, os.environ, lambda path: load(path, cache), private, configured
    )
    if read is None:
        return call.words
    asked = command.asked_of(read, fleet.targets(), fleet, catalog)
    skip = read.upgrade or bool(asked.note)
    installed = {} if skip else family_there(call, program, configured.words)
    steering = command.steer(asked, catalog, installed)
    if steering.note and not args.quiet:
        note(steering.note)
    if steering.refused:
        sys.stderr.write(refusal(args, call, fleet, steering, read.configured))
        return None
    plan = steering.plan
    if plan is None or (call.action == ("add",) and not asked.named):
        return call.words
    added = command.added_of(plan, places, read)
    if not args.quiet:
        new = [one for one in added.named if one.partition("=")[2] not in configured.known]
        said(call, plan, fleet, new)
    text = "\n".join([*forms.header(plan, catalog.date), *forms.pins(plan), ""])
    return command.with_options(call, added, os.environ, kept, text)


def configuration(call: Call, program: str, load: Callable[[str], Document]) -> Configured:
    """Return what the client's own configuration adds to a command.

    pip is asked; where it does not tell (a client of another kind, a configuration that it cannot
    read) the variables of the environment are all that counts.
    """
    import subprocess

    from torchpin.plugin.command import options_of_call, value_of
    from torchpin.plugin.configured import Configured, UvPlaces, pip_configured, uv_configured

    parsed = options_of_call(call)
    given = {option.name for option in parsed.options}
    if call.client == "uv":
        folder = value_of(parsed, "--directory") or os.environ.get("UV_WORKING_DIR", "")
        project = value_of(parsed, "--project") or os.environ.get("UV_PROJECT", "")
        none = "--no-config" in given or is_on("UV_NO_CONFIG")
        config = value_of(parsed, "--config-file") or os.environ.get("UV_CONFIG_FILE", "")
        only: Document | None = None
        if config:
            from torchpin.documents.loader import read_as, read_bytes

            try:
                only = read_as("uv.toml", config, read_bytes(config))
            except TorchpinError:
                none = True
        places = UvPlaces(only, none, os.path.join(folder, project))
        return uv_configured(call.action, places, os.environ, load)
    words = ["--isolated"] if "--isolated" in given else []
    python = value_of(parsed, "--python")
    words += ["--python", python] if python else []
    done = subprocess.run(
        [program, *words, "config", "list"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )
    return pip_configured(done.stdout) if done.returncode == 0 else Configured()


def is_on(variable: str) -> bool:
    """Tell whether a variable of the environment switches something of uv on."""
    return os.environ.get(variable, "").lower() in ("1", "true", "yes", "on", "y", "t")


def said(call: Call, plan: Plan, fleet: Fleet, named: Sequence[str]) -> None:
    """Tell what the command is held to; ``named``: the indexes that ``uv add`` writes down."""
    from torchpin.plugin.command import is_known, options_of_call, value_of
    from torchpin.plugin.forms import pins
    from torchpin.report.style import clean

    runs = "runs" if is_known(plan) else "is not known to fail"
    note(f"held to what {runs} on {clean(fleet.groups[0].name)}: {' '.join(pins(plan))}")
    if call.action == ("add",) and named:
        file = clean(value_of(options_of_call(call), "--script")) or "pyproject.toml"
        note(
            f"uv keeps the index in {file} for all packages; `torchpin constraints --format uv` "
            "prints tables that keep it to the family"
        )


def family_there(call: Call, program: str, configured: Sequence[str] = ()) -> Mapping[str, str]:
    """Return the family's packages that are installed where the command installs.

    Nothing where it installs into a folder of its own, or where the client does not tell.

    Args:
        call: the command.
        program: the client.
        configured: options that its configuration adds.
    """
    import json
    import subprocess

    from torchpin.catalog.model import FAMILY
    from torchpin.plugin.command import options_of_call, value_of

    parsed = options_of_call(call)
    given = {option.name for option in parsed.options}
    if call.action in (("add",), ("tool", "install"), ("tool", "run")) or "--isolated" in given:
        return {}
    if not {"--target", "--prefix", "--root"}.isdisjoint((*given, *configured)):
        return {}
    where: list[str] = []
    if call.client == "uv":
        places = ("--directory", "--project")
        where = [word for name in places if (at := value_of(parsed, name)) for word in (name, at)]
    where += ["--system"] if "--system" in given else []
    python = value_of(parsed, "--python")
    where += ["--python", python] if python else []
    command = (
        [program, *where, "list"] if call.client == "pip" else [program, "pip", "list", *where]
    )
    done = subprocess.run(
        [*command, "--format", "json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    try:
        listed = json.loads(done.stdout) if done.returncode == 0 else []
        return {one["name"]: one["version"] for one in listed if one["name"] in FAMILY}
    except (ValueError, TypeError, KeyError):
        return {}  # some client of another kind: nothing is known, so nothing is kept


def refusal(
    args: Arguments, call: Call, fleet: Fleet, steering: Steering, configured: Sequence[str]
) -> str:
    """Return why a command is not run, and how to go on."""
    from torchpin.plugin.command import is_known
    from torchpin.plugin.forms import extra_indexes, pins
    from torchpin.plugin.plan import Places
    from torchpin.plugin.words import because_lines
    from torchpin.report.style import clean, redact

    assert steering.outcome is not None
    group = fleet.groups[0].name
    lines = [
        f"torchpin: not run: nothing that this command allows runs on {clean(group)}",
        *because_lines(steering.outcome),
    ]
    lines += [f"  {call.client} is configured with {clean(one)}" for one in configured]
    told = {line.strip() for line in lines}
    for unserved in steering.outcome.unserved:
        text = f"{clean(unserved.target.text)}: {clean(unserved.because)}"
        if not steering.outcome.explanation and text not in told:
            lines.append(f"  {text}")
    if steering.instead is not None:
        places = Places(fleet.settings.indexes, args.mirror)
        place = ", ".join(extra_indexes(steering.instead, places)) or "PyPI"
        runs = "what runs" if is_known(steering.instead) else "what is not known to fail"
        lines.append(f"{runs}: {' '.join(pins(steering.instead))} (from {place})")
    words = shlex.join(call.words)
    name = f"--group {shlex.quote(group)} " if args.group else ""
    lines.append(f"to run it all the same: torchpin {call.client} {name}--force -- {words}")
    return redact("\n".join(lines)) + "\n"


def kept(text: str) -> str:
    """Return a file that holds ``text``: in the cache, by its digest, else a temporary one."""
    import hashlib
    import tempfile

    from torchpin.catalog.location import cache_dir
    from torchpin.cli.constraints import write

    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = os.path.join(cache_dir(), "constraints", f"{name}.txt")
    if os.path.isfile(path):
        return path
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(path, text)
    except (OSError, TorchpinError):  # a home that is read-only
        handle, path = tempfile.mkstemp(prefix="torchpin-", suffix=".txt")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
    return path


def replace(program: str, words: Sequence[str]) -> int:
    """Become the client: its input, output, signals and exit code are the real ones.

    Windows has no such call: there it is a child process, whose exit code is returned.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        import signal

        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would it
            signal.signal(number, signal.SIG_DFL)
        os.execv(program, [program, *words])
    import subprocess

    return subprocess.run([program, *words], check=False).returncode
