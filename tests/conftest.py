"""Fixtures and options that several parts of the tests share."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent.parent))
for name in ("TORCHPIN_CATALOG", "FORCE_COLOR", "FORCE_HYPERLINK", "GITHUB_ACTIONS", "GITLAB_CI"):
    os.environ.pop(name, None)  # what changes how torchpin looks, in the log of a CI job too
os.environ["TORCHPIN_NO_CACHE"] = "1"
"""No test keeps results but those of the cache, which take this away."""
CACHE = tempfile.mkdtemp(prefix="torchpin-tests-")
"""A cache of its own, empty at the start: no catalog but the shipped one is used."""
os.environ["TORCHPIN_CACHE_DIR"] = CACHE
SEARCHING = "TORCHPIN_SEED" in os.environ
"""Whether other cases than the ordinary ones are wanted: ``nox -s search``. A run without it makes
the same cases each time, so that what passed once passes again until something is changed."""
settings.register_profile("search", settings.get_profile("ci"), derandomize=False, print_blob=True)
settings.load_profile("search" if SEARCHING else "ci")
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
DATA = Path(__file__).parent.parent / "src" / "torchpin" / "catalog" / "data"
os.environ["TORCHPIN_TODAY"] = json.loads((DATA / "catalog.json").read_text("utf-8"))["date"]

if TYPE_CHECKING:
    from tests.clients.harness import Pip, Uv
    from tests.clients.stub_server import Stub


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--oracle-cases",
        type=int,
        default=int(os.environ.get("TORCHPIN_ORACLE_CASES", "0")),
        help="generated cases to compare with uv, and half as many with pip (0: a small sample)",
    )
    parser.addoption(
        "--oracle-seed",
        type=int,
        default=int(os.environ["TORCHPIN_SEED"]) if SEARCHING else None,
        help="seed of generated cases that are not the ordinary ones (see: nox -s search)",
    )


@pytest.fixture(autouse=True)
def _no_chosen_catalog() -> Iterator[None]:
    """Forget the catalog that a command line chose: a process usually runs one."""
    yield
    store = sys.modules.get("torchpin.catalog.store")
    if store is not None:
        store.choose(None)


@pytest.fixture(scope="session")
def stub() -> Iterator[Stub]:
    """A running stub of PyPI and the channels, with all recorded requirements."""
    from tests.clients.stub_server import Stub

    with Stub() as running:
        yield running


@pytest.fixture(scope="session")
def lean_stub() -> Iterator[Stub]:
    """A running stub whose packages require only members of the family."""
    from tests.clients.stub_server import Stub

    with Stub(lean=True) as running:
        yield running


@pytest.fixture(scope="session")
def pip() -> Iterator[Pip]:
    """The pip of the test environment."""
    from tests.clients.harness import Pip

    with Pip() as running:
        yield running


@pytest.fixture(scope="session")
def uv() -> Iterator[Uv]:
    """The uv of the test environment."""
    from tests.clients.harness import Uv

    with Uv() as running:
        yield running
