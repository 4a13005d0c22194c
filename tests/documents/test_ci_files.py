"""Files of CI systems and compose files: what their jobs install, and where it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import effort_below

from torchpin.documents.atoms import Atom, text_of
from torchpin.documents.azure_pipelines import read_azure_pipelines
from torchpin.documents.base import Document, Span
from torchpin.documents.ci_expressions import Scope, evaluate, holds, substituted
from torchpin.documents.ci_matrix import github_cells
from torchpin.documents.circleci import read_circleci
from torchpin.documents.compose import read_compose
from torchpin.documents.github_workflow import read_github_workflow
from torchpin.documents.gitlab_ci import read_gitlab_ci
from torchpin.documents.kinds import kind_of
from torchpin.documents.loader import load
from torchpin.documents.parts import Part
from torchpin.documents.yaml_scripts import hosted, word_of
from torchpin.documents.yaml_spans import scan_yaml

Read = Callable[[str, bytes], Document]
READERS: dict[str, Read] = {
    ".github/workflows/ci.yml": read_github_workflow,
    ".gitlab-ci.yml": read_gitlab_ci,
    ".circleci/config.yml": read_circleci,
    "azure-pipelines.yml": read_azure_pipelines,
    "compose.yaml": read_compose,
}


def read(path: str, text: str) -> Document:
    return READERS[path](path, text.encode())


def asked(part: Part) -> list[str]:
    """Return what a part asks for, name and specifier."""
    return [f"{one.name}{one.specifier}" for one in part.document.declarations]


def by_name(document: Document) -> dict[str, list[str]]:
    return {part.name: asked(part) for part in document.parts}


def home(part: Part, name: str) -> str:
    """Return the text at the one literal that decides a variable's value."""
    for _, word in part.words:
        for atom in word:
            if atom.name == name and atom.home is not None:
                return part.document.text[slice(*atom.home)]
    return ""


# -- values of scalars


@pytest.mark.parametrize(
    "yaml",
    [
        "a: pip install torch==2.4.0",
        "a: |\n  pip install -U pip\n\n  pip install \\\n    torch==2.4.0\n",
        "a: |+2\n    pip install torch==2.4.0\n\n\n",
        "a: >-\n  pip install\n  torch==2.4.0\n\n  pytest\n",
        "a: 'it''s\n  pip install torch==2.4.0'",
        'a: "pip install \\"torch==2.4.0\\" \\\n  --pre\\n"',
        "a: pip install\n  torch==2.4.0\n  numpy",
        "a: |\r\n  pip install x\r\n  pip install torch==2.4.0\r\n",
    ],
)
def test_words_of_scalars_stand_where_they_are_written(yaml: str) -> None:
    root = scan_yaml(yaml).root
    node = root.get("a") if root is not None else None
    assert node is not None
    word = word_of(yaml, node)
    assert text_of(word) == node.value
    for atom in word:
        if atom.plain:
            assert yaml[atom.start : atom.end] == atom.value
    torch = node.value.find("torch==2.4.0")
    if torch >= 0:
        whole = "".join(one.value for one in word if one.plain)
        assert "torch==2.4.0" in whole


@given(
    st.text(alphabet="ab'\"\\ \n\t:#-|>{}$1é", max_size=40),
    st.sampled_from(["|", ">", "|-", ">+", "'", '"', ""]),
)
@settings(max_examples=300, deadline=None)
def test_any_scalar_is_followed_or_given_up(inside: str, style: str) -> None:
    if style[:1] in ("|", ">"):
        body = "\n".join(f"  {line}" for line in inside.split("\n"))
        text = f"a: {style}\n{body}\n"
    else:
        text = f"a: {style}{inside}{style}\n"
    root = scan_yaml(text).root
    node = root.get("a") if root is not None else None
    if node is None or node.kind != "scalar":
        return
    word = word_of(text, node)
    assert text_of(word) == node.value
    for atom in word:
        assert 0 <= atom.start <= atom.end <= len(text)
        assert not atom.plain or text[atom.start : atom.end] == atom.value


# -- expressions and matrices


