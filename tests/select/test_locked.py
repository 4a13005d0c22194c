"""What a lock installs: hand-written locks, and real ``uv lock`` and ``uv sync`` as the judge."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.clients.runners import clean_environment, uv_binary
from tests.clients.stub_server import Stub

from torchpin.catalog.model import WATCHED
from torchpin.catalog.store import load_catalog
from torchpin.documents.base import Document
from torchpin.documents.lock_text import canonical
from torchpin.documents.pdm_lock import read_pdm_lock
from torchpin.documents.poetry_lock import read_poetry_lock
from torchpin.documents.pylock import read_pylock
from torchpin.documents.pyproject import read_pyproject
from torchpin.documents.uv_lock import read_uv_lock
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.select.lock_wheels import places
from torchpin.select.locked import select_locked
from torchpin.select.model import Install, Placed, SelectedSet, Selection

READERS = {
    "uv.lock": read_uv_lock,
    "poetry.lock": read_poetry_lock,
    "pdm.lock": read_pdm_lock,
    "pylock.toml": read_pylock,
}
CHANNELS = "https://download.pytorch.org/whl"
PYPI = "https://pypi.example/simple"


def target(
    python: str | None = "3.11",
    platform: str = "linux-x86_64",
    *,
    glibc: str | None = "2.35",
    macos: str | None = None,
    musl: bool = False,
) -> Target:
    group = NodeGroup("nodes", (), (), platform, glibc=glibc, macos=macos, musl=musl)
    if python is None:
        return Target(group, None)
    major, minor = python.split(".")
    return Target(group, Python(int(major), int(minor)))


def install_of_lock(
    lock: Document,
    project: str = '[project]\nname = "demo"\nversion = "0.1.0"\n',
    *,
    extras: tuple[str, ...] = (),
    groups: tuple[str, ...] = (),
) -> Install:
    root = read_pyproject("pyproject.toml", project.encode())
    scopes = {"", *(f"extra:{e}" for e in extras), *(f"group:{g}" for g in groups)}
    return Install(
        root=root,
        name=None,
        client="uv",
        documents=(root,),
        requirements=tuple(Placed(root, d) for d in root.declarations if d.scope in scopes),
        constraints=(),
        indexes=(),
        discarded=(),
        lock=lock,
        extras=extras,
        groups=groups,
    )


def selected(
    text: str,
    where: Target | None = None,
    *,
    kind: str = "uv.lock",
    project: str = '[project]\nname = "demo"\nversion = "0.1.0"\n',
    extras: tuple[str, ...] = (),
    groups: tuple[str, ...] = (),
) -> dict[str, Selection]:
    lock = READERS[kind](kind, text.encode())
    assert not lock.problems
    install = install_of_lock(lock, project, extras=extras, groups=groups)
    found = select_locked(install, where or target(), load_catalog())
    return {selection.package: selection for selection in found.selections}


def wheel(version: str, channel: str = "", tag: str = "cp311-cp311-manylinux_2_28_x86_64") -> str:
    base = f"{CHANNELS}/{channel}" if channel else "https://files.example/packages/ab/cd"
    name = version.replace("+", "%2B")
    return f'    {{ url = "{base}/torch-{name}-{tag}.whl", hash = "sha256:{"0" * 64}" }},'


def package(version: str, source: str, *wheels: str, rest: str = "") -> str:
    lines = "\n".join(wheels)
    return (
        f'\n[[package]]\nname = "torch"\nversion = "{version}"\n'
        f'source = {{ registry = "{source}" }}\n{rest}wheels = [\n{lines}\n]\n'
    )


HEAD = 'version = 1\nrevision = 3\nrequires-python = ">=3.10, <3.14"\n'
DEMO = '\n[[package]]\nname = "demo"\nversion = "0.1.0"\nsource = { virtual = "." }\n'
PLAIN = HEAD + DEMO + 'dependencies = [\n    { name = "torch" },\n]\n'
CU126 = package("2.10.0+cu126", f"{CHANNELS}/cu126", wheel("2.10.0+cu126", "cu126"))


def test_the_build_of_the_channel_is_selected_and_placed_in_the_lock() -> None:
    torch = selected(PLAIN + CU126)["torch"]
    assert torch.status == "selected"
    assert torch.build is not None
    assert (torch.build.full_version, torch.build.channel) == ("2.10.0+cu126", "cu126")
    assert torch.build.home == "channel"
    assert torch.build.pythons == ("cp311",)
    assert torch.build.glibc == "2.28"
    assert torch.exact
    assert torch.implied_by is None
    assert torch.placed is not None
    document, declaration = torch.placed
    assert document.kind == "uv.lock"
    assert document.text[slice(*declaration.span)] == "2.10.0+cu126"
    assert document.text[slice(*declaration.name_span)] == "torch"
    assert document.text[slice(*declaration.line_span)] == 'version = "2.10.0+cu126"'
    assert torch.chosen_from is not None
    assert torch.chosen_from.kind.channel == "cu126"
    line = torch.chosen_from.line
    assert line is not None
    assert document.text[slice(*line.url_span)] == f"{CHANNELS}/cu126"


@pytest.mark.parametrize(
    ("where", "kind", "word"),
    [
        (target(platform="windows-x86_64"), "platform", "windows-x86_64: only linux-x86_64"),
        (target("3.13"), "python", "Python 3.13 on linux-x86_64: only cp311"),
        (target(glibc="2.17"), "glibc", "needs glibc 2.28, the group has 2.17"),
        (target(musl=True), "glibc", "musl"),
        (target("3.14"), "python", "uv.lock is for Python >=3.10, <3.14, not for 3.14"),
    ],
)
def test_a_target_that_no_listed_wheel_is_for(where: Target, kind: str, word: str) -> None:
    torch = selected(PLAIN + CU126, where)["torch"]
    assert torch.status == "none"
    assert torch.miss is not None
    assert (torch.miss.kind, torch.miss.evidence) == (kind, "measured")
    assert word in torch.miss.message
    assert "uv.lock" in torch.miss.message


def test_environments_of_the_lock() -> None:
    text = PLAIN.replace("\n\n", "\nsupported-markers = [\"sys_platform == 'linux'\"]\n\n", 1)
    torch = selected(text + CU126, target(platform="macos-arm64", glibc=None))["torch"]
    assert torch.status == "none"
    assert torch.miss is not None
    assert torch.miss.kind == "platform"
    assert "sys_platform == 'linux'" in torch.miss.message


def test_a_macos_wheel_needs_its_macos() -> None:
    text = PLAIN + package("2.14.1", PYPI, wheel("2.14.1", tag="cp311-none-macosx_14_0_arm64"))
    old = selected(text, target(platform="macos-arm64", glibc=None, macos="12"))["torch"]
    assert old.miss is not None
    assert old.miss.kind == "platform"
    assert "needs macOS 14.0" in old.miss.message
    new = selected(text, target(platform="macos-arm64", glibc=None, macos="15"))["torch"]
    assert new.build is not None
    assert new.build.home == "pypi"


def test_a_vendor_or_private_source_is_unknown() -> None:
    for source, version in (
        ("https://wheels.corp.example/gpu", "2.10.0"),
        (f"{CHANNELS}/cu126", "2.10.0+cu126.nv25"),
        (f"{CHANNELS}/nightly/cu126", "2.10.0"),
        (PYPI, "2.10.0+cu126"),
    ):
        torch = selected(PLAIN + package(version, source, wheel(version)))["torch"]
        assert torch.status == "unknown", source
        assert torch.miss is None


def test_a_private_index_that_the_profile_names() -> None:
    url = "https://wheels.corp.example/gpu"
    lock = read_uv_lock(
        "uv.lock", (PLAIN + package("2.10.0+cu126", url, wheel("2.10.0+cu126"))).encode()
    )
    found = select_locked(
        install_of_lock(lock), target(), load_catalog(), private={url: "cu126"}
    ).selections
    assert found[0].status == "selected"
    assert found[0].build is not None
    assert found[0].build.channel == "cu126"


def test_a_version_that_the_catalog_does_not_know_is_unknown() -> None:
    torch = selected(PLAIN + package("99.1.0", PYPI, wheel("99.1.0")))["torch"]
    assert torch.status == "unknown"
    assert "does not know torch 99.1.0" in torch.because


def test_a_source_distribution_may_be_built() -> None:
    rest = 'sdist = { url = "https://files.example/packages/torch-2.10.0.tar.gz" }\n'
    text = PLAIN + package("2.10.0", PYPI, wheel("2.10.0"), rest=rest)
    assert selected(text, target(platform="windows-x86_64"))["torch"].status == "unknown"


def test_a_direct_url_and_other_sources() -> None:
    block = '\n[[package]]\nname = "torch"\nversion = "2.10.0+cu126"\nsource = {{ {} }}\n{}'
    url = f"{CHANNELS}/cu126/torch-2.10.0%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl"
    wheels = f'wheels = [\n    {{ url = "{url}", hash = "sha256:00" }},\n]\n'
    found = selected(PLAIN + block.format(f'url = "{url}"', wheels))["torch"]
    assert found.build is not None
    assert found.build.channel == "cu126"
    git = 'git = "https://git.example/torch?rev=main#0123"'
    assert selected(PLAIN + block.format(git, ""))["torch"].status == "unknown"


def test_an_unreadable_lock_leaves_everything_unknown() -> None:
    lock = read_uv_lock("uv.lock", b"version = 1\n[[package]\n")
    project = '[project]\nname = "demo"\nversion = "1"\ndependencies = ["torch"]\n'
    found = select_locked(install_of_lock(lock, project), target(), load_catalog())
    assert [s.status for s in found.selections] == ["unknown"]
    assert "not valid TOML" in found.selections[0].because


def test_another_project_than_that_of_the_lock() -> None:
    project = '[project]\nname = "other"\nversion = "1"\ndependencies = ["torch"]\n'
    torch = selected(PLAIN + CU126, project=project)["torch"]
    assert torch.status == "unknown"
    assert "other" in torch.because


def test_a_python_that_is_not_declared_decides_nothing() -> None:
    text = PLAIN.replace('"torch" }', '"torch", marker = "python_full_version < \'3.12\'" }')
    assert selected(text + CU126)["torch"].status == "selected"
    assert selected(text + CU126, target("3.13")) == {}
    assert selected(text + CU126, target(None))["torch"].status == "unknown"


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("cp311-cp311-manylinux_2_28_x86_64", [("linux-x86_64", (2, 28))]),
        ("cp39-cp39-manylinux2014_aarch64", [("linux-aarch64", (2, 17))]),
        ("cp39-cp39-manylinux1_x86_64", [("linux-x86_64", (2, 5))]),
        ("cp39-cp39-linux_x86_64", [("linux-x86_64", None)]),
        ("py3-none-any", [("any", None)]),
        ("cp311-cp311-win_amd64", [("windows-x86_64", None)]),
        ("cp311-cp311-macosx_11_0_universal2", [("macos-arm64", None), ("macos-x86_64", None)]),
        ("cp311-cp311-musllinux_1_2_x86_64", [("linux-x86_64", None)]),
        ("cp311-cp311-win32", [("", None)]),
        (
            "cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64",
            [("linux-x86_64", (2, 27)), ("linux-x86_64", (2, 28))],
        ),
    ],
)
def test_platform_tags(tag: str, words: list[tuple[str, tuple[int, int] | None]]) -> None:
    assert [(p.platform, p.glibc) for p in places(f"torch-2.1.0-{tag}.whl")] == words


# -- Poetry, PDM, pylock.toml

POETRY = """\
# This file is automatically @generated by Poetry 2.2.1 and should not be changed by hand.

