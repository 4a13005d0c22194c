"""Fixed files of sections are accepted by the tools that own them, where these are installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

FILES = Path(__file__).resolve().parents[2] / "fixtures" / "files"


def fixed(name: str) -> list[Path]:
    return sorted(path for path in FILES.glob(f"*/fixed/{name}"))


def tool(name: str) -> str:
    """Return the program of a tool: the one that ``TORCHPIN_TOX`` … names, else one on the path.

    Skip where there is none; the session ``owners`` of nox installs them.
    """
    named = os.environ.get(f"TORCHPIN_{name.upper().replace('-', '_')}")
    beside = str(Path(sys.executable).parent)
    path = shutil.which(named or name, path=os.pathsep.join((beside, os.environ.get("PATH", ""))))
    if path is None:
        assert named is None, f"{named} is no program"
        pytest.skip(f"{name} is not installed (`nox -s owners` does it)")
    return path


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout + done.stderr


@pytest.mark.parametrize("path", fixed(".pre-commit-config.yaml"), ids=lambda p: p.parts[-3])
def test_pre_commit_takes_the_file(path: Path) -> None:
    run([tool("pre-commit"), "validate-config", str(path)], path.parent)


@pytest.mark.parametrize("path", fixed("noxfile.py"), ids=lambda p: p.parts[-3])
def test_nox_lists_the_sessions(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path)
    assert "tests" in run([tool("nox"), "--list"], tmp_path)


TOX = [
    *fixed("tox.ini"),
    *fixed("tox.toml"),
    *(path for path in fixed("pyproject.toml") if "tool.tox" in path.read_text("utf-8")),
]


@pytest.mark.parametrize("path", TOX, ids=lambda p: p.parts[-3])
def test_tox_reads_the_lines_that_were_written(path: Path, tmp_path: Path) -> None:
    for other in path.parent.iterdir():
        shutil.copy(other, tmp_path)
    for other in (path.parent.parent / "input").glob("*.txt"):
        shutil.copy(other, tmp_path)
    said = run([tool("tox"), "config", "-k", "deps", "set_env", "install_command"], tmp_path)
    assert "cu126" in said and "cu124" not in said and "cu128" not in said


@pytest.mark.parametrize("path", fixed("Pipfile"), ids=lambda p: p.parts[-3])
def test_pipenv_reads_the_file_as_torchpin_does(path: Path, tmp_path: Path) -> None:
    from torchpin.documents.pipfile import content_hash

    pipenv = tool("pipenv")
    shutil.copy(path, tmp_path)
    lock = {
        "_meta": {
            "hash": {"sha256": content_hash(path.read_text("utf-8"))},
            "pipfile-spec": 6,
            "requires": {},
            "sources": [],
        },
        "default": {},
        "develop": {},
    }
    (tmp_path / "Pipfile.lock").write_text(json.dumps(lock), "utf-8")
    environment = {**os.environ, "PIPENV_PIPFILE": str(tmp_path / "Pipfile"), "CI": "1"}
    assert "up-to-date" in run([pipenv, "verify"], tmp_path, environment)


JUSTFILES = fixed("justfile")


@pytest.mark.skipif(sys.platform != "linux", reason="recipes of other systems are left out there")
@pytest.mark.parametrize("path", JUSTFILES, ids=lambda p: p.parts[-3])
def test_just_runs_the_lines_that_were_written(path: Path, tmp_path: Path) -> None:
    from torchpin.documents.justfile import read_justfile

    shutil.copy(path, tmp_path)
    just = tool("just")
    run([just, "--dump", "--dump-format", "json"], tmp_path)
    asked: dict[str, set[str]] = {}
    for part in read_justfile("justfile", path.read_bytes()).parts:
        if part.marker is not None and "linux" not in part.marker:
            continue  # just leaves it out here
        recipe = part.name.removeprefix("recipe ").split(",")[0]
        found = (f"{one.name}{one.specifier}" for one in part.document.declarations)
        asked.setdefault(recipe, set()).update(one for one in found if "==" in one)
    asked = {recipe: pins for recipe, pins in asked.items() if pins}
    assert asked
    for recipe, pins in asked.items():
        said = run([just, "--dry-run", "--no-deps", recipe], tmp_path).replace("'", "")
        assert all(pin in said for pin in pins), (pins, said)


SHAPES = [
    *(("compose-spec", path) for path in fixed("*compose*.y*ml")),
    *(("circle-ci", path) for path in fixed(".circleci/*.yml")),
    *(("gitlab-ci", path) for path in fixed(".gitlab-ci.yml")),
    *(("github-workflows", path) for path in fixed(".github/workflows/*.yml")),
    *(
        ("azure-pipelines", path)
        for path in (*fixed("azure-pipelines*.yml"), *fixed(".azure_pipelines/*.yaml"))
        if "${{ if" not in path.read_text("utf-8")  # the schema knows no inserted steps
    ),
]


@pytest.mark.parametrize(("shape", "path"), SHAPES, ids=lambda one: str(one).rpartition("/")[2])
def test_the_schema_of_the_format_takes_the_file(shape: str, path: Path) -> None:
    command = [tool("check-jsonschema"), "--builtin-schema", f"vendor.{shape}"]
    more = ["--regex-variant", "python"] if shape == "azure-pipelines" else []
    more += ["--data-transform", "gitlab-ci"] if shape == "gitlab-ci" else []
    run([*command, *more, str(path)], path.parent)


DOCKERFILES = [*fixed("Dockerfile*"), *fixed("Containerfile*"), *fixed("*/Dockerfile*")]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda p: str(p.relative_to(FILES)))
def test_hadolint_reads_what_it_read_before(path: Path) -> None:
    before = Path(str(path).replace("/fixed/", "/input/"))
    told = []
    for one in (before, path):
        said = run([tool("hadolint"), "--no-fail", "--format", "json", str(one)], path.parent)
        told.append({(found["code"], found["line"]) for found in json.loads(said)})
    assert told[1] <= told[0]


def wheel(folder: Path, name: str, version: str, requires: list[str]) -> None:
    """Write an empty wheel."""
    stem = f"{name.replace('-', '_')}-{version}"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as made:
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        made.writestr(f"{stem}.dist-info/METADATA", head)
        tag = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        made.writestr(f"{stem}.dist-info/WHEEL", tag)
        made.writestr(f"{stem}.dist-info/RECORD", "")


def test_pip_compile_keeps_the_list_that_was_mended(tmp_path: Path) -> None:
    folder = FILES / "compiled-pip-tools"
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for label in ("cu126", "cu128"):
        wheel(wheels, "torch", f"2.11.0+{label}", ["filelock", "typing-extensions"])
    for version in ("3.20.0", "3.21.0"):
        wheel(wheels, "filelock", version, [])
    wheel(wheels, "typing-extensions", "4.15.0", [])
    for name in ("requirements.in", "requirements.txt"):
        shutil.copy(folder / "fixed" / name, tmp_path)
    compile_ = [tool("pip-compile"), "--strip-extras", "--no-index", "--find-links", str(wheels)]
    run([*compile_, "--quiet", "requirements.in"], tmp_path)
    now = (tmp_path / "requirements.txt").read_text("utf-8").splitlines()
    pins = [line for line in now if "==" in line]
    expected = (folder / "fixed" / "requirements.txt").read_text("utf-8").splitlines()
    assert pins == [line for line in expected if "==" in line]


@pytest.mark.parametrize("path", sorted(FILES.glob("pylock-*/input/pylock*.toml")), ids=str)
def test_uv_installs_from_the_pylock(path: Path, tmp_path: Path) -> None:
    from torchpin.documents.pylock import read_pylock

    uv = tool("uv")
    python = tmp_path / "v"
    run([uv, "venv", "--quiet", "--python", "3.11", str(python)], tmp_path)
    shutil.copy(path, tmp_path)
    sync = [uv, "pip", "sync", "--dry-run", "--offline", "--no-config", "--python", str(python)]
    more = ["--python-platform", "x86_64-manylinux_2_28"]
    said = run([*sync, *more, path.name], tmp_path)
    lock = read_pylock(path.name, path.read_bytes()).lock
    assert lock is not None
    for one in lock.packages:
        if one.name.startswith("torch"):
            assert f"+ {one.name}=={one.version}" in said


@pytest.mark.parametrize("path", sorted(FILES.glob("pdm-lock-*/input/pdm.lock")), ids=str)
def test_pdm_says_the_same_of_the_age_of_a_lock(path: Path, tmp_path: Path) -> None:
    expected = json.loads((path.parent.parent / "expected.json").read_text("utf-8"))
    for name in ("pdm.lock", "pyproject.toml"):
        shutil.copy(path.parent / name, tmp_path)
    environment = {**os.environ, "PDM_USE_VENV": "0", "PDM_CHECK_UPDATE": "0"}
    done = subprocess.run(
        [tool("pdm"), "lock", "--check"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode != 0) == any("TP503" in one for one in expected["findings"])
