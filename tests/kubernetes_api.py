"""An API server of Kubernetes on loopback, as far as kubectl needs one to try a cluster by pods."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml
from tests.kubernetes_cluster import KINDS, UNBOUND, Cluster, Object, RefusedError

TOKEN = "token-hunter2-secret"
"""Stands in the configuration of kubectl, which sends it over TLS only."""
_PATH = re.compile(
    r"/apis?/(?P<group>(?:[a-z]+/)?v1)(?:/namespaces/(?P<space>[^/]+)(?=/))?/(?P<kind>[a-z]+)"
    r"(?:/(?P<name>[^/]+)(?P<log>/log)?)?"
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: Cluster

    def log_message(self, format: str, *args: object) -> None:
        self.cluster.requests.append(f"{self.command} {self.path}")

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        try:
            with self.cluster.lock:
                self.cluster.look()
                told = self.told(body)
            code = 201 if self.command == "POST" else 200
        except RefusedError as error:
            code = error.code
            told = {
                **_status("Failure"),
                "message": error.message,
                "reason": error.reason,
                "code": code,
            }
        except Exception as error:
            self.cluster.faults.append(repr(error))
            raise
        data = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(code)
        kind = "text/plain" if isinstance(told, bytes) else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = answer  # noqa: N815 (names of http.server)

    def told(self, body: bytes) -> Object | bytes:
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        fixed = _discovery(parts.path)
        if fixed is not None:
            return fixed
        match = _PATH.fullmatch(parts.path)
        if match is None or KINDS.get(match["kind"], ("",))[0] != match["group"]:
            raise RefusedError(404, "NotFound", "the server could not find the requested resource")
        return self.of_kind(match["kind"], match["space"], match["name"], match["log"], query, body)

    def of_kind(
        self,
        kind: str,
        space: str | None,
        name: str | None,
        log: str | None,
        query: dict[str, str],
        body: bytes,
    ) -> Object | bytes:
        held = self.cluster
        dry = query.get("dryRun") == "All"
        if self.command == "POST":
            return held.create(kind, space or "", json.loads(body), dry=dry)
        if name is None:
            if query.get("watch"):
                raise RefusedError(405, "MethodNotAllowed", "nothing is watched here")
            found = held.listed(kind, space, query.get("labelSelector", ""))
            field = query.get("fieldSelector", "")
            found = [
                one for one in found if field in ("", f"metadata.name={one['metadata']['name']}")
            ]
            version, singular = KINDS[kind]
            meta = {"resourceVersion": str(held.number)}
            items = {"metadata": meta, "items": found}
            return {"kind": f"{singular}List", "apiVersion": version, **items}
        key = (kind, space or "", name)
        if key not in held.objects:
            raise RefusedError(404, "NotFound", f'{kind} "{name}" not found')
        if self.command == "DELETE":
            uid = held.objects[key]["metadata"]["uid"]
            held.delete(*key)
            details = {"name": name, "kind": kind, "uid": uid}
            return {**_status("Success"), "details": details}
        return held.log(held.objects[key]) if log else held.objects[key]


def _status(status: str) -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": status}


def _discovery(path: str) -> Object | None:
    """Return what the server says of its kinds."""
    groups = sorted({version for version, _ in KINDS.values()})
    named = [version.partition("/")[0] for version in groups if "/" in version]
    if path == "/version":
        return {"major": "1", "minor": "32", "gitVersion": "v1.32.4", "platform": "linux/amd64"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        found = []
        for name in named:
            version = {"groupVersion": f"{name}/v1", "version": "v1"}
            found.append({"name": name, "versions": [version], "preferredVersion": version})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}
    places = {(f"/apis/{one}" if "/" in one else f"/api/{one}"): one for one in groups}
    if path in places:
        return {
            "kind": "APIResourceList",
            "groupVersion": places[path],
            "resources": [
                {
                    "name": plural,
                    "singularName": kind.lower(),
                    "kind": kind,
                    "namespaced": plural not in UNBOUND,
                    "verbs": ["create", "delete", "get", "list", "patch", "watch"],
                }
                for plural, (version, kind) in KINDS.items()
                if version == places[path]
            ],
        }
    if path == "/openapi/v3":
        urls = {place[1:]: {"serverRelativeURL": f"/openapi/v3{place}"} for place in places}
        return {"paths": urls}
    place = path.removeprefix("/openapi/v3")
    if place in places:
        return _schema(place, places[place])
    return None


def _schema(place: str, group: str) -> Object:
    """Return that the server itself looks for unknown fields."""
    made: Object = {}
    for plural, (version, kind) in KINDS.items():
        if version == group:
            named = {"group": group.rpartition("/")[0], "version": "v1", "kind": kind}
            parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
            path = f"{place}/namespaces/{{namespace}}/{plural}/{{name}}"
            patch = {"x-kubernetes-group-version-kind": named, "parameters": [parameter]}
            made[path] = {"patch": {**patch, "responses": {}}}
    return {"openapi": "3.0.0", "info": {"title": "k", "version": "v1"}, "paths": made}


class Kubectl:
    """The real client, with a configuration that leads to the server."""

    def __init__(self, program: str, folder: Path, cluster: Cluster) -> None:
        self.program, self.folder, self.cluster = program, folder, cluster
        self.environ = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder / "home"),
            "KUBECONFIG": str(folder / "config"),
        }

    def __call__(self, *words: str, code: int = 0) -> str:
        """Return what it prints; both streams where it fails."""
        done = subprocess.run(
            [self.program, *words],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")


@contextmanager
def cluster(
    program: str, nodes: list[Object], folder: Path, validate: Callable[[Object], None]
) -> Iterator[Kubectl]:
    """Serve a cluster of ``nodes``, and give a kubectl that is configured for it."""
    room = folder / "cluster"
    room.mkdir()
    held = Cluster(nodes, room, validate)
    handler = type("Handler", (_Handler,), {"cluster": held})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    (folder / "home").mkdir()
    (folder / "config").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [
                    {
                        "name": "here",
                        "cluster": {"server": f"http://127.0.0.1:{server.server_port}"},
                    }
                ],
                "users": [{"name": "me", "user": {"token": TOKEN}}],
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            }
        )
    )
    try:
        yield Kubectl(program, folder, held)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        for name in [*held.processes]:
            held.stop(name)
        shutil.rmtree(room, ignore_errors=True)