[[package]]
name = "torch"
version = "2.10.0"
description = "Tensors"
optional = false
python-versions = ">=3.10"
groups = ["main"]
markers = "sys_platform == \\"darwin\\""
files = [
    {file = "torch-2.10.0-cp311-none-macosx_11_0_arm64.whl", hash = "sha256:00"},
]

[[package]]
name = "torch"
version = "2.10.0+cu126"
description = "Tensors"
optional = false
python-versions = ">=3.10"
groups = ["main", "train"]
markers = {main = "sys_platform == \\"linux\\" and extra == \\"gpu\\"", train = "sys_platform == \\"linux\\""}
files = [
    {file = "torch-2.10.0+cu126-cp311-cp311-manylinux_2_28_x86_64.whl", hash = "sha256:01"},
]

[package.source]
type = "legacy"
url = "https://download.pytorch.org/whl/cu126"
reference = "pytorch-cu126"

[extras]
gpu = ["torch"]

[metadata]
lock-version = "2.1"
python-versions = ">=3.10,<3.14"
content-hash = "0123"
"""  # noqa: E501


def test_poetry_markers_groups_and_extras() -> None:
    mac = target(platform="macos-arm64", glibc=None)
    kind = "poetry.lock"
    torch = selected(POETRY, mac, kind=kind)["torch"]
    assert torch.build is not None
    assert (torch.build.full_version, torch.build.home) == ("2.10.0", "pypi")
    assert selected(POETRY, kind=kind) == {}
    for extras, groups in ((("gpu",), ()), ((), ("train",))):
        torch = selected(POETRY, kind=kind, extras=extras, groups=groups)["torch"]
        assert torch.build is not None
        assert torch.build.full_version == "2.10.0+cu126"
        assert torch.chosen_from is not None
        assert torch.chosen_from.url == "https://download.pytorch.org/whl/cu126"


@pytest.mark.parametrize(
    ("requires", "fits"),
    [("^3.10", True), ("~3.11", True), ("^3.12", False), (">=3.8,<3.9 || >=3.12", False)],
)
def test_poetry_writes_pythons_in_its_own_way(requires: str, fits: bool) -> None:
    text = POETRY.replace('python-versions = ">=3.10,<3.14"', f'python-versions = "{requires}"')
    torch = selected(text, kind="poetry.lock", groups=("train",))["torch"]
    assert torch.status == ("selected" if fits else "none")
    assert torch.miss is None or requires in torch.miss.message


def test_an_older_poetry_lock_leaves_the_choice_to_the_manifest() -> None:
    old = re.sub(r"\n(groups|markers) = .*", "", POETRY).replace('"2.1"', '"2.0"')
    project = """\
