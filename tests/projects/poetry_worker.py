"""A persistent process around Poetry's own commands, for many locks; Poetry's own Python runs it.

Reads one JSON object a line (``folder``; ``arguments`` of ``poetry``) and answers with one:
``code`` and ``log``. Poetry is not touched.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from importlib import import_module
from typing import Any


def run(folder: str, arguments: list[str]) -> tuple[int, str]:
    """Run a command of Poetry in a folder."""
    application: Any = import_module("poetry.console.application").Application()
    application.auto_exits(False)
    argv: Any = import_module("cleo.io.inputs.argv_input").ArgvInput
    stream: Any = import_module("cleo.io.outputs.stream_output").StreamOutput
    log = io.StringIO()
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        given = argv(["poetry", *arguments, "--no-interaction", "--directory", folder])
        code = application.run(given, stream(log), stream(log))
    return int(code or 0), log.getvalue()


def main() -> None:
    """Answer until the input ends."""
    replies, sys.stdout = sys.stdout, sys.stderr
    version = import_module("poetry.__version__").__version__
    replies.write(json.dumps({"version": version}) + "\n")
    replies.flush()
    for line in sys.stdin:
        job = json.loads(line)
        os.chdir(job["folder"])
        code, log = run(job["folder"], job["arguments"])
        replies.write(json.dumps({"code": code, "log": log}) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