def words(**names: str) -> dict[str, tuple[Atom, ...]]:
    return {key.replace("__", "."): (Atom(value, 0, 0, False),) for key, value in names.items()}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("matrix.torch", "2.4.0"),
        ("matrix['torch']", "2.4.0"),
        ("matrix.none", ""),
        ("matrix.none || '1.0'", "1.0"),
        ("matrix.os == 'Linux' && 'cpu' || 'cu126'", "cpu"),
        ("matrix.os != 'linux' && 'cpu' || 'cu126'", "cu126"),
        ("startsWith(matrix.torch, '2.') && 'new'", "new"),
        ("github.event_name == 'push'", None),
        ("github.sha && ''", ""),
        ("secrets.X || 'a'", None),
        ("(matrix.torch", None),
        ("not(eq(matrix.os, 'linux'))", "false"),
        ("!contains(matrix.os, 'win')", "true"),
        ("matrix.torch >= 2", None),
        ("'it''s'", "it's"),
    ],
)
def test_expressions(text: str, value: str | None) -> None:
    scope = Scope(words(matrix__torch="2.4.0", matrix__os="linux"), ("matrix.",))
    found = evaluate((Atom(text, 0, len(text), True),), scope)
    assert (None if found is None else text_of(found)) == value


def test_unknown_values_are_stand_ins_with_their_place() -> None:
    text = "torch==${{ steps.x.outputs.version }}"
    word = substituted((Atom(text, 0, len(text), True),), Scope({}))
    assert text_of(word) == "torch==${VERSION}"
    assert not word[-1].known
    assert text[word[-1].start : word[-1].end] == "${{ steps.x.outputs.version }}"
    assert holds((Atom("${{ always() }}", 0, 0, False),), Scope({})) is True


def cells(text: str, *used: str) -> list[dict[str, str]]:
    root = scan_yaml(text).root
    found = github_cells(text, root, frozenset(used))
    assert found is not None
    return [{key: text_of(word) for key, word in cell.items()} for cell in found]


def test_matrix_includes_and_excludes_as_github_does() -> None:
    # The example of GitHub's own documentation.
    text = """\
fruit: [apple, pear]
animal: [cat, dog]
include:
  - color: green
  - color: pink
    animal: cat
  - fruit: apple
    shape: circle
  - fruit: banana
  - fruit: banana
    animal: cat
"""
    assert cells(text, "fruit", "animal", "color", "shape") == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]


def test_matrix_is_bounded_and_told_apart_by_what_is_used() -> None:
    many = ", ".join(str(number) for number in range(100))
    text = f"a: [{many}]\nb: [{many}]\nc: [{many}]\nd: [{many}]\n"
    with effort_below(20):
        assert len(cells(text, "a", "b", "c", "d")) == 256
    assert cells(text, "b")[:2] == [{"b": "0"}, {"b": "1"}]
    assert cells("t: [2.10, '2.10']\n", "t") == [{"t": "2.1"}, {"t": "2.10"}]
    assert github_cells("x", scan_yaml("a: ${{ fromJSON(x) }}").root, frozenset("a")) is None


# -- readers

WORKFLOW = """\
on:
  workflow_dispatch:
    inputs:
      vision: {default: '0.19.0'}
env: {CHANNEL: cu121}
jobs:
  unit:
    runs-on: ${{ matrix.os }}
    strategy:
      matrix:
        os: [ubuntu-22.04, macos-14]
        python: ['3.10']
        torch: ['2.4.0']
        include:
          - {os: windows-2022, python: '3.11', torch: 2.5.1}
    steps:
      - uses: actions/setup-python@v5
        with: {python-version: '${{ matrix.python }}'}
      - run: pip install torch==${{ matrix.torch }} torchvision==${{ inputs.vision }}
      - if: runner.os == 'Windows'
        run: |
          pip install `
            torchaudio==2.5.1
          python x.py
      - if: github.ref == 'refs/heads/main'
        run: pip install vllm
  gpu:
    runs-on: [self-hosted, gpu]
    container: nvidia/cuda:12.1.1-runtime-ubuntu22.04
    env: {TORCH: 2.4.0}
    steps:
      - run: >
          pip install torch==$TORCH
          --index-url https://download.pytorch.org/whl/${{ env.CHANNEL }}
"""


