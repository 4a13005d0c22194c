"""Runs the real pip and the real uv against the stub index, cut off from all configuration."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

from packaging.utils import canonicalize_name, parse_wheel_filename
from tests.clients.stub_facts import PYPI
from tests.clients.stub_server import Address

GLIBC = "2.28"
MACOS = "14.0"
PLATFORMS = ("linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
CLIENTS = ("pip", "uv")

_UV_GLIBC = (17, 28, *range(31, 41))
"""glibc minors that uv has a platform for."""
_UV_SYSTEM = {
    "windows-x86_64": "x86_64-pc-windows-msvc",
    "windows-arm64": "aarch64-pc-windows-msvc",
    "macos-arm64": "aarch64-apple-darwin",
    "macos-x86_64": "x86_64-apple-darwin",
}
_MARKERS = {
    "linux": {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux"},
    "windows": {"os_name": "nt", "sys_platform": "win32", "platform_system": "Windows"},
    "macos": {"os_name": "posix", "sys_platform": "darwin", "platform_system": "Darwin"},
}


class Where(NamedTuple):
    """What a client installs on."""

    python: str
    """``3.11``"""
    platform: str
    """``linux-x86_64`` …"""
    glibc: str = GLIBC
    macos: str = MACOS

    def uv_platform(self) -> str:
        """Return the target as ``uv --python-platform`` names it."""
        if not self.platform.startswith("linux"):
            return _UV_SYSTEM[self.platform]
        wanted = int(self.glibc.split(".")[1])
        minor = max(known for known in _UV_GLIBC if known <= max(wanted, _UV_GLIBC[0]))
        return f"{self.platform.split('-')[1]}-manylinux_2_{minor}"


class Picked(NamedTuple):
    """One package of a resolution."""

    version: str
    """With its local label: ``2.14.1+cu126``."""
    home: str
    """``pypi`` or the channel that the file lies on."""


class Result(NamedTuple):
    """What a client said."""

    ok: bool
    packages: dict[str, Picked]
    log: str
    command: tuple[str, ...]


def platform_tags(where: Where) -> list[str]:
    """Return the platform tags that pip accepts on a target, best first."""
    system, machine = where.platform.split("-")
    if system == "windows":
        return ["win_amd64" if machine == "x86_64" else "win_arm64"]
    if system == "macos":
        return [f"macosx_{where.macos.replace('.', '_')}_{machine}"]
    lowest = 5 if machine == "x86_64" else 17
    highest = int(where.glibc.split(".")[1])
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(highest, lowest - 1, -1)]
    names = [("2014", 17), ("2010", 12), ("1", 5)] if machine == "x86_64" else [("2014", 17)]
    tags += [f"manylinux{name}_{machine}" for name, floor in names if floor <= highest]
    return [*tags, f"linux_{machine}"]


def marker_values(where: Where) -> dict[str, str]:
    """Return what environment markers see on a target (CPython)."""
    system, machine = where.platform.split("-")
    if system == "windows":
        machine = {"x86_64": "AMD64", "arm64": "ARM64"}[machine]
    return {
        **_MARKERS[system],
        "platform_machine": machine,
        "python_version": where.python,
        "python_full_version": f"{where.python}.0",
        "implementation_version": f"{where.python}.0",
    }


def clean_environment() -> dict[str, str]:
    """Return the environment without any setting of pip or uv, and with a closed door for both."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_")) and not name.lower().endswith("_proxy")
    }
    return {
        **kept,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_INPUT": "1",
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "NO_COLOR": "1",
    }


@lru_cache
def uv_binary() -> str | None:
    """Return the uv beside this Python, or of the ``uv`` package, or on PATH."""
    beside = Path(sys.executable).parent / ("uv.exe" if os.name == "nt" else "uv")
    if beside.exists():
        return str(beside)
    try:
        from uv import find_uv_bin
    except ImportError:
        return shutil.which("uv")
    return str(find_uv_bin())


def home_of(url: str) -> str:
    """Return ``pypi`` or the channel of a URL of the stub (file, page or index)."""
    found = re.search(r"/whl/([^/#?]+)", url)
    return found[1] if found else PYPI


