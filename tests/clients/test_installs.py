"""The proof of an install finds what a client does, and fails where the plan is wrong."""

from __future__ import annotations

import pytest
from tests.clients.harness import Where, assert_installs

pytestmark = pytest.mark.clients
LINUX = Where("3.11", "linux-x86_64")
LABELLED = (
    "torch==2.14.0+cu126\ntorchvision==0.29.0+cu126\ntorchaudio==2.11.0+cu126\nacme-tool>=3,<4\n"
)
PLAN = {"torch": "2.14.0+cu126", "torchvision": "0.29.0+cu126", "torchaudio": "2.11.0+cu126"}
CHANNEL = "https://download.pytorch.org/whl/cu126"


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_labelled_pins_with_the_index_of_the_client(client: str) -> None:
    pages = "".join(f"-f {CHANNEL}/{name}/\n" for name in PLAN)
    lines = f"--extra-index-url {CHANNEL}\n" if client == "pip" else pages
    assert_installs(lines + LABELLED, LINUX, PLAN, client)


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_family_alone_from_a_replaced_index(client: str) -> None:
    text = f"--index-url {CHANNEL}\ntorch==2.14.0\ntorchvision==0.29.0\n"
    expected = {"torch": "2.14.0+cu126", "torchvision": "0.29.0+cu126"}
    assert_installs(text, LINUX, expected, client)


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_a_wrong_plan_fails(client: str) -> None:
    with pytest.raises(AssertionError, match="installs"):
        assert_installs("torch==2.14.0\ntorchaudio\n", LINUX, {"torch": "2.14.0"}, client)
    with pytest.raises(AssertionError, match="stops"):
        assert_installs("torch==2.14.0+cu124\n", LINUX, {"torch": "2.14.0+cu124"}, client)


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_includes_and_other_packages(client: str) -> None:
    files = {
        "requirements.txt": "-r base.txt\ntorch==2.14.1 ; sys_platform == 'linux'\n",
        "base.txt": "--index-url https://pypi.example/simple\nacme-tool==7.1\nother~=2.3\n",
    }
    assert_installs(files, LINUX, {"torch": "2.14.1"}, client)
    assert_installs(files, Where("3.12", "windows-x86_64"), {}, client)
