"""Real ``poetry lock`` locks what is predicted, and its locks are read as Poetry reads them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from tests.clients.oracle import seed_of
from tests.clients.runners import GLIBC, MACOS, Where
from tests.clients.stub_facts import FAMILY
from tests.projects.generate_poetry import poetry_case
from tests.projects.lock_tools import Workers, why_not
from tests.projects.project_oracle import ProjectOracle, target_of, values_of
from tests.projects.uv_lock_walk import parse

from torchpin.documents.poetry_lock import read_poetry_lock
from torchpin.documents.pyproject import read_pyproject
from torchpin.rules.lock_hashes import poetry_hashes
from torchpin.rules.locks import outside
from torchpin.select.model import Install, SelectedSet
from torchpin.select.projects import project_installs
from torchpin.select.selection import select

pytestmark = [pytest.mark.clients, pytest.mark.oracle]

WHY_NOT = why_not("poetry")
SEED, SAMPLE = 20261202, 110
STOPS = "stops"
PLACES = (("linux-x86_64", "3.11"), ("macos-arm64", "3.11"), ("windows-x86_64", "3.12"))
Said = dict[str, str] | str


def locked(data: dict[str, Any], install: Install, where: Where) -> Said:
    """Return what Poetry installs of a lock, package → build and source, by its own fields."""
    values: dict[str, Any] = {**values_of(where), "extra": ""}
    found: dict[str, str] = {}
    for package in data["package"]:
        name = package["name"]
        groups = [g for g in package["groups"] if g in ("main", *install.groups)]
        if name not in FAMILY or not groups:
            continue
        markers = package.get("markers")
        texts = [markers.get(g) for g in groups] if isinstance(markers, dict) else [markers]
        if not any(text is None or holds(text, values, install.extras) for text in texts):
            continue
        if package["optional"] and "extra" not in str(markers):
            members = [n for e, ns in data.get("extras", {}).items() if e in install.extras
                       for n in ns]  # fmt: skip
            if not any(re.match(rf"{name}\b", member) for member in members):
                continue
        home = package.get("source", {}).get("reference", "")
        found[name] = f"{package['version']} {'pypi' if home == 'stub' else home}"
    return found


def holds(text: str, values: dict[str, Any], extras: tuple[str, ...]) -> bool:
    """Evaluate a marker; each test of ``extra`` asks whether the extra is enabled."""
    if text == "<empty>":
        return False
    for extra in re.findall(r"extra [!=]= \"([^\"]+)\"", text):
        yes, no = ("'a' == 'a'", "'a' == 'b'")
        inside = extra in extras
        text = text.replace(f'extra == "{extra}"', yes if inside else no)
        text = text.replace(f'extra != "{extra}"', no if inside else yes)
    text = text.replace("'a' == 'a'", "python_version >= '0'").replace(
        "'a' == 'b'", "python_version < '0'"
    )
    return Marker(text).evaluate(values)


def predicted(chosen: SelectedSet) -> Said:
    """Return a selection in the words of ``locked``; the version alone for a missing wheel."""
    out: dict[str, str] = {}
    for one in chosen.selections:
        if one.package not in FAMILY or one.status == "skipped":
            continue
        if one.because.startswith("poetry stops"):
            return STOPS
        told = re.match(r"poetry locks \S+ (\S+) from", one.because)
        if one.status == "unknown" and told is None:
            return f"unknown: {one.because}"
        if one.build is not None:
            home = "pypi" if one.build.home == "pypi" else one.build.channel
            out[one.package] = f"{one.build.full_version} {home}"
        elif told is not None:
            out[one.package] = told[1]
        elif chosen.install.lock is not None:
            out[one.package] = ""
        else:
            return STOPS
    return STOPS if chosen.conflict is not None else out


def agree(one: Said, said: Said) -> bool:
    if isinstance(one, str) or isinstance(said, str):
        return one == said or (one == {} and said == STOPS)
    return one.keys() == said.keys() and all(
        build in ("", said[name], said[name].split()[0]) for name, build in one.items()
    )


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_prediction_is_the_lock_of_poetry(
    recorded: ProjectOracle, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    asked = request.config.getoption("--oracle-cases")
    seed, count = seed_of(request, SEED), max(SAMPLE, asked // 5)
    cases = [poetry_case(n, seed) for n in range(count)]
    texts = [case.text.replace("$B", recorded.stub.base) for case in cases]
    folders = [tmp_path / str(number) for number in range(len(cases))]
    for folder, text in zip(folders, texts, strict=True):
        folder.mkdir()
        (folder / "pyproject.toml").write_text(text, "utf-8")
    jobs = [{"folder": str(folder), "arguments": ["lock"]} for folder in folders]
    agreed: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    stopped: Counter[str] = Counter()
    fresh: Counter[str] = Counter()
    wrong: list[str] = []
    with Workers("poetry", tmp_path / "workers") as workers:
        for at, answer in enumerate(workers.map(jobs)):
            kind, text = cases[at].kind, texts[at]
            document = read_pyproject("pyproject.toml", text.encode())
            assert document.project is not None
            assert not document.problems, (text, document.problems)
            path = folders[at] / "poetry.lock"
            data = parse(path.read_text("utf-8")) if answer["code"] == 0 else None
            lock = read_poetry_lock("poetry.lock", path.read_bytes()) if data else None
            stopped[kind] += data is None
            if lock is not None:
                assert lock.lock is not None
                assert lock.lock.content_hash in poetry_hashes(text), text
                assert not list(outside(document, lock.lock)), text
                fresh[kind] += 1
            for install in project_installs(document, lock=None, client="poetry"):
                for platform, python in PLACES:
                    python_range = SpecifierSet(document.project.requires_python or "")
                    if not python_range.contains(f"{python}.9"):
                        continue
                    where = Where(python, platform, GLIBC, MACOS)
                    said: Said = STOPS if data is None else locked(data, install, where)
                    target = target_of(where)
                    ways = [(kind, install)]
                    ways += [("lock read", install._replace(lock=lock))] if lock else []
                    for what, way in ways:
                        one = predicted(select(way, target, recorded.facts))
                        if isinstance(one, str) and one.startswith("unknown"):
                            unknown[one[:100]] += 1
                        elif agree(one, said):
                            agreed[what] += 1
                        else:
                            tail = answer["log"][-500:] if data is None else path.read_text()[:900]
                            place = f"{what}, {install.name}, {platform}, {python}"
                            wrong.append(f"{place}: {one} | {said}\n{text}\n{tail}")
        version = workers.version
    kinds = Counter(case.kind for case in cases)
    told = ", ".join(f"{kind} {count} ({stopped[kind]} stop)" for kind, count in kinds.items())
    print(f"\npoetry {version}, seed {seed}: {len(cases)} projects: {told}")
    print(f"answers that agree: {dict(agreed)}; not predicted: {sum(unknown.values())}")
    print("\n".join(f"  {count} {why}" for why, count in unknown.most_common(8)))
    print(f"fresh locks that are held up to date: {sum(fresh.values())}")
    firsts = {text.partition(",")[0]: text for text in wrong}
    assert not wrong, f"{len(wrong)} answers differ\n" + "\n".join(firsts.values())
    assert sum(agreed.values()) > 6 * sum(unknown.values())
