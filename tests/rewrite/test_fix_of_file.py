"""What ``fix`` makes of a requirements file: what it leaves, and what it takes for the file's."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin import engine
from torchpin.engine import Options
from torchpin.fleet.profile import fleet_from_options
from torchpin.rules.model import SAFE

VOLTA = fleet_from_options(
    gpus=("V100",), driver="550", python="3.11", platform="linux-x86_64", glibc=None
)
CU126 = "--extra-index-url https://download.pytorch.org/whl/cu126\n"


def fixed(text: str) -> str:
    """Return ``text`` with all its fixes."""
    data = text.encode()
    options = Options(("-",), stdin=data, stdin_filename="requirements.txt", unsafe_fixes=True)
    for _, changed in engine.fix(options, VOLTA).changes:
        return changed.decode()
    return text


@pytest.mark.parametrize("blank", ["", " ", "  ", "\t"])
@pytest.mark.parametrize("before", ["", " "])
@pytest.mark.parametrize("after", ["", " ", "  # why"])
def test_blanks_around_an_operator_stay(blank: str, before: str, after: str) -> None:
    text = f"torch{before}=={blank}2.12.0{after}\n"
    assert fixed(text) == f"{CU126}torch{before}=={blank}2.12.0+cu126{after}\n"


@pytest.mark.parametrize("operator", [">=", "==", "~=", "==="])
def test_a_blank_behind_any_operator_stays(operator: str) -> None:
    assert "\ntorch == 2." in fixed(f"torch {operator} 2.15.0\n")


@pytest.mark.parametrize("other", ["torch==2.2.2", "torch<2.3", "torch>=2.0,<2.3", "torch==2.2.*"])
@pytest.mark.parametrize(
    "marker", ['sys_platform == "darwin"', 'python_version < "3.9"', 'platform_machine == "arm64"']
)
@pytest.mark.parametrize("first", [True, False])
def test_lines_for_other_machines_neither_bind_nor_change(
    other: str, marker: str, first: bool
) -> None:
    """The pin of a platform that the fleet does not have says nothing about the fleet."""
    kept = f"{other} ; {marker}\n"
    old, new = "torch==2.12.0", "torch==2.12.0+cu126"
    end = ' ; sys_platform == "linux" and python_version > "3.9" and platform_machine != "arm64"\n'
    lines = (kept, old + end) if first else (old + end, kept)
    data = "".join(lines).encode()
    options = Options(("-",), stdin=data, stdin_filename="requirements.txt")
    result = engine.fix(options, VOLTA)
    assert all(f.fix is not None and f.fix.safety == SAFE for f in result.report_before.findings)
    assert result.changes[0][1].decode() == CU126 + "".join(lines).replace(old, new)


def test_the_fix_of_a_replaced_pypi_is_what_fixing_ends_in(tmp_path: Path) -> None:
    """TP407 beside a channel that has to change anyway: both fixes name one channel."""
    text = (
        "--index-url https://download.pytorch.org/whl/cu128\n"
        "torch==2.5.1\ntorchvision==0.20.1\npandas\n"
    )
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    found = engine.check(Options((str(path),)), VOLTA).findings
    told = {one.fix.message for one in found if one.fix is not None}
    assert {one.code for one in found} >= {"TP106", "TP407"}
    assert told == {"torch==2.5.1+cu124 torchvision==0.20.1+cu124 (index cu124)"}
    assert fixed(text) == (
        "--extra-index-url https://download.pytorch.org/whl/cu124\n"
        "torch==2.5.1+cu124\ntorchvision==0.20.1+cu124\npandas\n"
    )


def test_changes_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    """Not safe fixes first, as they are made."""
    for name, version in (("a", "2.15.0"), ("b", "2.12.0"), ("c", "2.15.0"), ("d", "2.12.0")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "requirements.txt").write_text(f"torch=={version}\n")
    options = Options((str(tmp_path),), unsafe_fixes=True)
    paths = [document.path for document, _ in engine.fix(options, VOLTA).changes]
    assert len(paths) == 4
    assert paths == sorted(paths)
