"""What the reader of project files takes from each tool's tables, and where it stands."""

from __future__ import annotations

import pytest

from torchpin.documents.base import Declaration, Document, Span
from torchpin.documents.manifest import index_line
from torchpin.documents.project import ConflictItem, Project
from torchpin.documents.pyproject import expand_groups, read_pyproject, read_uv_toml

UV = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "demo"
version = "1"
requires-python = ">=3.10"  # why
dependencies = [
  "torch>=2.11",  # base
  'torchvision[x] == 0.29.0+cu126 ; sys_platform == "linux"',
  "torchaudio @ https://files.example/torchaudio-2.11.0-cp311-cp311-linux_x86_64.whl",
]

[project.optional-dependencies]
cpu = ["torch==2.14.1"]
cu126 = ["torch==2.14.1"]

[dependency-groups]
dev = ["pytest", {include-group = "lint"}]
lint = ["ruff"]
all = [{include-group = "dev"}, {include-group = "All"}, {include-group = "gone"}]

[tool.uv]
conflicts = [
  [{ extra = "cpu" }, { extra = "cu126" }],
  [{ package = "Other_One", group = "g" }, { package = "x" }],
]
environments = ["sys_platform == 'linux'", "sys_platform == 'darwin'"]
required-environments = ["sys_platform == 'win32'"]
constraint-dependencies = ["triton<4"]
override-dependencies = ["numpy==2.0", { name = "x" }]
dev-dependencies = ["tox"]
default-groups = ["dev", "lint"]
torch-backend = "auto"
index-strategy = "unsafe-best-match"
fork-strategy = "fewest"
prerelease = "allow"
no-sources = true
package = false
extra-index-url = ["https://one.example/simple", "https://two.example/simple"]
index-url = "https://main.example/simple"
find-links = ["https://download.pytorch.org/whl/torch_stable.html"]

[tool.uv.pip]
torch-backend = "cu126"
index-url = "https://pip.example/simple"

[[tool.uv.index]]
name = "pytorch-cu126"
url = "https://download.pytorch.org/whl/cu126"
explicit = true

[[tool.uv.index]]
url = "https://default.example/simple"
default = true

[[tool.uv.index]]
name = "flat"
url = "./wheels"
format = "flat"

[tool.uv.sources]
torch = [
  { index = "pytorch-cu126", extra = "cu126", marker = "sys_platform == 'linux'" },
  { index = "pytorch-cpu", extra = "cpu" },
]
Torch_Vision = { index = 'pytorch-cu126', group = "dev" }
lib = { workspace = true }
far = { git = "https://git.example/far", rev = "abc" }
near = { path = "../near", editable = true }
wheel = { url = "https://files.example/wheel-1-py3-none-any.whl" }

[tool.uv.sources.torchaudio]
index = "pytorch-cu126"
marker = "sys_platform == 'linux'"

