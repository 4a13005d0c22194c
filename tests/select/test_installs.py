from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torchpin.select.model import Install

if TYPE_CHECKING:
    from tests.select.conftest import Installer

A, B, C = (f"https://{host}.example/whl/cu126" for host in "abc")


def urls(install: Install) -> list[str]:
    return [index.url for index in install.indexes]


@pytest.mark.parametrize(
    ("text", "pip", "discarded", "uv"),
    [
        ("torch\n", [""], [], [""]),
        (f"--extra-index-url {A}\n", ["", A], [], [A, ""]),
        (f"-i {A}\n", [A], [], [A]),
        (f"--extra-index-url {A}\n--index-url {B}\n", [B], [A], [A, B]),
        (f"--index-url {B}\n--extra-index-url {A}\n", [B, A], [], [A, B]),
        (f"--extra-index-url {A} --index-url {B}\n", [B, A], [], [""]),
        (f"-i {A}\n-r same.txt\n", [A], [A], [A]),
        (f"-f {C}/torch/\n-i {A}\n", [A, C + "/torch/"], [], [A, C + "/torch/"]),
        (f"--extra-index-url {A}\n--no-index\n-f {C}/torch/\n", [C + "/torch/"], [A], None),
        (f"--no-index\n--extra-index-url {A}\n", [], [A], []),
        (f"-r sub.txt\n--extra-index-url {A}\n", [B, A], [], [A, B]),
        (f"--extra-index-url {A}\n-r sub.txt\n", [B], [A], [A, B]),
        (f"--extra-index-url {A}\n-c sub.txt\n", [B], [A], [A, ""]),
    ],
)
def test_index_program(
    text: str, pip: list[str], discarded: list[str], uv: list[str] | None, install: Installer
) -> None:
    files = {"sub.txt": f"--index-url {B}\nnumpy\n", "same.txt": f"-i {A}\n"}
    by_pip = install(text, "pip", files)
    assert urls(by_pip) == pip
    assert [index.url for index in by_pip.discarded] == discarded
    by_uv = install(text, "uv", files)
    assert urls(by_uv) == (uv if uv is not None else pip)
    assert by_uv.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        f"-i https://u:secret@a.example/simple\n-i {B}\n",
        f"-i {B}\n-i {B}\n",
        f"-r b.txt\n-i {B}\n",
        f"-i {A}\n-r b.txt\n",
        "-r b.txt\n-r b-slash.txt\n",
    ],
)
def test_uv_stops_at_two_index_urls_and_pip_does_not(text: str, install: Installer) -> None:
    files = {"b.txt": f"-i {B}\n", "b-slash.txt": f"-i {B}/\n"}
    (problem,) = install(text, "uv", files).problems
    assert "two --index-url" in problem[1]
    assert "secret" not in problem[1]
    assert install(text, "pip", files).problems == ()


@pytest.mark.parametrize(
    "text",
    [
        f"--index-url {A} --extra-index-url {B}\n",
        f"-f {A}/torch/ --no-index\n",
        f"-r b.txt -i {A}\n",
    ],
)
def test_uv_takes_the_rest_of_a_line_for_a_value(text: str, install: Installer) -> None:
    files = {"b.txt": "\n"}
    if text.startswith("--index-url"):
        extra = install(f"--extra-index-url {C}\n{text}", "uv", files)
        assert (urls(extra), extra.problems) == ([C], ())
    assert "the rest of the line" in install(text, "uv", files).problems[0][1]
    assert install(text, "pip", files).problems == ()


def test_the_command_line_comes_first(install: Installer) -> None:
    extra = [f"--index-url {A}", B]
    assert urls(install("torch", extra_indexes=extra)) == [A, B]
    assert urls(install(f"--extra-index-url {C}", extra_indexes=extra)) == [A, B, C]
    assert urls(install(f"--index-url {C}", extra_indexes=extra)) == [C]
    assert urls(install(f"--index-url {C}", "uv", extra_indexes=extra)) == [B, A]
    assert urls(install("torch", "uv", extra_indexes=[B])) == [B, ""]


def test_paths_are_relative_to_the_including_document(install: Installer) -> None:
    files = {"reqs/base.txt": "-r ../common.txt\ntorch\n", "common.txt": "torchvision\n"}
    made = install("-r base.txt\n", files=files, path="reqs/all.txt")
    assert [document.path for document in made.documents] == [
        "reqs/all.txt",
        "reqs/base.txt",
        "common.txt",
    ]
    assert [p.declaration.name for p in made.requirements] == ["torchvision", "torch"]


def test_missing_files_are_problems(install: Installer) -> None:
    made = install("torch\n-r gone.txt\n")
    ((document, message, offset),) = made.problems
    assert "gone.txt" in message
    assert document.text[offset:].startswith("-r gone.txt")


def test_a_cycle_is_cut(install: Installer) -> None:
    files = {"requirements.txt": "-r b.txt\n", "b.txt": "torch\n-r requirements.txt\n"}
    made = install("-r b.txt\n", files=files)
    assert len(made.requirements) == 1
    assert "includes itself" in made.problems[0][1]
    assert install("-r b.txt\n", "uv", files).problems == ()


def test_the_same_file_twice_is_no_cycle(install: Installer) -> None:
    files = {"a.txt": "-r c.txt\n", "b.txt": "-r c.txt\n", "c.txt": "torch\n"}
    made = install("-r a.txt\n-r b.txt\n", files=files)
    assert made.problems == ()
    assert len(made.requirements) == 1


def test_requirements_inside_constraints(install: Installer) -> None:
    files = {"c.txt": "torch<2.12\n-r more.txt\n", "more.txt": "torchvision\n"}
    by_pip = install("torch\n-c c.txt\n", "pip", files)
    assert [p.declaration.name for p in by_pip.constraints] == ["torch"]
    assert [p.declaration.name for p in by_pip.requirements] == ["torch", "torchvision"]
    by_uv = install("torch\n-c c.txt\n", "uv", files)
    assert [p.declaration.name for p in by_uv.constraints] == ["torch", "torchvision"]


def test_pre_counts_for_pip_only(install: Installer) -> None:
    assert install("--pre\ntorch\n").pre
    assert not install("--pre\ntorch\n", "uv").pre


@pytest.mark.parametrize(
    "text",
    [
        "# -*- coding: latin-1 -*-\ntorch\n",
        "torch -C a=b\n",
        "--only-final :all:\ntorch\n",
        f"-i{A}\ntorch\n",
        f"--extra-index {A}\ntorch\n",
        "torch==${TV}\n",
    ],
)
def test_what_only_uv_refuses(text: str, install: Installer) -> None:
    assert install(text, "uv").problems
    assert install(text, "pip").problems == ()


def test_a_misplaced_index_is_not_read(install: Installer) -> None:
    assert urls(install(f"torch --index-url {A}\n")) == [""]
