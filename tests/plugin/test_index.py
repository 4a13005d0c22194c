from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.clients.installs import shared
from tests.clients.stub_facts import Wheel as StubWheel
from tests.clients.stub_server import Stub, wheel_bytes
from tests.plugin.steered import (
    H100,
    V100,
    environment,
    mirror,
    pip_plan,
    run_uv,
    torchpin,
    uv_plan,
)
from tests.projects.lock_tools import program, tool_environment, why_not

from torchpin.catalog.drivers import load_drivers
from torchpin.catalog.refresh.pages import parse_html, parse_json
from torchpin.catalog.store import load_catalog
from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import fleet_from_options
from torchpin.judge.verdict import judge, judge_companion
from torchpin.plugin.choice import Filter, chosen
from torchpin.plugin.plan import Places
from torchpin.plugin.sources import from_catalog, from_index, without_login

TORCH = "2.14.1+cu126"
OLD = {"torch": TORCH, "torchvision": "0.29.1+cu126"}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def static(folder: Path) -> Iterator[str]:
    """Serve a folder as any web server does."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def served(*args: str, cwd: Path) -> Iterator[str]:
    """Run ``torchpin index serve`` and yield its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "torchpin", "index", "serve", "--port", "0", *args],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def build(*args: str, cwd: Path) -> str:
    done = torchpin("index", "build", "site", *args, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fleet(gpu: str, python: str, driver: str | None = None) -> Fleet:
    return fleet_from_options(
        gpus=(gpu,), driver=driver, python=(python,), platform=None, glibc=None
    )


# With the real clients ----------------------------------------------------------------------------


@pytest.mark.clients
def test_pip_and_uv_take_the_newest_build_that_runs(tmp_path: Path) -> None:
    said = build(*V100, "--from", mirror(), cwd=tmp_path)
    assert f"newest {TORCH}" in said
    with static(tmp_path / "site") as url:
        found = pip_plan("--index-url", url, "torch", "torchvision", cwd=tmp_path)
        assert found == OLD
        assert uv_plan("--index", url, cwd=tmp_path) == OLD


@pytest.mark.clients
def test_a_uv_project_takes_it_as_its_torch_index(tmp_path: Path) -> None:
    build(*V100, "--from", mirror(), cwd=tmp_path)
    where = "sys_platform == 'linux' and platform_machine == 'x86_64'"
    with static(tmp_path / "site") as url:
        (tmp_path / "pyproject.toml").write_text(
            '[project]\nname = "demo"\nversion = "1"\nrequires-python = "==3.11.*"\n'
            'dependencies = ["torch", "torchvision"]\n'
            f'[tool.uv]\nenvironments = ["{where}"]\n'
            f'[[tool.uv.index]]\nname = "fleet"\nurl = "{url}"\nexplicit = true\n'
            '[tool.uv.sources]\ntorch = { index = "fleet" }\ntorchvision = { index = "fleet" }\n'
        )
        done = run_uv("lock", cwd=tmp_path, env={"UV_NO_CONFIG": "0"})
    assert done.returncode == 0, done.stderr
    lock = (tmp_path / "uv.lock").read_text()
    assert f'name = "torch"\nversion = "{TORCH}"' in lock
    assert "sha256:" in lock


@pytest.mark.clients
def test_the_served_index_gives_pip_json_and_uv_what_it_asks_for(tmp_path: Path) -> None:
    with served(*V100, "--from", f"{mirror()}/cu126", cwd=tmp_path) as url:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/simple/", url)
        assert pip_plan("--index-url", url, "torch", "torchvision", cwd=tmp_path) == OLD
        assert uv_plan("--index", url, cwd=tmp_path) == OLD
        host = url.split("/")[2]
        for accept, kind in (
            ("application/vnd.pypi.simple.v1+json", "application/vnd.pypi.simple.v1+json"),
            ("text/html", "text/html; charset=utf-8"),
        ):
            connection = http.client.HTTPConnection(host)
            connection.request("GET", "/simple/torch/", headers={"Accept": accept})
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
            answer.read()
            connection.request("GET", "/simple/torch")
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Location"]) == (301, "/simple/torch/")
            answer.read()
            connection.request("GET", "/simple/numpy/")
            assert connection.getresponse().status == 404
            connection.close()


@pytest.mark.clients
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_right_after_the_address_ends_it_well(
    tmp_path: Path, number: signal.Signals
) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "torchpin", "index", "serve", "--port", "0", *V100],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert server.stdout is not None
    assert server.stdout.readline().startswith(b"http://127.0.0.1:")
    server.send_signal(number)
    _, told = server.communicate(timeout=60)
    assert server.returncode == 0, told


