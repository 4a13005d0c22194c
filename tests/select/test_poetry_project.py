"""Projects of Poetry on the shipped catalog, without Poetry."""

from __future__ import annotations

from torchpin.catalog.store import load_catalog
from torchpin.documents.pyproject import read_pyproject
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.select.model import SelectedSet, Selection
from torchpin.select.projects import project_installs
from torchpin.select.selection import select

HEAD = '[tool.poetry]\npackage-mode = false\n[tool.poetry.dependencies]\npython = "{}"\n'


def source(name: str, priority: str = "explicit") -> str:
    url = f"https://download.pytorch.org/whl/{name}"
    return f'[[tool.poetry.source]]\nname = "{name}"\nurl = "{url}"\npriority = "{priority}"\n'


def chosen(body: str, python: str = ">=3.11", platform: str = "linux-x86_64") -> SelectedSet:
    document = read_pyproject("pyproject.toml", (HEAD.format(python) + body).encode())
    assert not document.problems
    own = Python(3, 11)
    target = Target(NodeGroup("group", (), (own,), platform), own)
    install = project_installs(document, lock=None, client=None)[0]
    assert install.client == "poetry"
    return select(install, target, load_catalog())


def one(found: SelectedSet, package: str = "torch") -> Selection:
    return next(s for s in found.selections if s.package == package)


def build(found: SelectedSet, package: str = "torch") -> str:
    selection = one(found, package)
    assert selection.build is not None, selection.because
    return f"{selection.build.full_version} {selection.build.home}"


def test_every_python_of_the_project_counts() -> None:
    assert build(chosen('torch = "*"\n', ">=3.11")) == "2.15.0 pypi"
    assert build(chosen('torch = "*"\n', ">=3.10")) == "2.14.1 pypi"


def test_an_excluded_patch_release_holds_torchvision_back() -> None:
    body = 'torch = "*"\ntorchvision = "*"\n'
    # Whether torch or torchvision gives way depends on what else torch requires.
    selection = one(chosen(body, ">=3.11"))
    assert selection.status == "unknown"
    assert "beside the others" in selection.because
    found = chosen(body, ">=3.11,<3.14")
    assert (build(found), build(found, "torchvision")) == ("2.15.0 pypi", "0.29.2 pypi")


def test_a_version_that_is_not_for_every_python_of_the_project_is_told_as_that() -> None:
    found = chosen('torchvision = ">=0.29"\n', ">=3.11")
    miss = one(found, "torchvision").miss
    assert miss is not None
    assert (miss.kind, miss.evidence) == ("python", "measured")
    assert miss.message == (
        "torchvision 0.29.2 requires Python >=3.10,!=3.14.1: "
        "the project (>=3.11) is for Python 3.14.1 too"
    )
    assert miss.cure == 'python = ">=3.11,!=3.14.1"'
    mended = chosen('torchvision = ">=0.29"\n', ">=3.11,!=3.14.1")
    assert build(mended, "torchvision") == "0.29.2 pypi"


def test_one_range_of_pythons_cures_all_packages() -> None:
    found = chosen('torch = "2.15.0"\ntorchvision = ">=0.29"\n', ">=3.8,<4")
    cures = {s.miss.cure for s in found.selections if s.miss is not None}
    assert cures == {'python = ">=3.11,!=3.14.1,<4"'}
    mended = chosen('torch = "2.15.0"\ntorchvision = ">=0.29"\n', ">=3.11,!=3.14.1,<4")
    assert build(mended) == "2.15.0 pypi"


def test_a_project_for_no_python_of_a_version_has_no_cure() -> None:
    miss = one(chosen('torch = "2.15.0"\n', ">=3.8,<3.9")).miss
    assert miss is not None
    assert (miss.kind, miss.cure) == ("python", "")


def test_a_fork_for_some_pythons_is_told_of_those() -> None:
    body = "torchvision = {{ version = '>=0.29', markers = \"python_version {} '3.14'\" }}\n"
    assert build(chosen(body.format("<"), ">=3.11"), "torchvision") == "0.29.2 pypi"
    other = one(chosen(body.format("<="), ">=3.11"), "torchvision")
    assert other.miss is not None
    assert other.miss.kind == "python"


def test_an_explicit_source_serves_only_what_names_it() -> None:
    body = 'torch = { version = ">=2.11", source = "cu126" }\n'
    assert build(chosen(body + source("cu126"))) == "2.14.1+cu126 channel"
    assert build(chosen('torch = ">=2.11"\n' + source("cu126"))) == "2.15.0 pypi"


