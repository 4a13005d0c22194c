"""``catalog refresh`` where disks, caches, proxies and folders are not as they should be."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from tests.catalog.index_server import Answer
from tests.catalog.refresh_world import World, make_world

import torchpin.report
from torchpin.catalog.location import user_catalog
from torchpin.catalog.refresh import cache as caching
from torchpin.catalog.refresh.cache import Cache, Stored
from torchpin.catalog.refresh.settings import check_since
from torchpin.errors import CatalogError, UsageError

NESTED = "[" * 100_000
ONLY = ("--channel", "pypi", "--package", "torch")


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[World]:
    made, server = make_world(tmp_path, monkeypatch, capsys)
    with server:
        yield made


def own_catalog() -> Path:
    folder = user_catalog()
    assert folder is not None
    return Path(folder)


def entries(world: World, kind: str) -> list[Path]:
    return sorted((world.cache / kind).iterdir())


# What lies in the cache


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (NESTED, "catalog.json cannot be read"),
        ("{}", "catalog.json cannot be read"),
        ("", "catalog.json cannot be read"),
        ('{"builds":{},"files":{}}', "partners.json is missing"),
    ],
)
def test_a_damaged_head(world: World, content: str, words: str) -> None:
    world.release()
    assert world.refresh()[0] == 0
    (own_catalog() / "catalog.json").write_text(content)
    found = world.catalog()
    assert found.folder == world.shipped.folder
    assert words in found.notes[0]
    assert world.refresh()[0] == 0
    assert world.catalog().newest("torch") == "2.16.0"


def test_a_catalog_of_another_format(world: World) -> None:
    world.release()
    assert world.refresh()[0] == 0
    head = own_catalog() / "catalog.json"
    head.write_text(head.read_text().replace('"format":1', '"format":2'))
    found = world.catalog()
    assert found.folder == world.shipped.folder
    assert "no catalog of format 1" in found.notes[0]
    assert world.refresh()[0] == 0  # makes it anew
    assert world.catalog().newest("torch") == "2.16.0"
    assert '"format":1' in head.read_text()  # in the same folder


def test_data_that_are_whole_but_of_no_shape(world: World) -> None:
    from torchpin.catalog.whole import sums

    assert world.refresh()[0] == 0
    folder = own_catalog()
    (folder / "builds-torch.json").write_text('{"other":1}')
    head = json.loads((folder / "catalog.json").read_text())
    head["files"] |= sums({"builds-torch.json": b'{"other":1}'})
    (folder / "catalog.json").write_text(json.dumps(head))
    assert world.refresh()[0] == 0
    assert world.catalog().find("torch", version="2.15.0")


def test_a_catalog_that_is_chosen_must_have_the_format(world: World, tmp_path: Path) -> None:
    from torchpin.catalog.store import load_catalog

    (tmp_path / "catalog.json").write_text('{"a":1}')
    with pytest.raises(CatalogError, match="no catalog of format 1"):
        load_catalog(str(tmp_path))
    (tmp_path / "catalog.json").write_text(NESTED)
    with pytest.raises(CatalogError, match="cannot be read"):
        load_catalog(str(tmp_path))


@pytest.mark.parametrize("kind", ["pages", "wheels"])
@pytest.mark.parametrize(
    "content", [NESTED.encode(), b"", b"3\n", b"\xff\xfe\n", b'{"sha256":1}\n']
)
def test_damaged_entries_are_read_anew(world: World, kind: str, content: bytes) -> None:
    world.release()
    assert world.refresh()[0] == 0
    for path in entries(world, kind):
        path.write_bytes(content)
    (world.cache / "catalog" / "current").unlink()
    code, _, err = world.refresh()
    assert (code, err) == (0, "")
    assert world.catalog().newest("torch") == "2.16.0"
    assert content not in {path.read_bytes() for path in entries(world, kind)}


def test_entries_that_cannot_be_written_cost_time_alone(world: World) -> None:
    world.release()
    world.cache.mkdir()
    (world.cache / "pages").write_text("")
    (world.cache / "wheels").write_text("")
    code, out, err = world.refresh()
    assert code == 0
    assert "new channel cu134" in out
    assert re.fullmatch(r"note: the cache cannot be written \([^)]+\): .*another folder\n", err)
    assert world.catalog().newest("torch") == "2.16.0"


def test_output_needs_no_cache(world: World, tmp_path: Path) -> None:
    world.release()
    world.cache.write_text("")
    code, _, err = world.refresh("--output", str(tmp_path / "mine"))
    assert code == 0
    assert "the cache cannot be written" in err
    assert (tmp_path / "mine" / "catalog.json").exists()


def test_a_dry_run_writes_nothing_at_all(world: World) -> None:
    assert world.refresh("--dry-run")[0] == 0
    assert not world.cache.exists()


def test_a_page_with_somebodys_login_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    for at, body in enumerate(
        (
            b'<a href="https://me:s3cret@files.example/torch-1.whl">',
            b'{"url":"https:\\/\\/me@files.example\\/torch-1.whl"}',
            b'<a href="https://files.example/torch-1.whl#x@y">',
        )
    ):
        cache.keep_page(f"https://pypi.example/{at}", Stored(body, "text/html", "", "", ""))
    kept = [cache.page(f"https://pypi.example/{at}") is not None for at in range(3)]
    assert kept == [False, False, True]
    (path,) = (tmp_path / "cache" / "pages").iterdir()
    assert "s3cret" not in path.read_text()


def test_the_cache_is_for_its_owner_alone(world: World) -> None:
    assert world.refresh(*ONLY)[0] == 0
    assert (world.cache / "pages").stat().st_mode & 0o077 == 0


def test_what_killed_refreshes_left_is_removed(world: World) -> None:
    assert world.refresh()[0] == 0
    old = [
        world.cache / "pages" / "aa.1.2.part",
        world.cache / "catalog" / "current.1.part",
    ]
    young = world.cache / "pages" / "bb.1.2.part"
    for path in (*old, young):
        path.write_text("half")
    for path in old:
        os.utime(path, (1, 1))
    world.release()
    assert world.refresh()[0] == 0
    assert not any(path.exists() for path in old)
    assert young.exists()  # of one that runs
    assert caching.STALE_PART >= 600


# Folders to write to


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_output_is_tried_before_anything_is_fetched(
    world: World, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CatalogError, match="cannot be written"):
        world.refresh("--output", str(tmp_path / place))
    assert world.server.asked == []
    assert (tmp_path / "file").read_text() == "mine"


def test_a_cache_that_is_a_file_is_told_before_anything_is_fetched(world: World) -> None:
    world.cache.write_text("mine")
    with pytest.raises(CatalogError, match="TORCHPIN_CACHE_DIR names another folder"):
        world.refresh()
    assert world.server.asked == []


@pytest.mark.parametrize(
    ("name", "content"),
    [("builds-torch.json", "{}"), ("catalog.json", "{}"), ("catalog.json", '{"a":1}')],
)
def test_output_onto_a_damaged_catalog(
    world: World, tmp_path: Path, name: str, content: str
) -> None:
    mine = tmp_path / "mine"
    assert world.refresh("--output", str(mine))[0] == 0
    (mine / name).write_text(content)
    with pytest.raises(CatalogError, match=r"cannot be renewed: [\s\S]*remove it, or name another"):
        world.refresh("--output", str(mine))
    assert (mine / name).read_text() == content


def test_no_room_for_temporary_files(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torchpin.catalog.refresh.run.tempfile.TemporaryDirectory", full)
    with pytest.raises(CatalogError, match="No space left on device"):
        world.refresh()
    assert user_catalog() is None


def test_a_link_in_the_place_of_the_cache(world: World, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    world.cache.symlink_to(tmp_path / "real")
    world.release()
    assert world.refresh()[0] == 0
    assert world.catalog().newest("torch") == "2.16.0"
    assert world.cache.is_symlink()


# Other processes


SCRIPT = """
import sys
from pathlib import Path
from tests.catalog.refresh_world import small_state
from torchpin.catalog import store
from torchpin.cli.main import guarded
store._catalog = store.Catalog(sys.argv[1])
sys.exit(guarded(["catalog", "refresh", *sys.argv[2:]]))
"""


def start(world: World, *options: str) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, world.shipped.folder, *world.server.options, *options],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_refreshes_at_the_same_time(world: World) -> None:
    world.release()
    running = [start(world) for _ in range(4)]
    for one in running:
        out, err = one.communicate(timeout=300)
        assert (one.returncode, err) == (0, ""), out
    assert world.catalog().newest("torch") == "2.16.0"
    assert world.catalog().notes == ()
    assert not list(world.cache.rglob("*.part"))


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("where", ["/simple/torch/", "/whl/cu134/torch/", "wheel"])
def test_a_refresh_that_is_killed(world: World, where: str) -> None:
    world.release()
    at = where
    if where == "wheel":
        at = next(p for p in world.server.by_path if "2.16.0" in p and "cu134" in p)
    reached, go_on = threading.Event(), threading.Event()

    def hold(answer: Answer) -> None:
        reached.set()
        go_on.wait(60)

    world.server.behave[at] = hold
    one = start(world)
    assert reached.wait(120)
    one.send_signal(signal.SIGKILL)
    one.communicate()
    go_on.set()
    assert world.catalog().folder == world.shipped.folder
    del world.server.behave[at]
    code, _, err = world.refresh()
    assert (code, err) == (0, "")
    assert world.catalog().newest("torch") == "2.16.0"


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize("kibi", [1, 8, 20])
def test_files_that_cannot_grow(world: World, kibi: int) -> None:
    resource = pytest.importorskip("resource")
    world.release()
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, world.shipped.folder, *world.server.options],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kibi << 10, kibi << 10)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert world.catalog().folder == world.shipped.folder
    assert world.refresh()[0] == 0
    assert world.catalog().newest("torch") == "2.16.0"


# Proxies and options


@pytest.mark.parametrize(
    "proxy",
    [
        "socks5://me:s3cret@127.0.0.1:9",
        "me:s3cret",
        "http://me:s3cret@127.0.0.1:port",
        "http:me:s3cret@127.0.0.1",
        "http://me:s3cret@[x",
        "http://me:s3cret@",
        "http://me:s3cret@127.0.0.1:9",
    ],
)
def test_a_wrong_proxy_is_no_secret_told(
    world: World, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    from torchpin.cli.main import main

    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setattr("torchpin.catalog.remote.PAUSE", 0.01)
    world.capsys.readouterr()
    code = main(["catalog", "refresh", *ONLY, "--index", "http://index.invalid/simple"])
    out, err = world.capsys.readouterr()
    assert code == 2
    assert "s3cret" not in out + err
    assert "what is known of it stays" in err


@pytest.mark.parametrize("text", ["", " ", "2026-13-45", "2026-02-30", "2.x", "torch", "2026-1-1"])
def test_no_since(text: str) -> None:
    with pytest.raises(UsageError, match="--since takes a version of torch or a date"):
        check_since(text)


@pytest.mark.parametrize("text", ["2.14", "2.14.1", "2026-11-30", "9999", "2.15.0rc1"])
def test_since(text: str) -> None:
    assert check_since(f" {text} ") == text


@pytest.mark.parametrize("options", [["--output", ""], ["--since", ""], ["--jobs", "33"]])
def test_values_that_are_none(world: World, options: list[str]) -> None:
    with pytest.raises(UsageError):
        world.refresh(*options)
    assert world.server.asked == []


def test_the_json_report(world: World) -> None:
    world.release()
    world.server.behave["/whl/cu126/torch/"] = lambda answer: answer.status(404)
    code, out, _ = world.refresh("--output-format", "json")
    assert code == 1
    report = json.loads(out)
    schema = Path(torchpin.report.__file__).parent / "schemas" / "catalog-refresh.v1.json"
    jsonschema.validate(report, json.loads(schema.read_text()))
    used = world.catalog()
    assert report["catalog"] == {
        "date": used.date,
        "digest": used.digest,
        "folder": str(own_catalog()),
    }
    assert {"kind": "channel", "package": "torch", "text": "new channel cu134"} in report["changes"]
    (failed,) = report["failed"]
    assert failed == {
        "part": "cu126/torch",
        "reason": "the server answers 404",
        "kept": world.shipped.date,
    }
    assert report["summary"]["wheels"] > 0 and report["dry_run"] is False


def test_the_json_report_of_a_dry_run(world: World) -> None:
    world.release()
    code, out, _ = world.refresh("--output-format", "json", "--dry-run")
    report = json.loads(out)
    assert code == 0
    assert report["catalog"] == {
        "date": world.shipped.date,
        "digest": world.shipped.digest,
        "folder": None,
    }
    assert report["dry_run"] is True and report["changes"] and report["summary"]["wheels"] > 0


def test_catalog_show_of_a_catalog_by_name(world: World, tmp_path: Path) -> None:
    world.release()
    mine = str(tmp_path / "mine")
    assert world.refresh("--output", mine)[0] == 0
    assert "2.16.0" in world.run("catalog", "show", "torch", "--catalog", mine)[1]
    assert "2.16.0" not in world.run("catalog", "show", "torch", "--catalog", "shipped")[1]


# Words of pages


@pytest.mark.parametrize(
    "api", ["\u202e", "\ud800", "\x1b[31m", "https://me:s3cret@h.example", "9" * 5000, "2.0", ""]
)
def test_a_page_of_another_version(world: World, api: str) -> None:
    body = json.dumps({"meta": {"api-version": api}, "files": [], "versions": []}).encode()
    kind = "application/vnd.pypi.simple.v1+json"
    world.server.behave["/simple/torch/"] = lambda answer: answer.whole(body, kind)
    code, out, err = world.refresh()
    assert code == 1
    assert "pypi/torch: the page is of version" in err
    assert "s3cret" not in out + err
    assert all(char.isprintable() or char == "\n" for char in out + err)


@pytest.mark.parametrize(
    "label", ["cu126", "cu" + "1" * 5000], ids=["a channel's", "of many digits"]
)
def test_labels_on_a_page_that_stands_for_pypi(world: World, label: str) -> None:
    """A mirror may serve PyPI and the channels on one page."""
    page = world.server.page("/simple/torch/", "application/vnd.pypi.simple.v1+json")
    assert page is not None
    raw = json.loads(page[0])
    version = f"2.16.0+{label}"
    raw["versions"].append(version)
    for end in ("-cp312-cp312-manylinux_2_28_x86_64.whl", ".tar.gz"):
        name = f"torch-{version}{end}"
        raw["files"].append({"filename": name, "url": f"{world.server.base}/{end}", "hashes": {}})
    body = json.dumps(raw).encode()
    world.server.behave["/simple/torch/"] = lambda answer: answer.whole(body, page[1])
    assert world.refresh()[0] == 0
    found = world.catalog()
    assert found.newest("torch") == "2.15.0"
    assert not [b for b in found.builds("torch") if b.version == "2.16.0"]
    assert {b.label for b in found.builds("torch") if b.home == "pypi"} == {""}


@pytest.mark.parametrize("version", ["1" * 5000, f"{'9' * 4400}.0"])
def test_versions_that_no_number_holds(world: World, version: str) -> None:
    page = world.server.page("/simple/torch/", "application/vnd.pypi.simple.v1+json")
    assert page is not None
    raw = json.loads(page[0])
    raw["versions"].append(version)
    name = f"torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl"
    raw["files"].append({"filename": name, "url": f"{world.server.base}/x.whl", "hashes": {}})
    raw["files"].append({"filename": f"torch-{version}.tar.gz", "url": "x.gz", "hashes": {}})
    body = json.dumps(raw).encode()
    world.server.behave["/simple/torch/"] = lambda answer: answer.whole(body, page[1])
    assert world.refresh()[0] in (0, 1)
    assert world.catalog().newest("torch") == "2.15.0"
