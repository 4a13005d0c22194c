"""Projects of uv on the shipped catalog, without uv: ways in, selections, conflicts, unknowns."""

from __future__ import annotations

import pytest

from torchpin.catalog.store import load_catalog
from torchpin.documents.base import Document
from torchpin.documents.pyproject import read_pyproject
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.select.model import SelectedSet, Selection
from torchpin.select.projects import project_installs
from torchpin.select.selection import select
from torchpin.select.uv_prediction import lock_of
from torchpin.select.uv_project import select_uv_project

HEAD = '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.11"\n'
CU126 = (
    '[[tool.uv.index]]\nname = "cu126"\nurl = "https://download.pytorch.org/whl/cu126"\n'
    "explicit = true\n"
)
CU130 = CU126.replace("cu126", "cu130")


def document(text: str, path: str = "pyproject.toml") -> Document:
    found = read_pyproject(path, text.encode())
    assert not found.problems
    return found


def target(platform: str = "linux-x86_64", python: str | None = "3.12") -> Target:
    if python is None:
        return Target(NodeGroup("group", (), (), platform), None)
    major, minor = python.split(".")
    own = Python(int(major), int(minor))
    return Target(NodeGroup("group", (), (own,), platform), own)


def chosen(
    text: str, where: Target | None = None, name: str | None = None, *siblings: Document
) -> SelectedSet:
    installs = project_installs(document(text), lock=None, siblings=siblings, client="uv")
    install = next(one for one in installs if one.name == name)
    return select(install, where or target(), load_catalog())


def one(found: SelectedSet, package: str = "torch") -> Selection:
    return next(s for s in found.selections if s.package == package)


def build(found: SelectedSet, package: str = "torch") -> str:
    selection = one(found, package)
    assert selection.build is not None, selection.because
    return f"{selection.build.full_version} {selection.build.home}"


def test_ways_in_are_plain_extras_and_other_groups() -> None:
    text = HEAD + (
        'dependencies = ["torch"]\n[project.optional-dependencies]\ncu126 = ["torch"]\n'
        '[dependency-groups]\ndev = ["torchaudio"]\ngpu = [{ include-group = "base" }]\n'
        'base = ["torchvision"]\n[tool.uv]\npackage = false\n'
    )
    installs = project_installs(document(text), lock=None, client=None)
    assert [(i.name, i.extras, i.groups) for i in installs] == [
        (None, (), ("dev",)),
        ("extra:cu126", ("cu126",), ("dev",)),
        ("group:gpu", (), ("dev", "gpu", "base")),
        ("group:base", (), ("dev", "base")),
    ]
    assert {i.client for i in installs} == {"uv"}
    names = [p.declaration.name for p in installs[2].requirements]
    assert names == ["torch", "torchaudio", "torchvision"]


def test_pip_takes_no_groups_and_none_of_the_indexes() -> None:
    text = HEAD + '[dependency-groups]\ndev = ["torch"]\n' + CU126
    plain, dev = project_installs(document(text), lock=None, client="pip")
    assert plain.groups == ()
    assert dev.name == "group:dev"
    assert [index.url for index in plain.indexes] == [""]


def test_a_source_with_a_marker_divides_the_platforms() -> None:
    text = HEAD + (
        'dependencies = ["torch>=2.11"]\n[tool.uv.sources]\n'
        'torch = { index = "cu126", marker = "sys_platform == \'linux\'" }\n' + CU126
    )
    assert build(chosen(text)) == "2.14.1+cu126 channel"
    assert build(chosen(text, target("macos-arm64"))) == "2.15.0 pypi"
    assert one(chosen(text)).chosen_from is not None
    assert "whl/cu126" in one(chosen(text)).because


def test_a_label_has_no_build_in_the_other_part() -> None:
    text = HEAD + (
        'dependencies = ["torch==2.14.1+cu126"]\n[tool.uv.sources]\n'
        'torch = { index = "cu126", marker = "sys_platform == \'linux\'" }\n' + CU126
    )
    found = chosen(text)
    assert found.conflict is not None
    assert "torch==2.14.1+cu126" in found.conflict
    assert "not (sys_platform == 'linux')" in found.conflict
    assert one(found).status == "none"
    assert one(found).miss is not None


ROUTED = (
    "[project.optional-dependencies]\ncu126 = ['torch']\ncu130 = ['torch']\n[tool.uv.sources]\n"
    "torch = [{ index = 'cu126', extra = 'cu126' }, { index = 'cu130', extra = 'cu130' }]\n"
)
CONFLICTS = "[tool.uv]\nconflicts = [[{ extra = 'cu126' }, { extra = 'cu130' }]]\n"


def test_two_routed_extras_without_conflicts_stop_uv() -> None:
    found = chosen(HEAD + ROUTED + CU126 + CU130, name="extra:cu126")
    assert found.conflict is not None
    assert "extra cu126" in found.conflict
    assert "extra cu130" in found.conflict


