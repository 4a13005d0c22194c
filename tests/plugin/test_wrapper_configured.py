"""What the configuration of pip and uv says counts as what the command says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.plugin.steered import mirror, pip_dry, pip_report, run_uv, torchpin

from torchpin.plugin.configured import pip_configured

PROFILE = '[fleet.old]\ngpus = ["Tesla V100"]\ndriver = "550.54.15"\npython = "3.11"\n[indexes]\n'
PLACE = "x86_64-manylinux_2_28"
UV_DRY = ("pip", "install", "--dry-run", "--target", "x", "--python-platform", PLACE)
ON = {"UV_NO_CONFIG": "0"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a profile, which knows the channels of the stub."""
    folder = tmp_path / "project"
    folder.mkdir()
    known = "".join(f'"{mirror()}/{name}" = "{name}"\n' for name in ("cu126", "cu132"))
    (folder / "torchpin.toml").write_text(PROFILE + known)
    return folder


def pip_config(folder: Path, text: str) -> dict[str, str]:
    (folder / "pip.conf").write_text(text)
    return {"PIP_CONFIG_FILE": str(folder / "pip.conf"), "PIP_INDEX_URL": ""}


def home(folder: Path, text: str) -> dict[str, str]:
    """Write the settings of a user; return the environment that has them."""
    (folder / "home" / "uv").mkdir(parents=True)
    (folder / "home" / "uv" / "uv.toml").write_text(text)
    return {**ON, "XDG_CONFIG_HOME": str(folder / "home")}


# pip -------------------------------------------------------------------------------------------


@pytest.mark.clients
@pytest.mark.parametrize("section", ["global", "install"])
def test_an_index_of_pips_configuration_decides(place: Path, section: str) -> None:
    env = pip_config(place, f"[{section}]\nindex-url = {mirror()}/cu132\n")
    done = torchpin("pip", "--", "install", *pip_dry(place), "torch", cwd=place, env=env)
    assert done.returncode == 1
    assert f"pip is configured with --index-url {mirror()}/cu132 (pip config list)" in done.stderr


@pytest.mark.clients
def test_the_command_wins_over_pips_configuration(place: Path) -> None:
    env = pip_config(place, f"[global]\nindex-url = {mirror()}/cu132\n")
    words = ("install", *pip_dry(place), "torch", "--index-url", f"{mirror()}/cu126")
    done = torchpin("pip", "--", *words, cwd=place, env=env)
    assert done.returncode == 0, done.stderr
    assert pip_report(place)["torch"] == "2.14.1+cu126"


@pytest.mark.clients
@pytest.mark.parametrize(
    ("name", "text"),
    [("constraint", "torch==2.15.0\n"), ("requirement", "torch==2.15.0\n")],
)
@pytest.mark.parametrize("variable", [True, False])
def test_files_of_pips_configuration_bind(
    place: Path, name: str, text: str, variable: bool
) -> None:
    (place / "more.txt").write_text(text)
    env = {"PIP_CONFIG_FILE": os.devnull, f"PIP_{name.upper()}": "more.txt"}
    if not variable:
        env = {**pip_config(place, f"[install]\n{name} =\n    more.txt\n"), "PIP_INDEX_URL": ""}
    done = torchpin("pip", "--", "install", *pip_dry(place), "torch", cwd=place, env=env)
    assert done.returncode == 1
    assert "more.txt:1: torch==2.15.0" in done.stderr


@pytest.mark.clients
def test_isolated_pip_reads_no_variable(place: Path) -> None:
    (place / "more.txt").write_text("torch==2.15.0\n")
    env = {"PIP_CONSTRAINT": "more.txt"}
    words = ("install", "--isolated", *pip_dry(place), "--index-url", f"{mirror()}/cu126", "torch")
    done = torchpin("pip", "--", *words, cwd=place, env=env)
    assert done.returncode == 0, done.stderr
    assert pip_report(place)["torch"] == "2.14.1+cu126"


@pytest.mark.clients
def test_where_pip_is_configured_without_an_index_it_says_so(place: Path) -> None:
    env = pip_config(place, "[global]\nno-index = yes\n")
    done = torchpin("pip", "--", "install", *pip_dry(place), "torch", cwd=place, env=env)
    assert "with --no-index (pip config list) torchpin adds no index" in done.stderr


