"""A loopback server of one file whose behaviour a test chooses."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

Handler = Callable[["Answer"], None]


class Answer(BaseHTTPRequestHandler):
    """One request; ``serve`` of the server answers it."""

    server: RangeServer  # type: ignore[mutable-override]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.close_connection = True
        self.server.asked.append(self.headers.get("Range", ""))
        self.server.seen.append(dict(self.headers.items()))
        try:
            self.server.serve(self)
        except (BrokenPipeError, ConnectionResetError):
            return

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def span(self) -> tuple[int, int]:
        """Return the range that is asked for, as (start, end)."""
        size = len(self.server.data)
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        assert match is not None
        if not match[1]:
            return max(0, size - int(match[2])), size
        return int(match[1]), min(size, int(match[2]) + 1)

    def ranged(self, **changes: str) -> None:
        """Answer as a good server does, but for the headers in ``changes`` (``""``: left out)."""
        start, end = self.span()
        headers = {
            "Content-Range": f"bytes {start}-{end - 1}/{len(self.server.data)}",
            "Content-Length": str(end - start),
            "Connection": "close",
        }
        headers |= {name.replace("_", "-"): value for name, value in changes.items()}
        self.send_response(206)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.data[start:end])

    def plain(self, status: int, **headers: str) -> None:
        """Answer without a body."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()


class RangeServer(ThreadingHTTPServer):
    """Serves ``data`` by ``serve``; a context manager."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, data: bytes, serve: Handler = Answer.ranged) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.data = data
        self.serve = serve
        self.asked: list[str] = []
        self.seen: list[dict[str, str]] = []
        self.done = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> RangeServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.done.set()
        self.shutdown()
        self.server_close()
        self._thread.join(5)

    def url(self, name: str = "ext-1.0-cp312-cp312-manylinux_2_28_x86_64.whl") -> str:
        """Return the address of the file."""
        return f"http://127.0.0.1:{self.server_address[1]}/files/{name}"
