"""``fix --prove``: let the real pip or uv resolve each fixed file for each target, before writing.

uv resolves whole files with the target's markers. pip answers whether each pin has a wheel for the
target: its resolver takes markers from the Python that runs it, so it is run without dependencies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from torchpin.cli.prove_words import GLIBC, told_of, uv_platform
from torchpin.cli.terminal import note
from torchpin.documents.base import Document
from torchpin.engine import FixResult, Options
from torchpin.errors import RewriteError, UsageError
from torchpin.fleet.model import NodeGroup, Target
from torchpin.named import NamedTuple
from torchpin.report.model import plural

TIMEOUT = 300
"""Seconds for one resolution."""
_PIP_PLATFORM = {
    "windows-x86_64": ("win_amd64",),
    "windows-arm64": ("win_arm64",),
    "macos-arm64": tuple(f"macosx_{major}_0_arm64" for major in range(11, 16)),
    "macos-x86_64": ("macosx_10_9_x86_64", *(f"macosx_{n}_0_x86_64" for n in range(11, 16))),
}


class Proof(NamedTuple):
    """One question to a client."""

    path: str
    """The file as the user names it."""
    target: Target
    command: tuple[str, ...]
    cwd: str


def prove(result: FixResult, options: Options) -> None:
    """Ask the client about every fixed file that is a way in, for every target.

    Raises:
        UsageError: the client is not installed, or there is no fleet to prove it for.
        RewriteError: the client refuses one of them; nothing was written.
    """
    targets = result.report_after.fleet.targets()
    projects = [one for one in result.changes if one[0].kind == "pyproject"]
    if projects:
        from torchpin.cli.prove_project import prove_projects

        done = prove_projects(projects, result.report_before.documents, targets, options.client)
        for text in done.notes:
            note(text)
        if done.locks:
            locks, syncs = plural(done.locks, "lock"), plural(done.syncs, "sync")
            note(f"proved by the owners of the locks: {locks}, {syncs} (dry runs, in a copy)")
    if all(document.kind != "requirements" for document, _ in result.changes):
        return
    with tempfile.TemporaryDirectory(prefix="torchpin-prove-") as folder:
        places = lay_out(result, folder)
        proofs = [
            Proof(path, target, command(place, target, options.client, folder), folder)
            for path, place in places.items()
            for target in targets
            if serves(target.group, path, result.report_after.fleet.path)
        ]
        for proof in proofs:
            _run(proof)
    note(f"proved by the client: {plural(len(proofs), 'resolution')}")


def lay_out(result: FixResult, folder: str) -> dict[str, str]:
    """Write the fixed files and what they include to ``folder``, placed as they are on disk.

    Returns the ways in to what changed (path as named → path of the copy): files that no other
    file includes, and that a fix changed or that include such a file.
    """
    changed = {document.path: data for document, data in result.changes}
    documents = {
        document.path: document
        for document in result.report_before.documents
        if document.kind == "requirements"
    }
    for document, _ in result.changes:
        if document.kind == "requirements":
            documents.setdefault(document.path, document)
    base = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in documents])
    copies: dict[str, str] = {}
    below: dict[str, set[str]] = {}
    for path, document in documents.items():
        copy = os.path.join(folder, os.path.relpath(os.path.abspath(path), base))
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        with open(copy, "wb") as file:
            file.write(changed.get(path, document.encode(document.text)))
        copies[path] = copy
        below[os.path.abspath(path)] = _includes(document)
    included = {one for each in below.values() for one in each}
    touched = {os.path.abspath(path) for path in changed}
    return {
        path: copy
        for path, copy in copies.items()
        if os.path.abspath(path) not in included
        and _reached(os.path.abspath(path), below) & touched
    }


def _reached(path: str, below: Mapping[str, set[str]]) -> set[str]:
    """Return a file and all that it includes, through however many others."""
    reached: set[str] = set()
    waiting = [path]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += below.get(one, ())
    return reached


def serves(group: NodeGroup, path: str, profile: str | None) -> bool:
    """Tell whether ``path`` is a way in for ``group``: named by it, or the group names none."""
    if not group.files:
        return True
    base = os.path.dirname(os.path.abspath(profile)) if profile else os.getcwd()
    return os.path.abspath(path) in {
        os.path.abspath(os.path.join(base, name)) for name in group.files
    }


def command(path: str, target: Target, client: str | None, folder: str) -> tuple[str, ...]:
    """Return the command that resolves ``path`` for ``target``.

    Raises:
        UsageError: the client is not installed.
    """
    if (client or target.group.client or "pip") == "uv":
        return _uv(path, target)
    return _pip(path, target, folder)


def _uv(path: str, target: Target) -> tuple[str, ...]:
    uv = shutil.which("uv", path=_search_path())
    if uv is None:
        raise UsageError("--prove needs uv, which is not installed", hint="pip install uv")
    platform = uv_platform(target.group)
    python = (
        ("--python-version", f"{target.python.major}.{target.python.minor}")
        if target.python
        else ()
    )
    return (
        *(uv, "pip", "compile", "--quiet", "--no-header", "--only-binary", ":all:"),
        *("--python", sys.executable),
        *("--python-platform", platform, *python, path),
    )


def _pip(path: str, target: Target, folder: str) -> tuple[str, ...]:
    group = target.group
    tags: Sequence[str] = _PIP_PLATFORM.get(group.platform, ())
    if not tags:
        machine = group.platform.partition("-")[2]
        minor = int((group.glibc or GLIBC).split(".")[1])
        tags = [f"manylinux_2_{number}_{machine}" for number in range(minor, 16, -1)]
        tags = [*tags, f"manylinux2014_{machine}", f"linux_{machine}"]
    options = [word for tag in tags for word in ("--platform", tag)]
    if target.python is not None:
        python = target.python
        options += ["--python-version", f"{python.major}.{python.minor}"]
        options += ["--abi", python.tag, "--abi", "abi3", "--abi", "none"]
    return (
        *(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps"),
        *("--only-binary", ":all:", "--disable-pip-version-check", "--quiet"),
        *("--target", os.path.join(folder, ".target"), *options, "-r", path),
    )


def _search_path() -> str:
    """Return PATH with the folder of this Python first: tools of the same environment win."""
    return os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", "")))


def _run(proof: Proof) -> None:
    name = "uv" if proof.command[1] == "pip" else "pip"
    try:
        done = subprocess.run(
            proof.command, cwd=proof.cwd, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise RewriteError(
            f"{name} gave no answer in {TIMEOUT} s for {proof.target.text}; nothing was written",
            path=proof.path,
        ) from None
    if done.returncode == 0:
        return
    lines = (done.stderr or done.stdout).strip().splitlines()
    if name == "pip" and any("No module named pip" in line for line in lines):
        raise UsageError("--prove needs pip, which is not installed", hint="or use --client uv")
    what, told = told_of(
        name,
        done.stderr or done.stdout,
        f"cannot install the fixed file on {proof.target.text}",
    )
    raise RewriteError(
        f"{what}; nothing was written",
        path=proof.path,
        hint=told,
    )


def _includes(document: Document) -> set[str]:
    folder = os.path.dirname(os.path.abspath(document.path))
    return {
        os.path.abspath(os.path.join(folder, include.path))
        for include in document.includes
        if "://" not in include.path
    }
