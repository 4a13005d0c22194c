"""What the options of an install command and its environment choose: indexes, files, versions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchpin.documents.atoms import Word, cut, span_of, text_of
from torchpin.documents.base import Document, Include, IndexLine, OptionText, Span
from torchpin.documents.command_options import Option
from torchpin.documents.command_words import (
    in_pieces,
    is_true,
    platform_in,
    python_in,
    split_values,
)
from torchpin.documents.shell_commands import Command

_UPGRADES = frozenset(
    (
        *("--upgrade", "-U", "--force-reinstall", "--ignore-installed", "-I"),
        *("--reinstall", "--exact", "--upgrade-package"),
    )
)


class Choices:
    """Turns the options of one command into index lines, includes and settings."""

    def __init__(self, file: Document, command: Command, client: str, folder: str | None) -> None:
        self.file = file
        self.command = command
        self.client = client
        self.folder = folder
        self.lines: list[tuple[int, IndexLine]] = []
        self.includes: list[Include] = []
        self.options: list[OptionText] = []
        self.words: list[tuple[Span, Word]] = []
        self.python: str | None = None
        self.platform: str | None = None
        self.best_match = False
        self.torch_backend: str | None = None
        self.backend: Word = ()
        self.upgrade = False
        self.given: set[str] = set()

    def indexes(self) -> tuple[IndexLine, ...]:
        """Return the index lines, in the client's order of priority."""
        return tuple(line for _, line in sorted(self.lines, key=lambda one: one[0]))

    def option(self, option: Option) -> None:
        """Take in an option."""
        name, value = option.name, option.value
        text = text_of(value) if value is not None else ""
        if name in _UPGRADES:
            self.upgrade = True
        elif name == "--no-index":
            self.index("--no-index", (), option.span, 0)
        elif name == "--pre" or (name == "--prerelease" and text == "allow"):
            self.options.append(OptionText("--pre", None, option.span, None))
        elif value is None:
            return
        elif name in ("--index-url", "--pypi-url", "--default-index"):
            self.index("--index-url", value, option.span, 1)
        elif name == "--index":
            for one in split_values(value, " "):
                self.index("--extra-index-url", one, option.span, 1)
        elif name == "--extra-index-url":
            for one in split_values(value, " "):
                self.index("--extra-index-url", one, option.span, 2)
        elif name == "--find-links":
            for one in split_values(value, " ," if self.client == "uv" else " "):
                self.index("--find-links", one, option.span, 3)
        elif name in ("--requirement", "--requirements", "--with-requirements"):
            for one in split_values(value, "," if self.client == "uv" else ""):
                self.include(one, option.span, constraint=False)
        elif name in ("--constraint", "--constraints"):
            for one in split_values(value, " " if self.client == "uv" else ""):
                self.include(one, option.span, constraint=True)
        elif name in ("--no-binary", "--only-binary"):
            self.options.append(OptionText(name, text, option.span, span_of(value)))
        elif name == "--index-strategy":
            self.best_match = text == "unsafe-best-match"
        elif name == "--torch-backend":
            self.torch_backend, self.backend = text, value
        elif name in ("--python", "--python-version"):
            self.python = python_in(text) or self.python
        elif name in ("--platform", "--python-platform"):
            self.platform = platform_in(text) or self.platform
        self.given.add(name)

    def environment(self, environ: Mapping[str, Word]) -> None:
        """Take in variables of the environment; options win over them."""
        given = self.given
        if self.client == "pip":
            if not {"--index-url", "--pypi-url"} & given:
                self.variable(environ, "PIP_INDEX_URL", "--index-url", 0)
            # pip adds the options to what the variable holds
            self.variable(environ, "PIP_EXTRA_INDEX_URL", "--extra-index-url", 1)
            self.variable(environ, "PIP_FIND_LINKS", "--find-links", 1)
            self.constraint(environ, "PIP_CONSTRAINT")
            if is_true(environ.get("PIP_PRE")):
                at = span_of(environ["PIP_PRE"])
                self.options.append(OptionText("--pre", None, at, None))
            if is_true(environ.get("PIP_NO_INDEX")):
                self.index("--no-index", (), span_of(environ["PIP_NO_INDEX"]), 0)
            return
        if not {"--index-url", "--default-index"} & given:
            default = "UV_DEFAULT_INDEX" if environ.get("UV_DEFAULT_INDEX") else "UV_INDEX_URL"
            self.variable(environ, default, "--index-url", 1)
        if "--index" not in given:
            self.variable(environ, "UV_INDEX", "--extra-index-url", 1)
        if "--extra-index-url" not in given:
            self.variable(environ, "UV_EXTRA_INDEX_URL", "--extra-index-url", 2)
        if "--find-links" not in given:
            self.variable(environ, "UV_FIND_LINKS", "--find-links", 3)
        if not {"--constraint", "--constraints"} & given:
            self.constraint(environ, "UV_CONSTRAINT")
        if "--index-strategy" not in given:
            strategy = environ.get("UV_INDEX_STRATEGY", ())
            self.best_match = text_of(strategy) == "unsafe-best-match"
        if self.torch_backend is None and environ.get("UV_TORCH_BACKEND"):
            self.backend = environ["UV_TORCH_BACKEND"]
            self.torch_backend = text_of(self.backend)
        if self.python is None and environ.get("UV_PYTHON"):
            self.python = python_in(text_of(environ["UV_PYTHON"]))
        if text_of(environ.get("UV_PRERELEASE", ())) == "allow":
            at = span_of(environ["UV_PRERELEASE"])
            self.options.append(OptionText("--pre", None, at, None))

    def variable(self, environ: Mapping[str, Word], name: str, option: str, rank: int) -> None:
        """Take in the URLs that a variable holds."""
        for one in split_values(environ.get(name, ()), " "):
            if text_of(one):
                self.index(option, one, None, rank)

    def constraint(self, environ: Mapping[str, Word], name: str) -> None:
        """Take in the files that a variable names as constraints."""
        for one in split_values(environ.get(name, ()), " "):
            if text_of(one):
                self.include(one, span_of(one), constraint=True)

    def index(self, option: str, url: Word, span: Span | None, rank: int) -> None:
        """Take in an index; without a span its URL stands in a variable, at its literal."""
        if self.client == "uv" and re.match(r"[A-Za-z0-9_-]+=https?:", text_of(url)):
            url = cut(url, text_of(url).index("=") + 1)
        place = span_of(url) if url else (span or Span(0, 0))
        whole = span if span is not None else place
        self.words.append((whole, url))
        line = IndexLine(
            option,
            text_of(url),
            whole,
            place,
            whole,
            any(not atom.plain for atom in url) or in_pieces(url),
        )
        self.lines.append((rank, line))

    def include(self, path: Word, span: Span, *, constraint: bool) -> None:
        """Take in a requirements file; one whose path is not known is a stand-in."""
        text = text_of(path)
        if self.folder and text and not text.startswith(("/", "~")) and "://" not in text:
            text = f"{self.folder}/{text}"
        self.includes.append(Include(text, constraint, span, span.start))
        if any(atom.name.startswith("args ") for atom in path):  # what the caller gives decides
            self.words.append((span, path))
