"""``uv pip`` takes the indexes of a project file where torchpin says that it does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.runners import clean_environment, home_of, uv_binary
from tests.clients.stub_server import Stub

from torchpin.documents.base import Document
from torchpin.documents.loader import load
from torchpin.part_ways import beside_settings
from torchpin.select.parts import part_installs

UV = uv_binary()
pytestmark = [pytest.mark.clients, pytest.mark.skipif(UV is None, reason="there is no uv")]
INDEX = '[[tool.uv.index]]\nurl = "{%s}"\n'
CASES: dict[str, tuple[str, str, str]] = {
    # name: (pyproject.toml, list of requirements, arguments)
    "nothing": ("", "", "--default-index {pypi} torch"),
    "index": (INDEX % "cu126", "", "--default-index {pypi} torch"),
    "explicit": (INDEX % "cu126" + 'name = "x"\nexplicit = true\n', "", "-i {pypi} torch"),
    "two": (INDEX % "cu126" + INDEX % "cu130", "", "-i {pypi} torch"),
    "command first": (INDEX % "cu126", "", "-i {pypi} --extra-index-url {cu130} torch"),
    "list last": (INDEX % "cu126", "--extra-index-url {cu130}\ntorch\n", "-i {pypi} -r r.txt"),
    "extra": ('[tool.uv]\nextra-index-url = ["{cu126}"]\n', "", "-i {pypi} torch"),
    "extra of pip": (
        '[tool.uv]\nextra-index-url = ["{cu126}"]\n[tool.uv.pip]\nextra-index-url = ["{cu130}"]\n',
        "",
        "-i {pypi} torch",
    ),
    "index before extra of pip": (
        INDEX % "cu126" + '[tool.uv.pip]\nextra-index-url = ["{cu130}"]\n',
        "",
        "-i {pypi} torch",
    ),
    "index-url": ('[tool.uv]\nindex-url = "{cu126}"\n', "", "torch"),
    "index-url of pip": (
        '[tool.uv]\nindex-url = "{cu126}"\n[tool.uv.pip]\nindex-url = "{cu130}"\n',
        "",
        "torch",
    ),
    "index-url of the command": (
        '[tool.uv]\nindex-url = "{cu126}"\n',
        "",
        "--index-url {cu130} torch",
    ),
    "index-url before the list's": (
        '[tool.uv]\nindex-url = "{cu126}"\n',
        "--index-url {cu130}\ntorch\n",
        "-r r.txt",
    ),
    "default": (INDEX % "cu126" + "default = true\n", "", "torch"),
    "default before the list's": (
        INDEX % "cu126" + "default = true\n",
        "--index-url {cu130}\ntorch\n",
        "-r r.txt",
    ),
    "default is last": (INDEX % "cu130" + "default = true\n" + INDEX % "cu126", "", "torch"),
    "passed over": (INDEX % "cu126" + "[tool.uv.pip]\nfoo = 1\n", "", "-i {pypi} torch"),
}


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub() as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_uv_pip_asks_where_torchpin_says(name: str, stub: Stub, tmp_path: Path) -> None:
    urls = {"pypi": stub.pypi, **{one: stub.channel(one) for one in ("cu126", "cu130")}}
    project, listed, arguments = (
        text.replace("{pypi}", urls["pypi"])
        .replace("{cu126}", urls["cu126"])
        .replace("{cu130}", urls["cu130"])
        for text in CASES[name]
    )
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "a"\nversion = "1"\n{project}')
    (tmp_path / "r.txt").write_text(listed)
    (tmp_path / "Makefile").write_text(f"all:\n\tuv pip install {arguments}\n")
    made = subprocess.run(
        [
            *(str(UV), "pip", "install", "--dry-run", "--no-deps", "--target", str(tmp_path / "x")),
            *("--python", sys.executable, "--python-version", "3.11"),
            *("--python-platform", "x86_64-manylinux_2_28", *arguments.split()),
        ],
        cwd=tmp_path,
        env={
            **{k: v for k, v in clean_environment().items() if k != "UV_NO_CONFIG"},
            "UV_CACHE_DIR": str(tmp_path / "cache"),
            "UV_PYTHON_DOWNLOADS": "never",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    chosen = [line.split("==")[1] for line in made.stderr.splitlines() if " + torch==" in line]
    assert len(chosen) == 1, made.stderr
    cache: dict[str, Document] = {}
    file = beside_settings(load(str(tmp_path / "Makefile"), cache), lambda path: load(path, cache))
    (found,) = part_installs(file, lambda path: load(path, cache), client="uv")
    homes = [home_of(one.url) for one in found.install.indexes if one.url]
    assert found.part.uncertain is None
    assert homes[0] == (chosen[0].partition("+")[2] or "pypi")


def test_what_may_run_elsewhere_stays_unsure(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        (INDEX % "u").replace("{u}", "https://download.pytorch.org/whl/cu126")
    )
    cache: dict[str, Document] = {}
    doubts = {}
    for name, text in {
        "run.sh": "uv pip install torch\n",
        "Makefile": "a:\n\tuv pip install torch\nb:\n\tuvx --with torch x\n",
        "Makefile.other": "all:\n\tcd sub && uv pip install torch\n",
        "Dockerfile": "FROM python:3.11\nRUN uv pip install --system torch\n",
    }.items():
        (tmp_path / name).write_text(text)
        file = beside_settings(load(str(tmp_path / name), cache), lambda path: load(path, cache))
        doubts[name] = [part.uncertain is not None for part in file.parts]
        if name == "Dockerfile":
            assert not file.parts[0].settings
    assert doubts == {
        "run.sh": [True],
        "Makefile": [False, True],
        "Makefile.other": [True],
        "Dockerfile": [True],
    }
