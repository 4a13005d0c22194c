"""A stage of a Dockerfile: what it has set so far, and where its files come from."""

from __future__ import annotations

import re

from torchpin.documents.atoms import Word, text_of
from torchpin.documents.commands import Reader
from torchpin.documents.parts import Image
from torchpin.documents.shell_words import Text


class Stage:
    """A build stage, and what it has set so far."""

    def __init__(self, name: str, image: Image | None, base: Stage | None) -> None:
        self.name = name
        self.image = image
        self.environment: str = f"{base.environment}/{name}" if base is not None else name
        self.variables: dict[str, Word] = dict(base.variables) if base is not None else {}
        self.folder: str = base.folder if base is not None else ""
        self.copied: list[tuple[str, str]] = list(base.copied) if base is not None else []
        """(path in the context, path in the image), folders with a slash at the end."""
        self.written: dict[str, tuple[Text, ...]] = dict(base.written) if base is not None else {}
        """Path in the image → lines of a here-document that ``COPY`` puts there."""
        self.platform: str | None = base.platform if base is not None else None
        self.shell: list[str] = list(base.shell) if base is not None else ["/bin/sh", "-c"]
        self.reader: Reader | None = None

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
