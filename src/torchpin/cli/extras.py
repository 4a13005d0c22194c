"""How to install an extra of torchpin beside what is installed: from where torchpin itself came."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def install_line(extra: str) -> str:
    """Return the pip command that adds an extra to this installation."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution("torchpin").read_text("direct_url.json")
    except PackageNotFoundError:  # the sources alone are on the path
        text = None
    return install_from(extra, json.loads(text) if text else {})


def install_from(extra: str, origin: Mapping[str, Any]) -> str:
    """Return the command for a distribution that came from ``origin``.

    Args:
        extra: name of the extra.
        origin: ``direct_url.json`` as PEP 610 defines it; empty: it came from an index.
    """
    url = str(origin.get("url", ""))
    if not url:
        return f"pip install {shlex.quote(f'torchpin[{extra}]')}"
    if "dir_info" in origin and url.startswith("file://"):
        from urllib.parse import urlsplit
        from urllib.request import url2pathname

        place = url2pathname(urlsplit(url).path)
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"pip install {editable}{shlex.quote(f'{place}[{extra}]')}"
    if "vcs_info" in origin:
        info = origin["vcs_info"]
        url = f"{info['vcs']}+{url}@{info['commit_id']}"
    return f"pip install {shlex.quote(f'torchpin[{extra}] @ {url}')}"
