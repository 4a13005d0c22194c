"""Files that list requirements in sections: what each reader finds, and where."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchpin.documents.base import Declaration, Document
from torchpin.documents.conda import channel_name, parse_spec
from torchpin.documents.environment_yml import read_environment_yml
from torchpin.documents.header import header_of
from torchpin.documents.noxfile import read_noxfile
from torchpin.documents.parts import Part
from torchpin.documents.pipfile import content_hash, read_pipfile
from torchpin.documents.pipfile_lock import digest_of, read_pipfile_lock
from torchpin.documents.pixi_toml import read_pixi_toml
from torchpin.documents.precommit_config import read_precommit_config
from torchpin.documents.pyproject import read_pyproject
from torchpin.documents.python_source import uses_of
from torchpin.documents.requirements import read_requirements
from torchpin.documents.script_block import read_script
from torchpin.documents.setup_cfg import read_setup_cfg
from torchpin.documents.setup_py import read_setup_py
from torchpin.documents.tox_ini import read_tox_ini
from torchpin.documents.tox_names import condition_of, expand, holds, range_of
from torchpin.documents.tox_toml import read_tox_toml

Read = Callable[[str, bytes], Document]
READERS: dict[str, Read] = {
    "environment.yml": read_environment_yml,
    "noxfile.py": read_noxfile,
    "pixi.toml": read_pixi_toml,
    "tox.toml": read_tox_toml,
    "Pipfile": read_pipfile,
    "Pipfile.lock": read_pipfile_lock,
    ".pre-commit-config.yaml": read_precommit_config,
    "script.py": read_script,
    "setup.cfg": read_setup_cfg,
    "setup.py": read_setup_py,
    "tox.ini": read_tox_ini,
}


def asked(document: Document, declarations: tuple[Declaration, ...]) -> list[tuple[str, str]]:
    """Return the declarations with the text that stands at their places."""
    return [(one.name, document.text[slice(*one.span)]) for one in declarations]


def part(document: Document, name: str) -> Part:
    return next(one for one in document.parts if one.name == name)


def test_environment_pip_section_is_a_part_with_its_indexes() -> None:
    text = """\
name: train
channels:
  - https://conda.anaconda.org/pytorch/linux-64
  - nvidia
dependencies:
  - python=3.11     # comment
  - conda-forge::numpy>=1.26,<2
  - "pytorch=2.4=py3.11_cuda12.1_cudnn9.1.0_0"
  - pip
  - pip:
      - --extra-index-url https://download.pytorch.org/whl/cu121
      - torchvision==0.19.0+cu121   # pinned
      - 'timm>=1 ; sys_platform == "linux"'
      - -r extra.txt
variables:
  A: b
