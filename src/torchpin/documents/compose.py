"""Compose files: commands of services, and the arguments that they build images with.

Source of the format: https://docs.docker.com/reference/compose-file/. A build is judged where its
``args`` change what the Dockerfile installs: at the argument, as that is what decides; and where
its service reserves a GPU, and the Dockerfile takes builds for CPUs and serves others, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping

from torchpin.documents.atoms import Atom, Source, Word, cut, span_of, text_of, unknown
from torchpin.documents.base import Document, Span
from torchpin.documents.called import Call, moved, outside
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.image_part import image_part, speaks
from torchpin.documents.parts import Image, Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import Shell, read_script
from torchpin.documents.shell_commands import Command
from torchpin.documents.shell_words import Text
from torchpin.documents.yaml_scripts import bounded, entry, pairs, text_in, word_of
from torchpin.documents.yaml_spans import Node, scan_yaml
from torchpin.errors import TorchpinError
from torchpin.named import NamedTuple
from torchpin.patterns import regex

KIND = "compose"
_VARIABLE = regex(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+?])([^{}]*))?\})|\$\$")
_GPU = regex(r"\bgpus?\b|\bnvidia\b")


class Build(NamedTuple):
    """An image that a service is built from."""

    service: str
    folder: str
    """Build context, relative to the compose file."""
    dockerfile: str
    """Relative to the context."""
    args: Mapping[str, Word]
    span: Span
    gpu: Image | None = None


def read_compose(path: str, data: bytes) -> Document:
    """Return the document of a compose file: what the commands of its services install.

    Never raises. Text that is no YAML gives a problem of the code ``yaml``.
    """
    file = file_of(path, data, KIND)
    if file.problems or not speaks(file.text):
        return file
    root, file = _root(file)
    if root is None:
        return file
    found: list[Part] = []
    for name, service in pairs(entry(root, "services")):
        found += _commands(file, name, service)
    return file._replace(parts=bounded(found))


def _root(file: Document) -> tuple[Node | None, Document]:
    read = scan_yaml(file.text)
    if read.problem is not None:
        return None, file._replace(problems=(read.problem,))
    return read.root, file._replace(comments=notes_in(file.text))


def _commands(file: Document, name: str, service: Node) -> list[Part]:
    text = file.text
    named = entry(service, "image")
    image: Image | None = None
    if named is not None and named.kind == "scalar" and entry(service, "build") is None:
        word = interpolated(word_of(text, named))
        if word and all(atom.known for atom in word):
            image = Image(text_of(word), named.inner)
    environ = _listed(text, entry(service, "environment"))
    reader = Reader(
        Setting(
            file,
            prefix=f"service {name}, ",
            environment=f"service {name}",
            platform="linux",
            image=image,
        )
    )
    for key in ("entrypoint", "command"):
        node = entry(service, key)
        if node is None or INSTALLS.search(text, node.start, node.end) is None:
            continue
        before = len(reader.parts)
        if node.kind == "scalar":
            source = Source(interpolated(word_of(text, node)))
            reader.read(read_script(source, environ, shell=Shell()))
        else:
            words = tuple(
                Text(interpolated(word_of(text, one)), one.span) for one in node.scalars()
            )
            other = entry(service, "entrypoint")
            if key == "command" and len(words) == 1 and other is not None:
                shell = text_in(other) or " ".join(text_in(one) for one in other.scalars())
                if re.search(r"sh\s+-[a-z]*c\s*$", shell):
                    reader.read(read_script(Source(words[0].atoms), environ, shell=Shell()))
                    continue
            if words:
                reader.read([Command(words, environ, node.span, "", None)])
        for number in range(before, len(reader.parts)):  # inside of quotes of its own
            reader.parts[number] = reader.parts[number]._replace(options_at=None)
    own = image_part(
        file, image, name=f"service {name}, image", platform=None, environment=f"service {name}"
    )
    gpu = reserved(service)
    return [part._replace(gpu=gpu) for part in (*reader.parts, *((own,) if own else ()))]


def reserved(service: Node) -> Image | None:
    """Return the words by which a service asks for a GPU; None: it asks for none.

    Source: https://docs.docker.com/compose/how-tos/gpu-support/.
    """
    runtime = entry(service, "runtime")
    if runtime is not None and runtime.value == "nvidia":
        return Image("runtime: nvidia", runtime.inner)
    gpus = entry(service, "gpus")
    if gpus is not None and (gpus.items or gpus.value not in ("", "0")):
        return Image("gpus", gpus.span)
    devices = entry(service, "deploy", "resources", "reservations", "devices")
    for device in devices.items if devices is not None else ():
        capabilities = entry(device, "capabilities")
        for one in capabilities.scalars() if capabilities is not None else ():
            if one.value in ("gpu", "nvidia"):
                return Image("capabilities: [gpu]", one.inner)
    return None


def _listed(text: str, node: Node | None) -> dict[str, Word]:
    """Return a mapping, or a list of ``NAME=value``, as words."""
    found: dict[str, Word] = {}
    for key, value in pairs(node):
        if value.kind == "scalar":
            found[key] = interpolated(word_of(text, value))
    for one in node.scalars() if node is not None and node.kind == "sequence" else ():
        name, equals, _ = one.value.partition("=")
        if equals:
            found[name] = interpolated(cut(word_of(text, one), len(name) + 1))
    return found


def interpolated(word: Word) -> Word:
    """Return a word with the variables of the user's environment replaced, by their defaults."""
    text = text_of(word)
    if "$" not in text:
        return word
    found: list[Atom] = []
    at = 0
    for match in _VARIABLE.finditer(text):
        found += cut(word, at, match.start())
        at = match.end()
        span = span_of(cut(word, match.start(), match.end()))
        if match[0] == "$$":
            found.append(Atom("$", *span, False))
        elif (match[3] or "").endswith("-"):
            inner = cut(word, match.start(4), match.end(4))
            found += [atom.used_at(*span, match[2]) for atom in inner]
        elif not (match[3] or "").endswith("+"):
            found.append(unknown(match[1] or match[2], *span))
    found += cut(word, at)
    return tuple(found)


