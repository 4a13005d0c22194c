"""What comes over the wire of ``torchpin server`` that is not as it should be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

from tests.server.editor import FLEET, PATIENCE

HOVER = {"textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}}


def framed(*, header: str = "Content-Length", **message: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"%s: %d\r\n\r\n%s" % (header.encode(), len(body), body)


HELLO = framed(id=1, method="initialize", params={"capabilities": {}, "processId": None})
BYE = framed(id=99, method="shutdown") + framed(method="exit")


def told(*messages: bytes) -> tuple[int, dict[Any, Any], list[Any]]:
    """Return the exit code, the answers by their number, and what else the server said."""
    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "server"],
        input=b"".join(messages),
        capture_output=True,
        timeout=PATIENCE,
    )
    answers, rest, others = {}, done.stdout, []
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = int(head.split(b"Content-Length:")[1].split(b"\r\n")[0])
        message = json.loads(rest[:length])
        if "id" in message and "method" not in message:
            assert message["id"] not in answers
            answers[message["id"]] = message
        else:
            others.append(message)
        rest = rest[length:]
    return done.returncode, answers, others


@pytest.mark.parametrize(
    "wrong",
    (
        b"Content-Length: abc\r\n\r\n{}",
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: 999999999999999\r\n\r\n{}",
        b'Content-Length: 5\r\n\r\n{"a": "b and more"}',
        b"hello\r\n\r\n",
        framed(id=7, method="textDocument/hover"),
        b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
    ),
    ids=("word", "negative", "huge", "short", "none", "no parameters", "deep"),
)
def test_what_is_wrong_once_swallows_nothing_else(wrong: bytes) -> None:
    code, answers, _ = told(HELLO, wrong, framed(id=2, method="what/ever"), BYE)
    assert code == 0
    assert answers[2]["error"]["code"] == -32601  # method not found
    assert answers[99]["result"] is None


def test_names_of_header_fields_count_in_any_case() -> None:
    other = framed(header="content-length", id=2, method="textDocument/hover", params=HOVER)
    code, answers, _ = told(HELLO, other, BYE)
    assert (code, answers[2]["result"]) == (0, None)


def test_every_request_has_an_answer() -> None:
    code, answers, _ = told(
        framed(id=10, method="textDocument/hover", params=HOVER),
        framed(method="textDocument/didOpen", params={}),
        HELLO,
        framed(id=11, method="initialize", params={"capabilities": {}, "processId": None}),
        framed(id=12, method="textDocument/hover", params={}),
        framed(id="x", method="textDocument/codeAction", params={"textDocument": 5}),
        framed(id=13, method="shutdown"),
        framed(id=14, method="textDocument/hover", params=HOVER),
        framed(id=15, method="shutdown"),
        framed(method="exit"),
    )
    assert code == 0
    codes = {number: one.get("error", {}).get("code") for number, one in answers.items()}
    assert codes.pop("x") < 0 and codes.pop(12) < 0
    assert codes == {10: -32002, 1: None, 11: -32600, 13: None, 14: -32600, 15: -32600}


@pytest.mark.parametrize(
    "uri", ("file:///\ud800/requirements.txt", "untitled:\ud800.txt", "untitled:a/..")
)
def test_an_odd_name_keeps_no_other_text_from_being_judged(tmp_path: Path, uri: str) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)

    def opened(name: str) -> bytes:
        text = {"uri": name, "languageId": "plaintext", "version": 1, "text": "torch==2.14.1\n"}
        return framed(method="textDocument/didOpen", params={"textDocument": text})

    good = (tmp_path / "requirements.txt").as_uri()
    asked = {"textDocument": {"uri": good}, "position": {"line": 0, "character": 1}}
    process = subprocess.Popen(
        [sys.executable, "-m", "torchpin", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(HELLO + opened(uri) + opened(good))
        process.stdin.write(framed(id=2, method="textDocument/hover", params=asked))
        process.stdin.flush()
        answer = None
        while answer is None:
            length = int(process.stdout.readline().split(b":")[1])
            while process.stdout.readline().strip():
                pass
            message = json.loads(process.stdout.read(length))
            answer = message if message.get("id") == 2 else None
        assert "V100" in answer["result"]["contents"]["value"]
        process.communicate(BYE, timeout=PATIENCE)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
