"""However many processes read a folder, the report is the same, byte for byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchpin import parallel
from torchpin.documents.loader import load

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "files"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many projects of all kinds in one folder, with files that cannot be read among them."""
    root = tmp_path_factory.mktemp("many")
    for case in sorted(FIXTURES.iterdir())[::8]:
        shutil.copytree(case, root / case.name)
        for one in (root / case.name).rglob("torchpin.toml"):
            one.unlink()
    (root / "torchpin.toml").write_text(
        '[fleet.a]\ngpus = ["V100", "B200"]\ndriver = "580.65.06"\npython = ["3.9", "3.11"]\n'
    )
    bad = root / "bad"
    bad.mkdir()
    (bad / "requirements-binary.txt").write_bytes(b"torch==2.4.0\n\0\0")
    (bad / "requirements-latin.txt").write_bytes(b"# caf\xe9\ntorch==2.14.1\n")
    (bad / "requirements-marked.txt").write_bytes(b"# coding: latin-1 \xe9\ntorch==2.14.1\n")
    (bad / "pyproject.toml").write_text("[project\ndependencies = ['torch']\n")
    (bad / "requirements.txt").write_text("-r requirements-binary.txt\n-r nothing.txt\ntorch\n")
    (bad / "compose.yml").write_text("services: {a: {command: pip install torch, b: [}}\n")
    for number in range(40):
        (root / f"requirements-{number}.txt").write_text(f"torch==2.{number % 15}.0\n")
    return root


def checked(folder: Path, *options: str, cache: Path | None = None) -> tuple[int, bytes, bytes]:
    """Return exit code and output of a check of the folder."""
    environment = dict(os.environ)
    if cache is not None:
        environment["TORCHPIN_CACHE_DIR"] = str(cache)
        del environment["TORCHPIN_NO_CACHE"]
    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "check", ".", *options],
        cwd=folder,
        capture_output=True,
        env=environment,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout, done.stderr


def test_reports_do_not_depend_on_the_number_of_processes(folder: Path) -> None:
    for shown in ("json", "text"):
        alone = checked(folder, "--jobs", "1", "--output-format", shown)
        assert b"requirements-binary.txt" in alone[1]
        for jobs in ("2", "4"):
            assert checked(folder, "--jobs", jobs, "--output-format", shown) == alone


def test_what_children_ask_of_files_is_noted(folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(folder, mine)
    cache = tmp_path / "cache"
    first = checked(mine, "--jobs", "4", cache=cache)
    assert len(list((cache / "results").iterdir())) == 1
    assert checked(mine, "--jobs", "1", cache=cache) == first == checked(mine)
    (mine / "bad" / "nothing.txt").write_text("torch==2.4.0\n")  # was asked for, and not there
    assert checked(mine, "--jobs", "4", cache=cache) == checked(mine) != first


@pytest.mark.parametrize("fate", ["os.kill(os.getpid(), 9)", "raise KeyboardInterrupt"])
def test_children_that_end_early_change_nothing(fate: str, folder: Path) -> None:
    probe = (
        f"import os, sys; sys.path[:0] = {sys.path!r}\n"
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from torchpin import parallel\n"
        "def end_early(paths, end):\n"
        f"    {fate}\n"
        "parallel._send = end_early\n"
        "from torchpin.cli.main import guarded\n"
        "sys.exit(guarded(['check', '.', '--jobs', '3']))\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=folder, capture_output=True)
    assert (done.returncode, done.stdout) == checked(folder, "--jobs", "1")[:2]


def test_documents_are_those_of_one_process(folder: Path) -> None:
    paths = [str(one) for one in sorted(folder.rglob("*")) if one.suffix in (".txt", ".toml")]
    probe = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from torchpin import parallel\n"
        "cache = {}\n"
        f"parallel.read_ahead({paths!r}, cache, 3)\n"
        "import pickle\n"
        "pickle.dump(cache, sys.stdout.buffer)\n"
    )
    import pickle

    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True)
    received = pickle.loads(done.stdout)
    assert len(received) > 40  # the lists in the folder itself at least
    for path, document in received.items():
        assert document == load(path, {})


def test_how_many_processes_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delitem(sys.modules, "threading")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.2, 0, 0), raising=False)
    assert parallel.jobs_for(parallel.AUTO, 1000) == 4
    assert parallel.jobs_for(parallel.AUTO, 50) == 1
    assert parallel.jobs_for(7, 50) == 7
    assert parallel.jobs_for(7, 3) == 3
    assert parallel.jobs_for(1, 1000) == 1
    monkeypatch.setattr(os, "getloadavg", lambda: (14.0, 0, 0), raising=False)
    assert parallel.jobs_for(parallel.AUTO, 1000) == 1
    monkeypatch.setattr(sys, "platform", "win32")
    assert parallel.jobs_for(7, 50) == 1
