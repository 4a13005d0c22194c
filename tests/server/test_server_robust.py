"""What an editor may do to ``torchpin server``: odd texts, odd names, odd ends."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types as lsp
from tests.server.editor import FLEET, PATIENCE, Editor, session

from torchpin.cli.extras import install_line

ODD = "# 🔥漢字\t\nnumpy ; '🔥' in '漢'\n# é\ntorch==2.14.1  # 🔥\n"


@pytest.mark.parametrize("newline", ("\n", "\r\n"))
@pytest.mark.parametrize("encoding", ("utf-8", "utf-16", "utf-32"))
def test_positions_in_every_encoding(tmp_path: Path, encoding: str, newline: str) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    text = (
        '[project]\nname = "app"\nversion = "0"\n'
        "dependencies = [\"a; '🔥漢é' != '\t'\", \"torch==2.14.1\"]\n"
    ).replace("\n", newline)

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "pyproject.toml", text)
        found = await editor.judged(uri)
        kernels = next(one for one in found if one.code == "TP201")
        assert editor.words(uri, kernels.range) == "torch==2.14.1"
        said = await editor.hover(uri, "2.14.1")
        assert said is not None
        editor.replace(uri, "2.14.1", "2.7.1")
        assert await editor.judged(uri) == []
        (first, *_) = await editor.complete(uri, "torch==")
        edit = first.text_edit
        assert isinstance(edit, lsp.TextEdit) and editor.words(uri, edit.range) == "2.7.1"

    session(steps, tmp_path, encoding=encoding)


def test_lines_that_end_in_a_carriage_return_alone(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "requirements.txt", "# 🔥\r# \x0c\u2028\rtorch==2.14.1\r")
        (kernels, _) = await editor.judged(uri)
        assert kernels.range.start == lsp.Position(2, 0)
        editor.replace(uri, "2.14.1", "2.7.1")
        assert await editor.judged(uri) == []

    session(steps, tmp_path)


@pytest.mark.parametrize("mark", ("", "\ufeff"))
def test_fixes_in_odd_texts(tmp_path: Path, mark: str) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    text = (
        (mark + "torch==2.14.1  # 🔥\n" + ODD.replace("torch", "torchvision"))
        .replace("\n", "\r\n")
        .replace("torchvision==2.14.1", "torchvision==0.29.1")
    )

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "requirements.txt", text)
        found = await editor.judged(uri)
        assert editor.words(uri, found[0].range) == "torch==2.14.1"
        (action,) = await editor.actions(uri, only=["source.fixAll"])
        editor.apply(action)
        assert editor.texts[uri] == mark + (
            "--extra-index-url https://download.pytorch.org/whl/cu126\r\n" + text.removeprefix(mark)
        ).replace("2.14.1", "2.14.1+cu126").replace("0.29.1", "0.29.1+cu126")
        assert await editor.judged(uri) == []

    session(steps, tmp_path)


def test_an_encoding_that_a_comment_names_speaks_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)

    async def steps(editor: Editor) -> None:
        uri = editor.file(
            tmp_path / "requirements.txt",
            "# -*- coding: latin-1 -*- é\nnumpy  # é🔥\ntorch==2.14.1\n",
        )
        found = await editor.judged(uri)
        assert editor.words(uri, found[0].range) == "torch==2.14.1"

    session(steps, tmp_path)


@pytest.mark.parametrize("name", ("a b", "50%", "é漢🔥", "a#b?c", "[x]", "a+b&c"))
def test_names_of_folders(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "torchpin.toml").write_text(FLEET)
    (folder / "requirements.txt").write_text("-r other.txt\n")
    (folder / "other.txt").write_text("torch==2.14.1\n")

    async def steps(editor: Editor) -> None:
        uri = editor.file(folder / "requirements.txt")
        assert await editor.judged(uri) == []
        other = editor.file(folder / "other.txt")
        # It has no name that tells its kind: it is judged where it is included.
        await editor.until(lambda: other in editor.shown)
        assert "TP201" in editor.codes(other)

    session(steps, folder)


def test_texts_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    (tmp_path / "requirements.txt").write_text("torch==2.7.1\n")

    async def steps(editor: Editor) -> None:
        editor.open("untitled:Untitled-1", "torch==2.14.1\n", "pip-requirements")
        assert [one.code for one in await editor.judged("untitled:Untitled-1")] == [
            "TP201",
            "TP203",
        ]
        (action,) = await editor.actions("untitled:Untitled-1", only=["source.fixAll"])
        editor.apply(action)
        assert await editor.judged("untitled:Untitled-1") == []
        text = '[project]\nname = "a"\nversion = "0"\ndependencies = ["torch==2.14.1"]\n'
        editor.open("untitled:Untitled-2", text, "toml")
        assert "TP201" in [one.code for one in await editor.judged("untitled:Untitled-2")]
        editor.open("untitled:Untitled-3", "Dear diary, torch==2.14.1\n", "markdown")
        editor.open("git:/x/requirements.txt?{}", "torch==2.14.1\n", "pip-requirements")
        assert await editor.hover("untitled:Untitled-3", "torch") is None
        assert "untitled:Untitled-3" not in editor.shown

    session(steps, tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["requirements.txt", "torchpin.toml"]


def test_a_file_outside_of_every_folder(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    (tmp_path / "requirements-other.txt").write_text("torch==2.14.1\n")
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.14.1\n")

    async def steps(editor: Editor) -> None:
        uri = editor.file(path)
        assert [one.code for one in await editor.judged(uri)] == ["TP201", "TP203"]
        assert list(editor.shown) == [uri]

    session(steps)


def test_half_written_texts_are_no_noise(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    text = (
        '[project]\nname = "app"\nversion = "0"\nrequires-python = "==3.11.*"\n'
        'dependencies = [\n  "torch==2.7.1",\n]\n\n[tool.uv]\npackage = false\n\n'
        '[[tool.uv.index]]\nname = "cu126"\nurl = "https://download.pytorch.org/whl/cu126"\n'
        'explicit = true\n\n[tool.uv.sources]\ntorch = { index = "cu126" }\n'
    )

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "pyproject.toml", "")
        for end in range(0, len(text), 7):
            editor.change(uri, text[:end])
            for one in await editor.judged(uri):  # nothing is made of what is left open
                assert one.code == "TP001" or "2.7.1" in text[:end], (text[:end], one)
        editor.change(uri, text)
        assert [one.code for one in await editor.judged(uri) if one.severity == 1] == []
        for end in (text.index("2.7.1") + 5, text.index("[[tool") + 4, len(text) - 3):
            editor.change(uri, text[:end])
            assert {one.code for one in await editor.judged(uri)} <= {"TP001"}
        other = editor.file(tmp_path / "requirements.txt", "")
        for end in range(len("torch==2.14.1")):
            editor.change(other, "numpy\n" + "torch==2.14.1"[:end])
            await editor.judged(other)
        editor.change(other, "torch ==\n")
        assert [one.code for one in await editor.judged(other)] in ([], ["TP001"])

    session(steps, tmp_path, debounce=0)


def test_hostile_texts_end_nothing(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    texts = (
        "\0torch==2.14.1\n",
        "torch==2.14.1\x0c\x85\u2028torchvision==0.29.1\n",
        "torch @ http://[::1\n-r " + "a" * 5000 + "\n",
        "-r requirements.txt\n",
        "torch==" + "9" * 5000 + "\n",
        "\ufeff\ufeff",
        "--index-url https://user:secret@host.example/whl/cu130\ntorch==2.14.1+cu130\n",
    )

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "requirements.txt", "")
        for text in texts:
            editor.change(uri, text)
            found = await editor.judged(uri)
            assert not any("secret" in one.message for one in found)
            await editor.actions(uri)
        beyond = lsp.Position(10_000, 10_000)
        there = lsp.TextDocumentIdentifier(uri)
        client = editor.client
        assert (await client.text_document_hover_async(lsp.HoverParams(there, beyond))) is None
        await client.text_document_completion_async(lsp.CompletionParams(there, beyond))
        nowhere = lsp.TextDocumentIdentifier("file:///nowhere/requirements.txt")
        assert (await client.text_document_hover_async(lsp.HoverParams(nowhere, beyond))) is None
        editor.change(uri, "torch==2.7.1\n")
        assert await editor.judged(uri) == []

    session(steps, tmp_path)


def test_a_huge_text(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    text = "# a long line of nothing at all, again and again\n" * 50_000 + "torch==2.14.1\n"

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "requirements.txt", text)
        assert [one.code for one in await editor.judged(uri)] == ["TP201", "TP203"]
        editor.replace(uri, "2.14.1", "2.7.1")
        assert await editor.judged(uri) == []
        editor.change(uri, "# x\n" * (9 * 1024 * 1024))
        assert await editor.hover(uri, "x") is None

    session(steps, tmp_path)


def test_a_request_may_be_cancelled(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "requirements.txt", "torch==2.14.1\n")
        client = editor.client
        asked = lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), lsp.Position(0, 7))
        waiting = client.text_document_completion(asked)
        (number,) = [
            one for one, some in client.protocol._request_futures.items() if some is waiting
        ]
        client.protocol.notify("$/cancelRequest", lsp.CancelParams(id=number))
        with pytest.raises(Exception, match="cancel"):
            await asyncio.wait_for(asyncio.wrap_future(waiting), PATIENCE)
        assert await editor.complete(uri, "torch==")

    session(steps, tmp_path)


def test_links_lead_to_the_open_text(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    (real / "torchpin.toml").write_text(FLEET)
    (real / "requirements.txt").write_text("torch==2.7.1\n")
    link.symlink_to(real, target_is_directory=True)

    async def steps(editor: Editor) -> None:
        uri = editor.file(link / "requirements.txt", "torch==2.14.1\n")
        assert [one.code for one in await editor.judged(uri)] == ["TP201", "TP203"]
        assert list(editor.shown) == [uri]

    session(steps, real)


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "torchpin", "server", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def framed(**message: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


HELLO = framed(id=1, method="initialize", params={"capabilities": {}, "processId": None})


@pytest.mark.parametrize(
    ("messages", "code"),
    (
        ((HELLO, framed(id=2, method="shutdown"), framed(method="exit")), 0),
        ((HELLO, framed(method="exit")), 1),
        ((HELLO,), 1),  # the editor is gone
        ((b"what is this\r\n",), 1),
    ),
)
def test_how_it_ends(messages: tuple[bytes, ...], code: int) -> None:
    done = start()
    out, said = done.communicate(b"".join(messages), timeout=PATIENCE)
    assert done.returncode == code, said
    rest = out
    while rest:  # messages and nothing else
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = int(head.split(b"Content-Length:")[1].split(b"\r\n")[0])
        assert json.loads(rest[:length])["jsonrpc"] == "2.0"
        rest = rest[length:]


def test_over_a_socket(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = start("--tcp", f"127.0.0.1:{port}")

    async def run() -> None:
        editor = Editor()
        for _ in range(600):
            try:
                await editor.client.start_tcp("127.0.0.1", port)
                break
            except OSError:
                assert server.poll() is None
                await asyncio.sleep(0.1)
        await editor.greet(tmp_path)
        uri = editor.file(tmp_path / "requirements.txt", "torch==2.14.1\n")
        assert len(await editor.judged(uri)) == 2
        await editor.client.shutdown_async(None)
        editor.client.exit(None)
        await editor.leave()

    try:
        asyncio.run(run())
        assert server.wait(PATIENCE) == 0
    finally:
        if server.poll() is None:
            server.kill()
        server.communicate()


def test_the_fleet_of_the_command_line(tmp_path: Path) -> None:
    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "requirements.txt", "torch==2.14.1\n")
        assert "TP201" in [one.code for one in await editor.judged(uri)]

    session(steps, tmp_path, words=("--gpu", "V100", "--python", "3.11"))


def test_without_a_fleet_nothing_is_said_of_hardware(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "requirements.txt", "torch==2.14.1\n")
        assert await editor.judged(uri) == []
        said = await editor.hover(uri, "torch")
        assert said is not None and "No fleet is declared" in said and "sm_75" in said
        found = await editor.complete(uri, "torch==")
        assert found[0].label == "2.15.0" and not (found[0].detail or "").startswith("✓")

    session(steps, tmp_path)


@pytest.mark.parametrize("missing", ("pygls", "lsprotocol"))
def test_without_pygls_the_command_to_install_it_is_told(missing: str) -> None:
    probe = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from torchpin.cli.main import guarded\n"
        "sys.exit(guarded(['server']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 2
    assert "the language server needs pygls" in done.stderr
    assert f"run: {install_line('server')}" in done.stderr
    assert "[server]" in install_line("server")
    assert done.stdout == ""


@pytest.mark.parametrize("address", ("9257", "host:", ":1", "host:99999999", "host:x"))
def test_a_wrong_address_is_told(address: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "server", "--tcp", address],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "not HOST:PORT" in done.stderr
