"""``torchpin upgrade``: what another release breaks, what to change, how far each group can go."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import torchpin.report
from torchpin.cli.main import guarded

SCHEMA = json.loads(
    (Path(torchpin.report.__file__).parent / "schemas" / "upgrade.v1.json").read_text("utf-8")
)
V100 = '[fleet.old]\ngpus = ["Tesla V100"]\ndriver = "550.54.15"\npython = "3.11"\n'
A100 = '[fleet.new]\ngpus = ["A100"]\ndriver = "595.45.04"\npython = ["3.11", "3.12"]\n'
CU126 = "--extra-index-url https://download.pytorch.org/whl/cu126\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, fleet: str, **files: str) -> None:
    if fleet:
        lines = fleet.replace("]\ngpus", ']\nplatform = "linux-x86_64"\ngpus')
        (folder / "torchpin.toml").write_text(lines)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = guarded(["upgrade", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code, said, _ = run(capsys, "--output-format", "json", *words)
    value = json.loads(said)
    jsonschema.Draft202012Validator(SCHEMA).validate(value)
    return code, value


def kinds(value: Any) -> list[str]:
    return [one["kind"] for one in value["breaks"]]


def test_volta_stays_at_the_last_release_of_cu126(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CU126 + "torch==2.14.1+cu126\ntorchvision==0.29.1+cu126\n"
    write(project, V100, requirements__txt=text)
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    assert value["to"] == {"asked": "2.15", "version": "2.15.0", "known": True}
    assert value["verdict"]["status"] == "blocked"
    assert value["verdict"]["blocked"] == ["old"]
    assert kinds(value) == ["gpu", "driver", "channel"]
    assert all(one["because"] for one in value["breaks"])
    row = value["groups"][0]
    assert row["status"] == "fails"
    assert row["last_safe"] == {"version": "2.14.1+cu126", "channel": "cu126", "index": "channel"}
    assert row["next"]["version"] == "2.15.0"
    assert row["next"]["because"]["evidence"] == "measured"
    assert value["fleet"]["last_safe"] == "2.14.1"
    channel = value["breaks"][2]
    assert (channel["path"], channel["line"]) == ("requirements.txt", 1)
    assert "cu126 holds torch 2.6.0 to 2.14.1, not 2.15.0" in channel["text"]
    assert channel["change"] is None  # there is nowhere to go
    assert not value["diffs"]

    code, said, _ = run(capsys, "--to", "2.15")
    assert code == 1
    assert "last safe: torch 2.14.1+cu126 [published]" in said
    assert "gpu: old: Tesla V100 (sm_70): torch 2.15.0 (PyPI, cu132) holds kernels" in said
    assert said.endswith("torch 2.15.0 (2.15): not for old.\n")


def test_a_fleet_where_only_the_pins_move_is_safe(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, A100, requirements__txt="torch==2.14.1\ntorchaudio==2.11.0  # sound\n")
    code, said, _ = run(capsys, "--to", "latest")
    assert code == 0
    assert "What breaks" not in said
    assert "requirements.txt:1: torch ==2.14.1 -> 2.15.0" in said
    assert "-torch==2.14.1\n-torchaudio==2.11.0  # sound\n" in said
    assert "+torch==2.15.0\n+torchaudio==2.11.1  # sound\n" in said
    assert said.endswith("torch 2.15.0 (latest): safe now (2 pins move).\n")
    assert (project / "requirements.txt").read_text().startswith("torch==2.14.1\n")  # not written


def test_a_file_that_takes_the_release_already_is_left_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, A100, requirements__txt="torch>=2.11\ntorchvision\n")
    code, value = told(capsys, "--to", "2.15.0")
    assert (code, value["verdict"]["text"]) == (0, "safe now")
    assert not value["diffs"]
    assert not value["files"][0]["pins"]


def test_a_mixed_fleet_is_told_group_by_group(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, V100 + A100, requirements__txt=CU126 + "torch==2.14.1+cu126\n")
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    assert value["verdict"]["blocked"] == ["old"]
    assert value["verdict"]["text"] == "not for old; for new safe after 1 change"
    status = {(row["group"], row["python"]): row["status"] for row in value["groups"]}
    assert status == {("old", "3.11"): "fails", ("new", "3.11"): "runs", ("new", "3.12"): "runs"}
    plan = value["files"][0]["plans"][0]
    assert plan["groups"] == ["new"]
    assert plan["requirements"] == [
        "--extra-index-url https://download.pytorch.org/whl/cu132",
        "torch==2.15.0+cu132",
    ]
    assert "a file of its own" in value["files"][0]["advice"]
    assert value["fleet"]["one_set"]["packages"]["torch"] == "2.14.1+cu126"


def test_groups_that_need_different_builds_get_the_smallest_split(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b200 = '[fleet.blackwell]\ngpus = ["B200"]\ndriver = "595.45.04"\npython = "3.12"\n'
    write(project, V100 + b200, requirements__txt="torch==2.10.0\n")
    code, value = told(capsys, "--to", "2.14")
    assert code == 1
    plans = value["files"][0]["plans"]
    assert [plan["groups"] for plan in plans] == [["old"], ["blackwell"]]
    assert plans[0]["packages"] == {"torch": "2.14.1+cu126"}
    assert value["verdict"]["status"] == "changes"
    assert value["fleet"]["one_set"] is None or value["fleet"]["last_safe"] == "2.14.1"
    _, said, _ = run(capsys, "--to", "2.14")
    assert "no single build serves all groups" in said


def test_a_python_without_wheels_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = A100.replace('"3.11", "3.12"', '"3.10", "3.12"')
    write(project, fleet, requirements__txt="torch==2.14.1\n")
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    found = value["breaks"][0]
    assert (found["kind"], found["python"], found["blocking"]) == ("python", ["3.10"], True)
    assert value["groups"][0]["last_safe"]["version"] == "2.14.1"
    assert value["verdict"]["text"].startswith("not for new (Python 3.10); for new (Python 3.12)")


def test_a_driver_that_no_known_build_accepts(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, A100.replace("595.45.04", "535.104.05"), requirements__txt="torch==2.14.1\n")
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    assert {row["status"] for row in value["groups"]} == {"unknown"}  # cu129 may hold it
    assert "nothing that is known runs on new" in value["verdict"]["text"]
    assert kinds(value) == ["driver"]
    assert "needs driver 580.65.06 or newer" in value["breaks"][0]["text"]
    assert value["unknown"][0]["evidence"] == "inferred"
    assert value["groups"][0]["last_safe"]["channel"] == "cu126"


def test_a_gpu_of_which_nothing_is_known_is_no_break(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, value = told(capsys, "--to", "2.15", "--gpu", "MI300X", "--python", "3.12")
    assert code == 1
    assert value["verdict"]["status"] == "unknown"
    assert value["breaks"] == []
    assert "rocm7.14" in value["unknown"][0]["text"]
    assert "rocm" in value["groups"][0]["last_safe"]["version"]


def test_less_that_works_than_today_is_a_limit(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = A100.replace('"A100"', '"T4"')
    write(project, fleet, requirements__txt=CU126 + "torch==2.10.0+cu126\n")
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    assert value["verdict"]["limited"] == ["new"]
    limit = next(one for one in value["breaks"] if one["kind"] == "limit")
    assert "libtorch_cuda_linalg.so" in limit["text"]
    assert not limit["blocking"]


def test_python_code_is_read_whatever_the_settings_say(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "src").mkdir()
    code_of = "import torch\nL = torch.cholesky(a)\nQ, R = torch.qr(a)  # torchpin: ignore[TP903]\n"
    (project / "src" / "model.py").write_text(code_of)
    (project / ".venv").mkdir()
    (project / ".venv" / "other.py").write_text(code_of)
    write(project, A100, requirements__txt="torch==2.13.0\n")
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    sources = [one for one in value["breaks"] if one["kind"] == "source"]
    assert [(one["code"], one["path"], one["line"]) for one in sources] == [
        ("TP902", "src/model.py", 2)
    ]
    assert sources[0]["change"] == "torch.linalg.cholesky"
    assert value["verdict"]["text"].startswith("safe after 1 change")
    code, value = told(capsys, "--to", "2.13")
    assert (code, kinds(value)) == (0, [])  # that release still has it


def test_a_package_that_asks_for_another_torch(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, A100, requirements__txt="torch==2.13.0\nvllm==0.32.0\n")
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    found = value["breaks"][0]
    assert (found["kind"], found["package"], found["line"]) == ("pin", "vllm", 2)
    assert found["change"] is None
    assert "requires torch ==2.13.0; no later one is known that takes 2.15.0" in found["text"]
    assert value["verdict"]["text"] == "not with vllm"
    assert not value["diffs"]
    code, value = told(capsys, "--to", "2.14.0")
    assert value["breaks"][0]["change"] == "vllm==0.33.0, which takes it"
    assert value["verdict"]["status"] == "changes"


def test_a_pin_of_other_machines_breaks_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "torch==2.13.0\nvllm==0.32.0 ; python_version < '3'\n"
    write(project, A100, requirements__txt=lines)
    _, value = told(capsys, "--to", "2.15")
    assert "pin" not in kinds(value)


def test_a_pin_counts_on_the_groups_of_its_marker_only(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arm = A100.replace("[fleet.new]\n", '[fleet.arm]\nplatform = "linux-aarch64"\n')
    lines = "torch==2.13.0\nvllm==0.32.0 ; platform_machine == 'aarch64'\n"
    write(project, A100 + arm, requirements__txt=lines)
    code, value = told(capsys, "--to", "2.15")
    (pin,) = (one for one in value["breaks"] if one["kind"] == "pin")
    assert (pin["groups"], code) == (["arm"], 1)


def test_a_companion_that_has_no_version_for_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, A100, requirements__txt="torch==2.9.1\nxformers==0.0.33.post2\n")
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    found = value["breaks"][0]
    assert (found["package"], found["kind"]) == ("xformers", "limit")
    assert "built with CUDA 12.8" in found["text"]
    assert {pin["package"]: pin["to"] for pin in value["files"][0]["pins"]} == {
        "torch": ["2.15.0"],
        "xformers": ["0.0.35"],
    }


UV = """\
[project]
name = "app"
version = "0"
requires-python = ">=3.10"
dependencies = ["torch==2.14.1", "torchvision==0.29.1"]

