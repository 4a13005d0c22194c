"""``torchpin verify``: does the torch that is installed run on this machine?"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from torchpin.cli.arguments import Arguments
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_catalog, add_output
from torchpin.cli.terminal import note, out, style
from torchpin.cli.verify_cluster import (
    FORMATS,
    MORE,
    TOPICS,
    WHAT,
    add_options,
    hide_unused,
    is_wanted,
    profile,
)
from torchpin.errors import UsageError
from torchpin.report.style import clean

_LONGEST = 1e6


def parser(topic: str = "") -> Parser:
    """Return the parser of ``verify``.

    Args:
        topic: whose options the help shows: one of ``verify_cluster.TOPICS``, or ``""``.
    """
    made = Parser(
        f"verify --{topic}" if topic else "verify",
        WHAT[topic],
        "exit code: 0 all ran and the profile holds · 1 something failed, or differs from the\n"
        f"profile · 2 wrong usage\n\n{MORE[topic]}",
    )
    made.add_argument(
        "--python",
        default=sys.executable,
        metavar="PATH",
        help="the Python whose torch is tried (default: the one that runs torchpin)",
    )
    made.add_argument(
        "--gpu",
        action="append",
        default=[],
        metavar="INDEX",
        help="only this GPU, as nvidia-smi counts (repeat for more)",
    )
    made.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="the longest that one piece of work may take (default: 300)",
    )
    fleet = made.add_argument_group("fleet")
    fleet.add_argument(
        "--group",
        metavar="NAME",
        help="the node group of this machine (default: the one with its GPUs)",
    )
    fleet.add_argument(
        "--config", metavar="FILE", help="the fleet profile (default: the nearest torchpin.toml)"
    )
    fleet.add_argument(
        "--isolated",
        action="store_true",
        help="look for no profile and for no catalog of yours: the shipped one is used",
    )
    add_catalog(made)
    add_options(made, topic)
    add_output(made, FORMATS)
    hide_unused(made, topic)
    return made


def main(argv: list[str]) -> int:
    """Run ``verify`` and return its exit code.

    Raises:
        UsageError: the Python does not start, there is no such GPU or group.
        ConfigError: the profile is wrong.
    """
    at = argv.index("--") if "--" in argv else len(argv)
    topic = next((one for one in TOPICS if f"--{one}" in argv[:at]), "")
    args = parser(topic).parse(argv[:at])
    behind = argv[at + 1 :]
    if not 0 < args.timeout < _LONGEST:
        raise UsageError("--timeout takes seconds above 0")
    args.gpus_wanted = _numbers(args.gpu)
    with _ended_in_order():
        if is_wanted(args):
            from torchpin.cli import verify_cluster

            return verify_cluster.run(args, behind)
        if behind:
            raise UsageError("what stands behind -- is for srun: it goes with --slurm")
        return run_here(args)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Leave by an exception when a signal asks to end: so that no child process stays behind."""
    before = {}
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) not in (signal.SIG_IGN, _leave):  # nohup has one ignored
            with suppress(ValueError):  # not in the main thread, which alone gets signals
                before[number] = signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, frame: object) -> None:
    sys.exit(128 + number)


def run_here(args: Arguments) -> int:
    """Try this machine."""
    fleet = profile(args)
    from torchpin.catalog.store import load_catalog
    from torchpin.report.verify import TextReport
    from torchpin.verify.lines import to_line
    from torchpin.verify.model import OK, Summary
    from torchpin.verify.session import Asked, verify

    catalog = load_catalog()
    if not args.quiet:
        for words in catalog.notes:
            note(clean(words))
    report = TextReport(style(no_color=args.no_color))
    asked = Asked(args.python, args.gpus_wanted, args.group, args.timeout)
    if args.output_format in ("json", "markdown"):
        from torchpin.cli.verify_cluster import deliver
        from torchpin.verify.cluster.collect import Collector

        collector = Collector()
        for record in verify(asked, fleet, catalog, os.environ):
            collector.feed(to_line(record))
        return deliver(args, collector, (), fleet)
    fine = False
    for record in verify(asked, fleet, catalog, os.environ):
        out(to_line(record) + "\n" if args.output_format == "jsonl" else report.add(record))
        sys.stdout.flush()
        if isinstance(record, Summary):
            fine = record.status == OK
    return CLEAN if fine else FINDINGS


def _numbers(values: list[str]) -> tuple[int, ...]:
    words = [word.strip() for value in values for word in value.split(",") if word.strip()]
    for word in words:
        if not (word.isascii() and word.isdecimal()) or len(word) > 4:
            raise UsageError(
                f"--gpu {word}: not a number", hint="write the number that nvidia-smi shows: 0"
            )
    return tuple(dict.fromkeys(map(int, words)))
