"""``catalog refresh`` on a bad network: what was known stays, and the message says so."""

from __future__ import annotations

import base64
import gzip
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.catalog.index_server import Answer, IndexServer, file_names
from tests.catalog.refresh_world import LINUX, World, make_world

from torchpin.catalog import store
from torchpin.catalog.location import user_catalog
from torchpin.catalog.records import read_state
from torchpin.catalog.refresh.gather import doubt
from torchpin.catalog.refresh.listing import Listing, Wheel
from torchpin.catalog.refresh.pages import File, PageError
from torchpin.catalog.refresh.settings import Failed
from torchpin.catalog.store import FOLDER
from torchpin.catalog.wheel_names import read_name
from torchpin.cli.main import main


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[World]:
    made, server = make_world(tmp_path, monkeypatch, capsys)
    with server:
        yield made


def garbage(answer: Answer) -> None:
    answer.whole(bytes(range(256)) * 40, "text/html")


def login_page(answer: Answer) -> None:
    answer.whole(b"<html><body><h1>Sign in</h1></body></html>", "text/html")


def cut(answer: Answer) -> None:
    body = answer.server.html("torch", answer.server.files)
    answer.send_response(200)
    answer.send_header("Content-Type", "text/html")
    answer.send_header("Content-Length", str(len(body)))
    answer.end_headers()
    answer.wfile.write(body[: len(body) // 2])


def cut_without_length(answer: Answer) -> None:
    body = answer.server.html("torch", answer.server.files)
    answer.send_response(200)
    answer.send_header("Content-Type", "text/html")
    answer.end_headers()
    answer.wfile.write(body[: len(body) // 2])


def loop(answer: Answer) -> None:
    answer.status(302, Location=answer.path)


def silent(answer: Answer) -> None:
    answer.server.done.wait(30)


def slow_head(answer: Answer) -> None:
    answer.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    answer.server.done.wait(30)


BOMB = gzip.compress(b" " * 80_000_000, 1)


def bomb(answer: Answer) -> None:
    body = BOMB
    answer.send_response(200)
    answer.send_header("Content-Type", "text/html")
    answer.send_header("Content-Encoding", "gzip")
    answer.send_header("Content-Length", str(len(body)))
    answer.end_headers()
    answer.wfile.write(body)


def few(answer: Answer) -> None:
    body = answer.server.html("torch", [f for f in answer.server.files if f.channel == "cu126"][:1])
    answer.whole(body, "text/html")


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (lambda answer: answer.status(404), "the server answers 404"),
        (lambda answer: answer.status(403), "the server answers 403"),
        (lambda answer: answer.status(401), "HTTP 401 Unauthorized"),
        (lambda answer: answer.status(500), "HTTP 500 Internal Server Error"),
        (garbage, "the page is not HTML in UTF-8"),
        (login_page, "builds that are known: not believed"),
        (cut, "the connection ended early"),
        (cut_without_length, "the page is cut off"),
        (loop, "the server redirects more than 5 times"),
        (silent, "the server sends nothing"),
        (slow_head, "the server sends nothing"),
        (bomb, "the answer has more than 64 MiB"),
    ],
)
def test_a_page_that_cannot_be_used(world: World, behaviour: object, words: str) -> None:
    world.release()
    world.server.behave["/whl/cu126/torch/"] = behaviour  # type: ignore[assignment]
    code, out, err = world.refresh("--timeout", "0.3")
    assert code == 1
    assert err.startswith("note: not read: cu126/torch: ") and words in err
    assert "what is known of it stays, as of 2026-11-30" in err
    assert "torch: new version 2.16.0" in out  # the rest was read
    found = world.catalog()
    assert found.page("torch", "cu126") is None
    assert found.find("torch", channel="cu126") == world.shipped.find("torch", channel="cu126")
    assert found.date == "2026-12-05"


def test_a_second_failure_names_the_day_of_the_last_reading(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.refresh()[0] == 0
    world.server.behave["/whl/cu126/torch/"] = garbage
    monkeypatch.setattr("torchpin.catalog.refresh.run.today", lambda: "2026-12-09")
    code, _, err = world.refresh()
    assert code == 1 and "as of 2026-12-05" in err
    page = world.catalog().page("torch", "cu126")
    assert page is not None and page.date == "2026-12-05"
    other = world.catalog().page("torch", "cu130")
    assert other is not None and other.date == "2026-12-09"


def test_a_channel_that_is_gone(world: World) -> None:
    for path in ("/whl/cu126/", "/whl/cu126/torch/", "/whl/cu126/torchvision/"):
        world.server.behave[path] = lambda answer: answer.status(404)
    code, _, err = world.refresh()
    assert code == 1
    assert "not read: cu126: the server answers 404" in err
    assert world.catalog().find("torch", channel="cu126")


def test_a_page_that_lacks_much_is_doubted() -> None:
    part = read_state(FOLDER).parts["torch"]
    wheels = []
    for build in part.builds:
        if build.channel == "cu126" and build.home == "channel":
            for text in file_names(build):
                name = read_name(text)
                assert name is not None
                wheels.append(Wheel(File(text, "", "", None, False, "", None, ""), name))
    whole = Listing("torch", "cu126", "2026-12-05", tuple(wheels), (), ())
    doubt(part, whole)
    doubt(part, whole._replace(wheels=tuple(w for w in wheels if w.name.version != "2.6.0")))
    with pytest.raises(PageError, match=r"lacks \d+ of \d+ builds that are known: not believed"):
        doubt(part, whole._replace(wheels=tuple(wheels[: len(wheels) // 2])))
    with pytest.raises(PageError):
        doubt(part, whole._replace(wheels=()))


def test_removal_is_believed_if_allowed(world: World) -> None:
    world.server.behave["/whl/cu126/torch/"] = login_page
    code, out, err = world.refresh("--allow-removal")
    assert (code, err) == (0, "")
    assert world.catalog().find("torch", channel="cu126")  # an empty page says nothing
    world.server.behave["/whl/cu126/torch/"] = few
    code, out, err = world.refresh("--allow-removal")
    assert (code, err) == (0, "")
    assert "torch: no longer listed: 2.14.1 on cu126" in out


def test_a_cut_page_is_not_kept(world: World) -> None:
    body = world.server.page("/whl/cu126/torch/", "text/html")
    assert body is not None

    def cut_with_etag(answer: Answer) -> None:
        if answer.headers.get("If-None-Match"):
            answer.status(304)
            return
        answer.send_response(200)
        answer.send_header("ETag", '"x"')
        answer.send_header("Content-Type", "text/html")
        answer.end_headers()
        answer.wfile.write(body[0][:300])

    world.server.behave["/whl/cu126/torch/"] = cut_with_etag
    assert world.refresh()[0] == 1
    del world.server.behave["/whl/cu126/torch/"]
    assert world.refresh()[0] == 0


def test_a_page_ten_times_as_long(world: World) -> None:
    page = world.server.html("torch", [f for f in world.server.files if f.channel == "cu126"])
    line = next(one for one in page.split(b"\n") if b"torch-2.14.1" in one)
    more = b"".join(
        line.replace(b"2.14.1", f"1.{n}.{m}".encode()) + b"\n" for n in range(60) for m in range(40)
    )
    world.server.behave["/whl/cu126/torch/"] = lambda answer: answer.whole(
        page.replace(line, line + b"\n" + more), "text/html"
    )
    code, out, err = world.refresh()
    assert (code, err) == (0, "")
    assert len(world.catalog().find("torch", channel="cu126", platform="linux-x86_64")) > 2000
    assert len(out) < 5000


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_left_alone_as_long_as_it_asks(world: World, status: int) -> None:
    seen: list[float] = []

    def busy(answer: Answer) -> None:
        seen.append(time.monotonic())
        if len(seen) == 1:
            answer.status(status, Retry_After="1")
        else:
            answer.usual("/whl/cu126/torch/")

    world.server.behave["/whl/cu126/torch/"] = busy
    code, _, err = world.refresh()
    assert (code, err) == (0, "")
    assert len(seen) == 2 and seen[1] - seen[0] >= 0.95


def test_a_server_that_wants_an_hour(world: World) -> None:
    world.server.behave["/whl/cu126/torch/"] = lambda answer: answer.status(503, Retry_After="3600")
    code, _, err = world.refresh("--channel", "cu126", "--package", "torch")
    assert code == 1
    assert "the server asks to come back in 3" in err


def test_a_wheel_that_is_cut_is_asked_for_again(world: World) -> None:
    world.release()
    path = f"/whl/cu134/torch-2.16.0+cu134-cp311-cp311-{LINUX}.whl"
    data = world.server.by_path[path].data
    asked = []

    def half(answer: Answer) -> None:
        asked.append(1)
        if len(asked) > 1:
            answer.ranged(data)
            return
        answer.send_response(206)
        answer.send_header("Content-Range", f"bytes 0-{len(data) - 1}/{len(data)}")
        answer.send_header("Content-Length", str(len(data)))
        answer.end_headers()
        answer.wfile.write(data[: len(data) // 2])

    world.server.behave[path] = half
    code, _, err = world.refresh()
    assert (code, err) == (0, "")
    (build,) = world.catalog().find("torch", version="2.16.0", channel="cu134", home="channel")
    assert build.evidence == "measured"


def unreachable() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


def test_offline(world: World) -> None:
    base = unreachable()
    world.capsys.readouterr()
    code = main(["catalog", "refresh", "--index", f"{base}/simple", "--index", f"{base}/whl"])
    _, err = world.capsys.readouterr()
    assert code == 2
    assert "Connection refused" in err and "as of 2026-11-30" in err
    assert "nothing could be reached: the catalog stays as it is" in err
    assert len(err.splitlines()) < 10  # not a line a page
    assert user_catalog() is None


def test_half_offline_says_which_part_is_how_old(world: World) -> None:
    base = unreachable()
    world.capsys.readouterr()
    code = main(["catalog", "refresh", *world.server.options[:2], "--index", f"{base}/whl"])
    out, err = world.capsys.readouterr()
    assert code == 1
    assert "not read: cpu, cu126, cu130, cu132: 127.0.0.1: Connection refused" in err
    assert "what is known of them stays, as of 2026-11-30" in err
    assert "no connection to 127.0.0.1: a proxy (https_proxy) or a mirror (--index URL)" in err
    assert "catalog of 2026-12-05" in out
    assert "nothing new in what was read\n" in out
    assert "nothing changed" not in out and "unchanged" not in out


def test_damage_of_the_users_catalog_is_told_and_ignored(world: World, tmp_path: Path) -> None:
    world.release()
    assert world.refresh()[0] == 0
    folder = user_catalog()
    assert folder is not None and world.catalog().folder == folder
    path = Path(folder) / "builds-torch.json"
    path.write_bytes(path.read_bytes()[:-10] + b"          ")
    found = world.catalog()
    assert found.folder == world.shipped.folder
    (note,) = found.notes
    assert "damaged (builds-torch.json was changed)" in note and "refresh" in note
    file = tmp_path / "requirements.txt"
    file.write_text("torch==2.15.0\n")
    _, _, err = world.run("check", str(file), "--gpu", "H100")
    assert "damaged" in err
    assert world.refresh()[0] == 0  # makes it anew
    assert world.catalog().newest("torch") == "2.16.0"


@pytest.mark.parametrize("harm", ["head", "gone", "pointer"])
def test_other_damage(world: World, harm: str) -> None:
    assert world.refresh()[0] == 0
    folder = user_catalog()
    assert folder is not None
    if harm == "head":
        (Path(folder) / "catalog.json").write_text('{"files": 3}')
    elif harm == "gone":
        (Path(folder) / "partners.json").unlink()
    else:
        (Path(folder).parent / "current").write_text("../../etc\n")
    found = world.catalog()
    assert found.folder == world.shipped.folder and "damaged" in found.notes[0]


def test_a_newer_torchpin_goes_before_an_old_refresh(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.refresh()[0] == 0
    assert world.catalog().folder != world.shipped.folder
    monkeypatch.setattr(world.shipped, "date", "2027-01-01")
    assert world.catalog().folder == world.shipped.folder


def test_what_only_a_refresh_knows_survives_a_newer_torchpin(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.release()
    assert world.refresh()[0] == 0
    monkeypatch.setattr(world.shipped, "digest", "0" * 64)  # another torchpin's data
    base = unreachable()
    monkeypatch.setattr("torchpin.catalog.refresh.run.today", lambda: "2026-12-09")
    code = main(["catalog", "refresh", *world.server.options[:2], "--index", f"{base}/whl"])
    assert code == 1
    assert world.catalog().find("torch", version="2.16.0", channel="cu134", home="channel")


def test_credentials_are_neither_printed_nor_stored(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s3cr3tpw"
    world.release()
    base = world.server.base.replace("http://", f"http://me:{secret}@")
    world.server.behave["/whl/cu126/torch/"] = lambda answer: answer.status(401)
    world.capsys.readouterr()
    code = main(["catalog", "refresh", "--index", f"{base}/simple", "--index", f"{base}/whl"])
    out, err = world.capsys.readouterr()
    assert code == 1
    assert secret not in out + err
    login = "Basic " + base64.b64encode(f"me:{secret}".encode()).decode()
    assert {headers.get("Authorization") for _, headers in world.server.seen} <= {login, None}
    sent = {p for p, headers in world.server.seen if headers.get("Authorization") == login}
    assert "/simple/torch/" in sent and "/whl/cu132/torch/" in sent
    assert any(path.endswith(".whl") for path in sent)  # files of the same origin
    for folder, _, names in os.walk(world.cache):
        for name in names:
            data = (Path(folder) / name).read_bytes()
            assert secret.encode() not in data and login.encode() not in data


def test_netrc(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "netrc"
    path.write_text("machine 127.0.0.1 login me password hidden\n")
    path.chmod(0o600)
    monkeypatch.setenv("NETRC", str(path))
    assert world.refresh("--channel", "pypi", "--package", "torch")[0] == 0
    login = "Basic " + base64.b64encode(b"me:hidden").decode()
    assert world.server.seen[-1][1]["Authorization"] == login


def test_a_proxy_is_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", world.server.base)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    world.server.behave["http://mirror.invalid/simple/torch/"] = lambda answer: answer.usual(
        "/simple/torch/"
    )
    world.capsys.readouterr()
    url = "http://mirror.invalid/simple"
    code = main(["catalog", "refresh", "--index", url, "--channel", "pypi", "--package", "torch"])
    assert code == 0
    assert world.server.asked[0][0] == f"{url}/torch/"


def test_connections_are_bounded(world: World) -> None:
    now = most = 0
    lock = threading.Lock()

    def counted(answer: Answer) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        answer.usual(answer.path)

    paths = [f"/simple/{n}/" for n in ("torch", "torchvision", "torchaudio", "triton")]
    for path in [*paths, *(f"/whl/{c}/" for c in ("cpu", "cu126", "cu130", "cu132"))]:
        world.server.behave[path] = counted
    assert world.refresh("--jobs", "2")[0] == 0
    assert most == 2


def test_an_interrupted_refresh_changes_nothing_and_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.release()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("torchpin.catalog.refresh.run._point", stop)
        with pytest.raises(KeyboardInterrupt):
            world.refresh()
    assert world.catalog().folder == world.shipped.folder
    code, _, err = world.refresh()
    assert (code, err) == (0, "")
    assert not any(path.endswith(".whl") for path, _ in world.server.asked)  # all was kept
    assert world.catalog().newest("torch") == "2.16.0"


def test_a_stop_ends_running_requests(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, release, gave_up = threading.Event(), threading.Event(), threading.Event()

    def hold(answer: Answer) -> None:
        asked.set()
        if not release.wait(60):
            gave_up.set()

    def stop(self: object, done: int, total: int) -> None:
        assert asked.wait(60)
        raise KeyboardInterrupt

    world.server.behave["/simple/torch/"] = hold
    world.server.behave["/simple/torchvision/"] = garbage
    monkeypatch.setattr("torchpin.cli.catalog_refresh.RefreshBar.pages", stop)
    with pytest.raises(KeyboardInterrupt):
        world.refresh("--timeout", "600")
    assert not gave_up.is_set()  # nobody waited for the server
    release.set()


def test_a_host_that_hangs_is_given_up(world: World) -> None:
    with IndexServer([]) as other:
        other.silent = True
        options = [*world.server.options[:2], "--index", f"{other.base}/whl", "--timeout", "0.5"]
        world.capsys.readouterr()
        code = main(["catalog", "refresh", *options, "--jobs", "1"])
        _, err = world.capsys.readouterr()
    assert code == 1
    assert "127.0.0.1: the server sends nothing" in err
    assert len(other.asked) == 3


def test_old_catalogs_are_removed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchpin.catalog.refresh.run.SPARED", -1.0)
    for day in range(1, 5):
        monkeypatch.setattr("torchpin.catalog.refresh.run.today", lambda day=day: f"2026-12-0{day}")
        assert world.refresh()[0] == 0
    folders = [p for p in (world.cache / "catalog").iterdir() if p.is_dir()]
    assert len(folders) == 2
    assert store.load_catalog().folder in map(str, folders)


def test_a_disk_that_cannot_be_written(world: World, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    from torchpin.errors import CatalogError

    with pytest.raises(CatalogError, match="cannot be written"):
        world.refresh("--output", str(blocked / "folder"))
    assert blocked.read_text() == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--jobs", "0"], "--jobs takes 1 to 32"),
        (["--timeout", "-1"], "--timeout takes seconds"),
        (["--since", "yesterday"], "--since takes a version of torch or a date"),
        (["--channel", "cuda"], "is no channel of PyTorch"),
        (["--package", "torchvison", "--index", "http://127.0.0.1:9/simple"], "does not follow"),
        (["--index", "file:///x"], "--index: only http and https"),
        (["--index", "http://[x"], "--index: the URL cannot be read"),
    ],
)
def test_wrong_usage(options: list[str], words: str) -> None:
    from torchpin.errors import UsageError

    with pytest.raises(UsageError, match=words):
        main(["catalog", "refresh", *options])


def test_many_failures_of_one_reason_are_one_line() -> None:
    from torchpin.cli.catalog_refresh import failures

    channels = [*(f"cu1{n:02}" for n in range(20, 39)), "rocm6.4"]
    failed = [Failed(name, "host: no route", "2026-11-30") for name in channels]
    failed += [Failed("the list of channels", "host: no route", "")]
    failed += [Failed("cu126/torch", "the page is cut off", "2026-12-05")]
    assert failures(tuple(failed)) == [
        "not read: 20 channels (cu120, cu121, cu122, cu123, cu124, cu125 …): host: no route; "
        "what is known of them stays, as of 2026-11-30",
        "not read: cu126/torch: the page is cut off; what is known of it stays, as of 2026-12-05",
    ]