def test_workflow_cells_are_parts_with_python_and_machine() -> None:
    document = read(".github/workflows/ci.yml", WORKFLOW)
    assert by_name(document) == {
        "job unit (ubuntu-22.04, 3.10, 2.4.0), line 19": ["torch==2.4.0", "torchvision==0.19.0"],
        "job unit (ubuntu-22.04, 3.10, 2.4.0), line 26": ["vllm"],
        "job unit (macos-14, 3.10, 2.4.0), line 19": ["torch==2.4.0", "torchvision==0.19.0"],
        "job unit (macos-14, 3.10, 2.4.0), line 26": ["vllm"],
        "job unit (windows-2022, 3.11, 2.5.1), line 19": ["torch==2.5.1", "torchvision==0.19.0"],
        "job unit (windows-2022, 3.11, 2.5.1), line 22": ["torchaudio==2.5.1"],
        "job unit (windows-2022, 3.11, 2.5.1), line 26": ["vllm"],
        "job gpu, line 33": ["torch==2.4.0"],
    }
    first, maybe, *_, gpu = document.parts
    assert (first.python, first.platform) == ("3.10", "linux-x86_64")
    assert first.runner is not None and first.runner.reference == "ubuntu-22.04"
    assert first.uncertain is None
    assert maybe.uncertain is not None and "github.ref" in maybe.uncertain
    assert gpu.runner is None and gpu.elsewhere is not None
    assert gpu.image is not None and gpu.image.reference.startswith("nvidia/cuda:12.1.1")
    assert gpu.document.indexes[0].url == "https://download.pytorch.org/whl/cu121"
    assert home(gpu, "TORCH") == "2.4.0"
    assert home(first, "inputs.vision") == "0.19.0"
    assert home(first, "matrix.torch") == ""  # include speaks of the same key
    windows = document.parts[4]
    assert home(windows, "matrix.torch") == "2.5.1"


def test_composite_action_and_broken_workflow() -> None:
    action = READERS[".github/workflows/ci.yml"](
        "action.yml",
        b"inputs:\n  torch: {default: 2.4.0}\nruns:\n  using: composite\n  steps:\n"
        b"    - run: pip install torch==${{ inputs.torch }}\n      shell: bash\n",
    )
    assert by_name(action) == {"action, line 6": ["torch==2.4.0"]}
    broken = read(".github/workflows/ci.yml", "jobs: [\nrun: pip install torch")
    assert [one.code for one in broken.problems] == ["yaml"]


def test_gitlab_extends_references_and_variables() -> None:
    document = read(
        ".gitlab-ci.yml",
        """\
variables: {TORCH: '2.4.0', URL: 'https://download.pytorch.org/whl/$CH', CH: cu118}
.base:
  image: {name: 'python:3.11'}
  before_script: [pip install -U pip]
  script: [pip install numpy]
.more: {script: ['pip install torch==$TORCH --index-url $URL']}
unit:
  extends: .base
  tags: [saas-linux-small-amd64]
  parallel:
    matrix: [{TORCH: ['2.4.0', '2.5.1']}]
  script:
    - export X=1
    - !reference [.more, script]
""",
    )
    torch = [part for part in document.parts if "torch" in asked(part)[0]]
    assert [asked(part) for part in torch] == [["torch==2.4.0"], ["torch==2.5.1"]]
    assert [home(part, "TORCH") for part in torch] == ["2.4.0", "2.5.1"]
    assert torch[0].document.indexes[0].url == "https://download.pytorch.org/whl/cu118"
    assert torch[0].image is not None and torch[0].image.reference == "python:3.11"
    assert torch[0].runner is not None
    assert torch[0].environment != torch[1].environment


