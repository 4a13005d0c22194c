"""What published tables say of companions whose METADATA say nothing of torch."""

from __future__ import annotations

import pytest

from torchpin.catalog.store import shipped_catalog
from torchpin.judge.companions import accepts, judge_companion
from torchpin.judge.model import FAILS, PARTLY, RUNS, UNKNOWN

CATALOG = shipped_catalog()


def status(package: str, version: str, torch: str) -> str:
    """Return the status of the version beside PyPI's torch."""
    (one,) = CATALOG.find(package, version=version, home="pypi", platform="linux-x86_64")
    (host,) = CATALOG.find("torch", version=torch, home="pypi", platform="linux-x86_64")
    reasons = judge_companion(one, host)
    return next(r.status for r in reasons if r.question == "companion-version")


@pytest.mark.parametrize(
    ("package", "version", "torch", "expected"),
    [
        ("torchcodec", "0.7.0", "2.8.0", RUNS),
        ("torchcodec", "0.7.0", "2.9.1", FAILS),
        ("torchcodec", "0.9.1", "2.9.1", RUNS),
        ("torchcodec", "0.12.0", "2.11.0", RUNS),
        ("torchcodec", "0.17.0", "2.15.0", RUNS),
        ("torchcodec", "0.16.0", "2.10.0", FAILS),
        ("torchcodec", "0.17.0", "2.10.0", UNKNOWN),  # the table has no row for it yet
        ("torchao", "0.13.0", "2.8.0", RUNS),
        ("torchao", "0.13.0", "2.9.0", PARTLY),
        ("torchao", "0.15.0", "2.9.1", RUNS),
        ("torchao", "0.18.0", "2.15.0", RUNS),
        ("torchao", "0.18.0", "2.10.0", PARTLY),
    ],
)
def test_tables(package: str, version: str, torch: str, expected: str) -> None:
    assert status(package, version, torch) == expected


@pytest.mark.parametrize("package", ["torchcodec", "torchao"])
def test_the_partners_of_the_catalog_agree_with_the_tables(package: str) -> None:
    for torch in CATALOG.versions("torch"):
        for version in CATALOG.partners(torch, package):
            for build in CATALOG.find(package, version=version):
                assert accepts(build, torch) is not False, (package, version, torch)


def test_nothing_is_said_of_releases_before_the_table() -> None:
    (build,) = CATALOG.find("torchao", version="0.8.0", home="pypi", platform="linux-x86_64")
    assert accepts(build, "2.15.0") is None
