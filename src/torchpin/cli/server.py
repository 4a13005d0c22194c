"""``torchpin server``: the language server that editors start."""

from __future__ import annotations

import signal
import sys

from torchpin.cli.parser import Parser, add_catalog, add_fleet, add_policy
from torchpin.errors import UsageError


def parser() -> Parser:
    """Return the parser of ``server``."""
    made = Parser(
        "server",
        "Serve an editor by the Language Server Protocol, on standard input and output: findings "
        "as you type, fixes, what a pin resolves to, versions that run on the fleet. The editor "
        "starts it. It never writes a file.",
        "exit code: 0 the editor shut it down · 1 it went away · 2 wrong usage",
    )
    made.add_argument(
        "--tcp", metavar="HOST:PORT", help="listen there for one editor: 127.0.0.1:9257"
    )
    add_catalog(made)
    add_policy(made)
    add_fleet(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``server`` and return its exit code."""
    args = parser().parse(argv)
    address = _address(args.tcp) if args.tcp is not None else None
    try:
        from torchpin.server.app import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol", "cattrs", "attrs"):
            raise
        from torchpin.cli.extras import install_line

        raise UsageError(
            "the language server needs pygls, which is not installed",
            hint=f"run: {install_line('server')}",
        ) from error
    import os

    from torchpin.catalog.staleness import today
    from torchpin.cli.common import declared_fleet
    from torchpin.engine import Options

    options = Options(
        (),
        client=args.client,
        profile=args.config,
        isolated=args.isolated,
        policy=args.policy,
        today=today(os.environ),
    )
    if address is None and sys.stdin.isatty():
        sys.stderr.write(
            "torchpin server talks to an editor, not to people: the editor starts it "
            "(Ctrl-C ends it).\n"
        )
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread waits for input: nothing to clean up
    return serve(options, declared_fleet(args), address)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--tcp {text}: not HOST:PORT", hint="write --tcp 127.0.0.1:9257")
    return host.strip("[]"), int(port)