[tool.poetry]
name = "demo"
version = "0.1.0"
[tool.poetry.dependencies]
python = ">=3.10"
torch = [
    {version = "2.10.0", markers = "sys_platform == 'darwin'"},
    {version = "2.10.0+cu126", markers = "sys_platform == 'linux'", source = "pytorch-cu126"},
]
"""
    torch = selected(old, kind="poetry.lock", project=project)["torch"]
    assert torch.build is not None
    assert torch.build.full_version == "2.10.0+cu126"


PDM = """\
# This file is @generated by PDM.
# It is not intended for manual editing.

[metadata]
groups = ["default", "gpu"]
strategy = ["inherit_metadata"]
lock_version = "4.5.0"
content_hash = "sha256:0123"

[[metadata.targets]]
requires_python = ">=3.10,<3.13"
platform = "manylinux_2_28_x86_64"

[[package]]
name = "torch"
version = "2.10.0+cu126"
requires_python = ">=3.10"
summary = "Tensors"
groups = ["gpu"]
marker = "sys_platform == \\"linux\\""
dependencies = [
    "filelock",
    "triton==3.6.0; platform_system == \\"Linux\\"",
]
files = [
    {file = "torch-2.10.0+cu126-cp311-cp311-manylinux_2_28_x86_64.whl", hash = "sha256:00"},
]
"""


def test_pdm_groups_and_targets() -> None:
    assert selected(PDM, kind="pdm.lock") == {}
    torch = selected(PDM, kind="pdm.lock", groups=("gpu",))["torch"]
    assert torch.build is not None
    assert torch.build.channel == "cu126"
    assert torch.inferred, "the lock names no index: only the label tells the channel"
    other = selected(PDM, target(platform="windows-x86_64"), kind="pdm.lock", groups=("gpu",))
    assert other["torch"].miss is not None
    assert other["torch"].miss.kind == "platform"


def pylock(*rest: str) -> str:
    url = f"{CHANNELS}/cu126/torch-2.10.0%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl"
    return "\n".join(
        (
            'lock-version = "1.0"',
            'created-by = "pip"',
            'extras = ["gpu"]',
            'dependency-groups = ["train"]',
            "",
            "[[packages]]",
            'name = "torch"',
            'version = "2.10.0+cu126"',
            *rest,
            f'wheels = [{{ url = "{url}", hashes = {{ sha256 = "{"0" * 64}" }} }}]',
            "",
        )
    )


def test_pylock_without_an_index_is_read_by_its_urls() -> None:
    torch = selected(pylock(), kind="pylock.toml")["torch"]
    assert torch.build is not None
    assert torch.build.channel == "cu126"
    assert not torch.inferred


@pytest.mark.parametrize(
    ("marker", "extras", "groups", "installed"),
    [
        ("'gpu' in extras", (), (), False),
        ("'gpu' in extras", ("gpu",), (), True),
        ("'gpu' not in extras and sys_platform == 'linux'", (), (), True),
        ("'train' in dependency_groups", (), ("train",), True),
        ("'train' in dependency_groups or 'gpu' in extras", ("gpu",), (), True),
        ("sys_platform == 'win32'", (), (), False),
    ],
)
def test_pylock_markers(
    marker: str, extras: tuple[str, ...], groups: tuple[str, ...], installed: bool
) -> None:
    text = pylock(f'marker = "{marker}"', f'index = "{CHANNELS}/cu126"')
    found = selected(text, kind="pylock.toml", extras=extras, groups=groups)
    assert [s.status for s in found.values()] == (["selected"] if installed else [])


# -- the real uv

UV_PLATFORMS = {
    "linux-x86_64": "x86_64-manylinux_2_28",
    "linux-aarch64": "aarch64-manylinux_2_28",
    "windows-x86_64": "x86_64-pc-windows-msvc",
    "macos-arm64": "aarch64-apple-darwin",
}
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class Way(NamedTuple):
    """One ``uv sync``."""

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    platform: str = "linux-x86_64"


def run_uv(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environment()
    del environment["UV_NO_CONFIG"]
    environment |= {
        "UV_CACHE_DIR": str(folder.parent / "uv-cache"),
        "MACOSX_DEPLOYMENT_TARGET": "14.0",
    }
    return subprocess.run(
        [str(uv_binary()), *arguments, "--python", sys.executable, "--no-progress"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def indexes(stub: Stub) -> str:
    lines = [f'[[tool.uv.index]]\nurl = "{stub.pypi}"\ndefault = true\n']
    for channel in ("cpu", "cu126", "cu128"):
        url = stub.channel(channel)
        lines.append(f'[[tool.uv.index]]\nname = "{channel}"\nurl = "{url}"\nexplicit = true\n')
    return "\n" + "\n".join(lines)


def lock_with_uv(folder: Path, text: str, files: dict[str, str] | None = None) -> Document | str:
    """Return the lock that uv makes of a project, or what uv says."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, "utf-8")
    for name, content in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    done = run_uv(folder, "lock")
    if done.returncode != 0:
        return done.stderr
    return read_uv_lock("uv.lock", (folder / "uv.lock").read_bytes())


