"""Our reader against pip-requirements-parser, the second opinion on every fix."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchpin.documents.requirements import read_requirements
from torchpin.rewrite.second import facts_of, facts_of_own

H = "--hash=sha256:" + "a" * 64
CASES = [
    "./torch-2.9.1-cp311-cp311-linux_x86_64.whl",
    "--pre torch",
    "torch==2.1 -- torchvision",
    "torch",
    "torch==2.14.1+cu126",
    "  torch >= 2 , < 3  # c",
    "torch[a, B]>=2 ; python_version < '3.13'",
    "torch (==2.1)",
    "torch===2.1",
    "torch\t==\t2.1",
    "torch==2.8.*",
    "torch>=2.4+cu121",
    "torch=2.1\ntorchvision==0.16",
    "'torch==2.1'",
    "torch==2.1#c",
    "torch @ https://files.example/torch-2.9.1%2Bcu128-cp311-cp311-linux_x86_64.whl",
    "https://files.example/torch-2.9.1%2Bcu128-cp311-cp311-linux_x86_64.whl ; os_name=='nt'",
    "git+https://git.example/pytorch/pytorch@v2#egg=torch",
    "-e git+https://git.example/pytorch/pytorch@v2#egg=torch",
    "-r other.txt\n-c c.txt\n--requirement=o.txt\n--constraint c2.txt\n-rother.txt",
    "-i https://a.example/simple\n--extra-index-url=https://b.example/simple",
    "--index-url 'https://a.example/simple' --extra-index-url https://b.example/simple",
    "-f https://a.example/x.html\n--find-links=wheels\n--no-index",
    "--pre\n--prefer-binary\n--no-binary :all:\ntorch",
    f"torch==2.1 {H}",
    f"torch==2.1 \\\n    {H} \\\n    {H}\ntorchvision",
    f"torch==2.1 \\\n  # comment\n  {H}",
    f"torch==2.1 # comment \\\n  {H}",
    "torch==2.1 -C a=b --config-settings=c=d",
    "torch==2.1 --index-url https://a.example/simple --pre",
    "tor\\\nch==2.1",
    "torch\\",
    "torch\x0ctorchvision",
    "torch # a\u2028torchvision",
    "torch\r\ntorchvision\rtorchaudio\n",
    "torch==2.1 torchvision==0.16",
    "torch==${V}\n--index-url https://${V}@a.example/simple",
    "",
]
DISAGREE = {
    "torch==2.1 --hash=md5:aa": "it takes weak hashes, pip does not",
    "torch==2.1 --global-option=x": "it is older than the removal of the option",
}


def readings(text: str) -> tuple[object, object]:
    document = read_requirements("x", text.encode())
    return facts_of_own(document), facts_of(document)


@pytest.mark.parametrize("text", CASES)
def test_same_as_the_second_reader(text: str) -> None:
    ours, theirs = readings(text)
    assert ours == theirs


@pytest.mark.parametrize("text", DISAGREE)
def test_known_disagreements(text: str) -> None:
    ours, theirs = readings(text)
    assert ours != theirs, "no longer disagrees: move it to the other cases"


def test_real_files_as_the_second_reader() -> None:
    root = os.environ.get("TORCHPIN_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus"
    files = sorted(Path(root, "requirements").glob("*"))
    if not files:
        pytest.skip("no corpus of real files here")
    for file in files:
        document = read_requirements(str(file), file.read_bytes())
        assert facts_of_own(document) == facts_of(document), file.name
