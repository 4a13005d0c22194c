"""What the comparisons of projects with real uv share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.projects.project_oracle import ProjectOracle


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectOracle]:
    """Real uv on the recorded wheels, and predictions on the same closed facts."""
    from tests.clients.installs import plain_wheel
    from tests.clients.stub_catalog import StubFacts
    from tests.clients.stub_facts import load
    from tests.clients.stub_server import Stub
    from tests.projects.generate_projects import OTHER
    from tests.projects.project_oracle import ProjectOracle, UvLock

    with Stub(lean=True) as stub, UvLock(stub) as uv:
        stub.content.add([plain_wheel(OTHER)])
        folder = tmp_path_factory.mktemp("recorded")
        yield ProjectOracle(stub, uv, StubFacts(load(True)), folder)


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectOracle]:
    """Real uv on every wheel that the shipped catalog knows, and predictions on that catalog."""
    from tests.clients.installs import catalog_wheels, plain_wheel
    from tests.clients.stub_server import Stub
    from tests.projects.generate_projects import OTHER
    from tests.projects.project_oracle import ProjectOracle, UvLock

    from torchpin.catalog.store import load_catalog

    with Stub(wheels=catalog_wheels()) as stub, UvLock(stub) as uv:
        stub.content.add([plain_wheel(OTHER)])
        yield ProjectOracle(stub, uv, load_catalog(), tmp_path_factory.mktemp("shipped"))
