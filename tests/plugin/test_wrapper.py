from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.plugin.steered import (
    environment,
    family,
    mirror,
    pip_dry,
    pip_report,
    run_uv,
    torchpin,
)

from torchpin.plugin.command import read_call

OLD = {"torch": "2.14.1+cu126", "torchvision": "0.29.1+cu126"}
PROFILE = '[fleet.old]\ngpus = ["Tesla V100"]\ndriver = "550.54.15"\npython = "3.11"\n'
TWO = PROFILE + '\n[fleet.new]\ngpus = ["H100"]\ndriver = "580.65.06"\npython = "3.11"\n'
FAKE = f"""\
#!{sys.executable}
import json, os, sys, time
from pathlib import Path
words = sys.argv[1:]
if "list" in words:
    print(os.environ.get("FAKE_LIST", "[]"))
    raise SystemExit
own = words[: words.index("python")] if "python" in words else words
places = [Path(own[at + 1]) for at, word in enumerate(own) if word == "-c"]
for at, word in enumerate(own):
    if word == "--with-requirements":
        (line,) = Path(own[at + 1]).read_text().splitlines()
        places.append(Path(line.removeprefix("-c ")))
held = [place.read_text() for place in places]
if "--wait" in words:
    print("ready", flush=True)
    time.sleep(60)
stdin = sys.stdin.read() if "--stdin" in words else ""
print(json.dumps({{"words": words, "held": held, "stdin": stdin}}))
print("to stderr", file=sys.stderr)
raise SystemExit(37)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a profile of one group, and no more."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "torchpin.toml").write_text(PROFILE)
    return folder


@pytest.fixture
def fakes(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which pip and uv tell what they were called with."""
    if os.name == "nt":
        pytest.skip("the stand-ins for pip and uv are scripts of a shell")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("pip", "uv"):
        (folder / name).write_text(FAKE)
        (folder / name).chmod(0o755)
    path = os.pathsep.join((str(folder), str(Path(sys.executable).parent), os.environ["PATH"]))
    return {"PATH": path, "TORCHPIN_CACHE_DIR": str(tmp_path / "cache")}


def called(*args: str, cwd: Path, env: dict[str, str], stdin: str = "") -> dict[str, Any]:
    done = torchpin(*args, cwd=cwd, env=env, stdin=stdin)
    assert done.returncode == 37, done.stderr
    assert "to stderr\n" in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def pinned(found: dict[str, Any]) -> list[str]:
    (text,) = found["held"]
    return [line for line in text.splitlines() if not line.startswith("#")]


# With the real clients -------------------------------------------------------------------------


@pytest.mark.clients
def test_pip_installs_what_runs(place: Path) -> None:
    dry = pip_dry(place)
    done = torchpin(
        *("pip", "--mirror", mirror(), "--", "install", *dry, "torch", "torchvision"), cwd=place
    )
    assert done.returncode == 0, done.stderr
    assert family(pip_report(place)) == OLD
    assert "held to what runs on old: torch==2.14.1+cu126" in done.stderr


@pytest.mark.clients
def test_pip_keeps_an_exact_version_that_runs(place: Path) -> None:
    dry = pip_dry(place)
    done = torchpin(
        *("pip", "--mirror", mirror(), "--", "install", *dry, "torch==2.13.0"), cwd=place
    )
    assert done.returncode == 0, done.stderr
    assert pip_report(place)["torch"] == "2.13.0+cu126"


@pytest.mark.clients
def test_uv_pip_installs_what_runs(place: Path) -> None:
    done = torchpin(
        *("uv", "--mirror", mirror(), "--", "pip", "install", "--dry-run", "--target", "x"),
        *("--python-platform", "x86_64-manylinux_2_28", "torch", "torchvision"),
        cwd=place,
    )
    assert done.returncode == 0, done.stderr
    assert " + torch==2.14.1+cu126" in done.stderr
    assert " + torchvision==0.29.1+cu126" in done.stderr


@pytest.mark.clients
def test_uv_add_locks_what_runs(place: Path) -> None:
    where = "sys_platform == 'linux' and platform_machine == 'x86_64'"
    (place / "pyproject.toml").write_text(
        '[project]\nname = "demo"\nversion = "1"\nrequires-python = "==3.11.*"\n'
        f'[tool.uv]\nenvironments = ["{where}"]\n'
    )
    done = torchpin(
        *("uv", "--mirror", mirror(), "--", "add", "--no-sync", "torch", "torchvision"),
        cwd=place,
        env={"UV_NO_CONFIG": "0"},
    )
    assert done.returncode == 0, done.stderr
    lock = (place / "uv.lock").read_text()
    assert 'name = "torch"\nversion = "2.14.1+cu126"' in lock
    assert "uv keeps the index in pyproject.toml for all packages" in done.stderr


