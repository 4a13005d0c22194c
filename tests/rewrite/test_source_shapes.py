"""Sources in all the shapes of TOML: split, routed, repeated; nothing else moves."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.record_golden import findings, torchpin  # noqa: E402

from torchpin.documents.toml_view import read_toml  # noqa: E402
from torchpin.rewrite.toml_edit import ShapeError, TomlText  # noqa: E402

V100 = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\npython = "3.11"\n'
B200 = '[fleet.new]\ngpus = ["B200"]\ndriver = "580.82.07"\npython = "3.11"\n'
HEAD = '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.11"\n'
CHANNELS = "https://download.pytorch.org/whl"
LINUX = "sys_platform == 'linux'"


def fixed(tmp_path: Path, text: str, fleet: str = V100) -> tuple[str, list[dict[str, Any]]]:
    """Return the text after ``fix --unsafe-fixes`` and the errors and warnings that are left."""
    (tmp_path / "torchpin.toml").write_text(fleet, "utf-8")
    path = tmp_path / "pyproject.toml"
    path.write_bytes(text.encode())
    done = torchpin("fix", "--unsafe-fixes", str(tmp_path))
    assert done.returncode in (0, 1), done.stderr
    left = [one for one in findings(tmp_path, []) if one["severity"] in ("error", "warning")]
    return path.read_bytes().decode(), left


def kept(before: str, after: str) -> bool:
    """True if all lines of one text stand in the other, in order."""
    lines = iter(after.splitlines())
    return all(line in lines for line in before.splitlines())


def uv_of(text: str) -> Any:
    return read_toml(text.encode()).data["tool"]["uv"]


INDEXES = "".join(
    f'\n[[tool.uv.index]]\nname = "{name}"\nurl = "{CHANNELS}/{name}"\nexplicit = true\n'
    for name in ("cpu", "cu130")
)
SPLIT = (
    HEAD + 'dependencies = []\n[project.optional-dependencies]\ncpu = ["torch==2.14.1"]\n'
    'cu130 = ["torch==2.14.1"]\n[tool.uv]\npackage = false\n'
    'conflicts = [[{ extra = "cpu" }, { extra = "cu130" }]]\n'
)
SCOPED = {
    "inline": '[tool.uv.sources]\ntorch = [{ index = "cpu", extra = "cpu" }, '
    '{ index = "cu130", extra = "cu130" }]\n',
    "array of tables": '[[tool.uv.sources.torch]] # cpu\nindex = "cpu"\nextra = "cpu"\n\n'
    '[[tool.uv.sources.torch]]\nextra = "cu130"\nindex = "cu130"\n',
}


@pytest.mark.parametrize("shape", sorted(SCOPED))
def test_one_more_extra_beside_scoped_sources(tmp_path: Path, shape: str) -> None:
    text = SPLIT + SCOPED[shape] + INDEXES
    after, left = fixed(tmp_path, text, V100 + B200)
    assert left == [], left
    sources = uv_of(after)["sources"]["torch"]
    assert [one["extra"] for one in sources] == ["cpu", "cu130", "cu126"]
    assert len(uv_of(after)["conflicts"][0]) == 3
    if shape == "array of tables":
        changed = ("conflicts", "torch =")
        assert kept("\n".join(x for x in text.split("\n") if not x.startswith(changed)), after)
        assert after.count("[[tool.uv.sources.torch]]") == 3


ROUTED = {
    "inline": 'torch = { index = "own" }\n',
    "dotted": 'torch.index = "own"\n',
    "quoted": "\"torch\" . 'index' = 'own'\n",
    "table": '[tool.uv.sources.torch]\nindex = "own"\n',
}


@pytest.mark.parametrize("shape", sorted(ROUTED))
def test_a_source_of_any_shape_is_pointed_elsewhere(tmp_path: Path, shape: str) -> None:
    """The index of the source is no channel: another one is added, and the source points to it."""
    head = "" if shape == "table" else "[tool.uv.sources]\n"
    url = (
        '\n[[tool.uv.index]]\nname = "own"\nurl = "https://pypi.example/simple"\nexplicit = true\n'
    )
    text = HEAD + 'dependencies = ["torch>=2.11"]\n' + head + ROUTED[shape] + url
    after, left = fixed(tmp_path, text)
    assert left == [], left
    source = uv_of(after)["sources"]["torch"]
    assert source == {"index": "pytorch-cu126", "marker": LINUX}
    assert kept(url, after)
    if shape != "inline":
        assert after.count("sources") == text.count("sources")


@pytest.mark.parametrize(
    "source",
    [
        'torch.index = "pytorch-cu126"\ntorch.marker = "sys_platform == \'linux\'"\n',
        "torch = [ # gpu\n"
        '    { index = "pytorch-cu126", marker = "sys_platform == \'linux\'" },\n]\n',
    ],
)
def test_a_source_of_any_shape_is_repeated_for_the_family(tmp_path: Path, source: str) -> None:
    text = (
        HEAD
        + 'dependencies = ["torch>=2.11", "torchvision"]\n[tool.uv.sources]\n'
        + source
        + INDEXES.replace("cu130", "cu126").replace('"cu126"', '"pytorch-cu126"')
    )
    after, left = fixed(tmp_path, text)
    assert left == [], left
    assert kept(text, after)
    vision = uv_of(after)["sources"]["torchvision"]
    assert (vision[0] if isinstance(vision, list) else vision) == {
        "index": "pytorch-cu126",
        "marker": LINUX,
    }


LINES = {
    "comma": "sources = {\n    a = { index = 'x' }, # why\n}\n",
    "no comma": "sources = {\n    a = { index = 'x' } # why\n}\n",
    "comments": "sources = {\n    # first\n    a = { index = 'x' },\n    # last\n}\n",
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("shape", sorted(LINES))
def test_an_entry_in_an_inline_table_over_lines(shape: str, newline: str) -> None:
    text = f"[tool.uv]\n{LINES[shape]}".replace("\n", newline)
    toml = TomlText(text, newline)
    toml.set_key(("tool", "uv", "sources"), "b", '{ index = "y" }')
    assert uv_of(toml.text)["sources"] == {"a": {"index": "x"}, "b": {"index": "y"}}
    assert f'{newline}    b = {{ index = "y" }}' in toml.text
    assert toml.text.count("#") == text.count("#")
    if newline == "\r\n":
        assert "\n" not in toml.text.replace("\r\n", "")


def test_an_inline_table_that_begins_beside_its_brace_is_left_alone() -> None:
    toml = TomlText("[tool.uv]\nsources = { a = { index = 'x' },\n}\n", "\n")
    with pytest.raises(ShapeError):
        toml.set_key(("tool", "uv", "sources"), "b", '{ index = "y" }')
