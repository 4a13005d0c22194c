"""A torchpin process, and the real clients against the stub, for the tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from packaging.utils import canonicalize_name
from tests.clients.installs import shared
from tests.clients.runners import clean_environment, uv_binary

V100 = ("--isolated", "--gpu", "V100", "--driver", "550.54.15", "--python", "3.11")
H100 = ("--isolated", "--gpu", "H100", "--driver", "580.65.06", "--python", "3.11")


def mirror() -> str:
    """Return where the stub has the channels."""
    return f"{shared().stub.base}/whl"


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which pip and uv know the stub as PyPI and nothing else."""
    stub = shared().stub
    return {
        **clean_environment(),
        "PIP_INDEX_URL": stub.pypi,
        "UV_DEFAULT_INDEX": stub.pypi,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        **(extra or {}),
    }


def torchpin(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run torchpin as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "torchpin", *args],
        cwd=cwd,
        env=environment(env),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def pip_plan(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, python: str = "3.11"
) -> dict[str, str]:
    """Return what the real pip would install on Linux: package → version."""
    command = [sys.executable, "-m", "pip", "install", *pip_dry(cwd, python), *args]
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return pip_report(cwd)


def pip_dry(cwd: Path, python: str = "3.11") -> list[str]:
    """Return options with which pip resolves for Linux, reports, and installs nothing."""
    options = ["--dry-run", "--ignore-installed", "--quiet", "--report", str(cwd / "report.json")]
    options += ["--target", str(cwd / "target"), "--only-binary", ":all:"]
    options += ["--python-version", python, "--implementation", "cp"]
    for place in ("manylinux_2_28_x86_64", "manylinux2014_x86_64", "linux_x86_64"):
        options += ["--platform", place]
    return options


def pip_report(cwd: Path) -> dict[str, str]:
    """Return what pip reported: package → version."""
    report = json.loads((cwd / "report.json").read_text("utf-8"))
    return {
        canonicalize_name(one["metadata"]["name"]): one["metadata"]["version"]
        for one in report["install"]
    }


def run_uv(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the real uv with a cache of its own."""
    binary = uv_binary()
    assert binary is not None
    return subprocess.run(
        [binary, *args, "--cache-dir", str(cwd / "uv-cache"), "--no-progress"],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def uv_plan(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, asks: str = "torch\ntorchvision\n"
) -> dict[str, str]:
    """Return what the real ``uv pip`` would install on Linux: package → version."""
    (cwd / "asks.in").write_text(asks)
    done = run_uv(
        *("pip", "compile", "asks.in", "--python-version", "3.11", "--no-header"),
        *("--python-platform", "x86_64-manylinux_2_28", "--no-annotate", *args),
        cwd=cwd,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    pinned = (line.split(" ;")[0].split("==") for line in done.stdout.splitlines() if "==" in line)
    return {one[0]: one[1] for one in pinned}


def family(found: Mapping[str, str]) -> dict[str, str]:
    """Return torch and torchvision of what would be installed."""
    return {name: found[name] for name in ("torch", "torchvision")}
