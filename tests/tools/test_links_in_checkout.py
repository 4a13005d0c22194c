"""Whoever reads the documents in a checkout finds every file that they link to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
)


def links(page: Path) -> list[str]:
    text = re.sub(r"<!--.*?-->|```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda one: str(one.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    for link in links(page):
        path = link.partition("#")[0]
        if path and "://" not in link and not link.startswith("mailto:"):
            assert (page.parent / path).exists(), link


def test_links_are_found() -> None:
    assert "docs/how-to/matrix.md" in links(ROOT / "README.md")
    assert any(link.startswith("how-to/matrix.md") for link in links(ROOT / "docs" / "index.md"))
