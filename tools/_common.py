"""What the data scripts share: places, digests, PEP 691 and range requests."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src" / "torchpin" / "catalog" / "data"
MEASURED = ROOT / "tools" / "measured.json"


class FloorError(SystemExit):
    """A sanity floor does not hold: nothing is written."""

    def __init__(self, message: str) -> None:
        super().__init__(f"refused: {message}")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def replace_all(files: Mapping[Path, str]) -> None:
    """Write all files, each by rename."""
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(path)


def index_url() -> str:
    """Return the simple index that pip uses here: environment, configuration, pip's own default."""
    if url := os.environ.get("PIP_INDEX_URL"):
        return url.rstrip("/")
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode == 0 and asked.stdout.strip():
        return asked.stdout.strip().rstrip("/")
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url).rstrip("/")


def project_files(name: str) -> dict[str, Any]:
    """Return the PEP 691 page of a project."""
    request = urllib.request.Request(
        f"{index_url()}/{name}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        page: dict[str, Any] = json.load(answer)
    return page


def read_range(url: str, start: int, end: int) -> bytes:
    """Return the bytes ``[start, end)`` of a file.

    Raises:
        OSError: the host does not answer range requests.
    """
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-{end - 1}"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        if answer.status != 206:
            raise OSError(f"no range answer: HTTP {answer.status}")
        data: bytes = answer.read()
    return data


def size_of(url: str) -> int:
    """Return the size of a remote file in bytes."""
    request = urllib.request.Request(url, headers={"Range": "bytes=0-0"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return int(answer.headers["Content-Range"].rpartition("/")[2])


def unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