def synced(folder: Path, way: Way) -> dict[str, str] | str:
    """Return what uv would install of the watched packages, or what it says."""
    arguments = ["sync", "--frozen", "--dry-run", "--no-default-groups"]
    arguments += ["--python-platform", UV_PLATFORMS[way.platform]]
    for extra in way.extras:
        arguments += ["--extra", extra]
    for group in way.groups:
        arguments += ["--group", group]
    done = run_uv(folder, *arguments)
    if done.returncode != 0:
        return done.stderr
    found = re.findall(r"^ \+ ([^=\s]+)==(\S+)", done.stderr, re.MULTILINE)
    return {canonical(n): v.partition(" ")[0] for n, v in found if canonical(n) in WATCHED}


def predicted(text: str, lock: Document, way: Way) -> SelectedSet:
    install = install_of_lock(lock, text, extras=way.extras, groups=way.groups)
    glibc = "2.28" if way.platform.startswith("linux") else None
    macos = "14.0" if way.platform.startswith("macos") else None
    where = target(PYTHON, way.platform, glibc=glibc, macos=macos)
    return select_locked(install, where, load_catalog())


def assert_as_uv(folder: Path, text: str, lock: Document, ways: list[Way]) -> int:
    """Compare every way with uv; return how many of them install torch."""
    with_torch = 0
    for way in ways:
        real, ours = synced(folder, way), predicted(text, lock, way)
        statuses = {s.package: (s.status, s.because) for s in ours.selections}
        if isinstance(real, str):
            refused = any(status == "none" for status, _ in statuses.values())
            # Where nothing of the family would be installed, a refusal is no matter of ours.
            elsewhere = not statuses and "supported environments" in real
            assert ours.conflict is not None or refused or elsewhere, (way, real, statuses)
            continue
        assert ours.conflict is None, (way, real, ours.conflict)
        chosen = {}
        for one in ours.selections:
            # What the catalog does not know is read from the lock all the same.
            if one.status in ("selected", "unknown") and one.placed is not None:
                chosen[one.package] = one.placed.declaration.specifier.removeprefix("==")
            if one.build is not None:
                assert one.build.full_version == chosen[one.package]
        assert chosen == real, (way, real, statuses)
        with_torch += "torch" in real
    return with_torch


