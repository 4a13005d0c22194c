"""An editor for tests: a real client of the protocol over stdio, which holds texts as editors do.

Positions are worked out here by bytes, in another way than the server does.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

FLEET = """\
ignore = ["TP6"]

[fleet.training]
gpus = ["Tesla V100"]
driver = "550.54.15"
python = "3.11"
platform = "linux-x86_64"
"""
WIDTH = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
PATIENCE = 60.0
"""Seconds after which a test gives up; none waits for so long."""


def index(text: str, place: lsp.Position, encoding: str) -> int:
    """Return the offset of a position."""
    codec = encoding if encoding == "utf-8" else f"{encoding}-le"
    ends = [match.end() for match in re.finditer(r"\r\n|\r|\n", text)]
    start = ([0, *ends])[place.line]
    line = re.split(r"[\r\n]", text[start:], maxsplit=1)[0]
    data = line.encode(codec)[: place.character * WIDTH[encoding]]
    return start + len(data.decode(codec))


def position(text: str, offset: int, encoding: str) -> lsp.Position:
    """Return the position of an offset."""
    codec = encoding if encoding == "utf-8" else f"{encoding}-le"
    before = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text[:offset]))]
    units = len(text[before[-1] : offset].encode(codec)) // WIDTH[encoding]
    return lsp.Position(len(before) - 1, units)


def applied(text: str, edits: list[lsp.TextEdit], encoding: str) -> str:
    """Return a text after some edits, all of which speak of the text as it was."""
    spans = [
        (index(text, one.range.start, encoding), index(text, one.range.end, encoding), number, one)
        for number, one in enumerate(edits)
    ]
    ordered = sorted(spans, key=lambda one: one[:3])
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(ordered))
    for start, end, _, edit in reversed(ordered):
        text = text[:start] + edit.new_text + text[end:]
    return text


class Editor:
    """One editor with one server."""

    def __init__(self, encoding: str = "utf-16", **options: Any) -> None:
        self.client = LanguageClient("tests", "1")
        self.encoding = encoding
        self.options = options
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.shown: dict[str, lsp.PublishDiagnosticsParams] = {}
        self.log: list[str] = []
        self.watching: list[lsp.Registration] = []
        self.news = asyncio.Event()
        feature: Any = self.client.feature

        def published(params: lsp.PublishDiagnosticsParams) -> None:
            self.shown[params.uri] = params
            self.news.set()

        def logged(params: lsp.LogMessageParams) -> None:
            self.log.append(params.message)
            self.news.set()

        def registered(params: lsp.RegistrationParams) -> None:
            self.watching += params.registrations
            self.news.set()

        feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published)
        feature(lsp.WINDOW_LOG_MESSAGE)(logged)
        feature(lsp.CLIENT_REGISTER_CAPABILITY)(registered)

    async def start(self, *folders: Path, words: tuple[str, ...] = ()) -> lsp.InitializeResult:
        """Start the server and greet it."""
        env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        arguments = ("-m", "torchpin", "server", *words)
        await self.client.start_io(sys.executable, *arguments, env=env)
        return await self.greet(*folders)

    async def greet(self, *folders: Path) -> lsp.InitializeResult:
        """Send the first messages."""
        general = lsp.GeneralClientCapabilities(
            position_encodings=[lsp.PositionEncodingKind(self.encoding)]
        )
        workspace = lsp.WorkspaceClientCapabilities(
            workspace_edit=lsp.WorkspaceEditClientCapabilities(
                document_changes=self.options.get("document_changes", True)
            ),
            did_change_watched_files=lsp.DidChangeWatchedFilesClientCapabilities(
                dynamic_registration=True
            ),
            workspace_folders=True,
        )
        answer = await self.client.initialize_async(
            lsp.InitializeParams(
                capabilities=lsp.ClientCapabilities(
                    workspace=workspace, general=None if self.encoding == "utf-16" else general
                ),
                workspace_folders=[lsp.WorkspaceFolder(one.as_uri(), one.name) for one in folders]
                or None,
                initialization_options={"debounce": self.options.get("debounce", 20)},
            )
        )
        self.client.initialized(lsp.InitializedParams())
        return answer

    async def stop(self) -> int:
        """End the server as the protocol says, and return its exit code."""
        await asyncio.wait_for(self.client.shutdown_async(None), PATIENCE)
        self.client.exit(None)
        return await self.ended()

    async def ended(self) -> int:
        """Wait until the server has ended, and return its exit code."""
        server = self.client._server
        assert server is not None
        code = await asyncio.wait_for(server.wait(), PATIENCE)
        await self.leave()
        return code

    async def leave(self) -> None:
        """Let the client go, once the server has ended."""
        stop: Any = self.client.stop
        await stop()

    def open(self, uri: str, text: str, language: str = "plaintext") -> None:
        """Open a text."""
        self.texts[uri], self.versions[uri] = text, 1
        self.client.text_document_did_open(
            lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, language, 1, text))
        )

    def file(self, path: Path, text: str | None = None) -> str:
        """Open a file, with a text of its own or that on disk, and return its URI."""
        self.open(path.as_uri(), path.read_bytes().decode() if text is None else text)
        return path.as_uri()

    def change(self, uri: str, text: str) -> None:
        """Put another text in place of one, as one whole."""
        self.texts[uri] = text
        self.versions[uri] += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.versions[uri], uri),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def replace(self, uri: str, old: str, new: str) -> None:
        """Replace a part of a text, as one who types does."""
        text = self.texts[uri]
        at = text.index(old)
        place = lsp.Range(
            position(text, at, self.encoding), position(text, at + len(old), self.encoding)
        )
        self.texts[uri] = text[:at] + new + text[at + len(old) :]
        self.versions[uri] += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.versions[uri], uri),
                [lsp.TextDocumentContentChangePartial(place, new)],
            )
        )

    def close(self, uri: str) -> None:
        """Close a text."""
        self.client.text_document_did_close(
            lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri))
        )

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds."""

        async def wait() -> None:
            while not holds():
                self.news.clear()
                await self.news.wait()

        try:
            await asyncio.wait_for(wait(), PATIENCE)
        except asyncio.TimeoutError:
            raise AssertionError(
                f"it never came; shown: { {k: self.codes(k) for k in self.shown} }, log {self.log}"
            ) from None

    def codes(self, uri: str) -> list[str]:
        """Return the codes of what is shown of a file."""
        return [str(one.code) for one in self.shown[uri].diagnostics]

    async def judged(self, uri: str) -> list[lsp.Diagnostic]:
        """Return the diagnostics of the text as it stands."""
        await self.until(
            lambda: uri in self.shown and self.shown[uri].version == self.versions[uri]
        )
        return list(self.shown[uri].diagnostics)

    def words(self, uri: str, place: lsp.Range) -> str:
        """Return the text of a range."""
        text = self.texts[uri]
        start = index(text, place.start, self.encoding)
        return text[start : index(text, place.end, self.encoding)]

    def at(self, uri: str, words: str, *, behind: bool = False) -> lsp.Position:
        """Return where some words stand in a text, or end."""
        offset = self.texts[uri].index(words) + (len(words) if behind else 0)
        return position(self.texts[uri], offset, self.encoding)

    async def actions(
        self, uri: str, words: str = "", only: list[str] | None = None
    ) -> list[lsp.CodeAction]:
        """Return the actions at some words, or in the whole text."""
        end = position(self.texts[uri], len(self.texts[uri]), self.encoding)
        place = lsp.Range(lsp.Position(0, 0), end)
        if words:
            place = lsp.Range(self.at(uri, words), self.at(uri, words, behind=True))
        found = await self.client.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(uri),
                place,
                lsp.CodeActionContext([], only=only),
            )
        )
        actions = [one for one in found or () if isinstance(one, lsp.CodeAction)]
        assert len(actions) == len(found or ())
        return actions

    def apply(self, action: lsp.CodeAction) -> None:
        """Apply the edit of an action to the open texts, as an editor does."""
        assert action.edit is not None
        edits: dict[str, list[lsp.TextEdit]] = {}
        if action.edit.document_changes is not None:
            for change in action.edit.document_changes:
                assert isinstance(change, lsp.TextDocumentEdit)
                uri = change.text_document.uri
                assert change.text_document.version == self.versions.get(uri)
                edits[uri] = [one for one in change.edits if isinstance(one, lsp.TextEdit)]
        else:
            assert action.edit.changes is not None
            edits = {uri: list(some) for uri, some in action.edit.changes.items()}
        for uri, some in edits.items():
            self.change(uri, applied(self.texts[uri], some, self.encoding))

    async def hover(self, uri: str, words: str) -> str | None:
        """Return what is shown at some words."""
        found = await self.client.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(uri), self.at(uri, words))
        )
        if found is None:
            return None
        assert isinstance(found.contents, lsp.MarkupContent)
        return found.contents.value

    async def complete(self, uri: str, words: str) -> list[lsp.CompletionItem]:
        """Return what may be written behind some words."""
        found = await self.client.text_document_completion_async(
            lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), self.at(uri, words, behind=True))
        )
        if found is None:
            return []
        assert isinstance(found, lsp.CompletionList)
        return list(found.items)


def session(
    steps: Callable[[Editor], Coroutine[Any, Any, None]],
    *folders: Path,
    words: tuple[str, ...] = (),
    **options: Any,
) -> None:
    """Run some steps in an editor; the server must end well, and say nothing odd."""

    async def run() -> None:
        editor = Editor(**options)
        await editor.start(*folders, words=words)
        server = editor.client._server
        assert server is not None and server.stderr is not None
        try:
            await asyncio.wait_for(steps(editor), 4 * PATIENCE)
            assert await editor.stop() == 0
        finally:
            if server.returncode is None:
                server.kill()
                await server.wait()
        said = (await server.stderr.read()).decode()
        assert "Traceback" not in said and "Error" not in said, said
        assert not any("cannot judge" in one for one in editor.log), editor.log

    asyncio.run(run())
