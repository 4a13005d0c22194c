"""A package index on loopback that looks like PyPI and like PyTorch's channels.

Paths (all below ``http://127.0.0.1:PORT``):

- ``/pypi/simple/NAME/``: PEP 691 JSON or PEP 503 HTML by the Accept header, PEP 658 metadata.
- ``/whl/CHANNEL/``, ``/whl/CHANNEL/NAME/``: HTML only, ``%2B`` in links, as PyTorch serves them.
- ``/whl/torch_stable.html``: the legacy page of links to the wheels of all channels.

Peculiarities of the real hosts that are kept on purpose: ``BARE`` has no PEP 658 attributes (its
wheels are read by the clients themselves), and the links of ``UNHASHED`` have no digest.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import sys
import threading
import zipfile
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import quote, unquote

from packaging.utils import canonicalize_name
from tests.clients.stub_facts import PYPI, Wheel, load

BARE = "cu118"
"""The channel whose pages carry no PEP 658 attributes."""
UNHASHED = "torch-2.6.0+cu124-cp311"
"""Wheels of which links carry no digest: file names that start so."""
ALIAS = re.compile(r"^/case-\d+(?=/)")
"""A first segment that is dropped: a client that keeps pages in memory takes it for a new host."""
JSON_TYPE = "application/vnd.pypi.simple.v1+json"
Answer = tuple[str, bytes]


def metadata_of(wheel: Wheel) -> bytes:
    """Return METADATA of a wheel."""
    lines = ["Metadata-Version: 2.1", f"Name: {wheel.package}", f"Version: {wheel.version}"]
    if wheel.requires_python:
        lines.append(f"Requires-Python: {wheel.requires_python}")
    lines += [f"Requires-Dist: {text}" for text in wheel.requires]
    lines += [f"Provides-Extra: {name}" for name in wheel.extras]
    return ("\n".join(lines) + "\n").encode()


def wheel_bytes(wheel: Wheel) -> bytes:
    """Return a tiny, valid, reproducible wheel."""
    stem, tags = wheel.filename.removesuffix(".whl"), wheel.filename.split("-")[-3:]
    name, version = stem.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    spread = [
        f"Tag: {p}-{a}-{f}"
        for p in tags[0].split(".")
        for a in tags[1].split(".")
        for f in tags[2].removesuffix(".whl").split(".")
    ]
    wheel_file = "\n".join(["Wheel-Version: 1.0", "Root-Is-Purelib: false", *spread, ""])
    module = name.replace("-", "_").lower()
    members = {
        f"{module}/__init__.py": f"__version__ = {wheel.version!r}\n".encode(),
        f"{info}/METADATA": metadata_of(wheel),
        f"{info}/WHEEL": wheel_file.encode(),
    }
    record = "".join(f"{path},,\n" for path in (*members, f"{info}/RECORD"))
    members[f"{info}/RECORD"] = record.encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in members.items():
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


class Content:
    """All pages and files of the stub, made when first asked for."""

    def __init__(self, wheels: Iterable[Wheel]) -> None:
        self.by_project: dict[tuple[str, str], list[Wheel]] = {}
        self.by_file: dict[tuple[str, str], Wheel] = {}
        self._cache: dict[tuple[str, str], Answer | None] = {}
        self._files: dict[Wheel, bytes] = {}
        self.add(wheels)
        self.channels = sorted({home for home, _ in self.by_project} - {PYPI})

    def add(self, wheels: Iterable[Wheel]) -> None:
        """Serve more wheels; pages that were made already are made anew."""
        for wheel in wheels:
            if (wheel.home, wheel.filename) not in self.by_file:
                self.by_project.setdefault((wheel.home, wheel.package), []).append(wheel)
                self.by_file[wheel.home, wheel.filename] = wheel
                self._cache.clear()

    def file(self, wheel: Wheel) -> bytes:
        """Return the bytes of a wheel."""
        if wheel not in self._files:
            self._files[wheel] = wheel_bytes(wheel)
        return self._files[wheel]

    def digest(self, wheel: Wheel) -> str:
        """Return the SHA-256 of a wheel as the stub serves it."""
        return hashlib.sha256(self.file(wheel)).hexdigest()

    def answer(self, path: str, accept: str) -> Answer | None:
        """Return content type and body for a path, or None (404)."""
        kind = "json" if "vnd.pypi.simple.v1+json" in accept else "html"
        key = (path, kind)
        if key not in self._cache:
            self._cache[key] = self._make(unquote(path), kind)
        return self._cache[key]

    def _make(self, path: str, kind: str) -> Answer | None:
        parts = path.strip("/").split("/")
        match parts:
            case ["pypi", "simple"]:
                return self._root([n for home, n in self.by_project if home == PYPI])
            case ["pypi", "simple", name]:
                wheels = self.by_project.get((PYPI, canonicalize_name(name)))
                if wheels is None:
                    return None
                return self._json(wheels) if kind == "json" else self._html(wheels, "/pypi/files/")
            case ["pypi", "files", name]:
                return self._file(PYPI, name)
            case ["whl", "torch_stable.html"]:
                return self._legacy()
            case ["whl", channel] if channel in self.channels:
                return self._root([n for home, n in self.by_project if home == channel])
            case ["whl", channel, name] if name.endswith((".whl", ".metadata")):
                return self._file(channel, name)
            case ["whl", channel, name]:
                found = self.by_project.get((channel, canonicalize_name(name)))
                return None if found is None else self._html(found, f"/whl/{channel}/")
            case _:
                return None

    def _file(self, home: str, name: str) -> Answer | None:
        wheel = self.by_file.get((home, name.removesuffix(".metadata")))
        if wheel is None or (name.endswith(".metadata") and home == BARE):
            return None
        if name.endswith(".metadata"):
            return "text/plain", metadata_of(wheel)
        return "application/zip", self.file(wheel)

    def _root(self, names: list[str]) -> Answer:
        links = "".join(f'<a href="{name}/">{name}</a><br/>\n' for name in sorted(names))
        return _page(links)

    def _link(self, wheel: Wheel, folder: str) -> str:
        href = folder + quote(wheel.filename)
        if not wheel.filename.startswith(UNHASHED):
            href += f"#sha256={self.digest(wheel)}"
        attributes = [f'href="{href}"']
        if wheel.requires_python and wheel.home != "xpu":
            attributes.append(f'data-requires-python="{html.escape(wheel.requires_python)}"')
        if wheel.home != BARE:
            sha = hashlib.sha256(metadata_of(wheel)).hexdigest()
            attributes.append(f'data-dist-info-metadata="sha256={sha}"')
            attributes.append(f'data-core-metadata="sha256={sha}"')
        if wheel.yanked:
            attributes.append(f'data-yanked="{html.escape(str(wheel.yanked))}"')
        return f"<a {' '.join(attributes)}>{wheel.filename}</a><br/>\n"

    def _html(self, wheels: list[Wheel], folder: str) -> Answer:
        return _page("".join(self._link(wheel, folder) for wheel in wheels))

    def _legacy(self) -> Answer:
        return _page(
            "".join(
                f'<a href="{wheel.home}/{quote(wheel.filename)}">{wheel.filename}</a><br/>\n'
                for (home, _), wheels in self.by_project.items()
                for wheel in wheels
                if home != PYPI and wheel.package.startswith("torch")
            )
        )

    def _json(self, wheels: list[Wheel]) -> Answer:
        files = [
            {
                "filename": wheel.filename,
                "url": "/pypi/files/" + quote(wheel.filename),
                "hashes": {"sha256": self.digest(wheel)},
                "requires-python": wheel.requires_python,
                "size": len(self.file(wheel)),
                "upload-time": wheel.uploaded or "2020-01-01T00:00:00Z",
                "yanked": wheel.yanked,
                "core-metadata": {"sha256": hashlib.sha256(metadata_of(wheel)).hexdigest()},
            }
            for wheel in wheels
        ]
        versions = sorted({wheel.version for wheel in wheels})
        page = {
            "meta": {"api-version": "1.1"},
            "name": wheels[0].package,
            "versions": versions,
            "files": files,
        }
        return JSON_TYPE, json.dumps(page).encode()


def _page(links: str) -> Answer:
    return (
        "text/html; charset=utf-8",
        f"<!DOCTYPE html><html><body>\n{links}</body></html>".encode(),
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    content: Content
    asked: list[str]

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that closed its connection early."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        server = self.server
        assert isinstance(server, _Server)
        server.asked.append(path)
        answer = server.content.answer(ALIAS.sub("", path), self.headers.get("Accept", ""))
        if answer is None:
            kind, body, status = "text/plain", b"not found\n", 404
        else:
            (kind, body), status = answer, 200
        wanted = self.headers.get("Range")
        if status == 200 and wanted and wanted.startswith("bytes="):
            first, _, last = wanted.removeprefix("bytes=").split(",")[0].partition("-")
            size = len(body)
            start = int(first) if first else max(0, size - int(last))
            end = min(int(last), size - 1) if first and last else size - 1
            body, status = body[start : end + 1], 206
            self.send_response(status)
            self.send_header("Content-Range", f"bytes {start}-{end}/{size}")
        else:
            self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Address:
    """Where a running stub is reached."""

    def __init__(self, base: str) -> None:
        self.base = base

    @property
    def pypi(self) -> str:
        """URL of the stub's PyPI."""
        return f"{self.base}/pypi/simple"

    def channel(self, name: str) -> str:
        """URL of a channel."""
        return f"{self.base}/whl/{name}"


class Stub(Address):
    """The running index; use it as a context manager."""

    def __init__(self, lean: bool = False, wheels: Iterable[Wheel] | None = None) -> None:
        self.content = Content(load(lean) if wheels is None else wheels)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.content = self.content
        self.asked: list[str] = []
        """Paths asked for, in order."""
        self._server.asked = self.asked
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        super().__init__(f"http://127.0.0.1:{self._server.server_address[1]}")

    def at(self, base: str) -> Address:
        """Return the same index under another address of it."""
        return Address(base)

    def __enter__(self) -> Stub:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
