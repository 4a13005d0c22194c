"""``catalog show`` as text: what it tells, and that it fits a terminal of 80 columns."""

from __future__ import annotations

from typing import Any

import pytest
from tests.report.report_samples import build

from torchpin.catalog.model import WATCHED, Kernels
from torchpin.catalog.show import row, show_rows
from torchpin.catalog.store import load_catalog
from torchpin.report import builds
from torchpin.report.style import PLAIN


def tagged(*tags: str, inferred: tuple[str, ...] = ()) -> dict[str, Any]:
    return row(build()._replace(pythons=tags, pythons_inferred=inferred))


@pytest.mark.parametrize(
    ("tags", "inferred", "text"),
    [
        (("cp310", "cp311", "cp312"), (), "3.10–3.12"),
        (("cp39", "cp311"), (), "3.9 3.11"),
        (("cp312",), ("cp313", "cp313t"), "3.12–3.13 +t?"),
        (("cp27", "cp27m", "cp36"), (), "2.7 3.6"),
        (("cp39-abi3",), (), "3.9+"),
        (("py2", "py3"), (), "any"),
        ((), (), "?"),
    ],
)
def test_pythons_in_short(tags: tuple[str, ...], inferred: tuple[str, ...], text: str) -> None:
    assert builds.pythons(tagged(*tags, inferred=inferred)) == text


def test_kernels_in_short() -> None:
    lists = Kernels(("75", "90"), ("90", "120"), ("gfx942",), "measured", "wheel")
    told = row(build()._replace(kernels=lists))
    assert builds.kernels(told) == "75 90+PTX PTX 120 gfx942"


def test_one_table_a_platform() -> None:
    rows = show_rows(load_catalog(), "torch", "2.14.1")
    text = builds.builds(rows, PLAIN)
    assert text.startswith(f"torch 2.14.1: {len(rows)} builds\n")
    linux, arm = text.split("\nlinux-aarch64\n")
    assert "\nlinux-x86_64\n" in linux
    assert any(
        line.split()[:2] == ["PyPI", "cu130"] and line.endswith("13.0  2.28   measured")
        for line in linux.splitlines()
    )
    assert "  libtorch_cuda_linalg.so of PyPI cu130: no kernels\n" in arm
    assert "?: inferred" in text.splitlines()[-1]
    assert "*: no label" not in text.splitlines()[-1]


def test_builds_without_a_label_are_marked() -> None:
    rows = show_rows(load_catalog(), "xformers", "0.0.33")
    text = builds.builds(rows, PLAIN)
    assert "  cu130 *  " in text
    assert "*: no label" in text.splitlines()[-1]


def test_few_builds_are_told_whole() -> None:
    text = builds.builds([row(build())], PLAIN)
    assert "  kernels: sm_70 sm_90a compute_120 [measured]\n" in text
    assert "  kernels from: wheel\n" in text
    assert (
        builds.builds([], PLAIN)
        == builds.versions([], PLAIN)
        == ("The catalog knows no such build.\n")
    )


def test_versions_say_where_their_builds_lie() -> None:
    lines = builds.versions(show_rows(load_catalog(), "torch"), PLAIN).splitlines()
    (line,) = [line for line in lines if line.startswith("2.15.0 ")]
    assert line.split(maxsplit=1)[1].startswith("PyPI (cpu, cu132), cpu, ")


@pytest.mark.parametrize("package", WATCHED)
def test_everything_fits_80_columns(package: str) -> None:
    catalog = load_catalog()
    texts = [builds.versions(show_rows(catalog, package), PLAIN)]
    for version in catalog.versions(package):
        rows = show_rows(catalog, package, version)
        if len(rows) > builds.DETAILED:
            texts.append(builds.builds(rows, PLAIN))
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []
