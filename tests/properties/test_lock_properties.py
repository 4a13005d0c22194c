"""Any bytes give a document, in bounded time; cutting and a whole parse agree."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchpin.catalog.store import load_catalog
from torchpin.documents.base import Document, Span
from torchpin.documents.pdm_lock import read_pdm_lock
from torchpin.documents.poetry_lock import read_poetry_lock
from torchpin.documents.pylock import read_pylock
from torchpin.documents.uv_lock import read_uv_lock
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.select.locked import select_locked
from torchpin.select.model import Install

Reader = Callable[[str, bytes], Document]
READERS: tuple[Reader, ...] = (read_uv_lock, read_poetry_lock, read_pdm_lock, read_pylock)
CODES = {"toml", "decode", "binary", "version", "pylock"}
ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("TORCHPIN_CORPUS") or ROOT.parent / "shared" / "corpus")
REAL = [
    (reader, path)
    for reader, folder in zip(
        (read_uv_lock, read_poetry_lock, read_pylock),
        ("uv-lock", "poetry-lock", "pylock"),
        strict=True,
    )
    for path in sorted((CORPUS / folder).glob("*"))
]
HEADS: dict[Reader, str] = {
    read_uv_lock: 'version = 1\nrequires-python = ">=3.10"\n',
    read_poetry_lock: "",
    read_pdm_lock: '[metadata]\nlock_version = "4.5"\n',
    read_pylock: 'lock-version = "1.0"\ncreated-by = "x"\n',
}
TAILS: dict[Reader, str] = {read_poetry_lock: '[metadata]\nlock-version = "2.1"\n'}
TARGET = Target(NodeGroup("nodes", (), (), "linux-x86_64", glibc="2.35"), Python(3, 11))

NAMES = st.sampled_from(
    ("torch", "torchvision", "triton", "demo", "kokoro", "numpy", "", "a\\u0062")
)
SCALARS = st.sampled_from(
    (
        '"2.10.0"',
        '"2.10.0+cu126"',
        '"not a version"',
        "1",
        "true",
        "[]",
        "{}",
        '{ registry = "https://pypi.example/simple" }',
        '{ virtual = "." }',
        '[{ name = "torch" }]',
        '[{ name = "torch", marker = "extra == \'extra-4-demo-cu126\'" }]',
        '[{ name = "demo", marker = "nonsense" }]',
        '["sys_platform == \'linux\'", "("]',
        '[{ url = "https://files.example/torch-2.10.0-cp311-cp311-linux_x86_64.whl" }]',
        '[{ url = "torch-x.whl", hash = 1 }, { file = "torch-1-py3-none-any.whl" }]',
        "1979-05-27",
        '"sys_platform == \\"linux\\""',
    )
)
KEYS = st.sampled_from(
    (
        "version",
        "source",
        "dependencies",
        "optional-dependencies",
        "dev-dependencies",
        "metadata",
        "wheels",
        "sdist",
        "files",
        "markers",
        "marker",
        "groups",
        "index",
        "resolution-markers",
        "optional",
        "requires-python",
        "extras",
    )
)


@st.composite
def lock_texts(draw: st.DrawFn, key: str) -> str:
    """Return the packages of a lock, with values of any type under known keys."""
    blocks = []
    for _ in range(draw(st.integers(0, 4))):
        lines = [f"[[{key}]]", f'name = "{draw(NAMES)}"']
        values = draw(st.dictionaries(KEYS, SCALARS, max_size=6))
        lines += [f"{name} = {value}" for name, value in values.items()]
        if draw(st.booleans()) and "metadata" not in values:
            lines += [f"[{key}.metadata]", f"requires-dist = {draw(SCALARS)}"]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n\n"


def check(document: Document, data: bytes) -> None:
    """Assert what holds of every document of a lock."""
    assert {problem.code for problem in document.problems} <= CODES
    assert (document.lock is None) <= bool(document.problems)
    size = len(document.text)
    if document.text:
        assert document.encode(document.text) == data
    for problem in document.problems:
        assert 0 <= problem.span.start <= problem.span.end <= size
    for package in document.lock.packages if document.lock is not None else ():
        for span in (package.span, package.version_span, package.source_span):
            if span is not None:
                assert 0 <= span.start <= span.end <= size


def select_all(document: Document) -> None:
    """Select from a lock as its own root: anything may come out, nothing may go wrong."""
    install = Install(
        document, None, "uv", (document,), (), (), (), (), lock=document, extras=("gpu", "cu126")
    )
    for selection in select_locked(install, TARGET, load_catalog()).selections:
        assert (selection.status == "selected") == (selection.build is not None)
        assert (selection.status == "none") == (selection.miss is not None)


@pytest.mark.parametrize("reader", READERS)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_a_document(reader: Reader, data: bytes) -> None:
    check(reader("x", data), data)


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_values_are_a_document(reader: Reader, data: st.DataObject) -> None:
    body = data.draw(lock_texts("packages" if reader is read_pylock else "package"))
    text = HEADS[reader] + "\n" + body + TAILS.get(reader, "")
    document = reader("x", text.encode())
    check(document, text.encode())
    select_all(document)
    # A comment takes the form of its tool away from uv.lock; what is read is the same.
    other = reader("x", ("# by hand\n" + text + "# [[package]] [[packages]]\n").encode())
    assert (document.lock is None) == (other.lock is None)
    if document.lock is not None and other.lock is not None:
        strip = [
            [
                p._replace(span=Span(0, 0), version_span=Span(0, 0), source_span=None)
                for p in lock.packages
            ]
            for lock in (document.lock, other.lock)
        ]
        assert strip[0] == strip[1]
        assert document.lock._replace(packages=(), conflicts=()) == other.lock._replace(
            packages=(), conflicts=()
        )


def mutated(data: bytes, random_: random.Random) -> bytes:
    """Return ``data`` with pieces cut out, doubled, moved or overwritten."""
    out = bytearray(data)
    for _ in range(random_.randint(1, 4)):
        if not out:
            break
        at = random_.randrange(len(out))
        piece = random_.randint(1, min(400, len(out)))
        kind = random_.randrange(6)
        if kind == 0:
            del out[at : at + piece]
        elif kind == 1:
            out[at:at] = out[at : at + piece]
        elif kind == 2:
            out[at : at + 1] = bytes([random_.randrange(256)])
        elif kind == 3:
            out[at:at] = random_.choice((b'"""', b"[[package]]\n", b"\r\n", b"[", b"\xff", b"\0"))
        elif kind == 4:
            del out[at:]
        else:
            source = random_.randrange(len(out))
            out[at:at] = out[source : source + piece]
    return bytes(out)


