"""How each tool is asked, and how its answer is read.

Every tool runs from an environment of its own, on a machine that looks like the one of the case: a
stand-in for ``nvidia-smi`` comes first on ``PATH``. None is given a GPU, and none has to install
anything: what is compared is the channel and the version to which it leads.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.compare.scenarios import Machine

_CHANNEL = re.compile(r"download\.pytorch\.org/whl/(cu\d+|cpu)")


class Answer(NamedTuple):
    """What a tool leads to: channels in the order in which they would be tried, and a version."""

    channels: tuple[str, ...] = ()
    """``pypi`` for PyPI."""
    version: str | None = None
    """None: the newest of the first channel that has one for the Python."""
    as_text: bool = False
    """Versions are compared as text: 2.9.1 comes behind 2.15.0."""
    refused: str = ""
    """Why it gives none."""


SMI = """\
#!/bin/sh
# Stands in for nvidia-smi: {about}
case "$*" in
  *query-gpu=*)
    fields=$(printf '%s' "$*" | sed 's/.*query-gpu=\\([^ ]*\\).*/\\1/')
    case "$*" in *noheader*) ;; *) echo "$fields" ;; esac
    {rows}
    ;;
  *)
    echo "| NVIDIA-SMI {driver}    Driver Version: {driver}    CUDA Version: {cuda}     |"
    ;;
esac
"""
ROW = """\
line=''
    for field in $(printf '%s' "$fields" | tr ',' ' '); do
      case "$field" in
        index) value={index} ;;
        name) value='{name}' ;;
        uuid) value=GPU-0000000{index} ;;
        compute_cap) value={capability} ;;
        driver_version) value={driver} ;;
        memory.total) value=32768 ;;
        *) value='[N/A]' ;;
      esac
      line="$line${{line:+, }}$value"
    done
    echo "$line"
