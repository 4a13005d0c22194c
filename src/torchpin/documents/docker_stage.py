"""A stage of a Dockerfile: what it has set so far, and where its files come from."""

from __future__ import annotations

import re

from torchpin.documents.atoms import Word, text_of
from torchpin.documents.commands import Reader
from torchpin.documents.docker_lines import Instruction
from torchpin.documents.parts import Image
from torchpin.documents.shell_words import Text
from torchpin.patterns import regex

_SYSTEM = regex(
    r"/usr(?:/local)?(?:/lib(?:/python3[\d.]*)?)?|/opt/conda|.*/\.local(?:/lib)?"
    r"|.*/(?:site|dist)-packages"
)
"""Folders that hold what is installed for the Python of the system."""


class Stage:
    """A build stage, and what it has set so far."""

    def __init__(self, name: str, image: Image | None, base: Stage | None) -> None:
        self.name = name
        self.image = image
        self.base = base
        self.environment: str = f"{base.environment}/{name}" if base is not None else name
        self.variables: dict[str, Word] = dict(base.variables) if base is not None else {}
        self.folder: str = base.folder if base is not None else ""
        self.copied: list[tuple[str, str]] = list(base.copied) if base is not None else []
        """(path in the context, path in the image), folders with a slash at the end."""
        self.written: dict[str, tuple[Text, ...]] = dict(base.written) if base is not None else {}
        """Path in the image → lines of a here-document that ``COPY`` puts there."""
        self.platform: str | None = base.platform if base is not None else None
        self.shell: list[str] = list(base.shell) if base is not None else ["/bin/sh", "-c"]
        self.image_word: Word = base.image_word if base is not None else ()
        """What names the image, with the places of its variables."""
        self.reader: Reader | None = None
        self.sources: list[Stage] = []
        """Stages that files are copied from."""
        self.triggers: list[Instruction] = []
        """What ``ONBUILD`` keeps for images that build on this one."""

    def reached(self) -> list[Stage]:
        """Return the stages that this one needs, itself among them."""
        found: list[Stage] = []
        queue: list[Stage] = [self]
        while queue:
            stage = queue.pop()
            if stage not in found:
                found.append(stage)
                queue += [*stage.sources, *((stage.base,) if stage.base is not None else ())]
        return found

    def take_from(self, other: Stage, source: str, target: str) -> None:
        """Take in files of another stage: a virtual environment, or what its Python has."""
        self.sources.append(other)
        mine, theirs = self.reader, other.reader
        if mine is None or theirs is None or not source.startswith("/"):
            return
        target = normal(target if target.startswith("/") else f"{self.folder}/{target}")
        source = normal(source)
        mine.taken.append((source, target, theirs))
        if mine.parts or _SYSTEM.fullmatch(target) is None:
            return
        if source == target or _fills(mine.setting.file.text, source):
            self.environment = f"{other.environment}/{self.name}"
            mine.base = f"{theirs.base}/{self.name}"

    def in_context(self, path: str) -> str:
        """Return where in the build context a file of the image lies, as far as it is known."""
        if "://" in path or "$" in path:
            return path
        place = normal(path if path.startswith("/") else f"{self.folder}/{path}")
        for source, target in reversed(self.copied):
            if place == target and source not in ("", "."):
                if "*" in source:
                    return _beside(source, place)
                return source
            name = source.rsplit("/", 1)[-1]
            if "." in name.lstrip(".") and "*" not in name:
                continue  # by its name a file, not a folder
            if target in ("", "/") or place.startswith(f"{target}/"):
                inside = place[len(target) :].lstrip("/") if target not in ("", "/") else place[1:]
                if "*" in source:
                    return _beside(source, place)
                return f"{source}/{inside}" if source not in ("", ".") else inside
        return path.lstrip("/") if not path.startswith("/") else path


def _fills(text: str, folder: str) -> bool:
    """True if a command installs into a folder that is no environment: ``--prefix=/install``."""
    return (
        re.search(rf"--(?:prefix|target|root)[=\s]+{re.escape(folder)}(?![\w/])", text) is not None
    )


def virtual(environ: dict[str, Word]) -> str:
    """Return the virtual environment that ``ENV`` has put first on the path, ``""`` if none."""
    chosen = text_of(environ.get("VIRTUAL_ENV", ()))
    if chosen:
        return f"{chosen}/bin/activate"
    first = text_of(environ.get("PATH", ())).partition(":")[0]
    match = re.fullmatch(r"(.*venv[^/]*)/bin/?", first)
    return f"{match[1]}/bin/activate" if match is not None else ""


def with_copies(stage: Stage, more: list[tuple[str, str]]) -> Stage:
    """Return a stage with more files of the build context in it, for one instruction."""
    other = Stage(stage.name, stage.image, None)
    other.folder = stage.folder
    other.copied = [
        *stage.copied,
        *(
            (source, target if target.startswith("/") else normal(f"{stage.folder}/{target}"))
            for source, target in more
        ),
    ]
    return other


def mounted(options: str) -> list[tuple[str, str]]:
    """Return what a bind mount shows: path in the build context, and in the image."""
    values = {
        key: value
        for key, _, value in (one.partition("=") for one in options.strip('"').split(","))
    }
    if "from" in values:
        return []
    source = values.get("source", values.get("src", "."))
    target = values.get("target", values.get("dst", values.get("destination", "")))
    return [(normal(source), normal(target) if target.startswith("/") else target)]


def normal(path: str) -> str:
    """Return a path without ``.`` components and doubled slashes."""
    absolute = path.startswith("/")
    kept: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        else:
            kept.append(part)
    return ("/" if absolute else "") + "/".join(kept)


def _beside(pattern: str, place: str) -> str:
    """Return a copied file in the folder of the pattern that it was copied by."""
    folder = pattern.rpartition("/")[0]
    name = place.rsplit("/", 1)[-1]
    return f"{folder}/{name}" if folder else name
