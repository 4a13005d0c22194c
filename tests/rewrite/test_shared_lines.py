"""Index options that stand on one line with others, as pip allows: only what is meant goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin import engine
from torchpin.engine import Options
from torchpin.fleet.profile import fleet_from_options

FLEET = fleet_from_options(
    gpus=["Tesla V100"], driver="550.54.15", python="3.11", platform="linux-x86_64"
)
CH = "https://download.pytorch.org/whl"


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        (
            f"--extra-index-url {CH}/cu124 --extra-index-url {CH}/cu124",
            f"--extra-index-url {CH}/cu126",
        ),
        (
            f"--extra-index-url {CH}/cu124 --extra-index-url {CH}/cu121",
            f"--extra-index-url {CH}/cu126",
        ),
        (
            f"--extra-index-url {CH}/cu124 --extra-index-url {CH}/cu121 --pre",
            f"--extra-index-url {CH}/cu126 --pre",
        ),
        (
            f"-i https://pypi.example/simple --extra-index-url {CH}/cu124",
            f"-i https://pypi.example/simple --extra-index-url {CH}/cu126",
        ),
    ],
)
def test_pip_moves_the_channel_and_keeps_the_rest(tmp_path: Path, line: str, fixed: str) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"{line}\ntorch==2.14.0+cu124\n", "utf-8")
    result = engine.fix(Options(paths=(str(path),), isolated=True, client="pip"), FLEET)
    ((_, data),) = result.changes
    assert data.decode() == f"{fixed}\ntorch==2.14.0+cu126\n"
