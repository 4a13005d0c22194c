"""Where PyPI is: torchpin has no registry's address of its own, it asks what installs packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile

from torchpin.errors import UsageError
from torchpin.patterns import regex

VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
_CONSTANT = regex(r"PackageIndex\(\s*[\"'](https?://[^\"']+)[\"']")
_MODELS = "pip/_internal/models/index.py"
_HELP = regex(r"https?://[^\s>\]]+/simple/?")


def pypi_index() -> str:
    """Return the simple index that pip or uv would use: it may hold credentials.

    In this order: ``PIP_INDEX_URL``, ``UV_DEFAULT_INDEX``, ``UV_INDEX_URL``; pip's configuration;
    the address that pip, the pip that ships with Python, or uv has built in.

    Raises:
        UsageError: none of them is here.
    """
    found = _environment() or _configured() or _built_in() or _bundled() or _uv()
    if not found:
        raise UsageError(
            "neither pip nor uv says where the package index is",
            hint="name it: --index https://HOST/simple",
        )
    return found.rstrip("/")


def _environment() -> str:
    for name in VARIABLES:
        text = os.environ.get(name, "").strip()
        if text:
            return text.partition("=")[2] if re.match(r"[\w-]+=https?:", text) else text
    return ""


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _configured() -> str:
    from importlib.util import find_spec

    command = [sys.executable, "-m", "pip"]
    if find_spec("pip") is None:
        other = shutil.which("pip3") or shutil.which("pip")
        if other is None:
            return ""
        command = [other]
    return _output([*command, "config", "get", "global.index-url"]).strip()


def _built_in() -> str:
    from importlib.util import find_spec

    spec = find_spec("pip")
    if spec is None or not spec.submodule_search_locations:
        return ""
    path = os.path.join(os.path.dirname(spec.submodule_search_locations[0]), _MODELS)
    try:
        with open(path, encoding="utf-8") as file:
            return _simple(file.read())
    except (OSError, ValueError):
        return ""


def _bundled() -> str:
    """Return the address in the wheel of pip that ensurepip keeps."""
    from importlib.util import find_spec

    spec = find_spec("ensurepip")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in folders:
        bundle = os.path.join(folder, "_bundled")
        for name in sorted(os.listdir(bundle)) if os.path.isdir(bundle) else ():
            if name.startswith("pip-") and name.endswith(".whl"):
                with zipfile.ZipFile(os.path.join(bundle, name)) as wheel:
                    return _simple(wheel.read(_MODELS).decode("utf-8"))
    return ""


def _uv() -> str:
    command = shutil.which("uv")
    found = _HELP.search(_output([command, "help", "pip", "install"])) if command else None
    return found[0] if found else ""


def _simple(source: str) -> str:
    """Return the simple index of the first index that pip's source names."""
    match = _CONSTANT.search(source)
    return f"{match[1].rstrip('/')}/simple" if match else ""