PROJECT = """\
[project]
name = "demo"
version = "0.1.0"
requires-python = ">=3.10,<3.14"
"""
CONFLICTS = (
    PROJECT
    + """\
dependencies = ["torchvision==0.25.0"]
[project.optional-dependencies]
cu126 = ["torch==2.10.0 ; sys_platform == 'linux'"]
cpu = ["torch==2.10.0 ; sys_platform != 'win32'"]
all = ["demo[cu126]"]
[dependency-groups]
dev = ["torchaudio==2.10.0"]
gpu = ["torch==2.10.0 ; sys_platform == 'linux'"]
[tool.uv]
conflicts = [[{ extra = "cu126" }, { extra = "cpu" }, { group = "gpu" }]]
[tool.uv.sources]
torch = [
    { index = "cu126", extra = "cu126" },
    { index = "cpu", extra = "cpu" },
    { index = "cu126", group = "gpu" },
]
"""
)
ALL_WAYS = [
    Way(extras, groups, platform)
    for extras in ((), ("cu126",), ("cpu",), ("all",), ("cpu", "cu126"))
    for groups in ((), ("gpu",), ("dev",))
    for platform in UV_PLATFORMS
]


@pytest.mark.clients
def test_uv_with_conflicting_extras_and_groups(lean_stub: Stub, tmp_path: Path) -> None:
    text = CONFLICTS + indexes(lean_stub)
    lock = lock_with_uv(tmp_path / "demo", text)
    assert isinstance(lock, Document), lock
    assert lock.lock is not None
    assert {(i.extra, i.group) for s in lock.lock.conflicts for i in s.items} == {
        ("cu126", None),
        ("cpu", None),
        (None, "gpu"),
    }
    routed = {(r.extra, r.group, r.conflict) for r in lock.lock.manifest if r.package == "torch"}
    assert {(extra, group) for extra, group, _ in routed} == {
        ("cu126", None),
        ("cpu", None),
        (None, "gpu"),
    }
    assert all(conflict is not None for _, _, conflict in routed)
    assert assert_as_uv(tmp_path / "demo", text, lock, ALL_WAYS) >= 20