[tool.uv.sources]
torch = {index = "pytorch-cu126"}
torchvision = {index = "pytorch-cu126"}

[[tool.uv.index]]
name = "pytorch-cu126"
url = "https://download.pytorch.org/whl/cu126"
explicit = true
"""


def test_a_uv_project_gets_its_channel_and_its_pythons_in_one_diff(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, A100, pyproject__toml=UV)
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    assert kinds(value) == ["channel", "python"]
    assert value["breaks"][1]["change"] == 'requires-python = ">=3.11"'
    patch = value["diffs"][0]["diff"]
    assert '+requires-python = ">=3.11"\n' in patch
    assert '+dependencies = ["torch==2.15.0", "torchvision==0.29.1"]\n' in patch
    assert '+url = "https://download.pytorch.org/whl/cu132"\n' in patch
    done = subprocess.run(
        ["git", "apply", "-"], cwd=project, input=patch.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    code, value = told(capsys, "--to", "2.15")
    assert (code, value["verdict"]["text"]) == (0, "safe now")


LOCK = """\
version = 1
revision = 3
requires-python = "==3.12.*"

[[package]]
name = "app"
version = "0"
source = { virtual = "." }
dependencies = [
    { name = "torch" },
]

[package.metadata]
requires-dist = [{ name = "torch", specifier = ">=2.13" }]

[[package]]
name = "torch"
version = "2.14.1"
source = { registry = "https://pypi.example/simple" }
wheels = [
    { url = "https://files.example/torch-2.14.1-cp312-cp312-manylinux_2_28_x86_64.whl", \
hash = "sha256:23011fe29a99b591eabb3a31a25080c62e2c2f0690a3c798744e5489dae50451", size = 1 },
]
"""


def test_a_lock_that_does_not_hold_it_yet(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = UV.split("[tool.uv.sources]")[0].replace(">=3.10", "==3.12.*")
    text = text.replace('["torch==2.14.1", "torchvision==0.29.1"]', '["torch>=2.13"]')
    fleet = A100.replace('["3.11", "3.12"]', '"3.12"')
    write(project, fleet, pyproject__toml=text, uv__lock=LOCK)
    code, said, _ = run(capsys, "--to", "2.15")
    assert code == 0
    assert "today: torch 2.14.1" in said
    assert "the manifest takes torch 2.15.0, the lock does not hold it yet" in said
    assert "then run `uv lock --upgrade-package torch`" in said
    assert "torch==2.15.0" not in said


def test_the_machines_of_ci_files_count(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".github" / "workflows").mkdir(parents=True)
    (project / ".github" / "workflows" / "tests.yml").write_text(
        "on: push\njobs:\n  unit:\n    runs-on: ubuntu-24.04\n    steps:\n"
        "      - uses: actions/setup-python@v5\n        with:\n          python-version: '3.10'\n"
        "      - run: pip install torch==2.14.1\n"
    )
    write(project, A100, requirements__txt="torch==2.14.1\n")
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    assert value["verdict"]["blocked"] == ["ubuntu-24.04"]
    assert value["breaks"][0]["python"] == ["3.10"]


def test_a_pin_that_an_earlier_command_has_met_moves_too(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "FROM python:3.12-slim\nRUN pip install torch==2.14.0\nRUN pip install torch==2.14.0 pip\n"
    )
    write(project, A100, Dockerfile=text)
    code, value = told(capsys, "--to", "2.15")
    assert code == 0
    pins = [(pin["line"], pin["to"]) for one in value["files"] for pin in one["pins"]]
    assert pins == [(2, ["2.15.0"]), (3, ["2.15.0"])]
    assert "an earlier command installs its torch" in value["files"][1]["advice"]
    assert value["diffs"][0]["diff"].count("\n+") == 2  # the name of the file, and the first line


def test_without_a_fleet_it_says_what_can_be_said(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "", requirements__txt=CU126 + "torch==2.14.1+cu126\n")
    code, said, _ = run(capsys, "--isolated", "--to", "2.15")
    assert code == 1
    assert "driver 580.65.06 or newer" in said
    assert "cu126 holds torch 2.6.0 to 2.14.1, not 2.15.0 [published]" in said
    assert "torchpin init" in said
    assert "not known for your machines: no fleet is declared" in said
    code, value = told(capsys, "--isolated", "--to", "2.15")
    assert (value["groups"], value["fleet"]) == ([], None)
    assert value["facts"]


def test_a_release_that_the_catalog_has_not_seen(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, A100, requirements__txt="torch==2.14.1\n")
    code, value = told(capsys, "--to", "9.1")
    assert code == 2
    assert value["to"]["known"] is False
    assert value["verdict"]["status"] == "unknown"
    assert "catalog refresh" in value["verdict"]["text"]
    assert value["groups"][0]["last_safe"]["version"] == "2.15.0"
    code, said, _ = run(capsys, "--to", "9.1")
    assert (code, said) == (
        2,
        "torch 9.1: not known: the newest release in the catalog is 2.15.0; "
        "`torchpin catalog refresh` reads what is published now.\n",
    )
    code, said, _ = run(capsys, "--to", "9.1", "--output-format", "markdown")
    assert (code, said.count("\n")) == (2, 1)


@pytest.mark.parametrize("word", ["2.13.7", "newest", "2", "cu126"])
def test_what_is_no_release_is_wrong_usage(
    word: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, wrong = run(capsys, "--to", word)
    assert (code, said) == (2, "")
    assert f"--to {word}: there is no such release of torch" in wrong


def test_the_release_must_be_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, wrong = run(capsys)
    assert code == 2
    assert "--to" in wrong


def test_an_index_of_which_it_is_not_known(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cpu = "--index-url https://download.pytorch.org/whl/cpu\ntorch==2.14.1\n"
    (project / "requirements-cpu.txt").write_text(cpu)
    write(project, '[fleet.ci]\ngpus = []\npython = "3.12"\n')
    code, value = told(capsys, "--to", "2.15")
    assert code == 1
    assert value["verdict"]["text"].startswith("not known for requirements-cpu.txt")
    assert value["breaks"] == []
    assert not value["diffs"]


def test_markdown_is_one_comment(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, V100 + A100, requirements__txt=CU126 + "torch==2.14.1+cu126\n")
    code, said, _ = run(capsys, "--to", "2.15", "--output-format", "markdown")
    assert code == 1
    assert said.startswith("### torch 2.15.0: not for old; for new safe after 1 change\n")
    table = [line for line in said.splitlines() if line.startswith("|")]
    assert len(table) == 4
    assert len({line.count("|") for line in table}) == 1
    assert "| old | Tesla V100 | 3.11 | does not run | 2.14.1\\+cu126" in said


def test_secrets_and_marks_do_not_get_out(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "--extra-index-url https://me:s3cret@mirror.example/whl/cu126\n"
        "torch==2.14.1+cu126  # @someone\n"
    )
    (project / "requirements-|x.txt").write_text(text)
    write(project, V100 + A100)
    for kind in ("text", "markdown", "json"):
        code, said, err = run(capsys, "--to", "2.15", "--output-format", kind)
        assert code == 1
        assert "s3cret" not in said + err
    _, said, _ = run(capsys, "--to", "2.15", "--output-format", "markdown")
    assert "requirements\\-\\|x.txt" in said


def test_as_a_process(tmp_path: Path) -> None:
    write(tmp_path, A100, requirements__txt="torch==2.14.1\n")
    command = [sys.executable, "-m", "torchpin", "upgrade", "--to", "2.15", "requirements.txt"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "safe now (1 pin moves)" in done.stdout
    given = subprocess.run(
        [*command[:-1], "-"],
        cwd=tmp_path,
        input="torch<2.15\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert given.returncode == 0
    assert "requirements.txt:1: torch <2.15 -> 2.15.0" in given.stdout


def test_a_label_is_no_part_of_a_release(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no 2.15.0+cu126: nothing may be told of it as if there were."""
    code, said, wrong = run(capsys, "--to", "2.15.0+cu126")
    assert (code, said) == (2, "")
    assert "--to 2.15.0+cu126: the channel follows from the fleet\n  write 2.15.0" in wrong


