"""What a Python has installed, read from all sorts of folders."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchpin.catalog.store import load_catalog
from torchpin.errors import UsageError
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import Python
from torchpin.verify.held import read_held
from torchpin.verify.installed import Package, ask, read_installed
from torchpin.verify.machine import Card, Here
from torchpin.verify.model import HostGpu
from torchpin.verify.predict import build_of, is_version, predict

NAMES = ("torch", "torchvision", "torchaudio")


def put(site: Path, name: str, version: str, said: str = "", metadata: str | None = None) -> None:
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(text if metadata is None else metadata)
    if said:
        (site / name).mkdir(exist_ok=True)
        (site / name / "version.py").write_text(said)


def only(found: tuple[Package, ...]) -> Package:
    (package,) = found
    return package


@pytest.mark.parametrize(
    ("version", "said", "full", "channel"),
    [
        (
            "2.15.0",
            "__version__ = '2.15.0+cu132'\ncuda: Optional[str] = '13.2'\n",
            "2.15.0+cu132",
            1,
        ),
        ("2.14.1+cu126", "", "2.14.1+cu126", "cu126"),
        ("2.14.1", "__version__ = '2.14.1+cpu'\ncuda: Optional[str] = None\n", "2.14.1+cpu", "cpu"),
        ("2.14.1", "__version__ = '2.14.1'\ncuda = None\n", "2.14.1", "cpu"),
        ("2.14.1", "__version__ = '2.14.1'\nhip = '7.2.5321'\n", "2.14.1", "rocm7.2"),
        ("2.14.1+git1a2b", "cuda = '12.6'\n", "2.14.1+git1a2b", "cu126"),
        ("2.14.1", "", "2.14.1", ""),
    ],
)
def test_what_a_torch_is_built_for(
    tmp_path: Path, version: str, said: str, full: str, channel: str | int
) -> None:
    put(tmp_path, "torch", version, said)
    package = only(read_installed([str(tmp_path)], NAMES))
    assert package.full_version == full
    assert package.channel == ("cu132" if channel == 1 else channel)


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_the_folder_of_an_environment_stands_for_its_python(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    found = ask(str(tmp_path), os.environ)
    assert found.executable == str(tmp_path / "bin" / "python")
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    with pytest.raises(UsageError, match="No such file"):
        ask(str(tmp_path / "bin"), os.environ)


def test_the_first_folder_counts(tmp_path: Path) -> None:
    put(tmp_path / "user", "torch", "2.14.1")
    put(tmp_path / "site", "torch", "2.13.0")
    put(tmp_path / "site", "torchvision", "0.28.0")
    put(tmp_path / "site", "numpy", "2.1.0")
    folders = [str(tmp_path / name) for name in ("absent.zip", "user", "site")]
    found = read_installed(folders, NAMES)
    assert [(one.name, one.version) for one in found] == [
        ("torch", "2.14.1"),
        ("torchvision", "0.28.0"),
    ]


def test_a_tree_that_was_built_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(
        "__version__ = '2.16.0a0+git12ab'\ncuda = '12.9'\n"
    )
    package = only(read_installed([str(tmp_path)], NAMES))
    assert (package.version, package.channel) == ("2.16.0a0+git12ab", "cu129")


def test_eggs_of_old_installations(tmp_path: Path) -> None:
    (tmp_path / "torch-1.8.0-py3.8.egg-info").mkdir()
    assert only(read_installed([str(tmp_path)], NAMES)).version == "1.8.0"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200))
def test_damaged_metadata_never_raise(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        put(Path(folder), "torch", "2.14.1")
        (Path(folder) / "torch-2.14.1.dist-info" / "METADATA").write_bytes(data)
        (Path(folder) / "torch").mkdir()
        (Path(folder) / "torch" / "version.py").write_bytes(data)
        (Path(folder) / "torch" / "lib").mkdir()
        (Path(folder) / "torch" / "lib" / "libtorch_cuda.so").write_bytes(b"\x7fELF" + data)
        package = only(read_installed([folder], NAMES))
        held = read_held(package)
        assert held.main is None
        if is_version(package.version):
            card = Card(HostGpu(0, "V100"), find_gpu("Tesla V100")[0])
            python = Python(3, 12)
            here = Here("n01", "linux-x86_64", (card,), {"driver": "550.54.15"})
            build = build_of(package, held, load_catalog(), here.platform, python)
            predict(build, (), here.group((card,), python)).of("cublas")


def test_a_library_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    put(tmp_path, "torch", "2.14.1", "__version__ = '2.14.1+cu126'\n")
    (tmp_path / "torch" / "lib").mkdir()
    (tmp_path / "torch" / "lib" / "libtorch_cuda.so").write_bytes(b"\x7fELF\x02\x01 cut off")
    held = read_held(only(read_installed([str(tmp_path)], NAMES)))
    assert len(held.problems) == 1
    assert held.problems[0].startswith("libtorch_cuda.so cannot be read: ")


@pytest.mark.parametrize(
    ("text", "expected"), [("2.14.1+cu126", True), ("2.14.0a0+git", True), ("unknown", False)]
)
def test_versions_that_can_be_judged(text: str, expected: bool) -> None:
    assert is_version(text) is expected
