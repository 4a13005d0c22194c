"""What torchpin promises on real-world files, through the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from torchpin.cli.main import guarded

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CHANNELS = "https://download.pytorch.org/whl"
TWO = """
[fleet.volta]
gpus = ["Tesla V100"]
driver = "580.82.07"
python = "3.11"

[fleet.blackwell]
gpus = ["B200"]
driver = "580.82.07"
python = "3.11"
"""


class Project:
    """A folder with one requirements file, and the command line on it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.file = folder / "requirements.txt"
        self.capsys = capsys

    def run(self, command: str, *arguments: str) -> tuple[int, str, str]:
        """Return exit code, output and error output."""
        self.capsys.readouterr()
        code = guarded([command, *arguments, str(self.folder)])
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def check(self, text: str, *arguments: str) -> list[dict[str, Any]]:
        """Return the findings of ``text``."""
        self.file.write_text(text, "utf-8")
        code, out, err = self.run("check", "--output-format", "json", *arguments)
        assert code in (0, 1), err
        found: list[dict[str, Any]] = json.loads(out)["findings"]
        grave = [one for one in found if one["severity"] != "info"]
        assert code == (1 if grave else 0)
        return found

    def fix(self, *arguments: str) -> list[str]:
        """Fix twice, the second time without effect, and return the lines."""
        assert self.run("fix", "--unsafe-fixes", *arguments)[0] in (0, 1)
        first = self.file.read_bytes()
        assert self.run("fix", "--unsafe-fixes", *arguments)[0] in (0, 1)
        assert self.file.read_bytes() == first
        return first.decode("utf-8").splitlines()

    def clean(self, *arguments: str) -> bool:
        """Tell whether the file as it is now has no error and no warning."""
        return self.run("check", *arguments)[0] == 0


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    return Project(tmp_path, capsys)