def test_declared_conflicts_give_each_extra_its_own_build() -> None:
    text = HEAD + "dependencies = ['torch<2.15']\n" + ROUTED + CONFLICTS + CU126 + CU130
    assert build(chosen(text)) == "2.14.1 pypi"
    assert build(chosen(text, name="extra:cu126")) == "2.14.1+cu126 channel"
    assert build(chosen(text, name="extra:cu130")) == "2.14.1+cu130 channel"
    install = project_installs(document(text), lock=None, client="uv")[0]
    both = install._replace(extras=("cu126", "cu130"))
    found = select_uv_project(both, target(), load_catalog())
    assert found.conflict == "extra cu126 and extra cu130 are declared to conflict"


def test_one_routed_extra_routes_the_base() -> None:
    text = HEAD + (
        "dependencies = ['torch<2.15']\n[project.optional-dependencies]\ngpu = ['torch']\n"
        "[tool.uv.sources]\ntorch = { index = 'cu126', extra = 'gpu' }\n" + CU126
    )
    assert build(chosen(text)) == "2.14.1+cu126 channel"


def test_locked_build_without_a_wheel_for_the_target() -> None:
    text = HEAD + (
        "dependencies = ['torch']\n[tool.uv.sources]\ntorch = { index = 'cu126' }\n" + CU126
    )
    selection = one(chosen(text, target("macos-arm64")))
    assert selection.status == "none"
    assert selection.miss is not None
    assert selection.miss.kind == "platform"
    assert selection.because.startswith("uv locks torch 2.14.1+cu126")


def test_requires_python_divides_and_excludes() -> None:
    text = HEAD.replace("3.11", "3.10") + "dependencies = ['torch']\n[tool.uv]\n"
    assert build(chosen(text, target(python="3.10"))) == "2.14.1 pypi"
    assert build(chosen(text, target(python="3.11"))) == "2.15.0 pypi"
    selection = one(chosen(text, target(python="3.9")))
    assert selection.status == "none"
    assert selection.miss is not None
    assert selection.miss.kind == "python"


def test_an_environment_excludes_the_target() -> None:
    text = (
        HEAD + "dependencies = ['torch']\n[tool.uv]\nenvironments = \"sys_platform == 'linux'\"\n"
    )
    selection = one(chosen(text, target("windows-x86_64")))
    assert selection.miss is not None
    assert selection.miss.kind == "platform"


def test_torch_that_a_companion_brings() -> None:
    text = HEAD + "dependencies = ['torchvision==0.28.0']\n[tool.uv]\n"
    found = chosen(text)
    assert one(found).implied_by == "torchvision"
    assert build(found) == "2.13.0 pypi"


@pytest.mark.parametrize(
    "source",
    ["{ git = 'https://example/torch' }", "{ url = 'https://example/t.whl' }", "{ path = '../t' }"],
)
def test_other_sources_are_unknown(source: str) -> None:
    found = chosen(HEAD + f"dependencies = ['torch']\n[tool.uv.sources]\ntorch = {source}\n")
    assert one(found).status == "unknown"
    assert found.conflict is None


def test_a_private_index_is_unknown() -> None:
    text = HEAD + "dependencies = ['torch']\n[[tool.uv.index]]\nurl = 'https://corp.example/x'\n"
    assert one(chosen(text)).status == "unknown"


def test_a_version_newer_than_the_catalog_is_unknown() -> None:
    found = chosen(HEAD + "dependencies = ['torch==9.9']\n[tool.uv]\n")
    assert found.conflict is None
    assert one(found).status == "unknown"


def test_markers_that_never_hold_are_skipped() -> None:
    text = HEAD + "dependencies = [\"torch ; sys_platform == 'windows'\"]\n[tool.uv]\n"
    assert one(chosen(text)).status == "skipped"


def test_members_of_a_workspace_are_locked_together() -> None:
    member = document(
        HEAD.replace("app", "lib") + 'dependencies = ["torch==2.13.0"]\n', "lib/pyproject.toml"
    )
    text = HEAD + "dependencies = ['torch']\n[tool.uv.workspace]\nmembers = ['lib']\n"
    assert build(chosen(text, None, None, member)) == "2.13.0 pypi"


def test_the_lock_is_made_once_for_all_targets() -> None:
    text = HEAD + "dependencies = ['torch']\n[tool.uv]\n"
    installs = project_installs(document(text), lock=None, client="uv")
    catalog = load_catalog()
    assert lock_of(installs[0], catalog) is lock_of(installs[0], catalog)


def test_an_open_python_is_answered_where_all_agree() -> None:
    text = HEAD + "dependencies = ['torch==2.13.0']\n[tool.uv]\n"
    assert build(chosen(text, target(python=None))) == "2.13.0 pypi"
    divided = HEAD.replace("3.11", "3.10") + "dependencies = ['torch']\n[tool.uv]\n"
    assert one(chosen(divided, target(python=None))).status == "unknown"


@pytest.mark.parametrize(("more", "stops"), [("", False), ("no-build = true\n", True)])
def test_a_source_distribution_is_for_every_platform(more: str, stops: bool) -> None:
    """xformers has no wheel for Linux on Arm, and uv does not need one: it may build."""
    found = chosen(
        '[project]\nname = "app"\nversion = "1"\nrequires-python = "==3.11.*"\n'
        'dependencies = ["torch==2.7.1", "xformers==0.0.31"]\n'
        f"[tool.uv]\n{more}environments = [\"platform_machine == 'aarch64'\"]\n",
        target("linux-aarch64", "3.11"),
    )
    assert (found.conflict is not None) is stops