"""
    document = read_environment_yml("environment.yml", text.encode())
    assert document.problems == ()
    assert document.conda is not None
    assert [name for name, _ in document.conda.channels] == ["pytorch", "nvidia"]
    assert [(s.channel, s.name, s.version, s.build) for s in document.conda.specs] == [
        ("", "python", "==3.11.*", ""),
        ("conda-forge", "numpy", ">=1.26,<2", ""),
        ("", "pytorch", "==2.4", "py3.11_cuda12.1_cudnn9.1.0_0"),
        ("", "pip", "", ""),
    ]
    (one,) = document.parts
    assert (one.name, one.python, one.syntax, one.upgrade) == ("pip", "3.11", "yaml", True)
    assert asked(document, one.document.declarations) == [
        ("torchvision", "torchvision==0.19.0+cu121"),
        ("timm", 'timm>=1 ; sys_platform == "linux"'),
    ]
    assert [(i.option, text[slice(*i.url_span)]) for i in one.document.indexes] == [
        ("--extra-index-url", "https://download.pytorch.org/whl/cu121")
    ]
    assert [include.path for include in one.document.includes] == ["extra.txt"]
    assert one.options_at is not None and text[one.options_at :].startswith("- --extra-index")
    assert [text[slice(*comment)] for comment in document.comments] == ["# comment", "# pinned"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("python=3.11", ("", "python", "==3.11.*", "")),
        ("python==3.11.4", ("", "python", "==3.11.4", "")),
        ("pytorch 2.1.*", ("", "pytorch", "==2.1.*", "")),
        ("pytorch 2.1.2 cuda112py39", ("", "pytorch", "==2.1.2", "cuda112py39")),
        ("pytorch::pytorch>=2.1,<2.5", ("pytorch", "pytorch", ">=2.1,<2.5", "")),
        ("pytorch[version='>=2',channel=conda-forge]", ("conda-forge", "pytorch", ">=2", "")),
        ("numpy>=1.20.*", ("", "numpy", ">=1.20", "")),
        ("mkl=2021|2022", ("", "mkl", "", "")),
        ("conda-forge/linux-64::pytorch-gpu", ("conda-forge", "pytorch-gpu", "", "")),
        ("./local.tar.bz2", None),
        ("", None),
    ],
)
def test_conda_specs(text: str, found: tuple[str, ...] | None) -> None:
    from torchpin.documents.base import Span

    spec = parse_spec(text, Span(0, len(text)))
    assert (spec and (spec.channel, spec.name, spec.version, spec.build)) == found


def test_conda_channels_by_url() -> None:
    assert channel_name("https://conda.anaconda.org/pytorch-nightly/") == "pytorch-nightly"
    assert channel_name("pytorch/label/test") == "pytorch/label/test"


def test_environment_that_is_none_says_nothing() -> None:
    for text in (b"", b"a: 1\n", b"dependencies: torch\n", b"- torch\n"):
        assert read_environment_yml("environment.yml", text).parts == ()
    broken = read_environment_yml("environment.yml", b"[1, 2")
    assert broken.problems == ()
    broken = read_environment_yml("environment.yml", b"dependencies:\n- {{ x\n")
    assert [p.code for p in broken.problems] == ["yaml"]


TOX = """\
[tox]
envlist = py3{10,11}-{cpu,cu126}, lint
[testenv]
deps =
    -r {toxinidir}/requirements.txt
    cpu: torch==2.11.0+cpu
    cu126: torch==2.11.0+cu126  # comment
    {[base]deps}
    {env:MORE:}
    {posargs:torchdata}
set_env =
    cpu: PIP_EXTRA_INDEX_URL = https://download.pytorch.org/whl/cpu
    cu126: PIP_EXTRA_INDEX_URL = https://download.pytorch.org/whl/cu126
[base]
deps = pytest
[testenv:lint,docs]
base_python = python3.12
deps =
    torch
"""


def test_tox_environments_ask_for_the_lines_that_hold() -> None:
    document = read_tox_ini("tox.ini", TOX.encode())
    names = [one.name for one in document.parts]
    assert names == ["tox py310-cpu, py311-cpu", "tox py310-cu126, py311-cu126", "tox lint, docs"]
    cuda = part(document, "tox py310-cu126, py311-cu126")
    assert asked(document, cuda.document.declarations) == [
        ("torch", "torch==2.11.0+cu126"),
        ("pytest", "pytest"),
    ]
    assert [i.url for i in cuda.document.indexes] == ["https://download.pytorch.org/whl/cu126"]
    assert [i.path for i in cuda.document.includes] == ["requirements.txt"]
    assert cuda.python == ">=3.10,<3.12"
    assert cuda.uncertain is not None and "{env:MORE:}" in cuda.uncertain
    lint = part(document, "tox lint, docs")
    assert (lint.python, lint.uncertain) == ("3.12", None)
    assert lint.options_at is not None and TOX[lint.options_at :].startswith("torch\n")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("py3{9,10}-{a,b}", ["py39-a", "py39-b", "py310-a", "py310-b"]),
        ("py{3.9-3.11}", ["py3.9", "py3.10", "py3.11"]),
        ("a,b\n c\n{d,e}", ["a", "b", "c", "d", "e"]),
        ("{", ["{"]),
        ("", []),
    ],
)
def test_tox_lists_with_braces(text: str, names: list[str]) -> None:
    assert expand(text) == names


def test_a_list_without_end_is_cut() -> None:
    assert len(expand("{a,b}" * 60)) <= 500


@pytest.mark.parametrize(
    ("condition", "name", "answer"),
    [
        ("py311-cu126", "py311-cu126-x", True),
        ("py311-cu126", "py311-x", False),
        ("cpu,cu126", "py311-cu126", True),
        ("!cpu", "py311-cpu", False),
        ("!cpu", "py311", True),
        ("py3{10,11}", "py311", True),
    ],
)
def test_tox_conditions(condition: str, name: str, answer: bool) -> None:
    assert holds(condition, name) is answer


def test_what_is_a_condition() -> None:
    assert condition_of("cu126: torch") == ("cu126", 7)
    assert condition_of("--index-url https://x.example/simple") == ("", 0)
    assert condition_of("torch @ https://x.example/a: b") == ("", 0)
    assert range_of(["3.9", "3.11"]) == ">=3.9,<3.12,!=3.10.*"
    assert range_of(["3.11"]) == "3.11"


NOX = """\
import nox

