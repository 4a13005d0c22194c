"""A Poetry source that nothing names after a fix goes, if its layout allows it."""

from __future__ import annotations

import pytest

from torchpin.rewrite.poetry_edit import drop_idle
from torchpin.rewrite.toml_edit import ShapeError, TomlText

OLD = '[[tool.poetry.source]]\nname = "old"\nurl = "https://a.example"\npriority = "explicit"\n'
NEW = OLD.replace("old", "new").replace("a.example", "b.example")
DEPENDENCIES = '[tool.poetry.dependencies]\ntorch = { version = "2", source = "new" }\n'


def dropped(text: str, newline: str = "\n") -> str:
    toml = TomlText(text.replace("\n", newline), newline)
    drop_idle(toml, frozenset(("old",)))
    return toml.text.replace(newline, "\n")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{OLD}\n{NEW}\n{DEPENDENCIES}", f"{NEW}\n{DEPENDENCIES}"),
        (f"{NEW}\n{OLD}\n{DEPENDENCIES}", f"{NEW}\n{DEPENDENCIES}"),
        (f"{DEPENDENCIES}\n{NEW}\n{OLD}", f"{DEPENDENCIES}\n{NEW}"),
        (f"{DEPENDENCIES}\n{OLD}", DEPENDENCIES),
        (f"{OLD}# of others\n{DEPENDENCIES}", f"# of others\n{DEPENDENCIES}"),
    ],
)
def test_it_goes_with_its_blank_line(before: str, after: str, newline: str) -> None:
    assert dropped(before, newline) == after


@pytest.mark.parametrize(
    "text",
    [
        f"{OLD.replace('explicit', 'supplemental')}\n{DEPENDENCIES}",
        f"{OLD.replace('url', '# why' + chr(10) + 'url')}\n{DEPENDENCIES}",
        '[tool.poetry]\nsource = [{ name = "old", url = "u", priority = "explicit" }]\n',
    ],
)
def test_others_and_what_holds_comments_stay(text: str) -> None:
    assert dropped(text) == text


def test_a_table_that_is_not_there_is_refused() -> None:
    toml = TomlText(OLD, "\n")
    with pytest.raises(ShapeError):
        toml.remove_table(("tool", "poetry", "source"), 1)
