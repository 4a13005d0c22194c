"""Which nodes Slurm has, and one ``srun`` for each of them.

Slurm allocates, launches and limits; here is only said on which nodes. Each node gets an ``srun``
of its own: one that is dead, drained or busy then takes no other with it (within one ``srun``, a
node that cannot launch ends the tasks of all), and what ``srun`` says is said of that node.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from torchpin.errors import UsageError
from torchpin.fleet.importers.hosts import expand, split_list
from torchpin.patterns import regex
from torchpin.report.style import clean
from torchpin.verify.cluster.model import Expected
from torchpin.verify.cluster.srun_options import SrunOptions

_SECONDS = 60.0
"""The longest that Slurm's controller may take to answer."""
_FLAGS = "*~#!%$@^-+"
"""What sinfo appends to a state; ``*``: the node does not respond."""
_UNUSABLE = (
    *("down", "drained", "draining", "drain", "drng", "fail", "failing", "error", "unknown"),
    *("inval", "future", "futr", "unk"),
)
_RESERVED = ("reserved", "resv", "maint")
_ON_NODES = regex(r"on nodes (\S+)")
_NOISE = regex(
    r"srun: (?:job \d+ (?:queued|has been)|Job step aborted|Force Terminated|Job allocation \d"
    r"|forcing job termination|error: Application launch failed|Terminating|got SIG|sending"
    r"|interrupt|launch/|Step created|Cancelled pending)"
)
_EXIT = regex(r"task 0: Exited with exit code \d+$")
_NO_TORCHPIN = regex(r"execve\(\): |No module named '?torchpin\b")
_BY_SLURM = regex(r"(?:srun|slurmstepd|slurmd|slurm_load\w*)(?:-[^:\s]+)?: |allocation failure: ")


def programs(environ: Mapping[str, str]) -> None:
    """Check that Slurm's programs are there.

    Raises:
        UsageError: one is not.
    """
    for name in ("srun", "sinfo", "scontrol"):
        if shutil.which(name, path=environ.get("PATH")) is None:
            raise UsageError(
                f"{name} is not on the PATH", hint="run it where Slurm's commands are installed"
            )


def nodes(options: SrunOptions, environ: Mapping[str, str]) -> tuple[Expected, ...]:
    """Return the nodes to verify, in the order in which Slurm names them.

    Those of the options; else those of the allocation that torchpin runs in; else those that
    ``srun --test-only`` would take, where a number is asked for; else all of the partition.

    Raises:
        UsageError: Slurm does not answer, knows no such node or partition, or refuses an option.
    """
    job = environ.get("SLURM_JOB_NODELIST", "") if environ.get("SLURM_JOB_ID") else ""
    wanted: list[str] | None = None
    if options.nodelist or options.nodefile:
        wanted = _named(options, environ)
    elif job:
        wanted = _hostnames(job, environ)
    elif options.number or options.tasks:
        wanted = _chosen(options, environ)
    rows = _rows(options, environ, every=wanted is not None)
    if wanted is None:
        if not rows:
            # srun says what is wrong with a partition better than a list that is empty
            _chosen(options, environ)
            raise UsageError(
                "Slurm names no node of a default partition", hint="say which: -- -p PARTITION"
            )
        wanted = list(rows)
    else:
        missing = [name for name in wanted if name not in rows]
        if missing:
            raise UsageError(f"Slurm knows no node {clean(', '.join(missing[:10]))}")
    without = {*_hostnames(options.exclude, environ)} if options.exclude else set()
    found = tuple(rows[name] for name in dict.fromkeys(wanted) if name not in without)
    if not found:
        raise UsageError("no node is left to verify")
    if not job and any(not node.reason for node in found):
        _allowed(options, environ)
    return found


def command(
    options: SrunOptions, node: Expected, words: Sequence[str], *, allocated: bool
) -> list[str]:
    """Return the ``srun`` of one node.

    Args:
        options: the user's; those that choose nodes are replaced.
        node: where it runs.
        words: the command to run there.
        allocated: it is a step of an allocation, whose GPUs it has; else it is a job, and asks for
            all GPUs of the node if the options do not say which.
    """
    name = () if allocated else ("--job-name=torchpin-verify",)
    gpus = () if allocated or options.asks_gpus or not node.gpus else (f"--gres=gpu:{node.gpus}",)
    only = (f"--nodelist={node.name}", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1")
    return ["srun", *name, *gpus, *options.rest, *only, *words]


def reason(node: str, code: int, errors: Sequence[str], words: str) -> str:
    """Return why a node's answer is missing or cut short.

    Args:
        node: its name; it and numbers of jobs are left out, so that like reasons are alike.
        code: exit code of its ``srun``.
        errors: the last lines on its standard error.
        words: the last line on its standard output that is no result.
    """
    told = [line for line in errors if _BY_SLURM.match(line) and not _NOISE.match(line)]
    chosen = [line for line in told if "error" in line or "failure" in line] or told
    others = [line for line in errors if not _BY_SLURM.match(line)]
    parts = list(dict.fromkeys(_alike(line, node) for line in chosen))[:3]
    parts = [part for part in parts if not _EXIT.search(part)] or parts  # it tells no more
    own = [at for at, line in enumerate(others) if line.startswith("torchpin: ")]
    if own:  # a message of torchpin has several lines
        parts = [part for part in parts if not _EXIT.search(part)]
        parts += map(str.strip, others[own[-1] :])
    elif others or words:
        last = others[-1] if others else words
        parts.append(f"the last that it printed: {last}" if parts else last)
    if any(map(_NO_TORCHPIN.search, (*errors, words))):
        parts.append("the node needs this torchpin by the same path, on a shared file system")
    return "; ".join(parts) or f"srun ended with exit code {code} and said nothing"


def _alike(line: str, node: str) -> str:
    """Return a line of Slurm without what differs between nodes with one trouble."""
    name = re.escape(node)
    line = re.sub(rf"^(slurm\w+)-{name}: ", r"\1: ", line)
    line = re.sub(rf"^(srun: error: ){name}: ", r"\1", line)
    line = re.sub(rf" on node {name}\b| ON {name}\b| AT \d{{4}}-[\dT:-]+", "", line)
    line = re.sub(r"(?: for| in)? StepId=\d+(?:\.\w+)?", "", line)
    return re.sub(r"\b(job|STEP|JOB|JobId=) ?[\d.]+\b", r"\1", line)


def waiting(node: str, errors: Sequence[str]) -> str:
    """Return what the ``srun`` of a node said last while it waited, or ``""``."""
    told = [_alike(line, node) for line in errors if line.startswith("srun: ")]
    if told and "has been allocated" in told[-1]:
        return ""
    return "; ".join(told[-2:])


def usage(errors: Sequence[str]) -> str:
    """Return what ``srun`` said of an option that it does not take, or ``""``."""
    if any("Unable to confirm allocation" in line for line in errors):
        return "; ".join(errors[-2:])
    return "; ".join(errors) if any("srun --help" in line for line in errors) else ""


def _ask(environ: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"{words[0]} does not answer in {_SECONDS:g} s", hint="is slurmctld up?"
        ) from error
    except OSError as error:
        raise UsageError(f"{words[0]} does not start: {error.strerror or error}") from error


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith("Try ")]
    return clean("; ".join(kept[:3])) or f"it ended with exit code {done.returncode}"


