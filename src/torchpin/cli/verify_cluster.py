"""``torchpin verify --slurm``, ``--kubernetes`` and ``--from``: many machines at once."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from torchpin.cli.arguments import Arguments
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser
from torchpin.cli.progress import Bar
from torchpin.cli.terminal import note, out, style
from torchpin.errors import UsageError
from torchpin.report.style import clean

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from torchpin.fleet.model import Fleet
    from torchpin.verify.cluster.collect import Collector
    from torchpin.verify.cluster.model import Answer, Expected

TOPICS = ("slurm", "kubernetes")
"""What has options that the help shows where it is asked for them."""
WHAT = {
    "": "Try the torch that is installed on this machine: on each GPU (without one, on the CPU) a "
    "child process does real work; compare with the profile and with what was predicted.",
    "slurm": "Try the torch that is installed on each node of Slurm by an srun of its own, put the "
    "answers together, and name the nodes that give none. Options of srun stand behind --; those "
    "that choose nodes choose the nodes to try (default: the nodes of the allocation, else all of "
    "the partition).",
    "kubernetes": "Write a manifest whose pods try the torch of an image on each GPU node; it is "
    "created by kubectl. `torchpin verify --from` puts together what the pods print.",
}
"""Topic → what the command does."""
MORE = {
    "": "options of --slurm: torchpin verify --slurm --help; --kubernetes likewise\n\n"
    "example: torchpin verify --gpu 0",
    "slurm": "example: torchpin verify --slurm -- --partition=gpu --nodelist='n[01-16]'",
    "kubernetes": "example: torchpin verify --kubernetes --image NAME --nodes nodes.json -o v.yaml",
}
"""Topic → the end of its help."""
FORMATS = ("text", "jsonl", "json", "markdown")
_DAY = 86400.0


def add_options(parser: Parser, topic: str = "") -> None:
    """Add the options that verify many machines.

    Args:
        parser: of ``verify``.
        topic: whose options the help shows, one of ``TOPICS``; ``""``: those that name the topics.
    """
    many = parser.add_argument_group("many machines")
    many.add_argument(
        "--slurm",
        action="store_true",
        help="each node of Slurm by an srun; its options stand behind --: -- -p gpu",
    )
    many.add_argument(
        "--kubernetes",
        action="store_true",
        help="write a manifest that tries each GPU node in a pod of --image",
    )
    many.add_argument(
        "--from",
        dest="answers",
        action="append",
        default=[],
        metavar="FILE",
        help="read what machines printed: JSON lines, `kubectl logs`; - stdin; may be repeated",
    )
    many.add_argument(
        "--nodes",
        metavar="FILE",
        help="nodes that should answer: `kubectl get nodes -o json`, or names",
    )
    many.add_argument(
        "--pods",
        metavar="FILE",
        help="`kubectl get pods -o json`: why pods printed nothing",
    )
    _add_slurm(_Topic(parser, "--slurm", shown=topic == "slurm"))
    _add_kubernetes(_Topic(parser, "--kubernetes", shown=topic == "kubernetes"))


def hide_unused(parser: Parser, topic: str) -> None:
    """Leave out of the help of a topic what does not go with it."""
    unused = (
        "slurm",
        "answers",
        "pods",
        "gpu",
        "group",
        "config",
        "isolated",
        "catalog",
        "output_format",
    )
    for action in parser._actions if topic == "kubernetes" else ():
        if action.dest in (*unused, "no_color"):
            action.help = SUPPRESS
    for action in parser._actions if topic == "slurm" else ():
        if action.dest in ("kubernetes", "answers", "nodes", "pods"):
            action.help = SUPPRESS


class _Topic:
    """A group of options that the help shows where it is asked for them."""

    def __init__(self, parser: Parser, title: str, *, shown: bool) -> None:
        self._group = parser.add_argument_group(title)
        self._shown = shown

    def add(self, *names: str, help: str, **rest: Any) -> None:
        self._group.add_argument(*names, help=help if self._shown else SUPPRESS, **rest)


def _add_slurm(topic: _Topic) -> None:
    topic.add(
        "--srun-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="an option of srun, as behind --; may be repeated: --srun-option=--qos=high",
    )
    topic.add(
        "--at-once",
        type=int,
        default=32,
        metavar="N",
        help="so many nodes at a time (default: 32)",
    )
    topic.add(
        "--wait",
        type=float,
        default=900.0,
        metavar="SECONDS",
        help="the longest that a node may take to begin, in the queue too (default: 900)",
    )
    topic.add(
        "--node-timeout",
        type=float,
        default=1800.0,
        metavar="SECONDS",
        help="the longest that a node that has begun may take (default: 1800)",
    )


def _add_kubernetes(topic: _Topic) -> None:
    topic.add(
        "--image",
        metavar="NAME",
        help="the image whose torch is tried; its Python is --python (default: python3)",
    )
    topic.add(
        "--kind",
        choices=("daemonset", "job"),
        help="a pod on every node that fits; or an indexed Job for --count nodes, or\n"
        "for those of --nodes (the default with these)",
    )
    topic.add("--count", type=int, metavar="N", help="how many nodes a Job is for")
    topic.add(
        "--gpus",
        type=int,
        metavar="N",
        help="GPUs of a pod: all of a node (default: as --nodes tells, else 1)",
    )
    topic.add(
        "--resource",
        default="nvidia.com/gpu",
        metavar="NAME",
        help="what counts GPUs (default: nvidia.com/gpu)",
    )
    topic.add(
        "--name",
        default="torchpin-verify",
        help="of what is created (default: torchpin-verify)",
    )
    topic.add("--namespace", metavar="NAME", help="its namespace (default: kubectl's)")
    topic.add(
        "--node-selector",
        action="append",
        default=[],
        metavar="LABEL=VALUE",
        help="only nodes with this label; may be repeated",
    )
    topic.add(
        "--toleration",
        action="append",
        default=[],
        metavar="KEY[=VALUE][:EFFECT]",
        help="nodes with this taint, too; may be repeated",
    )
    topic.add("--image-pull-secret", metavar="NAME", help="lets the image be pulled")
    topic.add(
        "--run-as-user", type=int, metavar="UID", help="user of the pods (default: the image's)"
    )
    topic.add(
        "--in-image",
        action="store_true",
        help="torchpin is in the image (default: ConfigMaps bring it)",
    )
    topic.add("-o", "--output", metavar="FILE", help="write it to this file (default: print it)")


def is_wanted(args: Arguments) -> bool:
    """Tell whether the command line asks for more than this machine."""
    return bool(args.slurm or args.kubernetes or args.answers)


def run(args: Arguments, behind: list[str]) -> int:
    """Run what the options of ``add_options`` ask for, and return the exit code.

    Args:
        args: the arguments.
        behind: what stands behind ``--``.

    Raises:
        UsageError: options that do not go together, or that Slurm refuses; nothing to read.
    """
    _check(args, behind)
    if args.kubernetes:
        from torchpin.cli.verify_kubernetes import write_manifest

        return write_manifest(args)
    return _slurm(args, behind) if args.slurm else _gather(args)


def _check(args: Arguments, behind: list[str]) -> None:
    asked = [
        name
        for name, given in (
            ("--slurm", args.slurm),
            ("--kubernetes", args.kubernetes),
            ("--from", args.answers),
        )
        if given
    ]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} cannot stand together")
    if (behind or args.srun_option) and not args.slurm:
        raise UsageError("options of srun go with --slurm")
    if args.nodes and args.slurm:
        raise UsageError(
            "--nodes goes with --kubernetes and --from", hint="for Slurm: -- -w 'n[01-16]'"
        )
    if args.pods and not args.answers:
        raise UsageError("--pods goes with --from")
    if args.gpu and not args.slurm:
        raise UsageError("--gpu is for this machine and --slurm")
    if args.at_once < 1:
        raise UsageError("--at-once takes a number above 0")
    for option, seconds in (("--wait", args.wait), ("--node-timeout", args.node_timeout)):
        if not 0 < seconds <= 30 * _DAY:
            raise UsageError(f"{option} takes seconds above 0")


class _NodesBar(Bar):
    def columns(self) -> list[ProgressColumn]:
        """Return the time that has passed."""
        from rich.progress import TimeElapsedColumn

        return [TimeElapsedColumn()]


def _slurm(args: Arguments, behind: list[str]) -> int:
    from torchpin.verify.cluster import slurm, srun_options
    from torchpin.verify.cluster.collect import Collector

    fleet = profile(args)
    options = srun_options.read([*args.srun_option, *behind])
    environ = dict(os.environ)
    slurm.programs(environ)
    nodes = slurm.nodes(options, environ)
    collector = Collector()
    usable = [node for node in nodes if not node.reason]
    words = _remote(args)
    allocated = bool(environ.get("SLURM_JOB_ID"))
    commands = [
        (node.name, slurm.command(options, node, words, allocated=allocated)) for node in usable
    ]
    try:
        _collect(args, collector, commands, environ, failed=len(nodes) - len(usable))
    except (KeyboardInterrupt, SystemExit):  # by a signal: what is known already is told
        for name, _ in commands:
            if not collector.ended(name):
                collector.lost(name, "not done when it was interrupted")
        deliver(args, collector, nodes, fleet)
        sys.stdout.flush()
        raise
    return deliver(args, collector, nodes, fleet)


def _collect(
    args: Arguments,
    collector: Collector,
    commands: Sequence[tuple[str, Sequence[str]]],
    environ: Mapping[str, str],
    *,
    failed: int,
) -> None:
    """Run the jobs of the nodes and take in what they answer."""
    from torchpin.verify.cluster import jobs, slurm

    with _NodesBar(quiet=args.quiet) as bar:

        def tick(done: int, running: int) -> None:
            told = f"{done} of {len(commands)} nodes, {running} running or waiting, {failed} failed"
            bar.draw(told, done, len(commands))

        events = jobs.run(
            commands,
            environ,
            at_once=args.at_once,
            begin_within=args.wait,
            end_within=args.node_timeout,
            begun=collector.begun,
            tick=tick,
        )
        with closing(events):
            for event in events:
                if isinstance(event, jobs.Line):
                    _pass_on(args, collector, event.text, event.name, event.name)
                    continue
                if isinstance(event, jobs.Ended) and not collector.begun(event.name):
                    told = slurm.usage(event.errors)
                    if told:
                        raise UsageError(f"srun refuses: {clean(told)}")
                failed += not collector.is_well(event.name)
                if not collector.ended(event.name):
                    collector.lost(event.name, _why(args, event, collector.last_words(event.name)))


def _why(args: Arguments, event: object, words: str) -> str:
    """Return why the answer of a node is missing or has no end."""
    from torchpin.verify.cluster import jobs, slurm

    if isinstance(event, jobs.Late):
        limit = args.node_timeout if event.begun else args.wait
        end = "it was not done" if event.begun else "it did not begin"
        told = slurm.waiting(event.name, event.errors)
        return f"{end} in {limit:g} s and was ended" + (f": {told}" if told else "")
    assert isinstance(event, jobs.Ended)
    return slurm.reason(event.name, event.code, event.errors, words)


def _remote(args: Arguments) -> list[str]:
    """Return the command that a node runs: this torchpin, by the same path."""
    words = [sys.executable, "-m", "torchpin", "verify", "--output-format=jsonl", "--quiet"]
    words += [f"--python={args.python}", f"--timeout={args.timeout:g}"]
    words += [f"--gpu={value}" for value in args.gpu]
    if args.group is not None:
        words.append(f"--group={args.group}")
    if args.config:
        words.append(f"--config={os.path.abspath(args.config)}")
    if args.isolated:
        words.append("--isolated")
    if args.catalog:
        shipped = args.catalog == "shipped"
        words.append(f"--catalog={args.catalog if shipped else os.path.abspath(args.catalog)}")
    return words


def _pass_on(
    args: Arguments, collector: Collector, line: str, source: str, node: str | None = None
) -> None:
    """Take a line; print its records where JSON lines are asked for."""
    records = collector.feed(line, source, node)
    if records and args.output_format == "jsonl":
        from torchpin.verify.lines import to_line

        for record in records:
            named = record if node is None else record._replace(node=node)
            out(to_line(named) + "\n")
        sys.stdout.flush()


def _gather(args: Arguments) -> int:
    from torchpin.verify.cluster.collect import Collector
    from torchpin.verify.cluster.expected import read_expected

    if args.answers.count("-") > 1:
        raise UsageError("- (standard input) can be read once only")
    fleet = profile(args)
    expected: tuple[Expected, ...] = ()
    if args.nodes:
        expected = read_expected(_whole(args.nodes), args.nodes)
    collector = Collector()
    for path in args.answers:
        for line in _lines(path):
            _pass_on(args, collector, line, path)
    if args.pods:
        from torchpin.verify.cluster.pods import read_pods

        for pod in read_pods(_whole(args.pods), args.pods):
            collector.place(pod)
    if not collector.answers() and not expected:
        names = ", ".join("standard input" if path == "-" else path for path in args.answers)
        raise UsageError(
            f"{clean(names)}: no line of `torchpin verify --output-format jsonl`",
            hint="kubectl logs --prefix --ignore-errors --tail=-1 "
            "-l app.kubernetes.io/name=torchpin-verify",
        )
    return deliver(args, collector, expected, fleet)


def deliver(
    args: Arguments, collector: Collector, expected: Iterable[Expected], fleet: Fleet | None
) -> int:
    """Print the answers and return the exit code."""
    from torchpin.verify.cluster import summary
    from torchpin.verify.cluster.profile import compared

    answers: tuple[Answer, ...] = tuple(
        compared(answer, fleet, args.group) for answer in collector.answers(expected)
    )
    if args.output_format == "text":
        out(summary.text(answers, style(no_color=args.no_color)))
    elif args.output_format == "markdown":
        out(summary.markdown(answers))
    elif args.output_format == "json":
        out(summary.json_report(answers))
    else:
        out(summary.closing_lines(answers))
    if not args.quiet:
        for text in collector.notes():
            note(clean(text))
    return CLEAN if summary.all_ok(answers) else FINDINGS


def profile(args: Arguments) -> Fleet | None:
    """Return the fleet of the profile, None if there is none.

    Raises:
        ConfigError: the profile is wrong.
        UsageError: it has no group of the name that is asked for.
    """
    from torchpin.fleet.profile import find_profile, load_profile
    from torchpin.verify.compare import group_named

    path = args.config or (None if args.isolated else find_profile(os.getcwd()))
    fleet = load_profile(path) if path is not None else None
    if args.group is not None:
        group_named(fleet, args.group)
    return fleet


def _lines(path: str) -> Iterable[str]:
    """Yield the lines of a file; UTF-16, as PowerShell writes it, too."""
    from torchpin.verify.cluster.jobs import lines

    if path == "-":
        yield from lines(sys.stdin.buffer)
        return
    if os.path.isdir(path):
        raise UsageError("is a folder: name its files", path=path)
    try:
        with open(path, "rb") as file:
            head = file.read(2)
            file.seek(0)
            if head in (b"\xff\xfe", b"\xfe\xff"):
                yield from _whole(path).decode("utf-16", "replace").splitlines()
            else:
                yield from lines(file)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", path=path) from error


def _whole(path: str) -> bytes:
    from torchpin.cli.fleet_import import read_bytes

    return read_bytes(path)