@pytest.mark.skipif(not REAL, reason=f"no corpus at {CORPUS}: set TORCHPIN_CORPUS")
@pytest.mark.parametrize(("reader", "path"), REAL, ids=lambda value: getattr(value, "name", ""))
def test_mutated_real_locks(reader: Reader, path: Path) -> None:
    data = path.read_bytes()
    start = time.process_time()
    reader("x", data)
    plain = time.process_time() - start
    random_ = random.Random(path.name)
    # The head and the blocks of the family are where a change matters: keep them, drop the rest.
    rounds = int(os.environ.get("TORCHPIN_FUZZ_ROUNDS", "10"))
    for _ in range(rounds):
        changed = mutated(data, random_)
        start = time.process_time()
        document = reader("x", changed)
        took = time.process_time() - start
        check(document, changed)
        # A whole parse costs some twenty times a cut; beyond that something would be quadratic.
        assert took < 1 + 100 * plain, (took, plain)
        if document.lock is not None:
            select_all(document)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 100_000,
        "[[package]]\n" * 20_000,
        '[[package]]\nname = "torch"\n' * 20_000,
        'x = "' + "\\" * 200_000,
        "version = 1\n" + "conflicts = [[" * 10_000,
        "\n" * 300_000 + "x",
        'version = 1\n[[package]]\nname = "torch"\nwheels = [\n' + "    { url = 1 },\n" * 20_000,
    ],
    ids=("arrays", "headers", "names", "escapes", "conflicts", "lines", "open"),
)
def test_large_nonsense_takes_bounded_time(reader: Reader, text: str) -> None:
    start = time.process_time()
    check(reader("x", text.encode()), text.encode())
    assert time.process_time() - start < 10
