"""Which files changed since a revision, as git tells."""

from __future__ import annotations

import os

from torchpin.documents.ignored import WHERE
from torchpin.errors import UsageError

_OPTION = "--changed-since"


def changed_since(revision: str, folder: str = ".") -> frozenset[str]:
    """Return the files that differ from where the current branch left ``revision``: committed,
    staged, edited and new ones, as real paths. Deleted files are among them.

    Raises:
        UsageError: there is no git, no repository, no such revision, or no common ancestor.
    """
    if not revision or revision.startswith("-"):
        raise UsageError(f"{_OPTION}: {revision!r} is no revision")
    top = _git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    base = _git(folder, "merge-base", revision, "HEAD").strip()
    names = _git(top, "diff", "--name-only", "--no-renames", "-z", base, "--").split("\0")
    names += _git(top, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return frozenset(os.path.realpath(os.path.join(top, name)) for name in names if name)


_HINTS = {
    "rev-parse": "name a branch, tag or commit that this checkout knows: origin/main",
    "merge-base": "this checkout knows no common ancestor: fetch more history (fetch-depth: 0)",
}


def _git(folder: str, *words: str) -> str:
    import subprocess

    environment = {name: value for name, value in os.environ.items() if name not in WHERE}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise UsageError(f"{_OPTION} needs git: {error.strerror or error}") from error
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        what = told[-1].removeprefix("fatal: ") if told else f"git {words[0]} finds nothing"
        raise UsageError(f"{_OPTION}: {what}", hint=_HINTS.get(words[0], ""))
    return os.fsdecode(done.stdout)
