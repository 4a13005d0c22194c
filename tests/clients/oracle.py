"""Compares what ``select`` predicts with what a client does."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
from packaging.specifiers import SpecifierSet
from tests.clients.generate import ROOT, Case
from tests.clients.runners import GLIBC, MACOS, Picked, Result, Where
from tests.clients.stub_catalog import StubFacts
from tests.clients.stub_facts import FAMILY, PYPI
from tests.clients.stub_facts import load as load_wheels
from tests.clients.stub_server import Address, Stub

from torchpin.catalog.store import Catalog, load_catalog
from torchpin.documents.base import Document
from torchpin.documents.discover import load
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.rules.files import HARMLESS
from torchpin.select.environments import wheel_fits
from torchpin.select.installs import install_of
from torchpin.select.model import SelectedSet, Selection
from torchpin.select.selection import select

ERROR = "error"
UNKNOWN = "unknown"
Answer = dict[str, Picked] | str
"""Family packages that are installed, ``error`` (the client stops), ``unknown: why``."""


class Client(Protocol):
    """A runner of ``harness``."""

    def run(
        self, root: Path, where: Where, stub: Address, arguments: tuple[str, ...] = ()
    ) -> Result: ...


class Compared(NamedTuple):
    """One case with everything that was said about it."""

    case: Case
    said: Answer
    log: str
    by_stub: Answer
    """Prediction on the stub's own records."""
    by_catalog: Answer
    """Prediction on the shipped catalog."""


class Difference(NamedTuple):
    """A case in which prediction and client disagree."""

    case: Case
    predicted: Answer
    said: Answer
    log: str

    @property
    def text(self) -> str:
        """The case and both answers, to read and to keep."""
        body = {
            "case": "",
            "files": self.case.files,
            "client": self.case.client,
            "python": self.case.python,
            "platform": self.case.platform,
        }
        return (
            f"{json.dumps(body, indent=1)}\n"
            f"  select: {_words(self.predicted)}\n  {self.case.client}: {_words(self.said)}\n"
            f"  {self.log.strip()[-1500:]}"
        )


def _words(answer: Answer) -> str:
    if isinstance(answer, str):
        return answer
    return ", ".join(f"{name} {p.version} from {p.home}" for name, p in sorted(answer.items()))


def write(case: Case, folder: Path, stub: Stub) -> Path:
    """Write the files of a case and return the root.

    ``$B`` becomes the address of the stub, ``$SHA(pypi/torch-….whl)`` the digest of a file of it.
    """

    def digest(match: re.Match[str]) -> str:
        return stub.content.digest(stub.content.by_file[match[1], match[2]])

    for name, text in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(r"\$SHA\(([^/]+)/([^)]+)\)", digest, text)
        for sign, base in bases(stub).items():
            text = text.replace(sign, base)
        path.write_bytes(text.encode())
    return folder / ROOT


def bases(stub: Address) -> dict[str, str]:
    """Return how the cases write the address of the stub: plainly, with user and password, with
    the scheme in capitals, by name."""
    scheme, _, place = stub.base.partition("://")
    return {
        "$B": stub.base,
        "$U": f"{scheme}://user:secret@{place}",
        "$C": f"{scheme.upper()}://{place}",
        "$H": stub.base.replace("127.0.0.1", "localhost"),
    }


def target_of(case: Case) -> Target:
    """Return the target of a case: a group without GPUs."""
    major, minor = case.python.split(".")
    python = Python(int(major), int(minor))
    group = NodeGroup(
        name=case.platform,
        gpus=(),
        pythons=(python,),
        platform=case.platform,
        glibc=GLIBC if case.platform.startswith("linux") else None,
        macos=MACOS if case.platform.startswith("macos") else None,
    )
    return Target(group, python)


def predict(case: Case, root: Path, default: str, facts: Any) -> tuple[Answer, SelectedSet]:
    """Return what ``select`` says about a case written to ``root``.

    ``default`` is the index that pip asks by its settings: what it is given again is known.
    """
    cache: dict[str, Document] = {}

    def read(path: str) -> Document:
        return load(path, cache)

    settings = [f"--index-url {default}"] if case.client == "pip" else []
    install = install_of(read(str(root)), read, client=case.client, extra_indexes=settings)
    chosen = select(install, target_of(case), facts)
    return answer_of(chosen), chosen


def answer_of(chosen: SelectedSet) -> Answer:
    """Return a selection as one answer."""
    refused = (p for d in chosen.install.documents for p in d.problems if p.code not in HARMLESS)
    if chosen.install.problems or chosen.conflict is not None or any(refused):
        return ERROR
    if any(s.status == "none" for s in chosen.selections):
        return ERROR
    unknown = [s.because for s in chosen.selections if s.status == UNKNOWN]
    if unknown:
        return f"{UNKNOWN}: {unknown[0]}"
    return {
        s.package: Picked(s.build.full_version, home_of(s))
        for s in chosen.selections
        if s.build is not None and s.package in FAMILY
    }


def home_of(selection: Selection) -> str:
    """Return where a selected build lies."""
    assert selection.build is not None
    return PYPI if selection.build.home == PYPI else selection.build.channel