@pytest.mark.clients
def test_uv_with_sources_by_marker(lean_stub: Stub, tmp_path: Path) -> None:
    text = (
        PROJECT
        + """\
dependencies = ["torch==2.10.0", "torchvision==0.25.0"]
[tool.uv]
environments = ["sys_platform == 'linux'", "sys_platform == 'darwin'"]
[tool.uv.sources]
torch = { index = "cu126", marker = "sys_platform == 'linux'" }
torchvision = { index = "cu126", marker = "sys_platform == 'linux'" }
"""
        + indexes(lean_stub)
    )
    lock = lock_with_uv(tmp_path / "demo", text)
    assert isinstance(lock, Document), lock
    ways = [Way(platform=platform) for platform in UV_PLATFORMS]
    assert assert_as_uv(tmp_path / "demo", text, lock, ways) == 3


@pytest.mark.clients
def test_uv_workspace(lean_stub: Stub, tmp_path: Path) -> None:
    text = (
        '[tool.uv.workspace]\nmembers = ["packages/*"]\n'
        '[dependency-groups]\ndev = ["torchaudio==2.10.0"]\n' + indexes(lean_stub)
    )
    member = '[project]\nname = "{}"\nversion = "0.1.0"\nrequires-python = ">=3.10"\n'
    one = member.format("one") + (
        'dependencies = ["two[gpu]"]\n[tool.uv.sources]\ntwo = { workspace = true }\n'
    )
    two = member.format("two") + (
        '[project.optional-dependencies]\ngpu = ["torch==2.10.0"]\nold = ["torchvision==0.25.0"]\n'
    )
    lock = lock_with_uv(
        tmp_path / "space",
        text,
        {"packages/one/pyproject.toml": one, "packages/two/pyproject.toml": two},
    )
    assert isinstance(lock, Document), lock
    assert lock.lock is not None
    assert lock.lock.members == ("one", "two")
    ways = [Way(groups=groups) for groups in ((), ("dev",))]
    assert assert_as_uv(tmp_path / "space", text, lock, ways) == 2
    member_ways = [Way()]
    assert assert_as_uv(tmp_path / "space" / "packages" / "one", one, lock, member_ways) == 1


