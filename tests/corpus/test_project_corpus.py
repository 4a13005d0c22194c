"""Real project files and locks of public projects: no crash, no byte lost, no guess in red.

The files are not part of the project; ``test_corpus`` says where they are looked for. A project
file and a lock of one repository are tried together and each by itself.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from torchpin import engine
from torchpin.documents.loader import load
from torchpin.evidence import PROOF
from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import load_profile
from torchpin.rules.model import ERROR

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("TORCHPIN_CORPUS") or ROOT.parent / "shared" / "corpus")
KINDS = {
    "pyproject": "pyproject.toml",
    "uv-lock": "uv.lock",
    "poetry-lock": "poetry.lock",
    "pylock": "",
}
FLEETS = {
    "none": "",
    "servers": (
        '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.65.06"\npython = "3.11"\n'
        '[fleet.new]\ngpus = ["B200"]\ndriver = "580.65.06"\npython = "3.12"\n'
        '[fleet.l4]\ngpus = ["L4"]\ndriver = "535.104.05"\npython = "3.10"\n'
        '[fleet.amd]\ngpus = ["MI300X"]\npython = "3.12"\n'
    ),
    "desks": (
        '[fleet.mac]\ngpus = []\nplatform = "macos-arm64"\npython = "3.13"\n'
        '[fleet.windows]\ngpus = ["RTX 4090"]\nplatform = "windows-x86_64"\n'
        'driver = "581.15"\npython = "3.11"\n'
        '[fleet.ci]\ngpus = []\npython = "3.12"\n'
    ),
}
TRUE_OF = {
    # Its extras pin labels for macOS, which their channels do not serve; it is used by ``uv pip``.
    "invoke-ai__InvokeAI__pyproject.toml": "TP301",
    # Its group of CPU builds routes the extra ``torch`` as well: the lock has +cpu alone.
    "unit8co__darts__pyproject.toml": "TP409",
}
"""What real uv (0.13.9) confirms of projects in use."""
LOCK_RULES = {"TP409", "TP503", "TP504", "TP505"}


class Case(NamedTuple):
    """Files that stand in one folder."""

    name: str
    files: tuple[tuple[Path, str], ...]


def found_cases() -> list[Case]:
    """Return every file by itself, and the files of one repository together."""
    repos: dict[str, list[tuple[Path, str]]] = {}
    cases: list[Case] = []
    for kind, name in KINDS.items():
        folder = CORPUS / kind
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            repo, _, tail = path.name.rpartition("__")
            cases.append(Case(path.name, ((path, name or tail),)))
            if name:
                repos.setdefault(repo, []).append((path, name))
    pairs = [Case(f"{repo} together", tuple(f)) for repo, f in repos.items() if len(f) > 1]
    return cases + pairs


CASES = found_cases()
pytestmark = pytest.mark.skipif(
    not CASES, reason=f"no corpus at {CORPUS}: set TORCHPIN_CORPUS to a folder of real files"
)
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Fleet | None]:
    folder = tmp_path_factory.mktemp("fleets")
    found: dict[str, Fleet | None] = {}
    for name, text in FLEETS.items():
        found[name] = None
        if text:
            (folder / "torchpin.toml").write_text(text)
            found[name] = load_profile(str(folder / "torchpin.toml"))
    return found


@pytest.fixture(scope="module")
def reports(
    fleets: dict[str, Fleet | None], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, engine.Report]]:
    """Return the report of every case for every fleet."""
    out: dict[str, dict[str, engine.Report]] = {}
    for number, case in enumerate(CASES):
        folder = tmp_path_factory.mktemp(f"case{number}")
        for path, name in case.files:
            shutil.copy(path, folder / name)
        options = engine.Options((str(folder),), isolated=True)
        out[case.name] = {name: engine.check(options, fleet) for name, fleet in fleets.items()}
    return out


Reports = dict[str, dict[str, engine.Report]]


@every_case
def test_reading_loses_no_byte(case: Case, tmp_path: Path) -> None:
    for path, name in case.files:
        copy = tmp_path / name
        shutil.copy(path, copy)
        document = load(str(copy), {})
        assert document.encode(document.text) == path.read_bytes()


@every_case
def test_errors_rest_on_proof_and_point_at_text(case: Case, reports: Reports) -> None:
    for name, report in reports[case.name].items():
        for finding in report.findings:
            assert finding.document is not None
            text = finding.document.text
            assert 0 <= finding.span.start < finding.span.end <= len(text), finding.message
            if finding.severity == ERROR and finding.code != "TP001":
                assert {one.evidence for one in finding.because} & PROOF, (name, finding.message)


@every_case
def test_what_is_not_known_is_never_an_error(case: Case, reports: Reports) -> None:
    for name, report in reports[case.name].items():
        known = {picked.package for picked, _ in report.selections if picked.status != "unknown"}
        unknown = {picked.package for picked, _ in report.selections} - known
        red = [
            (finding.code, finding.message)
            for finding in report.findings
            if finding.severity == ERROR and finding.package in unknown
        ]
        assert red == [], name


@every_case
def test_real_projects_lock_and_agree_with_their_locks(case: Case, reports: Reports) -> None:
    """These projects are in use: uv does not stop at them, and their locks are theirs."""
    for name, report in reports[case.name].items():
        told = [
            (finding.code, finding.message)
            for finding in report.findings
            if finding.code in LOCK_RULES or "uv lock stops" in finding.message
        ]
        if case.name in TRUE_OF:
            assert {code for code, _ in told} == {TRUE_OF[case.name]}, (name, told)
        else:
            assert told == [], name


@every_case
def test_nothing_but_companions_is_red_without_a_fleet(case: Case, reports: Reports) -> None:
    """Without a fleet an error is a pin that no platform can install, or a family that clashes."""
    found = reports[case.name]["none"].findings
    red = {finding.code for finding in found if finding.severity == ERROR}
    assert red <= {"TP301", "TP302", "TP306"}


@pytest.mark.parametrize(
    "beginning", ["opendatahub-io__notebooks", "roboflow__inference", "nvidia-cosmos"]
)
def test_private_and_vendor_indexes_end_in_unknown(beginning: str, reports: Reports) -> None:
    names = [case.name for case in CASES if case.name.startswith(beginning)]
    locks = [name for name in names if "pylock" in name or not name.startswith("opendatahub")]
    if not locks:
        pytest.skip(f"this corpus holds no file of {beginning}")
    for name in locks:
        for fleet, report in reports[name].items():
            red = {one.code for one in report.findings if one.severity == ERROR}
            assert red <= {"TP102"}, (name, fleet)  # another Python than the file is for