def agree(predicted: Answer, said: Answer) -> bool:
    """Return whether two answers say the same.

    The legacy page tells no home in uv's output. A file of which no line applies installs nothing,
    and uv then never looks at an index that it could not read: there ``error`` is no mistake.
    """
    if said == {} and predicted == ERROR:
        return True
    if isinstance(predicted, str) or isinstance(said, str):
        return predicted == said
    return predicted.keys() == said.keys() and all(
        picked.version == said[name].version
        and (picked.home == said[name].home or said[name].home.endswith(".html"))
        for name, picked in predicted.items()
    )


def nothing_asked(chosen: SelectedSet, result: Result) -> bool:
    """Return whether a file names no index that can be read and uv asked none.

    The wheels of its URLs need nothing here; the real ones need packages from an index.
    """
    install = chosen.install
    return (
        result.ok
        and any("for a part of the URL of --index-url" in text for _, text, _ in install.problems)
        and all(placed.declaration.url is not None for placed in install.requirements)
    )


def said_by(result: Result) -> Answer:
    """Return what a client did as one answer."""
    if not result.ok:
        return ERROR
    return {name: picked for name, picked in result.packages.items() if name in FAMILY}


def told_otherwise(closed: StubFacts, catalog: Catalog) -> frozenset[tuple[str, str, str, str]]:
    """Return (package, version, home, platform) of PyPI's builds of which the catalog tells a
    requirement on torch that is not the recorded one."""
    out = set()
    for name in FAMILY:
        for build in closed.find(name, home=PYPI):
            for known in catalog.find(
                name, version=build.version, platform=build.platform, home=PYPI
            ):
                told = known.requires_torch
                if told is not None and SpecifierSet(told) != SpecifierSet(
                    build.requires_torch or ""
                ):
                    out.add((name, build.full_version, PYPI, build.platform))
    return frozenset(out)


def seed_of(request: pytest.FixtureRequest, usual: int) -> int:
    """Return the seed of generated cases: ``--oracle-seed``, else ``usual``."""
    given: int | None = request.config.getoption("--oracle-seed")
    return usual if given is None else given


class Oracle:
    """Runs cases through a client and through ``select`` with both kinds of facts."""

    def __init__(self, stub: Stub, clients: dict[str, Client], folder: Path) -> None:
        self.stub = stub
        self.clients = clients
        self.folder = folder
        self.closed = StubFacts(load_wheels(True))
        self.catalog = load_catalog()
        self._count = 0

    def compare(self, case: Case) -> Compared:
        """Return what the client and both predictions say about a case."""
        self._count += 1
        folder = self.folder / str(self._count)
        root = write(case, folder, self.stub)
        try:
            by_stub, chosen = predict(case, root, self.stub.pypi, self.closed)
            by_catalog, _ = predict(case, root, self.stub.pypi, self.catalog)
            client = self.clients[case.client]
            result = client.run(root, Where(case.python, case.platform), self.stub)
            if nothing_asked(chosen, result):
                result = result._replace(packages={})
        finally:
            shutil.rmtree(folder)
        return Compared(case, said_by(result), result.log, by_stub, by_catalog)

    def excluded(self, compared: Compared) -> str:
        """Return why a prediction of the shipped catalog is not comparable, else ``""``.

        The catalog knows more files than lock files prove, and the stub serves those alone.
        """
        predicted = compared.by_catalog
        if not isinstance(predicted, str):
            target = target_of(compared.case)
            for name, picked in predicted.items():
                home = {"home": PYPI} if picked.home == PYPI else {"channel": picked.home}
                here = self.closed.find(name, **home)
                if not any(
                    b.full_version == picked.version
                    and (b.home == PYPI) == (picked.home == PYPI)
                    and wheel_fits(b, target)[0]
                    for b in here
                ):
                    return "the stub lacks the predicted wheel"
        text = "".join(compared.case.files.values())
        for channel in set(re.findall(r"/whl/([a-z0-9.]+)", text)):
            for name in FAMILY:
                known = self.catalog.find(name, channel=channel, home="channel")
                if known and not self.closed.find(name, channel=channel, home="channel"):
                    return "the stub lacks a page of a channel"
        return ""


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Return a smaller case that still fails: lines go one at a time, then files and markers."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(case):
            if fails(smaller):
                case, changed = smaller, True
                break
    return case


def _smaller(case: Case) -> list[Case]:
    out = []
    for name, text in case.files.items():
        if name != ROOT and f"{name}\n" not in "".join(case.files.values()):
            out.append({k: v for k, v in case.files.items() if k != name})
        lines = text.splitlines()
        for at, line in enumerate(lines):
            out.append({**case.files, name: _joined(lines[:at] + lines[at + 1 :])})
            for mark in (" ;", ","):
                if mark in line:
                    short = line.rpartition(mark)[0]
                    out.append(
                        {**case.files, name: _joined([*lines[:at], short, *lines[at + 1 :]])}
                    )
    cases = [case._replace(files=files) for files in out]
    if any(" @ " in text for text in case.files.values()):
        return cases  # uv pip compile looks at no tags of a direct URL
    if case.platform != "linux-x86_64":
        cases.append(case._replace(platform="linux-x86_64"))
    if case.python != "3.11":
        cases.append(case._replace(python="3.11"))
    return cases


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