@pytest.mark.clients
def test_uv_add_leaves_an_explicit_index_as_it_is(place: Path) -> None:
    where = "sys_platform == 'linux' and platform_machine == 'x86_64'"
    index = f'name = "pytorch-cu126"\nurl = "{mirror()}/cu126"\nexplicit = true\n'
    (place / "pyproject.toml").write_text(
        '[project]\nname = "demo"\nversion = "1"\nrequires-python = "==3.11.*"\n'
        f'[tool.uv]\nenvironments = ["{where}"]\n[[tool.uv.index]]\n{index}'
        '[tool.uv.sources]\ntorch = { index = "pytorch-cu126" }\n'
    )
    words = ("add", "--no-sync", "torch")
    done = torchpin("uv", "--mirror", mirror(), "--", *words, cwd=place, env={"UV_NO_CONFIG": "0"})
    assert done.returncode == 0, done.stderr
    assert index in (place / "pyproject.toml").read_text()
    assert 'version = "2.14.1+cu126"' in (place / "uv.lock").read_text()
    assert "for all packages" not in done.stderr


@pytest.mark.clients
def test_uv_add_to_a_script_is_held(place: Path) -> None:
    (place / "s.py").write_text("print('ran')\n")
    done = torchpin(
        *("uv", "--mirror", mirror(), "--", "add", "--python", "3.11", "--script", "s.py", "torch"),
        cwd=place,
    )
    assert done.returncode == 0, done.stderr
    assert '"torch>=2.14.1",' in (place / "s.py").read_text()
    assert "uv keeps the index in s.py for all packages" in done.stderr
    said = torchpin("uv", "--", "add", "--script", "s.py", "torch==2.15.0", cwd=place)
    assert said.returncode == 1


@pytest.mark.clients
def test_uv_sync_of_a_lock_that_does_not_run_is_refused(place: Path) -> None:
    where = "sys_platform == 'linux' and platform_machine == 'x86_64'"
    (place / "pyproject.toml").write_text(
        '[project]\nname = "demo"\nversion = "1"\nrequires-python = "==3.11.*"\n'
        f'dependencies = ["torch==2.15.0"]\n[tool.uv]\nenvironments = ["{where}"]\n'
    )
    locked = run_uv("lock", cwd=place, env={"UV_NO_CONFIG": "0"})
    assert locked.returncode == 0, locked.stderr
    done = torchpin("uv", "--", "sync", "--dry-run", cwd=place, env={"UV_NO_CONFIG": "0"})
    assert done.returncode == 1
    assert "TP201" in done.stderr
    assert "torchpin uv --force -- sync --dry-run" in done.stderr
    below = place / "src"
    below.mkdir()
    assert torchpin("uv", "--", "sync", "--dry-run", cwd=below).returncode == 1


EXTRAS = """\
[project]
name = "demo"
version = "1"
requires-python = "==3.11.*"
dependencies = []
[project.optional-dependencies]
gpu = ["torch==2.15.0"]
[dependency-groups]
train = ["torch==2.15.0"]
[tool.uv]
environments = ["sys_platform == 'linux' and platform_machine == 'x86_64'"]
"""


@pytest.mark.clients
def test_only_what_uv_would_install_counts(place: Path) -> None:
    config = {"UV_NO_CONFIG": "0"}
    (place / "pyproject.toml").write_text(EXTRAS)
    assert run_uv("lock", cwd=place, env=config).returncode == 0
    below = place / "below"
    below.mkdir()
    for words, where, expected in (
        (("sync", "--dry-run"), place, 0),
        (("sync", "--dry-run"), below, 0),
        (("sync", "--dry-run", "--extra=gpu"), place, 1),
        (("sync", "--dry-run", "--group", "train"), below, 1),
        (("sync", "--dry-run", "--all-extras", "--no-extra", "gpu"), place, 0),
        (("sync", "--dry-run", "--all-extras", "--project", str(place)), place.parent, 1),
        (("--directory", str(place), "sync", "--dry-run", "--all-groups"), place.parent, 1),
        (("run", "--all-extras", "python", "--version"), place, 1),
        (("run", "--all-extras", "--no-sync", "python", "--help"), place, 0),
    ):
        done = torchpin("uv", "--", *words, cwd=where, env=config)
        assert done.returncode == expected, (words, done.stderr)
        assert ("uv.lock: TP201" in done.stderr) is (expected == 1)


