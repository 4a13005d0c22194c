from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpin.select.channels import channel_url, index_kind, is_public_pypi, redact
from torchpin.select.model import IndexKind

HOST = "https://download.pytorch.org/whl"


@pytest.mark.parametrize(
    ("url", "kind", "channel", "project"),
    [
        (f"{HOST}/cu126", "channel", "cu126", None),
        (f"{HOST}/cu126/", "channel", "cu126", None),
        (f"{HOST}/cu92", "channel", "cu92", None),
        (f"{HOST}/cpu?x=1", "channel", "cpu", None),
        (f"{HOST}/xpu#frag", "channel", "xpu", None),
        (f"{HOST}/rocm6.2.4", "channel", "rocm6.2.4", None),
        (f"{HOST}/cu126/torch/", "channel", "cu126", "torch"),
        (f"{HOST}/cu126/Torch_Vision", "channel", "cu126", "torch-vision"),
        ("https://DOWNLOAD.PyTorch.org/whl/cu126", "channel", "cu126", None),
        ("https://user:pw@mirror.example/pytorch/whl/cu126", "channel", "cu126", None),
        ("https://mirror.example/pytorch/whl/cu%31%326", "channel", "cu126", None),
        ("http://127.0.0.1:8000/whl/cu126/", "channel", "cu126", None),
        ("file:///mirror/whl/cu126", "channel", "cu126", None),
        ("https://download-r2.pytorch.org/whl/rocm7.2", "channel", "rocm7.2", None),
        (HOST, "root", None, None),
        (f"{HOST}/nightly", "nightly", None, None),
        (f"{HOST}/nightly/cu130", "nightly", "cu130", None),
        (f"{HOST}/nightly/cpu/torchvision/", "nightly", "cpu", "torchvision"),
        (f"{HOST}/test/cu130", "test", "cu130", None),
        (f"{HOST}/torch_stable.html", "legacy", None, None),
        (f"{HOST}/cpu/torch_stable.html", "legacy", "cpu", None),
        (f"{HOST}/torch/", "legacy", None, "torch"),
        (f"{HOST}/lts/1.8/cu111", "unknown", None, None),
        (f"{HOST}/cpu-cxx11-abi", "unknown", None, None),
        (f"{HOST}/cpu_pypi_pkg", "unknown", None, None),
        (f"{HOST}/cu121_pypi_cudnn", "unknown", None, None),
        (f"{HOST}/${{CHANNEL}}", "unknown", None, None),
        (f"{HOST}/cu126/torch/more", "unknown", None, None),
        ("", "pypi", None, None),
        ("https://pypi.example/simple", "pypi", None, None),
        ("https://pypi.example/simple/", "pypi", None, None),
        ("https://pypi.example/simple/torch/", "pypi", None, "torch"),
        ("https://repo.example/api/pypi/pypi-remote/simple", "pypi", None, None),
        ("https://test.pypi.example/simple", "unknown", None, None),
        ("https://repo.example/api/pypi/cuda13.0-ubi9/simple/", "unknown", None, None),
        ("https://repo.example/api/pypi/rocm7.14-ubi9/simple/", "unknown", None, None),
        ("https://repo.example/api/pypi/pytorch-cu121/simple/", "unknown", None, None),
        ("https://pypi.nvidia.example/simple", "unknown", None, None),
        ("https://pypi.example/", "unknown", None, None),
        ("https://repo.example/simple", "unknown", None, None),
        ("https://someone.github.io/llama-cpp-python/whl/cu121", "unknown", None, None),
        ("https://flashinfer.ai/whl/cu124", "unknown", None, None),
        ("./wheels", "unknown", None, None),
        ("wheels/whl/cu126", "unknown", None, None),
        ("C:\\wheels\\whl\\cu126", "unknown", None, None),
        ("https://", "unknown", None, None),
        ("http://[::1/whl/cu126", "unknown", None, None),
    ],
)
def test_kind_by_form(url: str, kind: str, channel: str | None, project: str | None) -> None:
    assert index_kind(url) == IndexKind(kind, channel, project)


def test_a_folder_of_links_is_unknown_whatever_its_name() -> None:
    assert index_kind("file:///x/whl/cu126", option="--find-links").kind == "unknown"


def test_private_mapping_wins_by_the_longest_prefix() -> None:
    private = {
        "https://corp.example/": "private",
        "https://corp.example/torch-cu126": "cu126",
        "https://corp.example/all/simple/": "pypi",
    }
    assert index_kind("https://corp.example/torch-cu126/", private) == IndexKind("channel", "cu126")
    assert index_kind("https://me:x@CORP.example/torch-cu126/torch", private) == IndexKind(
        "channel", "cu126", "torch"
    )
    assert index_kind("https://corp.example/torch-cu1260", private).kind == "private"
    assert index_kind("https://corp.example/all/simple", private).kind == "pypi"
    assert index_kind("https://corp.example/whl/cu130", private).kind == "private"
    assert index_kind("https://other.example/whl/cu130", private).kind == "channel"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h.example/simple", "https://h.example/simple"),
        ("https://user:secret@h.example/simple", "https://****@h.example/simple"),
        ("https://token@h.example:8443/s", "https://****@h.example:8443/s"),
        ("https://h.example:8443/simple", "https://h.example:8443/simple"),
        ("https://user:se/cr#et@h.example/simple", "https://****@h.example/simple"),
        ("https://u:a@b@h.example/simple", "https://****@h.example/simple"),
        ("https://h.example/s?token=secret#f", "https://h.example/s?****#f"),
        ("git+https://secret@h.example/a/b@v1", "git+https://****@h.example/a/b@v1"),
        ("http://[::1]:80/whl/cpu", "http://[::1]:80/whl/cpu"),
        ("./wheels", "./wheels"),
    ],
)
def test_redact(url: str, shown: str) -> None:
    assert redact(url) == shown


@given(st.text(max_size=60))
def test_never_raises(text: str) -> None:
    assert index_kind(text).kind
    assert index_kind("https://" + text).kind
    redact("https://" + text)


@given(st.text("abcXYZ09%!-_.~", min_size=6, max_size=20))
def test_a_password_is_never_shown(secret: str) -> None:
    secret = "S3" + secret
    assert secret not in redact(f"https://user:{secret}@h.example/simple")


def test_channel_url_is_its_channel() -> None:
    assert index_kind(channel_url("rocm7.2")) == IndexKind("channel", "rocm7.2")


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("", True),
        ("https://pypi.example/simple", True),
        ("https://pypi.example/simple/", True),
        ("https://PyPI.example/simple", True),
        ("https://pypi.example/simple//", False),
        ("http://pypi.example/simple", False),
        ("https://pypi.example/simple/torch", False),
        ("https://pypi.company.example/simple", False),
        ("https://mirror.example/pypi/simple", False),
        ("./pypi/simple", False),
    ],
)
def test_the_index_that_is_asked_by_default(url: str, public: bool) -> None:
    assert is_public_pypi(url) is public
