"""A small HTTP server for the pages of an index and for local wheels."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from torchpin.plugin.pages import HTML, HTML_TYPE, JSON, JSON_TYPE

ROOT = "/simple/"
_CHUNK = 1 << 16


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    pages: Mapping[str, bytes]
    files: Mapping[str, str]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def site(self) -> _Server:
        """The server, with what it holds."""
        assert isinstance(self.server, _Server)
        return self.server

    def do_GET(self) -> None:
        """Answer with a page or a file; folders without a slash lead to the one with it."""
        path = unquote(self.path.partition("?")[0])
        if not path.startswith(ROOT):
            self._lead(ROOT) if path in ("/", "/simple") else self._missing()
            return
        rest = path.removeprefix(ROOT)
        if rest.startswith("files/"):
            self._file(rest.removeprefix("files/"))
        elif rest == "" or rest.endswith("/"):
            wants_json = JSON_TYPE in self.headers.get("Accept", "")
            self._page(rest + (JSON if wants_json else HTML))
        elif f"{rest}/{HTML}" in self.site.pages:
            self._lead(f"{ROOT}{rest}/")
        else:
            self._page(rest)

    do_HEAD = do_GET  # noqa: N815

    def _page(self, name: str) -> None:
        body = self.site.pages.get(name)
        if body is None:
            self._missing()
            return
        self._begin(200, JSON_TYPE if name.endswith(JSON) else HTML_TYPE, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _file(self, name: str) -> None:
        path = self.site.files.get(name)
        if path is None:
            self._missing()
            return
        try:
            file = open(path, "rb")  # noqa: SIM115
        except OSError:
            self._missing()
            return
        with file:
            left = os.fstat(file.fileno()).st_size
            self._begin(200, "application/octet-stream", left)
            while self.command != "HEAD" and left > 0 and (block := file.read(_CHUNK)):
                self.wfile.write(block)
                left -= len(block)

    def _lead(self, where: str) -> None:
        self.send_response(301)
        self.send_header("Location", where)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _missing(self) -> None:
        body = b"not found\n"
        self._begin(404, "text/plain", len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: int, kind: str, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        if kind in (HTML_TYPE, JSON_TYPE):
            self.send_header("Vary", "Accept")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def server_of(
    host: str, port: int, pages: Mapping[str, str], files: Mapping[str, str]
) -> ThreadingHTTPServer:
    """Return a server that listens already; ``serve_forever`` starts it.

    Args:
        host: address to listen on.
        port: 0 for any free one.
        pages: path → text; see ``pages.pages``.
        files: file name → path of a local wheel.

    Raises:
        OSError: it cannot listen there.
        OverflowError: no such port.
    """
    kind = (
        type("Server", (_Server,), {"address_family": socket.AF_INET6}) if ":" in host else _Server
    )
    server: _Server = kind((host, port), _Handler)
    server.pages = {path: text.encode() for path, text in pages.items()}
    server.files = files
    return server
