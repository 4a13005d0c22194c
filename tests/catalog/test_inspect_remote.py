"""Wheels behind a URL: few bytes, and servers that lie, hang, loop or close early."""

from __future__ import annotations

import base64
import random
import threading

import pytest
from tests.catalog.inspect_samples import elf, fatbin, wheel
from tests.catalog.range_server import Answer, Handler, RangeServer

from torchpin.catalog import inspect as inspecting
from torchpin.catalog.bounded import Budget, InspectError
from torchpin.catalog.inspect import inspect
from torchpin.catalog.inspection import NOT_FETCHED
from torchpin.catalog.remote import RemoteFile
from torchpin.errors import TorchpinError

NOISE = random.Random(7).randbytes(3_000_000)
CODE = elf(fatbin("75 90a", "120"), ["libcudart.so.13"])
SMALL = wheel({"ext/_C.so": CODE})
BIG = wheel(
    {"ext/model.bin": NOISE, "ext/_C.so": CODE, "ext/other.bin": NOISE, "ext/version.py": ""}
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("torchpin.catalog.remote.PAUSE", 0.01)


def fails(
    serve: Handler, message: str, *, seconds: float = 20, idle: float = 5, data: bytes = BIG
) -> TorchpinError:
    with RangeServer(data, serve) as server:
        url = server.url().replace("http://", "http://me:secret@") + "?token=hidden"
        with pytest.raises(InspectError, match=message) as caught:
            inspect(url, budget=Budget(seconds), idle=idle)
    assert "secret" not in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert threading.active_count() < 20
    return caught.value


def test_only_what_is_needed_is_fetched() -> None:
    with RangeServer(BIG) as server:
        found = inspect(server.url())
        assert found.requests == len(server.asked)
    assert found.fetched < 400_000 < len(BIG)
    assert found.requests <= 4
    assert found.device[0].fatbins.sass == ("75", "90a")
    assert found.source.startswith("http://127.0.0.1:")


def test_a_small_wheel_is_one_request() -> None:
    with RangeServer(SMALL) as server:
        assert inspect(server.url()).requests == 1


def test_a_library_by_url() -> None:
    library = elf(fatbin("80"), ["libcudart.so.12"], data=NOISE)
    with RangeServer(library) as server:
        found = inspect(server.url("x.so"))
    assert (found.kind, found.cuda) == ("library", "12")
    assert found.device[0].fatbins.sass == ("80",)


def test_the_biggest_libraries_of_torch_stay_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inspecting, "SKIPPED_ABOVE", 1_000_000)
    members = {
        "torch/lib/libtorch_cuda.so": elf(fatbin("80"), data=NOISE),
        "torch/lib/libtorch_python.so": elf(data=b"\0sm_75 sm_80\0"),
    }
    with RangeServer(wheel(members, "torch", "2.15.0")) as server:
        short = inspect(server.url())
        whole = inspect(server.url(), everything=True)
    assert [item.note for item in short.libraries] == [NOT_FETCHED, ""]
    assert [item.name for item in short.unread] == ["torch/lib/libtorch_cuda.so"]
    assert short.fetched < 200_000
    assert whole.device[0].fatbins.sass == ("80",)
    assert whole.unread == ()


def test_without_a_list_of_torch_all_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspecting, "SKIPPED_ABOVE", 1_000_000)
    members = {
        "torch/lib/libtorch_cuda.so": elf(fatbin("80"), data=NOISE),
        "torch/lib/libtorch_python.so": elf(data=b"no list"),
    }
    with RangeServer(wheel(members, "torch", "2.15.0")) as server:
        found = inspect(server.url())
    assert found.device[0].fatbins.sass == ("80",)


def test_a_second_pass_costs_no_second_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchpin.catalog.zipread.IN_MEMORY", 1000)
    library = elf(fatbin("80"), ["libcudart.so.12"], data=NOISE)
    made = wheel({"ext/_C.so": library})
    with RangeServer(made) as server:
        found = inspect(server.url())
    assert found.device[0].fatbins.sass == ("80",)
    assert found.fetched <= len(made)


def test_the_file_is_what_lies_there() -> None:
    generator = random.Random(3)
    with RangeServer(NOISE) as server:
        remote = RemoteFile(server.url(), Budget(30))
        remote.hint([(500_000, 900_000)])
        for _ in range(60):
            start = generator.randrange(len(NOISE))
            count = generator.randrange(200_000)
            remote.seek(start)
            assert remote.read(count) == NOISE[start : start + count]
            assert remote.tell() == min(start + count, len(NOISE))
        assert remote.seek(-5, 2) == len(NOISE) - 5
        assert remote.read() == NOISE[-5:]
        assert remote.fetched <= len(NOISE)
        remote.close()


def test_a_server_without_ranges_from_the_end() -> None:
    def serve(answer: Answer) -> None:
        if answer.headers["Range"].startswith("bytes=-"):
            answer.plain(416)
        else:
            answer.ranged()

    with RangeServer(BIG, serve) as server:
        assert inspect(server.url()).device[0].fatbins.sass == ("75", "90a")


