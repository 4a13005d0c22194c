"""What was published, where, and how that is known."""

from __future__ import annotations

import pytest

from torchpin.catalog.existence import existence
from torchpin.catalog.model import PLATFORMS, Existence
from torchpin.catalog.package import Package
from torchpin.catalog.store import load_catalog
from torchpin.evidence import PROOF

CATALOG = load_catalog()


def asked(package: str, version: str, **where: str) -> tuple[bool | None, str]:
    found: Existence = CATALOG.existence(package, version, **where)
    assert found.source
    return found.exists, found.evidence


@pytest.mark.parametrize(
    ("package", "channel", "last"),
    [
        ("torch", "cu117", "2.0.1"),
        ("torch", "cu118", "2.7.1"),
        ("torch", "cu121", "2.5.1"),
        ("torch", "cu124", "2.6.0"),
        ("torch", "cu126", "2.14.1"),
        ("torch", "cu128", "2.11.0"),
        ("torchvision", "cu124", "0.21.0"),
        ("torchaudio", "cu124", "2.6.0"),
        ("torchaudio", "cu126", "2.11.0"),
        ("torchvision", "cu128", "0.26.0"),
    ],
)
def test_closed_channels(package: str, channel: str, last: str) -> None:
    span = CATALOG.channel_span(package, channel)
    assert span is not None
    assert (span.last, span.closed) == (last, True)
    assert span.evidence in PROOF


@pytest.mark.parametrize("channel", ["cpu", "xpu", "cu129", "cu130", "cu132", "rocm7.2"])
def test_open_channels(channel: str) -> None:
    span = CATALOG.channel_span("torch", channel)
    assert span is not None
    assert not span.closed


@pytest.mark.parametrize(
    ("package", "version", "channel", "expected"),
    [
        ("torch", "2.14.0", "cu124", (False, "bounded")),
        ("torch", "2.7.0", "cu124", (False, "bounded")),
        ("torch", "2.15.0", "cu124", (False, "bounded")),
        ("torch", "2.6.0", "cu124", (True, "lockfile")),
        ("torch", "2.15.0", "cu126", (False, "published")),
        ("torch", "2.12.0", "cu128", (False, "published")),
        ("torch", "2.6.0", "cu128", (False, "bounded")),
        ("torch", "2.1.0", "cu116", (False, "bounded")),
        ("torch", "1.13.1", "cu118", (False, "bounded")),
        ("torch", "1.7.1", "cu102", (None, "inferred")),
        ("torch", "2.12.0", "cu129", (False, "inferred")),
        ("torch", "2.15.0", "cu129", (False, "inferred")),
        ("torch", "2.15.0", "cu130", (True, "inferred")),
        ("torch", "2.15.0", "cu134", (None, "inferred")),
        ("torch", "2.16.0", "cu130", (None, "inferred")),
        ("torch", "2.14.0", "cu140", (None, "inferred")),
        ("torch", "2.3.2", "cu121", (False, "measured")),
        ("torchaudio", "2.14.0", "cu124", (False, "measured")),
        ("torchaudio", "2.11.0", "cu132", (False, "published")),
        ("torchaudio", "2.6.0", "cu132", (False, "published")),
        ("torchvision", "0.19.0", "cu124", (True, "published")),
        ("torchvision", "0.29.0", "cu124", (False, "bounded")),
        ("torchvision", "0.14.1", "cu117", (None, "inferred")),
    ],
)
def test_on_a_channel(
    package: str, version: str, channel: str, expected: tuple[bool | None, str]
) -> None:
    assert asked(package, version, channel=channel) == expected


def test_a_label_names_the_channel() -> None:
    assert asked("torch", "2.14.0+cu124") == (False, "bounded")
    assert asked("torch", "2.14.0+cu126") == asked("torch", "2.14.0", channel="cu126")
    assert asked("torch", "2.14.0+cu126", home="pypi") == (False, "measured")
    assert asked("torch", "2.14.0+cu126", channel="cu130")[0] is None
    assert asked("torch", "2.1.0a0+nv23.6") == (None, "inferred")
    assert asked("torch", "2.6.0+cu128.nv") == (None, "inferred")


