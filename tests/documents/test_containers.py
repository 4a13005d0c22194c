"""Compose files and Dockerfiles: what is read from which file, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.documents.base import Document
from torchpin.documents.compose import read_compose
from torchpin.documents.discover import discover
from torchpin.documents.dockerfile import read_dockerfile
from torchpin.documents.kinds import KINDS
from torchpin.documents.loader import load
from torchpin.documents.parts import Part
from torchpin.engine import Options, check, fix
from torchpin.errors import TorchpinError
from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import fleet_from_options

CHANNELS = "https://download.pytorch.org/whl/"


def parts(text: str) -> tuple[Part, ...]:
    return read_dockerfile("Dockerfile", text.encode()).parts


def compose(text: str, **files: str) -> Document:
    def read(path: str) -> bytes:
        name = path.replace(".", "_").replace("/", "_")
        if name not in files:
            raise TorchpinError("does not exist", path=path)
        return files[name].encode()

    return read_compose("compose.yaml", text.encode(), read)


def torch_of(part: Part) -> str:
    return next(one.specifier for one in part.document.declarations if one.name == "torch")


def channels_of(part: Part) -> list[str]:
    return [one.url.rpartition("/")[2] for one in part.document.indexes]


@pytest.mark.parametrize(
    ("command", "installs"),
    [
        ("<<EOF", 1),
        ("<<-'EOF'", 1),
        ("bash <<EOF", 1),
        ("<<EOF sh", 1),
        ("<<EOF python3", 0),
        ("python3 <<EOF", 0),
        ("<<EOF cat > /notes", 0),
    ],
)
def test_whose_input_a_here_document_is(command: str, installs: int) -> None:
    text = f"FROM python:3.11\nRUN {command}\npip install torch==2.9.1\nEOF\nRUN true\n"
    assert len(parts(text)) == installs


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("/opt/venv/bin/pip", "/opt/venv/bin/python -m pip", True),
        ("/opt/venv/bin/pip", "pip", False),
        ("/usr/local/bin/pip", "pip", True),
        ("/usr/bin/python3 -m pip", "pip", True),
        ("/root/.local/bin/pip", "pip", True),
        ("/root/miniconda3/bin/pip", "pip", True),
        ("/opt/conda/envs/x/bin/pip", "conda run -n x pip", True),
        ("/opt/conda/envs/x/bin/pip", "pip", False),
        ("/app/env/bin/pip", "/app/.venv-gpu/bin/pip", False),
    ],
)
def test_environment_of_a_program_by_its_path(first: str, second: str, together: bool) -> None:
    one, two = parts(
        f"FROM python:3.11\nRUN {first} install torch==2.9.1\nRUN {second} install torchaudio\n"
    )
    assert (one.environment == two.environment) is together


@pytest.mark.parametrize(
    ("named", "together"),
    [
        ("uv pip install --python /opt/venv/bin/python", True),
        ("uv pip install -p /opt/venv", True),
        ("uv pip install --python .venv", False),
        ("pip --python /opt/venv/bin/python3 install", True),
        ("uv pip install --python 3.12", False),
        ("uv pip install --python /usr/bin/python3", False),
    ],
)
def test_environment_that_an_option_names(named: str, together: bool) -> None:
    one, two = parts(
        f"FROM python:3.11\nRUN {named} torch==2.9.1\n"
        "ENV VIRTUAL_ENV=/opt/venv\nRUN uv pip install torchaudio\n"
    )
    assert (one.environment == two.environment) is together


@pytest.mark.parametrize(
    "other", ["uv pip install --python .venv", ".venv/bin/pip install", "uv pip install"]
)
def test_environment_that_uv_finds_by_itself(other: str) -> None:
    one, two = parts(
        f"FROM python:3.11\nRUN {other} torch==2.9.1\n"
        "RUN . .venv/bin/activate && uv pip install torchaudio\n"
    )
    assert one.environment == two.environment


def test_environment_of_a_program_is_that_of_the_path_of_the_image() -> None:
    one, two = parts(
        "FROM python:3.11\nRUN /opt/venv/bin/pip install torch==2.9.1\n"
        "ENV PATH=/opt/venv/bin:$PATH\nRUN pip install torchaudio\n"
    )
    assert one.environment == two.environment


@pytest.mark.parametrize(
    ("copied", "found"),
    [
        ("/opt/venv /opt/venv", True),
        ("/opt /opt", True),
        ("/opt/venv /venv", False),
        ("/app /app", False),
    ],
)
def test_copied_environment(copied: str, found: bool) -> None:
    one, two = parts(
        "FROM python:3.11 AS build\nENV VIRTUAL_ENV=/opt/venv\nRUN pip install torch==2.9.1\n"
        f"FROM python:3.11\nCOPY --from=build {copied}\n"
        "ENV VIRTUAL_ENV=/opt/venv\nRUN pip install torchaudio\n"
    )
    assert two.environment.startswith(f"{one.environment}/") is found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/usr/local/lib/python3.11/site-packages", True),
        ("/usr/local", True),
        ("/root/.local", True),
        ("/usr/share/doc", False),
        ("/wheels", False),
    ],
)
def test_copied_packages_of_the_system(path: str, found: bool) -> None:
    one, two = parts(
        "FROM python:3.11 AS build\nRUN pip install torch==2.9.1\n"
        f"FROM python:3.11\nCOPY --from=build {path} {path}\nRUN pip install torchaudio\n"
    )
    assert two.environment.startswith(f"{one.environment}/") is found


@pytest.mark.parametrize(("folder", "found"), [("/install", True), ("/wheels", False)])
def test_packages_of_a_prefix(folder: str, found: bool) -> None:
    one, two = parts(
        "FROM python:3.11 AS build\nRUN pip install --prefix=/install torch==2.9.1\n"
        f"FROM python:3.11\nCOPY --from=build {folder} /usr/local\nRUN pip install torchaudio\n"
    )
    assert two.environment.startswith(f"{one.environment}/") is found


def test_triggers_run_in_the_next_stage_and_once() -> None:
    found = parts(
        "FROM python:3.11 AS base\nONBUILD RUN pip install torch==2.9.1\n"
        "FROM base AS app\nRUN pip install torchaudio\nFROM app\nRUN pip install torchvision\n"
    )
    assert [part.name for part in found] == [
        "stage app, line 2",
        "stage app, line 4",
        "stage 2, line 6",
    ]


STAGES = f"""\
FROM python:3.11 AS base
FROM base AS tools
RUN pip install torch==2.8.0 --index-url {CHANNELS}cpu
FROM base AS cpu
RUN --mount=type=bind,from=tools,target=/t pip install torch==2.9.1 --index-url {CHANNELS}cpu
FROM base AS gpu
RUN pip install torch==2.9.1 --index-url {CHANNELS}cu126
"""
GPU = "gpus: all"


def build(name: str, target: str, gpu: str = "") -> str:
    return f"  {name}:\n    {gpu or 'tty: true'}\n    build:\n      context: .\n{target}"


def test_a_target_takes_its_own_stages_alone() -> None:
    text = "services:\n" + build("one", "      target: gpu\n", GPU) + build("two", "")
    document = compose(text, Dockerfile=STAGES)
    assert document.parts == ()
    assert document.reserved == ()  # what is built last serves a service without a GPU, too
    text = "services:\n" + build("one", "      target: CPU\n", GPU) + build("two", "")
    document = compose(text, Dockerfile=STAGES)
    assert [(one.service, one.of[1]) for one in document.reserved if one.words] == [
        ("one", "stage tools, line 3"),
        ("one", "stage cpu, line 5"),
    ]


@pytest.mark.parametrize(
    ("args", "written"),
    [
        ('{V: "2.9.1"}', '{V: "2.9.1", CU: "cu129"}'),
        ("[V=2.9.1]", "[V=2.9.1, CU=cu129]"),
        (
            "\n        V: 2.9.1  # pinned\n    tty: true",
            '\n        V: 2.9.1  # pinned\n        CU: "cu129"\n    tty: true',
        ),
        ("\n      - V=2.9.1\n    tty: true", "\n      - V=2.9.1\n      - CU=cu129\n    tty: true"),
        ('\n      - "V=2.9.1"', '\n      - "V=2.9.1"\n      - CU=cu129'),
    ],
)
def test_an_argument_is_added_where_a_default_does_not_fit(
    tmp_path: Path, args: str, written: str
) -> None:
    text = f"services:\n  one:\n    build:\n      context: .\n      args: {args}\n"
    path = tmp_path / "compose.yaml"
    path.write_text(text)
    (tmp_path / "Dockerfile").write_text(
        f"FROM python:3.11\nARG V=2.8.0\nARG CU=cu130\nRUN pip install torch==$V -i {CHANNELS}$CU\n"
    )
    done = fix(Options((str(path),)), v100("550.54.15"))
    assert [data.decode() for _, data in done.changes] == [text.replace(args, written)]


def v100(driver: str) -> Fleet:
    fleet = fleet_from_options(
        gpus=("V100",), driver=driver, python=("3.11",), platform="linux-x86_64", glibc=None
    )
    assert fleet is not None
    return fleet


def test_an_argument_is_planned_with_the_default_that_is_mended(tmp_path: Path) -> None:
    """Both feed one install: what the Dockerfile gets is what the argument is judged with."""
    text = (
        "services:\n  one:\n    build:\n      context: .\n      args:\n        V: 2.9.1\n"
        "  two:\n    build:\n      context: .\n      args:\n        V: 2.11.0\n"
    )
    (tmp_path / "compose.yaml").write_text(text)
    (tmp_path / "Dockerfile").write_text(
        f"FROM python:3.11\nARG V=2.9.0\nARG CU=cu130\nRUN pip install torch==$V -i {CHANNELS}$CU\n"
    )
    options = Options((str(tmp_path),), unsafe_fixes=True)
    done = fix(options, v100("570.86.15"))
    texts = {Path(one.path).name: data.decode() for one, data in done.changes}
    assert "ARG CU=cu129" in texts["Dockerfile"]
    assert texts["compose.yaml"] == f'{text}        CU: "cu126"\n'  # 2.9.1 fits the new default
    assert [one for one in done.report_after.findings if one.severity != "info"] == []
    for name, new in texts.items():
        (tmp_path / name).write_text(new)
    assert fix(options, v100("570.86.15")).changes == ()


def test_text_in_an_editor_counts_for_who_builds_it(tmp_path: Path) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text("services:\n  one:\n    build:\n      context: .\n      args: {V: 2.9.1}\n")
    (tmp_path / "Dockerfile").write_text("FROM python:3.11\nARG V\nRUN pip install torch==$V\n")
    new = f"FROM python:3.11\nARG V\nRUN pip install torch==$V -i {CHANNELS}cu130\n"
    overlay = {str(tmp_path / "Dockerfile"): new.encode()}
    for held, codes in ((None, set()), (overlay, {"TP201", "TP203"})):
        report = check(Options((str(path),)), v100("570.86.15"), held)
        assert {one.code for one in report.findings if one.severity == "error"} == codes


def test_settings_beside_a_compose_file() -> None:
    text = (
        "services:\n  one:\n    image: python:3.11\n    env_file: [a.env, b.env]\n"
        "    environment: {B: '3'}\n"
        "    command: sh -c 'pip install torch==2.9.$$A torchaudio==2.9.$$B torchvision==${C:-9}'\n"
    )
    files = {"a_env": "A=7\nB=1\n", "b_env": "export A='1' \nB=2 # two\n", "_env": 'C="0.24.1"\n'}
    (part,) = compose(text, **files).parts
    assert [one.specifier for one in part.document.declarations] == [
        "==2.9.1",
        "==2.9.3",
        "==0.24.1",
    ]
    assert part.uncertain is None
    del files["b_env"]
    (part,) = compose(text, **files).parts
    assert part.uncertain == "what b.env sets is not known"


@pytest.mark.parametrize("line", ["API_TOKEN=cu126", "CU=https://me@host/cu126", "CU=$OTHER"])
def test_secrets_and_what_is_put_together_are_not_taken(line: str) -> None:
    text = "services:\n  one:\n    build:\n      context: .\n      args: {CU: '${%s}'}\n"
    text = text.replace("%s", line.partition("=")[0])
    dockerfile = f"FROM python:3.11\nARG CU\nRUN pip install torch==2.9.1 -i {CHANNELS}$CU\n"
    (part,) = compose(text, _env=f"{line}\n", Dockerfile=dockerfile).parts
    assert "${" in channels_of(part)[0]


def test_an_argument_without_a_value_is_that_of_the_settings_or_the_default() -> None:
    text = "services:\n  one:\n    build:\n      context: .\n      args: {CU: cu126, V: }\n"
    dockerfile = (
        f"FROM python:3.11\nARG V=2.8.0\nARG CU\nRUN pip install torch==$V -i {CHANNELS}$CU\n"
    )
    (part,) = compose(text, Dockerfile=dockerfile).parts
    assert torch_of(part) == "==2.8.0"
    (part,) = compose(text, Dockerfile=dockerfile, _env="V=2.9.1\n").parts
    assert torch_of(part) == "==2.9.1"


def test_services_that_extend_one_another_end() -> None:
    text = (
        "services:\n  one:\n    extends: two\n    image: python:3.11\n"
        "  two:\n    extends: {file: other.yaml, service: one}\n"
        "    command: pip install torch==2.9.1\n"
    )
    other = "services:\n  one:\n    extends: {file: compose.yaml, service: two}\n"
    found = compose(text, other_yaml=other, compose_yaml=text).parts
    assert [part.name for part in found] == ["service one, line 7", "service two, line 7"]
    assert found[0].image is not None and found[1].image is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("services: {a: {build: {context: ., args: {CU: cu126}}}}\n", True),
        ("services: {a: {extends: {file: b.yml, service: b}, gpus: all}}\n", True),
        ("services: {a: {build: .}}\n", False),
    ],
)
def test_which_compose_files_are_looked_at(tmp_path: Path, text: str, found: bool) -> None:
    (tmp_path / "compose.yaml").write_text(text)
    assert bool(discover([str(tmp_path)], KINDS).files) is found


def test_what_a_file_was_read_with(tmp_path: Path) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text("services: {a: {build: {context: ., args: {V: 2.9.1}}}}\n")
    data = b"FROM python:3.11\nARG V\nRUN pip install torch==$V\n"
    (tmp_path / "Dockerfile").write_bytes(data)
    document = load(str(path), {})
    assert document.called == ((str(tmp_path / "Dockerfile"), data),)
    assert document.parts[0].document.called == document.called


def test_an_argument_that_chooses_the_base_image() -> None:
    text = "services: {a: {build: {dockerfile: '${DF:-x}.Dockerfile', args: {T: 2.8.0}}}}\n"
    dockerfile = (
        "ARG T=2.9.1\nFROM pytorch/pytorch:$T-cuda12.8-cudnn9-runtime\nRUN pip install timm\n"
        "FROM python:3.11\nRUN pip install torch==2.9.1\n"
    )
    assert compose(text, x_Dockerfile=dockerfile).parts == ()  # the last stage takes another one
    dockerfile = dockerfile.partition("FROM python")[0]
    one, image = compose(text, x_Dockerfile=dockerfile).parts
    for part in (one, image):
        assert part.image is not None
        assert part.image.reference == "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime"
        assert text[slice(*part.image.span)] == "2.8.0"


@pytest.mark.parametrize(
    ("platform", "machine"),
    [("linux/arm64", "linux-aarch64"), ("linux/amd64", "linux-x86_64"), ("linux/riscv64", "linux")],
)
def test_platform_of_a_service(platform: str, machine: str) -> None:
    text = (
        f"services:\n  one:\n    platform: {platform}\n    build: {{args: {{V: 2.9.1}}}}\n"
        f"  two:\n    platform: {platform}\n    image: python:3.11\n"
        "    command: pip install torch==2.9.1\n"
    )
    dockerfile = "FROM python:3.11\nARG V\nRUN pip install torch==$V\n"
    found = compose(text, Dockerfile=dockerfile).parts
    assert [part.platform for part in found] == [machine, machine]


def test_an_argument_that_names_a_list(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(
        "services:\n  one:\n    gpus: all\n    build: {context: ., args: {FILE: list-cpu.txt}}\n"
    )
    (tmp_path / "Dockerfile").write_text(
        "FROM python:3.11\nARG FILE=list.txt\nCOPY . .\nRUN pip install -r $FILE\n"
    )
    (tmp_path / "list.txt").write_text(f"-i {CHANNELS}cu126\ntorch==2.9.1\n")
    (tmp_path / "list-cpu.txt").write_text(f"-i {CHANNELS}cpu\ntorch==2.9.1\n")
    report = check(Options((str(tmp_path),)), v100("550.54.15"))
    (found,) = [one for one in report.findings if one.severity == "error"]
    assert found.code == "TP205" and found.message.startswith("service one: torch 2.9.1+cpu is")
    assert Path(found.path).name == "list-cpu.txt"
    assert found.fix is not None
    assert found.fix.message.endswith("not written: by its name the file is for CPUs")


@pytest.mark.parametrize(
    ("again", "told"), [("", True), ("ARG V\n", False), ("ENV V=2.9.1\n", False)]
)
def test_an_argument_before_from_is_not_seen_behind_it(
    tmp_path: Path, again: str, told: bool
) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text(f"ARG V=2.9.1\nFROM python:3.11\n{again}RUN pip install torch==$V\n")
    report = check(Options((str(path),)), v100("550.54.15"))
    grounds = [ground.text for one in report.findings for ground in one.because]
    words = "ARG V stands before FROM: a stage sees it behind an ARG of its own only"
    assert (words in grounds) is told


@pytest.mark.parametrize(
    ("image", "severity"), [("ubuntu:22.04", "warning"), ("python:3.12-slim", "error")]
)
def test_what_python_an_image_has_is_known_or_not(
    image: str, severity: str, tmp_path: Path
) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text(f"FROM {image}\nRUN pip install torch==2.1.0\n")
    fleet = fleet_from_options(gpus=("V100",), driver="535.183.01", python="3.12")
    report = check(Options((str(path),), isolated=True), fleet)
    (found,) = (one for one in report.findings if one.code == "TP102")
    assert found.severity == severity
    told = any("it is not known which Python" in one.text for one in found.because)
    assert told is (severity == "warning")
