"""The shipped catalog: what it says and that its data are sound."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchpin.catalog import store
from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY, PLATFORMS, WATCHED, Build
from torchpin.catalog.show import holds, nearest_versions, show_rows
from torchpin.catalog.store import FOLDER, Catalog, load_catalog
from torchpin.errors import CatalogError
from torchpin.evidence import MEASURED, ORDER, PUBLISHED

CATALOG = load_catalog()
ALL = [build for package in CATALOG.packages() for build in CATALOG.builds(package)]


def only(package: str, version: str, channel: str, platform: str, home: str = "channel") -> Build:
    (build,) = CATALOG.find(package, version=version, channel=channel, platform=platform, home=home)
    return build


def pypi(package: str, version: str, platform: str = "linux-x86_64") -> Build:
    (build,) = CATALOG.find(package, version=version, platform=platform, home="pypi")
    return build


def test_every_watched_package_is_known() -> None:
    assert set(WATCHED) <= set(CATALOG.packages())
    assert CATALOG.builds("numpy") == ()
    assert CATALOG.versions("numpy") == ()


def test_builds_are_sound() -> None:
    assert len(ALL) > 2500
    for b in ALL:
        Version(b.full_version)
        SpecifierSet(b.requires_torch or "")
        SpecifierSet(b.requires_python or "")
        assert b.platform in PLATFORMS
        assert b.home in ("pypi", "channel")
        assert b.evidence in ORDER
        assert b.source
        assert not set(b.pythons) & set(b.pythons_inferred)
        for lists in (b.kernels, *(k for _, k in b.libraries)):
            if lists is not None:
                assert lists.evidence in ORDER
                assert lists.source
                assert all(re.fullmatch(r"\d+[af]?", a) for a in (*lists.sass, *lists.ptx))
                assert all(a.startswith("gfx") for a in lists.gfx)
        if b.home == "channel" and b.channel != "root":
            assert kind_of_label(b.channel), b
            assert b.label in ("", b.channel) or kind_of_label(b.label) is None, b
        if b.home == "pypi":
            assert b.label == ""
            assert b.evidence == MEASURED
            assert b.pythons
            assert not b.pythons_inferred
            assert b.released
        if b.glibc is not None:
            assert b.platform.startswith("linux")
        if b.macos is not None:
            assert b.platform.startswith("macos")
        if b.platform.startswith("macos"):
            assert b.cuda is None


def test_builds_are_sorted_and_unique() -> None:
    for package in CATALOG.packages():
        builds = CATALOG.builds(package)
        keys = [
            (Version(b.version), b.home != "pypi", b.channel, PLATFORMS.index(b.platform), b.label)
            for b in builds
        ]
        assert keys == sorted(keys)
        assert len(set(keys)) == len(keys)


def test_versions_and_newest() -> None:
    versions = CATALOG.versions("torch")
    assert list(versions) == sorted(versions, key=Version)
    assert {"1.0.0", "1.8.2", "2.15.0"} <= set(versions)
    assert [CATALOG.newest(p) for p in FAMILY] == ["2.15.0", "0.29.2", "2.11.1"]
    assert CATALOG.newest("numpy") == ""


def test_every_channel_release_of_the_family_is_on_pypi() -> None:
    """The ground on which a version that PyPI lacks is said to be published nowhere."""
    for package in FAMILY:
        listed = {b.version for b in CATALOG.find(package, home="pypi")}
        assert {b.version for b in CATALOG.find(package, home="channel")} <= listed


def test_kernels_of_pypi() -> None:
    before, after = pypi("torch", "2.10.0"), pypi("torch", "2.11.0")
    assert before.kernels is not None
    assert after.kernels is not None
    assert "70" in before.kernels.sass
    assert "70" not in after.kernels.sass
    assert before.kernels.evidence == after.kernels.evidence == MEASURED
    assert (before.channel, after.channel) == ("cu128", "cu130")
    assert (before.cuda, after.cuda) == ("12.8", "13.0")


def test_kernels_of_a_channel() -> None:
    build = only("torch", "2.12.1", "cu126", "linux-x86_64")
    assert build.kernels is not None
    assert {"50", "60", "70"} <= set(build.kernels.sass)
    assert build.kernels.evidence in (MEASURED, PUBLISHED)


def test_linalg_kernels() -> None:
    for version in ("2.11.0", "2.12.0", "2.12.1", "2.13.0", "2.14.0", "2.14.1", "2.15.0"):
        lists = dict(pypi("torch", version).libraries)["libtorch_cuda_linalg.so"]
        assert lists.sass == ("80", "86", "90", "100", "120")
        assert lists.evidence == MEASURED
        assert "sha256:" in lists.source
    assert "sm_75 in 1" in dict(pypi("torch", "2.15.0").libraries)["libtorch_cuda_linalg.so"].source
    old = dict(pypi("torch", "2.10.0").libraries)["libtorch_cuda_linalg.so"]
    assert "70" in old.sass
    arm = dict(pypi("torch", "2.13.0", "linux-aarch64").libraries)["libtorch_cuda_linalg.so"]
    assert arm.sass == ()
    newest = dict(pypi("torch", "2.15.0", "linux-aarch64").libraries)["libtorch_cuda_linalg.so"]
    assert newest.sass == ("80", "90", "100", "110", "120")
    same_cuda = only("torch", "2.13.0", "cu130", "linux-x86_64")
    assert same_cuda.libraries == pypi("torch", "2.13.0").libraries
    assert only("torch", "2.13.0", "cu126", "linux-x86_64").libraries == ()


def test_python_tags() -> None:
    newest = pypi("torch", "2.15.0")
    assert "cp310" not in newest.pythons
    assert {"cp311", "cp315t"} <= set(newest.pythons)
    assert newest.requires_python == ">=3.11"
    assert "cp310" in pypi("torch", "2.14.1").pythons
    assert pypi("torchvision", "0.29.2").pythons == ("py3",)
    channel = only("torch", "2.14.1", "cu130", "linux-x86_64")
    assert "cp312" in channel.pythons
    assert "cp311" in channel.pythons_inferred


def test_labels_in_file_names() -> None:
    assert only("torch", "2.14.1", "cu126", "linux-x86_64").full_version == "2.14.1+cu126"
    assert only("torch", "2.14.1", "cpu", "macos-arm64").full_version == "2.14.1"
    assert only("torch", "2.5.1", "cu124", "linux-aarch64").label == ""
    assert only("torch", "2.6.0", "cpu", "linux-aarch64").label == "cpu"
    assert only("torchvision", "0.24.0", "cu130", "linux-aarch64").label == ""
    assert only("torchvision", "0.25.0", "cu130", "linux-aarch64").label == "cu130"


def test_yanked() -> None:
    assert pypi("torchvision", "0.15.0").yanked
    assert pypi("torchaudio", "2.0.0").yanked
    assert not pypi("torch", "2.15.0").yanked


def test_requires_torch() -> None:
    assert pypi("torchvision", "0.29.0").requires_torch == "==2.14.0"
    assert pypi("torchvision", "0.29.2").requires_torch == ">=2.14.0"
    assert pypi("torchaudio", "2.11.0").requires_torch == ""
    assert pypi("torchvision", "0.9.0").requires_torch == "==1.8.0"
    assert pypi("torch", "2.14.0").requires_torch is None


@pytest.mark.parametrize(
    ("torch", "package", "expected"),
    [
        ("2.14.0", "torchvision", ("0.29.0", "0.29.2", "0.29.1")),
        ("2.14.1", "torchvision", ("0.29.1", "0.29.2")),
        ("2.15.0", "torchvision", ("0.29.2", "0.29.1")),
        ("2.4.0", "torchvision", ("0.19.0",)),
        ("2.14.0", "torchaudio", ("2.11.1", "2.11.0")),
        ("2.11.0", "torchaudio", ("2.11.0", "2.11.1")),
        ("2.4.0", "torchaudio", ("2.4.0",)),
        ("2.0.1", "torchaudio", ("2.0.2",)),
        ("2.0.0", "torchaudio", ("2.0.1",)),
        ("2.0.0", "torchvision", ("0.15.1",)),
        ("2.14+cu126", "torchvision", ("0.29.0", "0.29.2", "0.29.1")),
        ("2.10.0", "torchcodec", ("0.10.0",)),
        ("9.9", "torchvision", ()),
        ("2.14.0", "numpy", ()),
    ],
)
def test_partners(torch: str, package: str, expected: tuple[str, ...]) -> None:
    assert CATALOG.partners(torch, package) == expected


def test_partners_are_accepted_by_their_metadata() -> None:
    for torch in CATALOG.versions("torch"):
        for package in ("torchvision", "torchaudio"):
            for version in CATALOG.partners(torch, package):
                for build in CATALOG.find(package, version=version, home="pypi"):
                    if build.requires_torch is not None:
                        assert Version(torch) in SpecifierSet(build.requires_torch)


def test_find_narrows() -> None:
    builds = CATALOG.find("torch", channel="cu130")
    assert {b.home for b in builds} == {"pypi", "channel"}
    assert {b.home for b in CATALOG.find("torch", channel="cu130", home="pypi")} == {"pypi"}
    assert CATALOG.find("torch", version="2.14") == CATALOG.find("torch", version="2.14.0")
    assert CATALOG.find("torch", version="2.99.0") == ()
    assert CATALOG.find("torch", version="no version") == ()
    assert CATALOG.find("numpy", version="2.0") == ()


def test_channels() -> None:
    channels = CATALOG.channels()
    assert {"cpu", "cu118", "cu126", "cu132", "rocm7.2", "xpu"} <= set(channels)
    assert "cu134" not in channels
    assert "root" not in CATALOG.channels("triton")
    assert CATALOG.channels("torchaudio") != channels


def test_span_of_a_platform() -> None:
    windows = CATALOG.channel_span("torch", "cu129", "windows-x86_64")
    assert windows is not None
    assert (windows.first, windows.last, windows.closed) == ("2.8.0", "2.9.0", False)
    arm = CATALOG.channel_span("torch", "cu124", "linux-aarch64")
    assert arm is not None
    assert (arm.last, arm.closed) == ("2.5.1", False)
    assert CATALOG.channel_span("torch", "cu126", "macos-arm64") is None
    assert CATALOG.channel_span("torch", "cu134") is None
    assert CATALOG.channel_span("numpy", "cu126") is None


def test_health() -> None:
    assert any(h.kind == "frozen" for h in CATALOG.health("cu124"))
    assert {h.channel for h in CATALOG.health("cu124")} == {"cu124", "*"}
    assert {"requests", "packaging", "setuptools"} <= CATALOG.shadowed()
    assert not {"numpy", "filelock", "torch"} & CATALOG.shadowed()


def test_pins() -> None:
    assert CATALOG.pins("vllm", "0.32.0") == "==2.13.0"
    assert CATALOG.pins("xformers", "0.0.30") == "==2.7.0"
    assert CATALOG.pins("lightning", "2.6") == CATALOG.pins("lightning", "2.6.0")
    assert CATALOG.pins("vllm", "99.0") is None
    assert CATALOG.pins("vllm", "latest") is None
    assert CATALOG.pins("numpy", "1.0") is None


def test_hashes() -> None:
    labelled = CATALOG.hashes("torch", "2.13.0+cu126", "linux-x86_64")
    assert labelled
    for name, sha256 in labelled:
        assert name.startswith("torch-2.13.0+cu126-cp3")
        assert re.fullmatch("[0-9a-f]{64}", sha256)
    plain = CATALOG.hashes("torch", "2.13.0", "linux-x86_64")
    assert len(plain) >= len(pypi("torch", "2.13.0").pythons)
    assert all("+" not in name for name, _ in plain)
    assert CATALOG.hashes("torch", "2.13.0", "macos-arm64", "cpu") != CATALOG.hashes(
        "torch", "2.13.0", "linux-x86_64"
    )
    assert CATALOG.hashes("numpy", "1.0", "linux-x86_64") == ()


def test_a_file_has_one_digest_and_a_digest_one_version() -> None:
    """The same bytes may lie on PyPI and on a channel under names with other platform tags."""
    for package in ("torch", "torchvision", "torchaudio"):
        text = (Path(FOLDER) / f"hashes-{package}.json").read_text(encoding="utf-8")
        digests: dict[tuple[str, str], set[str]] = {}
        versions: dict[str, set[str]] = {}
        for full, _, channel, name, sha256 in json.loads(text)["files"]:
            digests.setdefault((channel, name), set()).add(sha256)
            versions.setdefault(sha256, set()).add(full)
        assert all(len(found) == 1 for found in digests.values())
        assert all(len(found) == 1 for found in versions.values())


def test_data_are_one_record_a_line() -> None:
    for path in Path(FOLDER).glob("builds-*.json"):
        lines = path.read_text(encoding="utf-8").splitlines()
        raw = json.loads("\n".join(lines))
        assert len(lines) > len(raw["builds"]) + len(raw["sources"])


def test_provenance() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", CATALOG.date)
    assert re.fullmatch("[0-9a-f]{64}", CATALOG.digest)
    assert set(CATALOG.facts) >= {"torch_channels.json", "lockfile_wheels.json"}
    assert all(re.fullmatch("[0-9a-f]{64}", d) for d in CATALOG.facts.values())


def test_loading_does_not_depend_on_the_working_directory(tmp_path: Path) -> None:
    code = (
        "from torchpin.catalog.store import load_catalog as l;"
        "print(l().digest, len(l().builds('torch')))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    seen = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout.split() == [CATALOG.digest, str(len(CATALOG.builds("torch")))]


def test_the_catalog_imports_nothing_slow() -> None:
    code = (
        "import sys; from torchpin.catalog.store import load_catalog as l; l().builds('torch');"
        "l().existence('torch', '2.0', channel='cu126');"
        "print(*sorted({'dataclasses', 'logging', 'importlib.metadata', 'importlib.resources',"
        "'packaging.markers', 'packaging.requirements', 'packaging.tags', 'hashlib', 'tomllib',"
        "'rich', 'resolvelib'} & set(sys.modules)))"
    )
    seen = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout.split() == []


def test_one_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_catalog", None)
    monkeypatch.setattr(store, "_chosen", {})
    first = load_catalog()
    assert load_catalog() is first
    assert first is not CATALOG


def test_missing_and_broken_data(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"cannot be read.*") as caught:
        Catalog(str(tmp_path))
    assert caught.value.path == str(tmp_path / "catalog.json")
    shutil.copyfile(Path(FOLDER) / "catalog.json", tmp_path / "catalog.json")
    for broken in ("", "{", "{}", "[]", "null", "1", '"x"', "\ufeff{}"):
        (tmp_path / "builds-torch.json").write_text(broken, "utf-8")
        with pytest.raises(CatalogError):
            Catalog(str(tmp_path)).builds("torch")


def test_show_rows() -> None:
    (row,) = show_rows(CATALOG, "torch", "2.12.1", "cu126", "linux-x86_64")
    assert row["version"] == "2.12.1+cu126"
    assert row["index"] == "channel"
    assert {"sm_50", "sm_60", "sm_70"} <= set(row["sass"])
    assert set(row["pythons_inferred"]) < set(row["pythons"])
    assert row["evidence"] == {"exists": "lockfile", "kernels": "published"}
    json.dumps(row)
    rows = show_rows(CATALOG, "torch", "2.13.0", "pypi")
    assert {r["index"] for r in rows} == {"pypi"}
    assert {r["platform"] for r in rows} == {
        *("linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64")
    }
    linux = next(r for r in rows if r["platform"] == "linux-x86_64")
    assert linux["libraries"]["libtorch_cuda_linalg.so"]["sass"][0] == "sm_80"
    assert len(show_rows(CATALOG, "torch")) == len(CATALOG.builds("torch"))
    assert {r["label"] for r in show_rows(CATALOG, "torch", "2.14.1+cu126")} == {"cu126"}
    assert show_rows(CATALOG, "torch", "9.9") == []
    assert show_rows(CATALOG, "numpy") == []


@pytest.mark.parametrize(
    ("wanted", "held", "nearest"),
    [
        ("2.1", True, "1.9 2.0 2.1.0 2.1.1.post1"),
        ("2.1.0.0", True, "1.9 2.0 2.1.0 2.1.1.post1"),
        ("2.1.1", False, "2.0 2.1.0 2.1.1.post1"),
        ("0.1", False, "1.9 2.0"),
        ("9", False, "2.1.0 2.1.1.post1"),
        ("latest", False, "2.0 2.1.0 2.1.1.post1"),
    ],
)
def test_nearest_versions(wanted: str, held: bool, nearest: str) -> None:
    versions = ("1.9", "2.0", "2.1.0", "2.1.1.post1")
    assert holds(versions, wanted) is held
    assert " ".join(nearest_versions(versions, wanted)) == nearest


def test_triton_is_what_torch_asks_for() -> None:
    assert CATALOG.partners("2.11.0", "triton") == ("3.6.0",)
    assert CATALOG.partners("2.0.1", "triton") == ("2.0.0",)
    assert CATALOG.partners("2.15.0", "triton") == ("3.9.0",)
    assert CATALOG.partners("1.13.1", "triton") == ()