@pytest.mark.clients
def test_uv_run_of_a_script_installs_what_its_block_says(place: Path) -> None:
    (place / "plain.py").write_text("print('ran')\n")
    (place / "own.py").write_text('# /// script\n# dependencies = ["torch==2.15.0"]\n# ///\n')
    for words, expected in (
        (("run", "own.py"), 1),
        (("run", "--script", "own.py"), 1),
        (("sync", "--script", "own.py"), 1),
        (("run", "plain.py"), 0),
        (("run", "-"), 0),
        (("run", "absent.py"), 2),
    ):
        done = torchpin("uv", "--", *words, cwd=place, env={"UV_NO_CONFIG": "0"})
        assert done.returncode == expected, (words, done.stderr)
        assert ("own.py: TP201" in done.stderr) is (expected == 1)


@pytest.mark.clients
def test_what_uv_run_brings_with_it_is_judged(place: Path, tmp_path: Path) -> None:
    words = ("run", "--no-project", "--with", "torch==2.15.0", "python", "--version")
    done = torchpin("uv", "--", *words, cwd=place, env={"UV_NO_CONFIG": "0"})
    assert done.returncode == 1
    assert "<command line>:1: torch==2.15.0 allows torch 2.15.0" in done.stderr
    assert f"torchpin uv --force -- {' '.join(words)}" in done.stderr
    fine = torchpin("uv", "--", *words[:2], "python", "--version", cwd=place)
    assert fine.returncode == 0, fine.stderr


@pytest.mark.clients
@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("pip", ("install", "--help")),
        ("pip", ("install", "torch==2.15.0", "-h")),
        ("uv", ("pip", "install", "--help")),
        ("uv", ("sync", "-h")),
        ("uv", ("run", "--help")),
    ],
)
def test_help_of_the_client_needs_no_fleet(
    client: str, words: tuple[str, ...], place: Path, tmp_path: Path
) -> None:
    real = subprocess.run(
        [client, *words], cwd=place, env=environment(), capture_output=True, text=True, check=False
    )
    for where in (place, tmp_path):
        done = torchpin(client, "--", *words, cwd=where)
        assert (done.returncode, done.stdout, done.stderr) == (0, real.stdout, real.stderr)


@pytest.mark.clients
def test_other_commands_give_what_the_client_gives(tmp_path: Path) -> None:
    for client, words in (("pip", ["--version"]), ("uv", ["--version"]), ("uv", ["no-such"])):
        done = torchpin(client, "--", *words, cwd=tmp_path)
        real = subprocess.run(
            [client, *words],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (
            real.returncode,
            real.stdout,
            real.stderr,
        )


# What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("install", "torch==2.15.0"),
        ("install", "torch==2.15.0+cu132"),
        ("install", "-r", "requirements.txt"),
        ("install", "torch", "--index-url", "https://download.pytorch.org/whl/cu132"),
        ("install", "https://download.pytorch.org/whl/cu132/torch-2.15.0%2Bcu132-cp311-cp311-manylinux_2_28_x86_64.whl"),
        ("--quiet", "install", "--upgrade", "torch>=2.15"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused(
    place: Path, fakes: dict[str, str], words: tuple[str, ...]
) -> None:
    (place / "requirements.txt").write_text("requests\ntorch==2.15.0\n")
    before = sorted(place.iterdir())
    done = torchpin("pip", "--", *words, cwd=place, env=fakes)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "not run: nothing that this command allows runs on old" in done.stderr
    assert "what runs: torch==2.14.1+cu126" in done.stderr
    assert "torchpin pip --force -- " in done.stderr
    assert sorted(place.iterdir()) == before
    found = called("pip", "--force", "--", *words, cwd=place, env=fakes)
    assert found["words"] == list(words)


def test_a_refusal_says_where_it_comes_from_and_no_secret(
    place: Path, fakes: dict[str, str]
) -> None:
    (place / "requirements.txt").write_text("requests\ntorch==2.15.0\n")
    secret = "https://user:hunter2@mirror.example/pypi/simple"
    done = torchpin(
        *("pip", "--", "install", "-r", "requirements.txt", "--extra-index-url", secret),
        cwd=place,
        env={**fakes, "PIP_INDEX_URL": secret},
    )
    assert done.returncode == 1
    assert "requirements.txt:2: torch==2.15.0" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr


# What passes untouched -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("pip", ["download", "torch==2.15.0"]),
        ("pip", ["--isolated", "freeze", "--all"]),
        ("pip", []),
        ("uv", ["run", "python", "-c", "print('a b')", "--with", "torch==2.15.0"]),
        ("uv", ["tool", "upgrade", "torch==2.15.0"]),
        ("uv", ["pip", "compile", "a.in", "--", "b.in"]),
        ("uv", ["sync"]),
        ("uv", ["add", "requests"]),
    ],
)
def test_other_commands_pass_as_they_are(
    place: Path, fakes: dict[str, str], client: str, words: list[str]
) -> None:
    assert called(client, "--", *words, cwd=place, env=fakes)["words"] == words


