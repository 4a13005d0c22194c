"""The catalog's whole world as a stub, and real uv against it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.clients.installs import catalog_wheels, plain_wheel
from tests.clients.stub_server import Stub
from tests.projects.project_oracle import UvLock


@pytest.fixture(scope="session")
def world() -> Iterator[Stub]:
    """A stub that serves everything that the shipped catalog holds to exist."""
    others = [plain_wheel(name) for name in ("numpy", "ultralytics", "requests")]
    with Stub(wheels=[*catalog_wheels(), *others]) as stub:
        yield stub


@pytest.fixture(scope="session")
def uv_lock(world: Stub) -> Iterator[UvLock]:
    """Real uv on it."""
    with UvLock(world) as uv:
        yield uv