@pytest.mark.clients
def test_no_login_of_a_configuration_is_shown(place: Path) -> None:
    secret = "http://user:hunter2@mirror.example/whl/cu132"
    with (place / "torchpin.toml").open("a") as file:
        file.write('"http://mirror.example/whl/cu132" = "cu132"\n')
    env = pip_config(place, f"[global]\nindex-url = {secret}\n")
    done = torchpin("pip", "--", "install", "torch", cwd=place, env=env)
    assert done.returncode == 1
    assert "mirror.example/whl/cu132" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    (place / "uv.toml").write_text(f'extra-index-url = ["{secret}"]\n')
    for words in (("pip", "install"), ("run", "--no-project", "--with")):
        done = torchpin("uv", "--", *words, "torch==2.15.0", cwd=place, env=ON)
        assert done.returncode == 1
        assert "uv is configured with --extra-index-url" in done.stderr
        assert "hunter2" not in done.stdout + done.stderr


def test_what_pip_tells_is_read() -> None:
    listed = "\n".join(
        (
            "global.index-url='https://a.example/simple'",
            "global.pre='true'",
            r"install.extra-index-url='\nhttps://b.example/x\nhttps://c.example/y'",
            "install.no-index='false'",
            "install.pre='0'",
            "wheel.constraint='other.txt'",
            ":env:.index-url='https://d.example/simple'",
            ":env:.find-links=''",
            ":env:.target='somewhere else'",
            "a line of another kind",
        )
    )
    found = pip_configured(listed)
    assert found.told
    assert found.words == (
        *("--index-url", "https://d.example/simple"),
        *("--extra-index-url", "https://b.example/x", "--extra-index-url", "https://c.example/y"),
        *("--target", "somewhere else"),
    )


# uv --------------------------------------------------------------------------------------------


def refused(*words: str, cwd: Path, env: Mapping[str, str]) -> str:
    done = torchpin("uv", "--", *words, cwd=cwd, env=env)
    assert done.returncode == 1, done.stderr
    return done.stderr


@pytest.mark.clients
def test_an_index_of_uvs_settings_decides(place: Path) -> None:
    text = f'index-url = "{mirror()}/cu132"\n'
    env = {**home(place, text), "UV_DEFAULT_INDEX": ""}
    said = f"uv is configured with --index-url {mirror()}/cu132 ({place}/home/uv/uv.toml)"
    assert said in refused(*UV_DRY, "torch", cwd=place, env=env)
    assert said in refused("tool", "run", "--with", "torch", "x", cwd=place, env=env)
    assert said in refused("run", "--no-project", "--with", "torch", "x", cwd=place, env=env)
    for more in ({"UV_NO_CONFIG": "1"}, {"UV_DEFAULT_INDEX": f"{mirror()}/cu126"}):
        done = torchpin(
            "uv", "--mirror", mirror(), "--", *UV_DRY, "torch", cwd=place, env={**env, **more}
        )
        assert "not run" not in done.stderr
    (place / "uv.toml").write_text(f'[[index]]\nurl = "{mirror()}/cu126"\ndefault = true\n')
    done = torchpin("uv", "--", *UV_DRY, "torch", cwd=place, env=env)
    assert done.returncode == 0, done.stderr
    assert " + torch==2.14.1+cu126" in done.stderr


@pytest.mark.clients
def test_a_tool_does_not_take_the_settings_of_the_project(place: Path) -> None:
    (place / "uv.toml").write_text(f'index-url = "{mirror()}/cu132"\n')
    env = {**ON, "UV_DEFAULT_INDEX": ""}
    refused("run", "--no-project", "--with", "torch", "x", cwd=place, env=env)
    done = torchpin("uv", "--", "tool", "run", "--offline", "--with", "torch", "x", cwd=place)
    assert "not run" not in done.stderr
    only = {**env, "UV_CONFIG_FILE": str(place / "uv.toml")}
    refused("tool", "run", "--with", "torch", "x", cwd=place, env=only)
    (place / "uv.toml").rename(place / "own settings.toml")
    words = ("tool", "run", "--config-file", "own settings.toml", "--with", "torch", "x")
    refused(*words, cwd=place, env=env)


@pytest.mark.clients
@pytest.mark.parametrize("kind", ["constraint", "override"])
def test_constraints_of_uvs_settings_bind(place: Path, kind: str) -> None:
    (place / "uv.toml").write_text(f'{kind}-dependencies = ["torch==2.15.0"]\n')
    asked = "torch" if kind == "constraint" else "torch==2.13.0"
    assert "uv.toml:1: torch==2.15.0" in refused(*UV_DRY, asked, cwd=place, env=ON)
    text = f'{kind}-dependencies = ["torch==2.13.0"]\n'
    (place / "uv.toml").write_text(text)
    asked = "torch" if kind == "constraint" else "torch==2.15.0"
    done = torchpin("uv", "--mirror", mirror(), "--", *UV_DRY, asked, cwd=place, env=ON)
    assert done.returncode == 0, done.stderr
    assert " + torch==2.13.0+cu126" in done.stderr


