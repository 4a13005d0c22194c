"""What the reader takes from Poetry's and PDM's tables."""

from __future__ import annotations

from torchpin.documents.base import Document, Span
from torchpin.documents.project import Project
from torchpin.documents.pyproject import expand_groups, read_pyproject

POETRY = """\
[tool.poetry]
name = "demo"
package-mode = false

[tool.poetry.dependencies]
python = "^3.10"
torch = [
  {version = "^2.11", source = "pytorch-cu126", markers = "sys_platform == 'linux'"},
  {version = "2.11.*", platform = "darwin || win32", python = ">=3.10,<3.13"},
]
Torch_Vision = {version = "~0.26", optional = true, extras = ["Scipy"]}
triton = {version = ">=3", optional = true}
torchaudio = "1.0 || 3.0"
numpy = "*"
far = {git = "https://git.example/far.git", tag = "v1"}
wheel = {url = "https://files.example/wheel-1-py3-none-any.whl"}
near = {path = "../near", develop = true}
pre = {version = "^1.0b1", allow-prereleases = true}
bad = "^^x"
"quoted" = "1.2"

[tool.poetry.dependencies.torchtext]
version = "0.18.0"
source = "pytorch-cu126"

[tool.poetry.extras]
vision = ["torch-vision"]
all = ["Torch-Vision", "gone"]

[tool.poetry.group.gpu]
optional = true
include-groups = ["test"]

[tool.poetry.group.gpu.dependencies]
torchao.version = "0.18.0"
torchao.source = "pytorch-cu126"

[tool.poetry.group.test.dependencies]
pytest = "^9"

[tool.poetry.dev-dependencies]
ruff = "*"

[[tool.poetry.source]]
name = "second"
url = "https://second.example/simple"
secondary = true

[[tool.poetry.source]]
name = "pytorch-cu126"
url = "https://download.pytorch.org/whl/cu126"
priority = "explicit"

[[tool.poetry.source]]
name = "PyPI"

[[tool.poetry.source]]
name = "extra"
url = "https://extra.example/simple"
priority = "supplemental"
"""


def read(text: str) -> tuple[Document, Project]:
    document = read_pyproject("pyproject.toml", text.encode())
    assert document.project is not None
    return document, document.project


def cut(document: Document, span: Span | None) -> str | None:
    return None if span is None else document.text[span.start : span.end]


def test_poetry_project() -> None:
    document, project = read(POETRY)
    assert (project.tool, project.name, project.package, project.published) == (
        *("poetry", "demo", False, False),
    )
    assert project.requires_python == ">=3.10,<4.0"
    assert cut(document, project.requires_python_span) == "^3.10"
    assert project.extras == ("vision", "all")
    assert project.groups == ("dev", "gpu", "test")
    assert project.default_groups == ("dev", "test")
    assert expand_groups(project, ("gpu",)) == ("gpu", "test")
    (problem,) = document.problems
    assert (problem.code, cut(document, problem.span)) == ("specifier", "^^x")


def test_poetry_dependencies() -> None:
    document, _ = read(POETRY)
    found = [
        (d.scope, d.name, d.specifier, cut(document, d.specifier_span), d.marker)
        for d in document.declarations
    ]
    assert found == [
        ("", "torch", ">=2.11,<3.0", "^2.11", "sys_platform == 'linux'"),
        ("", "torch", "==2.11.*", "2.11.*",
         'python_version >= "3.10" and python_version < "3.13" and '
         '(sys_platform == "darwin" or sys_platform == "win32")'),
        ("extra:vision", "torch-vision", ">=0.26,<0.27", "~0.26", None),
        ("extra:all", "torch-vision", ">=0.26,<0.27", "~0.26", None),
        ("optional", "triton", ">=3", ">=3", None),
        ("", "torchaudio", "", "1.0 || 3.0", None),
        ("", "numpy", "", "*", None),
        ("", "far", "", None, None),
        ("", "wheel", "", None, None),
        ("", "near", "", None, None),
        ("", "pre", ">=1.0b1,<2.0", "^1.0b1", None),
        ("", "bad", "^^x", "^^x", None),
        ("", "quoted", "==1.2", "1.2", None),
        ("", "torchtext", "==0.18.0", "0.18.0", None),
        ("group:dev", "ruff", "", "*", None),
        ("group:gpu", "torchao", "==0.18.0", "0.18.0", None),
        ("group:test", "pytest", ">=9,<10", "^9", None),
    ]  # fmt: skip
    by_name = {d.name: d for d in document.declarations}
    assert by_name["far"].url == "git+https://git.example/far.git@v1"
    assert cut(document, by_name["far"].url_span) == "https://git.example/far.git"
    assert by_name["near"].url == "../near"
    assert by_name["torch-vision"].extras == ("scipy",)
    assert cut(document, by_name["torch-vision"].name_span) == "Torch_Vision"
    assert cut(document, by_name["quoted"].name_span) == "quoted"
    assert [option.name for option in by_name["pre"].options] == ["--pre"]
    assert cut(document, by_name["numpy"].span) == 'numpy = "*"'
    assert cut(document, by_name["wheel"].span) == (
        'wheel = {url = "https://files.example/wheel-1-py3-none-any.whl"}'
    )
    torch = document.declarations[0]
    assert cut(document, torch.name_span) == "torch"
    assert cut(document, torch.marker_span) == "sys_platform == 'linux'"
    assert document.declarations[1].marker_span is None
    assert str(cut(document, torch.span)).startswith('{version = "^2.11"')
    assert not by_name["bad"].valid