def test_what_is_not_known_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build whose kernels nobody has read may run: that is why, and it is told."""
    monkeypatch.chdir(tmp_path)
    old = ("--gpu", "T4", "--driver", "470.57.02", "--python", "3.11")
    code, said, _ = run(capsys, "--to", "2.7.1", *old)
    assert code == 1
    assert "command-line (T4, Python 3.11): runs: torch 2.7.1+cu118 [inferred]\n" in said
    assert said.endswith("torch 2.7.1: not known for command-line.\n")
    assert "torch 2.7.1+cu118 is thought to hold kernels for sm_37, " in said


CPU_ONLY = '[fleet.ci]\ngpus = []\npython = "3.10"\n'
CPU_INDEX = "--index-url https://download.pytorch.org/whl/cpu\n"


def test_what_is_told_is_told_of_the_index_that_the_files_name(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, CPU_ONLY, requirements__txt=CPU_INDEX + "torch==2.14.1\n")
    _, said, _ = run(capsys, "--to", "2.15")
    assert "last safe: torch 2.14.1+cpu [" in said
    assert "python: ci (Python 3.10): torch 2.15.0+cpu requires Python >=3.11" in said
    assert "PyPI" not in said


def test_a_group_is_not_safe_while_its_index_is_not_known(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        project,
        CPU_ONLY.replace("3.10", "3.11"),
        requirements__txt=CPU_INDEX + "torch==2.14.1\n",
    )
    code, said, _ = run(capsys, "--to", "2.15")
    assert code == 1
    assert "ci (CPU, Python 3.11): runs: torch 2.15.0 (PyPI, cu132) [measured]\n" in said
    assert "    from cpu, the index of its files: not known\n" in said
    assert said.endswith("torch 2.15.0 (2.15): not known for requirements.txt.\n")
    _, said, _ = run(capsys, "--to", "2.15", "--output-format", "markdown")
    assert r"\[measured\]; from cpu, the index of its files: not known |" in said


MACHINES = """\
on: push
jobs:
  test:
    runs-on: ${{ matrix.os }}
    strategy:
      matrix:
        python: ["3.10", "3.11", "3.12"]
        os: [ubuntu-24.04, ubuntu-22.04, macos-14, windows-2022]
    steps:
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}"}
      - run: pip install torch==2.7.0
      - run: pip install -r requirements.txt
  more:
    runs-on: ubuntu-24.04
    container: python:3.11
    steps:
      - run: pip install torch==2.6.0
