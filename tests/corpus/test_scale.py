"""Work grows with the input, no faster: counted, not timed, so that a busy machine cannot lie."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from torchpin import engine, judging
from torchpin.documents import loader
from torchpin.documents.requirements import read_requirements
from torchpin.fleet.model import Fleet
from torchpin.fleet.options import fleet_from_options
from torchpin.rewrite import plan, reread

BROKEN = """\
--extra-index-url https://download.pytorch.org/whl/cu128
numpy
torch==2.11.0+cu128
torchvision
"""
CLEAN = "numpy\ntorch==2.10.0\ntorchvision==0.25.0\n"


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return fleet_from_options(
        gpus=("V100",), driver="580.65.06", python=("3.11",), platform=None, glibc=None
    )


def projects(folder: Path, count: int, text: str) -> engine.Options:
    """Write ``count`` projects of one file each."""
    for number in range(count):
        home = folder / f"project{number}"
        home.mkdir(parents=True)
        (home / "requirements.txt").write_text(f"{text}package{number}\n")
    return engine.Options((str(folder),), isolated=True)


def one_project(folder: Path, count: int, text: str) -> engine.Options:
    """Write one project with ``count`` files."""
    folder.mkdir()
    for number in range(count):
        (folder / f"requirements-{number}.txt").write_text(f"{text}package{number}\n")
    return engine.Options((str(folder),), isolated=True)


def lines_of(work: Callable[[], object]) -> int:
    """Return how many lines of Python ``work`` runs."""
    count = 0

    def see(_frame: FrameType, _event: str, _arg: object) -> Any:
        nonlocal count
        count += 1
        return see

    before = sys.gettrace()
    sys.settrace(see)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count how often each stage is entered."""
    found: dict[str, int] = {}

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            found[name] = found.get(name, 0) + 1
            return function(*args, **options)

        return call

    for module, name in (
        (loader, "read_bytes"),
        (judging, "select_all"),
        (plan, "solve_way"),
        (reread, "select_all"),
    ):
        label = f"{module.__name__}.{name}"
        monkeypatch.setattr(module, name, counting(label, getattr(module, name)))
    return found


@pytest.mark.parametrize("shape", [projects, one_project])
@pytest.mark.parametrize("text", [CLEAN, BROKEN], ids=["clean", "broken"])
def test_every_file_is_read_selected_and_planned_once(
    shape: Callable[[Path, int, str], engine.Options],
    text: str,
    fleet: Fleet,
    counts: dict[str, int],
    tmp_path: Path,
) -> None:
    totals = []
    for count in (1, 6, 12):
        counts.clear()
        options = shape(tmp_path / str(count), count, text)
        report = engine.check(options, fleet)
        assert len(report.documents) == count
        totals.append(dict(counts))
    for name, once in totals[0].items():
        assert totals[1][name] == 6 * once, name
        assert totals[2][name] == 12 * once, name
    assert totals[0]["torchpin.documents.loader.read_bytes"] == 1
    assert totals[0]["torchpin.judging.select_all"] == 1  # one target
    assert totals[0].get("torchpin.rewrite.plan.solve_way", 0) <= 2  # strictly, then softened
    assert ("torchpin.rewrite.plan.solve_way" in totals[0]) == (text == BROKEN)


def test_the_work_on_many_projects_is_linear(fleet: Fleet, tmp_path: Path) -> None:
    few = projects(tmp_path / "few", 15, BROKEN)
    many = projects(tmp_path / "many", 60, BROKEN)
    engine.check(few, fleet)  # loads the catalog
    once = lines_of(lambda: engine.check(few, fleet))
    assert lines_of(lambda: engine.check(many, fleet)) <= 4.2 * once


@pytest.mark.parametrize(
    "line",
    [
        "package{0}==1.{0}.0  # why\n",
        "package{0}==1.0 ; python_version >= '3.8' \\\n    --hash=sha256:{1}\n    # via other\n",
        "--extra-index-url https://packages{0}.example/simple\n",
        "# only a comment {0}\n",
        "torch==2.{0}.0\n",
    ],
    ids=["pins", "hashes", "indexes", "comments", "the same package"],
)
def test_the_work_on_a_long_file_is_linear(line: str, fleet: Fleet, tmp_path: Path) -> None:
    def text(count: int) -> bytes:
        return "".join(line.format(number, "0" * 64) for number in range(count)).encode()

    short, long = text(100), text(400)
    read_requirements("requirements.txt", short)
    once = lines_of(lambda: read_requirements("requirements.txt", short))
    assert lines_of(lambda: read_requirements("requirements.txt", long)) <= 4.2 * once
    path = tmp_path / "requirements.txt"
    options = engine.Options((str(path),), isolated=True)

    def check(data: bytes) -> int:
        path.write_bytes(data)
        return lines_of(lambda: engine.check(options, fleet))

    check(short)
    once = check(short)
    assert check(long) <= 4.4 * once


def test_fixing_many_lines_takes_few_rounds(
    fleet: Fleet, tmp_path: Path, counts: dict[str, int]
) -> None:
    """Thirty ordered comparisons with labels, all mended: looked at again once or twice."""
    path = tmp_path / "requirements.txt"
    lines = "".join(f"other{number}>=1.0+cu126\n" for number in range(30))
    path.write_text("torch==2.10.0\n" + lines)
    result = engine.fix(engine.Options((str(path),), isolated=True), fleet)
    (change,) = result.changes
    assert b"+cu126" not in change[1]
    assert counts["torchpin.judging.select_all"] <= 3