def test_no_fleet_is_needed_where_nothing_is_installed(
    tmp_path: Path, fakes: dict[str, str]
) -> None:
    assert called("pip", "--", "freeze", cwd=tmp_path, env=fakes)["words"] == ["freeze"]
    done = torchpin("pip", "--", "install", "torch", cwd=tmp_path, env=fakes)
    assert done.returncode == 2
    assert "no fleet is declared" in done.stderr


def test_the_words_of_the_user_stay_in_their_order(place: Path, fakes: dict[str, str]) -> None:
    words = ["-q", "install", "--pre", "a b;c", "--", "torch"]
    said = called("pip", "--", *words, cwd=place, env=fakes)["words"]
    assert said[:3] == ["-q", "install", "-c"]
    assert said[-4:] == words[2:]
    assert "https://download.pytorch.org/whl/cu126/torch/" in said
    assert not any("extra-index" in word for word in said)


def test_standard_input_reaches_the_client(place: Path, fakes: dict[str, str]) -> None:
    found = called("pip", "--", "install", "--stdin", cwd=place, env=fakes, stdin="some\ntext")
    assert found["stdin"] == "some\ntext"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_reaches_the_client(place: Path, fakes: dict[str, str], number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "torchpin", "pip", "-q", "--", "install", "--wait"],
        cwd=place,
        env=environment(fakes),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        code = process.wait(30)
    assert code == -number


# What holds a command --------------------------------------------------------------------------


def test_what_is_installed_and_runs_stays(place: Path, fakes: dict[str, str]) -> None:
    there = {**fakes, "FAKE_LIST": '[{"name": "torch", "version": "2.10.0"}]'}
    found = called("pip", "--", "install", "accelerate", cwd=place, env=there)
    assert "torch==2.10.0" in pinned(found)
    upgraded = called("pip", "--", "install", "-U", "accelerate", cwd=place, env=there)
    assert "torch==2.14.1+cu126" in pinned(upgraded)
    failing = {**fakes, "FAKE_LIST": '[{"name": "torch", "version": "2.15.0"}]'}
    found = called("uv", "--", "pip", "install", "torchvision", cwd=place, env=failing)
    assert "torch==2.14.1+cu126" in pinned(found)


def test_a_package_that_pins_torch_decides(place: Path, fakes: dict[str, str]) -> None:
    found = called("pip", "--", "install", "vllm==0.10.0", cwd=place, env=fakes)
    assert any(line.startswith("torch==2.7.1") for line in pinned(found))


def test_an_index_that_is_named_is_not_named_twice(place: Path, fakes: dict[str, str]) -> None:
    url = "https://download.pytorch.org/whl/cu126"
    found = called("pip", "--", "install", "torch", "--index-url", url, cwd=place, env=fakes)
    assert "torch==2.14.1+cu126" in pinned(found)
    assert "-f" not in found["words"]


def test_variables_of_uv_that_options_would_replace_are_kept(
    place: Path, fakes: dict[str, str]
) -> None:
    (place / "mine.txt").write_text("numpy<3\n")
    env = {**fakes, "UV_CONSTRAINT": "mine.txt", "UV_FIND_LINKS": "https://a.example/l,./wheels"}
    found = called("uv", "--", "pip", "install", "torch", cwd=place, env=env)
    words = found["words"]
    assert "numpy<3\n" in found["held"]
    assert words[words.index("https://a.example/l") - 1] == "-f"
    assert words[words.index("./wheels") - 1] == "-f"
    assert "https://download.pytorch.org/whl/cu126/torch/" in words


