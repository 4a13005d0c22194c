"""CI files and commands through all stages: what public files have shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.engine import Options, check, fix
from torchpin.fleet.profile import fleet_from_options

FLEET = fleet_from_options(
    gpus=("Tesla V100",), driver="550.54.15", python="3.11", platform="linux-x86_64", glibc=None
)


def codes(folder: Path, name: str, text: str) -> list[tuple[str, str]]:
    """Return severity and code of what is found in one file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    found = check(Options((str(path),), isolated=True), FLEET).findings
    return [(one.severity, one.code) for one in found]


def test_values_that_are_not_known_stop_nothing(tmp_path: Path) -> None:
    text = (
        "pip install torch==$1\npip install 'torch>=2'\npip install dist/*.whl app-*.whl\n"
        "pip install nni-$2-py3-none-any.whl\n"
    )
    assert not [one for one in codes(tmp_path, "a.sh", text) if one[0] == "error"]
    action = (
        "inputs: {torch: {required: true}, page: {required: true}}\nruns:\n  steps:\n"
        "    - run: pip install torch==${{ inputs.torch }} -f "
        "https://download.pytorch.org/whl/torch_stable.html\n"
    )
    assert ("warning", "TP402") in codes(tmp_path, "action.yml", action)


def test_a_companion_that_takes_any_torch_replaces_none(tmp_path: Path) -> None:
    text = "pip install torch==2.4.0\npip install torchtext==0.6.0\n"
    assert "TP702" not in [code for _, code in codes(tmp_path, "a.sh", text)]
    text = "pip install torch==2.4.0\npip install torchvision\n"
    assert "TP702" in [code for _, code in codes(tmp_path, "b.sh", text)]


def test_labels_of_other_builds_make_no_mismatch(tmp_path: Path) -> None:
    text = (
        "pip install torch==1.10.0+cu102 torchvision==0.11.0+cu102 "
        "-f https://download.pytorch.org/whl/torch_stable.html\n"
    )
    assert "TP301" not in [code for _, code in codes(tmp_path, "a.sh", text)]


WORKFLOW = """\
jobs:
  unit:
    runs-on: {runner}
    steps:
      - uses: actions/setup-python@v5
        with: {{python-version: "{python}"}}
      - run: pip install torch=={torch}
"""


@pytest.mark.parametrize(
    ("runner", "python", "torch", "expected"),
    [
        # No GPU there: the fleet's does not matter.
        ("ubuntu-latest", "3.11", "2.14.1", [("info", "TP206")]),
        ("ubuntu-latest", "3.9", "2.14.1", [("error", "TP102")]),
        ("windows-2022", "3.11", "2.14.1", []),
        ("macos-13", "3.11", "2.14.1", [("error", "TP103")]),
        ("macos-14", "3.11", "2.14.1", []),
        # It may be one of the fleet, or not.
        ("[self-hosted, gpu]", "3.11", "2.14.1", [("warning", "TP201"), ("warning", "TP203")]),
    ],
)
def test_the_machine_of_a_job_is_judged(
    tmp_path: Path, runner: str, python: str, torch: str, expected: list[tuple[str, str]]
) -> None:
    text = WORKFLOW.format(runner=runner, python=python, torch=torch)
    found = codes(tmp_path, ".github/workflows/ci.yml", text)
    assert [one for one in found if one[1] not in ("TP601", "TP602")] == expected


def fixed(folder: Path, name: str, text: str) -> str:
    """Return a file after fixing; fixing again must change nothing."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    options = Options((str(path),), isolated=True, unsafe_fixes=True)
    for _, data in fix(options, FLEET).changes:
        path.write_bytes(data)
    assert fix(options, FLEET).changes == ()
    return path.read_text()


MATRIX = """\
env: {CHANNEL: cu124}  # kept
jobs:
  unit:
    strategy: {matrix: {torch: [ VERSIONS ]}}
    steps:
      - run: |
          pip install \\
            torch==${{ matrix.torch }} --index-url https://download.pytorch.org/whl/$CHANNEL