def test_a_supplemental_source_is_asked_last() -> None:
    body = 'torch = "2.13.0"\n'
    assert build(chosen(body + source("cu126", "supplemental"))) == "2.13.0 pypi"
    pypi = '[[tool.poetry.source]]\nname = "pypi"\npriority = "primary"\n'
    assert build(chosen(body + pypi + source("cu126", "primary"))) == "2.13.0+cu126 channel"


def test_markers_divide_the_sources() -> None:
    body = (
        "torch = [{ version = '>=2.11', source = 'cu126', markers = \"sys_platform == 'linux'\" }, "
        "{ version = '>=2.11', source = 'pypi', markers = \"sys_platform != 'linux'\" }]\n"
        "[[tool.poetry.source]]\nname = 'pypi'\npriority = 'primary'\n" + source("cu126")
    )
    assert build(chosen(body)) == "2.14.1+cu126 channel"
    assert build(chosen(body, platform="macos-arm64")) == "2.15.0 pypi"


def test_a_missing_wheel_is_noticed_after_the_lock() -> None:
    body = 'torch = { version = "2.13.0", source = "cu126" }\n' + source("cu126")
    selection = one(chosen(body, platform="macos-arm64"))
    assert selection.status == "none"
    assert selection.because.startswith("poetry locks torch 2.13.0+cu126")


def test_a_private_source_is_unknown() -> None:
    body = (
        'torch = "*"\n[[tool.poetry.source]]\nname = "corp"\nurl = "https://corp.example/x"\n'
        'priority = "primary"\n'
    )
    assert one(chosen(body)).status == "unknown"


def test_all_groups_are_locked_together() -> None:
    group = "[tool.poetry.group.dev.dependencies]\ntorch = '<2.13'\n"
    assert build(chosen('torch = "*"\n' + group, ">=3.10")) == "2.12.1 pypi"


def test_two_sources_in_one_place_stop_the_lock() -> None:
    body = (
        'torch = { version = "*", source = "cu126" }\n'
        '[tool.poetry.group.dev.dependencies]\ntorch = { version = "<2.13", source = "cpu" }\n'
    )
    found = chosen(body + source("cu126") + source("cpu"))
    assert found.conflict is not None
    assert "two sources" in found.conflict
    assert one(found).status == "unknown"


def test_a_fork_that_has_no_version_stops_the_lock() -> None:
    body = (
        "torch = [{ version = '2.13.0', source = 'cu126', markers = \"sys_platform == 'linux'\" }, "
        "{ version = '2.3.9', markers = \"sys_platform != 'linux'\" }]\n"
    )
    selection = one(chosen(body + source("cu126")))
    assert selection.status == "unknown"
    assert selection.because.startswith("poetry stops: torch 2.3.9")


PROJECT = (
    '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.11"\n'
    'dependencies = ["torch{}"]\n[tool.poetry]\npackage-mode = false\n'
    "[tool.poetry.dependencies]\ntorch = {}\n"
)


def enriched(asked: str, entries: str, platform: str = "linux-x86_64") -> SelectedSet:
    """Select where ``[project]`` asks for torch and Poetry's own table adds to it."""
    text = PROJECT.format(asked, entries) + source("cu126") + source("cpu")
    document = read_pyproject("pyproject.toml", text.encode())
    assert not document.problems
    own = Python(3, 11)
    target = Target(NodeGroup("group", (), (own,), platform), own)
    return select(project_installs(document, lock=None, client=None)[0], target, load_catalog())


def test_each_entry_of_poetrys_table_makes_a_requirement_of_the_projects() -> None:
    entries = (
        '[{ source = "cu126", markers = "sys_platform == \'linux\'" },'
        " { markers = \"sys_platform != 'linux'\" }]"
    )
    assert build(enriched(">=2.11", entries)) == "2.14.1+cu126 channel"
    assert build(enriched(">=2.11", entries, "macos-arm64")) == "2.15.0 pypi"


def test_bounds_of_poetrys_table_narrow_those_of_the_project() -> None:
    assert build(enriched(">=2.11", '{ version = "<2.14", source = "cu126" }')) == (
        "2.13.0+cu126 channel"
    )
    assert build(enriched("", '"~2.12"')) == "2.12.1 pypi"


