from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from torchpin.cli import prove
from torchpin.cli.prove_words import told_of
from torchpin.documents.base import Document
from torchpin.documents.requirements import read_requirements
from torchpin.engine import FixResult, Options, Report
from torchpin.errors import RewriteError
from torchpin.fleet.model import Fleet, NodeGroup, Python, Settings, Target


def group(platform: str = "linux-x86_64", client: str | None = None, **more: object) -> NodeGroup:
    made = NodeGroup("g", (), (Python(3, 11),), platform, client=client)
    return made._replace(**more)  # type: ignore[arg-type]


def result(documents: list[Document], changed: dict[str, bytes], *groups: NodeGroup) -> FixResult:
    report = Report(
        (), (), tuple(documents), Fleet(groups, Settings(), None), "2026-11-30", "00", ()
    )
    changes = tuple((doc, changed[doc.path]) for doc in documents if doc.path in changed)
    return FixResult(report, report, changes, ())


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux-x86_64", "x86_64-manylinux_2_28"),
        ("linux-aarch64", "aarch64-manylinux_2_28"),
        ("macos-arm64", "aarch64-apple-darwin"),
        ("windows-x86_64", "x86_64-pc-windows-msvc"),
    ],
)
def test_uv_is_asked_for_the_platform_of_the_target(platform: str, expected: str) -> None:
    command = prove.command("r.txt", Target(group(platform), Python(3, 11)), "uv", "/x")
    assert command[command.index("--python-platform") + 1] == expected
    assert command[command.index("--python-version") + 1] == "3.11"
    assert command[-1] == "r.txt"


def test_glibc_and_musl_decide_the_platform() -> None:
    old = prove.command("r", Target(group(glibc="2.17"), None), "uv", "/x")
    assert "x86_64-manylinux_2_17" in old
    assert "--python-version" not in old
    assert "x86_64-unknown-linux-musl" in prove.command(
        "r", Target(group(musl=True), None), "uv", "/x"
    )


def test_pip_is_asked_for_every_older_glibc_but_no_newer() -> None:
    command = prove.command("r.txt", Target(group(glibc="2.31"), Python(3, 11)), None, "/x")
    assert "manylinux_2_31_x86_64" in command
    assert "manylinux_2_17_x86_64" in command
    assert "manylinux_2_32_x86_64" not in command
    assert {"--no-deps", "--dry-run", "cp311"} <= set(command)


def test_the_client_of_the_group_is_asked_unless_told_otherwise() -> None:
    target = Target(group(client="uv"), None)
    assert "compile" in prove.command("r", target, None, "/x")
    assert "install" in prove.command("r", target, "pip", "/x")


def test_the_fixed_files_lie_as_on_disk(tmp_path: Path) -> None:
    base, out = tmp_path / "project", tmp_path / "out"
    main = read_requirements(str(base / "r" / "main.txt"), b"-r ../base.txt\n-c c.txt\n")
    inner = read_requirements(str(base / "base.txt"), b"torch==1\n")
    limits = read_requirements(str(base / "r" / "c.txt"), b"numpy<3\n")
    fixed = result([main, inner, limits], {inner.path: b"torch==2\n"})
    roots = prove.lay_out(fixed, str(out))
    assert roots == {main.path: str(out / "r" / "main.txt")}
    assert (out / "base.txt").read_bytes() == b"torch==2\n"
    assert (out / "r" / "c.txt").read_bytes() == b"numpy<3\n"


def test_a_file_that_no_fix_reaches_is_not_asked_about(tmp_path: Path) -> None:
    base, out = tmp_path / "project", tmp_path / "out"
    fixed_one = read_requirements(str(base / "r.txt"), b"torch==1\n")
    other = read_requirements(str(base / "new.txt"), b"torch==2.15.0\n")
    outer = read_requirements(str(base / "outer.txt"), b"-r middle.txt\n")
    middle = read_requirements(str(base / "middle.txt"), b"-r inner.txt\n")
    inner = read_requirements(str(base / "inner.txt"), b"torch==1\n")
    documents = [fixed_one, other, outer, middle, inner]
    fixed = result(documents, {fixed_one.path: b"torch==2\n", inner.path: b"torch==2\n"})
    assert set(prove.lay_out(fixed, str(out))) == {fixed_one.path, outer.path}