[tool.uv.workspace]
members = ["packages/*"]
exclude = ["packages/old"]
"""


def read(text: str) -> tuple[Document, Project]:
    document = read_pyproject("pyproject.toml", text.encode())
    assert document.project is not None
    return document, document.project


def cut(document: Document, span: Span | None) -> str | None:
    return None if span is None else document.text[span.start : span.end]


def one(document: Document, name: str, scope: str = "") -> Declaration:
    (found,) = [d for d in document.declarations if (d.name, d.scope) == (name, scope)]
    return found


@pytest.fixture(scope="module", params=["\n", "\r\n"])
def uv(request: pytest.FixtureRequest) -> tuple[Document, Project]:
    return read(UV.replace("\n", request.param))


def test_no_problem(uv: tuple[Document, Project]) -> None:
    document, project = uv
    assert document.problems == ()
    assert document.kind == "pyproject"
    assert document.newline == ("\r\n" if "\r\n" in document.text else "\n")
    assert (project.tool, project.name, project.package, project.published) == (
        *("uv", "demo", False, False),
    )
    assert project.requires_python == cut(document, project.requires_python_span) == ">=3.10"


def test_declarations(uv: tuple[Document, Project]) -> None:
    document, _ = uv
    assert [(d.scope, d.name, d.specifier) for d in document.declarations] == [
        ("build", "hatchling", ">=1.27"), ("", "torch", ">=2.11"),
        ("", "torchvision", "== 0.29.0+cu126"), ("", "torchaudio", ""),
        ("extra:cpu", "torch", "==2.14.1"), ("extra:cu126", "torch", "==2.14.1"),
        ("group:dev", "pytest", ""), ("group:lint", "ruff", ""),
        ("constraint", "triton", "<4"), ("override", "numpy", "==2.0"), ("group:dev", "tox", ""),
    ]  # fmt: skip
    assert all(d.valid and not d.from_variable for d in document.declarations)
    torch = one(document, "torch")
    assert cut(document, torch.span) == "torch>=2.11"
    assert cut(document, torch.name_span) == "torch"
    assert cut(document, torch.specifier_span) == ">=2.11"
    assert cut(document, torch.line_span) == '  "torch>=2.11",  # base'
    vision = one(document, "torchvision")
    assert vision.extras == ("x",)
    assert vision.marker == cut(document, vision.marker_span) == 'sys_platform == "linux"'
    audio = one(document, "torchaudio")
    assert audio.url == cut(document, audio.url_span)
    assert audio.url is not None and audio.url.endswith(".whl")


def test_groups(uv: tuple[Document, Project]) -> None:
    _, project = uv
    assert project.extras == ("cpu", "cu126")
    assert project.groups == ("dev", "lint", "all")
    assert project.default_groups == ("dev", "lint")
    assert project.group_includes == (("dev", ("lint",)), ("all", ("dev", "All", "gone")))
    assert expand_groups(project, ("all",)) == ("all", "dev", "lint")
    assert expand_groups(project, ("lint", "DEV")) == ("lint", "dev")
    assert expand_groups(project, ("*",)) == ("dev", "lint", "all")
    assert expand_groups(project, ("gone",)) == ()


def test_sources(uv: tuple[Document, Project]) -> None:
    document, project = uv
    linux = "sys_platform == 'linux'"
    assert [s[:6] + s[-1:] for s in project.sources] == [
        ("torch", "index", "pytorch-cu126", linux, "cu126", None, True),
        ("torch", "index", "pytorch-cpu", None, "cpu", None, True),
        ("torch-vision", "index", "pytorch-cu126", None, None, "dev", False),
        ("lib", "workspace", "", None, None, None, False),
        ("far", "git", "https://git.example/far", None, None, None, False),
        ("near", "path", "../near", None, None, None, False),
        ("wheel", "url", "https://files.example/wheel-1-py3-none-any.whl", None, None, None, False),
        ("torchaudio", "index", "pytorch-cu126", linux, None, None, False),
    ]  # fmt: skip
    first, vision, audio = project.sources[0], project.sources[2], project.sources[-1]
    assert cut(document, first.key_span) == "torch"
    assert cut(document, first.span) == (
        '{ index = "pytorch-cu126", extra = "cu126", marker = "sys_platform == \'linux\'" }'
    )
    assert cut(document, first.marker_span) == linux
    assert cut(document, vision.key_span) == "Torch_Vision"
    assert cut(document, vision.span) == "{ index = 'pytorch-cu126', group = \"dev\" }"
    whole = cut(document, audio.span)
    assert whole is not None
    assert whole.split() == [
        *("[tool.uv.sources.torchaudio]", "index", "=", '"pytorch-cu126"'),
        *("marker", "=", '"sys_platform', "==", "'linux'\""),
    ]
    assert cut(document, audio.key_span) == "torchaudio"
    for source in project.sources:
        assert cut(document, source.value_span) == (source.value or None)


def test_indexes_come_in_order_of_priority(uv: tuple[Document, Project]) -> None:
    document, project = uv
    assert [(i.tool, i.name, i.url, i.option, i.explicit, i.default, i.scope)
            for i in project.indexes] == [
        ("uv", "pytorch-cu126", "https://download.pytorch.org/whl/cu126", "--extra-index-url",
         True, False, ""),
        ("uv", "flat", "./wheels", "--find-links", False, False, ""),
        ("uv-url", None, "https://one.example/simple", "--extra-index-url", False, False, ""),
        ("uv-url", None, "https://two.example/simple", "--extra-index-url", False, False, ""),
        ("uv", None, "https://default.example/simple", "--index-url", False, True, ""),
        ("uv-url", None, "https://main.example/simple", "--index-url", False, True, ""),
        ("uv-url", None, "https://download.pytorch.org/whl/torch_stable.html", "--find-links",
         False, False, ""),
        ("uv-url", None, "https://pip.example/simple", "--index-url", False, True, "pip"),
    ]  # fmt: skip
    first, _, extra = project.indexes[:3]
    whole = cut(document, first.span)
    assert whole is not None
    assert whole.startswith("[[tool.uv.index]]") and whole.endswith("explicit = true")
    assert cut(document, first.name_span) == "pytorch-cu126"
    assert cut(document, first.explicit_span) == "true"
    for index in project.indexes:
        assert cut(document, index.url_span) == index.url
        line = index_line(document.text, index)
        assert (line.url, line.from_variable) == (index.url, False)
        assert index.url in str(cut(document, line.line_span))
    assert str(cut(document, extra.span)).startswith("extra-index-url = [")


def test_the_rest_of_uv(uv: tuple[Document, Project]) -> None:
    document, project = uv
    assert [conflict.items for conflict in project.conflicts] == [
        (ConflictItem(None, "cpu", None), ConflictItem(None, "cu126", None)),
        (ConflictItem("other-one", None, "g"), ConflictItem("x", None, None)),
    ]
    shown = cut(document, project.conflicts[0].span)
    assert shown == '[{ extra = "cpu" }, { extra = "cu126" }]'
    assert project.environments == ("sys_platform == 'linux'", "sys_platform == 'darwin'")
    assert project.required_environments == ("sys_platform == 'win32'",)
    settings = {setting.key: setting.value for setting in project.settings}
    assert settings == {
        "build-system.build-backend": "hatchling.build", "uv.torch-backend": "auto",
        "uv.index-strategy": "unsafe-best-match", "uv.fork-strategy": "fewest",
        "uv.prerelease": "allow", "uv.no-sources": "true", "uv.package": "false",
        "uv.pip.torch-backend": "cu126",
    }  # fmt: skip
    (backend,) = [s for s in project.settings if s.key == "uv.torch-backend"]
    assert cut(document, backend.span) == 'torch-backend = "auto"'
    assert project.workspace_members == ("packages/*",)
    assert project.workspace_exclude == ("packages/old",)
    last = project.tables[-1]
    assert (last.path, last.array) == (("tool", "uv", "workspace"), False)
    assert last.body_end == len(document.text)


def test_uv_toml() -> None:
    text = (
        'index-url = "https://main.example/simple"\nconstraint-dependencies = ["torch<3"]\n'
        '[[index]]\nname = "pytorch"\nurl = "https://download.pytorch.org/whl/cu126"\n'
        '[pip]\ntorch-backend = "auto"\n'
    )
    document = read_uv_toml("uv.toml", text.encode())
    project = document.project
    assert project is not None and document.kind == "uv.toml" and document.problems == ()
    assert [(i.name, i.option) for i in project.indexes] == [
        *(("pytorch", "--extra-index-url"), (None, "--index-url")),
    ]
    assert [(d.name, d.scope) for d in document.declarations] == [("torch", "constraint")]
    assert [(s.key, s.value) for s in project.settings] == [("uv.pip.torch-backend", "auto")]


def test_uv_toml_may_not_hold_what_belongs_to_a_project() -> None:
    # `uv lock` of 0.13.9 refuses the file for each of these.
    text = 'dev-dependencies = ["torch"]\nconflicts = [[{extra = "a"}, {extra = "b"}]]\n'
    text += '[sources]\ntorch = {index = "x"}\n'
    document = read_uv_toml("uv.toml", text.encode())
    assert [problem.code for problem in document.problems] == ["option"] * 3
    assert all("uv.toml" in problem.message for problem in document.problems)


def test_indexes_and_sources_in_other_forms() -> None:
    document, project = read(
        '[tool]\nuv.index = [{name = "a", url = "https://a.example"}]\n'
        'uv.sources.torch.index = "a"\nuv.sources.torch.marker = "os_name == \'nt\'"\n'
        'uv.environments = "sys_platform == \'linux\'"\nuv.default-groups = "all"\n'
    )
    (index,), (source,) = project.indexes, project.sources
    assert cut(document, index.span) == '{name = "a", url = "https://a.example"}'
    assert (source.package, source.value, source.marker) == ("torch", "a", "os_name == 'nt'")
    assert cut(document, source.span) == (
        'uv.sources.torch.index = "a"\nuv.sources.torch.marker = "os_name == \'nt\'"'
    )
    assert project.environments == ("sys_platform == 'linux'",)
    assert project.default_groups == ("*",)
    assert document.problems == ()


def test_dev_is_the_default_group_of_uv_only_if_it_is_declared() -> None:
    assert read("[tool.uv]\n[dependency-groups]\ndev = []\n")[1].default_groups == ("dev",)
    assert read("[tool.uv]\n[dependency-groups]\ntest = []\n")[1].default_groups == ()
    assert read("[dependency-groups]\ndev = []\n")[1].default_groups == ()
    none = read("[tool.uv]\ndefault-groups = []\n[dependency-groups]\ndev = []\n")[1]
    assert none.default_groups == ()


def test_escapes_are_judged_and_never_edited() -> None:
    document, _ = read('[project]\ndependencies = ["torch\\u003d=2.1", """torch>=2""", "a\\\\b"]\n')
    first, second = document.declarations[:2]
    assert (first.name, first.specifier, first.from_variable) == ("torch", "==2.1", True)
    assert cut(document, first.specifier_span) == "torch\\u003d=2.1"
    assert (second.specifier, second.from_variable) == (">=2", False)
    assert cut(document, second.span) == "torch>=2"


BAD_REQUIREMENTS = {
    "torch=2.1": "specifier", "torch==2.1 torchvision": "syntax", "./torch": "syntax",
    "https://files.example/torch-2.1-py3-none-any.whl": "syntax", "": "syntax",
    "torch>=2.1+cu126": "specifier", "torch ; os == 'x'": "marker", "-r requirements.txt": "syntax",
}  # fmt: skip


@pytest.mark.parametrize("written", BAD_REQUIREMENTS)
def test_requirements_that_no_tool_takes(written: str) -> None:
    document, _ = read(f'[project]\ndependencies = ["{written}"]\n')
    assert {problem.code for problem in document.problems} == {BAD_REQUIREMENTS[written]}
    assert not any(d.valid for d in document.declarations)
    for problem in document.problems:
        assert str(cut(document, problem.span)) in written


SHAPES = [
    ("project = 3", "project must be a table"),
    ("[project]\ndependencies = 'torch'", "project.dependencies must be an array of strings"),
    ("[project]\ndependencies = [1, 'torch']", "project.dependencies[0] must be a string"),
    ("[project]\nname = 1\noptional-dependencies = []", "project.name must be a string"),
    ("[[project]]\nx = 1", "project must be a table"),
    ("tool = 1", "tool must be a table"),
    ("[tool]\nuv = 1", "tool.uv must be a table"),
    ("[tool.uv]\nsources = 1", "tool.uv.sources must be a table"),
    ("[tool.uv.sources]\ntorch = 'x'", "tool.uv.sources.torch must be a table such as"),
    ("[tool.uv.sources]\ntorch = [1]", "tool.uv.sources.torch[0] must be a table such as"),
    ("[tool.uv.sources]\ntorch = {}", "tool.uv.sources.torch must be a table with one of"),
    ("[tool.uv.sources]\ntorch = {index = 1}", "tool.uv.sources.torch.index must be a string"),
    ("[tool.uv]\nindex = 'x'", "tool.uv.index must be an array of tables"),
    ("[tool.uv]\nindex = [1]", "tool.uv.index[0] must be a table"),
    ("[tool.uv]\nindex = [{name = 'x'}]", "tool.uv.index[0] must be a table with a url"),
    ("[tool.uv]\nindex = [{url = 'x', explicit = 1}]", "explicit must be true or false"),
    ("[tool.uv]\nconflicts = [{extra = 'a'}]", "tool.uv.conflicts[0] must be an array of tables"),
    ("[tool.uv]\nconflicts = [[{}]]", "tool.uv.conflicts[0][0] must be a table such as"),
    ("[tool.uv]\nextra-index-url = {}", "tool.uv.extra-index-url must be an array of strings"),
    ("[tool.uv]\npip = 1", "tool.uv.pip must be a table"),
    ("[tool.uv]\nworkspace = 1", "tool.uv.workspace must be a table"),
    ("[tool.uv]\npackage = 'no'", "tool.uv.package must be true or false"),
    ("dependency-groups = []", "dependency-groups must be a table"),
    ("[dependency-groups]\na = 'x'", "dependency-groups.a must be an array of requirements"),
    ("[dependency-groups]\na = [{}]", "dependency-groups.a[0] must be a requirement or a table"),
    ("[build-system]\nrequires = 'x'", "build-system.requires must be an array of strings"),
    ("[tool.poetry]\ndependencies = []", "tool.poetry.dependencies must be a table"),
    ("[tool.poetry.dependencies]\ntorch = 2.1", "must be a constraint, a table or an array"),
    ("[tool.poetry.dependencies]\ntorch = [1]", "torch[0] must be a constraint or a table"),
    ("[tool.poetry.dependencies]\ntorch = {extras = 'x'}", "extras must be an array of strings"),
    ("[tool.poetry]\nsource = [{url = 'x'}]", "tool.poetry.source[0] must be a table with a name"),
    ("[tool.poetry]\nsource = [{name='x', url='y', priority='z'}]", "priority must be one of"),
    ("[tool.poetry.group]\ndev = 1", "tool.poetry.group.dev must be a table"),
    ("[tool.pdm]\nsource = [1]", "tool.pdm.source[0] must be a table"),
    ("[tool.hatch.envs]\ndefault = 1", "tool.hatch.envs.default must be a table"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), SHAPES)
def test_wrong_shapes_are_told_and_the_rest_is_read(text: str, message: str) -> None:
    document, project = read(text + "\n")
    told = [problem for problem in document.problems if message in problem.message]
    assert told, document.problems
    harmless = ("index-url", "uv.pip", "hatch")
    assert told[0].code == ("misplaced" if any(h in message for h in harmless) else "shape")
    assert cut(document, told[0].span) not in (None, "")
    assert isinstance(project, Project)


def test_the_rest_is_read() -> None:
    document, project = read(
        "[project]\nname = 1\ndependencies = [3, 'torch']\n[tool.uv]\nsources = 1\n"
        "[[tool.uv.index]]\nurl = 'https://a.example'\n"
    )
    assert [d.name for d in document.declarations] == ["torch"]
    assert [i.url for i in project.indexes] == ["https://a.example"]
    assert len(document.problems) == 3


def test_broken_text_gives_an_empty_document() -> None:
    document, project = read("[project]\ndependencies = ['torch'\n")
    assert [problem.code for problem in document.problems] == ["toml"]
    assert document.declarations == () and project.tables == ()
    assert document.encode(document.text) == b"[project]\ndependencies = ['torch'\n"


OWNERS = {
    "": "pip",
    "[project]\nname = 'x'\n": "pip",
    "[tool.uv]\n": "uv",
    "[tool.uv.sources]\na = {index = 'x'}\n[tool.poetry.dependencies]\na = '1'\n": "poetry",
    "[project]\n[tool.uv]\n[tool.poetry.dependencies]\na = '1'\n": "uv",
    "[tool.poetry]\nname = 'x'\n": "pip",
    "[tool.poetry.dependencies]\ntorch = '*'\n": "poetry",
    "[project]\nname = 'x'\n[tool.poetry]\npackage-mode = false\n": "poetry",
    "[build-system]\nrequires = []\nbuild-backend = 'poetry.core.masonry.api'\n": "poetry",
    "[tool.pdm]\n": "pdm",
    "[build-system]\nrequires = []\nbuild-backend = 'pdm.backend'\n": "pdm",
    "[tool.hatch.envs.test]\n": "hatch",
    "[tool.hatch.version]\npath = 'x'\n": "pip",
    "[build-system]\nbuild-backend = 3\n[tool]\nuv = 1\n": "pip",
}


@pytest.mark.parametrize("text", OWNERS)
def test_who_owns_the_project(text: str) -> None:
    assert read(text)[1].tool == OWNERS[text]


def test_published() -> None:
    base = "[build-system]\nrequires = []\n[project]\nname = 'x'\n"
    assert read(base)[1].published
    assert not read("[project]\nname = 'x'\n")[1].published
    assert not read(base + "[tool.uv]\npackage = false\n")[1].published
    private = base + "classifiers = ['Private :: Do Not Upload']\n"
    assert not read(private)[1].published


def test_hatch_and_setuptools() -> None:
    document, project = read(
        '[tool.hatch.envs.gpu]\ndependencies = ["torch"]\nextra-dependencies = ["numpy"]\n'
        'features = ["cu126"]\n[tool.hatch.metadata]\nallow-direct-references = true\n'
        '[tool.setuptools.dynamic]\ndependencies = {file = ["requirements.txt", "more.txt"]}\n'
    )
    assert [(d.name, d.scope) for d in document.declarations] == [
        *(("torch", "env:gpu"), ("numpy", "env:gpu")),
    ]
    assert {(s.key, s.value) for s in project.settings} == {
        *(("hatch.envs.gpu.features", "cu126"), ("hatch.metadata.allow-direct-references", "true"))
    }
    assert [(i.path, cut(document, i.span)) for i in document.includes] == [
        *(("requirements.txt", "requirements.txt"), ("more.txt", "more.txt")),
    ]
    single, _ = read("[tool.setuptools.dynamic]\ndependencies = {file = 'r.txt'}\n")
    assert [i.path for i in single.includes] == ["r.txt"]


def test_what_belongs_to_another_tool_is_passed_over() -> None:
    document, project = read(
        "[project]\nname = 'x'\ndependencies = ['torch']\n[tool.uv]\n"
        "[tool.poetry.dependencies]\ntorchvision = 3\n[[tool.pdm.source]]\nurl = 1\n"
    )
    assert project.tool == "uv" and document.problems == ()
    assert [d.name for d in document.declarations] == ["torch"]


def test_forms_that_hatch_and_pdm_take_are_no_problem() -> None:
    document, _ = read(
        "[tool.hatch.envs.a]\ndependencies = ['torch=={env:TORCH}', 'numpy', 'x @ {root:uri}/x']\n"
    )
    assert document.problems == ()
    assert [d.name for d in document.declarations] == ["numpy", "x"]
    document, _ = read(
        "[tool.pdm.dev-dependencies]\na = ['-e ./x', './y', 'git+https://git.example/z', 'torch']\n"
        "[tool.pdm.resolution.overrides]\nb = {url = 'x'}\n[[tool.pdm.source]]\nname = 'pypi'\n"
    )
    assert document.problems == ()
    assert [d.name for d in document.declarations] == ["torch"]


def test_a_wrong_uv_toml_stops_uv() -> None:
    document = read_uv_toml("uv.toml", b"index-url = ['https://a.example']\npip = 1\n")
    assert [problem.code for problem in document.problems] == ["shape", "shape"]


@pytest.mark.parametrize(
    ("indexes", "told"),
    [
        ('[[tool.uv.index]]\nurl = "https://a.example/"\nexplicit = true\n', "needs a name"),
        ('[[tool.uv.index]]\nname = "a b"\nurl = "https://a.example/"\n', "is made of letters"),
        ('[[tool.uv.index]]\nname = "a"\nurl = "https://a.example/"\n' * 2, "two indexes"),
        (
            '[[tool.uv.index]]\nname = "a"\nurl = "https://a.example/"\ndefault = true\n'
            '[[tool.uv.index]]\nname = "b"\nurl = "https://b.example/"\ndefault = true\n',
            "another index with default",
        ),
        ('[[tool.uv.index]]\nname = "a.b-c_1"\nurl = "https://a.example/"\n', ""),
    ],
)
def test_indexes_that_uv_refuses(indexes: str, told: str) -> None:
    found = read_pyproject("pyproject.toml", indexes.encode())
    assert [told in one.message for one in found.problems] == ([True] if told else [])
