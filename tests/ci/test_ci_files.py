"""The action, the GitLab job and the container file: their shells are run, their shapes checked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
BASH = shutil.which("bash")
FLEET = '[fleet.old]\ngpus = ["Tesla V100"]\ndriver = "550.54.15"\npython = "3.11"\n'
PYTHON = """\
#!/bin/sh
# In place of the runner's Python: "-m venv DIR" makes DIR with torchpin in it.
mkdir -p "$3/bin"
printf '#!/bin/sh\\nprintf "%%s\\\\n" "$@" > "$LOG"\\n' > "$3/bin/python"
printf '#!/bin/sh\\nexec "$REAL" -m torchpin "$@"\\n' > "$3/bin/torchpin"
chmod +x "$3/bin/python" "$3/bin/torchpin"
"""

pytestmark = pytest.mark.skipif(BASH is None, reason="bash is not installed")


class Runner:
    """Runs the steps of the action as far as it uses what a runner offers."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.action: Any = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
        self.folder = folder
        python = folder / "temp" / "python3"
        python.parent.mkdir()
        python.write_text(PYTHON)
        python.chmod(0o755)
        self.inputs = {name: one["default"] for name, one in self.action["inputs"].items()}
        self.inputs.update({"python": str(python), **inputs})
        assert {*self.inputs} == {*self.action["inputs"]}
        self.outputs: dict[str, dict[str, str]] = {}
        self.said: dict[str, str] = {}
        self.code = 0
        for step in self.action["runs"]["steps"]:
            if self.code == 0 and self.wanted(step.get("if")):
                self.run(step)

    def value(self, expression: str) -> str:
        kind, name, *rest = expression.split(".")
        if kind == "inputs":
            return str(self.inputs[name])
        assert (kind, rest[0]) == ("steps", "outputs"), expression
        return self.outputs.get(name, {}).get(rest[1], "")

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda match: self.value(match[1]), str(text))

    def wanted(self, condition: str | None) -> bool:
        if condition is None:
            return True
        inner = condition.removeprefix("${{ ").removesuffix(" }}")
        filled = re.sub(r"[a-z]+(?:\.[a-z-]+)+", lambda match: repr(self.value(match[0])), inner)
        python = filled.replace("&&", "and").replace("||", "or")
        return bool(eval(python, {"__builtins__": {}}))

    def run(self, step: Any) -> None:
        if "uses" in step:
            self.said[step["uses"]] = self.filled(step["with"]["sarif_file"])
            return
        assert "${{" not in step["run"], "inputs reach a shell through its environment alone"
        output = self.folder / "temp" / "output"
        output.write_text("")
        done = subprocess.run(
            [str(BASH), "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "RUNNER_TEMP": str(self.folder / "temp"),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_ACTION_PATH": str(ROOT),
                "REAL": sys.executable,
                "LOG": str(self.folder / "temp" / "pip"),
                **{name: self.filled(text) for name, text in step.get("env", {}).items()},
            },
            timeout=120,
        )
        self.said[step.get("id", step["name"])] = done.stdout + done.stderr
        self.code = done.returncode
        found: dict[str, str] = {}
        for line in output.read_text().splitlines():
            name, mark, value = line.partition("=")
            assert mark and "<<" not in name, line
            found[name] = value
        self.outputs[step.get("id", step["name"])] = found


def project(folder: Path) -> Path:
    (folder / "torchpin.toml").write_text(FLEET)
    (folder / "requirements.txt").write_text("torch==2.14.1\n")
    return folder


def test_findings_fail_the_action_after_the_log_was_written(tmp_path: Path) -> None:
    ran = Runner(project(tmp_path), **{"sarif-file": "out put.sarif", "upload-sarif": "true"})
    assert ran.code == 1
    assert ran.outputs["check"]["exit-code"] == "1"
    assert "::error file=requirements.txt,line=1" in ran.said["check"]
    assert (tmp_path / "out put.sarif").read_text().startswith("{")
    assert ran.outputs["sarif"]["sarif-file"] == "out put.sarif"
    assert ran.said["github/codeql-action/upload-sarif@v4"] == "out put.sarif"
    assert (tmp_path / "temp" / "pip").read_text().splitlines()[-2:] == ["--", str(ROOT)]


def test_clean_files_pass(tmp_path: Path) -> None:
    (project(tmp_path) / "requirements.txt").write_text("torch==2.7.1\n")
    ran = Runner(tmp_path, version="0.1.0", args="--ignore\nTP6")
    assert (ran.code, ran.outputs["check"]) == (0, {"exit-code": "0"})
    assert (tmp_path / "temp" / "pip").read_text().splitlines()[-1] == "torchpin==0.1.0"
    assert "sarif" not in ran.outputs


