"""What the comparisons of projects with real uv share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.clients.stub_facts import Wheel
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


def _shipped_wheels() -> list[Wheel]:
    """Return the catalog's wheels with what the catalog, not a record, says that they require."""
    from tests.clients.installs import catalog_wheels
    from tests.clients.stub_facts import PYPI, platform_of

    from torchpin.catalog.store import load_catalog

    catalog = load_catalog()
    told = {
        (b.package, b.full_version, PYPI if b.home == PYPI else b.channel, b.platform): (
            b.requires_torch
        )
        for package in ("torchvision", "torchaudio")
        for b in catalog.builds(package)
        if b.requires_torch is not None
    }
    out = []
    for wheel in catalog_wheels():
        key = (wheel.package, wheel.version, wheel.home, platform_of(wheel.filename))
        if key in told:
            wheel = wheel._replace(requires=(f"torch{told[key]}",) if told[key] else ())
        out.append(wheel)
    return out


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectOracle]:
    """Real uv on every wheel that the shipped catalog knows, and predictions on that catalog."""
    from tests.clients.installs import plain_wheel
    from tests.clients.stub_server import Stub
    from tests.projects.generate_projects import OTHER
    from tests.projects.project_oracle import ProjectOracle, UvLock

    from torchpin.catalog.store import load_catalog

    with Stub(wheels=_shipped_wheels()) as stub, UvLock(stub) as uv:
        stub.content.add([plain_wheel(OTHER)])
        yield ProjectOracle(stub, uv, load_catalog(), tmp_path_factory.mktemp("shipped"))