INDEX = "https://download.pytorch.org/whl/cu126"
VERSION = "2.11.0"
MORE = ["numpy", "torchvision==0.26.0"]


@nox.session(python=["3.10", "3.11"], venv_backend="uv")
def tests(session: nox.Session) -> None:
    session.install("-r", "requirements.txt", "pytest")
    session.install(f"torch=={VERSION}", *MORE, "--index-url", INDEX)
    if session.posargs:
        session.install("torch==2.1.0", "--index-url=https://download.pytorch.org/whl/cu121")
    session.run("python", "-m", "pip", "install", "-U", "torchaudio==2.11.0")
    session.install(f"torch=={session.env['V']}")


def helper(x):
    x.install("torch==1.0")
"""


def test_nox_sessions_are_read_call_by_call() -> None:
    document = read_noxfile("noxfile.py", NOX.encode())
    assert [one.name for one in document.parts] == [
        f"session tests, line {line}" for line in (10, 11, 13, 14)
    ]
    first, second, third, fourth = document.parts
    assert {(one.client, one.python, one.environment) for one in document.parts} == {
        ("uv", ">=3.10,<3.12", "tests")
    }
    assert [include.path for include in first.document.includes] == ["requirements.txt"]
    assert [(d.name, d.specifier, d.from_variable) for d in second.document.declarations] == [
        ("torch", "==2.11.0", True),
        ("numpy", "", False),
        ("torchvision", "==0.26.0", False),
    ]
    assert [(i.url, i.from_variable) for i in second.document.indexes] == [
        ("https://download.pytorch.org/whl/cu126", True)
    ]
    assert third.uncertain is not None and "branch" in third.uncertain
    assert asked(document, third.document.declarations) == [("torch", "torch==2.1.0")]
    assert NOX[slice(*third.document.indexes[0].url_span)].endswith("/cu121")
    assert fourth.upgrade and fourth.uncertain is None


def test_a_computed_torch_alone_is_no_part() -> None:
    document = read_noxfile("noxfile.py", NOX.encode())
    assert all("line 15" not in one.name for one in document.parts)


def test_hooks_have_environments_of_their_own() -> None:
    text = """\
default_language_version: {python: python3.11}
repos:
  - repo: https://git.example/mypy
    hooks:
      - id: mypy
        additional_dependencies:
          - --index-url
          - https://download.pytorch.org/whl/cpu
          - "torch==2.11.0"
      - id: mypy
        additional_dependencies: [torch>=2, "--extra-index-url=https://pypi.example/simple"]
  - repo: local
    hooks:
      - id: js
        language: node
        additional_dependencies: [torch]