def generated(random_: random.Random, stub: Stub) -> tuple[str, list[Way]]:
    """Return a project with extras, groups, sources and conflicts, and ways to sync it."""
    channels = ["cpu", "cu126", "cu128"]
    random_.shuffle(channels)
    extras, groups = channels[: random_.randint(1, 3)], ["gpu"] * random_.randint(0, 1)
    version = random_.choice(("2.9.1", "2.10.0"))
    vision = {"2.9.1": "0.24.1", "2.10.0": "0.25.0"}[version]
    linux = random_.choice(("", " ; sys_platform == 'linux'"))
    base = random_.sample(
        [f"torchvision=={vision}", f"torchaudio=={version}", "torch"], random_.randint(0, 2)
    )
    lines = [PROJECT + f"dependencies = {base}", "[project.optional-dependencies]"]
    sources = []
    for extra in extras:
        needs = [f"torch=={version}{linux}"]
        if random_.random() < 0.4:
            needs.append(f"torchvision=={vision}{linux}")
        lines.append(f"{extra} = {needs}")
        sources.append(f'{{ index = "{extra}", extra = "{extra}" }}')
    if random_.random() < 0.5:
        lines.append(f"both = ['demo[{extras[0]}]']")
        extras.append("both")
    lines.append("[dependency-groups]")
    lines.append(f"dev = ['torchaudio=={version}']")
    for group in groups:
        lines.append(f"{group} = ['torch=={version}{linux}']")
        sources.append(f'{{ index = "{channels[-1]}", group = "{group}" }}')
    members = [f'{{ extra = "{e}" }}' for e in extras if e != "both"]
    members += [f'{{ group = "{g}" }}' for g in groups]
    lines.append("[tool.uv]")
    if len(members) > 1:
        lines.append(f"conflicts = [[{', '.join(members)}]]")
    if random_.random() < 0.3:
        lines.append("environments = [\"sys_platform == 'linux'\"]")
    lines.append(f"[tool.uv.sources]\ntorch = [{', '.join(sources)}]")
    chosen: list[tuple[str, ...]] = [(), *((e,) for e in extras), tuple(extras[:2])]
    ways = [
        Way(some, tuple(g), platform)
        for some in chosen
        for g in ([], ["dev"], [*groups, "dev"])
        for platform in UV_PLATFORMS
    ]
    return "\n".join(lines) + "\n" + indexes(stub), random_.sample(ways, 6)