def test_a_group_that_names_files_is_served_by_these_alone(tmp_path: Path) -> None:
    profile = str(tmp_path / "torchpin.toml")
    bound = group(files=("train.txt",))
    assert prove.serves(bound, str(tmp_path / "train.txt"), profile)
    assert not prove.serves(bound, str(tmp_path / "other.txt"), profile)
    assert prove.serves(group(), str(tmp_path / "other.txt"), profile)


@pytest.mark.clients
@pytest.mark.parametrize("client", ["uv", "pip"])
def test_the_real_client_confirms_or_refuses(
    tmp_path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    name = "torch-2.14.0+cu126-cp311-cp311-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(wheels / name, "w") as wheel:
        info = "torch-2.14.0+cu126.dist-info"
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.14.0+cu126\n"
        )
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-manylinux_2_28_x86_64\n",
        )
        wheel.writestr(f"{info}/RECORD", "")
    # What the machine itself says about indexes must not reach the clients here.
    for key in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    head = f"--no-index\n--find-links {wheels}\n"
    doc = read_requirements(str(tmp_path / "r.txt"), f"{head}torch==2.13.0+cu126\n".encode())
    good = result([doc], {doc.path: f"{head}torch==2.14.0+cu126\n".encode()}, group())
    prove.prove(good, Options((doc.path,), client=client))

    for bad in (
        result([doc], {doc.path: f"{head}torch==2.15.0+cu126\n".encode()}, group()),
        good._replace(
            report_after=good.report_after._replace(
                fleet=Fleet((group("windows-x86_64"),), Settings(), None)
            )
        ),
    ):
        with pytest.raises(RewriteError) as caught:
            prove.prove(bad, Options((doc.path,), client=client))
        assert f"{client} cannot install the fixed file on g, Python 3.11" in caught.value.message
        assert "torch" in caught.value.hint


@pytest.mark.clients
def test_an_index_out_of_reach_proves_nothing(tmp_path: Path) -> None:
    # Nothing listens on port 9 of this machine.
    head = b"--index-url http://127.0.0.1:9/simple/\n"
    doc = read_requirements(str(tmp_path / "r.txt"), head + b"torch==2.13.0\n")
    fixed = result([doc], {doc.path: head + b"torch==2.14.0\n"}, group())
    told = r"uv could not reach 127\.0\.0\.1:9 \(connection refused\), so nothing is proved"
    with pytest.raises(RewriteError, match=told) as caught:
        prove.prove(fixed, Options((doc.path,), client="uv"))
    assert caught.value.hint == "run it where the index can be reached, or without --prove"


PIP_TRIES = "".join(
    f"WARNING: Retrying (Retry(total={left}, connect=None)) after connection broken by "
    f"'NameResolutionError(\"HTTPSConnection(host='{host}', port=443): Failed to resolve '{host}' "
    "([Errno -2] Name or service not known)\")': /whl/cu126/torch/\n"
    for host in ("files.example", "download.pytorch.org")
    for left in (4, 3, 2, 1, 0)
)
UV_TRIES = """\
error: Request failed after 3 retries in 5.8s
  cause: Failed to fetch: `https://me:secret@files.example/simple/torch/`
  cause: error sending request for url (https://files.example/simple/torch/)
  cause: dns error
  cause: failed to lookup address information: Temporary failure in name resolution
"""
POETRY_TRIES = "All attempts to connect to files.example failed.\n\nProbable Causes:\n"


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        (
            "pip",
            PIP_TRIES + "ERROR: ResolutionImpossible: for help visit https://pip.example/\n",
            "files.example and download.pytorch.org (name or service not known)",
        ),
        ("uv", UV_TRIES, "files.example (temporary failure in name resolution)"),
        ("poetry", POETRY_TRIES, "files.example"),
        ("uv", "hint: Packages were unavailable because the network was disabled.", "an index"),
    ],
)
def test_many_tries_are_one_sentence(name: str, text: str, where: str) -> None:
    what, hint = told_of(name, text, "refuses it")
    if where == "an index":
        where += " (network was disabled)"
    assert what == f"{name} could not reach {where}, so nothing is proved"
    assert "\n" not in what + hint and "secret" not in what + hint


def test_what_a_client_refuses_is_shown() -> None:
    what, hint = told_of("pip", "ERROR: No matching distribution found for torch==9\n", "refuses")
    assert what == "pip refuses"
    assert hint == "ERROR: No matching distribution found for torch==9"