"""
    document = read_precommit_config(".pre-commit-config.yaml", text.encode())
    assert [(one.name, one.python) for one in document.parts] == [
        ("hook mypy", "3.11"),
        ("hook mypy 2", "3.11"),
    ]
    first, second = document.parts
    assert asked(document, first.document.declarations) == [("torch", "torch==2.11.0")]
    assert [text[slice(*i.url_span)] for i in first.document.indexes] == [
        "https://download.pytorch.org/whl/cpu"
    ]
    assert [(i.option, i.url) for i in second.document.indexes] == [
        ("--extra-index-url", "https://pypi.example/simple")
    ]


def test_setup_cfg_lists() -> None:
    text = """\
[metadata]
name = demo
[options]
python_requires = >=3.10
install_requires =
    torch>=2.1
    # comment
    torchvision ; sys_platform == "linux"
setup_requires = wheel; torch==2.9.1
[options.extras_require]
gpu =
    torch==2.11.0+cu126
"""
    document = read_setup_cfg("setup.cfg", text.encode())
    assert [(d.scope, text[slice(*d.span)]) for d in document.declarations] == [
        ("", "torch>=2.1"),
        ("", 'torchvision ; sys_platform == "linux"'),
        ("build", "wheel"),
        ("build", "torch==2.9.1"),
        ("extra:gpu", "torch==2.11.0+cu126"),
    ]
    project = document.project
    assert project is not None and project.published
    assert (project.name, project.requires_python, project.extras) == ("demo", ">=3.10", ("gpu",))


def test_setup_cfg_of_linters_only_and_files() -> None:
    assert read_setup_cfg("setup.cfg", b"[flake8]\nmax-line-length = 100\n").project is None
    text = b"[options]\ninstall_requires = file: a.txt, b.txt\n"
    assert [i.path for i in read_setup_cfg("setup.cfg", text).includes] == ["a.txt", "b.txt"]


def test_setup_py_literals_and_names() -> None:
    text = """\
# -*- coding: utf-8 -*-
from setuptools import setup

BASE = ["numpy", "torch==2.1.0"]  # é
EXTRAS = {"gpu": ["torch==2.11.0+cu126"], "all": BASE + ["pytest"]}
GROWN = []
GROWN.append("torch==1.0")
setup(
    name="demo",
    python_requires=">=3.10",
    install_requires=[*BASE, "torchvision>=0.16", read("requirements.txt")] + GROWN,
    extras_require={"dev": EXTRAS["all"], "grown": GROWN, **EXTRAS},
)
"""
    document = read_setup_py("setup.py", text.encode())
    found = [(d.scope, text[slice(*d.span)]) for d in document.declarations]
    assert ("", "torch==2.1.0") in found
    assert ("", "torchvision>=0.16") in found
    assert ("extra:gpu", "torch==2.11.0+cu126") in found
    assert ("extra:dev", "torch==2.1.0") in found
    assert not any(text == "torch==1.0" for _, text in found)
    assert document.project is not None
    assert document.project.extras == ("dev", "grown", "gpu", "all")
    assert document.project.requires_python == ">=3.10"


def test_setup_py_text_with_a_requirement_a_line() -> None:
    text = 'setup(install_requires="""\n  torch==2.1.0\n  # no\n  numpy\n""")\n'
    document = read_setup_py("setup.py", text.encode())
    assert asked(document, document.declarations) == [
        ("torch", "torch==2.1.0"),
        ("numpy", "numpy"),
    ]


def test_python_2_declares_nothing() -> None:
    document = read_setup_py("setup.py", b"print 'x'\nsetup(install_requires=['torch'])\n")
    assert (document.declarations, document.problems) == ((), ())


