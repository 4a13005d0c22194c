"""Real Poetry and PDM: where they are, and processes that run them many times."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from tests.clients.runners import clean_environment
from tests.clients.stub_facts import FAMILY

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def program(tool: str) -> str | None:
    """Return the program of a tool: ``TORCHPIN_POETRY``, ``TORCHPIN_PDM``, else that on PATH."""
    return os.environ.get(f"TORCHPIN_{tool.upper()}") or shutil.which(tool)


def python_of(tool: str) -> str | None:
    """Return the Python that a tool is installed in; None where it is not at hand."""
    path = program(tool)
    if path is None or not Path(path).exists():
        return None
    folder = Path(os.path.realpath(path)).parent
    for name in ("python", "python3", "python.exe"):
        if (folder / name).exists():
            command = [str(folder / name), "-c", f"import {tool}"]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return command[0]
    return None


def why_not(tool: str) -> str:
    """Return why real runs of a tool are left out; ``""`` where they are not."""
    if python_of(tool) is not None:
        return ""
    path = program(tool)
    if path is None:
        return f"{tool} is not at hand: set TORCHPIN_{tool.upper()} to its program"
    return f"{path} is no {tool} with its Python beside it"


def tool_environment(folder: Path) -> dict[str, str]:
    """Return an environment with settings and caches of both tools in ``folder`` alone."""
    kept = {
        name: value
        for name, value in clean_environment().items()
        if not name.startswith(("POETRY_", "PDM_")) and name != "VIRTUAL_ENV"
    }
    return {
        **kept,
        "POETRY_CACHE_DIR": str(folder / "poetry-cache"),
        "POETRY_CONFIG_DIR": str(folder / "poetry-config"),
        "POETRY_VIRTUALENVS_CREATE": "false",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "PDM_CACHE_DIR": str(folder / "pdm-cache"),
        "PDM_CONFIG_FILE": str(folder / "pdm-config.toml"),
        "PDM_LOG_DIR": str(folder / "pdm-log"),
        "PDM_CHECK_UPDATE": "0",
        "PDM_USE_VENV": "0",
        "PDM_IGNORE_SAVED_PYTHON": "1",
        "PDM_NO_SELF": "1",
        "XDG_CONFIG_HOME": str(folder / "xdg-config"),
        "XDG_STATE_HOME": str(folder / "xdg-state"),
        "PYTHONWARNINGS": "ignore",
    }


class Worker:
    """One process of a tool."""

    def __init__(self, tool: str, folder: Path) -> None:
        python = python_of(tool)
        assert python is not None, why_not(tool)
        folder.mkdir(parents=True, exist_ok=True)
        self._errors = (folder / "stderr").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [python, str(HERE / f"{tool}_worker.py"), ",".join(FAMILY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            cwd=folder,
            env=tool_environment(folder),
        )
        self.version = str(self._answer()["version"])

    def ask(self, **job: Any) -> dict[str, Any]:
        """Return the answer to a job.

        Raises:
            RuntimeError: the process has ended.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise RuntimeError(f"the worker has ended: {self._errors.read()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()
        self._errors.close()


class Workers:
    """Some processes of a tool that share the work; use it as a context manager."""

    def __init__(self, tool: str, folder: Path, count: int = 2) -> None:
        self._all = [Worker(tool, folder / f"{tool}-{n}") for n in range(count)]
        self.version = self._all[0].version

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._all:
            worker.close()

    def map(self, jobs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the answers to jobs, in their order."""
        free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._all:
            free.put(worker)

        def ask(job: dict[str, Any]) -> dict[str, Any]:
            worker = free.get()
            try:
                return worker.ask(**job)
            finally:
                free.put(worker)

        with ThreadPoolExecutor(len(self._all)) as pool:
            yield from pool.map(ask, jobs)
