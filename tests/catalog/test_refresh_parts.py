"""The parts of a refresh alone: pages, addresses, records, which catalog is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.refresh_world import small_state

from torchpin.catalog import store
from torchpin.catalog.bounded import InspectError
from torchpin.catalog.http import retry_after
from torchpin.catalog.location import cache_dir, user_catalog
from torchpin.catalog.records import read_state, render, write_folder
from torchpin.catalog.refresh import address
from torchpin.catalog.refresh.cache import Cache, Stored
from torchpin.catalog.refresh.kernels import Reading, from_json, to_json
from torchpin.catalog.refresh.listing import listings_of
from torchpin.catalog.refresh.merge import merge, newest
from torchpin.catalog.refresh.pages import PageError, parse, parse_html, parse_json
from torchpin.catalog.refresh.rebase import rebase
from torchpin.catalog.refresh.settings import Settings, addresses
from torchpin.catalog.store import FOLDER, load_catalog
from torchpin.catalog.whole import check_whole, digest_of
from torchpin.errors import CatalogError, UsageError

URL = "https://files.example/whl/cu126/torch/"
REAL = """<!DOCTYPE html>
<html>
  <body>
    <h1>Links for torch</h1>
    <a href="https://download-r2.pytorch.org/whl/cu126/torch-2.14.1%2Bcu126-cp311-cp311-\
manylinux_2_28_x86_64.whl#sha256=SHA" data-dist-info-metadata="sha256=META" \
data-core-metadata="sha256=META" data-upload-time="2026-09-30T10:00:00Z">torch-2.14.1+cu126-cp311-\
cp311-manylinux_2_28_x86_64.whl</a><br/>
    <a href="/whl/cu126/torch-2.6.0%2Bcu126-cp313-cp313t-win_amd64.whl">torch-2.6.0</a><br/>
    <a href="../../../whl/triton-3.9.0-cp311-cp311-manylinux_2_27_x86_64.whl" \
data-requires-python="&gt;=3.10" data-yanked="">triton</a><br/>
    <a href="filelock/">filelock</a> <a href="javascript:x">x</a> <a>no</a>
  </body>