BLOCK = """\
#!/usr/bin/env -S uv run --script
# é
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch==2.11.0",  # comment
#   'numpy',
# ]
#
# [tool.uv.sources]
# torch = { index = "pytorch" }
# [[tool.uv.index]]
# name = "pytorch"
# url = "https://download.pytorch.org/whl/cu126"
# explicit = true
# ///
import torch
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_script_block_is_read_in_place(newline: str) -> None:
    text = BLOCK.replace("\n", newline)
    document = read_script("x.py", text.encode())
    assert document.problems == ()
    assert asked(document, document.declarations) == [
        ("torch", "torch==2.11.0"),
        ("numpy", "numpy"),
    ]
    project = document.project
    assert project is not None and project.requires_python == ">=3.11"
    assert [(s.package, s.value) for s in project.sources] == [("torch", "pytorch")]
    (index,) = project.indexes
    assert text[slice(*index.url_span)] == "https://download.pytorch.org/whl/cu126"
    assert [text[slice(*one)] for one in document.comments] == ["# comment"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("# /// script\n# dependencies = [\n# ///\n", "toml"),
        ("# /// script\n# a = 1\n# ///\n\n# /// script\n# a = 1\n# ///\n", "toml"),
        ('# /// script\n# requires-python = "x"\n# ///\n', "specifier"),
    ],
)
def test_script_block_that_uv_refuses(text: str, code: str) -> None:
    assert [p.code for p in read_script("x.py", text.encode()).problems] == [code]


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n",
        "# /// script\n# dependencies = ['torch']\n",
        "# /// other\n# dependencies = ['torch']\n# ///\n",
        "  # /// script\n  # dependencies = ['torch']\n  # ///\n",
        "#/// script\n# dependencies = ['torch']\n# ///\n",
    ],
)
def test_what_is_no_script_block(text: str) -> None:
    document = read_script("x.py", text.encode())
    assert (document.declarations, document.problems, document.project) == ((), (), None)


def test_an_export_in_a_makefile_is_read_at_once() -> None:
    from torchpin.documents.makefile import read_makefile

    text = f"export {'LONG_NAME_OF_A_VARIABLE_' * 4} := python\nall:\n\tpip install torch==2.1.0\n"
    (one,) = read_makefile("Makefile", text.encode()).parts
    assert [d.specifier for d in one.document.declarations] == ["==2.1.0"]


def test_names_that_a_file_binds_itself_are_left_alone() -> None:
    assert uses_of("import torch\ndef f(torch):\n    torch.cholesky(1)\n") == ()
    assert uses_of("from torch import qr\ndef qr(x): ...\nqr(2)\n") == ()
    assert uses_of("from .torch import qr\nqr(2)\n") == ()
    assert [use.kind for use in uses_of("from torch import qr as f\nf(2)\n")] == ["qr"]


PIPFILE = """\
[[source]]
url = "https://pypi.example/simple"
verify_ssl = true
name = "pypi"

