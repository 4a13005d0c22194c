"""Compose files: commands of services, and the images that they build.

Source of the format: https://docs.docker.com/reference/compose-file/.
"""

from __future__ import annotations

import re

from torchpin.documents.atoms import Atom, Source, Word
from torchpin.documents.base import Document
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.compose_services import KIND, Read, Service, services, values_in
from torchpin.documents.image_part import image_part, speaks
from torchpin.documents.parts import Image, Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import Shell, read_script
from torchpin.documents.shell_commands import Command
from torchpin.documents.shell_words import Text
from torchpin.documents.yaml_scripts import bounded, text_in
from torchpin.documents.yaml_spans import Node, scan_yaml
from torchpin.errors import TorchpinError
from torchpin.patterns import regex

_BUILDS = regex(r"\b(?:args|dockerfile_inline|gpus?|nvidia|extends)\b")
"""What a compose file says somewhere where a Dockerfile alone does not tell what it installs."""


def read_compose(path: str, data: bytes, read: Read | None = None) -> Document:
    """Return the document of a compose file: what its services install, and what they build.

    Never raises. Text that is no YAML gives a problem of the code ``yaml``.

    Args:
        read: gives the bytes of other files (Dockerfiles, ``.env``); None: there are none.
    """
    file = file_of(path, data, KIND)
    builds = _BUILDS.search(file.text) is not None
    if file.problems or not (builds or speaks(file.text)):
        return file
    found = scan_yaml(file.text)
    if found.problem is not None:
        return file._replace(problems=(found.problem,)) if speaks(file.text) else file
    file = file._replace(comments=notes_in(file.text))
    read = read or _nothing
    every = tuple(services(found.root, file, read))
    parts = [part for service in every for part in _commands(file, service, read)]
    if builds:
        from torchpin.documents.compose_builds import built

        more, reserved = built(file, every, read)
        parts += more
        file = file._replace(reserved=reserved)
    if any(part.gpu is not None for part in parts) or any(one.words for one in file.reserved):
        parts = [part._replace(without_gpu=part.gpu is None) for part in parts]
    return file._replace(parts=bounded(parts))


def _nothing(path: str) -> bytes:
    raise TorchpinError("not read", path=path)


def _commands(file: Document, service: Service, read: Read) -> list[Part]:
    image: Image | None = None
    named = service.first("image")
    if named is not None and named[1].kind == "scalar" and service.first("build") is None:
        word = service.word(*named)
        if word and all(atom.known for atom in word):
            reference = "".join(atom.value for atom in word)
            image = Image(reference, named[0].at or named[1].inner)
    environ, doubt = _environment(file, service, read)
    name = service.name
    reader = Reader(
        Setting(
            file,
            prefix=f"service {name}, ",
            environment=f"service {name}",
            platform=service.machine,
            image=image,
            uncertain=doubt,
        )
    )
    for key in ("entrypoint", "command"):
        found = service.first(key)
        if found is None or found[0].at is not None:
            continue
        node = found[1]
        if INSTALLS.search(file.text, node.start, node.end) is None:
            continue
        before = len(reader.parts)
        _command(reader, service, key, node, environ)
        for number in range(before, len(reader.parts)):  # inside of quotes of its own
            reader.parts[number] = reader.parts[number]._replace(options_at=None)
    own = image_part(
        file,
        image,
        name=f"service {name}, image",
        platform=service.machine if service.machine != "linux" else None,
        environment=f"service {name}",
    )
    gpu = service.reserved()
    return [part._replace(gpu=gpu) for part in (*reader.parts, *((own,) if own else ()))]


def _command(
    reader: Reader, service: Service, key: str, node: Node, environ: dict[str, Word]
) -> None:
    """Take in what a service runs."""
    layer = service.layers[0]
    if node.kind == "scalar":
        reader.read(read_script(Source(service.word(layer, node)), environ, shell=Shell()))
        return
    words = tuple(Text(service.word(layer, one), one.span) for one in node.scalars())
    other = service.first("entrypoint")
    if key == "command" and len(words) == 1 and other is not None:
        shell = text_in(other[1]) or " ".join(text_in(one) for one in other[1].scalars())
        if re.search(r"sh\s+-[a-z]*c\s*$", shell):
            reader.read(read_script(Source(words[0].atoms), environ, shell=Shell()))
            return
    if words:
        reader.read([Command(words, environ, node.span, "", None)])


def _environment(
    file: Document, service: Service, read: Read
) -> tuple[dict[str, Word], str | None]:
    """Return the variables that a service runs with, and why there may be others."""
    environ: dict[str, Word] = {}
    doubt: str | None = None
    found = service.first("env_file")
    if found is not None:
        layer, node = found
        for one in node.items if node.kind == "sequence" else (node,):
            name = text_in(one) or text_in(one.get("path"))
            values = values_in(layer.file, name, read) if name else None
            if values is None:
                doubt = f"what {name[:40] or 'its env_file'} sets is not known"
                continue
            at = layer.at or one.span
            environ.update(
                (key, (Atom(text, *at, False, None, key),)) for key, text in values.items()
            )
    environ.update(service.listed("environment"))
    return environ, doubt
