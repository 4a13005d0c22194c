"""What the services of a compose file build.

A build is judged where its ``args`` change what the Dockerfile installs: at the argument, as that
is what decides; and where its service reserves a GPU, and the Dockerfile takes builds for CPUs and
serves others, too. A Dockerfile that is for services with GPUs alone is judged for GPUs itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from torchpin.documents.atoms import Source, Word, span_of, text_of
from torchpin.documents.base import Document, Span
from torchpin.documents.called import Call, Place, moved, outside
from torchpin.documents.compose_services import Layer, Read, Service
from torchpin.documents.dockerfile import arguments
from torchpin.documents.dockerfile import build as build_image
from torchpin.documents.parts import Part, Reserved, file_of
from torchpin.documents.scripts import INSTALLS
from torchpin.documents.yaml_scripts import entry
from torchpin.documents.yaml_spans import Node
from torchpin.errors import TorchpinError
from torchpin.named import NamedTuple


class Build(NamedTuple):
    """An image that a service is built from."""

    service: str
    folder: str
    """Build context, relative to the compose file."""
    dockerfile: str
    """Relative to the context."""
    target: str
    args: Mapping[str, Word]
    span: Span
    gpu: Reserved | None
    machine: str
    more: Place | None
    """Where a further argument may be written."""


class Use(NamedTuple):
    """A part of a Dockerfile that a service builds."""

    build: Build
    part: Part
    moved: Part | None
    """As a part of the compose file; None: no argument reaches it."""


def built(
    file: Document, services: Sequence[Service], read: Read
) -> tuple[list[Part], tuple[Reserved, ...]]:
    """Return what builds install where the Dockerfile alone does not tell, and the parts of
    Dockerfiles that are for services with GPUs alone."""
    found: list[Part] = []
    some_reserve = any(service.reserved() is not None for service in services)
    uses: dict[tuple[str, str], list[Use]] = {}
    for service in services:
        inline = service.first("build", "dockerfile_inline")
        if inline is not None:
            found += _inline(file, service, *inline)
            continue
        build = _build(file, service)
        if build is None:
            continue
        folder = os.path.join(os.path.dirname(file.path), build.folder)
        path = os.path.normpath(os.path.join(folder, build.dockerfile))
        try:
            image = file_of(build.dockerfile, read(path), "dockerfile")
        except TorchpinError:
            continue  # it is not here: nothing is known
        if INSTALLS.search(image.text) is None and "pytorch/pytorch" not in image.text:
            continue
        below = _build(file, service.below) if service.below is not None else None
        if below is not None:  # the same without what is laid over it
            for part in build_image(image, outside(below.args), target=below.target):
                uses.setdefault((path, part.name), []).append(Use(below, part, None))
        call = _call(build, image)
        for part in build_image(image, outside(build.args), target=build.target):
            uses.setdefault((path, part.name), []).append(Use(build, part, moved(part, file, call)))
    reserved: list[Reserved] = []
    for (path, name), some in uses.items():
        as_written = [use for use in some if use.moved is None]
        alone = all(use.build.gpu is not None for use in as_written)
        if alone and as_written and as_written[0].build.gpu is not None:
            names = ", ".join(dict.fromkeys(use.build.service for use in as_written))
            reserved.append(as_written[0].build.gpu._replace(service=names, of=(path, name)))
        elif some_reserve and as_written and not any(use.build.gpu for use in as_written):
            reserved.append(Reserved("", "", file.path, 0, (path, name)))
        for use in some:
            here = use.moved
            if here is None and use.build.gpu is not None and not alone and _for_cpus(use.part):
                here = moved(use.part, file, _call(use.build, None), reached=True)
            if here is not None:
                machine = here.platform if here.platform != "linux" else use.build.machine
                found.append(here._replace(gpu=use.build.gpu, platform=machine))
    return found, tuple(reserved)


def _call(build: Build, image: Document | None) -> Call:
    names = arguments(image) if image is not None and build.more is not None else frozenset()
    name, of = f"service {build.service}", build.dockerfile
    given = {one: span_of(word) for one, word in build.args.items() if word}
    return Call(build.span, name, of, build.folder, given, names, build.more)


def _inline(file: Document, service: Service, layer: Layer, node: Node) -> list[Part]:
    """Return what a Dockerfile installs that is written in the compose file itself."""
    if layer.at is not None:
        return []
    target = service.text("build", "target")
    args = service.listed("build", "args")
    prefix = f"service {service.name}, "
    source = Source(service.word(layer, node))
    parts = build_image(file, args, target=target, source=source, prefix=prefix)
    gpu = service.reserved()
    return [part._replace(gpu=gpu) for part in parts]


def _build(file: Document, service: Service) -> Build | None:
    found = service.first("build")
    if found is None:
        return None
    context = service.first("build", "context")
    short = next(
        (
            (layer, node)
            for layer in service.layers
            if (node := entry(layer.node, "build")) is not None and node.kind == "scalar"
        ),
        None,
    )
    place = context or short
    folder = text_of(service.word(*place)) if place is not None else "."
    if place is not None:
        folder = os.path.join(place[0].folder, folder)
    dockerfile = service.text("build", "dockerfile") or "Dockerfile"
    target = service.text("build", "target")
    if "$" in folder or "$" in dockerfile or "://" in folder or "$" in target:
        return None
    return Build(
        service.name,
        folder,
        dockerfile,
        target,
        service.listed("build", "args"),
        found[0].at or found[1].span,
        service.reserved(),
        service.machine,
        _more(file, entry(service.layers[0].node, "build", "args")),
    )


def _more(file: Document, args: Node | None) -> Place | None:
    """Return where an argument can be added to those of a service; None: nowhere."""
    if args is None or args.kind == "scalar":
        return None
    text = file.text
    sequence = args.kind == "sequence"
    last = args.items[-1] if args.items else args.entries[-1][1] if args.entries else None
    first = args.items[0] if args.items else args.entries[0][0] if args.entries else None
    if last is None or first is None or last.kind != "scalar" or last.style in ("|", ">"):
        return None
    if not args.start <= last.start <= args.end:  # an alias
        return None
    if args.style == "flow":
        return Place(last.end, ", {}=", "") if sequence else Place(last.end, ', {}: "', '"')
    begin = text.rfind("\n", 0, first.start) + 1
    margin = text[begin : first.start]
    if margin.strip() != ("-" if sequence else ""):
        return None
    end = text.find("\n", last.end)
    end = len(text) if end < 0 else end
    end -= text[:end].endswith("\r")
    lead, tail = ("{}=", "") if sequence else ('{}: "', '"')
    return Place(end, f"{file.newline}{margin}{lead}", tail)


def _for_cpus(part: Part) -> bool:
    """True if a part takes builds for CPUs: from the ``cpu`` channel, or by a label."""
    if part.torch_backend == "cpu":
        return True
    urls = [one.url.rstrip("/") for one in part.document.indexes]
    labels = [one.specifier for one in part.document.declarations if one.name == "torch"]
    return any(url.endswith("/whl/cpu") for url in urls) or any(
        specifier.endswith("+cpu") for specifier in labels
    )
