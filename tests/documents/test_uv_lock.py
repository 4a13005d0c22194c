"""Reading ``uv.lock``: what is read, where it stands, and that cutting equals a whole parse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchpin.documents import uv_lock
from torchpin.documents.base import Span
from torchpin.documents.project import (
    ConflictItem,
    Lock,
    LockedRequirement,
    LockedUse,
    LockedWheel,
)
from torchpin.documents.uv_lock import read_uv_lock

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("TORCHPIN_CORPUS") or ROOT.parent / "shared" / "corpus")
REAL = sorted((CORPUS / "uv-lock").glob("*.lock")) if CORPUS.is_dir() else []

CU126 = "https://download.pytorch.org/whl/cu126"
CPU = "https://download.pytorch.org/whl/cpu"
PYPI = "https://pypi.example/simple"
ON = "extra == 'extra-4-demo-cu126'"
BIG = """\
version = 1
revision = 5
requires-python = ">=3.10, <3.13"
resolution-markers = [
    "sys_platform == 'linux'",
    "sys_platform == 'darwin'",
]
supported-markers = [
    "sys_platform == 'linux'",
    "sys_platform == 'darwin'",
]
conflicts = [[
    { package = "demo", extra = "cpu" },
    { package = "demo", extra = "cu126" },
    { package = "demo", group = "gpu" },
], [
    { package = "demo", extra = "a" },
    { package = "two" },
]]

[options]
exclude-newer = "2026-11-01T00:00:00Z"

[manifest]
members = [
    "demo",
    "two",
]
constraints = [{ name = "torch", specifier = "<3" }]
overrides = [
    { name = "numpy", specifier = "<3" },
    { name = "triton", specifier = "<9", index = "https://pypi.example/simple" },
]

[manifest.dependency-groups]
dev = [{ name = "torchvision", specifier = ">=0.20" }]

[[manifest.dependency-metadata]]
name = "odd"
version = "0.1"
requires-dist = ["torch>=2"]

[[package]]
name = "between"
version = "1.0"
source = { registry = "https://pypi.example/simple" }
dependencies = [
    { name = "numpy" },
    { name = "outer", extra = ["gpu"], marker = "sys_platform == 'linux'" },
]
wheels = [
    { url = "https://files.example/packages/between-1.0-py3-none-any.whl", hash = "sha256:00" },
]

[[package]]
name = "demo"
version = "0.1.0"
source = { virtual = "." }
dependencies = [
    { name = "between" },
    { name = "numpy" },
]

[package.optional-dependencies]
cpu = [
    { name = "torch", version = "2.10.0", source = { registry = "https://download.pytorch.org/whl/cpu" }, marker = "sys_platform != 'linux' and extra == 'extra-4-demo-cpu'" },
]
cu126 = [
    { name = "torch", version = "2.10.0+cu126", source = { registry = "https://download.pytorch.org/whl/cu126" } },
]

[package.dev-dependencies]
gpu = [
    { name = "torch", version = "2.10.0+cu126", source = { registry = "https://download.pytorch.org/whl/cu126" }, marker = "sys_platform == 'linux' or extra == 'group-4-demo-gpu'" },
]

[package.metadata]
requires-dist = [
    { name = "between", specifier = ">=1" },
    { name = "torch", marker = "sys_platform != 'win32' and extra == 'cpu'", specifier = "==2.10.0", index = "https://download.pytorch.org/whl/cpu", conflict = { package = "demo", extra = "cpu" } },
    { name = "torch", marker = "extra == 'cu126'", specifier = "==2.10.0", index = "https://download.pytorch.org/whl/cu126", conflict = { package = "demo", extra = "cu126" } },
]
provides-extras = ["cpu", "cu126"]

[package.metadata.requires-dev]
gpu = [{ name = "torch", specifier = "==2.10.0", index = "https://download.pytorch.org/whl/cu126", conflict = { package = "demo", group = "gpu" } }]

[[package]]
name = "numpy"
version = "2.3.0"
source = { registry = "https://pypi.example/simple" }
sdist = { url = "https://files.example/packages/numpy-2.3.0.tar.gz", hash = "sha256:00" }

[[package]]
name = "outer"
version = "3.0"
source = { registry = "https://pypi.example/simple" }

[package.optional-dependencies]
gpu = [
    { name = "torchvision" },
]