"""


def surroundings(machine: Machine, folder: Path) -> dict[str, str]:
    """Write the stand-in for ``nvidia-smi`` and return the environment of the machine."""
    rows = "    ".join(
        ROW.format(index=index, name=name, capability=capability, driver=machine.driver)
        for index, (name, capability) in enumerate(
            zip(machine.gpus, machine.capabilities, strict=True)
        )
    )
    script = folder / "nvidia-smi"
    script.write_text(
        SMI.format(about=machine.about, rows=rows, driver=machine.driver, cuda=machine.cuda)
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "UV_CUDA_DRIVER_VERSION": machine.driver,
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_HTTP_TIMEOUT": "2",
        "UV_HTTP_RETRIES": "0",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
    }


def run(
    command: list[str], env: dict[str, str], folder: Path, text: str | None = None
) -> tuple[int, str]:
    """Run a tool; return its exit code and all that it printed."""
    done = subprocess.run(
        command, env=env, cwd=folder, input=text, capture_output=True, text=True, timeout=180
    )
    return done.returncode, done.stdout + done.stderr


def parsed(text: str) -> Any:
    """Return the JSON object in an output that holds other lines as well."""
    return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]


def uv(programs: Path, machine: Machine, env: dict[str, str], folder: Path) -> Answer:
    """``uv pip compile --torch-backend=auto``: the channels that it asks, in its order."""
    program = programs / "uv" / "bin" / "uv"
    command = [str(program), "pip", "compile", "--torch-backend=auto", "-vv", "--no-cache"]
    _, text = run([*command, "--python-version", machine.python, "-"], env, folder, "torch\n")
    asked = [
        match[1]
        for line in text.splitlines()
        if "Fetching metadata for `torch`" in line
        if (match := _CHANNEL.search(line))
    ]
    return Answer(tuple(dict.fromkeys(asked)))


def light_the_torch(programs: Path, machine: Machine, env: dict[str, str], folder: Path) -> Answer:
    """The backends that ltt admits, in its own order.

    ltt makes pip sort by the backend first and then by ``version.base_version``, which is text
    (0.8.1, ``_patch.py``, ``patched_sort_key``).
    """
    program = programs / "light-the-torch" / "bin" / "python"
    code = (
        "import light_the_torch._cb as cb\n"
        "print(*sorted(cb.detect_compatible_computation_backends(), reverse=True))"
    )
    status, text = run([str(program), "-c", code], env, folder)
    if status:
        return Answer(refused=text.strip().splitlines()[-1])
    return Answer(tuple(text.split()), as_text=True)


def rigsolve(programs: Path, machine: Machine, env: dict[str, str], folder: Path) -> Answer:
    """``rigsolve solve --want torch`` for a target that is told."""
    if len(machine.gpus) > 1:
        return Answer(refused="one GPU a target")
    program = programs / "rigsolve" / "bin" / "rigsolve"
    target = (
        f"sm_{machine.capabilities[0].replace('.', '')},driver={machine.driver},"
        f"python={machine.python},linux"
    )
    status, text = run(
        [str(program), "solve", "--want", "torch", "--target", target, "--output", "json"],
        env,
        folder,
    )
    if status or not text.lstrip().startswith("{"):
        return Answer(refused=text.strip().splitlines()[0] if text.strip() else f"exit {status}")
    step = next(one for one in json.loads(text)["steps"] if one["package"] == "torch")
    channel = _CHANNEL.search(step["index_url"] or "")
    return Answer((channel[1] if channel else "pypi",), step["version"])


def env_doctor(programs: Path, machine: Machine, env: dict[str, str], folder: Path) -> Answer:
    """``env-doctor install torch``: the command that it prints."""
    program = programs / "env-doctor" / "bin" / "env-doctor"
    _, text = run([str(program), "install", "torch"], env, folder)
    version, channel = re.search(r"\btorch==([\w.]+)", text), _CHANNEL.search(text)
    if version is None:
        return Answer(refused=text.strip().splitlines()[-1] if text.strip() else "no answer")
    return Answer((channel[1] if channel else "pypi",), version[1])


def torchpin(programs: Path, machine: Machine, env: dict[str, str], folder: Path) -> Answer:
    """``torchpin resolve`` of a file that asks for torch."""
    program = programs / "torchpin" / "bin" / "torchpin"
    (folder / "requirements.txt").write_text("torch\n")
    gpus = [word for gpu in machine.gpus for word in ("--gpu", gpu)]
    _, text = run(
        [
            *(str(program), "resolve", "--isolated", "--policy", "newest"),
            *(*gpus, "--driver", machine.driver, "--python", machine.python),
            *("--output-format", "json", "requirements.txt"),
        ],
        env,
        folder,
    )
    plans = parsed(text)["plans"]
    if len(plans) != 1:
        return Answer(refused="no build serves it")
    plan = plans[0]
    version = plan["packages"]["torch"].partition("+")[0]
    return Answer(("pypi" if plan["index"] == "pypi" else plan["channel"],), version)


Ask = Callable[[Path, Machine, dict[str, str], Path], Answer]
PEERS: dict[str, tuple[str, Ask]] = {
    "torchpin": (".", torchpin),
    "uv": ("uv", uv),
    "light-the-torch": ("light-the-torch", light_the_torch),
    "rigsolve": ("rigsolve", rigsolve),
    "env-doctor": ("env-doctor", env_doctor),
}
"""Name → (what is installed, how it is asked)."""


def dockerfile_by_env_doctor(programs: Path, env: dict[str, str], folder: Path) -> str:
    """Return what env-doctor says of the Dockerfile in a folder."""
    program = programs / "env-doctor" / "bin" / "env-doctor"
    _, text = run([str(program), "dockerfile", "Dockerfile"], env, folder)
    counts = [
        _counted(int(match[2]), match[1].lower())
        for match in re.finditer(r"(Error|Warning)s:\s+(\d+)", text)
    ]
    return ", ".join(counts) or text.strip().splitlines()[-1]


def dockerfile_by_torchpin(programs: Path, env: dict[str, str], folder: Path) -> str:
    """Return what torchpin says of it."""
    program = programs / "torchpin" / "bin" / "torchpin"
    _, text = run(
        [str(program), "check", "--isolated", "--output-format", "json", "Dockerfile"], env, folder
    )
    report = parsed(text)
    summary = report["summary"]
    counts = f"{_counted(summary['errors'], 'error')}, {_counted(summary['warnings'], 'warning')}"
    codes = sorted({one["code"] for one in report["findings"] if one["severity"] != "info"})
    return f"{counts} ({', '.join(codes)})" if codes else counts


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
