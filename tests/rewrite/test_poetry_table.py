"""A sub-table of Poetry becomes two entries where macOS takes another build."""

from __future__ import annotations

import pytest

from torchpin.documents.pyproject import read_pyproject
from torchpin.rewrite.poetry_edit import set_source
from torchpin.rewrite.toml_edit import ShapeError, TomlText

LINUX = "sys_platform == 'linux'"
HEAD = '[tool.poetry.dependencies]\npython = "^3.11"\n\n'
TABLE = '[tool.poetry.dependencies.torch]\nversion = "^2.11"\nextras = ["opt"]\n\n'
TAIL = '# tests\n[tool.poetry.group.dev.dependencies]\npytest = "*"\n'


def split(text: str, newline: str = "\n") -> str:
    toml = TomlText(text, newline)
    set_source(toml, read_pyproject("pyproject.toml", text.encode()), "torch", "cu126", LINUX)
    return toml.text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_table_becomes_two_entries(newline: str) -> None:
    text = (HEAD + TABLE + TAIL).replace("\n", newline)
    entry = 'version = "^2.11", extras = ["opt"]'
    expected = HEAD[:-1] + (
        f'torch = [\n    {{ {entry}, source = "cu126", markers = "{LINUX}" }},\n'
        f"    {{ {entry}, markers = \"sys_platform != 'linux'\" }},\n]\n\n"
    )
    assert split(text, newline) == (expected + TAIL).replace("\n", newline)


@pytest.mark.parametrize(
    "table",
    [
        TABLE.replace('"^2.11"', '"^2.11"  # why'),
        TABLE.replace("extras", "# why\nextras"),
        TABLE.replace('["opt"]', '[\n    "opt",\n]'),
        TABLE.replace("extras", "markers = 'x'\nextras"),
    ],
)
def test_what_would_be_lost_is_not_touched(table: str) -> None:
    with pytest.raises(ShapeError):
        split(HEAD + table + TAIL)


@pytest.mark.parametrize("keys", ['version = "^2.11", ', ""])
def test_an_entry_with_a_source_is_split_too(keys: str) -> None:
    text = HEAD + f'torch = {{ {keys}source = "pytorch-cu128" }}\n'
    rest = f"{{ {keys}markers = \"sys_platform != 'linux'\" }}"
    assert split(text) == HEAD + (
        f'torch = [\n    {{ {keys}source = "cu126", markers = "{LINUX}" }},\n    {rest},\n]\n'
    )