[[package]]
name = "torch"
version = "2.10.0"
source = { registry = "https://download.pytorch.org/whl/cpu" }
resolution-markers = [
    "sys_platform == 'darwin'",
]
wheels = [
    { url = "https://download.pytorch.org/whl/cpu/torch-2.10.0-cp311-none-macosx_11_0_arm64.whl", hash = "sha256:aa" },
]

[[package]]
name = "torch"
version = "2.10.0+cu126"
source = { registry = "https://download.pytorch.org/whl/cu126" }
resolution-markers = [
    "sys_platform == 'linux'",
]
dependencies = [
    { name = "numpy", marker = "sys_platform == 'linux' and extra == 'extra-4-demo-cu126'" },
    { name = "triton", marker = "sys_platform == 'linux'" },
]
wheels = [
    { url = "https://download.pytorch.org/whl/cu126/torch-2.10.0%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl" },
    { url = "https://download.pytorch.org/whl/cu126/torch-2.10.0%2Bcu126-cp311-cp311-win_amd64.whl", hash = "sha256:bb", size = 12, upload-time = "2026-01-21T00:00:00Z" },
]

[[package]]
name = "torchvision"
version = "0.25.0"
source = { registry = "https://pypi.example/simple" }
sdist = { url = "https://files.example/packages/torchvision-0.25.0.tar.gz", hash = "sha256:00" }
dependencies = [
    { name = "torch", version = "2.10.0+cu126", source = { registry = "https://download.pytorch.org/whl/cu126" }, marker = "extra == 'extra-4-demo-cu126'" },
]

[[package]]
name = "triton"
version = "3.6.0"
source = { registry = "https://pypi.example/simple" }

[[package]]
name = "two"
version = "0.1.0"
source = { editable = "packages/two" }

[package.metadata]
requires-dist = [{ name = "torchaudio", marker = "extra == 'sound'" }]
"""  # noqa: E501
SMALL = """\
version = 1
requires-python = ">=3.12"

