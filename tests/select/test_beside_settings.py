"""A project file beside a script gives its indexes to ``uv pip``, if the script runs there."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.engine import Options, check
from torchpin.fleet.profile import fleet_from_options
from torchpin.rules.model import ERROR, WARNING

INDEX = "https://download.pytorch.org/whl/cu126"
OTHER = "https://download.pytorch.org/whl/cu128"


@pytest.mark.parametrize(
    ("settings", "severities"),
    [
        (f'[tool.uv]\nindex-url = "{INDEX}"\n', []),
        (f'[[tool.uv.index]]\nname = "a"\nurl = "{INDEX}"\n', []),
        (f'[[tool.uv.index]]\nname = "a"\nurl = "{OTHER}"\n', [WARNING]),
        (f'[[tool.uv.index]]\nname = "a"\nurl = "{INDEX}"\nexplicit = true\n', [ERROR]),
        ('[tool.uv]\nprerelease = "allow"\n', [ERROR]),
        ('[tool.uv]\nconstraint-dependencies = ["torch<2.12"]\n', [WARNING]),
        ("no TOML", [ERROR]),
    ],
)
def test_severity(settings: str, severities: list[str], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(settings, "utf-8")
    script = tmp_path / "setup.sh"
    script.write_text("uv venv\nuv pip install torch==2.11.0\n", "utf-8")
    fleet = fleet_from_options(
        gpus=("V100",), driver="580.82.07", python="3.12", platform="linux-x86_64", glibc="2.35"
    )
    found = check(Options((str(script),), isolated=True), fleet).findings
    assert [one.severity for one in found if one.code == "TP201"] == severities
