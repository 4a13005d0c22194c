"""mkdocs hook: put the page of ``torchpin matrix --html`` on the site, made when the site is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchpin import __version__
from torchpin.catalog.store import shipped_catalog
from torchpin.matrix.pack import page
from torchpin.matrix.page_data import page_data

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

_made: list[str] = []


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add ``matrix.html``; under ``mkdocs serve`` it is made once."""
    from mkdocs.structure.files import File

    if not _made:
        _made.append(page(page_data(shipped_catalog(), None, version=__version__)))
    files.append(File.generated(config, "matrix.html", content=_made[0]))
    return files
