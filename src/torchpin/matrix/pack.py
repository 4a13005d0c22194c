"""Pack the page: one HTML file that holds its style, script and data and asks nothing of a host.

The sources lie in ``page/``: plain CSS and small ES modules, which are joined in the order of
``MODULES``. A Content-Security-Policy allows exactly this style and this script, by their digests.
"""

from __future__ import annotations

import base64
import os
import re
from typing import Any

from torchpin.patterns import regex

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
MODULES = (
    "data.js",
    "verdict.js",
    "choose.js",
    "commands.js",
    "state.js",
    "dom.js",
    "combobox.js",
    "grid.js",
    "panels.js",
    "main.js",
)
"""Each uses only what stands before it."""
_IMPORT = regex(r"^import \{[^}]*\} from \"\./[a-z]+\.js\";\n", re.MULTILINE)
_EXPORT = regex(r"^export (?=(?:async )?(?:function|const) )", re.MULTILINE)
_MARK = regex(r"@(CSP|STYLE|SCRIPT|DATA)@")


def source(name: str) -> str:
    """Return a source file of the page."""
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def script() -> str:
    """Return all modules as one."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source(name))).strip() for name in MODULES)


def embedded(data: Any) -> str:
    """Return JSON that can stand in a ``script`` element: it cannot end it, nor begin a comment."""
    import json

    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace").decode()


def policy(style: str, code: str) -> str:
    """Return the Content-Security-Policy: this style and this script, and no request at all."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(code)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    import hashlib

    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page(data: Any) -> str:
    """Return the page for the data of ``page_data``."""
    style, code = f"\n{source('style.css')}", f"\n{script()}\n"
    parts = {
        "CSP": policy(style, code),
        "STYLE": style,
        "SCRIPT": code,
        "DATA": embedded(data),
    }
    return _MARK.sub(lambda match: parts[match[1]], source("page.html"))