def test_a_connection_cut_now_and_then_is_taken_up_again() -> None:
    calls = iter(range(1000))

    def serve(answer: Answer) -> None:
        if next(calls) % 2 == 0:
            start, end = answer.span()
            answer.send_response(206)
            answer.send_header(
                "Content-Range", f"bytes {start}-{end - 1}/{len(answer.server.data)}"
            )
            answer.send_header("Content-Length", str(end - start))
            answer.end_headers()
            answer.wfile.write(answer.server.data[start : start + (end - start) // 2])
        else:
            answer.ranged()

    with RangeServer(BIG, serve) as server:
        assert inspect(server.url()).device[0].fatbins.sass == ("75", "90a")


def test_a_busy_server_is_asked_again() -> None:
    calls = iter(range(1000))

    def serve(answer: Answer) -> None:
        if next(calls) == 0:
            answer.plain(503)
        else:
            answer.ranged()

    with RangeServer(BIG, serve) as server:
        assert inspect(server.url()).requests >= 2


def whole_file(answer: Answer) -> None:
    answer.send_response(200)
    answer.send_header("Content-Length", str(len(answer.server.data)))
    answer.end_headers()
    answer.wfile.write(answer.server.data)


def closes(answer: Answer) -> None:
    answer.wfile.write(b"")


def garbage(answer: Answer) -> None:
    answer.wfile.write(b"\x00\xff not http \x1b[31m\r\n\r\n")


def cut(answer: Answer) -> None:
    start, end = answer.span()
    answer.send_response(206)
    answer.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(answer.server.data)}")
    answer.send_header("Content-Length", str(end - start))
    answer.end_headers()


def endless_headers(answer: Answer) -> None:
    answer.wfile.write(b"HTTP/1.1 206 Partial Content\r\n")
    while not answer.server.done.is_set():
        answer.wfile.write(b"X-A: " + b"a" * 1000 + b"\r\n")


@pytest.mark.parametrize(
    ("serve", "message"),
    [
        (whole_file, "does not answer range requests"),
        (closes, "closed the connection"),
        (garbage, "cannot be fetched"),
        (cut, "ended early"),
        (endless_headers, "cannot be fetched"),
        (lambda a: a.plain(404), "HTTP 404 Not Found"),
        (lambda a: a.plain(401), "HTTP 401 Unauthorized"),
        (lambda a: a.plain(503), "HTTP 503"),
        (lambda a: a.plain(416), "HTTP 416"),
        (lambda a: a.ranged(Content_Range=""), "does not say which bytes"),
        (lambda a: a.ranged(Content_Range="bytes 0-1/*"), "does not say which bytes"),
        (lambda a: a.ranged(Content_Range="bytes 5-4/9"), "does not say which bytes"),
        (lambda a: a.ranged(Content_Range=f"bytes 0-9/{2**62}"), "does not say which bytes"),
        (lambda a: a.ranged(Content_Encoding="gzip"), "does not say which bytes"),
        (lambda a: a.ranged(Content_Length="7"), "does not say which bytes"),
        (lambda a: a.plain(302, Location=a.path), "redirects more than"),
        (lambda a: a.plain(302, Location="file:///etc/hosts"), "something other than http"),
        (lambda a: a.plain(302, Location="http://[::1"), "something other than http"),
    ],
)
def test_what_no_server_should_do(serve: Handler, message: str) -> None:
    fails(serve, message)


def test_a_whole_file_in_place_of_its_end() -> None:
    def serve(answer: Answer) -> None:
        size = len(answer.server.data)
        answer.send_response(206)
        answer.send_header("Content-Range", f"bytes 0-{size - 1}/{size}")
        answer.end_headers()
        answer.wfile.write(answer.server.data)

    fails(serve, "not asked for")


def test_a_wrong_range_later_on() -> None:
    def serve(answer: Answer) -> None:
        size = len(answer.server.data)
        if len(answer.server.asked) > 1:
            answer.ranged(Content_Range=f"bytes 0-{size - 1}/{size}", Content_Length="")
        else:
            answer.ranged()

    fails(serve, "not asked for")


def test_a_file_that_changes() -> None:
    fails(lambda a: a.ranged(ETag=f'"{len(a.server.asked)}"'), "changed on the server")


def test_a_silent_server() -> None:
    def serve(answer: Answer) -> None:
        answer.server.done.wait(20)

    fails(serve, "sends nothing", idle=0.3)


def test_a_server_that_stops_in_the_middle() -> None:
    def serve(answer: Answer) -> None:
        if len(answer.server.asked) == 1:
            answer.ranged()
        else:
            cut(answer)
            answer.wfile.flush()
            answer.server.done.wait(20)

    fails(serve, "sends nothing", idle=0.3)


@pytest.mark.parametrize("headers", [True, False])
def test_a_byte_now_and_then_is_ended_by_the_clock(headers: bool) -> None:
    def serve(answer: Answer) -> None:
        if headers:
            answer.wfile.write(b"HTTP/1.1 206 Partial Content\r\nX-A: ")
        else:
            cut(answer)
        while not answer.server.done.wait(0.05):
            answer.wfile.write(b"a")

    fails(serve, "no result within 1 s", seconds=1)


def test_credentials_go_to_their_origin_alone() -> None:
    with RangeServer(SMALL) as other, RangeServer(b"") as first:
        first.serve = lambda a: a.plain(302, Location=other.url())
        url = first.url().replace("http://", "http://me:p%40ss@")
        found = inspect(url)
        login = base64.b64encode(b"me:p@ss").decode()
        assert first.seen[0]["Authorization"] == f"Basic {login}"
        assert all("Authorization" not in headers for headers in other.seen)
    assert "me" not in found.source.partition("//")[2].partition("/")[0]


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/hosts",
        "ftp://files.example/x.whl",
        "data://x",
        "http://",
        "http://files.example:99999/x.whl",
        "https://files.example/a b.whl",
        "https://files.example/\r\nHost: x",
        "https://exämple.example/x.whl",
        "http://[::1/x.whl",
    ],
)
def test_urls_that_are_not_read(url: str) -> None:
    with pytest.raises(InspectError, match=r"only http|cannot be read|blanks|ASCII"):
        inspect(url)
