"""A persistent process around pip's own ``install`` command, for many dry runs.

Reads one JSON object a line (``args``, ``environment``, ``cwd``) and answers with one: ``code``
and ``log``. ``environment`` replaces the values that environment markers see: pip's
``--platform`` and ``--python-version`` choose wheels only, and pip on the target itself would see
the target's values. Nothing else of pip is touched.

Run as ``python pip_worker.py [FOLDER]``; FOLDER holds another pip (``pip install --target``).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import Any

if len(sys.argv) > 1:
    sys.path.insert(0, sys.argv[1])


def main() -> None:
    from importlib import import_module

    markers: Any = import_module("pip._vendor.packaging.markers")
    commands: Any = import_module("pip._internal.commands")
    version = import_module("pip").__version__
    original = markers.default_environment
    replies, sys.stdout = sys.stdout, sys.stderr
    replies.write(json.dumps({"pip": version}) + "\n")
    replies.flush()
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        values: dict[str, str] = job["environment"]
        markers.default_environment = lambda values=values: {**original(), **values}
        os.environ["PIP_INDEX_URL"] = job["default"]
        os.chdir(job["cwd"])
        log = io.StringIO()
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            try:
                code = commands.create_command("install").main(list(job["args"]))
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 2
        replies.write(json.dumps({"code": int(code), "log": log.getvalue()}) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
