"""What commands install: argument vectors of pip, uv and pipx, by way of scripts."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from torchpin.documents.atoms import text_of
from torchpin.documents.base import Document
from torchpin.documents.installers import PIP, UV, UV_ADD, UV_RUN, UV_TOOL, Grammar
from torchpin.documents.parts import Part
from torchpin.documents.scripts import read_shell

CH = "https://download.pytorch.org/whl/cu126"


def document(script: str) -> Document:
    found = read_shell("x.sh", script.encode())
    text = found.text
    for part in found.parts:
        for declaration in part.document.declarations:
            if not declaration.from_variable:
                span = declaration.specifier_span
                assert span is None or text[span.start : span.end] == declaration.specifier
        for span, word in part.words:
            assert 0 <= span.start <= span.end <= len(text)
            for atom in word:
                if atom.plain:
                    assert text[atom.start : atom.end] == atom.value
                if atom.home is not None:
                    assert text[atom.home.start : atom.home.end] == atom.value
    return found


def parts(script: str) -> tuple[Part, ...]:
    return document(script).parts


def only(script: str) -> Part:
    (part,) = parts(script)
    return part


def asked(part: Part) -> list[str]:
    return [f"{one.name}{one.specifier}" for one in part.document.declarations]


def indexes(part: Part) -> list[tuple[str, str]]:
    return [(one.option, one.url) for one in part.document.indexes]


@pytest.mark.parametrize(
    "script",
    [
        "pip install torch==2.9.1",
        "pip3 install torch==2.9.1",
        "pip3.11 install torch==2.9.1",
        "/opt/venv/bin/pip install --no-cache-dir -q torch==2.9.1",
        "python -m pip install torch==2.9.1",
        "python3.11 -um pip install torch==2.9.1",
        "python3 -mpip --no-color install torch==2.9.1",
        '"$PYTHON" -m pip install torch==2.9.1',
        "$(which pip) install torch==2.9.1",
        "sudo -H -u ci pip install torch==2.9.1",
        "env -u X PIP_NO_INPUT=1 pip install torch==2.9.1",
        "time nice -n 5 pip install torch==2.9.1",
        "timeout -k 5 600 pip install torch==2.9.1",
        "conda run -n x --no-capture-output pip install torch==2.9.1",
        "micromamba run -p /env pip install torch==2.9.1",
        "poetry run pip install torch==2.9.1",
        "bash -lc 'pip install torch==2.9.1'",
        'sh -c "pip install torch==2.9.1 && true"',
        "uv pip install torch==2.9.1",
        "uv --quiet pip install --system torch==2.9.1",
        "python -m uv pip install torch==2.9.1",
        "uv add torch==2.9.1",
        "uv tool install torch==2.9.1",
        "uvx --with torch==2.9.1 --from . tool arg",
        "uv tool run --with=torch==2.9.1 --from . tool",
        "uv run --with torch==2.9.1 python x.py",
        "pipx install torch==2.9.1",
        "pipx inject tool torch==2.9.1",
        "pipx run --spec torch==2.9.1 tool",
        "cd /tmp && pip install torch==2.9.1 || true",
        "pip install torch\\\n==2.9.1",
        "pip install 'torch=='2.9.1",
        'V=2.9.1\npip install "torch==$V"',
        "pip install torch==${V:-2.9.1}",
        'V=${V:-2.9.1}\nexport V\npip install torch=="${V}"',
        ': "${V:=2.9.1}"\npip install torch==$V',
        'A=(torch==2.9.1)\npip install "${A[@]}"',
        'P="torch==2.9.1"\npip install $P',
        "V=2.9\npip install torch==$V.1",
        "V=v2.9.1\npip install torch==${V#v}",
        "pip install torch==2.9.1 2>/dev/null",
    ],
)
def test_one_requirement(script: str) -> None:
    part = only(script)
    assert "torch==2.9.1" in asked(part)
    assert part.command


@pytest.mark.parametrize(
    "script",
    [
        "pip list",
        "pip download torch==2.9.1",
        "echo pip install torch==2.9.1",
        "# pip install torch==2.9.1",
        "apt install pip",
        "uv sync",
        "uv pip compile requirements.in",
        "cat <<E\npip install torch==2.9.1\nE",
        "uvx ruff check",
        "pip uninstall torch",
        "git commit -m 'pip install torch==2.9.1'",
    ],
)
def test_what_installs_no_torch(script: str) -> None:
    assert all("torch" not in "".join(asked(part)) for part in parts(script))


def test_indexes_of_pip() -> None:
    part = only(
        f"pip install -i {CH} --extra-index-url=https://a.example/simple "
        "-fhttps://b.example/x torch"
    )
    assert part.client == "pip"
    assert indexes(part) == [
        ("--index-url", CH),
        ("--extra-index-url", "https://a.example/simple"),
        ("--find-links", "https://b.example/x"),
    ]


def test_an_abbreviated_option_is_the_long_one() -> None:
    assert indexes(only(f"pip install torch --extra-index {CH}")) == [("--extra-index-url", CH)]


def test_indexes_of_uv_are_in_its_order() -> None:
    part = only(
        f"uv pip install torch --default-index https://d.example/simple "
        f"--extra-index-url https://e.example/simple --index pytorch={CH} --torch-backend cu126"
    )
    assert part.client == "uv"
    assert sorted(indexes(part)[:1] + indexes(part)[1:2]) == [
        ("--extra-index-url", CH),
        ("--index-url", "https://d.example/simple"),
    ]
    assert indexes(part)[2:] == [("--extra-index-url", "https://e.example/simple")]
    assert part.torch_backend == "cu126"
    assert text_of(part.backend) == "cu126"


def test_environment_lines() -> None:
    part = only(
        f"export PIP_EXTRA_INDEX_URL='{CH} https://z.example/simple'\n"
        "PIP_CONSTRAINT=c.txt PIP_INDEX_URL=https://i.example/simple pip install torch"
    )
    assert indexes(part) == [
        ("--index-url", "https://i.example/simple"),
        ("--extra-index-url", CH),
        ("--extra-index-url", "https://z.example/simple"),
    ]
    assert [(one.path, one.constraint) for one in part.document.includes] == [("c.txt", True)]


def test_options_win_over_the_environment() -> None:
    script = f"export PIP_INDEX_URL=https://i.example/simple\npip install torch -i {CH}"
    assert indexes(only(script)) == [("--index-url", CH)]


def test_a_variable_that_is_not_exported_is_not_seen() -> None:
    assert indexes(only("PIP_INDEX_URL=https://i.example/simple\npip install torch")) == []


def test_uv_environment() -> None:
    part = only(
        "export UV_TORCH_BACKEND=cpu UV_PYTHON=3.12 UV_INDEX_URL=https://i.example/simple\n"
        "uv pip install torch"
    )
    assert (part.torch_backend, part.python) == ("cpu", "3.12")
    assert indexes(part) == [("--index-url", "https://i.example/simple")]


def test_files() -> None:
    part = only("cd app\npip install -r requirements.txt -c ../c.txt torch")
    assert [(one.path, one.constraint) for one in part.document.includes] == [
        ("app/requirements.txt", False),
        ("app/../c.txt", True),
    ]
    part = only("uv pip sync requirements.txt")
    assert [one.path for one in part.document.includes] == ["requirements.txt"]


@pytest.mark.parametrize(
    ("script", "python"),
    [
        ("python3.11 -m pip install torch", "3.11"),
        ("pip3.10 install torch", "3.10"),
        ("uv pip install -p 3.12 torch", "3.12"),
        ("uv venv --python 3.13\nuv pip install torch", "3.13"),
        ("conda create -n e python=3.9 -y\nconda activate e\npip install torch", "3.9"),
        ("conda create -n e python=3.9 -y\nconda run -n e pip install torch", "3.9"),
        ("python3.12 -m venv v\nsource v/bin/activate\npip install torch", "3.12"),
        ("pipx install torch --python python3.11", "3.11"),
        ("pip install torch", None),
    ],
)
def test_python(script: str, python: str | None) -> None:
    assert only(script).python == python


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("if x; then\npip install torch\nfi", "branch"),
        ("case $x in a) pip install torch;; esac", "branch"),
        ("for v in 1 2; do pip install torch; done", "loop"),
        ("f() { pip install torch; }", "function f"),
        ("a || pip install torch", "fails"),
        ("[ -f x ] && pip install torch", "test"),
        ("pip install torch $MORE", "MORE"),
    ],
)
def test_what_is_not_certain_says_why(script: str, word: str) -> None:
    uncertain = only(script).uncertain
    assert uncertain is not None
    assert word in uncertain


@pytest.mark.parametrize(
    "script",
    [
        "pip install torch",
        "cd x && pip install torch",
        "(pip install torch)",
        "{ pip install torch; }",
    ],
)
def test_what_is_certain(script: str) -> None:
    assert only(script).uncertain is None


@pytest.mark.parametrize(
    "script",
    [
        "pip install torch==$V",
        "pip install torch==$(cat version)",
        "for v in 1 2; do pip install torch==$v; done",
        "if x; then V=1; else V=2; fi\npip install torch==$V",
        "read V\npip install torch==$V",
    ],
)
def test_what_cannot_be_known_is_a_stand_in(script: str) -> None:
    declaration = only(script).document.declarations[0]
    assert "${" in declaration.specifier
    assert declaration.from_variable
    assert not only(script).document.problems


def test_a_guarded_default_is_known() -> None:
    part = only('if [ -z "$V" ]; then V=2.9.1; fi\npip install torch==$V')
    assert asked(part) == ["torch==2.9.1"]


def test_environments_are_told_apart() -> None:
    found = parts(
        "pip install torch\nsource a/bin/activate\npip install torch\nuv tool install torch\n"
        "conda run -n c pip install torch\nif x; then pip install torch; fi"
    )
    names = [one.environment for one in found]
    assert len(set(names)) == len(names)
    assert names[0] == "script"


def test_a_redirection_that_was_meant_as_a_version() -> None:
    part = only("pip install torch>=2.9 torchvision==0.24.1 && echo")
    assert asked(part) == ["torch", "torchvision==0.24.1"]
    assert [one.message for one in part.slips] == [
        "the shell takes '>=2.9' for a redirection to a file: torch comes in any version; "
        "quote the requirement"
    ]
    assert only("cd x && pip install torch>=2.9").slips
    assert not only("pip install torch > log").slips


def test_where_an_option_may_be_added() -> None:
    for script, after in [
        ("pip install torch==1 && x", "torch==1"),
        ("pip install 'torch' > log", "'torch'"),
        ("uvx --with torch tool --flag", "--with torch"),
        ("uv run --with torch python x.py", "--with torch"),
    ]:
        part = only(script)
        assert part.options_at == script.index(after) + len(after)
    assert only("pipx install torch").options_at is None


def takes_value(help_text: str) -> dict[str, bool]:
    """Return long option → whether it takes a value, from the help of pip or uv."""
    found: dict[str, bool] = {}
    for match in re.finditer(
        r"^ {2,6}(?:-\w(?: <[^>]+>)?, )*(--[a-z][a-z0-9-]*(?:, --[a-z-]+)*)( <[^>]+>)?",
        help_text,
        re.M,
    ):
        for name in match[1].split(", "):
            found[name] = match[2] is not None
    return found


def test_the_table_of_pip_is_that_of_pip() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    known = takes_value(done.stdout)
    assert len(known) > 40
    wrong = {name for name, value in known.items() if value != (name in PIP.values)}
    assert not wrong
    assert {name for name, value in known.items() if not value} <= PIP.flags


@pytest.mark.parametrize(
    ("command", "grammar"),
    [
        ("pip install", UV),
        ("pip sync", UV),
        ("add", UV_ADD),
        ("tool install", UV_TOOL),
        ("run", UV_RUN),
    ],
)
def test_the_table_of_uv_is_that_of_uv(command: str, grammar: Grammar) -> None:
    from uv import find_uv_bin

    done = subprocess.run(
        [find_uv_bin(), *command.split(), "--help"], capture_output=True, text=True, check=True
    )
    known = takes_value(done.stdout)
    assert len(known) > 30
    # ``--script`` takes a file for ``uv add`` and none for ``uv run``.
    wrong = {
        name
        for name, value in known.items()
        if value != (name in grammar.values) and (command, name) != ("run", "--script")
    }
    assert not wrong
