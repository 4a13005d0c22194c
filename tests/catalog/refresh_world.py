"""A small catalog that stands for the shipped one, and indexes that hold just what it knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.catalog.index_server import IndexServer, Listed, companion_wheel, files_of, torch_wheel

from torchpin.catalog import store
from torchpin.catalog.records import State, read_state, render, write_folder
from torchpin.catalog.store import FOLDER, Catalog
from torchpin.cli.main import main

VERSIONS = {
    "torch": ("2.14.1", "2.15.0"),
    "torchvision": ("0.29.1", "0.29.2"),
    "torchaudio": ("2.11.1",),
    "triton": ("3.8.0", "3.9.0"),
}
CHANNELS = ("cpu", "cu126", "cu130", "cu132")
LINUX = "manylinux_2_28_x86_64"
ARM = "manylinux_2_28_aarch64"


def small_state() -> State:
    """Return a part of the shipped catalog."""
    whole = read_state(FOLDER)
    parts = {}
    for package, versions in VERSIONS.items():
        part = whole.parts[package]
        parts[package] = part._replace(
            pypi=list(versions),
            elsewhere=[],
            sdists=[],
            spans=[s for s in part.spans if s[0] in CHANNELS and s[2] in versions],
            builds=[
                b
                for b in part.builds
                if b.version in versions and (b.home == "pypi" or b.channel in CHANNELS)
                if b.pythons or b.pythons_inferred
            ],
            rows=[r for r in part.rows if r[0] in versions and r[1] in CHANNELS],
            hashes=[] if part.hashes is not None else None,
        )
    head = dict(whole.head)
    head["newest"] = {package: versions[-1] for package, versions in VERSIONS.items()}
    return whole._replace(head=head, parts=parts, pins=[["vllm", "0.1", "==2.14.1", "a" * 64]])


class World(NamedTuple):
    """Indexes, a cache, and a shipped catalog."""

    server: IndexServer
    shipped: Catalog
    cache: Path
    capsys: pytest.CaptureFixture[str]

    def refresh(self, *options: str) -> tuple[int, str, str]:
        """Run ``catalog refresh`` and return its exit code, output and notes."""
        self.server.asked.clear()
        self.capsys.readouterr()
        code = main(["catalog", "refresh", *self.server.options, *options])
        return code, *self.capsys.readouterr()

    def catalog(self) -> Catalog:
        """Return what the other commands now use."""
        store._chosen.clear()
        return store.load_catalog()

    def run(self, *argv: str) -> tuple[int, str, str]:
        """Run another command."""
        store._chosen.clear()
        self.capsys.readouterr()
        code = main(list(argv))
        return code, *self.capsys.readouterr()

    def release(self) -> None:
        """Publish torch 2.16.0: PyPI's build is cu134, a new channel; and its companions."""
        requires = ["filelock", 'triton==3.9.0; platform_system == "Linux"']
        files = []
        for channel, arches in {
            "pypi": "sm_80 sm_90 sm_100 sm_120",
            "cu134": "sm_80 sm_90 sm_100 sm_120",
            "cu132": "sm_75 sm_80 sm_90 sm_120",
        }.items():
            label = "cu134" if channel == "pypi" else channel
            version = "2.16.0" if channel == "pypi" else f"2.16.0+{channel}"
            for python in ("cp311", "cp312"):
                name = f"torch-{version}-{python}-{python}-{LINUX}.whl"
                data = torch_wheel(version, arches, label, requires, name)
                files.append(listed(channel, name, data))
        for channel, label in {"pypi": "cu134", "cu134": "cu134"}.items():
            version = "0.30.0" if channel == "pypi" else "0.30.0+cu134"
            data = companion_wheel(
                "torchvision", version, "80 90 100 120", label, ["torch>=2.15.0"]
            )
            files.append(listed(channel, f"torchvision-{version}-py3-none-{LINUX}.whl", data))
        self.server.add(*files)


def listed(channel: str, name: str, data: bytes, **rest: Any) -> Listed:
    """Return a new file of an index."""
    return Listed(channel, name, data, uploaded="2026-12-04", requires_python=">=3.11", **rest)


def make_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[World, IndexServer]:
    """Return a world whose server is not started yet."""
    state = small_state()
    folder = tmp_path / "shipped"
    write_folder(str(folder), render(state))
    cache = tmp_path / "cache"
    monkeypatch.setenv("TORCHPIN_CACHE_DIR", str(cache))
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    shipped = Catalog(str(folder))
    monkeypatch.setattr(store, "_catalog", shipped)
    monkeypatch.setattr(store, "_chosen", {})
    monkeypatch.setattr(store, "_choice", (None, False))
    monkeypatch.setattr("torchpin.catalog.refresh.fetch.PAUSE", 0.01)
    monkeypatch.setattr("torchpin.catalog.remote.PAUSE", 0.01)
    monkeypatch.setattr("torchpin.catalog.refresh.run.today", lambda: "2026-12-05")
    server = IndexServer(files_of(state))
    return World(server, shipped, cache, capsys), server
