"""Real requirements files of public projects: no crash, no byte lost, no guess in red.

The files are not part of the project. ``TORCHPIN_CORPUS`` names a folder with ``requirements/`` in
it; without it ``../shared/corpus`` beside the checkout is tried.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from torchpin import engine
from torchpin.catalog.model import FOLLOWERS, WATCHED
from torchpin.documents.requirements import read_requirements
from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import load_profile
from torchpin.rules.model import ERROR, SAFE

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("TORCHPIN_CORPUS") or ROOT.parent / "shared" / "corpus")
FOLDER = CORPUS / "requirements"
FILES = sorted(path for path in FOLDER.glob("*") if path.is_file()) if FOLDER.is_dir() else []
FLEETS = {
    "none": None,
    "old and new": """
[fleet.old]
gpus = ["Tesla V100", "GTX 1080"]
driver = "580.65.06"
python = "3.10"
[fleet.new]
gpus = ["B200"]
driver = "580.65.06"
python = "3.12"
""",
    "amd": '[fleet.amd]\ngpus = ["MI300X", "RX 7900 XTX"]\npython = "3.12"\n',
    "desks": """
[fleet.mac]
gpus = []
platform = "macos-arm64"
python = "3.13"
[fleet.windows]
gpus = ["RTX 4090"]
platform = "windows-x86_64"
driver = "581.15"
python = "3.11"
""",
}

MOVES = re.compile(rf".*torch|(?:{'|'.join(sorted((*FOLLOWERS, *WATCHED)))})\b")
"""Lines that a fix may change: they name PyTorch, its index or a package that follows torch."""

pytestmark = pytest.mark.skipif(
    not FILES, reason=f"no corpus at {CORPUS}: set TORCHPIN_CORPUS to a folder of real files"
)
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Fleet | None]:
    folder = tmp_path_factory.mktemp("fleets")
    found: dict[str, Fleet | None] = {}
    for name, text in FLEETS.items():
        found[name] = None
        if text is not None:
            profile = folder / name / "torchpin.toml"
            profile.parent.mkdir()
            profile.write_text(text)
            found[name] = load_profile(str(profile))
    return found


@every_file
def test_reading_loses_no_byte(path: Path) -> None:
    data = path.read_bytes()
    document = read_requirements(str(path), data)
    assert document.encode(document.text) == data
    lines = document.text.splitlines()
    family = [one for one in document.declarations if one.name.startswith("torch")]
    for declaration in family:
        name = document.text[declaration.name_span.start : declaration.name_span.end]
        assert name.lower().replace("_", "-").replace(".", "-") == declaration.name
    # What a reader sees as a pin of torch is one: nothing is overlooked.
    written = [line for line in lines if line.startswith(("torch=", "torch>", "torch ="))]
    assert len([one for one in family if one.name == "torch"]) >= len(written)


class Fixing(NamedTuple):
    """One file, fixed in memory, and looked at again."""

    fleet: str
    result: engine.FixResult
    after: bytes
    again: engine.Report


Fixer = Callable[[Path, str, bool], list[Fixing]]


@pytest.fixture(scope="module")
def fixer(fleets: dict[str, Fleet | None], tmp_path_factory: pytest.TempPathFactory) -> Fixer:
    """Return what fixing gives for every fleet, each done once for all tests."""
    known: dict[tuple[Path, str, bool], list[Fixing]] = {}
    folder = tmp_path_factory.mktemp("copies")

    def fix(path: Path, client: str, unsafe: bool) -> list[Fixing]:
        at = (path, client, unsafe)
        if at not in known:
            copy = folder / path.name
            options = engine.Options(
                (str(copy),), client=client, isolated=True, unsafe_fixes=unsafe
            )
            known[at] = []
            for name, fleet in fleets.items():
                copy.write_bytes(path.read_bytes())
                result = engine.fix(options, fleet)
                for document, data in result.changes:
                    assert Path(document.path) == copy
                    copy.write_bytes(data)
                again = engine.check(options, fleet)
                known[at].append(Fixing(name, result, copy.read_bytes(), again))
        return known[at]

    return fix


every_run = pytest.mark.parametrize(("client", "unsafe"), [("pip", False), ("uv", True)], ids=str)


@every_file
@every_run
def test_a_fixed_file_has_no_fix_left(path: Path, client: str, unsafe: bool, fixer: Fixer) -> None:
    for one in fixer(path, client, unsafe):
        left = [
            (finding.code, finding.fix.message)
            for finding in one.again.findings
            if finding.fix and finding.fix.edits and (unsafe or finding.fix.safety == SAFE)
        ]
        assert left == [], one.fleet
        assert (one.after != path.read_bytes()) == bool(one.result.changes)


@every_file
def test_a_fix_keeps_every_line_that_it_does_not_mend(path: Path, fixer: Fixer) -> None:
    for one in fixer(path, "pip", False):
        for document, data in one.result.changes:
            after = read_requirements(document.path, data)
            kept = [line for line in document.text.splitlines() if not MOVES.match(line)]
            rest = iter(after.text.splitlines())
            missing = [line for line in kept if line not in rest and "--hash" not in line]
            assert missing == []  # all there, in their order


@every_file
@every_run
def test_what_is_not_known_is_never_an_error(
    path: Path, client: str, unsafe: bool, fixer: Fixer
) -> None:
    for one in fixer(path, client, unsafe):
        report = one.result.report_before
        known = {picked.package for picked, _ in report.selections if picked.status != "unknown"}
        unknown = {picked.package for picked, _ in report.selections} - known
        red = [
            (finding.code, finding.message)
            for finding in report.findings
            if finding.severity == ERROR
            and finding.package in unknown
            and finding.code not in ("TP108", "TP506")  # said of the text, not of what is picked
        ]
        assert red == [], one.fleet


@pytest.mark.parametrize(
    "beginning",
    [
        "beecave-homelab",  # AMD's own link pages and labels
        "RVC-Project__Retrieval-based-Voice-Conversion-WebUI__requirments_cu1",  # a mirror of PyPI
        "deepbeepmeep__Wan2GP",  # a nightly feed of onnxruntime
        "opendatahub-io__notebooks",  # an index of its own
    ],
)
def test_private_and_vendor_indexes_end_in_unknown(beginning: str, fixer: Fixer) -> None:
    files = [path for path in FILES if path.name.startswith(beginning)]
    if not files:
        pytest.skip(f"this corpus holds no file of {beginning}")
    for path in files:
        for client, unsafe in (("pip", False), ("uv", True)):
            for one in fixer(path, client, unsafe):
                findings = one.result.report_before.findings
                assert [found for found in findings if found.severity == ERROR] == []
                assert one.result.changes == ()


def test_files_for_other_hardware_are_left_to_it(
    fleets: dict[str, Fleet | None], tmp_path: Path
) -> None:
    files = [path for path in FILES if path.name.startswith("bmaltais__kohya_ss__")]
    if len(files) < 6:
        pytest.skip("this corpus does not hold the six files of kohya_ss")
    for path in files:
        name = path.name.removeprefix("bmaltais__kohya_ss__")
        (tmp_path / name).write_bytes(path.read_bytes())
    options = engine.Options((str(tmp_path),), isolated=True, unsafe_fixes=True)
    for fleet in fleets.values():
        for document, data in engine.fix(options, fleet).changes:
            name = Path(document.path).name
            after = data.decode()
            assert "rocm" not in name or "rocm" in after
            assert "xpu" not in name or "/xpu" in after
            assert "macos" not in name or "cu1" not in after
            assert "windows" not in name or "/cu1" in after
