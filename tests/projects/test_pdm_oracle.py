"""Real ``pdm lock`` locks what is predicted, and real PDM installs what is read from its locks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from tests.clients.oracle import seed_of
from tests.clients.runners import GLIBC, MACOS, Where
from tests.clients.stub_facts import FAMILY, PYPI
from tests.projects.generate_pdm import PdmCase, pdm_case
from tests.projects.lock_tools import Workers, why_not
from tests.projects.project_oracle import ProjectOracle, target_of

from torchpin.documents.base import Document
from torchpin.documents.pdm_lock import read_pdm_lock
from torchpin.documents.pyproject import read_pyproject
from torchpin.rules.lock_hashes import pdm_hashes
from torchpin.rules.locks import outside
from torchpin.select.model import Install, SelectedSet
from torchpin.select.projects import project_installs
from torchpin.select.selection import select

pytestmark = [pytest.mark.clients, pytest.mark.oracle]

WHY_NOT = why_not("pdm")
SEED, SAMPLE = 20261203, 110
STOPS = "stops"
PLACES = {
    "linux-x86_64": "manylinux_2_35_x86_64",
    "macos-arm64": "macos_15_0_arm64",
    "windows-x86_64": "windows_amd64",
}
PYTHONS = ("3.11", "3.12")
Said = dict[str, str | None] | str


def predicted(chosen: SelectedSet) -> Said:
    """Return a selection as package → build and its index; None where no wheel fits."""
    out: dict[str, str | None] = {}
    for one in chosen.selections:
        if one.package not in FAMILY or one.status == "skipped":
            continue
        if one.because.startswith("pdm stops"):
            return STOPS
        if one.status == "unknown":
            return f"unknown: {one.because}"
        if one.build is not None:
            home = PYPI if one.build.home == PYPI else one.build.channel
            out[one.package] = f"{one.build.full_version} {home}"
        elif one.because.startswith("pdm locks") or chosen.install.lock is not None:
            out[one.package] = None
        else:
            return STOPS
    return STOPS if chosen.conflict is not None else out


def said_by(answer: Any) -> Said:
    """Return an answer of PDM in the same words."""
    if isinstance(answer, str):
        return STOPS
    out: dict[str, str | None] = {}
    for name, url in answer.items():
        out[name] = None
        if url is not None:
            parts = unquote(url).split("/")
            home = PYPI if parts[-3] == "pypi" else parts[-2]
            out[name] = f"{parse_wheel_filename(parts[-1])[1]} {home}"
    return out


def groups_of(install: Install) -> list[str]:
    return ["default", *install.extras, *install.groups]


def runs_of(case: PdmCase, install: Install) -> list[list[str]]:
    """Return the locks of one way in: PDM locks an extra only if it is told to."""
    extras = [word for extra in install.extras for word in ("-G", extra)]
    return [[*run, *extras] for run in case.runs]


class Compared:
    """Counts what agrees, and keeps what does not."""

    def __init__(self) -> None:
        self.agreed: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.wrong: list[str] = []

    def note(self, kind: str, where: str, one: Said, said: Said, text: str) -> None:
        if isinstance(one, str) and one.startswith("unknown"):
            self.unknown[one[:90]] += 1
            if "beside" in one:
                print(text)
        elif one == said or (one == {} and said == STOPS):
            self.agreed[kind] += 1
        else:
            self.wrong.append(f"{kind}, {where}: {one} | {said}\n{text}")
            if len(self.wrong) > 200:
                pytest.fail("\n".join(self.wrong[:5]))


def compare(case: PdmCase, text: str, answer: dict[str, Any], facts: Any, out: Compared) -> None:
    """Compare a case with the prediction from its manifest and from its lock."""
    document = read_pyproject("pyproject.toml", text.encode())
    installs = project_installs(document, lock=None, client="pdm")
    for install, told in zip(installs, answer["ways"], strict=True):
        stopped = told["code"] != 0
        tail = f"{text}\n{case.runs}\n{told['log'][-600:] if stopped else ''}"
        lock = None if stopped else read_pdm_lock("pdm.lock", told["lock"].encode())
        if lock is not None:
            assert lock.lock is not None
            assert (lock.lock.content_hash or "")[7:] in pdm_hashes(text), text
            assert not list(outside(document, lock.lock)), text
        for number, (platform, python) in enumerate(places()):
            target = target_of(Where(python, platform, GLIBC, MACOS))
            if not SpecifierSet(python_of(document)).contains(f"{python}.9"):
                continue
            said = STOPS if stopped else said_by(told["said"][number])
            where = f"{install.name}, {platform}, {python}"
            if case.standard:
                out.note(case.kind, where, predicted(select(install, target, facts)), said, tail)
            if lock is not None and said != STOPS:
                read = predicted(select(install._replace(lock=lock), target, facts))
                said = without_places(said) if isinstance(said, dict) else said
                read = without_places(read) if isinstance(read, dict) else read
                out.note("lock read", where, read, said, f"{tail}\n{told['lock'][:1500]}")


def python_of(document: Document) -> str:
    assert document.project is not None
    return document.project.requires_python or ""


def without_places(said: dict[str, str | None]) -> Said:
    """Return builds without the place of those that have no label: the lock does not tell it."""
    return {n: b.partition(" ")[0] if b and "+" not in b else b for n, b in said.items()}


def places() -> list[tuple[str, str]]:
    return [("linux-x86_64", "3.11"), ("macos-arm64", "3.11"), ("windows-x86_64", "3.12")]


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_prediction_is_the_lock_of_pdm(
    recorded: ProjectOracle, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    asked = request.config.getoption("--oracle-cases")
    seed, count = seed_of(request, SEED), max(SAMPLE, asked // 5)
    cases = [pdm_case(n, seed) for n in range(count)]
    jobs, texts = [], []
    for number, case in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = case.text.replace("$B", recorded.stub.base)
        (folder / "pyproject.toml").write_text(text, "utf-8")
        document = read_pyproject("pyproject.toml", text.encode())
        assert not document.problems, (text, document.problems)
        ways = project_installs(document, lock=None, client="pdm")
        jobs.append(
            {
                "folder": str(folder),
                "ways": [{"runs": runs_of(case, one), "groups": groups_of(one)} for one in ways],
                "places": [(f"=={v}.9", PLACES[platform]) for platform, v in places()],
            }
        )
        texts.append(text)
    out = Compared()
    stopped: Counter[str] = Counter()
    slow: list[tuple[float, int]] = []
    with Workers("pdm", tmp_path / "workers") as workers:
        for at, answer in enumerate(workers.map(jobs)):
            compare(cases[at], texts[at], answer, recorded.facts, out)
            stopped[cases[at].kind] += any(one["code"] != 0 for one in answer["ways"])
            slow.append((answer["seconds"], at))
        version = workers.version
    kinds = Counter(case.kind for case in cases)
    told = ", ".join(f"{kind} {count} ({stopped[kind]} stop)" for kind, count in kinds.items())
    print(f"\npdm {version}, seed {seed}: {len(cases)} projects: {told}")
    print(f"answers that agree: {dict(out.agreed)}; not predicted: {sum(out.unknown.values())}")
    print("\n".join(f"  {count} {why}" for why, count in out.unknown.most_common(8)))
    print("slowest:", ", ".join(f"{s:.1f} s (project {at})" for s, at in sorted(slow)[-3:]))
    assert not out.wrong, f"{len(out.wrong)} answers differ\n" + "\n".join(
        {w.partition(",")[0]: w for w in out.wrong}.values()
    )
    assert sum(out.agreed.values()) > 6 * sum(out.unknown.values())
