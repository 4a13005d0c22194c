"""The real shells and the real make run what the readers say, word for word.

Programs named pip, uv … that write down their arguments stand first on PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchpin.documents.atoms import Source, is_known, text_of
from torchpin.documents.docker_lines import instructions, triggered
from torchpin.documents.dockerfile import read_dockerfile
from torchpin.documents.loader import read_bytes
from torchpin.documents.makefile import read_makefile
from torchpin.documents.scripts import read_shell
from torchpin.documents.shell import read_script

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.record_golden import FILES  # noqa: E402

BASH = shutil.which("bash")
MAKE = shutil.which("make")
PROGRAMS = (
    *("pip", "pip3", "uv", "uvx", "pipx", "python", "python3", "python3.11", "conda"),
    *("apt-get", "nvidia-smi", "rm", "echo-off"),
)
needs_bash = pytest.mark.skipif(BASH is None, reason="there is no bash")


@pytest.fixture
def fakes(tmp_path: Path) -> Path:
    """Return a folder of programs that write down their arguments, a line of NULs each."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in PROGRAMS:
        path = folder / name
        path.write_text(
            f'#!{BASH}\nprintf "%s\\0" {name} "$@" >> "$ARGV_LOG"\nprintf "\\n\\0" >> "$ARGV_LOG"\n'
        )
        path.chmod(0o755)
    return folder


def run(
    command: list[str], folder: Path, fakes: Path, environ: Mapping[str, str] | None = None
) -> list[list[str]]:
    """Run a command and return the argument vectors of the programs that it started."""
    log = fakes.parent / "argv"
    log.write_bytes(b"")
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            "PATH": f"{fakes}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "ARGV_LOG": str(log),
            **(environ or {}),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = [[]]
    for word in log.read_bytes().decode().split("\0"):
        if word == "\n":
            found.append([])
        elif word or found[-1]:
            found[-1].append(word)
    return [one for one in found if one]


def texts(folder: Path, suffix: str) -> list[tuple[str, str]]:
    """Return the files of a golden folder by name, as they are and as they are mended."""
    return [
        (f"{folder.name}/{kind}/{path.relative_to(folder / kind)}", path.read_text("utf-8"))
        for kind in ("input", "fixed")
        for path in sorted((folder / kind).rglob("*"))
        if path.is_file() and re.search(suffix, path.name)
    ]


def every(prefix: str, suffix: str) -> list[tuple[str, str]]:
    return [one for folder in sorted(FILES.glob(f"{prefix}-*")) for one in texts(folder, suffix)]


SCRIPTS = every("shell", r"\.sh$")
MAKEFILES = every("make", r"[Mm]akefile$")
DOCKERFILES = every("docker", r"(Docker|Container)file$")


@needs_bash
@pytest.mark.parametrize(("name", "text"), SCRIPTS, ids=[name for name, _ in SCRIPTS])
def test_bash_starts_what_the_reader_says(
    name: str, text: str, tmp_path: Path, fakes: Path
) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "activate").write_text("")
    path = tmp_path / "script.sh"
    path.write_text(text)
    assert subprocess.run([str(BASH), "-n", str(path)], check=False).returncode == 0
    started = run([str(BASH), str(path)], tmp_path, fakes)
    said = [
        [word.value for word in command.words]
        for command in read_script(Source.of(text))
        if command.words[0].value in PROGRAMS
    ]
    assert started
    assert [one for one in started if one not in said] == []
    certain = [
        [word.value for word in command.words]
        for command in read_script(Source.of(text))
        if command.words[0].value in PROGRAMS
        and command.unsure is None
        and all(word.known for word in command.words)
    ]
    assert [one for one in certain if one not in started] == []


@pytest.mark.skipif(MAKE is None or BASH is None, reason="there is no make")
@pytest.mark.parametrize(("name", "text"), MAKEFILES, ids=[name for name, _ in MAKEFILES])
def test_make_starts_what_the_reader_says(
    name: str, text: str, tmp_path: Path, fakes: Path
) -> None:
    (tmp_path / "Makefile").write_text(text + "\nvenv:\n")
    for path in (FILES / name).parent.parent.glob("input/*.mk"):
        shutil.copy(path, tmp_path)
    document = read_makefile(str(tmp_path / "Makefile"), text.encode(), read_bytes)
    targets = {one.name.removeprefix("target ").partition(",")[0] for one in document.parts}
    assert targets
    for target in sorted(targets):
        started = run([str(MAKE), "-s", target], tmp_path, fakes)
        words = [set(argv) for argv in started]
        for part in document.parts:
            if f"target {target}," not in part.name or part.uncertain:
                continue
            asked = [text_of(word) for _, word in part.words if is_known(word)]
            inside = [one for one in asked if not part.document.indexes or "://" not in one]
            assert any(set(inside) <= one for one in words), (inside, started)