def test_circleci_commands_parameters_and_executors() -> None:
    document = read(
        ".circleci/config.yml",
        """\
executors:
  gpu: {machine: {image: linux-cuda-12}, resource_class: gpu.nvidia.medium}
commands:
  install:
    parameters: {torch: {type: string, default: '2.4.0'}}
    steps: [{run: {command: pip install torch==<< parameters.torch >>}}]
jobs:
  unit:
    parameters: {torch: {type: string}}
    docker: [{image: 'cimg/python:3.11'}]
    steps: [{install: {torch: << parameters.torch >>}}]
  gpu:
    executor: gpu
    steps: [checkout, install]
workflows:
  all:
    jobs:
      - unit: {matrix: {parameters: {torch: ['2.5.1', '2.6.0']}}}
      - gpu
""",
    )
    assert [asked(part) for part in document.parts] == [
        ["torch==2.5.1"],
        ["torch==2.6.0"],
        ["torch==2.4.0"],
    ]
    unit, _, gpu = document.parts
    assert (unit.python, unit.platform) == ("3.11", "linux-x86_64")
    assert unit.runner is not None and gpu.runner is None
    assert gpu.elsewhere is not None and "CircleCI" in gpu.elsewhere


def test_azure_variables_matrix_and_inserted_steps() -> None:
    document = read(
        "azure-pipelines.yml",
        """\
parameters: [{name: gpu, default: 'no'}]
variables: [{name: channel, value: cu118}]
pool: {vmImage: windows-2022}
strategy:
  matrix:
    a: {python.version: '3.10', torch: 2.4.0}
steps:
  - task: UsePythonVersion@0
    inputs: {versionSpec: $(python.version)}
  - script: pip install torch==$(torch) --index-url https://download.pytorch.org/whl/$(channel)
  - ${{ if eq(parameters.gpu, 'yes') }}:
      - bash: pip install torch==1.0.0
  - ${{ if ne(variables.x, 'yes') }}:
      - bash: pip install torchaudio==2.4.0
""",
    )
    assert [asked(part) for part in document.parts] == [["torch==2.4.0"], ["torchaudio==2.4.0"]]
    first, second = document.parts
    assert (first.python, first.platform) == ("3.10", "windows-x86_64")
    assert home(first, "torch") == "2.4.0"
    assert first.document.indexes[0].url.endswith("/cu118")
    assert first.uncertain is None and second.uncertain is not None


def test_compose_commands_and_build_arguments(tmp_path: Path) -> None:
    text = """\
services:
  app:
    build:
      context: .
      args: {TORCH: '2.5.1', CH: '${CH:-cu121}'}
  dev:
    image: python:3.11
    command: sh -c "pip install torch==2.4.0"
  list:
    image: python:3.11
    command: [pip, install, torch==2.4.0]
"""
    (tmp_path / "compose.yaml").write_text(text)
    (tmp_path / "Dockerfile").write_text(
        "FROM python:3.11\nARG TORCH=2.4.0\nARG CH=cpu\nRUN pip install torch==$TORCH "
        "--index-url https://download.pytorch.org/whl/$CH\nRUN pip install timm\n"
    )
    document = load(str(tmp_path / "compose.yaml"), {})
    dev, listed, app = document.parts
    assert asked(dev) == asked(listed) == ["torch==2.4.0"]
    assert asked(app) == ["torch==2.5.1"]
    assert text[slice(*app.document.declarations[0].span)] == "2.5.1"
    assert app.document.indexes[0].url.endswith("/cu121")
    assert text[slice(*app.document.indexes[0].span)] == "cu121"
    assert app.image is not None and app.image.reference == "python:3.11"


@pytest.mark.parametrize(
    ("label", "platform"),
    [
        ("ubuntu-latest", "linux-x86_64"),
        ("ubuntu-24.04-arm", "linux-aarch64"),
        ("windows-2022", "windows-x86_64"),
        ("windows-11-arm", "windows-arm64"),
        ("macos-13", "macos-x86_64"),
        ("macos-14", "macos-arm64"),
        ("macos-14-large", "macos-x86_64"),
        ("macos-13-xlarge", "macos-arm64"),
        ("macos-15-intel", "macos-x86_64"),
        ("macOS-latest", "macos-arm64"),
        ("ubuntu-gpu-t4", None),
        ("self-hosted", None),
        ("linux.4xlarge.nvidia.gpu", None),
    ],
)
def test_hosted_runners(label: str, platform: str | None) -> None:
    place = hosted(label, Span(0, 1))
    assert place.platform == platform
    assert (place.runner is not None) == (platform is not None)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".github/workflows/ci.yml", "github-workflow"),
        ("/a/.github/workflows/x.yaml", "github-workflow"),
        (".github/actions/setup/action.yml", "github-workflow"),
        ("action.yml", "github-workflow"),
        (".gitlab-ci.yml", "gitlab-ci"),
        (".gitlab/ci/gpu.yml", "gitlab-ci"),
        (".circleci/config.yml", "circleci"),
        ("ci/azure-pipelines-gpu.yml", "azure-pipelines"),
        (".azure-pipelines/jobs/a.yml", "azure-pipelines"),
        ("docker-compose.override.yml", "compose"),
        ("compose.yaml", "compose"),
        ("workflows/ci.yml", None),
        (".github/dependabot.yml", None),
        ("environment.yml", "environment.yml"),
        ("env311.yml", "environment.yml"),
        ("conda-gpu.yaml", "environment.yml"),
        ("conda-envs/gpu.yaml", "environment.yml"),
        ("envs/gpu.yaml", "environment.yml"),
        ("environments/py311.yml", "environment.yml"),
        ("myenv.yml", None),
    ],
)
def test_kinds_by_path(path: str, kind: str | None) -> None:
    assert kind_of(path) == kind