[[package]]
name = "torch"
version = "2.14.1"
source = { registry = "https://pypi.example/simple" }
"""


def lock_of(text: str) -> Lock:
    document = read_uv_lock("uv.lock", text.encode())
    assert document.problems == ()
    assert document.lock is not None
    return document.lock


def shifted(lock: Lock, by: int) -> Lock:
    """Return the lock with every place moved."""

    def move(span: Span | None) -> Span | None:
        return None if span is None else Span(span.start + by, span.end + by)

    return lock._replace(
        packages=tuple(
            p._replace(
                span=Span(p.span.start + by, p.span.end + by),
                version_span=Span(p.version_span.start + by, p.version_span.end + by),
                source_span=move(p.source_span),
            )
            for p in lock.packages
        ),
        conflicts=tuple(
            c._replace(span=Span(c.span.start + by, c.span.end + by)) for c in lock.conflicts
        ),
    )


def only_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str) -> None:
        raise AssertionError("the whole text is parsed")

    monkeypatch.setattr(uv_lock, "_whole", refuse)


def test_head() -> None:
    lock = lock_of(BIG)
    assert (lock.tool, lock.version, lock.requires_python) == ("uv", "1", ">=3.10, <3.13")
    assert lock.resolution_markers == ("sys_platform == 'linux'", "sys_platform == 'darwin'")
    assert lock.supported_markers == lock.resolution_markers
    assert lock.members == ("demo", "two")
    assert [c.items for c in lock.conflicts] == [
        (
            ConflictItem("demo", "cpu", None),
            ConflictItem("demo", "cu126", None),
            ConflictItem("demo", None, "gpu"),
        ),
        (ConflictItem("demo", "a", None), ConflictItem("two", None, None)),
    ]
    start, end = lock.conflicts[0].span
    assert BIG[start:end].startswith("conflicts = [[")
    assert BIG[start:end].endswith("]]")


def test_packages_are_the_family_the_project_and_what_leads_to_the_family() -> None:
    lock = lock_of(BIG)
    assert [(p.name, p.version) for p in lock.packages] == [
        ("between", "1.0"),
        ("demo", "0.1.0"),
        ("outer", "3.0"),
        ("torch", "2.10.0"),
        ("torch", "2.10.0+cu126"),
        ("torchvision", "0.25.0"),
        ("triton", "3.6.0"),
        ("two", "0.1.0"),
    ]
    assert [p.source for p in lock.packages if p.name in ("demo", "two")] == [
        "virtual:.",
        "editable:packages/two",
    ]


def test_edges() -> None:
    packages = {(p.name, p.version): p for p in lock_of(BIG).packages}
    assert packages["between", "1.0"].uses == (
        LockedUse("outer", None, None, None, None, "sys_platform == 'linux'", ("gpu",)),
    )
    assert packages["demo", "0.1.0"].uses == (
        LockedUse("between", None, None, None, None, None),
        LockedUse(
            "torch",
            "cpu",
            None,
            "2.10.0",
            CPU,
            "sys_platform != 'linux' and extra == 'extra-4-demo-cpu'",
        ),
        LockedUse("torch", "cu126", None, "2.10.0+cu126", CU126, None),
        LockedUse(
            "torch",
            None,
            "gpu",
            "2.10.0+cu126",
            CU126,
            "sys_platform == 'linux' or extra == 'group-4-demo-gpu'",
        ),
    )
    assert packages["torchvision", "0.25.0"].uses == (
        LockedUse("torch", None, None, "2.10.0+cu126", CU126, ON),
    )
    assert packages["outer", "3.0"].uses == (
        LockedUse("torchvision", "gpu", None, None, None, None),
    )


def test_wheels_and_their_hashes() -> None:
    packages = {(p.name, p.version): p for p in lock_of(BIG).packages}
    torch = packages["torch", "2.10.0+cu126"]
    assert torch.wheels == (
        LockedWheel(
            "torch-2.10.0+cu126-cp311-cp311-manylinux_2_28_x86_64.whl",
            f"{CU126}/torch-2.10.0%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl",
            None,
        ),
        LockedWheel(
            "torch-2.10.0+cu126-cp311-cp311-win_amd64.whl",
            f"{CU126}/torch-2.10.0%2Bcu126-cp311-cp311-win_amd64.whl",
            "sha256:bb",
        ),
    )
    assert torch.markers == ("sys_platform == 'linux'",)
    assert packages["between", "1.0"].wheels == ()
    assert packages["torchvision", "0.25.0"].sdist
    assert not torch.sdist


def test_places() -> None:
    for package in lock_of(BIG).packages:
        block = BIG[slice(*package.span)]
        assert block.startswith(f'[[package]]\nname = "{package.name}"')
        assert block.count("[[package]]") == 1
        assert not block.endswith("\n")
        assert BIG[slice(*package.version_span)] == package.version
        assert package.source_span is not None
        assert BIG[slice(*package.source_span)] == package.source.removeprefix(
            "virtual:"
        ).removeprefix("editable:")


def test_what_the_lock_recorded_of_the_manifest() -> None:
    assert lock_of(BIG).manifest == (
        LockedRequirement("torchvision", ">=0.20", None, None, None, "dev"),
        LockedRequirement("torch", "<3", None, None, None, None, kind="constraint"),
        LockedRequirement("triton", "<9", None, PYPI, None, None, kind="override"),
        LockedRequirement(
            "torch",
            "==2.10.0",
            "sys_platform != 'win32' and extra == 'cpu'",
            CPU,
            "cpu",
            None,
            conflict=ConflictItem("demo", "cpu", None),
            by="demo",
        ),
        LockedRequirement(
            "torch",
            "==2.10.0",
            "extra == 'cu126'",
            CU126,
            "cu126",
            None,
            conflict=ConflictItem("demo", "cu126", None),
            by="demo",
        ),
        LockedRequirement(
            "torch",
            "==2.10.0",
            None,
            CU126,
            None,
            "gpu",
            conflict=ConflictItem("demo", None, "gpu"),
            by="demo",
        ),
        LockedRequirement("torchaudio", "", "extra == 'sound'", None, "sound", None, by="two"),
    )


# -- cutting equals a whole parse


@pytest.mark.parametrize("text", [BIG, SMALL])
def test_cutting_equals_a_whole_parse(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    comment = "# written by hand\n"
    whole = lock_of(comment + text)
    only_cut(monkeypatch)
    assert shifted(lock_of(text), len(comment)) == whole
    with pytest.raises(AssertionError, match="the whole text is parsed"):
        lock_of(comment + text)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_cutting_equals_a_whole_parse_of_real_locks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = path.read_bytes().decode()
    comment = "# written by hand\n"
    whole = lock_of(comment + text)
    only_cut(monkeypatch)
    assert shifted(lock_of(text), len(comment)) == whole
    assert any(package.name == "torch" for package in whole.packages)
    for package in whole.packages:
        assert (comment + text)[slice(*package.version_span)] in (package.version, "")


def test_windows_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    only_cut(monkeypatch)
    plain, document = lock_of(BIG), read_uv_lock("uv.lock", BIG.replace("\n", "\r\n").encode())
    assert document.newline == "\r\n"
    assert document.lock is not None
    assert [p._replace(span=Span(0, 0), version_span=Span(0, 0), source_span=None) for p in
            document.lock.packages] == [
        p._replace(span=Span(0, 0), version_span=Span(0, 0), source_span=None)
        for p in plain.packages
    ]  # fmt: skip
    for package in document.lock.packages:
        assert document.text[slice(*package.version_span)] == package.version


def test_mixed_line_ends_are_parsed_whole() -> None:
    mixed = SMALL.replace("\n\n", "\r\n\n", 1)
    assert [p.version for p in lock_of(mixed).packages] == ["2.14.1"]


def test_a_byte_order_mark_is_kept() -> None:
    data = b"\xef\xbb\xbf" + SMALL.encode()
    document = read_uv_lock("uv.lock", data)
    assert document.lock is not None
    assert document.encode(document.text) == data
    assert document.lock.packages[0].version == "2.14.1"


@pytest.mark.parametrize(
    "text",
    [
        SMALL.replace("[[package]]", "[[ package ]]"),
        SMALL.replace("[[package]]", "  [[package]]"),
        SMALL.replace('name = "torch"\nversion = "2.14.1"', 'version = "2.14.1"\nname = "torch"'),
        SMALL.replace('"torch"', "'torch'"),
        "# a comment\n" + SMALL,
        SMALL.replace("\n[[package]]", '\n[manifest]\n[[package]]\nname = "x"\n\n[[package]]'),
        'version = 1\npackage = [{ name = "torch", version = "2.14.1", source = { registry = '
        '"https://pypi.example/simple" } }]\n',
    ],
)
def test_other_forms_are_read_too(text: str) -> None:
    torch = next(p for p in lock_of(text).packages if p.name == "torch")
    assert (torch.version, torch.source) == ("2.14.1", PYPI)


# -- what is no lock


def test_an_unsolved_merge_is_told_with_its_place() -> None:
    text = SMALL.replace('version = "2', '<<<<<<< HEAD\nversion = "2')
    document = read_uv_lock("uv.lock", text.encode())
    assert document.lock is None
    (problem,) = document.problems
    assert problem.code == "toml"
    assert document.text[slice(*problem.span)].startswith("<<<<<<<")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"version = 1\n[[package]\n", "toml"),
        (b"version = 1\nx = " + b"[" * 20_000, "toml"),
        (b"\xff\xfe", "decode"),
        (b"version = 1\0", "binary"),
        (b"", "version"),
        (b"version = 2\n", "version"),
        (b"version = true\n", "version"),
        (b'version = "1"\n', "version"),
    ],
)
def test_problems(data: bytes, code: str) -> None:
    document = read_uv_lock("uv.lock", data)
    assert document.lock is None
    assert [problem.code for problem in document.problems] == [code]


@pytest.mark.parametrize(
    "line",
    [
        "dependencies = 1",
        'dependencies = ["torch"]',
        "dependencies = [{ name = 1 }]",
        "wheels = [{ url = 1, hash = 2 }, 3]",
        "wheels = { url = 1 }",
        "resolution-markers = [1, [2]]",
        "optional-dependencies = { a = 1, b = [{ }] }",
        'metadata = { requires-dist = [{ name = "torch", conflict = 1, marker = 2 }] }',
        "sdist = 1",
    ],
)
def test_values_of_a_wrong_type_are_passed_over(line: str) -> None:
    lock = lock_of(SMALL + line + "\n")
    assert [p.version for p in lock.packages] == ["2.14.1"]
    lock = lock_of(SMALL.replace("registry =", "virtual =") + line + "\n")
    assert [p.version for p in lock.packages] == ["2.14.1"]