def test_a_folder_of_wheels_is_served_with_the_index(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    stub = shared().stub
    names = []
    for wheel in stub.content.by_file.values():
        tags, versions = (
            "cp311-cp311-manylinux_2_28_x86_64",
            (TORCH, "2.15.0+cu132", "2.14.0+cu126"),
        )
        if wheel.package == "torch" and tags in wheel.filename and wheel.version in versions:
            (folder / wheel.filename).write_bytes(wheel_bytes(wheel))
            names.append(wheel.filename)
    assert len(names) == 3
    (folder / "numpy-2.0.0-py3-none-any.whl").write_bytes(b"")
    (folder / "notes.txt").write_text("torch")
    build(*V100, "--from", "wheels", cwd=tmp_path)
    held = sorted(one.name for one in (tmp_path / "site" / "files").iterdir())
    assert held == sorted(name for name in names if "cu126" in name)
    page = (tmp_path / "site" / "torch" / "index.html").read_text()
    digest = hashlib.sha256((folder / held[-1]).read_bytes()).hexdigest()
    assert f"#sha256={digest}" in page
    with static(tmp_path / "site") as url:
        assert pip_plan("--index-url", url, "torch", cwd=tmp_path) == {"torch": TORCH}
        got = tmp_path / "got"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--no-deps", "-d", str(got), "-q"),
                *("--index-url", url, "--python-version", "3.11", "--only-binary", ":all:"),
                *("--platform", "manylinux_2_28_x86_64", "torch"),
            ],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert [one.name for one in got.iterdir()] == [held[-1]]
    with served(*V100, "--from", "wheels", cwd=tmp_path) as url:
        assert uv_plan("--index", url, cwd=tmp_path, asks="torch\n") == {"torch": TORCH}


# What is listed -----------------------------------------------------------------------------------


FLEETS = [
    ("V100", "3.11", "550.54.15"),
    ("H100", "3.12", "580.65.06"),
    ("RTX 5090", "3.13", None),
    ("K80", "3.8", None),
    ("MI300X", "3.12", None),
    ("none", "3.11", None),
]


@pytest.mark.parametrize(("gpu", "python", "driver"), FLEETS)
def test_all_that_is_listed_runs_and_fits_together(
    gpu: str, python: str, driver: str | None
) -> None:
    catalog, drivers = load_catalog(), load_drivers()
    targets = fleet(gpu, python, driver).targets()
    found = from_catalog(catalog, Places(), {"linux-x86_64"}, derive=False)
    listed = chosen(found.wheels, Filter(targets, unknown=False, drivers=drivers), catalog)
    assert listed
    tag = f"cp{python.replace('.', '')}"
    by_version: dict[tuple[str, str], set[str]] = {}
    for wheel in listed:
        assert f"-{tag}-" in wheel.filename or "py3" in wheel.filename
        assert wheel.sha256
        for target in targets:
            assert judge(wheel.build, target, drivers).status in ("runs", "runs-via-ptx")
        by_version.setdefault((wheel.package, wheel.build.version), set()).add(wheel.key)
    assert all(len(places) == 1 for places in by_version.values())
    torches = {one.build.version: one.build for one in listed if one.package == "torch"}
    for wheel in listed:
        if wheel.package in ("torchvision", "torchaudio"):
            hosts = [
                v for v in torches if wheel.build.version in catalog.partners(v, wheel.package)
            ]
            reasons = [judge_companion(wheel.build, torches[host]) for host in hosts]
            assert any(all(one.status != "fails" for one in told) for told in reasons), wheel


