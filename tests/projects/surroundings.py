"""What surrounds a uv that a test starts through torchpin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.clients.runners import clean_environment
from tests.clients.stub_server import Address
from tests.projects.project_oracle import interpreters


def uv_knows_only(stub: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set an environment in which uv knows no index but the stub and no cache but its own."""
    for name in list(os.environ):
        if name.startswith(("UV_", "PIP_")):
            monkeypatch.delenv(name)
    environment = {k: v for k, v in clean_environment().items() if k.startswith("UV_")}
    del environment["UV_NO_CONFIG"]
    environment |= {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_DEFAULT_INDEX": stub.pypi}
    environment["UV_PYTHON"] = interpreters()[0][1]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