@needs_bash
@pytest.mark.parametrize(("name", "text"), DOCKERFILES, ids=[name for name, _ in DOCKERFILES])
def test_sh_starts_what_the_reader_says(name: str, text: str, tmp_path: Path, fakes: Path) -> None:
    document = read_dockerfile("Dockerfile", text.encode())
    environ: dict[str, str] = {}
    started: list[list[str]] = []
    copied = [
        body.span(0, len(body.text))
        for one in instructions(Source.of(text))
        if one.name == "COPY"
        for body in one.heredocs
    ]
    for written in instructions(Source.of(text)):
        one = triggered(written) if written.name == "ONBUILD" else written
        rest = one.source.text.strip()
        if one.name in ("ARG", "ENV"):
            for pair in re.findall(r'(\w+)=("[^"]*"|\S+)', rest):
                environ[pair[0]] = pair[1].strip('"')
            environ.pop("PATH", None)  # the fakes have to be found
        elif one.name == "RUN" and not rest.startswith("["):
            script = re.sub(r"^(--\S+\s+)*", "", rest)
            if one.heredocs:
                script = one.heredocs[0].text
            started += run(["/bin/sh", "-c", script], tmp_path, fakes, environ)
    words = [set(argv) for argv in started]
    for part in document.parts:
        if part.syntax == "shell" and part.uncertain is None:
            asked = {
                f"{one.name}{one.specifier}"
                for one in part.document.declarations
                if not any(span.start <= one.span.start < span.end for span in copied)
            }
            assert any(asked <= one for one in words), (asked, started)


# -- any words at all

NAMES = ("A", "B", "UNSET")
plain = st.text("abcXYZ019.,:/@%_-+", min_size=1, max_size=6)
pieces = st.one_of(
    plain,
    plain.map(lambda text: f"'{text} \"x'"),
    plain.map(lambda text: f'"{text}"'),
    plain.map(lambda text: f'"{text}\\"\\$\\`{text}"'),
    plain.map(lambda text: f"\\{text[0]}"),
    st.sampled_from(["$A", "${A}", '"$B"', '"${B}"', "${UNSET:-d}", "${A:-d}", '"${UNSET-x y}"']),
    st.sampled_from(["${UNSET:-$A}", '"${UNSET:=k}"', "${A:+alt}", "${A%.*}", "${A//./}", "$B"]),
    st.sampled_from(["==", "=", "\\>=", "'>='", '"<2"', "[x]", "~="]),
)
words = st.lists(pieces, min_size=1, max_size=4).map("".join).filter(lambda word: word != "==")
"""The grammar takes a word that is ``==`` alone for an operator."""
lines = st.lists(words, min_size=1, max_size=4).map(" ".join)
endings = st.sampled_from(
    ["", " # note", " && true", "; true", " || false", " \\\n  last", " > log"]
)


@needs_bash
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(scripts=st.lists(st.tuples(lines, endings), min_size=1, max_size=6))
def test_bash_sees_the_same_words(
    scripts: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("words")
    head = "A=2.9.1\nB='two words'\n"
    body = "".join(f"show {line}{ending}\n" for line, ending in scripts)
    text = head + body
    show = 'show() { printf \'%s\\0\' "$@" >> "$LOG"; printf \'\\n\\0\' >> "$LOG"; }'
    log = folder / "words"
    log.write_bytes(b"")
    done = subprocess.run(
        [str(BASH), "-c", f"{show}\nset -f\n{text}"],
        cwd=folder,
        env={"LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    if done.returncode not in (0, 1):
        return  # a word that bash itself refuses
    told = [one.split("\0")[:-1] for one in log.read_bytes().decode().split("\n\0")[:-1]]
    said = [
        [word.value for word in command.words[1:]]
        for command in read_script(Source.of(text))
        if command.words[0].value == "show"
    ]
    known = [all("${" not in word for word in one) for one in said]
    assert len(told) == len(said), text
    for ours, theirs, sure in zip(said, told, known, strict=True):
        if sure:
            assert [word for word in ours if word] == [word for word in theirs if word], text


def test_the_reader_of_scripts_is_the_reader_of_files() -> None:
    for _, text in SCRIPTS:
        assert read_shell("x.sh", text.encode()).text == text
