"""From files of commands and sections to the ways in: each part on the targets that it runs on.

Part of floor 5. What a file chooses itself (the Python, system and C library of a container's
image, the Python of a CI job) takes the place of what the fleet says; the GPUs and drivers stay
the fleet's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from torchpin import seen
from torchpin.catalog.model import PLATFORMS
from torchpin.documents.base import Document, line_starts, position
from torchpin.documents.kinds import CI
from torchpin.documents.parts import IMAGE, Image, Part, Reserved
from torchpin.fleet.model import Fleet, NodeGroup, Python, Target
from torchpin.patterns import regex
from torchpin.rules.context import Way
from torchpin.select.environments import marker_holds
from torchpin.select.image_torch import image_install, image_targets
from torchpin.select.parts import facts_of, part_installs
from torchpin.ways import Entry, Load, bound_groups, client_of, quiet, targets_of

_MOVES = regex(r"(?m)\bcd\s+\S|\bpushd\b|working-?_?directory", re.IGNORECASE)
_UV_PIP = regex(r"\bpip\b")
PYTHONS = tuple(Python(3, minor) for minor in range(6, 20))
"""What a specifier may choose among."""


def part_entries(file: Document, client: str | None, fleet: Fleet, load: Load) -> Iterator[Entry]:
    """Yield the ways in of a file: each of its parts, by the client and indexes of the groups."""
    if file.kind == "Pipfile" and seen.is_file(f"{file.path}.lock"):
        return  # the lock installs
    if file.kind == "pixi.toml" and seen.is_file(f"{file.path.removesuffix('toml')}lock"):
        return
    if file.kind == "pyproject" and seen.is_file(
        os.path.join(os.path.dirname(file.path), "pixi.lock")
    ):  # the lock installs what [tool.pixi] asks for
        file = file._replace(
            parts=tuple(part for part in file.parts if part.name.startswith("tox "))
        )
    if any(part.client == "uv" and part.command for part in file.parts):
        file = beside_settings(file, load)
    bound = bound_groups(fleet, file.path)
    private = dict(fleet.settings.indexes)
    groups: dict[tuple[str, tuple[str, ...]], list[Target]] = {}
    for target in targets_of(fleet, file.path):
        key = (client_of(client, target.group), target.group.indexes)
        groups.setdefault(key, []).append(target)
    for (name, indexes), targets in groups.items():
        images = [part for part in file.parts if part.syntax == IMAGE]
        for part in images:
            install = image_install(part)
            chosen = image_targets(part_targets(part, targets)) if install is not None else ()
            if install is not None and chosen:
                yield Entry(install, chosen, bound, (), (file,), part)
        for found in part_installs(
            file._replace(parts=tuple(one for one in file.parts if one not in images)),
            load,
            client=name,
            private=private,
            extra_indexes=indexes,
        ):
            if not found.install.requirements and not found.before:
                continue
            here = part_targets(found.part, targets, fleet)
            if not here and targets:  # for systems that the fleet does not hold
                continue
            yield Entry(
                found.install,
                here,
                bound,
                indexes,
                (file, *found.install.documents[1:]),
                found.part,
                found.before,
            )


def for_services(files: Iterable[Document], documents: Iterable[Document]) -> list[Document]:
    """Return files whose parts know of the GPUs that services reserve for them alone.

    What is built for a service of another compose file, too, is left as it is.
    """
    reserved: dict[tuple[str, str], list[Reserved]] = {}
    others: set[str] = set()
    for document in documents:
        for one in document.reserved:
            reserved.setdefault((os.path.realpath(one.of[0]), one.of[1]), []).append(one)
        if not document.reserved:
            others.update(os.path.realpath(path) for path, _ in document.called)

    def informed(part: Part, real: str) -> Part:
        some = reserved.get((real, part.name), [])
        if len({bool(one.words) for one in some}) != 1:
            return part
        return part._replace(gpu=some[0]) if some[0].words else part._replace(without_gpu=True)

    found: list[Document] = []
    for file in files:
        real = os.path.realpath(file.path) if file.kind == "dockerfile" else ""
        if real and real not in others:
            file = file._replace(parts=tuple(informed(part, real) for part in file.parts))
        found.append(file)
    return found


def beside_settings(file: Document, load: Load) -> Document:
    """Return a file whose ``uv pip`` commands take the indexes of a project file beside or above
    it, as uv does if it runs there.

    Make, just and CI systems run commands where the file lies, or at the top of the repository; of
    other files it is not known where they run, nor of commands that change the folder.
    """
    from torchpin.documents.uv_beside import settings_beside
    from torchpin.select.uv_pip_settings import pip_settings

    manifest = os.path.join(os.path.dirname(file.path), "pyproject.toml")
    found = settings_beside(manifest, load)
    if found is None and seen.is_file(manifest):
        found = quiet(load, manifest)
    if found is None:
        return file
    settings = pip_settings(found)
    if not (settings.indexes or settings.backend or settings.other):
        return file
    name = os.path.basename(found.path)
    there = file.kind in CI or file.kind in ("makefile", "justfile")
    there = there and _MOVES.search(file.text) is None
    doubt = None if there else f"uv also takes the indexes of {name}, if it runs there"
    if settings.other is not None:
        doubt = doubt or f"uv also follows {settings.other} of {name}"

    def beside(part: Part) -> Part:
        if part.client != "uv" or not part.command:
            return part
        if _UV_PIP.search(file.text, *part.span) is None:
            why = f"uv may also take the indexes of {name}"
            return part._replace(uncertain=part.uncertain or why)
        part = part._replace(uncertain=part.uncertain or doubt)
        if file.kind == "dockerfile":  # whether the image holds the project file is not known
            return part
        backend = part.torch_backend or settings.backend
        return part._replace(settings=settings.indexes, torch_backend=backend)

    return file._replace(parts=tuple(map(beside, file.parts)))


def judged_there(file: Document) -> Iterator[Document]:
    """Yield the parts whose included files mean what they do only behind this command: it has
    indexes of its own, names a torch itself, or finds one of the image or of an earlier command."""
    held: set[str] = set()
    for part in file.parts:
        if part.uncertain is not None:
            continue
        own = bool(part.document.indexes) or part.torch_backend is not None
        above = f"{part.environment}/"
        brought = "#" not in part.environment and "torch" in dict(facts_of(part).packages)
        if any(one.name == "torch" for one in part.document.declarations):
            held.add(part.environment)
        if own or brought or any(above.startswith(f"{one}/") for one in held):
            yield part.document


def without_replaced(ways: Sequence[Way]) -> list[Way]:
    """Return the ways without the torch of images that is replaced, or may be, before it runs.

    It counts only where every command of the image's stages is known to leave it alone.
    """
    return [
        way
        for way in ways
        if way.part is None or way.part.syntax != IMAGE or _stands(way.part, way, ways)
    ]


def _stands(image: Part, way: Way, ways: Sequence[Way]) -> bool:
    if any(one.of("torch") is None or one.judged[0].selection.build is None for one in way.sets):
        return False
    for other in ways:
        part = other.part
        if part is None or other is way or other.install.root.path != way.install.root.path:
            continue
        if not f"{image.environment}/".startswith(f"{part.environment.partition('#')[0]}/"):
            continue
        if other.install.unread or other.install.problems:
            return False
        if any(one.of("torch") is not None for one in other.sets):
            return False
    return True


def part_targets(
    part: Part, targets: Iterable[Target], fleet: Fleet | None = None
) -> tuple[Target, ...]:
    """Return the targets as the file itself narrows them.

    ``fleet``: all of it, where the targets are those of one client.
    """
    if part.marker is not None:
        targets = [one for one in targets if marker_holds(part.marker, one) is not False]
    facts = facts_of(part)
    chosen = on_platform(part.platform or ("linux" if part.image is not None else None), targets)
    python = part.python or facts.python
    if part.pythons:
        chosen = in_environments(part.pythons, chosen, fleet)
    elif python is not None:
        chosen = on_python(python, chosen)
    if part.gpu is not None:
        chosen = [one for one in chosen if one.group.gpus] or list(chosen)
    if part.runner is not None:
        chosen = on_runner(part, part.runner, chosen)
    return tuple(
        target._replace(
            group=target.group._replace(
                glibc=facts.glibc or target.group.glibc, musl=facts.musl or target.group.musl
            )
        )
        if target.group.platform.startswith("linux")
        else target
        for target in chosen
    )


def on_platform(platform: str | None, targets: Iterable[Target]) -> list[Target]:
    """Return the targets of the platform that a file chooses; where the fleet has none of it, all
    of them as if they were."""
    targets = list(targets)
    if platform is None:
        return targets
    fits = [one for one in targets if one.group.platform.startswith(platform)]
    if fits:
        return fits
    named = platform if platform in PLATFORMS else "linux-x86_64"
    moved = [one._replace(group=one.group._replace(platform=named)) for one in targets]
    return list(dict.fromkeys(moved))


def on_runner(part: Part, runner: Image, targets: Iterable[Target]) -> list[Target]:
    """Return the targets as a hosted runner without a GPU, once each Python.

    Nothing else that the fleet says of its machines holds there.
    """
    document = part.document
    line = position(line_starts(document.text), runner.span.start).line
    found: list[Target] = []
    for one in targets:
        group = NodeGroup(
            runner.reference,
            (),
            one.group.pythons,
            one.group.platform,
            client=one.group.client,
            indexes=one.group.indexes,
            path=document.path,
            line=line,
        )
        found.append(Target(group, one.python))
    return list(dict.fromkeys(found))


def on_python(python: str, targets: Iterable[Target]) -> list[Target]:
    """Return the targets on the Python that a file chooses: a version, or a specifier.

    Of a specifier those Pythons of the fleet stay that it admits, or else the lowest that it
    admits at all.
    """
    version = python_of(python)
    if version is not None:
        return list(dict.fromkeys(one._replace(python=version) for one in targets))
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        wanted = SpecifierSet(python)
    except InvalidSpecifier:
        return list(targets)

    def admitted(one: Python) -> bool:
        return any(wanted.contains(f"{one.major}.{one.minor}.{patch}") for patch in (0, 99))

    targets = list(targets)
    fits = [one for one in targets if one.python is None or admitted(one.python)]
    if fits:
        return fits
    lowest = next((one for one in PYTHONS if admitted(one)), None)
    if lowest is None:
        return targets
    return list(dict.fromkeys(one._replace(python=lowest) for one in targets))


def in_environments(
    pythons: Iterable[str], targets: Iterable[Target], fleet: Fleet | None
) -> list[Target]:
    """Return the targets on each Python that environments are made with.

    That of a version are the machines that have it; where the fleet has none, all of them as if
    they had (``rules.environments`` tells what is no error then).
    """
    targets = list(targets)
    held = {one for group in fleet.groups for one in group.pythons} if fleet is not None else set()
    found: list[Target] = []
    for python in pythons:
        version = python_of(python)
        if version is None:
            found += targets
            continue
        fits = [one for one in targets if one.python in (None, version)]
        if not fits and version not in held:
            fits = targets
        found += [one._replace(python=version) for one in fits]
    return list(dict.fromkeys(found))


def python_of(text: str) -> Python | None:
    """Return the Python that a plain version names: ``3.11``, ``3.11.9``, ``3.14t``."""
    free = text.endswith("t")
    numbers = text.rstrip("t").split(".")
    if len(numbers) < 2 or not all(one.isascii() and one.isdigit() for one in numbers[:2]):
        return None
    if len(numbers[0]) > 2 or len(numbers[1]) > 3:
        return None
    return Python(int(numbers[0]), int(numbers[1]), free)