def test_what_is_not_known_to_run_is_listed_on_demand_only(tmp_path: Path) -> None:
    wheel = StubWheel(
        *("cu126", "torch", "2.99.0+cu126", "torch-2.99.0+cu126-cp311-cp311-linux_x86_64.whl"),
        requires_python=">=3.10",
        requires=(),
        extras=(),
        uploaded=None,
        yanked=False,
    )
    with Stub(wheels=[wheel]) as stub:
        source = ("--from", stub.channel("cu126"))
        done = torchpin("index", "build", "site", *V100, *source, cwd=tmp_path)
        assert done.returncode == 1
        assert "no known file runs" in done.stderr
        assert not (tmp_path / "site").exists()
        assert "newest 2.99.0+cu126" in build(*V100, *source, "--include-unknown", cwd=tmp_path)
    (file,) = parse_html(
        (tmp_path / "site" / "torch" / "index.html").read_bytes(), "http://h.example/torch/"
    ).files
    assert file.requires_python == ">=3.10"
    assert file.metadata
    assert file.sha256


def test_versions_that_the_catalog_can_name_no_file_of_are_told(tmp_path: Path) -> None:
    def told(*words: str) -> str:
        done = torchpin("index", "build", "site", *V100, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stderr

    live = f"{mirror()}/cu126"
    said = told("--mirror", mirror())
    assert re.search(r"left out: \d+ versions of torch to 2\.14\.1, ", said)
    assert f"`--from {mirror()}` lists what the index has; --include-unknown " in said
    more = told("--include-unknown")
    assert "of torch to" not in more
    assert "versions of torchvision to 0.29.1" in more
    assert "; --include-unknown" not in more
    assert told("--from", live) == told("-q") == ""
    both = told("--from", live, "--from", "catalog")
    assert "2.14.1" not in both
    assert "hunter2" not in told("--mirror", "https://u:hunter2@mirror.example/whl")


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    build(*H100, "--from", "catalog", "-q", cwd=tmp_path)
    site = tmp_path / "site"
    packages = sorted(one.name for one in site.iterdir() if one.is_dir())
    assert packages == ["torch", "torchaudio", "torchvision"]
    base = "https://index.example/simple/"
    root = json.loads((site / "index.json").read_text())
    assert sorted(one["name"] for one in root["projects"]) == packages
    for package in packages:
        page = f"{base}{package}/"
        html = parse_html((site / package / "index.html").read_bytes(), page)
        assert html.files
        assert parse_json((site / package / "index.json").read_bytes(), page).files == html.files
        for file in html.files:
            assert file.url.startswith("https://download.pytorch.org/whl/cu")
            assert file.url.endswith(file.name.replace("+", "%2B"))


def test_the_mirror_is_linked_to(tmp_path: Path) -> None:
    build(*H100, "--mirror", "https://mirror.example/whl/", "-q", cwd=tmp_path)
    page = (tmp_path / "site" / "torch" / "index.html").read_text()
    assert 'href="https://mirror.example/whl/cu' in page
    assert "pytorch.org" not in page


def test_a_group_has_an_index_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(
        '[fleet.old]\ngpus = ["Tesla V100"]\npython = "3.12"\n'
        '[fleet.new]\ngpus = ["RTX 5090"]\npython = "3.12"\n'
    )
    newest = {}
    for group in ("old", "new"):
        said = build("--group", group, "--from", mirror(), "-q", cwd=tmp_path)
        newest[group] = re.findall(r"/torch/: .* newest (\S+)", said)[0]
    both = re.findall(r"/torch/: .* newest (\S+)", build("--from", mirror(), "-q", cwd=tmp_path))[0]
    assert newest["old"] == TORCH
    assert newest["new"].startswith("2.15.0")
    assert both.startswith("2.10.0")  # the last that holds sm_70 and sm_120


def test_links_carry_no_login(tmp_path: Path) -> None:
    url = mirror().replace("http://", "http://user:hunter2@")
    build(*V100, "--from", f"{url}/cu126", "-q", cwd=tmp_path)
    text = (tmp_path / "site" / "torch" / "index.html").read_text()
    assert "hunter2" not in text
    assert mirror() in text
    shutil.rmtree(tmp_path / "site")
    build(*V100, "--mirror", "https://user:hunter2@mirror.example/whl", "-q", cwd=tmp_path)
    for path in (tmp_path / "site").rglob("*.*"):
        assert "hunter2" not in path.read_text()
    assert "https://mirror.example/whl" in (tmp_path / "site" / "torch" / "index.html").read_text()
    assert without_login("https://u:p@h.example:8443/a?b") == "https://h.example:8443/a?b"


# Where it is written ------------------------------------------------------------------------------


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "mine.txt").write_text("keep")
    done = torchpin("index", "build", "site", *V100, cwd=tmp_path)
    assert done.returncode == 2
    assert [one.name for one in site.iterdir()] == ["mine.txt"]


