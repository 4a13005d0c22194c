"""Projects of PDM on the shipped catalog, without PDM; the answers were measured with 2.29.4."""

from __future__ import annotations

from torchpin.catalog.store import load_catalog
from torchpin.documents.pyproject import read_pyproject
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.select.model import Selection
from torchpin.select.projects import project_installs
from torchpin.select.selection import select

HEAD = '[project]\nname = "app"\nversion = "0"\nrequires-python = ">={}"\ndependencies = [{}]\n'
PYPI = '[[tool.pdm.source]]\nname = "pypi"\nurl = "https://pypi.example/simple"\n'
CU126 = '[[tool.pdm.source]]\nname = "cu126"\nurl = "https://download.pytorch.org/whl/cu126"\n'
TORCH_ONLY = 'include_packages = ["torch"]\nexclude_packages = ["*"]\n'


def one(body: str, requires: str, python: str = "3.11", package: str = "torch") -> Selection:
    text = HEAD.format(python, requires) + "[tool.pdm]\ndistribution = false\n" + body
    document = read_pyproject("pyproject.toml", text.encode())
    assert not document.problems
    own = Python(3, 11)
    target = Target(NodeGroup("group", (), (own,), "linux-x86_64"), own)
    install = project_installs(document, lock=None, client=None)[0]
    assert install.client == "pdm"
    found = select(install, target, load_catalog())
    return next(s for s in found.selections if s.package == package)


def build(selection: Selection) -> str:
    assert selection.build is not None, selection.because
    return f"{selection.build.full_version} {selection.build.home}"


def test_every_python_of_the_project_counts() -> None:
    assert build(one(PYPI, '"torch"')) == "2.15.0 pypi"
    assert build(one(PYPI, '"torch"', "3.10")) == "2.14.1 pypi"
    assert build(one(PYPI, '"torch", "torchvision"')) == "2.10.0 pypi"


def test_a_source_that_includes_a_package_serves_it_alone() -> None:
    assert build(one(PYPI + CU126 + TORCH_ONLY, '"torch"')) == "2.14.1+cu126 channel"
    vision = one(PYPI + CU126 + TORCH_ONLY, '"torchvision==0.25.0"', package="torchvision")
    assert build(vision) == "0.25.0 pypi"


def test_of_several_sources_the_label_is_installed() -> None:
    assert build(one(PYPI + CU126, '"torch==2.13.0"')) == "2.13.0+cu126 channel"
    assert build(one(CU126 + PYPI, '"torch<2.14"')) == "2.13.0+cu126 channel"


def test_all_groups_are_locked_together() -> None:
    body = "[dependency-groups]\ndev = ['torch<2.13']\n" + PYPI
    assert build(one(body, '"torch"', "3.10")) == "2.12.1 pypi"
    extra = "[project.optional-dependencies]\nold = ['torch<2.13']\n" + PYPI
    assert build(one(extra, '"torch"', "3.10")) == "2.14.1 pypi"


def test_an_override_beats_what_is_asked_for() -> None:
    body = "[tool.pdm.resolution.overrides]\ntorch = '2.13.0'\n" + PYPI
    assert build(one(body, '"torch<2.10", "torchaudio"')) == "2.13.0 pypi"


def test_the_order_of_the_sources_counts_if_asked_for() -> None:
    order = "[tool.pdm.resolution]\nrespect-source-order = true\n"
    assert build(one(order + PYPI + CU126, '"torch==2.13.0"')) == "2.13.0 pypi"
    assert build(one(order + CU126 + PYPI, '"torch==2.13.0"')) == "2.13.0+cu126 channel"


def test_a_version_that_is_not_for_every_python_of_the_project_is_told_as_that() -> None:
    miss = one(PYPI, '"torch==2.15.0"', "3.10").miss
    assert miss is not None
    assert (miss.kind, miss.cure) == ("python", 'requires-python = ">=3.11"')


def test_a_companions_pin_of_torch_leads_under_the_marker_of_the_companion() -> None:
    # torch 2.10.0 is for Python 3.10 and newer only: the marker leaves 3.12 and newer.
    wanted = '"torch", "torchvision<0.26 ; python_version >= \'3.12\'"'
    assert build(one(PYPI, '"torch"', "3.9")) == "2.8.0 pypi"
    assert build(one(PYPI, wanted, "3.9")) == "2.10.0 pypi"


def test_an_override_without_a_version_is_not_read() -> None:
    body = "[tool.pdm.resolution.overrides]\ntorch = '*'\n" + PYPI
    assert one(body, '"torch"').status == "unknown"