class Pip:
    """pip in a worker process that lives as long as this object."""

    def __init__(self, folder: str | None = None) -> None:
        self._temp = tempfile.TemporaryDirectory(prefix="pip-runner-")
        worker = Path(__file__).with_name("pip_worker.py")
        self._process = subprocess.Popen(
            [sys.executable, str(worker), *([folder] if folder else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=clean_environment(),
        )
        self.version: str = self._answer()["pip"]

    def __enter__(self) -> Pip:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait(20)
        _pipe(self._process.stdout).close()
        self._temp.cleanup()

    def _answer(self) -> dict[str, Any]:
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError("the pip worker ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(
        self, root: Path, where: Where, stub: Address, arguments: tuple[str, ...] = ()
    ) -> Result:
        """Resolve a requirements file as ``pip install -r`` does on ``where``."""
        report = Path(self._temp.name) / "report.json"
        report.unlink(missing_ok=True)
        args = ["--dry-run", "--ignore-installed", "--quiet", "--report", str(report)]
        args += ["--target", str(Path(self._temp.name) / "target"), "--only-binary", ":all:"]
        args += ["--implementation", "cp", "--python-version", where.python]
        for tag in platform_tags(where):
            args += ["--platform", tag]
        args += [*arguments, "-r", root.name]
        job = {
            "args": args,
            "environment": marker_values(where),
            "default": stub.pypi,
            "cwd": str(root.parent),
        }
        _pipe(self._process.stdin).write(json.dumps(job) + "\n")
        _pipe(self._process.stdin).flush()
        answer = self._answer()
        command = ("pip", "install", *args)
        if answer["code"] != 0:
            return Result(False, {}, answer["log"], command)
        packages: dict[str, Picked] = {}
        for item in json.loads(report.read_text("utf-8"))["install"]:
            name = canonicalize_name(item["metadata"]["name"])
            url = item["download_info"]["url"]
            packages[name] = Picked(item["metadata"]["version"], home_of(url))
        return Result(True, packages, answer["log"], command)


class Uv:
    """The uv binary with a cache of its own, shared by the runs of this object."""

    def __init__(self, binary: str | None = None) -> None:
        found = binary or uv_binary()
        if found is None:
            raise RuntimeError("there is no uv in the test environment")
        self.binary = found
        self._temp = tempfile.TemporaryDirectory(prefix="uv-runner-")
        self.version = subprocess.run(
            [found, "--version"], capture_output=True, text=True, check=True
        ).stdout.split()[1]

    def __enter__(self) -> Uv:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._temp.cleanup()

    def run(
        self, root: Path, where: Where, stub: Address, arguments: tuple[str, ...] = ()
    ) -> Result:
        """Resolve a requirements file as ``uv pip install -r`` does on ``where``."""
        command = [self.binary, "pip", "compile", root.name, "--python", sys.executable]
        command += ["--python-version", where.python]
        command += ["--python-platform", where.uv_platform(), "--only-binary", ":all:"]
        command += ["--no-header", "--no-annotate", "--emit-index-annotation", "--no-strip-extras"]
        command += ["--cache-dir", self._temp.name, "--no-progress", *arguments]
        environment = clean_environment()
        environment["MACOSX_DEPLOYMENT_TARGET"] = where.macos
        if not names_default_index(root):
            environment["UV_DEFAULT_INDEX"] = stub.pypi
        done = subprocess.run(
            command,
            cwd=root.parent,
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        if done.returncode != 0:
            return Result(False, {}, done.stderr, tuple(command))
        return Result(True, parse_compiled(done.stdout), done.stderr, tuple(command))


def names_default_index(root: Path, seen: frozenset[Path] = frozenset()) -> bool:
    """Return whether a file, or one that it includes by ``-r``, replaces the default index.

    The stub stands for PyPI as uv's default index. Given to uv from outside it would win over an
    ``--index-url`` of the file, as PyPI, built into uv, does not; so then it is not given.
    """
    root = root.resolve()
    if root in seen or not root.is_file():
        return False
    text = root.read_text("utf-8", errors="replace")
    if re.search(r"^\s*(-i|--index-url|--pypi-url)\b", text, re.MULTILINE):
        return True
    included = re.findall(r"^\s*(?:-r|--requirement)[ =]?\s*(\S+)", text, re.MULTILINE)
    return any(names_default_index(root.parent / name, seen | {root}) for name in included)


def parse_compiled(text: str) -> dict[str, Picked]:
    """Read the output of ``uv pip compile --emit-index-annotation``."""
    packages: dict[str, Picked] = {}
    name = ""
    for line in text.splitlines():
        if found := re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", line):
            name = canonicalize_name(found[1])
            packages[name] = Picked(found[2], PYPI)
        elif found := re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])? @ (\S+)", line):
            name = canonicalize_name(found[1])
            filename = re.split(r"[#?]", found[2])[0].rsplit("/", 1)[1].replace("%2B", "+")
            packages[name] = Picked(str(parse_wheel_filename(filename)[1]), home_of(found[2]))
        elif found := re.match(r"\s+# from (\S+)", line):
            packages[name] = packages[name]._replace(home=home_of(found[1]))
    return packages


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
