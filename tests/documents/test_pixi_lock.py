"""``pixi.lock``: environments, platforms, places and digests of what comes from PyPI."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from torchpin.documents.pixi_lock import read_pixi_lock

FILES = Path(__file__).resolve().parents[2] / "fixtures" / "files"
LOCKS = sorted(FILES.glob("pixi-lock-*/input/pixi.lock"))


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.parts[-3])
def test_each_wheel_of_each_environment_is_read_as_yaml_has_it(path: Path) -> None:
    data = path.read_bytes()
    whole = yaml.safe_load(data)
    wheels = {one.get("pypi", one.get("url")): one for one in whole["packages"]}
    systems = {one["name"]: one.get("subdir", one["name"]) for one in whole.get("platforms", ())}
    for name, environment in whole["environments"].items():
        for platform, listed in environment["packages"].items():
            wanted = {
                (wheels[url]["name"], f"=={wheels[url]['version']}")
                for one in listed
                if (url := one.get("pypi", "")).startswith("https://")
            }
            got = {
                (one.name, one.specifier)
                for part in read_pixi_lock(str(path), data).parts
                if part.environment == f"{name}, {systems.get(platform, platform)}"
                for one in part.document.declarations
            }
            assert got == wanted


def test_places_pythons_and_spans() -> None:
    path = FILES / "pixi-lock-channel" / "input" / "pixi.lock"
    document = read_pixi_lock(str(path), path.read_bytes())
    second, first, third = document.parts
    assert first.name == "environment default, linux-64"
    assert second.name.endswith("from https://download.pytorch.org/whl/cu128")
    assert [one.url for one in second.document.indexes] == [
        "https://download.pytorch.org/whl/cu128"
    ]
    assert [one.url for one in third.document.indexes] == ["https://pypi.example/simple"]
    assert {part.python for part in document.parts} == {"3.12"}
    assert first.document.declarations[0].hashes[0].digest.startswith("4121c5be")
    torch = second.document.declarations[0]
    assert document.text[torch.span.start : torch.span.end] == "2.11.0+cu128"
    assert "darwin" in (third.document.declarations[0].marker or "")


@given(st.binary(max_size=400))
def test_no_bytes_are_too_much(data: bytes) -> None:
    assert read_pixi_lock("pixi.lock", data).kind == "pixi.lock"


@given(st.data())
def test_a_lock_that_is_cut_or_mixed_up_is_read_without_a_crash(data: st.DataObject) -> None:
    lines = LOCKS[0].read_text("utf-8").splitlines(keepends=True)
    chosen = data.draw(st.lists(st.sampled_from(lines), max_size=40))
    document = read_pixi_lock("pixi.lock", "".join(chosen).encode())
    for part in document.parts:
        assert 0 <= part.span.start <= part.span.end <= len(document.text)
