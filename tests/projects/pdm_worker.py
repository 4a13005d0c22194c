"""A persistent process around PDM's own code, for many locks; PDM's own Python runs it.

Reads one JSON object a line and answers with one:

- ``folder``: the project; ``ways``: for each way in of it ``runs``, arguments of ``pdm lock``, one
  list a run, and ``groups`` to install; ``places``: ``requires_python`` and ``platform`` of
  machines.
- the answer has a list ``ways`` with ``code``, ``log``, ``lock`` and ``said``: for each place the
  packages and files that ``pdm sync`` installs (as ``_find_best_match_link`` of
  ``pdm.models.candidates`` finds them), None where it finds none, or the message at which it stops.

PDM is not touched but for its speed: pages, once read, and answers of pure functions are kept.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

NAMES = sys.argv[1].split(",")


def keep() -> None:
    """Keep the links of pages, which do not change, and what is found out about file names."""
    tags: Any = import_module("dep_logic.tags.tags").EnvSpec
    tags.wheel_compatibility = lru_cache(None)(tags.wheel_compatibility)
    own: Any = import_module("pdm.models.finder")
    own.parse_version_specifier = lru_cache(None)(own.parse_version_specifier)
    own.logger.disabled = True
    evaluator: Any = import_module("unearth.evaluator")
    evaluator.parse_wheel_filename = lru_cache(None)(evaluator.parse_wheel_filename)
    evaluator.logger.disabled = True
    finder: Any = import_module("unearth.finder")
    collect, kept = finder.collect_links_from_location, {}

    def collected(session: Any, location: Any, *rest: Any, **named: Any) -> list[Any]:
        key = (str(location.url), repr(rest), repr(named))
        if key not in kept:
            kept[key] = list(collect(session, location, *rest, **named))
        return list(kept[key])

    finder.collect_links_from_location = collected


def lock(folder: str, arguments: list[str]) -> tuple[int, str]:
    """Run ``pdm lock``."""
    core: Any = import_module("pdm.core").Core()
    log = io.StringIO()
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            core.main(["lock", "--project", folder, *arguments])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 2
            return code or 0, log.getvalue()
    return 0, log.getvalue()


def installed(folder: str, groups: list[str], python: str, platform: str) -> Any:
    """Return what an installation of some groups takes on a machine."""
    core: Any = import_module("pdm.core").Core()
    actions: Any = import_module("pdm.cli.actions")
    candidates: Any = import_module("pdm.models.candidates")
    markers: Any = import_module("pdm.models.markers")
    utils: Any = import_module("pdm.utils")
    project = core.create_project(folder)
    spec = markers.EnvSpec.from_spec(python, platform, "cpython")
    asked = project._resolve_dependencies(list(groups))
    wanted = [r for group in groups for r in project.get_dependencies(group, asked)]
    log = io.StringIO()
    try:
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            found = list(actions.resolve_from_lockfile(project, wanted, groups, spec))
    except Exception as error:  # noqa: BLE001 (PDM stops: that is the answer)
        return f"{type(error).__name__}: {error}"
    said = {}
    for one in found:
        candidate = one.candidate
        if candidate.name not in NAMES or candidate.req.extras:
            continue
        sources = utils.filtered_sources(project.sources, candidate.req.key)
        with project.environment.get_finder(sources, env_spec=spec) as finder:
            pinned = candidate.req.as_pinned_version(candidate.version)
            link = candidates._find_best_match_link(finder, pinned, candidate.hashes)
        said[candidate.name] = None if link is None else link.url_without_fragment
    return said


def answer(folder: str, way: dict[str, Any], places: list[list[str]]) -> dict[str, Any]:
    """Lock a project for one way in, and return what is installed of the lock."""
    path = Path(folder) / "pdm.lock"
    path.unlink(missing_ok=True)
    code, log = 0, ""
    for arguments in way["runs"]:
        code, log = lock(folder, arguments)
        if code != 0:
            return {"code": code, "log": log, "lock": "", "said": []}
    said = [installed(folder, way["groups"], *place) for place in places]
    return {"code": code, "log": log, "lock": path.read_text("utf-8"), "said": said}


def main() -> None:
    """Answer until the input ends."""
    keep()
    replies, sys.stdout = sys.stdout, sys.stderr
    version = import_module("pdm.__version__").__version__
    replies.write(json.dumps({"version": version}) + "\n")
    replies.flush()
    for line in sys.stdin:
        job = json.loads(line)
        os.chdir(job["folder"])
        began = time.monotonic()
        ways = [answer(job["folder"], way, job["places"]) for way in job["ways"]]
        seconds = time.monotonic() - began
        replies.write(json.dumps({"ways": ways, "seconds": seconds}) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
