from __future__ import annotations

import os
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.clients.installs import plain_wheel
from tests.clients.stub_facts import Wheel
from tests.clients.stub_server import Stub
from tests.plugin.steered import (
    H100,
    V100,
    family,
    mirror,
    pip_plan,
    run_uv,
    torchpin,
    uv_plan,
)

from torchpin.cli.constraints import write
from torchpin.errors import UsageError
from torchpin.plugin.plan import torch_specifier

tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
OLD = {"torch": "2.14.1+cu126", "torchvision": "0.29.1+cu126"}
NEW = {"torch": "2.15.0", "torchvision": "0.29.2"}
FLEET = """\
[fleet.old]
gpus = ["Tesla V100"]
python = "3.11"

[fleet.new]
gpus = ["MI300X"]
python = "3.12"
"""


def constraints(*args: str, cwd: Path) -> str:
    done = torchpin("constraints", *args, "--mirror", mirror(), cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_machine(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_labels_stand_only_where_the_index_serves_them(tmp_path: Path) -> None:
    assert by_machine(constraints(*V100, cwd=tmp_path)) == [
        f"--extra-index-url {mirror()}/cu126",
        "torch==2.14.1+cu126",
        "torchvision==0.29.1+cu126",
        "torchaudio==2.11.0+cu126",
    ]
    assert by_machine(constraints(*H100, cwd=tmp_path)) == [
        "torch==2.15.0",
        "torchvision==0.29.2",
        "torchaudio==2.11.1",
    ]


@pytest.mark.clients
@pytest.mark.parametrize(("fleet", "expected"), [(V100, OLD), (H100, NEW)], ids=["V100", "H100"])
def test_a_constraints_file_holds_pip(
    tmp_path: Path, fleet: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert constraints(*fleet, "-o", "c.txt", cwd=tmp_path) == ""
    found = pip_plan("-c", "c.txt", "torch", "torchvision", cwd=tmp_path)
    assert family(found) == expected
    assert "torchaudio" not in found


@pytest.mark.clients
@pytest.mark.parametrize(("fleet", "expected"), [(V100, OLD), (H100, NEW)], ids=["V100", "H100"])
def test_a_constraints_file_and_its_link_pages_hold_uv(
    tmp_path: Path, fleet: tuple[str, ...], expected: dict[str, str]
) -> None:
    constraints(*fleet, "-o", "c.txt", cwd=tmp_path)
    told = [
        line.removeprefix("#").split()[:-1]  # without the backslash
        for line in (tmp_path / "c.txt").read_text().splitlines()
        if line.startswith("#   --")
    ]
    assert family(uv_plan("-c", "c.txt", *chain.from_iterable(told), cwd=tmp_path)) == expected


@pytest.mark.clients
@pytest.mark.parametrize(("fleet", "expected"), [(V100, OLD), (H100, NEW)], ids=["V100", "H100"])
def test_environment_lines_hold_pip_and_uv(
    tmp_path: Path, fleet: tuple[str, ...], expected: dict[str, str]
) -> None:
    said = constraints(*fleet, "--format", "env", "-o", "c.txt", cwd=tmp_path)
    lines = dict(line.split("=", 1) for line in said.splitlines())
    assert family(pip_plan("torch", "torchvision", cwd=tmp_path, env=lines)) == expected
    assert family(uv_plan(cwd=tmp_path, env=lines)) == expected


@pytest.mark.clients
@pytest.mark.parametrize(("fleet", "expected"), [(V100, OLD), (H100, NEW)], ids=["V100", "H100"])
def test_the_tables_hold_a_uv_project(
    tmp_path: Path, fleet: tuple[str, ...], expected: dict[str, str]
) -> None:
    project = '[project]\nname = "demo"\nversion = "1"\nrequires-python = "==3.11.*"\n'
    project += 'dependencies = ["torch", "torchvision"]\n\n'
    project += constraints(*fleet, "--format", "uv", cwd=tmp_path)
    project += "\n[tool.uv.pip]\n"  # tables of the user's own may follow
    where = "sys_platform == 'linux' and platform_machine == 'x86_64'"
    project = project.replace("[tool.uv]\n", f'[tool.uv]\nenvironments = ["{where}"]\n')
    (tmp_path / "pyproject.toml").write_text(project)
    done = run_uv("lock", cwd=tmp_path, env={"UV_NO_CONFIG": "0"})
    assert done.returncode == 0, done.stderr
    lock = tomllib.loads((tmp_path / "uv.lock").read_text("utf-8"))
    assert family({one["name"]: one["version"] for one in lock["package"]}) == expected


@pytest.mark.clients
def test_platforms_that_differ_are_routed_by_marker(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(
        '[fleet.old]\ngpus = ["Tesla V100"]\npython = "3.11"\n'
        '[fleet.laptop]\ngpus = []\nplatform = "macos-arm64"\npython = "3.11"\n'
    )
    project = '[project]\nname = "demo"\nversion = "1"\nrequires-python = "==3.11.*"\n'
    project += 'dependencies = ["torch", "torchvision"]\n\n'
    text = constraints("--format", "uv", cwd=tmp_path)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(set(lines)) == len(lines), "a line stands twice"
    linux = "sys_platform == 'linux' and platform_machine == 'x86_64'"
    macos = "sys_platform == 'darwin' and platform_machine == 'arm64'"
    project += text.replace("[tool.uv]\n", f'[tool.uv]\nenvironments = ["{linux}", "{macos}"]\n')
    (tmp_path / "pyproject.toml").write_text(project)
    done = run_uv("lock", cwd=tmp_path, env={"UV_NO_CONFIG": "0"})
    assert done.returncode == 0, done.stderr
    lock = tomllib.loads((tmp_path / "uv.lock").read_text("utf-8"))
    places = {
        one["version"]: one["source"]["registry"].rsplit("/", 1)[1]
        for one in lock["package"]
        if one["name"] == "torch"
    }
    assert places == {"2.14.1+cu126": "cu126", "2.14.1": "simple"}


@pytest.mark.clients
def test_a_rocm_project_gets_the_triton_of_its_channel(tmp_path: Path) -> None:
    fleet = ("--isolated", "--gpu", "MI300X", "--python", "3.11", "--torch", "2.9.1")
    channel = by_machine(constraints(*fleet, cwd=tmp_path))[0].rsplit("/", 1)[1]
    triton, needs = "pytorch-triton-rocm", ("pytorch-triton-rocm==3.5.1",)
    tags = "cp311-cp311-manylinux_2_28_x86_64.whl"
    full = f"2.9.1+{channel}"
    wheels = [
        Wheel(channel, "torch", full, f"torch-{full}-{tags}", None, needs, (), None, False),
        plain_wheel(triton, "3.5.1")._replace(home=channel),
        plain_wheel("torch", "2.9.1"),
    ]
    project = '[project]\nname = "demo"\nversion = "1"\nrequires-python = "==3.11.*"\n'
    where = "sys_platform == 'linux' and platform_machine == 'x86_64'"
    with Stub(wheels=wheels) as stub:
        said = torchpin(
            *("constraints", *fleet, "--format", "uv", "--mirror", f"{stub.base}/whl"), cwd=tmp_path
        )
        project += 'dependencies = ["torch"]\n\n' + said.stdout.replace(
            "[tool.uv]\n", f'[tool.uv]\nenvironments = ["{where}"]\n'
        )
        (tmp_path / "pyproject.toml").write_text(project)
        env = {"UV_NO_CONFIG": "0", "UV_DEFAULT_INDEX": stub.pypi}
        done = run_uv("lock", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    lock = tomllib.loads((tmp_path / "uv.lock").read_text("utf-8"))
    versions = {one["name"]: one["version"] for one in lock["package"]}
    assert (versions["torch"], versions[triton]) == (full, "3.5.1")


def test_no_single_set_exits_with_one_and_tells_the_split(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    done = torchpin("constraints", "-o", "c.txt", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "  old: torch==2.14.1+cu126" in done.stderr
    assert "  new: torch==2.14.1+rocm" in done.stderr
    assert "torchpin constraints --group old" in done.stderr
    assert not (tmp_path / "c.txt").exists()
    alone = torchpin("constraints", "--group", "new", cwd=tmp_path)
    assert alone.returncode == 0
    assert "torch==2.14.1+rocm" in alone.stdout


def test_what_no_wheel_serves_exits_with_one(tmp_path: Path) -> None:
    done = torchpin("constraints", *V100, "--torch", "2.15.0", cwd=tmp_path)
    assert done.returncode == 1
    assert "the last torch that runs on Tesla V100 (sm_70) is 2.14.1+cu126" in done.stderr


def test_the_torch_that_is_asked_for(tmp_path: Path) -> None:
    said = constraints(*V100, "--torch", "==2.7.*", cwd=tmp_path)
    assert any(line.startswith("torch==2.7.1") for line in by_machine(said))
    assert torch_specifier("2.11.0+cu126") == "==2.11.0"
    assert torch_specifier("torch>=2.10,<2.12") == ">=2.10,<2.12"
    with pytest.raises(UsageError, match="neither a version nor a specifier"):
        torch_specifier("newest")


def test_a_private_index_that_the_profile_names_is_used(tmp_path: Path) -> None:
    profile = '[indexes]\n"https://mirror.example/pt/cu126" = "cu126"\n' + FLEET
    (tmp_path / "torchpin.toml").write_text(profile)
    done = torchpin("constraints", "--group", "old", cwd=tmp_path)
    assert "--extra-index-url https://mirror.example/pt/cu126\n" in done.stdout, done.stderr


@pytest.mark.parametrize("form", ["requirements", "uv", "env"])
@pytest.mark.parametrize("place", ["--mirror", "[indexes]"])
def test_no_login_of_a_url_is_written(form: str, place: str, tmp_path: Path) -> None:
    secret = "https://me:hunter2@mirror.example/pt"
    options: tuple[str, ...] = ("--mirror", secret)
    if place == "[indexes]":
        options = ()
        (tmp_path / "torchpin.toml").write_text(f'[indexes]\n"{secret}/cu126" = "cu126"\n{FLEET}')
    else:
        (tmp_path / "torchpin.toml").write_text(FLEET)
    done = torchpin(
        *("constraints", "--group", "old", "--format", form, "-o", "held", *options), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout + (tmp_path / "held").read_text()
    assert "hunter2" not in text + done.stderr
    assert "https://mirror.example/pt/cu126" in text
    assert "the login in the URL is left out" in done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--group", "other"), "no group 'other'"),
        (("--format", "env"), "--format env needs -o FILE"),
        (("--format", "env", "-o", "a b.txt"), "PIP_CONSTRAINT cannot hold"),
        (("--mirror", "ftp://mirror.example/whl"), "--mirror is no http(s) URL"),
        (("--mirror", "u:hunter2@mirror.example/whl"), "--mirror is no http(s) URL"),
        (("--mirror", "https://mirror.example/whl?token=hunter2"), "--mirror is no http(s) URL"),
        (("--mirror", "https://u:hunter2@[::x/whl"), "--mirror is no http(s) URL"),
        (("--mirror", "https://mirror.example/a b"), "--mirror is no http(s) URL"),
    ],
)
def test_wrong_usage(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    group = () if "--group" in args else ("--group", "old")
    done = torchpin("constraints", *group, *args, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "hunter2" not in done.stderr
    assert not list(tmp_path.glob("*.txt"))


def test_without_a_fleet_it_says_how_to_declare_one(tmp_path: Path) -> None:
    done = torchpin("constraints", "--isolated", cwd=tmp_path)
    assert done.returncode == 2
    assert "torchpin init" in done.stderr


def test_what_is_no_file_is_written_into_and_a_file_keeps_its_mode(tmp_path: Path) -> None:
    """A superuser could rename a file over /dev/null: no program could write there any more."""
    pipe, kept = tmp_path / "pipe", tmp_path / "c.txt"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(str(pipe), "torch==2.14.1\n")
        assert os.read(reader, 100) == b"torch==2.14.1\n"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    write(os.devnull, "torch==2.14.1\n")
    assert not Path(os.devnull).is_file()
    kept.touch(mode=0o600)
    write(str(kept), "torch==2.14.1\n")
    assert kept.read_text() == "torch==2.14.1\n"
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("form", ["requirements", "uv"])
def test_comments_fit_80_columns(form: str, tmp_path: Path) -> None:
    done = torchpin("constraints", *V100, "--format", form, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    comments = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert len(comments) > 4
    assert max(map(len, comments)) <= 80
    if form == "requirements":
        words = "\n".join(line[2:] for line in comments)
        command = words[words.index("uv pip install") :].replace("\\\n", " ").split()
        assert command[:5] == ["uv", "pip", "install", "-c", "FILE"]
        assert command[-1] == "torch"
        assert command.count("--find-links") == 3


def test_what_never_runs_there_is_not_called_the_last_that_ran(tmp_path: Path) -> None:
    new = ("--isolated", "--gpu", "V100", "--driver", "590.44.01", "--python", "3.11")
    done = torchpin("constraints", *new, cwd=tmp_path)
    assert done.returncode == 1
    assert "last release with a wheel for Tesla V100: 2.14.1+cu126" in done.stderr
    (tmp_path / "requirements.txt").write_text("torch\n")
    for command in ("resolve", "check"):
        said = torchpin(command, *new, "requirements.txt", cwd=tmp_path).stdout
        assert "with a wheel for Tesla V100" in said
        assert "that ran" not in said
        assert "that did is" not in said
