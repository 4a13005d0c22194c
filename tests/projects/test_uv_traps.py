"""The traps of uv projects, and the forms that avoid them, with real uv on the catalog's wheels."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.clients.runners import Where
from tests.projects.generate_projects import ProjectCase
from tests.projects.project_oracle import ProjectOracle

pytestmark = pytest.mark.clients

LINUX, MAC, WINDOWS = "linux-x86_64", "macos-arm64", "windows-x86_64"


def project(body: str, *indexes: str, explicit: bool = True) -> ProjectCase:
    """Return a project with channels as indexes."""
    text = '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.11"\n' + body
    for name in indexes:
        text += f'[[tool.uv.index]]\nname = "{name}"\nurl = "$B/whl/{name}"\n'
        text += "explicit = true\n" if explicit else ""
    return ProjectCase(text)


def assert_locks(
    oracle: ProjectOracle,
    case: ProjectCase,
    expected: Mapping[tuple[str, str], str],
    python: str = "3.12",
) -> None:
    """Assert what real uv locks for (install, platform), and that the prediction says the same."""
    compared = oracle.compare(case)
    lock, log = oracle.lock(case)
    assert lock is not None, log
    said = {
        key: " ".join(oracle.installed(lock, case, key[0], Where(python, key[1])))
        for key in expected
    }
    assert said == dict(expected)
    assert not compared.differences, compared.text


def test_a_constraint_routes_transitive_torch(shipped: ProjectOracle) -> None:
    case = project(
        'dependencies = ["torchvision==0.28.0"]\n[tool.uv]\n'
        'constraint-dependencies = ["torch>=2"]\n[tool.uv.sources]\n'
        'torch = { index = "cu126" }\ntorchvision = { index = "cu126" }\n',
        "cu126",
    )
    expected = {("plain", LINUX): "torch==2.13.0+cu126@cu126 torchvision==0.28.0+cu126@cu126"}
    assert_locks(shipped, case, expected)


def test_a_constraint_without_a_version_routes_nothing(shipped: ProjectOracle) -> None:
    case = project(
        'dependencies = ["torchvision==0.28.0"]\n[tool.uv]\nconstraint-dependencies = ["torch"]\n'
        '[tool.uv.sources]\ntorch = { index = "cu126" }\ntorchvision = { index = "cu126" }\n',
        "cu126",
    )
    expected = {("plain", LINUX): "torch==2.13.0@pypi torchvision==0.28.0+cu126@cu126"}
    assert_locks(shipped, case, expected)


def test_index_url_comes_after_the_extra_indexes(shipped: ProjectOracle) -> None:
    case = project(
        'dependencies = ["torch==2.13.0"]\n[tool.uv]\nindex-url = "$B/whl/cu130"\n'
        'extra-index-url = ["$B/whl/cu126"]\n'
    )
    assert_locks(shipped, case, {("plain", LINUX): "torch==2.13.0+cu126@cu126"})


def test_labels_sort_by_their_numbers(shipped: ProjectOracle) -> None:
    case = project(
        'dependencies = ["torch==2.8.0"]\n[tool.uv]\nindex-strategy = "unsafe-best-match"\n',
        "cu126",
        "cu128",
        "cpu",
        explicit=False,
    )
    assert_locks(shipped, case, {("plain", LINUX): "torch==2.8.0+cu128@cu128"})


def test_one_routed_extra_without_conflicts_routes_the_base(shipped: ProjectOracle) -> None:
    case = project(
        'dependencies = ["torch==2.13.0"]\n[project.optional-dependencies]\ngpu = ["torch"]\n'
        '[tool.uv.sources]\ntorch = { index = "cu126", extra = "gpu" }\n',
        "cu126",
    )
    both = "torch==2.13.0+cu126@cu126"
    expected = {("plain", LINUX): both, ("extra:gpu", LINUX): both}
    assert_locks(shipped, case, {**expected, ("plain", MAC): both + "!"})


EXTRAS = (
    'dependencies = ["torch>=2.10,<2.15"]\n[project.optional-dependencies]\n'
    'cu126 = ["torch"]\ncu130 = ["torch"]\n[tool.uv]\n'
    'conflicts = [[{ extra = "cu126" }, { extra = "cu130" }]]\n'
)


def test_markers_on_extras_lock_cuda_on_macos(shipped: ProjectOracle) -> None:
    marker = "marker = \"sys_platform == 'linux'\""
    case = project(
        EXTRAS + '[tool.uv.sources]\ntorch = [{ index = "cu126", extra = "cu126", '
        f'{marker} }}, {{ index = "cu130", extra = "cu130", {marker} }}]\n',
        "cu126",
        "cu130",
    )
    expected = {
        ("plain", MAC): "torch==2.14.1@pypi",
        ("extra:cu126", LINUX): "torch==2.14.1+cu126@cu126",
        ("extra:cu126", MAC): "torch==2.14.1+cu126@cu126!",
    }
    assert_locks(shipped, case, expected)


def test_project_page_as_link_page_shadows_nothing(shipped: ProjectOracle) -> None:
    body = 'dependencies = ["torch==2.13.0", "torchvision==0.28.0"]\n[tool.uv]\n'
    page = project(body + 'find-links = ["$B/whl/cu126/torch/"]\n')
    root = project(body + 'find-links = ["$B/whl/cu126/"]\n')
    one = "torch==2.13.0+cu126@cu126 torchvision==0.28.0@pypi"
    assert_locks(shipped, page, {("plain", LINUX): one})
    assert_locks(shipped, root, {("plain", LINUX): "torch==2.13.0@pypi torchvision==0.28.0@pypi"})


def test_linux_marker_serves_macos_developers_and_linux_servers(shipped: ProjectOracle) -> None:
    case = project(
        'dependencies = ["torch>=2.11", "torchvision"]\n[tool.uv.sources]\n'
        'torch = { index = "cu126", marker = "sys_platform == \'linux\'" }\n'
        'torchvision = { index = "cu126", marker = "sys_platform == \'linux\'" }\n',
        "cu126",
    )
    expected = {
        ("plain", LINUX): "torch==2.14.1+cu126@cu126 torchvision==0.29.1+cu126@cu126",
        ("plain", MAC): "torch==2.15.0@pypi torchvision==0.29.2@pypi",
        ("plain", WINDOWS): "torch==2.15.0@pypi torchvision==0.29.2@pypi",
    }
    assert_locks(shipped, case, expected)


def test_conflicting_extras_serve_v100_and_b200(shipped: ProjectOracle) -> None:
    case = project(
        EXTRAS + '[tool.uv.sources]\ntorch = [{ index = "cu126", extra = "cu126" }, '
        '{ index = "cu130", extra = "cu130" }]\n',
        "cu126",
        "cu130",
    )
    expected = {
        ("plain", LINUX): "torch==2.14.1@pypi",
        ("plain", MAC): "torch==2.14.1@pypi",
        ("extra:cu126", LINUX): "torch==2.14.1+cu126@cu126",
        ("extra:cu130", LINUX): "torch==2.14.1+cu130@cu130",
    }
    assert_locks(shipped, case, expected)


def test_constraint_and_source_with_a_marker_route_transitive_torch(
    shipped: ProjectOracle,
) -> None:
    marker = "marker = \"sys_platform == 'linux'\""
    case = project(
        'dependencies = ["torchvision"]\n[tool.uv]\nconstraint-dependencies = ["torch>=2.11"]\n'
        f'[tool.uv.sources]\ntorch = {{ index = "cu126", {marker} }}\n'
        f'torchvision = {{ index = "cu126", {marker} }}\n',
        "cu126",
    )
    expected = {
        ("plain", LINUX): "torch==2.14.1+cu126@cu126 torchvision==0.29.1+cu126@cu126",
        ("plain", MAC): "torch==2.15.0@pypi torchvision==0.29.2@pypi",
    }
    assert_locks(shipped, case, expected)


def test_torch_backend_means_nothing_to_lock(shipped: ProjectOracle) -> None:
    case = project('dependencies = ["torch"]\n[tool.uv]\ntorch-backend = "cu126"\n')
    compared = shipped.compare(case)
    assert compared.locked, compared.log
    assert not compared.differences, compared.text


def test_an_unknown_key_switches_all_settings_of_uv_off(shipped: ProjectOracle) -> None:
    """Not predicted: uv only warns, and locks as if ``[tool.uv]`` named no index at all."""
    case = project('dependencies = ["torch==2.13.0"]\n[tool.uv]\nno-such-key = 1\n', "cu126",
                   explicit=False)  # fmt: skip
    lock, log = shipped.lock(case)
    assert lock is not None, log
    assert "unknown field `no-such-key`" in log
    assert shipped.installed(lock, case, "plain", Where("3.12", LINUX)) == ["torch==2.13.0@pypi"]
