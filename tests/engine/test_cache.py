"""The cache of results: when it is used, what it refuses, and what it leaves on disk."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.engine.cache_world import Seen, run

from torchpin import seen
from torchpin.cache import VARIABLE, Cache, files
from torchpin.cache import question as asking

SOURCE = Path(__file__).parent.parent.parent / "src" / "torchpin"
FLEET = '[fleet.a]\ngpus = ["V100"]\ndriver = "550.54.15"\npython = "3.11"\n'
Check = Callable[..., Seen]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a finding, the current folder of the test; its cache lies beside it."""
    made = tmp_path / "project"
    made.mkdir()
    (tmp_path / "cache").mkdir()
    (made / "requirements.txt").write_text("torch==2.14.1\n")
    (made / "torchpin.toml").write_text(FLEET)
    monkeypatch.chdir(made)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("TORCHPIN_CACHE_DIR", str(tmp_path / "cache"))
    return made


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """Runs ``check``; by default of the current folder."""
    return lambda *arguments: run(arguments or (".",), capsys)


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each run of ``check`` on a folder was answered by the cache."""
    asked: list[bool] = []
    recall = Cache.recall

    def noted(cache: Cache) -> object:
        found = recall(cache)
        asked.append(found is not None)
        return found

    monkeypatch.setattr(Cache, "recall", noted)
    return asked


def entries(folder: Path) -> list[Path]:
    """Return the files of the cache."""
    return sorted((folder.parent / "cache" / "results").glob("*"))


def test_an_unchanged_folder_is_not_judged_again(folder: Path) -> None:
    probe = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from torchpin.cli.main import guarded\n"
        "code = guarded(['check', '.'])\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    command = [sys.executable, "-S", "-c", probe]
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (first.returncode, first.stdout) == (second.returncode, second.stdout)
    assert first.returncode == 1
    assert "TP2" in first.stdout
    assert "torchpin.engine" in first.stderr.split()
    again = second.stderr.split()
    for name in ("torchpin.engine", "torchpin.rules.registry", "packaging.version", "typing"):
        assert name not in again


@pytest.mark.parametrize("how", ["--no-cache", "variable", "file", "diff", "fix"])
def test_who_asks_for_no_cache_gets_none(
    how: str, folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "variable":
        monkeypatch.setenv(VARIABLE, "1")
    if how == "fix":
        from torchpin.cli.main import guarded

        guarded(["fix", "."])
    else:
        arguments = {"--no-cache": (".", "--no-cache"), "file": ("requirements.txt",)}
        check(*arguments.get(how, (".", "--diff") if how == "diff" else (".",)))
    assert entries(folder) == []


def test_contents_count_not_sizes_and_times(folder: Path, check: Check, hits: list[bool]) -> None:
    path = folder / "requirements.txt"
    before = path.stat()
    first = check()
    assert "TP2" in first.out
    path.write_text("torch==2.4.1 \n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert check().code == 0
    path.write_text("torch==2.14.1\n")
    check()
    os.utime(path, (1, 1))
    assert check() == first
    assert hits == [False, False, False, True]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data.replace(b"TP2", b"TP1"),
        lambda data: b"\0" * 100,
        lambda data: signed(b"[]"),
        lambda data: signed(b"{}"),
        lambda data: signed(b"[" * 100_000),
        lambda data: signed(b"nonsense"),
        lambda data: signed(changed(data, view={"Finding": [1]})),
        lambda data: signed(changed(data, view={"os": []})),
        lambda data: signed(changed(data, view=None)),
        lambda data: signed(changed(data, notes={"a": 1, "b": 2})),
        lambda data: signed(changed(data, documents=[["other", "x", "utf-8", 0]])),
        lambda data: signed(changed(data, documents=[])),
        lambda data: signed(changed(data, asked=[["what", "", "", ""]])),
        lambda data: signed(changed(data, asked=[[1]])),
        lambda data: signed(changed(data, texts=[])),
        lambda data: signed(changed(data, walk=3)),
    ],
)
def test_damaged_entries_are_passed_over(
    damage: Callable[[bytes], bytes], folder: Path, check: Check, hits: list[bool]
) -> None:
    first = check()
    (entry,) = entries(folder)
    entry.write_bytes(damage(entry.read_bytes()))
    assert check() == first
    assert check() == first
    assert hits == [False, False, True]  # written anew


def signed(body: bytes) -> bytes:
    """Return an entry with a right digest."""
    return seen.digest(body).encode() + b"\n" + body


def changed(data: bytes, **changes: object) -> bytes:
    """Return the body of an entry with other values."""
    return json.dumps(json.loads(data.partition(b"\n")[2]) | changes).encode()


@pytest.mark.skipif(sys.platform == "win32", reason="modes and owners of POSIX")
def test_only_the_user_reads_and_writes_entries(
    folder: Path, check: Check, hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.umask(old := os.umask(0))
    os.umask(0)
    try:
        check()
    finally:
        os.umask(old)
    (entry,) = entries(folder)
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700
    entry.chmod(0o622)
    check()
    assert stat.S_IMODE(entries(folder)[0].stat().st_mode) == 0o600
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    check()
    assert hits == [False, False, False]


@pytest.mark.parametrize(
    "where", ["file", "below a file", "\0", "results is a file", "read-only", "no home"]
)
def test_without_a_cache_a_check_works_all_the_same(
    where: str, folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = check(".", "--no-cache")
    place = folder.parent / "place"
    if where == "\0":
        monkeypatch.setattr(files, "cache_dir", lambda: "a\0b")
    elif where == "no home":
        monkeypatch.setattr(files, "cache_dir", lambda: "~/.cache/torchpin")
    elif where == "results is a file":
        place.mkdir()
        (place / "results").write_text("")
    elif where == "read-only":
        place = Path("/proc/self")  # nobody makes folders there, root neither
    else:
        place.write_text("")
    chosen = place / "below" if where == "below a file" else place
    monkeypatch.setenv("TORCHPIN_CACHE_DIR", str(chosen))
    assert check() == expected
    assert check() == expected
    assert not (folder / "~").exists()


def test_a_full_disk_leaves_nothing_behind(
    folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = check(".", "--no-cache")

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert check() == expected
    assert entries(folder) == []


def test_the_cache_is_bounded(
    folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(files, "MOST", 3)
    for number in range(6):
        check(".", "--ignore", f"TP{number}")
        for age, one in enumerate(sorted(entries(folder), key=lambda one: one.stat().st_mtime)):
            os.utime(one, (1000 + age, 1000 + age))
    assert len(entries(folder)) == 3
    abandoned = entries(folder)[0].with_suffix(".1.tmp")
    abandoned.write_text("x")
    os.utime(abandoned, (1000, 1000))
    monkeypatch.setattr(files, "WHOLE", 1)
    check(".", "--ignore", "TP9")
    assert entries(folder) == []
    monkeypatch.setattr(files, "LARGEST", 100)
    check()
    assert entries(folder) == []


def test_no_credential_and_no_text_of_a_file_is_kept(folder: Path, check: Check) -> None:
    path = folder / "requirements.txt"
    path.write_text("--extra-index-url https://me:hunter2@wheels.example/cu126\ntorch==2.14.1\n")
    first = check(".", "--output-format", "json")
    assert "TP404" in first.out
    check()
    (folder / "requirements.txt").write_text("torch==2.14.1 # a word of mine\n")
    check()
    kept = b"".join(one.read_bytes() for one in entries(folder))
    assert b"TP2" in kept
    assert b"hunter2" not in kept
    assert b"a word of mine" not in kept


def test_a_file_that_changes_during_the_run_is_not_kept(
    folder: Path, check: Check, hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchpin.documents import loader

    path = folder / "requirements.txt"
    read_as = loader.read_as

    def then_changed(kind: str, name: str, data: bytes, *more: Any) -> object:
        document = read_as(kind, name, data, *more)
        path.write_text("torch==2.4.1\n")
        return document

    with monkeypatch.context() as patch:
        patch.setattr("torchpin.documents.loader.read_as", then_changed)
        assert "TP2" in check().out
    assert check().code == 0
    path.write_text("torch==2.14.1\n")
    assert "TP2" in check().out
    assert hits == [False, False, False]


def test_another_torchpin_python_library_or_day_asks_anew(
    folder: Path, check: Check, hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    for module, name, value in (
        (asking, "__version__", "99"),
        (asking, "_program", list),
        (asking, "_libraries", lambda: [["torch-1.dist-info"]]),
        (sys, "version", "4.0"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            check()
    with monkeypatch.context() as patch:
        patch.setenv("TORCHPIN_TODAY", "2099-01-01")
        assert "days old" in check().err
    check()
    assert hits == [False] * 6 + [True]


def test_another_catalog_asks_anew(
    folder: Path, check: Check, hits: list[bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import shutil

    from torchpin.catalog import store

    mine = tmp_path / "mine"
    shutil.copytree(store.FOLDER, mine)
    check(".", "--catalog", str(mine))
    check(".", "--catalog", str(mine))
    path = mine / "builds-torch.json"
    os.utime(path, (1, 1))
    check(".", "--catalog", str(mine))
    other = tmp_path / "other.json"
    other.write_bytes(path.read_bytes().replace(b"sm_", b"SM_"))
    os.utime(other, (1, 1))
    other.replace(path)  # another file of the same size, with the same time of change
    check(".", "--catalog", str(mine))
    store.choose(None)
    check()
    pointer = tmp_path / "cache" / "catalog" / "current"
    pointer.parent.mkdir(exist_ok=True)
    pointer.write_text("gone\n")
    monkeypatch.setattr(store, "_chosen", {})
    monkeypatch.setattr(store, "_catalog", None)  # the note stays with the one of this test
    assert "damaged" in check().err
    assert hits == [False, True, False, False, False, False]


def test_parallel_runs_share_one_cache(folder: Path) -> None:
    for number in range(30):
        (folder / f"requirements-{number}.txt").write_text("torch==2.14.1\n")
    command = [sys.executable, "-m", "torchpin", "check", ".", "--output-format", "json"]

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    said = set()
    for _ in range(2):
        running = [started() for _ in range(4)]
        said |= {(*one.communicate(), one.returncode) for one in running}
    assert len(said) == 1
    assert [one.suffix for one in entries(folder)] == [".json"]


_ASKING = frozenset(
    (
        *("isfile", "isdir", "exists", "lexists", "islink", "stat", "lstat", "listdir", "scandir"),
        *("walk", "open", "fdopen", "readlink", "access", "glob", "iglob", "read_text"),
    )
)
_ASKS = {
    # the questions of these are noted, or asked again when the cache is
    "seen.py",
    "documents/loader.py",
    "documents/discover.py",
    "documents/ignored.py",
    "fleet/profile.py",
    # torchpin's own data, which the question tells
    "fleet/tables.py",
    # other commands
    "fleet/detect.py",
}


def test_the_stages_ask_the_file_system_in_one_way() -> None:
    """A question that is not noted would make kept results stale."""
    found = []
    rooms = ("documents", "fleet", "select", "judge", "rules", "resolve")
    paths = [path for room in rooms for path in sorted((SOURCE / room).glob("*.py"))]
    rewriting = ["fixes", "plan", "request", "purpose", "commands", "projects", "reread"]
    paths += [SOURCE / "rewrite" / f"{name}.py" for name in rewriting]
    paths += [SOURCE / name for name in ("engine.py", "ways.py", "part_ways.py")]
    for path in paths:
        name = path.relative_to(SOURCE).as_posix()
        if name in _ASKS:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = node.func
            word = ""
            if isinstance(called, ast.Attribute) and ast.unparse(called.value) in ("os", "os.path"):
                word = called.attr
            elif isinstance(called, ast.Name) and called.id == "open":
                word = called.id
            if word in _ASKING or ast.unparse(called).endswith("plain_bytes"):
                found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert not found, f"ask torchpin.seen instead: {found}"


PROJECT = (
    '[project]\nname = "{}"\nversion = "0"\nrequires-python = "==3.11.*"\n'
    'dependencies = ["torch=={}"]\n'
)
LOCK = (
    'version = 1\nrevision = 3\nrequires-python = "==3.11.*"\n\n[[package]]\nname = "p"\n'
    'version = "0"\nsource = {{ virtual = "." }}\ndependencies = [{{ name = "torch" }}]\n\n'
    '[[package]]\nname = "torch"\nversion = "{}"\n'
    'source = {{ registry = "https://pypi.example/simple" }}\n'
)
CHANNEL = '[[index]]\nname = "p"\nurl = "https://download.pytorch.org/whl/{}"\n'
SCENES: dict[str, tuple[dict[str, str], dict[str, str | None]]] = {
    "a list outside of the folder": (
        {"requirements.txt": "-r ../common.txt\n", "../common.txt": "torch==2.4.1\n"},
        {"../common.txt": "torch==2.14.1\n"},
    ),
    "a list outside that was not there": (
        {"requirements.txt": "-r ../common.txt\ntorch==2.4.1\n"},
        {"../common.txt": "torchvision==0.19.1\n"},
    ),
    "a list outside that goes": (
        {"requirements.txt": "-r ../common.txt\n", "../common.txt": "torch==2.4.1\n"},
        {"../common.txt": None},
    ),
    "a list that has no name of one": (
        {"requirements.txt": "-r base\n", "base": "torch==2.4.1\n"},
        {"base": "torch==2.14.1\n"},
    ),
    "settings above that were not there": (
        {"train.sh": "#!/bin/sh\nuv pip install torch==2.14.1\n"},
        {"../uv.toml": CHANNEL.format("cu126")},
    ),
    "a lock that git ignores": (
        {
            ".gitignore": "*.lock\n",
            "pyproject.toml": PROJECT.format("p", "2.4.1"),
            "uv.lock": LOCK.format("2.4.1"),
        },
        {"uv.lock": LOCK.format("2.14.1")},
    ),
    "a lock that git ignores and that was not there": (
        {".gitignore": "*.lock\n", "pyproject.toml": PROJECT.format("p", "2.4.1")},
        {"uv.lock": LOCK.format("2.14.1")},
    ),
    "a member of the workspace above": (
        {
            "pyproject.toml": PROJECT.format("p", "2.4.1"),
            "../pyproject.toml": '[tool.uv.workspace]\nmembers = ["*"]\n',
        },
        {"../other/pyproject.toml": PROJECT.format("other", "2.14.1")},
    ),
    "a profile above that was not there": (
        {"torchpin.toml": "", "requirements.txt": "torch==2.14.1\n"},
        {"torchpin.toml": None, "../torchpin.toml": FLEET},
    ),
    "a Dockerfile above that a service builds": (
        {
            "compose.yml": "services:\n  a:\n    build: {context: .., args: {TORCH: 2.14.1}}\n",
            "../Dockerfile": "FROM python:3.11\nARG TORCH\nRUN pip install torch==2.4.1\n",
        },
        {"../Dockerfile": "FROM python:3.11\nARG TORCH\nRUN pip install torch==$TORCH\n"},
    ),
    "what git ignores": (
        {".gitignore": "sub/\n", "sub/requirements.txt": "torch==2.14.1\n"},
        {".gitignore": "\n"},
    ),
    "an environment": (
        {"sub/requirements.txt": "torch==2.14.1\n"},
        {"sub/pyvenv.cfg": "home = x\n"},
    ),
}


def put(folder: Path, texts: Mapping[str, str | None]) -> None:
    """Write files, or remove those without a text."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text)


@pytest.mark.parametrize("scene", SCENES)
def test_every_question_is_asked_again(
    scene: str, folder: Path, check: Check, hits: list[bool]
) -> None:
    before, after = SCENES[scene]
    (folder / "requirements.txt").unlink()
    if ".gitignore" in before:
        subprocess.run(["git", "init", "-q", "."], check=True)
    put(folder, before)
    first = check()
    assert check() == first
    put(folder, after)
    plain = check(".", "--no-cache")
    assert plain != first
    assert check() == plain
    assert hits == [False, True, False]