def test_a_union_that_pep_440_cannot_say_is_unknown_not_wrong() -> None:
    document, _ = read(POETRY)
    (audio,) = [d for d in document.declarations if d.name == "torchaudio"]
    assert (audio.valid, audio.specifier, audio.from_variable) == (False, "", True)
    (option,) = audio.options
    assert (option.name, option.value) == ("poetry-union", "1.0 || 3.0")
    assert not any("1.0" in str(cut(document, p.span)) for p in document.problems)


def test_poetry_sources() -> None:
    document, project = read(POETRY)
    assert [(s.package, s.value, s.marker, s.group, s.listed) for s in project.sources] == [
        ("torch", "pytorch-cu126", "sys_platform == 'linux'", None, True),
        ("torchtext", "pytorch-cu126", None, None, False),
        ("torchao", "pytorch-cu126", None, "gpu", False),
    ]
    assert {cut(document, s.value_span) for s in project.sources} == {"pytorch-cu126"}
    assert [(i.name, i.priority, i.explicit, i.default, i.option) for i in project.indexes] == [
        ("PyPI", "primary", False, True, "--index-url"),
        ("extra", "supplemental", False, False, "--extra-index-url"),
        ("second", "secondary", False, False, "--extra-index-url"),
        ("pytorch-cu126", "explicit", True, False, "--extra-index-url"),
    ]
    assert cut(document, project.indexes[-1].explicit_span) == "explicit"
    assert str(cut(document, project.indexes[-1].span)).endswith('priority = "explicit"')


def test_poetry_beside_project_only_routes() -> None:
    document, project = read(
        '[project]\nname = "demo"\nrequires-python = ">=3.11"\ndependencies = ["torch>=2.11"]\n'
        '[dependency-groups]\ntest = ["pytest"]\n'
        '[tool.poetry.dependencies]\npython = "^3.12"\ntorch = {source = "pytorch"}\n'
        '[tool.poetry.group.test.dependencies]\npytest = {source = "pytorch"}\n'
        '[tool.poetry.group.more.dependencies]\ntox = "*"\n'
        '[[tool.poetry.source]]\nname = "pytorch"\nurl = "https://download.pytorch.org/whl/cu126"\n'
    )
    assert document.problems == ()
    assert [(d.scope, d.name) for d in document.declarations] == [
        *(("", "torch"), ("group:test", "pytest"), ("group:more", "tox")),
    ]
    assert [(s.package, s.value, s.group) for s in project.sources] == [
        *(("torch", "pytorch", None), ("pytest", "pytorch", "test")),
    ]
    assert project.requires_python == ">=3.11"


def test_poetry_declares_what_project_leaves_dynamic() -> None:
    document, _ = read(
        '[project]\nname = "demo"\ndynamic = ["dependencies"]\n'
        '[tool.poetry.dependencies]\ntorch = "^2.11"\n'
    )
    assert [(d.name, d.specifier) for d in document.declarations] == [("torch", ">=2.11,<3.0")]


PDM = """\
[project]
name = "demo"
dependencies = ["torch>=2.11"]

[tool.pdm]
distribution = false

[tool.pdm.dev-dependencies]
test = ["pytest", "-e file:///${PROJECT_ROOT}/sub#egg=sub"]

[tool.pdm.resolution]
respect-source-order = true
[tool.pdm.resolution.overrides]
numpy = "2.0"
triton = ">=3"
wheel = "https://files.example/wheel-1-py3-none-any.whl"

[[tool.pdm.source]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu126"
include_packages = ["Torch", "torchvision", "nvidia-*"]
exclude_packages = ["*"]

[[tool.pdm.source]]
name = "pypi"
url = "https://mirror.example/simple"
verify_ssl = true

[[tool.pdm.source]]
type = "find_links"
name = "links"
url = "https://links.example/"
"""


def test_pdm() -> None:
    document, project = read(PDM)
    assert document.problems == ()
    assert (project.tool, project.package) == ("pdm", False)
    assert [(d.scope, d.name, d.specifier, d.url) for d in document.declarations] == [
        ("", "torch", ">=2.11", None),
        ("group:test", "pytest", "", None),
        ("override", "numpy", "==2.0", None),
        ("override", "triton", ">=3", None),
        ("override", "wheel", "", "https://files.example/wheel-1-py3-none-any.whl"),
    ]
    assert cut(document, document.declarations[2].specifier_span) == "2.0"
    assert project.groups == ("test",) and project.default_groups == ("*",)
    assert [(i.name, i.option, i.explicit, i.default) for i in project.indexes] == [
        ("pytorch", "--extra-index-url", True, False),
        ("pypi", "--index-url", False, True),
        ("links", "--find-links", False, False),
    ]
    first = project.indexes[0]
    assert (first.include, first.exclude) == (("Torch", "torchvision", "nvidia-*"), ("*",))
    assert [(s.package, s.value, cut(document, s.key_span)) for s in project.sources] == [
        ("torch", "pytorch", "Torch"),
        ("torchvision", "pytorch", "torchvision"),
        ("nvidia-*", "pytorch", "nvidia-*"),
    ]
    settings = {s.key: s.value for s in project.settings}
    assert settings == {"pdm.distribution": "false", "pdm.resolution.respect-source-order": "true"}