def test_an_entry_whose_marker_contradicts_the_projects_adds_nothing() -> None:
    marked = " ; sys_platform == 'linux'"
    entry = '{ source = "cpu", markers = "sys_platform == \'darwin\'" }'
    assert build(enriched(marked, entry)) == "2.15.0 pypi"


def test_a_marker_of_poetrys_table_says_where_the_projects_is_installed() -> None:
    entry = '{ source = "cu126", markers = "sys_platform == \'linux\'" }'
    assert build(enriched("", entry)) == "2.14.1+cu126 channel"
    assert one(enriched("", entry, "macos-arm64")).status == "skipped"


def test_a_union_in_poetrys_table_is_not_known() -> None:
    assert one(enriched("", '"2.12.0 || 2.14.0"')).status == "unknown"


def test_requirements_are_those_that_poetry_reads_of_a_release() -> None:
    # Poetry 2.5.1 locks 0.11.3 and refuses 0.14.1: "torchvision (0.14.1) depends on torch (1.13.1)"
    # although its wheels for aarch64 ask for any torch.
    body = 'torch = "^2.11"\ntorchvision = "{}"\n'
    for platform in ("linux-x86_64", "linux-aarch64", "macos-arm64"):
        found = chosen(body.format("*"), ">=3.10,<4.0", platform)
        picked = one(found, "torchvision")
        version = picked.build.version if picked.build else picked.miss and picked.miss.message
        assert version and "0.11.3" in version
        assert "0.14.1" not in version
    assert "0.10.2" in str(one(chosen('torch = "^2.11"\ntorchaudio = "<2.0.1"\n'), "torchaudio"))


def test_what_is_for_no_python_of_the_project_asks_for_nothing() -> None:
    for python, version in ((">= '3.12'", "2.15.0"), ("< '3.12'", "2.9.1")):
        held = f'{{ version = "2.9.1", markers = "python_version {python}" }}'
        found = chosen(f'torch = "^2.9"\ntorchaudio = {held}\n', ">=3.11,<3.12")
        assert build(found) == f"{version} pypi"


def test_equal_declarations_divide_the_lock_where_they_leave_a_place_without() -> None:
    entry = '{{ version = "0.26.0", markers = "sys_platform == \'{}\'" }}'
    some = ", ".join(entry.format(system) for system in ("linux", "darwin"))
    every = f"{some}, {entry.format('linux').replace('==', '!=')}"
    for entries, version in ((some, "2.15.0"), (every, "2.11.0")):
        body = f'torch = "*"\ntorchvision = [{entries}]\n'
        found = chosen(body, ">=3.11,<3.14", "windows-x86_64")
        assert build(found) == f"{version} pypi"


def test_a_part_that_one_declaration_is_left_for_is_not_divided_further() -> None:
    # The part of other systems has one declaration of torchvision, for macOS; it holds torch
    # back on Windows as well.
    two = '{ version = "0.26.0", markers = "sys_platform == \'linux\'" }, '
    two += '{ version = "0.26.0", markers = "sys_platform == \'darwin\'" }'
    torch = '{ version = "~2.11.0", markers = "sys_platform == \'linux\'" }, '
    torch += '{ version = "*", markers = "sys_platform != \'linux\'" }'
    body = f"torch = [{torch}]\ntorchvision = [{two}]\n"
    assert build(chosen(body, ">=3.11,<3.14", "windows-x86_64")) == "2.11.0 pypi"


def test_what_another_group_asks_for_may_be_installed() -> None:
    body = 'torch = "*"\ntorchvision = { version = "*", markers = "sys_platform == \'linux\'" }\n'
    body += '[tool.poetry.group.gpu.dependencies]\ntorchvision = "*"\n'
    body += "[tool.poetry.group.gpu]\noptional = true\n"
    found = chosen(body, ">=3.11,<3.14", "macos-arm64")
    assert one(found, "torchvision").status == "unknown"


def test_an_extra_that_narrows_what_is_asked_for_is_locked_beside_it() -> None:
    body = (
        '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.11,<3.14"\n'
        'dependencies = ["torch>=2.10"]\n'
        '[project.optional-dependencies]\nmore = ["torch==2.13.0"]\n'
        "[tool.poetry]\npackage-mode = false\n"
    )
    document = read_pyproject("pyproject.toml", body.encode())
    own = Python(3, 11)
    target = Target(NodeGroup("group", (), (own,), "linux-x86_64"), own)
    installs = project_installs(document, lock=None, client="poetry")
    extra = next(install for install in installs if install.extras)
    assert one(select(extra, target, load_catalog())).status == "unknown"
