"""Real pip and real uv pick what ``select`` predicts, on kept and on generated cases.

``pytest -m oracle --oracle-cases 5000`` for more, ``--oracle-seed`` for other ones: a run without
it compares the same cases each time. A disagreement becomes a file in ``cases/``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clients.generate import Case, case_of
from tests.clients.generate_odd import odd_case_of
from tests.clients.oracle import (
    Answer,
    Compared,
    Difference,
    Oracle,
    agree,
    seed_of,
    shrink,
    told_otherwise,
)
from tests.clients.runners import Picked, Pip, Uv
from tests.clients.stub_catalog import StubFacts
from tests.clients.stub_facts import load as load_wheels
from tests.clients.stub_server import Stub

from torchpin.catalog.store import load_catalog

pytestmark = [pytest.mark.clients, pytest.mark.oracle]

SEED = 20261130
SAMPLE = {"uv": 150, "pip": 50}
"""Generated cases of an ordinary run."""
FULL = {"uv": 1200, "pip": 400}
"""Generated cases where the oracle alone is asked for (``-m oracle``)."""
ODD = {"sample": {"uv": 60, "pip": 30}, "full": {"uv": 1200, "pip": 500}}
"""Generated cases that are odd."""
OLD_PIP = "23.2.1"
"""An older pip with the same rules; it is fetched as the tools of the tests are."""
OLD = {"sample": 15, "full": 100}
"""Generated cases for the older pip."""
SHOWN = 3
"""How many disagreements are made small and printed."""
CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.fixture(scope="session")
def oracle(lean_stub: Stub, pip: Pip, uv: Uv, tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    return Oracle(lean_stub, {"pip": pip, "uv": uv}, tmp_path_factory.mktemp("oracle"))


@pytest.fixture(scope="session")
def compared(oracle: Oracle, request: pytest.FixtureRequest) -> Callable[[str], list[Compared]]:
    """Return the compared cases of a client; they are run once a session."""
    config = request.config
    asked: int = config.getoption("--oracle-cases")
    seed = seed_of(request, SEED)
    alone = config.getoption("markexpr") == "oracle"
    counts = {"uv": asked, "pip": (asked + 1) // 2} if asked else FULL if alone else SAMPLE
    kept: dict[str, list[Compared]] = {}

    def run(client: str) -> list[Compared]:
        if client not in kept:
            cases = [case_of(seed, n, client) for n in range(counts[client])]
            kept[client] = [oracle.compare(case) for case in cases]
            print(f"\n{client}: {len(cases)} cases of --oracle-seed {seed}")
        return kept[client]

    return run


def report(differences: list[Compared], oracle: Oracle, pick: Callable[[Compared], Answer]) -> str:
    """Return the first disagreements as small as they can be made."""

    def differs(case: Case) -> bool:
        again = oracle.compare(case)
        answer = pick(again)
        unknown = isinstance(answer, str) and answer.startswith("unknown")
        excluded = answer is again.by_catalog and oracle.excluded(again)
        return not unknown and not excluded and not agree(answer, again.said)

    texts = []
    for one in differences[:SHOWN]:
        small = oracle.compare(shrink(one.case, differs))
        texts.append(Difference(small.case, pick(small), small.said, small.log).text)
    return f"{len(differences)} disagreements\n" + "\n".join(texts)


@pytest.mark.parametrize("client", ["uv", "pip"])
def test_select_follows_the_client(
    oracle: Oracle, compared: Callable[[str], list[Compared]], client: str
) -> None:
    """On closed facts, where nothing but the algorithm can be wrong."""
    found = compared(client)
    unknown = [c for c in found if isinstance(c.by_stub, str) and c.by_stub.startswith("unknown")]
    rest = [c for c in found if c not in unknown]
    picked = sum(not isinstance(c.said, str) for c in rest)
    print(f"{client}: {picked} picks, {len(rest) - picked} errors, {len(unknown)} not predicted")
    wrong = [c for c in rest if not agree(c.by_stub, c.said)]
    assert not wrong, report(wrong, oracle, lambda c: c.by_stub)
    assert len(unknown) < 0.08 * len(found)
    assert picked > 0.25 * len(found)


@pytest.mark.parametrize("client", ["uv", "pip"])
def test_select_follows_the_client_on_odd_files(
    oracle: Oracle, request: pytest.FixtureRequest, client: str
) -> None:
    """Other spellings of addresses, options, specifiers and markers, files included twice."""
    config = request.config
    alone = config.getoption("markexpr") == "oracle"
    count = ODD["full" if alone else "sample"][client]
    asked: int = config.getoption("--oracle-cases")
    count = (asked if client == "uv" else (asked + 1) // 2) or count
    seed = seed_of(request, SEED)
    found = [oracle.compare(odd_case_of(seed, n, client)[0]) for n in range(count)]
    unknown = [c for c in found if isinstance(c.by_stub, str) and c.by_stub.startswith("unknown")]
    print(f"\n{client}: {count} odd cases of --oracle-seed {seed}, {len(unknown)} not predicted")
    wrong = [c for c in found if c not in unknown and not agree(c.by_stub, c.said)]
    assert not wrong, report(wrong, oracle, lambda c: c.by_stub)
    assert len(unknown) < 0.3 * count


@pytest.mark.parametrize("client", ["uv", "pip"])
def test_shipped_catalog_agrees_with_the_client(
    oracle: Oracle, compared: Callable[[str], list[Compared]], client: str
) -> None:
    """With the catalog as shipped, where the stub serves what the catalog picks."""
    found = compared(client)
    why: Counter[str] = Counter()
    wrong = []
    for one in found:
        if isinstance(one.by_catalog, str) and one.by_catalog.startswith("unknown"):
            why["not predicted"] += 1
        elif excluded := oracle.excluded(one):
            why[excluded] += 1
        elif agree(one.by_catalog, one.said):
            why["agree"] += 1
        else:
            wrong.append(one)
    print(f"{client}: {dict(why)}")
    assert not wrong, report(wrong, oracle, lambda c: c.by_catalog)
    assert why["agree"] > 0.4 * len(found)


def test_what_the_catalog_tells_of_requirements() -> None:
    """What the catalog tells of PyPI's wheels is what their METADATA was recorded to say."""
    assert sorted(told_otherwise(StubFacts(load_wheels(True)), load_catalog())) == []