"""


@pytest.fixture
def machines(project: Path) -> Path:
    path = project / ".github" / "workflows" / "ci.yml"
    path.parent.mkdir(parents=True)
    path.write_text(MACHINES)
    (project / "requirements.txt").write_text("torch==2.14.1\n")
    return project


def test_machines_of_which_the_same_is_said_stand_in_one_row(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said, _ = run(capsys, "--to", "2.15")
    heads = [line.strip() for line in said.splitlines() if line.startswith("  ") and "(CPU" in line]
    assert heads == [
        "ubuntu-24.04, ubuntu-22.04 (CPU, Python 3.10): does not run",
        "macos-14, windows-2022 (CPU, Python 3.10): does not run",
        "ubuntu-24.04 (CPU, Python 3.11 3.12): runs: torch 2.15.0 (PyPI, cu132) [measured]",
        "ubuntu-22.04 (CPU, Python 3.11 3.12): runs: torch 2.15.0 (PyPI, cu132) [measured]",
        "macos-14, windows-2022 (CPU, Python 3.11 3.12): runs: torch 2.15.0 (PyPI, cpu) [measured]",
    ]
    assert (
        "    today: torch 2.7.0 (PyPI, cu126) [measured], torch 2.14.1 (PyPI, cu130) [measured], "
        "torch 2.6.0 (PyPI, cu124) [measured] (Python 3.11)\n"
    ) in said
    assert said.count("  python: ") == 2
    assert "  python: macos-14, windows-2022 (Python 3.10): " in said


def test_a_line_that_cells_of_a_matrix_share_moves_once(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said, _ = run(capsys, "--to", "2.15")
    assert said.count("ci.yml:12: torch ==2.7.0 -> 2.15.0\n") == 1
    assert said.count("requirements.txt:1: torch ==2.14.1 -> 2.15.0\n") == 1
    assert "(3 pins move)" in said
    _, said, _ = run(capsys, "--to", "2.15", "--output-format", "markdown")
    assert said.count("- line 12: torch ==2.7.0") == 1
    assert said.count("- requirements.txt, line 1: torch ==2.14.1") == 1
