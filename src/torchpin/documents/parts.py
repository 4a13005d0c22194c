"""Installs that are written inside a file of another kind: a Dockerfile's ``RUN``, a CI step.

A file that is not itself a list of requirements (``Dockerfile``, ``tox.ini``, ``environment.yml``,
a script) holds any number of *parts*. Each part is what one command or one section installs, in
the words that requirements files have: declarations, index lines, includes. All spans count in the
text of the whole file, so that findings and edits land where the user wrote the words.
"""

from __future__ import annotations

from typing import NamedTuple

from torchpin.documents.base import Document, Span


class Image(NamedTuple):
    """The base image of a container stage, or of a CI job."""

    reference: str
    """As written, variables substituted: ``nvidia/cuda:12.6.3-runtime-ubuntu22.04``."""
    span: Span


class Part(NamedTuple):
    """What one command or section of a file installs."""

    document: Document
    """Kind ``part``. Path, text, encoding and line ends are those of the whole file; declarations,
    index lines, includes, options and problems are those of this part alone."""
    name: str
    """What a user calls it, unique in the file: ``stage build, line 12``, ``testenv:py311``."""
    client: str
    """Whose rules select: ``pip`` or ``uv``."""
    span: Span
    """The command or section."""
    syntax: str
    """How its words are quoted and where an option may be added: ``shell``, ``argument-list``
    (JSON form of ``RUN``), ``toml``, ``yaml``, ``ini``, ``python``, ``requirements``."""
    options_at: int | None = None
    """Offset where ``--index-url URL`` may be inserted for this part; None: nowhere."""
    python: str | None = None
    """PEP 440 specifier or version of the Python that the file itself chooses."""
    platform: str | None = None
    """Machine that the file itself chooses (``linux-x86_64`` …), None: the fleet's."""
    image: Image | None = None
    torch_backend: str | None = None
    """``uv pip install --torch-backend cu126`` or ``UV_TORCH_BACKEND``: as written."""
    uncertain: str | None = None
    """Why the words may not be what runs (a variable without a value, a shell function): one
    sentence. What rests on it is never an error."""
