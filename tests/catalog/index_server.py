"""PyPI and PyTorch's channels on loopback, in the form of their real pages.

PyPI is PEP 691 JSON (or PEP 503 HTML by the Accept header); ``/whl/`` and the channels are HTML as
pytorch/test-infra's ``s3_management/manage_v2.py`` writes it. Pages have ETags, wheels answer
ranges, and a test may put any behaviour in place of a path.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import io
import json
import re
import threading
import zipfile
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple
from urllib.parse import quote, unquote

from tests.catalog.inspect_samples import elf, fatbin

from torchpin.catalog.model import Build
from torchpin.catalog.records import State

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
TAGS = {
    "linux-x86_64": "manylinux_2_28_x86_64",
    "linux-aarch64": "manylinux_2_28_aarch64",
    "windows-x86_64": "win_amd64",
    "windows-arm64": "win_arm64",
    "macos-arm64": "macosx_14_0_arm64",
    "macos-x86_64": "macosx_10_9_x86_64",
}
Behaviour = Callable[["Answer"], None]


class Listed(NamedTuple):
    """A file of the index."""

    channel: str
    """``pypi`` or a channel."""
    name: str
    data: bytes
    """``b""``: a file that nobody may read; its digest is that of its name."""
    sha256: str = ""
    requires_python: str | None = ">=3.10"
    yanked: bool = False
    uploaded: str = "2026-11-01"
    metadata: bytes | None = None
    metadata_sha256: str = ""

    @property
    def package(self) -> str:
        return self.name.partition("-")[0].replace("_", "-")

    @property
    def digest(self) -> str:
        return self.sha256 or hashlib.sha256(self.data or self.name.encode()).hexdigest()

    @property
    def path(self) -> str:
        folder = "/files" if self.channel == "pypi" else f"/whl/{self.channel}"
        return f"{folder}/{quote(self.name)}"


def torch_wheel(
    version: str, arches: str, label: str, requires: Iterable[str] = (), salt: str = ""
) -> bytes:
    """Return a wheel of torch that states these arches: ``sm_80 sm_90``.

    ``salt`` makes it differ from others.
    """
    public = version.partition("+")[0]
    cuda = f"{label[2:-1]}.{label[-1]}" if label.startswith("cu") else None
    stated = elf(data=b"\0" + arches.encode() + b"\0")
    linalg = elf(fatbin(" ".join(word.removeprefix("sm_") for word in arches.split())))
    members: dict[str, bytes | str] = {
        "torch/version.py": f"__version__ = '{public}+{label}'\ncuda: str = {cuda!r}\n",
        "torch/lib/libtorch_python.so": stated,
        "torch/lib/libtorch_cuda_linalg.so": linalg,
    }
    return with_metadata(members | {"torch/salt": salt}, "torch", version, requires)


def companion_wheel(
    package: str, version: str, sass: str, label: str, requires: Iterable[str], salt: str = ""
) -> bytes:
    """Return a wheel of a companion with one library of device code."""
    public = version.partition("+")[0]
    cuda = f"{label[2:-1]}.{label[-1]}" if label.startswith("cu") else None
    members: dict[str, bytes | str] = {
        f"{package}/version.py": f"__version__ = '{public}+{label}'\ncuda = {cuda!r}\n",
        f"{package}/_C_stable.so": elf(fatbin(sass, "120")),
    }
    return with_metadata(members | {f"{package}/salt": salt}, package, version, requires)


def with_metadata(
    members: dict[str, bytes | str], package: str, version: str, requires: Iterable[str]
) -> bytes:
    """Return a wheel of these members and METADATA."""
    buffer = io.BytesIO()
    info = f"{package}-{version}.dist-info"
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in members.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/METADATA", metadata(package, version, requires))
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\n")
    return buffer.getvalue()


def metadata(package: str, version: str, requires: Iterable[str]) -> bytes:
    lines = ["Metadata-Version: 2.1", f"Name: {package}", f"Version: {version}"]
    lines += ["Requires-Python: >=3.11", *(f"Requires-Dist: {text}" for text in requires)]
    return ("\n".join(lines) + "\n\n").encode()


def file_names(build: Build) -> list[str]:
    """Return the names of the wheels of a build, one a Python tag."""
    out = []
    for tag in build.pythons or build.pythons_inferred:
        python, _, abi = tag.partition("-")
        if tag.endswith("t"):
            python, abi = tag[:-1], tag
        abi = abi or ("none" if tag.startswith("py") else tag)
        full = build.full_version
        stem = build.package.replace("-", "_")
        out.append(f"{stem}-{full}-{python}-{abi}-{TAGS[build.platform]}.whl")
    return out


def bytes_of(build: Build, name: str) -> bytes:
    """Return a wheel of a build: what the catalog knows of it, or might."""
    sass = " ".join(build.kernels.sass if build.kernels else ("80", "90"))
    requires = [f"torch{build.requires_torch}"] if build.requires_torch else []
    label = build.channel or "cpu"
    if build.package != "torch":
        return companion_wheel(build.package, build.full_version, sass, label, requires, name)
    arches = " ".join(f"sm_{name}" for name in sass.split())
    return torch_wheel(build.full_version, arches, label, (), name)


def files_of(state: State) -> list[Listed]:
    """Return files that pages would list for what a catalog knows.

    Those of the newest releases on channels can be read.
    """
    out: dict[tuple[str, str], Listed] = {}
    for part in state.parts.values():
        for build in part.builds:
            place = "pypi" if build.home == "pypi" else build.channel
            newest = build.version in part.pypi[-1:] and place != "pypi"
            for name in file_names(build):
                out[place, name] = Listed(
                    place,
                    name,
                    bytes_of(build, name) if newest else b"",
                    requires_python=build.requires_python,
                    yanked=build.yanked,
                    uploaded=build.released or "2026-10-01",
                )
    return list(out.values())


class Answer(BaseHTTPRequestHandler):
    """One request."""

    server: IndexServer  # type: ignore[mutable-override]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server
        path = unquote(self.path.partition("?")[0])
        with server.lock:
            server.asked.append((path, self.headers.get("If-None-Match", "")))
            server.seen.append((path, dict(self.headers.items())))
        self.close_connection = True
        try:
            if server.silent:
                server.done.wait(30)
            behaviour = server.behave.get(path)
            if behaviour is not None:
                behaviour(self)
            else:
                self.usual(path)
        except (BrokenPipeError, ConnectionResetError):
            return

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def usual(self, path: str) -> None:
        """Answer as the real hosts do."""
        found = self.server.page(path, self.headers.get("Accept", ""))
        if found is not None:
            self.whole(*found)
            return
        file = self.server.by_path.get(path)
        meta = self.server.by_path.get(path.removesuffix(".metadata"))
        if meta is not None and path.endswith(".metadata") and meta.metadata is not None:
            self.whole(meta.metadata, "text/plain")
        elif file is not None and file.data:
            self.ranged(file.data)
        else:
            self.status(404)

    def whole(self, body: bytes, kind: str, status: int = 200) -> None:
        """Answer with a page; 304 if its ETag is known."""
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        if self.headers.get("If-None-Match") == etag:
            self.status(304)
            return
        self.send_response(status)
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def ranged(self, data: bytes) -> None:
        """Answer a range request."""
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        assert match is not None
        if match[1]:
            start, end = int(match[1]), min(len(data), int(match[2]) + 1)
        else:
            start, end = max(0, len(data) - int(match[2])), len(data)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data[start:end])

    def status(self, code: int, **headers: str) -> None:
        """Answer without a body."""
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if code != 304:
            self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()


class IndexServer(ThreadingHTTPServer):
    """The index; a context manager. ``files`` may be changed at any time."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, files: Iterable[Listed]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = list(files)
        self.behave: dict[str, Behaviour] = {}
        self.asked: list[tuple[str, str]] = []
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.silent = False
        self.by_path: dict[str, Listed] = {}
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> IndexServer:
        self.changed()
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

    def changed(self) -> None:
        """Take over a change of ``files``."""
        self.by_path = {unquote(file.path): file for file in self.files}

    def add(self, *files: Listed) -> None:
        """List more files."""
        self.files += files
        self.changed()

    def drop(self, channel: str, start: str, end: str = "") -> None:
        """List the files of a channel no more whose names begin and end so."""
        kept = [
            f
            for f in self.files
            if f.channel != channel or not f.name.startswith(start) or not f.name.endswith(end)
        ]
        assert len(kept) < len(self.files)
        self.files = kept
        self.changed()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def options(self) -> list[str]:
        """The options that make a refresh use this server."""
        return ["--index", f"{self.base}/simple", "--index", f"{self.base}/whl"]

    def page(self, path: str, accept: str) -> tuple[bytes, str] | None:
        """Return a page and its type; None if there is none."""
        parts = path.strip("/").split("/")
        if not path.endswith("/"):
            return None
        if parts[0] == "simple" and len(parts) == 2:
            here = [f for f in self.files if f.channel == "pypi" and f.package == parts[1]]
            if not here:
                return None
            if JSON_TYPE in accept:
                return self.json(here), JSON_TYPE
            return self.html(parts[1], here), "text/html"
        if parts[0] != "whl":
            return None
        off_pypi = [f for f in self.files if f.channel != "pypi"]
        if len(parts) == 1:
            return self.names(off_pypi), "text/html"
        here = [f for f in off_pypi if f.channel == parts[1]]
        if len(parts) == 2 and here:
            return self.names(here), "text/html"
        if len(parts) == 2:  # the root's page of a package
            here = [f for f in off_pypi if f.package == parts[1]]
            return (self.html(parts[1], here), "text/html") if here else None
        here = [f for f in here if f.package == parts[2]]
        return (self.html(parts[2], here), "text/html") if here and len(parts) == 3 else None

    def names(self, files: Iterable[Listed]) -> bytes:
        names = sorted({f.package for f in files} | {"filelock", "jinja2"})
        links = "".join(f'    <a href="{n}/">{n}</a><br/>\n' for n in names)
        return f"<!DOCTYPE html>\n<html>\n  <body>\n{links}  </body>\n</html>".encode()

    def json(self, files: Iterable[Listed]) -> bytes:
        listed = []
        versions = set()
        for f in files:
            versions.add(f.name.split("-")[1])
            entry: dict[str, object] = {
                "filename": f.name,
                "url": f"{self.base}{f.path}",
                "hashes": {"sha256": f.digest},
                "requires-python": f.requires_python,
                "yanked": "broken" if f.yanked else False,
                "upload-time": f"{f.uploaded}T10:00:00.000000Z",
            }
            if f.data:
                entry["size"] = len(f.data)
            if f.metadata is not None:
                sha = f.metadata_sha256 or hashlib.sha256(f.metadata).hexdigest()
                entry["core-metadata"] = {"sha256": sha}
            listed.append(entry)
        meta = {"api-version": "1.1"}
        return json.dumps({"files": listed, "meta": meta, "versions": sorted(versions)}).encode()

    def html(self, package: str, files: Iterable[Listed]) -> bytes:
        out = ["<!DOCTYPE html>", "<html>", "  <body>", f"    <h1>Links for {package}</h1>"]
        for f in files:
            extra = ""
            if f.metadata is not None:
                sha = f.metadata_sha256 or hashlib.sha256(f.metadata).hexdigest()
                extra = f' data-dist-info-metadata="sha256={sha}" data-core-metadata="sha256={sha}"'
            if f.channel == "pypi" and f.requires_python:
                extra += f' data-requires-python="{html.escape(f.requires_python)}"'
            if f.yanked:
                extra += ' data-yanked="broken"'
            if f.channel != "pypi":
                extra += f' data-upload-time="{f.uploaded}T10:00:00Z"'
            # Some links of the real pages are absolute, to another host of PyTorch's.
            host = self.base if f.name.startswith("torch-") else ""
            out.append(f'    <a href="{host}{f.path}#sha256={f.digest}"{extra}>{f.name}</a><br/>')
        out += ["  </body>", "</html>", "<!--TIMESTAMP 1793000000-->"]
        return "\n".join(out).encode()