def _hostnames(text: str, environ: Mapping[str, str]) -> list[str]:
    """Return the names of a host list, by Slurm itself where it is more than plain ranges."""
    if os.sep in text:  # srun takes a name with a slash for a file
        return _hostnames(_file(text), environ)
    if text.count("[") != text.count("]"):
        raise UsageError(f"{clean(text)}: no list of nodes: a bracket has no other")
    names = expand(text)
    if not any("[" in name for name in names):
        return names
    done = _ask(environ, "scontrol", "show", "hostnames", text)
    if done.returncode:
        raise UsageError(f"{clean(text)}: no list of nodes: {_said(done)}")
    return done.stdout.split()


def _named(options: SrunOptions, environ: Mapping[str, str]) -> list[str]:
    names = _hostnames(options.nodelist, environ) if options.nodelist else []
    return names + (_hostnames(_file(options.nodefile), environ) if options.nodefile else [])


def _file(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(4 * 1024 * 1024)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", path=path) from error
    return ",".join(part for line in text.split() for part in split_list(line))


def _chosen(options: SrunOptions, environ: Mapping[str, str]) -> list[str]:
    """Return the nodes that ``srun`` would take for the options.

    Raises:
        UsageError: it takes none; with its own words.
    """
    words = [f"--nodes={options.number or options.tasks}", "--ntasks-per-node=1"]
    if not (options.number or options.tasks):
        words = []
    done = _ask(environ, "srun", "--test-only", *options.rest, *words, "true")
    if done.returncode:
        raise UsageError(f"srun refuses: {_said(done)}")
    match = _ON_NODES.search(done.stderr)
    return _hostnames(match[1], environ) if match is not None else []


def _allowed(options: SrunOptions, environ: Mapping[str, str]) -> None:
    """Let ``srun`` look at the options before a job is queued for each node.

    Raises:
        UsageError: it refuses them.
    """
    done = _ask(environ, "srun", "--test-only", *options.rest, "--nodes=1", "true")
    if done.returncode:
        raise UsageError(f"srun refuses: {_said(done)}")


def _rows(options: SrunOptions, environ: Mapping[str, str], *, every: bool) -> dict[str, Expected]:
    """Return the nodes of a partition, or all that Slurm has."""
    words = ["sinfo", "--noheader", "--Node", "--format=%N|%P|%T|%G|%E"]
    partition = options.partition or environ.get("SLURM_PARTITION", "")
    # Hidden partitions are shown where they are named, or by --all; sinfo takes one of the two.
    words.append(f"--partition={partition}" if partition and not every else "--all")
    clean_environ = {key: value for key, value in environ.items() if not key.startswith("SINFO_")}
    done = _ask(clean_environ, *words)
    if done.returncode:
        raise UsageError(f"sinfo does not tell the nodes: {_said(done)}")
    found: dict[str, Expected] = {}
    for line in done.stdout.splitlines():
        parts = line.strip().split("|", 4)
        if len(parts) != 5 or not (every or partition or parts[1].endswith("*")):
            continue
        name, _, state, gres, why = parts
        found.setdefault(name, Expected(name, _unusable(state, why, options), _gpus(gres)))
    return found


def _unusable(state: str, why: str, options: SrunOptions) -> str:
    """Return why no job starts on a node, or ``""``."""
    bare = state.rstrip(_FLAGS).lower()
    silent = "*" in state
    reason = "" if why.strip().lower() in ("", "none") else f": {clean(why.strip())}"
    if bare in _UNUSABLE:
        return f"Slurm has it {bare}{reason}"
    if silent:
        return f"Slurm has it {bare}, but it does not respond{reason}"
    if bare in _RESERVED and not options.reservation:
        return f"Slurm has it {bare}{reason}; srun's --reservation=NAME lets jobs in"
    return ""


def _gpus(gres: str) -> int:
    """Return how many GPUs ``gpu:a100:4(S:0-1),gpu:1`` counts."""
    count = 0
    for part in split_list(gres):
        match = re.match(r"gpu(?::[^:()]+)?:(\d{1,4})(?:\(|$)", part)
        if match is not None:
            count += int(match[1])
        elif part == "gpu":
            count += 1
    return count
