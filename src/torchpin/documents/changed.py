"""Which files changed since a revision, as git tells."""

from __future__ import annotations

import os

from torchpin.documents.ignored import WHERE
from torchpin.errors import UsageError
from torchpin.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import CompletedProcess

_OPTION = "--changed-since"


class Changes(NamedTuple):
    """What differs from where the current branch left a revision."""

    files: frozenset[str]
    """Real paths: committed, staged, edited, new and deleted files; of a submodule that differs
    and of a new repository within this one, the folder."""
    top: str
    """The real path of the folder that git knows; of what lies elsewhere it knows nothing."""
    base: str
    """The commit that is compared with."""

    def holds(self, path: str) -> bool:
        """True if a file, by its real path, is among what differs, or may be."""
        place = path
        while place not in self.files:
            above = os.path.dirname(place)
            if above == place or place == self.top:
                return not path.startswith(os.path.join(self.top, ""))
            place = above
        return True

    def before(self, path: str) -> str:
        """Return the text that a file had, by its real path; ``""`` if there was none."""
        name = os.path.relpath(path, self.top).replace(os.sep, "/")
        done = _run(self.top, "show", f"{self.base}:{name}")
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def changed_since(revision: str, folder: str = ".") -> Changes:
    """Return what differs from where the current branch left ``revision``.

    Raises:
        UsageError: there is no git, no repository, no such revision, or no common ancestor.
    """
    if not revision or revision.startswith("-"):
        raise UsageError(f"{_OPTION}: {revision!r} is no revision")
    top = _git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    commit = f"{revision}^{{commit}}"
    if _run(top, "rev-parse", "--verify", "--quiet", "--end-of-options", commit).returncode != 0:
        raise UsageError(f"{_OPTION}: there is no commit {revision!r}", hint=_KNOWN)
    base = _git(folder, "merge-base", revision, "HEAD").strip()
    shown = ("--name-only", "--no-renames", "--ignore-submodules=none", "-z")
    names = _git(top, "diff", *shown, base, "--").split("\0")
    names += _git(top, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    files = frozenset(os.path.realpath(os.path.join(top, name)) for name in names if name)
    return Changes(files, os.path.realpath(top), base)


_KNOWN = "name a branch, tag or commit that this checkout knows: origin/main"
_HISTORY = "this checkout knows no common ancestor: fetch more history (fetch-depth: 0)"


def _git(folder: str, *words: str) -> str:
    done = _run(folder, *words)
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        fatal = [line for line in told if line.startswith("fatal: ")] or told[-1:]
        what = fatal[0].removeprefix("fatal: ") if fatal else f"git {words[0]} finds nothing"
        trust = [line.strip() for line in told if "safe.directory" in line]
        hint = _HISTORY if words[0] == "merge-base" else "".join(trust[:1])
        raise UsageError(f"{_OPTION}: {what}", hint=hint)
    return os.fsdecode(done.stdout)


def _run(folder: str, *words: str) -> CompletedProcess[bytes]:
    import subprocess

    environment = {name: value for name, value in os.environ.items() if name not in WHERE}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        return subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise UsageError(f"{_OPTION} needs git: {error.strerror or error}") from error
