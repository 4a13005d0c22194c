"""Any text at all: files of commands are read without a traceback, in time, spans in order."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchpin.documents.base import Document, Span
from torchpin.documents.dockerfile import read_dockerfile
from torchpin.documents.justfile import read_justfile
from torchpin.documents.makefile import read_makefile
from torchpin.documents.scripts import read_shell

READERS: dict[str, Callable[[str, bytes], Document]] = {
    "Dockerfile": read_dockerfile,
    "Makefile": read_makefile,
    "justfile": read_justfile,
    "x.sh": read_shell,
}
WORDS = [
    *("pip install ", "uv pip install ", "python -m pip install ", "uvx --with ", "pipx install "),
    *(
        "torch==2.9.1",
        "torch>=2",
        "torchvision",
        "torch==$V",
        "${V:-2.9.1}",
        "$(V)",
        "{{V}}",
        "+cu126",
    ),
    *("--index-url ", "--extra-index-url=", "-f ", "-r ", "https://download.pytorch.org/whl/cu126"),
    *("FROM python:3.11\n", "FROM base AS b\n", "RUN ", "ARG V=2.9.1\n", "ENV A=b\n", "COPY a b\n"),
    *(
        'RUN ["pip", "install", "torch"]\n',
        "<<EOF\n",
        "EOF\n",
        "WORKDIR /a\n",
        "--mount=type=cache ",
    ),
    *(
        "V=2.9.1\n",
        "export ",
        "V ?= 2\n",
        "V := 1\n",
        "all: dep\n\t",
        "v := '1'\nr:\n  ",
        "ifeq (a,b)\n",
    ),
    *(
        "if x; then ",
        "; fi\n",
        "for v in a; do ",
        "; done\n",
        "case x in a) ",
        ";; esac\n",
        "f() { ",
        "}\n",
    ),
    *(
        "\\\n",
        "\n",
        "\r\n",
        "\t",
        " ",
        "#",
        "'",
        '"',
        "`",
        "$",
        "${",
        "$((",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
    ),
    *(
        "&&",
        "||",
        "|",
        ";",
        ">",
        ">=",
        "<",
        "<<",
        "\\",
        "=",
        "==",
        "é",
        "\u2028",
        "\x0b",
        "~",
        "*",
        "?",
    ),
]
texts = st.one_of(st.lists(st.sampled_from(WORDS), max_size=40).map("".join), st.text(max_size=200))


def check(document: Document) -> None:
    text = document.text
    size = len(text)
    assert not document.problems or not text
    names = [part.name for part in document.parts]
    assert len(set(names)) == len(names)
    for part in document.parts:
        assert 0 <= part.span.start <= part.span.end <= size
        assert part.options_at is None or 0 <= part.options_at <= size
        inner = part.document
        assert inner.text is text
        assert inner.kind == "part"
        spans: list[Span] = [one.span for one in inner.declarations]
        spans += [one.span for one in inner.indexes]
        spans += [one.span for one in inner.includes]
        spans += [one.span for one in inner.options]
        spans += [one.span for one in (*inner.problems, *part.slips)]
        spans += [one.line_span for one in inner.declarations]
        for span in spans:
            assert 0 <= span.start <= span.end <= size
        for declaration in inner.declarations:
            place = declaration.specifier_span
            if place is not None and not declaration.from_variable:
                assert text[place.start : place.end] == declaration.specifier
        for line in inner.indexes:
            if not line.from_variable:
                assert text[line.url_span.start : line.url_span.end] == line.url
        for _, word in part.words:
            for atom in word:
                if atom.plain:
                    assert text[atom.start : atom.end] == atom.value
                if atom.home is not None:
                    assert text[atom.home.start : atom.home.end] == atom.value


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=texts)
def test_any_text(name: str, text: str) -> None:
    document = READERS[name](name, text.encode("utf-8", "surrogatepass"))
    check(document)
    if not document.problems:
        assert document.encode(document.text) == text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes(name: str, data: bytes) -> None:
    document = READERS[name](name, b"pip install torch\n" + data)
    check(document)


LONG = {
    "brackets": "pip install " + "$(" * 20_000,
    "braces": "pip install " + "${A:-" * 20_000,
    "quotes": "pip install " + "\"'" * 20_000,
    "blocks": "{ " * 20_000 + "pip install torch",
    "ifs": "if x; then\n" * 3_000 + "pip install torch",
    "doubling": "A=xxxxxxxxxx\n" + "A=$A$A\n" * 200 + "pip install torch==$A",
    "doubling-make": "A=xxxxxxxxxx\n"
    + "".join(f"A{i}=$(A{i - 1})$(A{i - 1})\n" for i in range(1, 60))
    + "t:\n\tpip install torch==$(A59)",
    "doubling-docker": "FROM a\nARG A=xxxxxxxxxx\n" + "ARG A=$A$A\n" * 200 + "RUN pip install $A",
    "commands": "pip install torch==2.9.1\n" * 4_000,
    "stages": "FROM python:3.11\nRUN pip install torch==2.9.1\n" * 2_000,
    "words": "pip install " + "torch==2.9.1 " * 20_000,
    "continued": "RUN pip install \\\n" * 20_000,
    "targets": "a:\n\tpip install torch\n" * 3_000,
    "heredocs": "FROM a\n" + "RUN <<A <<B <<C pip\n" * 2_000,
    "backslashes": "pip install " + "\\" * 50_000,
    "equals": "pip install " + "=" * 50_000,
    "dollars": "pip install " + "$" * 50_000,
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("name", READERS)
def test_long_texts_take_seconds_at_most(name: str, kind: str) -> None:
    text = LONG[kind]
    start = time.perf_counter()
    document = READERS[name](name, text.encode())
    assert time.perf_counter() - start < 8
    assert all(
        len(one.specifier) <= 200_000 for p in document.parts for one in p.document.declarations
    )