def test_what_cannot_be_told_is_not_held(place: Path, fakes: dict[str, str]) -> None:
    url = "https://download.pytorch.org/whl/nightly/cu132"
    words = ["install", "--pre", "torch", "--index-url", url]
    done = torchpin("pip", "--", *words, cwd=place, env=fakes)
    assert json.loads(done.stdout)["words"] == words
    assert "nothing is held" in done.stderr


@pytest.mark.parametrize(
    "word", ["torch==2.99.0", "torch>=2.99", "torch==2.10.0a0+b4e4ee81d3.nv25.11"]
)
def test_what_is_newer_than_the_catalog_is_not_refused(
    place: Path, fakes: dict[str, str], word: str
) -> None:
    done = torchpin("pip", "--", "install", word, cwd=place, env=fakes)
    assert json.loads(done.stdout)["words"] == ["install", word]
    assert "is not in the catalog of" in done.stderr


def test_a_version_that_never_was_is_refused(place: Path, fakes: dict[str, str]) -> None:
    done = torchpin("pip", "--", "install", "torch==2.14.7", cwd=place, env=fakes)
    assert done.returncode == 1
    assert "no published version" in done.stderr


def test_what_runs_instead_suits_what_needs_torch(place: Path, fakes: dict[str, str]) -> None:
    done = torchpin(*("pip", "--", "install", "vllm==0.11.0", "torch==2.9.0"), cwd=place, env=fakes)
    assert done.returncode == 1
    assert "vllm==0.11.0 allows torch 2.8.0" in done.stderr
    assert "what runs: torch==2.8.0" in done.stderr


def test_what_is_only_not_known_to_fail_is_called_so(place: Path, fakes: dict[str, str]) -> None:
    (place / "torchpin.toml").write_text('[fleet.intel]\ngpus = ["xpu"]\npython = "3.11"\n')
    done = torchpin("pip", "--", "install", "torch", cwd=place, env=fakes)
    assert done.returncode == 37, done.stderr
    assert "held to what is not known to fail on intel: torch==" in done.stderr
    assert "https://download.pytorch.org/whl/xpu" in json.loads(done.stdout)["words"]


def test_the_backend_of_uv_binds(place: Path, fakes: dict[str, str]) -> None:
    words = ["pip", "install", "torch", "--torch-backend", "cu126"]
    found = called("uv", "--", *words, cwd=place, env=fakes)
    assert "torch==2.14.1+cu126" in pinned(found)
    assert "-f" not in found["words"]
    words[-1] = "cu130"
    assert torchpin("uv", "--", *words, cwd=place, env=fakes).returncode == 1


def test_several_groups_need_a_name(place: Path, fakes: dict[str, str]) -> None:
    (place / "torchpin.toml").write_text(TWO)
    done = torchpin("pip", "--", "install", "torch", cwd=place, env=fakes)
    assert done.returncode == 2
    assert "use --group: old, new" in done.stderr
    found = called("pip", "--group", "new", "--", "install", "torch", cwd=place, env=fakes)
    assert "torch==2.15.0" in pinned(found)


def test_the_double_dash_is_asked_for(place: Path, fakes: dict[str, str]) -> None:
    for words, shown in (
        (("pip", "install", "torch==2.15.0"), "torchpin pip -- install torch==2.15.0\n"),
        (
            ("uv", "--group", "new", "--force", "pip", "install", "-U", "torch>2"),
            "torchpin uv --group new --force -- pip install -U 'torch>2'\n",
        ),
        (("pip",), "torchpin pip -- install torch torchvision\n"),
    ):
        done = torchpin(*words, cwd=place, env=fakes)
        assert done.returncode == 2
        assert shown in done.stderr


def test_a_cache_that_cannot_be_written_is_no_hindrance(place: Path, fakes: dict[str, str]) -> None:
    (place / "file").write_text("")
    env = {**fakes, "TORCHPIN_CACHE_DIR": str(place / "file" / "cache")}
    assert "torch==2.14.1+cu126" in pinned(
        called("pip", "--", "install", "torch", cwd=place, env=env)
    )


def test_commands_are_told_apart() -> None:
    assert read_call("pip", ["--proxy", "install", "install", "x"]).action == ("install",)
    assert read_call("pip", ["--proxy", "install", "install", "x"]).at == 3
    assert read_call("uv", ["--directory", "d", "pip", "-q", "sync", "f"]).action == ("pip", "sync")
    assert read_call("uv", []).action == ()