@pytest.mark.clients
def test_generated_uv_projects(lean_stub: Stub, tmp_path: Path) -> None:
    random_ = random.Random(20261130)
    locked = with_torch = 0
    for number in range(int(os.environ.get("TORCHPIN_LOCK_CASES", "24"))):
        text, ways = generated(random_, lean_stub)
        folder = tmp_path / f"case-{number}"
        lock = lock_with_uv(folder, text)
        if isinstance(lock, str):
            continue
        locked += 1
        with_torch += assert_as_uv(folder, text, lock, ways)
    assert locked >= 8
    assert with_torch >= 10


# -- real locks, the real uv

CORPUS = Path(os.environ.get("TORCHPIN_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")
REAL = sorted((CORPUS / "uv-lock").glob("*.lock")) if CORPUS.is_dir() else []


def stand_in(lock: Document) -> tuple[str, list[str], list[str]] | None:
    """Return a project with the name, extras and groups of the lock's only own package."""
    assert lock.lock is not None
    own = [p for p in lock.lock.packages if p.source in ("virtual:.", "editable:.")]
    others = any(p.source.startswith("directory:") for p in lock.lock.packages)
    if len(own) != 1 or lock.lock.members or others:
        return None
    extras = sorted({use.extra for use in own[0].uses if use.extra})
    groups = sorted({use.group for use in own[0].uses if use.group})
    text = f'[project]\nname = "{own[0].name}"\nversion = "{own[0].version or 1}"\n'
    text += f'requires-python = "{lock.lock.requires_python}"\n[project.optional-dependencies]\n'
    text += "".join(f"{extra} = []\n" for extra in extras) + "[dependency-groups]\n"
    return text + "".join(f"{group} = []\n" for group in groups), extras, groups


@pytest.mark.clients
@pytest.mark.skipif(not REAL, reason=f"no corpus at {CORPUS}: set TORCHPIN_CORPUS")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_locks_as_uv_installs_them(path: Path, tmp_path: Path) -> None:
    lock = read_uv_lock("uv.lock", path.read_bytes())
    found = stand_in(lock)
    if found is None:
        pytest.skip("its other folders are not at hand")
    text, extras, groups = found
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(text, "utf-8")
    (folder / "uv.lock").write_bytes(path.read_bytes())
    ways = [
        Way(some, tuple(groups[:1]) if number % 2 else (), platform)
        for number, some in enumerate([(), *((extra,) for extra in extras), tuple(extras[:2])])
        for platform in UV_PLATFORMS
    ]
    assert_as_uv(folder, text, lock, ways)


@pytest.mark.clients
def test_pylock_as_uv_exports_it(lean_stub: Stub, tmp_path: Path) -> None:
    text = (
        PROJECT
        + """\
dependencies = ["torch==2.10.0", "torchvision==0.25.0"]
[dependency-groups]
sound = ["torchaudio==2.10.0"]
[tool.uv.sources]
torch = { index = "cu126", marker = "sys_platform == 'linux'" }
torchvision = { index = "cu126", marker = "sys_platform == 'linux'" }
"""
        + indexes(lean_stub)
    )
    folder = tmp_path / "demo"
    assert isinstance(lock_with_uv(folder, text), Document)
    for group in ((), ("sound",)):
        arguments = [word for name in group for word in ("--group", name)]
        done = run_uv(folder, "export", "--frozen", "--format", "pylock.toml", *arguments)
        assert done.returncode == 0, done.stderr
        lock = read_pylock("pylock.toml", done.stdout.encode())
        assert not lock.problems
        for platform in ("linux-x86_64", "windows-x86_64", "macos-arm64"):
            way = Way(groups=group, platform=platform)
            found = predicted(text, lock, way).selections
            ours = {s.package: s.build.full_version for s in found if s.build is not None}
            assert ours == synced(folder, way)
            homes = {s.build.home for s in found if s.build and s.package != "torchaudio"}
            assert homes == {"channel" if platform.startswith("linux") else "pypi"}