"""


def test_variables_are_mended_in_place(tmp_path: Path) -> None:
    text = MATRIX.replace("VERSIONS", "'2.7.0'")
    name = ".github/workflows/ci.yml"
    assert fixed(tmp_path, name, text) == text.replace("CHANNEL: cu124", "CHANNEL: cu126")
    text = text.replace("'2.7.0'", "'2.4.9'")
    assert fixed(tmp_path, name, text) == text.replace("2.4.9", "2.4.1")


def test_a_line_that_cells_share_is_not_mended_for_one_of_them(tmp_path: Path) -> None:
    text = MATRIX.replace("VERSIONS", "'2.4.0', '2.7.0'")
    assert fixed(tmp_path, ".github/workflows/ci.yml", text) == text
    text = text.replace("2.7.0", "2.4.9")
    after = text.replace("'2.4.9'", "'2.4.1'")
    assert fixed(tmp_path, ".github/workflows/ci.yml", text) == after


@pytest.mark.parametrize(
    "text",
    [
        "jobs:\r\n  a:\r\n    steps:\r\n      - run: |\r\n          pip install \\\r\n"
        "            torch==2.7.9\r\n",
        '\ufeffjobs: {a: {steps: [{run: "pip install \\"torch==2.7.9\\""}]}}',
        "jobs:\n  a:\n    steps:\n    - run: >-\n        pip install\n        torch==2.7.9\n\n"
        "        # é\n",
    ],
)
def test_every_other_byte_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".github" / "workflows" / "ci.yml"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    options = Options((str(path),), isolated=True, unsafe_fixes=True)
    ((_, data),) = fix(options, None).changes
    assert data == text.replace("2.7.9", "2.7.1").encode()


def test_projects_inside_of_a_project_are_compared_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "requirements.txt": "torch==2.7.1\n",
        "docker/Dockerfile": "FROM python:3.11\nRUN pip install torch==2.7.0\n",
        "services/api/requirements.txt": "torch==2.5.1\n",
        "services/api/docker/Dockerfile": "FROM python:3.11\nRUN pip install torch==2.5.1\n",
        ".github/workflows/unit.yml": "jobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n"
        "      - run: pip install torch==2.7.1 --index-url https://download.pytorch.org/whl/cpu\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    found = check(Options((".",), select=("TP505",), isolated=True), FLEET).findings
    assert [one.path for one in found] == ["docker/Dockerfile"]
    assert "2.7.1 in requirements.txt" in found[0].message
    assert any("image python:3.11" in ground.text for ground in found[0].because)


def test_the_python_of_a_job_that_tells_none_is_no_ground_of_an_error(tmp_path: Path) -> None:
    install = "{run: pip install torch==2.0.0}"
    setup = "{uses: actions/setup-python@v5, with: {python-version: '3.12'}}"
    text = (
        f"jobs: {{a: {{runs-on: ubuntu-24.04, steps: [{install}]}},\n"
        f"  b: {{runs-on: ubuntu-24.04, steps: [{setup}, {install}]}}}}\n"
    )
    fleet = fleet_from_options(
        gpus=("A100",), driver="580.82.07", python="3.12", platform="linux-x86_64", glibc=None
    )
    path = tmp_path / ".github" / "workflows" / "a.yml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    found = check(Options((str(path),), isolated=True), fleet).findings
    assert [one.severity for one in found if one.code == "TP102"] == ["warning", "error"]


def test_uv_may_be_told_to_look_at_every_index(tmp_path: Path) -> None:
    line = (
        "uv pip install --system --index-url https://download.pytorch.org/whl/cu124 "
        "--extra-index-url https://download.pytorch.org/whl/cu118 {} torch==2.6.0+cu124"
    )
    errors = {}
    for option in ("", "--index-strategy unsafe-best-match", "--index-strategy first-index"):
        found = codes(tmp_path, "a.sh", f"{line.format(option)}\n")
        errors[option] = [code for severity, code in found if severity == "error"]
    assert errors == {
        "": ["TP105"],
        "--index-strategy unsafe-best-match": [],
        "--index-strategy first-index": ["TP105"],
    }
    found = codes(tmp_path, "b.sh", f"UV_INDEX_STRATEGY=unsafe-best-match {line.format('')}\n")
    assert not [one for one in found if one[0] == "error"]


def test_a_list_that_cells_install_from_other_indexes_is_not_mended_for_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text(
        "a:\n  parallel: {matrix: [{CH: [cu118, cu126]}]}\n  script:\n"
        "    - pip install -r requirements.txt --index-url"
        " https://download.pytorch.org/whl/$CH\n"
    )
    listed = tmp_path / "requirements.txt"
    listed.write_text("torch==2.7.3\n")
    result = fix(Options((str(path),), isolated=True, unsafe_fixes=True), FLEET)
    assert not result.changes


def test_a_script_for_macos_is_not_held_against_linux(tmp_path: Path) -> None:
    line = "pip install torch==2.2.1 --index-url https://download.pytorch.org/whl/cpu\n"
    assert ("error", "TP205") in codes(tmp_path, "install.sh", line)
    assert codes(tmp_path, "install_mac.sh", line) == []
    assert ("error", "TP205") in codes(tmp_path, "machine.sh", line)


def test_a_pin_that_cells_share_is_not_added_for_one_of_them(tmp_path: Path) -> None:
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text(
        "a:\n  image: python:3.12\n  parallel: {matrix: [{TORCH: ['2.0.0', '2.3.1', '2.4.1']}]}\n"
        "  script:\n    - pip install torch==$TORCH torchvision"
        " --index-url https://download.pytorch.org/whl/cu118\n"
    )
    result = fix(Options((str(path),), isolated=True, unsafe_fixes=True), FLEET)
    text = path.read_text()
    for document, data in result.changes:
        text = data.decode(document.encoding)
    assert "torchvision --index-url" in text