@pytest.mark.parametrize(
    ("package", "version", "expected"),
    [
        ("torch", "2.14.0", (True, "measured")),
        ("torch", "2.14", (True, "measured")),
        ("torch", "2.3.2", (False, "measured")),
        ("torch", "1.0.0", (True, "measured")),
        ("torch", "1.8.2", (True, "published")),
        ("torch", "2.16.0", (None, "inferred")),
        ("torch", "0.3.0", (None, "inferred")),
        ("torch", "2.14.0rc1", (None, "inferred")),
        ("torch", "2.14.0.dev20260701", (None, "inferred")),
        ("torch", "not a version", (None, "inferred")),
        ("torchaudio", "2.14.0", (False, "measured")),
        ("torchaudio", "2.11.1", (True, "measured")),
        ("torchvision", "0.20.2", (False, "measured")),
        ("numpy", "2.0.0", (None, "inferred")),
    ],
)
def test_anywhere(package: str, version: str, expected: tuple[bool | None, str]) -> None:
    assert asked(package, version) == expected


def test_on_pypi() -> None:
    assert asked("torch", "2.13.0", home="pypi", platform="macos-arm64") == (True, "measured")
    assert asked("torch", "2.3.0", home="pypi", platform="macos-x86_64") == (False, "measured")
    assert asked("torch", "2.3.0", channel="pypi", platform="macos-x86_64") == (False, "measured")
    assert asked("torchaudio", "2.14.0", home="pypi") == (False, "measured")
    assert asked("torch", "2.16.0", home="pypi") == (None, "inferred")
    assert asked("torch", "2.15.0", home="pypi", channel="cu132") == (True, "measured")
    assert asked("torch", "2.15.0", home="pypi", channel="cu126") == (False, "measured")
    assert asked("triton-rocm", "3.6.0", home="pypi")[0] is not True


def test_macos_lies_on_cpu_alone() -> None:
    where = {"channel": "cu126", "platform": "macos-arm64"}
    assert asked("torch", "2.13.0", **where) == (False, "published")
    where["channel"] = "cpu"
    assert asked("torch", "2.13.0", **where)[0] is True


def test_a_platform_that_a_row_only_infers_away_is_no_proof() -> None:
    where = {"channel": "cu126", "platform": "linux-aarch64"}
    assert asked("torch", "2.8.0", **where) == (False, "inferred")
    assert asked("torch", "2.9.0", **where) == (True, "lockfile")


def test_every_build_exists() -> None:
    for package in CATALOG.packages():
        for build in CATALOG.builds(package):
            index = "pypi" if build.home == "pypi" else build.channel
            found = CATALOG.existence(
                package, build.version, channel=index, platform=build.platform
            )
            assert found.exists, build


def test_no_proved_absence_of_2_15_off_pypi_but_on_ended_channels() -> None:
    """What was only announced for 2.15.0 is never denied with proof."""
    for channel in CATALOG.channels():
        found = CATALOG.existence("torch", "2.15.0", channel=channel)
        span = CATALOG.channel_span("torch", channel)
        if found.exists is False and found.evidence in PROOF:
            assert span is not None
            assert span.closed, channel


def tiny(**changes: object) -> Package:
    raw: dict[str, object] = {
        "package": "tiny",
        "pypi": ["1.0", "2.0"],
        "elsewhere": [],
        "spans": [["cu126", "1.0", "2.0", "lockfile", 0, 1, None]],
        "kernels": [],
        "builds": [
            [
                *("1.0", "cu126", "cu126", "channel", "linux-x86_64", "py3", "", None, []),
                *("12.6", None, None, None, None, 0, None, "lockfile", 0),
            ]
        ],
        "rows": [],
        "sources": ["seen"],
    }
    return Package({**raw, **changes})


def test_an_unproved_beginning_denies_nothing() -> None:
    found = existence(tiny(pypi=["0.5", "1.0", "2.0"]), "2026-01-01", "0.5", "cu126", None, None)
    assert found.exists is None
    begun = tiny(
        pypi=["0.5", "1.0", "2.0"],
        spans=[["cu126", "1.0", "2.0", "lockfile", 0, 1, 0]],
    )
    found = existence(begun, "2026-01-01", "0.5", "cu126", None, None)
    assert (found.exists, found.evidence) == (False, "bounded")


def test_an_unproved_end_denies_nothing() -> None:
    still_open = tiny(spans=[["cu126", "1.0", "2.0", "lockfile", 0, 0, None]])
    assert existence(still_open, "2026-01-01", "2.1", "cu126", None, None).exists is None
    assert existence(tiny(), "2026-01-01", "2.1", "cu126", None, None).exists is False


def test_inside_the_span_nothing_is_bounded() -> None:
    for platform in (None, *PLATFORMS):
        found = existence(tiny(), "2026-01-01", "2.0", "cu126", None, platform)
        assert found.exists is None or platform in ("macos-arm64", "macos-x86_64")