</html>
<!--TIMESTAMP 1793000000-->""".replace("SHA", "AB" * 32).replace("META", "cd" * 32)


def test_a_page_in_the_real_form() -> None:
    page = parse_html(REAL.encode(), URL)
    first, second, third = page.files
    assert first.name == "torch-2.14.1+cu126-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert first.url.startswith("https://download-r2.pytorch.org/whl/cu126/torch-2.14.1%2Bcu126-")
    assert (first.sha256, first.metadata, first.uploaded) == ("ab" * 32, "cd" * 32, "2026-09-30")
    assert (second.sha256, second.metadata, second.yanked) == ("", "", False)
    assert second.url == (
        "https://files.example/whl/cu126/torch-2.6.0%2Bcu126-cp313-cp313t-win_amd64.whl"
    )
    assert (third.requires_python, third.yanked) == (">=3.10", True)
    assert page.links == (("filelock", f"{URL}filelock/"),)
    (here,) = listings_of("torch", "cu126", page, "2026-12-05")
    assert [w.name.version for w in here.wheels] == ["2.14.1", "2.6.0"]
    assert here.source == "https://download.pytorch.org/whl/cu126/torch/ of 2026-12-05"
    _, above = listings_of("triton", "cu126", page, "2026-12-05")
    assert (above.channel, [w.name.version for w in above.wheels]) == ("root", ["3.9.0"])


def test_what_a_channel_page_lists_beside_its_own() -> None:
    names = [
        "torch-2.14.1+cu126-cp311-cp311-win_amd64.whl",
        "torch-2.14.1+cpu.cxx11.abi-cp311-cp311-linux_x86_64.whl",
        "torch-2.15.0.dev20260801+cu126-cp311-cp311-win_amd64.whl",
        "torch-2.14.1+cu126-cp311-cp311-linux_s390x.whl",
        "torchvision-0.29.1+cu126-py3-none-win_amd64.whl",
        "torch-1.0.whl",
        "torch-1.0.tar.gz",
    ]
    links = "".join(f'<a href="/whl/cu126/{n.replace("+", "%2B")}">{n}</a>' for n in names)
    (found,) = listings_of("torch", "cu126", parse_html(links.encode(), URL), "2026-12-05")
    assert [w.file.name for w in found.wheels] == [names[0]]
    link = '<a href="/whl/cu126/torchdata-0.11.0-py3-none-any.whl">t</a>'
    (found,) = listings_of("torchdata", "cu126", parse_html(link.encode(), URL), "2026-12-05")
    assert "macos-arm64" not in found.wheels[0].name.platforms
    assert "linux-x86_64" in found.wheels[0].name.platforms


def test_a_json_page() -> None:
    raw = {
        "meta": {"api-version": "1.4"},
        "versions": ["1.0", "nonsense"],
        "files": [
            {
                "filename": "torch-1.0-cp311-cp311-win_amd64.whl",
                "url": "../../f/torch-1.0-cp311-cp311-win_amd64.whl",
                "hashes": {"sha256": "0" * 64},
                "requires-python": ">=3.9",
                "yanked": "reason",
                "upload-time": "2026-01-02T03:04:05.6Z",
                "size": 12,
                "core-metadata": True,
            },
            {"filename": "torch-1.1.tar.gz", "url": "https://files.example/torch-1.1.tar.gz"},
            {"filename": "../x.whl", "url": "/x"},
            {"filename": "y.whl", "url": "ftp://files.example/y"},
            "text",
        ],
    }
    page = parse_json(json.dumps(raw).encode(), "https://pypi.example/simple/torch/")
    first, second = page.files
    assert first.url == "https://pypi.example/f/torch-1.0-cp311-cp311-win_amd64.whl"
    assert (first.yanked, first.uploaded, first.size, first.metadata) == (
        *(True, "2026-01-02", 12),
        "true",
    )
    assert (second.sha256, second.yanked, second.metadata) == ("", False, "")
    (found,) = listings_of("torch", "pypi", page, "2026-12-05", mirror=True)
    assert found.versions == ("1.0", "1.1") and found.sdists == ("1.1",)
    assert found.source == "PyPI file list of 2026-12-05 (by a mirror)"


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (b"", "text/html", "not HTML"),
        (b"plain text", "text/html", "not HTML"),
        (b"\xff\xfe<html>", "text/html", "UTF-8"),
        (b"<html><body><a href='x.whl'>", "text/html", "cut off"),
        (b"[1, 2]", "application/json", "PEP 691"),
        (b'{"meta": {"api-version": "2.0"}}', "", "version 2.0"),
        (b'{"meta": {"api-version": "1.0"}, "files": {}}', "", "PEP 691"),
        (b"{" * 100_000, "application/json", "PEP 691"),
        (b"[" * 100_000, "application/json", "PEP 691"),
    ],
)
def test_what_is_no_page(data: bytes, kind: str, words: str) -> None:
    with pytest.raises(PageError, match=words):
        parse(data, URL, kind, complete=False)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(["text/html", "application/json", ""]))
def test_any_bytes_are_a_page_or_a_page_error(data: bytes, kind: str) -> None:
    try:
        page = parse(REAL.encode()[:300] + data, URL, kind)
    except PageError:
        return
    for name in ("torch", "triton"):
        listings_of(name, "cu126", page, "2026-12-05")


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["meta", "files", "versions", "filename", "url", "hashes", "sha256"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_a_page_or_a_page_error(value: object) -> None:
    raw = {"meta": {"api-version": "1.0"}, "files": value, "versions": value}
    try:
        page = parse_json(json.dumps(raw).encode(), URL)
    except PageError:
        return
    listings_of("torch", "pypi", page, "2026-12-05")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("7", 7, 7), (" 7 ", 7, 7), ("", 0, 0), ("soon", 0, 0), ("-3", 0, 0), ("9" * 30, 1e6, 1e6)],
)
def test_retry_after(text: str, low: float, high: float) -> None:
    assert low <= retry_after(text) <= high


def test_retry_after_a_date() -> None:
    from email.utils import formatdate

    assert 58 <= retry_after(formatdate(__import__("time").time() + 60, usegmt=True)) <= 61
    assert retry_after("Mon, 01 Jan 2001 00:00:00 GMT") == 0


def test_where_pypi_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in address.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert address.pypi_index().endswith("/simple")  # what pip has built in
    monkeypatch.setattr(address, "_built_in", lambda: "")
    assert address._bundled() == "" or address._bundled().endswith("/simple")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "corp=https://uv.example/simple/")
    assert address.pypi_index() == "https://uv.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://pip.example/simple/")
    assert address.pypi_index() == "https://pip.example/simple"
    for name in address.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://me:pw@conf.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    assert address.pypi_index() == "https://me:pw@conf.example/simple"
    for name in ("_configured", "_bundled", "_uv"):
        monkeypatch.setattr(address, name, lambda: "")
    with pytest.raises(UsageError, match="where the package index is"):
        address.pypi_index()


def test_what_index_urls_stand_for() -> None:
    got = addresses(
        [
            "https://m.example/api/pypi/simple/",
            "https://u:p@m.example/whl",
            "https://m.example/whl/cu126/",
            "https://m.example/other/",
        ],
        Settings(),
    )
    assert got.whl == "https://u:p@m.example/whl"
    assert got.mirrors == (("cu126", "https://m.example/whl/cu126"),)
    assert got.pypi == "https://m.example/other"  # the last one


def test_data_files_are_read_and_written_without_a_change() -> None:
    files = render(read_state(FOLDER))
    for name, text in files.items():
        assert (Path(FOLDER) / name).read_text(encoding="utf-8") == text, name


def test_a_merge_without_pages_changes_nothing() -> None:
    state = read_state(FOLDER)
    after = merge(state, [], {})
    assert after == state
    assert {name: newest(part) for name, part in state.parts.items()} == state.head["newest"]


def test_a_folder_keeps_what_is_not_of_the_catalog(tmp_path: Path) -> None:
    (tmp_path / "drivers.json").write_text("[]")
    state = small_state()
    head = state.head | {"base": "0" * 64}
    write_folder(str(tmp_path), render(state._replace(head=head)))
    assert (tmp_path / "drivers.json").read_text() == "[]"
    assert check_whole(str(tmp_path), deep=True) == ""
    assert digest_of(str(tmp_path)) == json.loads((tmp_path / "catalog.json").read_text())["digest"]
    assert not list(tmp_path.glob("*.part")) and not list(tmp_path.glob(".*"))
    path = tmp_path / "pins.json"
    path.write_bytes(path.read_bytes().replace(b"2.14.1", b"2.14.2"))
    assert check_whole(str(tmp_path)) == "pins.json was changed"
    path.write_bytes(b"")
    assert check_whole(str(tmp_path)) == "pins.json does not have its size"


def test_a_folder_that_cannot_be_written_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = render(small_state())
    write_folder(str(tmp_path), files)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CatalogError, match="No space left"):
        write_folder(str(tmp_path), files | {"pins.json": "{}"})
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_rebase_keeps_what_only_the_user_found() -> None:
    shipped = small_state()
    part = shipped.parts["torch"]
    extra = part.builds[-1]._replace(version="2.99.0", kernels=None, libraries=())
    gone = ["2.13.0", "cu126", "linux-x86_64", False, "published", "withdrawn: known before"]
    own = shipped._replace(
        parts=shipped.parts
        | {
            "torch": part._replace(
                builds=[*part.builds, extra],
                rows=[*part.rows, gone],
                pages=[["cu126", "2026-12-05", "2.15.0"]],
                pypi=[*part.pypi, "2.99.0"],
            )
        },
        partners={**shipped.partners, "2.99.0": {}},
    )
    found = rebase(shipped, own)
    assert found.parts["torch"].builds[-1] == extra
    assert gone in found.parts["torch"].rows
    assert found.parts["torch"].pages == [["cu126", "2026-12-05", "2.15.0"]]
    assert found.parts["torch"].pypi[-1] == "2.99.0" and "2.99.0" in found.partners
    assert rebase(shipped, shipped) == shipped


def test_the_cache_forgets_what_is_damaged(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "c"))
    page = Stored(b"body\n\0", "text/html", '"e"', "", "2026-12-05")
    cache.keep_page("u", page)
    assert cache.page("u") == page and cache.page("v") is None
    (file,) = (tmp_path / "c" / "pages").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert cache.page("u") is None
    file.write_bytes(b"\0")
    assert cache.page("u") is None
    cache.keep_reading("k", [1])
    (file,) = (tmp_path / "c" / "wheels").iterdir()
    assert cache.reading("k") == [1]
    file.write_bytes(b"[")
    assert cache.reading("k") is None
    assert (tmp_path / "c" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f59")


def test_readings_survive_json() -> None:
    reading = Reading(
        *("f.whl", "0" * 64, True, False, True, "1.0", "1.0+cu126", "12.6", None, ">=3.9"),
        ("torch",),
        (("80",), (), ()),
        (("a/_C.so", ((("80",), ("90",), 2),), 1),),
    )
    assert from_json(json.loads(json.dumps(to_json(reading)))) == reading
    for raw in (None, [], [1, 2], {"a": 1}, [*to_json(reading), 1], "text"):
        assert from_json(raw) is None


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the rule of other systems")
def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHPIN_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_dir() == "/x/torchpin"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_dir() == "/home/me/.cache/torchpin"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_dir() == "/home/me/Library/Caches/torchpin"
    monkeypatch.setenv("TORCHPIN_CACHE_DIR", "/own")
    assert cache_dir() == "/own"


def test_without_a_refresh_a_check_pays_one_stat(tmp_path: Path) -> None:
    code = (
        "import os, sys; import torchpin.catalog.store as s; before = set(sys.modules); calls = [];"
        "real = os.stat; os.stat = lambda *a, **k: calls.append(a) or real(*a, **k);"
        "s.load_catalog(); print(len(calls), sorted(set(sys.modules) - before))"
    )
    seen = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ, TORCHPIN_CACHE_DIR=str(tmp_path / "none")),
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout.strip() == "1 []"


def test_a_catalog_chosen_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(str(tmp_path), render(small_state()))
    monkeypatch.setattr(store, "_chosen", {})
    monkeypatch.setattr(store, "_choice", (None, False))
    monkeypatch.setenv("TORCHPIN_CATALOG", str(tmp_path))
    assert load_catalog().folder == str(tmp_path)
    assert load_catalog("shipped").folder == FOLDER
    assert load_catalog(isolated=True).folder == FOLDER
    store.choose(None, isolated=True)
    assert load_catalog().folder == FOLDER
    store.choose(None)
    monkeypatch.setenv("TORCHPIN_CATALOG", str(tmp_path / "no"))
    store._chosen.clear()
    with pytest.raises(CatalogError, match="cannot be read"):
        load_catalog()
    monkeypatch.setenv("TORCHPIN_CATALOG", "shipped")
    assert load_catalog().folder == FOLDER
    assert user_catalog() is None


def test_errors_of_a_stopped_fetcher_are_inspect_errors() -> None:
    from torchpin.catalog.refresh.fetch import Fetcher

    fetcher = Fetcher(Cache("unused"), jobs=1, idle=1, today="2026-12-05")
    fetcher._stop()
    with pytest.raises(InspectError, match="stopped"):
        fetcher.page("http://127.0.0.1:9/", "text/html")
