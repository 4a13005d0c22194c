"""Requirements that a script writes by a here-document are those that it installs then."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from torchpin.documents.scripts import read_shell


def asked(text: str) -> list[tuple[list[str], bool]]:
    """Return what each command installs: requirements and options, and whether it is unsure."""
    return [
        (
            [
                *(f"{one.name}{one.specifier}" for one in part.document.declarations),
                *(f"-r {one.path}" for one in part.document.includes),
                *(f"{one.option} {one.url}" for one in part.document.indexes),
            ],
            part.uncertain is not None,
        )
        for part in read_shell("setup.sh", text.encode()).parts
    ]


@pytest.mark.parametrize(
    ("text", "wanted", "unsure"),
    [
        ("cat > r.txt <<'E'\ntorch==2.1\n# no\n\nnumpy # yes\nE\npip install -r r.txt\n",
         ["torch==2.1", "numpy"], False),
        ("cat <<E >r.txt\ntorch\nE\npip install -r r.txt rich", ["rich", "torch"], False),
        ("cat <<-E > r.txt\n\ttorch\n\tE\npip install -r r.txt", ["torch"], False),
        ("tee r.txt <<E\n--extra-index-url https://a.example/\ntorch\nE\npip install -r r.txt",
         ["torch", "--extra-index-url https://a.example/"], False),
        ("tee r.txt <<E > /dev/null && pip install -r r.txt\ntorch\nE\n", ["torch"], False),
        ("cat > r.txt <<E\ntorch\nE\ncat >> r.txt <<E\nnumpy\nE\npip install -r r.txt",
         ["torch", "numpy"], False),
        ("cd sub\ncat > r.txt <<E\ntorch\nE\ncd ..\npip install -r sub/r.txt",
         ["torch"], False),
        ("cat > r.txt <<E\ntorch\nE\ncat > r.txt <<E\nnumpy\nE\npip install -r r.txt",
         ["numpy"], False),
        ("cat > r.txt <<E\ntorch==$V\nnumpy\nE\npip install -r r.txt", ["numpy"], True),
        ("if x; then\ncat > r.txt <<E\ntorch\nE\nfi\npip install -r r.txt", ["torch"], True),
        ("cat >> r.txt <<E\ntorch\nE\npip install -r r.txt", ["-r r.txt"], False),
        ("cat > c.txt <<E\ntorch\nE\npip install -c c.txt numpy", ["numpy", "-r c.txt"], False),
        ("grep x > r.txt <<E\ntorch\nE\npip install -r r.txt", ["-r r.txt"], False),
    ],
)  # fmt: skip
def test_what_is_installed(text: str, wanted: list[str], unsure: bool) -> None:
    assert asked(text) == [(wanted, unsure)]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_writes_the_same_lines(tmp_path: Path) -> None:
    text = (
        "cat <<-'E' > r.txt\n\ttorch==2.1 # x\n\t  numpy\n\tE\n"
        "tee -a r.txt <<E >/dev/null\nrich\nE\n"
    )
    subprocess.run(["bash", "-c", text], cwd=tmp_path, check=True, timeout=20)
    lines = (tmp_path / "r.txt").read_text("utf-8").splitlines()
    real = [line.partition(" #")[0].strip() for line in lines]
    assert asked(f"{text}pip install -r r.txt\n") == [(real, False)]
