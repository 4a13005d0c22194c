"""``torchpin index serve``: the fleet's index over HTTP."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

from torchpin.cli.index_build import nothing, summary
from torchpin.cli.index_files import add_files, listed
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser
from torchpin.cli.terminal import out
from torchpin.errors import UsageError


def parser() -> Parser:
    """Return the parser of ``index serve``."""
    made = Parser(
        "index serve",
        "Serve the index that `torchpin index build` would write, until it is interrupted.\n"
        "Its address goes to standard output; wheels of a local folder are served with it.",
        "exit code: 0 interrupted · 1 no known file runs on the fleet · 2 wrong usage",
    )
    made.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: here)"
    )
    made.add_argument(
        "--port", type=int, default=8080, metavar="NUMBER", help="default: 8080; 0: any free one"
    )
    add_files(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``index serve`` and return its exit code."""
    args = parser().parse(argv)
    found = listed(args)
    if not found.wheels:
        sys.stderr.write(nothing(args.group))
        return FINDINGS
    from torchpin.plugin.pages import pages
    from torchpin.plugin.server import server_of

    local = {wheel.filename: wheel.path for wheel in found.wheels if wheel.path is not None}
    try:
        server = server_of(args.host, args.port, pages(found.wheels, found.title), local)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot listen on {args.host}:{args.port}: {why}") from error
    host = f"[{args.host}]" if ":" in args.host else args.host
    address = f"http://{host}:{server.server_address[1]}/simple"
    try:
        # As the first process of a container it would not be ended by the signal otherwise.
        with suppress(ValueError):  # not in the main thread, which alone gets signals
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        out(f"{address}/\n{summary(address, found)}")
        sys.stdout.flush()
        server.serve_forever()
    except KeyboardInterrupt:
        return CLEAN
    finally:
        server.server_close()
    return CLEAN