# -- builds


def builds(file: Document) -> Iterator[Build]:
    """Yield the builds of a compose file."""
    root, file = _root(file)
    for name, service in pairs(entry(root, "services")):
        build = entry(service, "build")
        args = _listed(file.text, entry(build, "args")) if build is not None else {}
        gpu = reserved(service)
        if build is None:
            continue
        short = text_in(build) if build.kind == "scalar" else ""
        folder = text_in(entry(build, "context")) or short or "."
        dockerfile = text_in(entry(build, "dockerfile")) or "Dockerfile"
        if "$" in folder or "$" in dockerfile or "://" in folder:
            continue
        yield Build(name, folder, dockerfile, args, build.span, gpu)


def _place(build: Build) -> str:
    return os.path.normpath(os.path.join(build.folder, build.dockerfile))


def _for_cpus(part: Part) -> bool:
    """True if a part takes builds for CPUs: from the ``cpu`` channel, or by a label."""
    if part.torch_backend == "cpu":
        return True
    urls = [one.url.rstrip("/") for one in part.document.indexes]
    labels = [one.specifier for one in part.document.declarations if one.name == "torch"]
    return any(url.endswith("/whl/cpu") for url in urls) or any(
        specifier.endswith("+cpu") for specifier in labels
    )


def with_builds(file: Document, read: Callable[[str], bytes]) -> Document:
    """Return a compose file with what its builds install where their arguments matter.

    Args:
        read: gives the bytes of a file; one that cannot be read is passed over.
    """
    if file.problems or "build" not in file.text:
        return file
    if "args" not in file.text and _GPU.search(file.text) is None:
        return file
    from torchpin.documents.dockerfile import build as build_image

    found: list[Part] = list(file.parts)
    every = list(builds(file))
    others = {_place(one) for one in every if one.gpu is None}
    for build in every:
        if not build.args and _place(build) not in others:
            continue  # the Dockerfile is for this service alone, and is judged itself
        folder = os.path.join(os.path.dirname(file.path), build.folder)
        try:
            data = read(os.path.normpath(os.path.join(folder, build.dockerfile)))
        except TorchpinError:
            continue  # it is not here: nothing is known
        image = file_of(build.dockerfile, data, "dockerfile")
        if INSTALLS.search(image.text) is None:
            continue
        call = Call(build.span, f"service {build.service}", build.dockerfile, build.folder)
        for part in build_image(image, outside(build.args)):
            idle = build.gpu is not None and _for_cpus(part)
            here = moved(part, file, call, reached=idle)
            if here is not None:
                found.append(here._replace(gpu=build.gpu))
    return file._replace(parts=bounded(found))