@pytest.mark.parametrize("path", sorted(READERS))
@given(data=st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_read(path: str, data: bytes) -> None:
    document = READERS[path](path, b"x: pip install torch\n" + data)
    assert document.path == path


VALUES = st.recursive(
    st.sampled_from(
        ["pip install torch==${{ matrix.a }}", "pip install $A", "x", "${{", "<< parameters.a >>"]
    ),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "jobs",
                        "steps",
                        "run",
                        "strategy",
                        "matrix",
                        "include",
                        "exclude",
                        "a",
                        "env",
                    ),
                    *("script", "extends", "variables", "parallel", "image", "tags", "default"),
                    *("parameters", "docker", "executor", "commands", "workflows", "with", "uses"),
                    *("stages", "pool", "vmImage", "services", "build", "args", "command", "<<"),
                ]
            ),
            below,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@pytest.mark.parametrize("path", sorted(READERS))
@given(value=st.dictionaries(st.sampled_from(["jobs", "a", "services", "steps"]), VALUES))
@settings(max_examples=60, deadline=None)
def test_any_shape_of_yaml_is_read(path: str, value: object) -> None:
    import yaml

    text = yaml.safe_dump({"note": "pip", "x": value} if value is None else value) + "# pip\n"
    document = READERS[path](path, text.encode())
    for part in document.parts:
        for one in part.document.declarations:
            assert 0 <= one.span.start <= one.span.end <= len(text)


def test_aliases_do_not_unfold_without_end() -> None:
    text = "# pip install\na0: &a0 {run: pip install torch, k: x}\n"
    for number in range(1, 30):
        last = f"*a{number - 1}"
        text += f"a{number}: &a{number} [{', '.join([last] * 10)}]\n"
    for number in range(1, 30):
        last = f"*m{number - 1}" if number > 1 else "*a0"
        text += f"m{number}: &m{number} {{<<: [{', '.join([last] * 10)}], j{number}: {last}}}\n"
    text += (
        "job: {<<: *m29, script: *a29, extends: [job]}\nvariables: *m29\n"
        "jobs: {j: {steps: *a29, strategy: {matrix: {a: *a29, include: [*m29]}}, env: *m29}}\n"
        "steps: *a29\nservices: {s: {command: *a29, environment: *m29}}\n"
    )
    for path, reader in READERS.items():
        with effort_below(30):
            reader(path, text.encode())


@pytest.mark.parametrize(
    "name",
    [
        *("setup.py", "noxfile.py", "a.py", "a.md", "Makefile.py", "GNUmakefile.json", "x.json"),
        *("Dockerfile.py", "Dockerfile.c", "my.Dockerfile.md", "x.containerfile.go"),
        *("app.dockerfile.cc", "Dockerfile-x.log", "requirements.md", "compose.json"),
    ],
)
@pytest.mark.parametrize("folder", ["", "a/b/", "requirements/"])
def test_the_quick_way_agrees_with_the_pattern(
    name: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = kind_of(folder + name)
    monkeypatch.setattr("torchpin.documents.kinds._OTHERS", ())
    assert quick == kind_of(folder + name)