def grave(findings: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return code and severity of what is more than information."""
    return [(one["code"], one["severity"]) for one in findings if one["severity"] != "info"]


def fleet(gpu: str, python: str = "3.11", *more: str) -> tuple[str, ...]:
    return ("--gpu", gpu, "--python", python, *more)


V100 = fleet("V100")


def test_the_guide_on_an_old_cluster(project: Project) -> None:
    shutil.copytree(EXAMPLES / "legacy-cluster", project.folder, dirs_exist_ok=True)
    text = project.file.read_text("utf-8")
    assert grave(project.check(text)) == [
        ("TP106", "error"),
        ("TP301", "error"),
        ("TP101", "error"),
    ]
    _, out, _ = project.run("check")
    assert "cu124 stopped at torch 2.6.0" in out
    assert "torchvision 0.19.0 requires torch==2.4.0" in out
    assert "torchaudio 2.14.0 was never published (the last is 2.11.1)" in out
    assert project.run("fix")[0] == 0  # all of it is safe
    fixed = project.file.read_text("utf-8")
    assert project.run("fix")[0] == 0
    assert project.file.read_text("utf-8") == fixed
    wanted = {
        "torch==2.14.0+cu126",
        "torchvision==0.29.0+cu126",
        "torchaudio==2.11.0+cu126",
        f"--extra-index-url {CHANNELS}/cu126",
    }
    assert wanted <= set(fixed.splitlines())
    assert "cu124" not in fixed
    assert project.clean()


def test_the_guides_cu128_index_silently_gives_2_11(project: Project) -> None:
    text = f"--index-url {CHANNELS}/cu128\ntorch\ntorchvision\ntorchaudio\n"
    findings = project.check(text, *V100)
    assert grave(findings) == [("TP501", "error")]
    told = {one["code"]: one["message"] for one in findings}
    assert "floats to torch 2.11.0+cu128" in told["TP501"]
    assert "Tesla V100" in told["TP501"]
    assert told["TP602"] == "channel cu128 ended with torch 2.11.0"
    project.fix(*V100)
    assert project.clean(*V100)


@pytest.mark.parametrize("gpu, last", [("V100", "2.10.0"), ("GTX 1080", "2.7.1")])
def test_bare_torch_names_the_last_that_runs(project: Project, gpu: str, last: str) -> None:
    (finding,) = [
        one for one in project.check("torch\n", *fleet(gpu)) if one["severity"] == "error"
    ]
    assert finding["code"] == "TP501"
    assert any(
        f"torch {last} (PyPI" in ground["text"] and "newest" in ground["text"]
        for ground in finding["because"]
    )


@pytest.mark.parametrize(
    "gpu, version, runs",
    [
        ("V100", "2.7.1", True),
        ("V100", "2.8.0", True),
        ("V100", "2.10.0", True),
        ("V100", "2.11.0", False),
        ("V100", "2.14.1", False),
        ("V100", "2.15.0", False),
        ("GTX 1080", "2.7.1", True),
        ("GTX 1080", "2.8.0", False),
        ("GTX 1080", "2.10.0", False),
        ("GTX 1080", "2.11.0", False),
    ],
)
def test_pypi_breaks_old_gpus_from_that_release_on(
    project: Project, gpu: str, version: str, runs: bool
) -> None:
    found = grave(project.check(f"torch=={version}\n", *fleet(gpu)))
    assert found == ([] if runs else [("TP201", "error")])


def test_2_15_on_python_3_10(project: Project) -> None:
    options = fleet("A100-SXM4-80GB", "3.10")
    assert grave(project.check("torch==2.15.0\n", *options)) == [("TP102", "error")]
    assert project.fix(*options) == ["torch==2.14.1"]
    assert project.clean(*options)


def test_2_15_on_python_3_10_and_a_v100(project: Project) -> None:
    options = fleet("V100", "3.10")
    assert ("TP102", "error") in grave(project.check("torch==2.15.0\n", *options))
    assert "torch==2.14.1+cu126" in project.fix(*options)
    assert project.clean(*options)


def test_one_build_for_v100_and_b200(project: Project) -> None:
    (project.folder / "torchpin.toml").write_text(TWO, "utf-8")
    project.file.write_text("torch\n", "utf-8")
    code, out, _ = project.run("resolve", "--policy", "newest", "--output-format", "json")
    plan = json.loads(out)
    assert code == 0
    assert [one["packages"] for one in plan["plans"]] == [{"torch": "2.10.0"}]
    assert plan["plans"][0]["index"] == "pypi"
    assert plan["plans"][0]["channel"] == "cu128"
    _, text, _ = project.run("resolve", "--policy", "newest")
    assert "2.10.0 is the last release of which one build serves all groups" in text


def test_the_split_for_v100_and_b200(project: Project) -> None:
    (project.folder / "torchpin.toml").write_text(TWO, "utf-8")
    project.file.write_text("torch>=2.11\n", "utf-8")
    _, out, _ = project.run("resolve", "--policy", "newest", "--output-format", "json")
    plans = {tuple(one["groups"]): one for one in json.loads(out)["plans"]}
    assert set(plans) == {("volta",), ("blackwell",)}
    assert plans["volta",]["packages"] == {"torch": "2.14.1+cu126"}
    assert plans["blackwell",]["channel"] in ("cu130", "cu132")


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_the_advice_of_torchs_own_warning_is_wrong(project: Project, client: str) -> None:
    options = (*V100, "--client", client)
    text = f"--index-url {CHANNELS}/cu126\ntorch==2.15.0\n"
    (finding,) = [one for one in project.check(text, *options) if one["severity"] != "info"]
    assert (finding["code"], finding["severity"]) == ("TP106", "error")
    assert finding["message"] == "cu126 stopped at torch 2.14.1: it has no torch 2.15.0"
    assert finding["line"] == 2
    assert [place["line"] for place in finding["related"]] == [1]
    assert "2.14.1" in finding["fix"]["message"]
    project.fix(*options)
    assert project.clean(*options)


def test_linalg_is_missing_on_a_t4(project: Project) -> None:
    (finding,) = [
        one for one in project.check("torch==2.13.0\n", *fleet("T4")) if one["severity"] != "info"
    ]
    assert (finding["code"], finding["severity"]) == ("TP208", "warning")
    assert "libtorch_cuda_linalg.so" in finding["message"]
    _, out, _ = project.run("show", "--output-format", "json", *fleet("T4"))
    assert [one["verdict"] for one in json.loads(out)["selections"]] == ["partly"]


AARCH64 = ("--platform", "linux-aarch64")


@pytest.mark.parametrize(
    "gpu, line, codes",
    [
        ("T4G", "torch==2.13.0", [("TP201", "error")]),
        ("GB10", "torch==2.13.0", []),
        ("Jetson AGX Thor", "torch==2.13.0", []),
        (
            "Jetson AGX Thor",
            f"torch==2.8.0+cu129 \n--extra-index-url {CHANNELS}/cu129",
            [("TP201", "error")],
        ),
    ],
)
def test_arm_machines(project: Project, gpu: str, line: str, codes: list[tuple[str, str]]) -> None:
    assert grave(project.check(line + "\n", *fleet(gpu, "3.12", *AARCH64))) == codes


def test_no_wheel_serves_a_t4g(project: Project) -> None:
    project.file.write_text("torch\n", "utf-8")
    _, out, _ = project.run("resolve", "--output-format", "json", *fleet("T4G", "3.12", *AARCH64))
    outcome = json.loads(out)
    assert outcome["plans"] == []
    assert len(outcome["unserved"]) == 1
    assert outcome["unserved"][0]["gpu"].startswith("T4G")


@pytest.mark.parametrize(
    "channel, compat, codes",
    [
        ("cu126", None, []),
        ("cu130", None, [("TP203", "error")]),
        ("cu130", "13.0", []),
    ],
)
def test_h100_with_driver_535(
    project: Project, channel: str, compat: str | None, codes: list[tuple[str, str]]
) -> None:
    (project.folder / "torchpin.toml").write_text(
        '[fleet.hopper]\ngpus = ["H100"]\ndriver = "535.183.06"\npython = "3.11"\n'
        + (f'cuda-compat = "{compat}"\n' if compat else ""),
        "utf-8",
    )
    text = f"torch==2.9.1+{channel}\n--extra-index-url {CHANNELS}/{channel}\n"
    assert grave(project.check(text)) == codes


@pytest.mark.parametrize("command", ["check", "fix", "show", "resolve"])
def test_a_contradictory_profile_stops_everything(project: Project, command: str) -> None:
    project.file.write_text("torch\n", "utf-8")
    (project.folder / "torchpin.toml").write_text(
        '[fleet.new]\ngpus = ["RTX 5090"]\ndriver = "535.183.06"\npython = "3.11"\n', "utf-8"
    )
    code, out, err = project.run(command)
    assert (code, out) == (2, "")
    assert "torchpin.toml" in err and "RTX 5090" in err and "570" in err
    assert project.file.read_text("utf-8") == "torch\n"


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.6.0a0+ecf3bae40a.nv25.1\n",
        "torch==2.9.1\n--index-url https://wheels.corp.example/simple\n",
        "torch==2.99.0\n",
        "torch @ https://wheels.corp.example/torch-2.9.1-cp311-cp311-linux_x86_64.whl\n",
    ],
)
def test_what_nobody_knows_is_never_red(project: Project, text: str) -> None:
    findings = project.check(text, *V100)
    assert grave(findings) == []
    assert [one["code"] for one in findings if one["code"] == "TP003"]