@pytest.fixture(scope="session")
def old_pip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pip]:
    """An older pip in a folder of its own; ``TORCHPIN_OLD_PIP`` names one that is there already."""
    folder = os.environ.get("TORCHPIN_OLD_PIP", "")
    if not folder:
        folder = str(tmp_path_factory.mktemp("old-pip"))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--target", folder, f"pip=={OLD_PIP}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    with Pip(folder) as running:
        yield running


def test_select_follows_an_older_pip(
    lean_stub: Stub, old_pip: Pip, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert old_pip.version == OLD_PIP
    older = Oracle(lean_stub, {"pip": old_pip}, tmp_path)
    full = request.config.getoption("markexpr") == "oracle"
    seed = seed_of(request, SEED)
    found = [
        older.compare(case_of(seed + 1, n, "pip")) for n in range(OLD["full" if full else "sample"])
    ]
    wrong = [
        c
        for c in found
        if not agree(c.by_stub, c.said) and not str(c.by_stub).startswith("unknown")
    ]
    assert not wrong, report(wrong, older, lambda c: c.by_stub)


def _answer(value: Any) -> Answer:
    if isinstance(value, str):
        return value
    return {name: Picked(version, home) for name, (version, home) in value.items()}


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_kept_case(oracle: Oracle, path: Path) -> None:
    """Cases worth keeping: ``why``, files, ``expect`` of the client, ``select`` if it differs."""
    data = json.loads(path.read_text("utf-8"))
    case = Case(data["files"], data["client"], data["python"], data["platform"])
    result = oracle.compare(case)
    assert agree(_answer(data["expect"]), result.said), (result.said, result.log)
    if data.get("select") == "unknown":
        assert isinstance(result.by_stub, str)
        assert result.by_stub.startswith("unknown"), result.by_stub
    else:
        assert agree(_answer(data["expect"]), result.by_stub), result.by_stub
