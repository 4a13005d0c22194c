"""mkdocs hooks: the page of ``torchpin matrix --html``, and each rule in the navigation.

A link to what is on the site alone would be dead in a checkout: it stands in a comment,
``<!-- on the site: … -->``, which the site shows as text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpin import __version__
from torchpin.catalog.store import shipped_catalog
from torchpin.matrix.pack import page
from torchpin.matrix.page_data import page_data

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

_made: list[str] = []
_RULES = "reference/rules"
_SITE = re.compile(r"^<!-- on the site: (?P<text>.+) -->$", re.M)
_FAMILY = re.compile(
    r"^## TP\d: (?P<family>.+)|^\| \[TP\d+\]\((?P<page>TP\d+)\.md\) \| (?P<name>\S+)", re.M
)


def on_config(config: MkDocsConfig, **_: Any) -> MkDocsConfig:
    """Put the pages of the rules below their index, by family."""
    index = f"{_RULES}/index.md"
    families: list[dict[str, list[dict[str, str]]]] = []
    for match in _FAMILY.finditer(Path(config.docs_dir, index).read_text("utf-8")):
        if match["family"]:
            families.append({match["family"]: []})
        else:
            code = match["page"]
            page_of = {f"{code} {match['name']}": f"{_RULES}/{code}.md"}
            next(iter(families[-1].values())).append(page_of)
    for part in config.nav or ():
        for pages in part.values():
            for entry in pages if isinstance(pages, list) else ():
                for title, target in entry.items():
                    if target == index:
                        entry[title] = [index, *families]
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show what is said on the site alone."""
    return _SITE.sub(lambda match: f"\n{match['text']}\n", markdown)


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add ``matrix.html``; under ``mkdocs serve`` it is made once."""
    from mkdocs.structure.files import File

    if not _made:
        _made.append(page(page_data(shipped_catalog(), None, version=__version__)))
    files.append(File.generated(config, "matrix.html", content=_made[0]))
    return files