@pytest.mark.clients
@pytest.mark.parametrize("variable", [True, False])
def test_override_files_stand_for_what_is_asked(place: Path, variable: bool) -> None:
    (place / "over.txt").write_text("torch==2.13.0\n")
    env = {"UV_OVERRIDE": "over.txt"} if variable else {}
    words = () if variable else ("--override", "over.txt")
    done = torchpin(
        *("uv", "--mirror", mirror(), "--", *UV_DRY, *words, "torch==2.15.0"), cwd=place, env=env
    )
    assert done.returncode == 0, done.stderr
    assert " + torch==2.13.0+cu126" in done.stderr


@pytest.mark.clients
def test_the_backend_of_uvs_settings_binds(place: Path) -> None:
    for text in ('torch-backend = "cu132"\n', '[pip]\ntorch-backend = "cu132"\n'):
        (place / "uv.toml").write_text(text)
        said = refused(*UV_DRY, "torch", cwd=place, env=ON)
        assert "uv is configured with --torch-backend cu132 (uv.toml)" in said
    words = ("run", "--no-project", "--offline", "--with", "torch", "x")
    done = torchpin("uv", "--", *words, cwd=place, env=ON)  # [pip] is for uv pip
    assert "not run" not in done.stderr
    (place / "uv.toml").write_text('torch-backend = "cu132"\n')
    refused("run", "--no-project", "--with", "torch", "x", cwd=place, env=ON)


# What uv run and uv tool bring -------------------------------------------------------------------

SHOW = "import importlib.metadata as m; print(m.version('torch'))"


@pytest.mark.clients
@pytest.mark.skipif(os.name == "nt", reason="the stub's wheels are those of Linux")
def test_what_uv_run_brings_is_held(place: Path) -> None:
    (place / "list.txt").write_text("torchvision\n")
    for words in (
        ("--with", "torch"),
        ("-w", "torchvision"),
        ("--with-requirements", "list.txt"),
        ("--with=torch>=2.10", "-q"),
    ):
        done = torchpin(
            *("uv", "--mirror", mirror(), "--", "run", "--no-project", "--isolated", *words),
            *("--python", "3.11", "--cache-dir", str(place / "cache"), "python", "-c", SHOW),
            cwd=place,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "2.14.1+cu126\n"
        assert "held to what runs on old: torch==2.14.1+cu126" in done.stderr


@pytest.mark.clients
@pytest.mark.skipif(os.name == "nt", reason="the stub's wheels are those of Linux")
def test_what_tools_of_uv_bring_is_held(place: Path) -> None:
    env = {"UV_TOOL_DIR": str(place / "tools"), "UV_TOOL_BIN_DIR": str(place / "bin")}
    common = ("--python", "3.11", "--cache-dir", str(place / "cache"))
    done = torchpin(
        *("uv", "--mirror", mirror(), "--", "tool", "run", *common, "--from", "torch", "nothing"),
        cwd=place,
        env=env,
    )
    assert "held to what runs on old: torch==2.14.1+cu126" in done.stderr
    assert " + torch==2.14.1+cu126" in run_tool(place, "--from", "torch", "-v", "nothing")
    for action in ("run", "install"):
        said = refused("tool", action, *common, "--with", "torch==2.15.0", "x", cwd=place, env=env)
        assert "torch==2.15.0 allows torch 2.15.0" in said


def run_tool(place: Path, *words: str) -> str:
    done = torchpin(
        *("uv", "--mirror", mirror(), "--", "tool", "run", "--python", "3.11"),
        *("--cache-dir", str(place / "other"), *words),
        cwd=place,
    )
    return done.stderr


@pytest.mark.clients
def test_a_script_with_its_own_block_is_judged(place: Path) -> None:
    (place / "s.py").write_text('# /// script\n# dependencies = ["torch"]\n# ///\nprint("ran")\n')
    said = refused("run", "s.py", cwd=place, env=ON)
    assert "s.py: TP203" in said


@pytest.mark.clients
def test_what_is_in_the_environment_of_uv_run_stays(place: Path) -> None:
    made = run_uv("venv", "--python", "3.11", ".venv", cwd=place)
    assert made.returncode == 0, made.stderr
    there = run_uv("pip", "install", "torch==2.13.0", "-f", f"{mirror()}/cu126/torch/", cwd=place)
    assert there.returncode == 0, there.stderr
    done = torchpin(
        *("uv", "--mirror", mirror(), "--", "run", "--no-project", "--with", "torch"),
        *("--cache-dir", str(place / "cache"), "python", "-c", SHOW),
        cwd=place,
    )
    assert (done.returncode, done.stdout) == (0, "2.13.0+cu126\n"), done.stderr