[[source]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu126"
verify_ssl = true

[packages]
numpy = ">=1.26"
torch = {version = "==2.11.0+cu126", index = "pytorch"}
torchvision = {version = "*", index = "pytorch", markers = "sys_platform == 'linux'"}
mine = {path = "."}
timm = {version = "1.0.9", extras = ["a"], sys_platform = "== 'linux'"}  # comment

[dev-packages]
pytest = "*"

[docs]
torch = "*"

[requires]
python_version = "3.12"
"""


def test_pipfile_packages_come_from_their_source_alone() -> None:
    document = read_pipfile("Pipfile", PIPFILE.encode())
    assert document.problems == ()
    assert [(one.name, one.environment, one.python) for one in document.parts] == [
        ("packages from pytorch", "pipenv", "3.12"),
        ("packages", "pipenv", "3.12"),
        ("dev-packages", "pipenv/dev-packages", "3.12"),
        ("docs", "pipenv/docs", "3.12"),
    ]
    cuda, plain, _, docs = document.parts
    assert [(d.name, d.specifier, d.marker) for d in cuda.document.declarations] == [
        ("torch", "==2.11.0+cu126", None),
        ("torchvision", "", "sys_platform == 'linux'"),
    ]
    stars = [
        PIPFILE[slice(*d.specifier_span)] for d in cuda.document.declarations if d.specifier_span
    ]
    assert stars == ["==2.11.0+cu126", "*"]
    assert [i.url for i in cuda.document.indexes] == ["https://download.pytorch.org/whl/cu126"]
    assert [(d.name, d.specifier, d.extras, d.marker) for d in plain.document.declarations] == [
        ("numpy", ">=1.26", (), None),
        ("timm", "==1.0.9", ("a",), "sys_platform == 'linux'"),
    ]
    assert [i.url for i in plain.document.indexes] == ["https://pypi.example/simple"]
    assert [d.name for d in docs.document.declarations] == ["torch"]


def test_pipfile_source_that_is_not_declared_is_unsure() -> None:
    text = PIPFILE.replace('index = "pytorch"}', 'index = "other"}', 1)
    document = read_pipfile("Pipfile", text.encode())
    assert "'other' is not declared" in (part(document, "packages from other").uncertain or "")


def test_pipfile_digest_is_that_of_pipenv() -> None:
    """As pipenv 2026.10.3 wrote it for this text, category and all."""
    text = """\
[[source]]
url = "https://pypi.example/simple"
verify_ssl = true
name = "pypi"

[packages]
six = "*"
idna = {version = ">=3", markers = "python_version >= '3.8'"}

[dev-packages]

[docs]
iniconfig = "*"

[requires]
python_version = "3.11"

[pipenv]
allow_prereleases = true
"""
    assert content_hash(text) == PIPENV_DIGEST
    assert content_hash(text.replace("# ", "")) == PIPENV_DIGEST
    assert content_hash(text.replace("six", "seven")) != PIPENV_DIGEST
    assert content_hash("[") is None


PIPENV_DIGEST = "dfb1a45766294a382130e613ff4f5cea89311412cce79b546ae1f108d7d054ab"


def test_pipfile_lock_is_read_with_hashes_and_never_edited() -> None:
    text = """\
{
    "_meta": {
        "hash": {"sha256": "AAA"},
        "pipfile-spec": 6,
        "requires": {"python_version": "3.12"},
        "sources": [
            {"name": "pypi", "url": "https://pypi.example/simple", "verify_ssl": true},
            {"name": "pytorch", "url": "https://download.pytorch.org/whl/cu126"}
        ]
    },
    "default": {
        "numpy": {"hashes": ["sha256:BBB"], "index": "pypi", "version": "==2.1.0"},
        "torch": {
            "hashes": ["sha256:CCC"],
            "index": "pytorch",
            "markers": "python_version >= '3.10'",
            "version": "==2.11.0+cu126"
        }
    },
    "develop": {}
}
"""
    for mark in "ABC":
        text = text.replace(mark * 3, mark.lower() * 64)
    document = read_pipfile_lock("Pipfile.lock", text.encode())
    assert [(one.name, one.python) for one in document.parts] == [
        ("default from pytorch", "3.12"),
        ("default", "3.12"),
    ]
    (torch,) = document.parts[0].document.declarations
    assert (torch.name, torch.specifier, torch.marker) == (
        "torch",
        "==2.11.0+cu126",
        "python_version >= '3.10'",
    )
    assert text[slice(*torch.span)] == "==2.11.0+cu126"
    assert [one.digest for one in torch.hashes] == ["c" * 64]
    assert torch.from_variable
    (index,) = document.parts[0].document.indexes
    assert text[slice(*index.url_span)] == "https://download.pytorch.org/whl/cu126"
    found = digest_of(text)
    assert found is not None and (found[0], text[slice(*found[1])]) == ("a" * 64, "a" * 64)


@pytest.mark.parametrize(
    ("text", "command", "inputs"),
    [
        (
            "#\n# This file is autogenerated by pip-compile with Python 3.11\n"
            "# by the following command:\n#\n"
            "#    pip-compile --extra gpu --output-file=requirements.txt requirements.in\n#\n",
            "pip-compile --extra gpu --output-file=requirements.txt requirements.in",
            ("requirements.in",),
        ),
        (
            "# This file was autogenerated by uv via the following command:\n"
            "#    uv pip compile pyproject.toml -o requirements.txt --python-version 3.11\n",
            "uv pip compile pyproject.toml -o requirements.txt --python-version 3.11",
            ("pyproject.toml",),
        ),
        (
            "# This file was autogenerated by uv via the following command:\n"
            "#    uv export --no-hashes --format requirements-txt\n",
            "uv export --no-hashes --format requirements-txt",
            ("pyproject.toml",),
        ),
        ("# written by hand\ntorch\n", None, ()),
        ("# This file was autogenerated by uv via the following command:\n", None, ()),
    ],
)
def test_headers(text: str, command: str | None, inputs: tuple[str, ...]) -> None:
    header = header_of(read_requirements("requirements.txt", text.encode()))
    assert (header.command if header else None) == command
    assert (header.inputs if header else ()) == inputs


PIXI = """\
[workspace]
channels = ["conda-forge", { channel = "https://conda.anaconda.org/pytorch", priority = -1 }]
platforms = ["linux-64"]

[dependencies]
python = "3.12.*"
cuda-version = { version = "12.*", channel = "conda-forge" }

[pypi-options]
index-url = "https://pypi.example/simple"
extra-index-urls = ["https://download.pytorch.org/whl/cpu"]

[pypi-dependencies]
einops = "*"

[feature.cuda.pypi-dependencies]
torch = { version = "==2.11.0", index = "https://download.pytorch.org/whl/cu126" }
Vision_Extra = { git = "https://git.example/x" }

[feature.mac.target.osx-arm64.pypi-dependencies]
torch = ">=2.11"

[environments]
cuda = ["cuda"]
mac = { features = ["mac"], no-default-feature = true }
same = []
"""


def test_pixi_environments_hold_their_features() -> None:
    document = read_pixi_toml("pixi.toml", PIXI.encode())
    assert document.problems == ()
    assert document.conda is not None
    assert [name for name, _ in document.conda.channels] == ["conda-forge", "pytorch"]
    assert [(s.name, s.version, s.channel) for s in document.conda.specs] == [
        ("python", "==3.12.*", ""),
        ("cuda-version", "==12.*", "conda-forge"),
    ]
    found = {
        one.name: [(d.name, d.specifier, d.marker) for d in one.document.declarations]
        for one in document.parts
    }
    mac = "sys_platform == 'darwin' and platform_machine == 'arm64'"
    assert found == {
        "environment default": [("einops", "", None)],
        "environment cuda from download.pytorch.org": [("torch", "==2.11.0", None)],
        "environment mac": [("torch", ">=2.11", mac)],
    }
    default = part(document, "environment default")
    assert (default.client, default.python) == ("uv", "3.12")
    assert [(i.option, i.url) for i in default.document.indexes] == [
        ("--index-url", "https://pypi.example/simple"),
        ("--extra-index-url", "https://download.pytorch.org/whl/cpu"),
    ]
    (own,) = part(document, "environment cuda from download.pytorch.org").document.indexes
    assert PIXI[slice(*own.url_span)] == "https://download.pytorch.org/whl/cu126"


def test_tox_toml_environments_share_what_is_common() -> None:
    text = """\
requires = ["tox>=4", "tox-uv"]
env_list = ["3.12", "3.11", "lint"]
[env_run_base]
deps = ["pytest", "torch==2.11.0", "-r {tox_root}/more.txt", { replace = "ref", of = ["a"] }]
set_env.UV_INDEX = "https://download.pytorch.org/whl/cu126"
[env.lint]
deps = ["ruff"]
base_python = ["python3.13"]
"""
    document = read_tox_toml("tox.toml", text.encode())
    common, lint = document.parts
    assert (common.name, common.client, common.python) == ("tox 3.12, 3.11", "uv", ">=3.11,<3.13")
    assert asked(document, common.document.declarations) == [
        ("pytest", "pytest"),
        ("torch", "torch==2.11.0"),
    ]
    assert [i.path for i in common.document.includes] == ["more.txt"]
    assert [i.url for i in common.document.indexes] == ["https://download.pytorch.org/whl/cu126"]
    assert common.uncertain is not None
    assert (lint.name, lint.python, lint.uncertain) == ("tox lint", "3.13", None)


def test_tox_and_pixi_in_a_project_file() -> None:
    text = """\
[project]
name = "x"
dependencies = ["torch>=2"]

[tool.pixi.workspace]
channels = ["conda-forge"]

[tool.pixi.pypi-dependencies]
torch = "==2.11.0"

[tool.tox]
legacy_tox_ini = \"\"\"
[testenv]
deps =
    torch==2.9.1
\"\"\"
"""
    document = read_pyproject("pyproject.toml", text.encode())
    assert document.project is not None
    assert [(one.name, one.client, one.syntax) for one in document.parts] == [
        ("environment default", "uv", "toml"),
        ("tox testenv", "pip", "ini"),
    ]
    first, second = document.parts
    assert [text[slice(*d.span)] for d in first.document.declarations] == ['torch = "==2.11.0']
    assert asked(document, second.document.declarations) == [("torch", "torch==2.9.1")]
    assert first.document.project is None and document.conda is not None
    native = text.split("legacy_tox_ini")[0] + 'env_run_base.deps = ["torch==2.8.0"]\n'
    document = read_pyproject("pyproject.toml", native.encode())
    assert [one.name for one in document.parts] == ["environment default", "tox base"]


PIECES = st.sampled_from(
    [
        *("torch==2.1", "deps =", "[testenv]", "[options]", "install_requires =", "  ", "\n", "\t"),
        *("dependencies:", "- pip:", "- ", "# /// script", "# ///", "# ", "session.install(", '"'),
        *("'", "{", "}", "[", "]", ":", "@nox.session", "def f(session):", "setup(", ")", "f'"),
        *("additional_dependencies:", "repos:", "hooks:", "--index-url", "\\", "\x00", "é", "\r"),
        *("[packages]", "[[source]]", 'url = "u"', '{"default": {', '"version": "==1"', "= ", ", "),
        *("[env_run_base]", 'deps = ["x"]', "[pypi-dependencies]", "[environments]", 'a = ["b"]'),
        *("extras_require={", "envlist = py{3", "&a", "*a", "import torch", "torch.qr(", "{[x]y}"),
    ]
)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, deadline=None)
@given(data=st.one_of(st.binary(max_size=60), st.lists(PIECES, max_size=30).map("".join)))
def test_no_bytes_crash_a_reader(name: str, data: bytes | str) -> None:
    document = READERS[name](name, data if isinstance(data, bytes) else data.encode())
    length = len(document.text)
    documents = [document, *(one.document for one in document.parts)]
    for one in documents:
        spans = [
            *(d.span for d in one.declarations),
            *(i.span for i in one.indexes),
            *(i.url_span for i in one.indexes),
            *(p.span for p in one.problems),
            *one.comments,
        ]
        assert all(0 <= start <= end <= length for start, end in spans)
        for declaration in one.declarations:
            span = declaration.specifier_span
            if span is not None and not declaration.from_variable:
                assert document.text[slice(*span)] in (declaration.specifier, "*")
    assert len({one.name for one in document.parts}) == len(document.parts)


def test_what_pixi_resolves_with_the_torch_of_another_index_is_left_to_it() -> None:
    text = b"""\
[workspace]
channels = ["conda-forge"]
platforms = ["linux-64"]
[pypi-dependencies]
torchvision = "*"
torchaudio = "==2.9.1"
accelerate = "*"
torch = { version = "==2.9.1", index = "https://download.pytorch.org/whl/cu128" }
"""
    parts = read_pixi_toml("pixi.toml", text).parts
    names = [[one.name for one in part.document.declarations] for part in parts]
    assert names == [["torch"], ["torchaudio", "accelerate"]]
