"""The shipped catalog against the real index: ``TORCHPIN_LIVE=1 pytest tests/catalog``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from torchpin.catalog.bounded import InspectError
from torchpin.catalog.refresh.address import pypi_index
from torchpin.catalog.refresh.cache import Cache
from torchpin.catalog.refresh.fetch import Fetcher
from torchpin.cli.main import guarded
from torchpin.errors import UsageError


@pytest.fixture(autouse=True)
def _index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with an empty cache; skip where nobody wants the network, or there is none."""
    if not os.environ.get("TORCHPIN_LIVE"):
        pytest.skip("TORCHPIN_LIVE=1 asks the real index")
    monkeypatch.setenv("TORCHPIN_CACHE_DIR", str(tmp_path / "cache"))
    fetcher = Fetcher(Cache(str(tmp_path / "probe")), jobs=1, idle=10.0, today="2026-01-01")
    try:
        fetcher.page(f"{pypi_index()}/torchtext/", "text/html")
    except (InspectError, UsageError) as error:
        pytest.skip(f"the index cannot be reached: {error}")


def verified(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    argv = ["catalog", "verify", "--catalog", "shipped", "--output-format", "json", *options]
    code = guarded(argv)
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    wrong = [one for one in value["builds"] if one["status"] != "holds"]
    assert (code, wrong) == (0, []), f"seed {value['seed']}"
    return value


def test_a_sample_of_all_packages_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(capsys, "--sample", "20")["summary"]["holds"] == 20


def test_every_torch_build_holds(capsys: pytest.CaptureFixture[str]) -> None:
    value = verified(capsys, "--package", "torch", "--jobs", "6")
    kernels = [one for one in value["builds"] if "kernels" in one["checked"]]
    assert {one["platform"] for one in kernels} >= {"linux-x86_64", "linux-aarch64"}
    assert len(kernels) >= 40