def test_a_former_index_is_replaced_whole(tmp_path: Path) -> None:
    build(*V100, "-q", cwd=tmp_path)
    (tmp_path / "site" / "torchtext").mkdir()
    build(*V100, "-q", cwd=tmp_path)
    assert not (tmp_path / "site" / "torchtext").exists()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["site"]


def test_a_failure_leaves_the_former_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchpin.cli import index_build
    from torchpin.cli.index_files import Listed

    site = tmp_path / "real"
    index_build.write(str(site), Listed((), "first"))
    link = tmp_path / "site"
    link.symlink_to(site)
    index_build.write(str(link), Listed((), "second"))
    assert link.is_symlink()
    assert "second" in (site / "index.html").read_text()
    rename = os.rename

    def breaks(old: str, new: str) -> None:
        if old.endswith(".new"):
            raise KeyboardInterrupt
        rename(old, new)

    monkeypatch.setattr(os, "rename", breaks)
    with pytest.raises(KeyboardInterrupt):
        index_build.write(str(site), Listed((), "third"))
    assert "second" in (site / "index.html").read_text()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["real", "site"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("build", "site", "--from", "nowhere"), "neither catalog, an http(s) URL nor a folder"),
        (("build", "site", "--from", "http://127.0.0.1:9/whl/cu126"), "cannot be read"),
        (("serve", "--port", "99999999"), "cannot listen on 127.0.0.1:99999999"),
        (("biuld",), "did you mean `build`?"),
        ((), "index needs a command"),
    ],
)
def test_wrong_usage(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    extra = (*V100, "-q") if len(args) > 1 else ()
    done = torchpin("index", *args, *extra, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_page_that_is_no_index_is_told(tmp_path: Path) -> None:
    from torchpin.catalog.refresh.cache import Cache
    from torchpin.catalog.refresh.fetch import Fetcher

    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "index.html").write_bytes(b"\xff\xfe")
    fetcher = Fetcher(Cache(os.devnull, keeps=False), jobs=2, idle=5, today="2026-01-01")
    with static(tmp_path) as url, pytest.raises(Exception, match="cannot be read"):
        from_index(url, load_catalog(), fetcher, (), {})


# Poetry and PDM -----------------------------------------------------------------------------------


def locked(tool: str, url: str, folder: Path) -> dict[str, str]:
    """Return what Poetry or PDM locks of a project whose torch comes from an index."""
    pypi = shared().stub.pypi
    project = '[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.11,<3.12"\n'
    project += 'dependencies = ["torch", "torchvision"]\n'
    if tool == "poetry":
        project += (
            "[tool.poetry]\npackage-mode = false\n"
            '[tool.poetry.dependencies]\ntorch = { source = "fleet" }\n'
            'torchvision = { source = "fleet" }\n'
            f'[[tool.poetry.source]]\nname = "main"\nurl = "{pypi}"\npriority = "primary"\n'
            f'[[tool.poetry.source]]\nname = "fleet"\nurl = "{url}"\npriority = "explicit"\n'
        )
    else:
        project += (
            "[tool.pdm]\ndistribution = false\n"
            f'[[tool.pdm.source]]\nname = "pypi"\nurl = "{pypi}"\nverify_ssl = false\n'
            f'[[tool.pdm.source]]\nname = "fleet"\nurl = "{url}"\nverify_ssl = false\n'
            'include_packages = ["torch", "torchvision", "torchaudio"]\n'
        )
    (folder / "pyproject.toml").write_text(project)
    command = [str(program(tool)), "lock", "-q"]
    if tool == "pdm":
        command += ["--python", "==3.11.*", "--platform", "linux"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=tool_environment(folder),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (folder / f"{tool}.lock").read_text("utf-8")
    # PDM locks the public version, and the files of one label.
    return dict(re.findall(r'file = "(torch\w*)-([^-]+)-', text))


@pytest.mark.clients
@pytest.mark.parametrize("tool", ["poetry", "pdm"])
def test_poetry_and_pdm_take_it_as_their_torch_index(tmp_path: Path, tool: str) -> None:
    why = why_not(tool)
    if why:
        pytest.skip(why)
    build(*V100, "--from", mirror(), cwd=tmp_path)
    with static(tmp_path / "site") as url:
        assert locked(tool, url, tmp_path) == OLD
