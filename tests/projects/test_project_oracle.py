"""Real ``uv lock`` puts into every fork what ``select_uv_project`` predicts.

``pytest tests/projects -m oracle --oracle-cases 5000`` for more, ``--oracle-seed`` for other ones:
a run without it compares the same cases each time. A disagreement becomes a file in ``cases/``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.clients.oracle import seed_of
from tests.clients.runners import Where
from tests.projects.generate_odd_projects import odd_case_of
from tests.projects.generate_projects import ProjectCase, case_of
from tests.projects.project_oracle import (
    ERROR,
    Compared,
    ProjectOracle,
    possible_pythons,
    shrink,
)

pytestmark = [pytest.mark.clients, pytest.mark.oracle]

SEED = 20261201
SAMPLE, FULL = 60, 600
"""Generated projects of an ordinary run, and where the oracle alone is asked for."""
ENOUGH = 300
"""Cases from which on the share of those not predicted says something."""
ODD, ODD_FULL = 40, 600
"""Generated projects that are odd."""
SHOWN = 3
CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


def generated(request: pytest.FixtureRequest, share: float = 1.0) -> list[ProjectCase]:
    """Return the cases to run."""
    config = request.config
    alone = config.getoption("markexpr") == "oracle"
    count = int((config.getoption("--oracle-cases") or (FULL if alone else SAMPLE)) * share)
    seed, pythons = seed_of(request, SEED), possible_pythons()
    print(f"\nuv projects: {count} cases of --oracle-seed {seed}")
    return [case_of(seed, n, pythons) for n in range(count)]


def told(found: list[Compared]) -> list[Compared]:
    """Print how many cases of which kinds agreed, which are not predicted and why, and return
    those that do not agree."""
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    wrong = []
    for one in found:
        if one.unknown:
            kinds[f"{one.case.kind} not predicted"] += 1
            reasons[re.sub(r"\d[\w.+:-]*", "…", one.unknown)] += 1
        elif one.differences:
            wrong.append(one)
        else:
            kinds[f"{one.case.kind} {'locked' if one.locked else 'stopped'}"] += 1
    environments = sum(one.environments for one in found)
    summary = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    agreed = len(found) - len(wrong) - sum(reasons.values())
    print(f"uv projects: {agreed} of {len(found)} agree, in {environments} environments: {summary}")
    for reason, count in reasons.most_common():
        print(f"  not predicted: {count} × {reason}")
    return wrong


def report(wrong: list[Compared], oracle: ProjectOracle) -> str:
    """Return the first disagreements as small as they can be made."""

    def fails(case: ProjectCase) -> bool:
        again = oracle.compare(case)
        return bool(again.differences) and not again.unknown

    small = [oracle.compare(shrink(one.case, fails)).text for one in wrong[:SHOWN]]
    return f"{len(wrong)} disagreements\n" + "\n".join(small)


def test_prediction_is_the_lock(recorded: ProjectOracle, request: pytest.FixtureRequest) -> None:
    """On closed facts, where nothing but the algorithm can be wrong."""
    found = list(recorded.compare_all(generated(request)))
    wrong = told(found)
    assert not wrong, report(wrong, recorded)
    if len(found) < ENOUGH:
        return
    plain = [one for one in found if one.case.kind not in ("settings", "beside", "selves")]
    assert sum(bool(one.unknown) for one in plain) < 0.05 * len(plain)
    assert sum(bool(one.unknown) for one in found) < 0.1 * len(found)
    assert sum(one.locked for one in found) > 0.4 * len(found)


def test_prediction_of_odd_projects(
    recorded: ProjectOracle, request: pytest.FixtureRequest
) -> None:
    """Other spellings, settings, sources, indexes, groups and Pythons."""
    config = request.config
    count = ODD_FULL if config.getoption("markexpr") == "oracle" else ODD
    count = config.getoption("--oracle-cases") or count
    seed, pythons = seed_of(request, SEED), possible_pythons()
    print(f"\nodd uv projects: {count} cases of --oracle-seed {seed}")
    cases = [odd_case_of(seed, n, pythons)[0] for n in range(count)]
    found = list(recorded.compare_all(cases))
    wrong = told(found)
    assert not wrong, report(wrong, recorded)
    assert sum(bool(one.unknown) for one in found) < 0.35 * count


def test_shipped_catalog_predicts_the_lock(
    shipped: ProjectOracle, request: pytest.FixtureRequest
) -> None:
    """With the catalog as shipped, on an index that serves all of it."""
    found = list(shipped.compare_all(generated(request, 0.25)))
    wrong = told(found)
    assert not wrong, report(wrong, shipped)
    assert sum(bool(one.unknown) for one in found) < 0.4 * max(len(found), ENOUGH // 4)


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_kept_project(recorded: ProjectOracle, path: Path) -> None:
    """Cases worth keeping: ``why``, the project, and what uv locks or ``error``."""
    data = json.loads(path.read_text("utf-8"))
    case = ProjectCase("\n".join(data["project"]) + "\n")
    compared = recorded.compare(case)
    assert not compared.differences, compared.text
    assert not compared.unknown, compared.unknown
    if data["locks"] == ERROR:
        assert not compared.locked
        log = compared.log.replace(recorded.stub.base, "$B")
        assert data["says"] in " ".join(log.split())  # uv breaks lines where COLUMNS says so
        return
    lock, log = recorded.lock(case)
    assert lock is not None, log
    for line in data["locks"]:
        name, platform, python, *builds = line.split()
        said = recorded.installed(lock, case, name, Where(python, platform))
        assert said == builds, line