@pytest.mark.parametrize(
    "name", ("a b", "$(touch owned)", "`touch owned`", "-x", "'; touch owned; '")
)
def test_inputs_are_words_and_no_commands(tmp_path: Path, name: str) -> None:
    folder = project(tmp_path) / name
    folder.mkdir()
    (folder / "requirements.txt").write_text("torch==2.14.1\n")
    ran = Runner(tmp_path, paths=f"{name}\n\n", format="json", config="torchpin.toml")
    assert ran.code == 1
    assert '"TP201"' in ran.said["check"]
    assert not (tmp_path / "owned").exists()


def test_a_block_of_yaml_for_one_value_is_that_value(tmp_path: Path) -> None:
    ends = "\nmore\nexit-code=0\n"
    inputs = {"config": "torchpin.toml\n", "format": "concise\n", "sarif-file": f"x.sarif{ends}"}
    ran = Runner(project(tmp_path), version=f"0.1.0{ends}", **inputs)
    assert (ran.code, ran.outputs["check"]) == (1, {"exit-code": "1"})
    assert "requirements.txt:1:1: error[TP201]" in ran.said["check"]
    assert ran.outputs["sarif"] == {"sarif-file": "x.sarif"}
    assert (tmp_path / "x.sarif").read_text().startswith("{")
    assert (tmp_path / "temp" / "pip").read_text().splitlines()[-1] == "torchpin==0.1.0"


def test_wrong_options_are_no_findings(tmp_path: Path) -> None:
    ran = Runner(project(tmp_path), args="--no-such", **{"sarif-file": "x.sarif"})
    assert (ran.code, ran.outputs["check"]["exit-code"]) == (2, "2")
    assert not (tmp_path / "x.sarif").exists()


def test_the_job_of_gitlab(tmp_path: Path) -> None:
    job: Any = yaml.safe_load((ROOT / "templates/torchpin.gitlab-ci.yml").read_text("utf-8"))
    job = job["torchpin"]
    place = project(tmp_path) / "made"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "torchpin").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m torchpin "$@"\n'
    )
    (place / "bin" / "torchpin").chmod(0o755)
    lines = "\n".join(["set -e", *job["script"]]).replace("/tmp/torchpin", str(place))
    done = subprocess.run(
        ["sh", "-c", lines],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, **job["variables"], "TORCHPIN_PATHS": "requirements.txt"},
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert "requirements.txt:1:1: error[TP201]" in done.stdout
    report = job["artifacts"]["reports"]["codequality"]
    assert '"check_name": "TP201"' in (tmp_path / report).read_text()


def test_shapes(tmp_path: Path) -> None:
    tool = Path(sys.executable).parent / "check-jsonschema"
    if not tool.exists():
        pytest.skip("check-jsonschema is not installed here; nox -s lint runs it")
    for name, file in (
        ("github-actions", "action.yml"),
        ("gitlab-ci", "templates/torchpin.gitlab-ci.yml"),
    ):
        subprocess.run([tool, "--builtin-schema", f"vendor.{name}", ROOT / file], check=True)


def test_shellcheck() -> None:
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("shellcheck is not installed")
    action: Any = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    for step in action["runs"]["steps"]:
        if "run" in step:
            subprocess.run([program, "-s", "bash", "-"], input=step["run"], text=True, check=True)


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Containerfile").read_text("utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [(word, rest) for word, rest in lines]


def test_the_container_file() -> None:
    found = instructions()
    words = [word for word, _ in found]
    last = len(words) - 1 - words[::-1].index("FROM")
    final = dict(found[last:])
    assert final["USER"] == "10001:10001"
    assert final["ENTRYPOINT"] == '["torchpin"]'
    (version,) = [rest for word, rest in found if word == "ARG"]
    assert re.fullmatch(r"PYTHON=3\.\d+\.\d+-slim-[a-z]+", version)
    admitted = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    ]
    for word, rest in found:
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists() and source.removeprefix("./") in admitted, source
    labels = " ".join(rest for word, rest in found if word == "LABEL")
    for name in ("title", "description", "licenses"):
        assert f"org.opencontainers.image.{name}=" in labels


def test_hadolint() -> None:
    program = os.environ.get("TORCHPIN_HADOLINT") or shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed")
    subprocess.run([program, ROOT / "Containerfile"], check=True)
