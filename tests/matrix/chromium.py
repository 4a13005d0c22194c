"""A real Chromium for the tests of the page, or the reason why there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "TORCHPIN_CHROMIUM"


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser; skip the test where it, or what drives it, is missing."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright drives the browser: nox -s browser"
    )
    path = os.environ.get(VARIABLE) or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no Chromium here: install it, or name it by {VARIABLE}")
    with api.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
