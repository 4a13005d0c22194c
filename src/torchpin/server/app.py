"""The server on its wire: messages of the Language Server Protocol to ``State`` and back.

The protocol's own words (types, framing, capabilities) are pygls's; texts are kept here, since
lines end in the protocol otherwise than in Python.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import Any, BinaryIO, cast

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter, lsp_method

from torchpin import __version__, engine
from torchpin.fleet.model import Fleet
from torchpin.server.actions import FIX_ALL, actions
from torchpin.server.analysis import Analysis
from torchpin.server.buffers import Buffer, changed, opened
from torchpin.server.completion import TRIGGERS, completion
from torchpin.server.diagnostics import Places
from torchpin.server.hover import hover
from torchpin.server.positions import Lines
from torchpin.server.state import State
from torchpin.server.uris import path_of
from torchpin.server.wire import Answering, Input

WATCHED = (
    "**/*.{toml,lock,txt,in,cfg,ini,yml,yaml,sh,mk,py}",
    "**/{Dockerfile,Containerfile,Makefile,justfile,Pipfile}*",
    "**/*baseline*.json",
)
"""Files on disk whose changes the client tells of."""
OPTIONS = ("debounce",)
"""What ``initializationOptions`` may hold."""


class Protocol(Answering):
    """The protocol, with texts that the server keeps itself."""

    @property
    def torchpin(self) -> Server:
        """The server that the messages are for."""
        return cast("Server", self._server)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: lsp.DidOpenTextDocumentParams) -> None:
        """Take in a text."""
        self.torchpin.did_open(params.text_document)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: lsp.DidChangeTextDocumentParams) -> None:
        """Take in changes of a text."""
        self.torchpin.did_change(params)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: lsp.DidCloseTextDocumentParams) -> None:
        """Forget a text."""
        self.torchpin.state.drop(params.text_document.uri)


class Server(LanguageServer):
    """The language server; ``State`` does the work."""

    def __init__(self, options: engine.Options, fixed: Fleet | None) -> None:
        super().__init__(
            "torchpin",
            __version__,
            protocol_cls=Protocol,
            converter_factory=default_converter,
            max_workers=2,
        )
        self.state = State(options, fixed, self.show, self.tell)
        _register(self)

    def show(self, uri: str, version: int | None, some: list[lsp.Diagnostic]) -> None:
        """Send the diagnostics of a file."""
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, diagnostics=some, version=version)
        )

    def tell(self, text: str) -> None:
        """Write to the log of the client."""
        self.window_log_message(lsp.LogMessageParams(type=lsp.MessageType.Warning, message=text))

    def folder(self) -> str:
        """Return where a text without a file is taken to lie."""
        return self.state.folders[0] if self.state.folders else os.getcwd()

    def did_open(self, text: lsp.TextDocumentItem) -> None:
        """Take in a text that was opened."""
        buffer = opened(text.uri, text.language_id, text.version, text.text, self.folder())
        self.state.put(buffer, at_once=True)

    def did_change(self, params: lsp.DidChangeTextDocumentParams) -> None:
        """Take in changes of a text."""
        text = params.text_document
        buffer = self.state.buffers.get(text.uri)
        if buffer is None:
            self.tell(f"a change of a text that is not open: {text.uri}")
            return
        self.state.put(changed(buffer, params.content_changes, text.version, self.state.encoding))

    def took_folders(self) -> None:
        """Take in the folders of the workspace."""
        uris = [*self.workspace.folders]
        if not uris and self.workspace.root_uri:
            uris = [self.workspace.root_uri]
        paths = [path for path in map(path_of, uris) if path is not None]
        self.state.moved(tuple(os.path.normpath(path) for path in paths))

    def versions(self) -> bool:
        """Tell whether the client takes edits of texts in their versions."""
        workspace = self.client_capabilities.workspace
        edit = workspace.workspace_edit if workspace is not None else None
        return bool(edit is not None and edit.document_changes)

    async def analysed(self, uri: str) -> tuple[Buffer, Analysis] | None:
        """Return an open text and its analysis as it stands; None where it is not judged."""
        buffer = self.state.buffers.get(uri)
        if buffer is None or buffer.kind is None:
            return None
        return buffer, await self.state.fresh(self.state.unit(buffer))


def _register(server: Server) -> None:
    """Register what the server answers."""

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        state = server.state
        state.encoding = str(
            getattr(server.workspace.position_encoding, "value", None)
            or server.workspace.position_encoding
            or "utf-16"
        )
        _settings(server, params.initialization_options)
        server.took_folders()

    @server.feature(lsp.INITIALIZED)
    def initialized(_: lsp.InitializedParams) -> None:
        _watch(server)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(_: lsp.DidChangeWorkspaceFoldersParams) -> None:
        server.took_folders()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: lsp.DidChangeWatchedFilesParams) -> None:
        paths = (path_of(one.uri) for one in params.changes)
        server.state.saved(path for path in paths if path is not None)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(_: lsp.DidChangeConfigurationParams) -> None:
        """The settings of torchpin lie in its profile, not in those of the editor."""

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is not None:
            server.state.saved([path])

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, FIX_ALL]),
    )
    async def code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
        found = await server.analysed(params.text_document.uri)
        if found is None:
            return None
        only = params.context.only
        return await server.state.work(
            lambda: actions(
                found[1],
                found[0].path,
                params.range,
                [str(getattr(one, "value", one)) for one in only] if only else None,
                server.state.encoding,
                versions=server.versions(),
            )
        )

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        found = await server.analysed(params.text_document.uri)
        if found is None:
            return None
        return await server.state.work(_hover, server, *found, params.position)

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=TRIGGERS)
    )
    async def completed(params: lsp.CompletionParams) -> lsp.CompletionList | None:
        found = await server.analysed(params.text_document.uri)
        if found is None:
            return None
        return await server.state.work(_complete, server, *found, params.position)


def _hover(
    server: Server, buffer: Buffer, analysis: Analysis, place: lsp.Position
) -> lsp.Hover | None:
    places = Places(analysis, server.state.encoding)
    lines = places.lines(buffer.path)
    text = hover(analysis, buffer.path, lines.offset(place)) if lines is not None else None
    if text is None:
        return None
    return lsp.Hover(
        lsp.MarkupContent(lsp.MarkupKind.Markdown, text.markdown),
        places.range(buffer.path, *text.span),
    )


def _complete(
    server: Server, buffer: Buffer, analysis: Analysis, place: lsp.Position
) -> lsp.CompletionList | None:
    lines = Lines(buffer.text, server.state.encoding)
    return completion(analysis, buffer.path, lines, place, server.state.fits(analysis))


def _settings(server: Server, given: Any) -> None:
    """Take in ``initializationOptions``; what is unknown there is told, and passed over."""
    if not isinstance(given, dict):
        return
    for key, value in given.items():
        if key == "debounce" and isinstance(value, (int, float)) and 0 <= value <= 10_000:
            server.state.delay = value / 1000
        else:
            server.tell(f"initializationOptions: {key!r} is unknown or wrong: {OPTIONS} are known")


def _watch(server: Server) -> None:
    """Ask the client to tell of changes on disk, if it can be asked."""
    workspace = server.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace is not None else None
    if watching is None or not watching.dynamic_registration:
        return
    server.client_register_capability(
        lsp.RegistrationParams(
            [
                lsp.Registration(
                    "torchpin-files",
                    lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES,
                    lsp.DidChangeWatchedFilesRegistrationOptions(
                        [lsp.FileSystemWatcher(pattern) for pattern in WATCHED]
                    ),
                )
            ]
        )
    )


def serve(options: engine.Options, fixed: Fleet | None, address: tuple[str, int] | None) -> int:
    """Serve one client on standard input and output, or on a socket, until it ends the server.

    Returns the exit code that the protocol asks for: 0 if the client asked to shut down before, 1
    otherwise. Nothing but messages is written to standard output; the log goes to standard error.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="torchpin: %(message)s")
    server = Server(options, fixed)
    try:
        if address is not None:
            server.start_tcp(*address)
        else:
            sys.stdout.flush()
            with os.fdopen(os.dup(1), "wb") as messages:
                os.dup2(2, 1)  # what is printed by mistake goes to the log
                server.start_io(cast(BinaryIO, Input(sys.stdin.buffer)), messages)
    except (SystemExit, asyncio.CancelledError):  # how pygls ends
        pass
    finally:
        server.state.close()
    return 0 if cast(Protocol, server.protocol).shut else 1
