"""Small catalogs in a folder, for tests that compare, verify or damage one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torchpin.catalog.model import Build, Kernels
from torchpin.catalog.records import Part, State, read_state, render, write_folder
from torchpin.catalog.store import FOLDER, Catalog


def torch_build(**changes: object) -> Build:
    """Return torch 2.15.0 of PyPI for linux-x86_64 with CUDA 13.2, but for the changes."""
    source = f"PyPI wheel {NAME}"
    kernels = Kernels(("80", "90"), (), (), "measured", source)
    build = Build(
        package="torch",
        version="2.15.0",
        label="",
        channel="cu132",
        home="pypi",
        platform="linux-x86_64",
        pythons=("cp312",),
        pythons_inferred=(),
        kernels=kernels,
        libraries=(("libtorch_cuda_linalg.so", kernels),),
        cuda="13.2",
        glibc="2.28",
        macos=None,
        requires_torch=None,
        requires_python=">=3.11",
        yanked=False,
        released="2026-10-28",
        evidence="measured",
        source="PyPI file list of 2026-11-30",
    )
    return build._replace(**changes)  # type: ignore[arg-type]


NAME = "torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl"


def state(*builds: Build, hashes: Iterable[list[str]] = ()) -> State:
    """Return a catalog of these builds, with the tables beside them that ship."""
    shipped = read_state(FOLDER)
    parts: dict[str, Part] = {}
    for package in sorted({build.package for build in builds}):
        here = [build for build in builds if build.package == package]
        pypi = sorted({b.version for b in here if b.home == "pypi"})
        listed = [row for row in hashes if row[3].startswith(f"{package}-")]
        parts[package] = Part(package, pypi, [], [], [], here, [], [], listed)
    head = shipped.head | {
        "newest": {name: part.pypi[-1] if part.pypi else "" for name, part in parts.items()}
    }
    return shipped._replace(head=head, parts=parts)


def write(folder: Path, made: State) -> Path:
    """Write a catalog and return its folder."""
    write_folder(str(folder), render(made))
    return folder


def catalog(folder: Path, *builds: Build, hashes: Iterable[list[str]] = ()) -> Catalog:
    """Write a catalog of these builds and return it."""
    return Catalog(str(write(folder, state(*builds, hashes=hashes))))
