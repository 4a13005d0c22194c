"""The stub behaves as the real hosts do, and the real clients resolve from it alone."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from packaging.utils import parse_wheel_filename
from tests.clients.runners import Picked, Pip, Uv, Where, names_default_index, parse_compiled
from tests.clients.stub_facts import load, records, unanswered
from tests.clients.stub_server import BARE, UNHASHED, Stub

LINUX = Where("3.11", "linux-x86_64")


def get(url: str, accept: str = "text/html") -> tuple[str, str]:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_every_proved_channel_file_is_served() -> None:
    assert len(records("channels.json")) > 2000
    assert unanswered() == []


def test_records_hold_what_the_index_served() -> None:
    vision = {w.version: w.requires for w in load(True) if w.package == "torchvision"}
    assert vision["0.29.0"] == ("torch==2.14.0",)
    assert vision["0.29.2"] == ("torch>=2.14.0",)
    audio = {w.version: w.requires for w in load(True) if w.package == "torchaudio"}
    assert audio["2.10.0"] == ("torch==2.10.0",)
    assert audio["2.11.0"] == ()


def test_wheel_names_of_channels_keep_their_labels() -> None:
    labels = {
        parse_wheel_filename(w.filename)[1].local
        for w in load()
        if w.home == "cu126" and w.package == "torch"
    }
    assert labels == {"cu126"}
    macs = [w for w in load() if w.home == "cpu" and "macosx" in w.filename]
    assert macs
    assert all("+cpu" not in w.version for w in macs)


def test_pages(stub: Stub) -> None:
    kind, text = get(f"{stub.pypi}/torch/", "application/vnd.pypi.simple.v1+json")
    assert kind == "application/vnd.pypi.simple.v1+json"
    page = json.loads(text)
    assert "2.15.0" in page["versions"]
    kind, text = get(f"{stub.pypi}/Torch/")
    assert kind.startswith("text/html")
    kind, text = get(f"{stub.channel('cu126')}/torch/", "application/vnd.pypi.simple.v1+json")
    assert kind.startswith("text/html")
    assert "%2Bcu126" in text
    assert "data-core-metadata" in text
    assert "data-core-metadata" not in get(f"{stub.channel(BARE)}/torch/")[1]
    lines = get(f"{stub.channel('cu124')}/torch/")[1].splitlines()
    bare = [line for line in lines if f">{UNHASHED}" in line]
    assert bare
    assert all("#sha256=" not in line for line in bare)
    assert ".whl" not in get(f"{stub.channel('cu126')}/")[1]
    assert "cu126/torch-" in get(f"{stub.base}/whl/torch_stable.html")[1]


def test_parse_compiled() -> None:
    text = (
        "torch[opt]==2.6.0+cu124 ; sys_platform == 'linux'\n    # from http://h/whl/cu124\n"
        "torchvision @ http://h/whl/cu124/torchvision-0.21.0%2Bcu124-cp311-cp311-linux_x86_64.whl\n"
    )
    assert parse_compiled(text) == {
        "torch": Picked("2.6.0+cu124", "cu124"),
        "torchvision": Picked("0.21.0+cu124", "cu124"),
    }


def test_default_index_is_found_through_includes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("torch\n-r b.txt\n")
    (tmp_path / "b.txt").write_text("-r a.txt\n-c c.txt\n")
    (tmp_path / "c.txt").write_text("--index-url http://h/simple\n")
    assert not names_default_index(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("-r a.txt\n  -i http://h/simple\n")
    assert names_default_index(tmp_path / "a.txt")


@pytest.mark.clients
def test_both_clients_take_whole_requirements(tmp_path: Path, stub: Stub, pip: Pip, uv: Uv) -> None:
    root = tmp_path / "r.txt"
    root.write_text("torch==2.14.1\ntorchvision==0.29.1\n")
    for client in (pip, uv):
        result = client.run(root, LINUX, stub)
        assert result.ok, result.log
        assert result.packages["torch"] == Picked("2.14.1", "pypi")
        assert "nvidia-cudnn-cu13" in result.packages
        assert "triton" in result.packages
    for client in (pip, uv):
        result = client.run(root, Where("3.12", "windows-x86_64"), stub)
        assert result.ok, result.log
        assert "triton" not in result.packages, "markers follow the target"


@pytest.mark.clients
@pytest.mark.parametrize("name", ["pip", "uv"])
def test_channels_without_conveniences(
    tmp_path: Path, lean_stub: Stub, name: str, request: pytest.FixtureRequest
) -> None:
    client: Pip | Uv = request.getfixturevalue(name)
    root = tmp_path / "r.txt"
    for channel, version in ((BARE, "2.7.1"), ("cu124", "2.6.0")):
        root.write_text(f"--index-url {lean_stub.channel(channel)}\ntorch=={version}\n")
        result = client.run(root, LINUX, lean_stub)
        assert result.ok, result.log
        assert result.packages["torch"] == Picked(f"{version}+{channel}", channel)


@pytest.mark.clients
def test_nothing_but_the_stub_is_asked(tmp_path: Path, lean_stub: Stub, uv: Uv, pip: Pip) -> None:
    root = tmp_path / "r.txt"
    root.write_text("a-package-that-does-not-exist\n")
    for client in (pip, uv):
        before = len(lean_stub.asked)
        assert not client.run(root, LINUX, lean_stub).ok
        asked = lean_stub.asked[before:]
        assert asked == ["/pypi/simple/a-package-that-does-not-exist/"], asked
