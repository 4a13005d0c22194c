"""``catalog show``: what it says of typos, of pins alone, and of builds with several lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import torchpin.report
from torchpin.catalog.show import row
from torchpin.catalog.store import load_catalog
from torchpin.cli.main import guarded


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = guarded(["catalog", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["show", "tourch"], "did you mean `torch`?"),
        (["show", "torch-vision"], "did you mean `torchvision`?"),
        (["show", "vllm"], "of vllm it holds only what it requires: …"),
        (["show", "numpy"], "it holds bitsandbytes, "),
        (["show", "torch", "2.14.7"], "the nearest are 2.14.0, 2.14.1"),
        (["show", "torch", "--channel", "cu1266"], "did you mean `cu126`?"),
        (["show", "torch", "2.14.1+cu1266"], "did you mean `cu126`?"),
        (["show", "torch", "--platform", "linus"], "known platforms: linux-x86_64, "),
        (["shwo"], "did you mean `show`?"),
        (["verfy"], "did you mean `verify`?"),
        ([], "catalog needs a command"),
    ],
)
def test_typos(capsys: pytest.CaptureFixture[str], argv: list[str], words: str) -> None:
    code, out, said = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert words in said


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for name in ("show", "refresh", "verify", "diff"):
        assert f"\n  {name} " in out


FIELDS = (
    "package",
    "version",
    "channel",
    "platform",
    "index",
    "pythons",
    "sass",
    "ptx",
    "libraries",
    "cuda",
    "glibc",
    "requires",
    "evidence",
    "source",
)


def test_every_build_of_every_package_has_the_shape_of_the_schema(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(torchpin.report.__file__).parent / "schemas" / "catalog-show.v1.json"
    schema = json.loads(path.read_text("utf-8"))
    items = schema["properties"]["builds"]["items"]
    assert set(FIELDS) <= set(items["required"])
    check = jsonschema.Draft202012Validator(items)
    catalog = load_catalog("shipped")
    for package in catalog.packages():
        rows: list[dict[str, Any]] = [row(build) for build in catalog.builds(package)]
        assert not [error.message for one in rows for error in check.iter_errors(one)][:3]
    code, out, _ = run(capsys, "show", "torch", "2.15.0", "--output-format", "json")
    assert code == 0
    jsonschema.validate(json.loads(out), schema)


def test_channel_and_platform_choose(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["show", "torch", "2.14.1", "--output-format", "json"]
    choice = ["--channel", "cu126", "--platform", "linux-x86_64"]
    _, out, _ = run(capsys, *argv, *choice)
    (build,) = json.loads(out)["builds"]
    assert (build["version"], build["index"]) == ("2.14.1+cu126", "channel")
    _, out, _ = run(capsys, *argv, "--channel", "pypi", "--platform", "linux-x86_64")
    (build,) = json.loads(out)["builds"]
    assert (build["version"], build["index"]) == ("2.14.1", "pypi")


def test_a_build_whose_libraries_have_lists_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    version = load_catalog("shipped").newest("bitsandbytes")
    code, out, _ = run(capsys, "show", "bitsandbytes", version, "--platform", "linux-x86_64")
    assert code == 0
    assert "kernels: by library" in out
    assert "libbitsandbytes_cuda" in out
    assert "CUDA: not known" in out
    assert max(map(len, out.splitlines())) <= 100
