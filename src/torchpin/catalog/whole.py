"""Whether the files of a refreshed catalog are those that were written."""

from __future__ import annotations

import json
import os
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD = "catalog.json"
_MOST = 64 * 1024 * 1024


def sums(files: Mapping[str, bytes]) -> dict[str, list[int]]:
    """Return size and CRC-32 of each file but the head: what ``catalog.json`` says of them."""
    return {name: [len(files[name]), zlib.crc32(files[name])] for name in sorted(files)}


def digest_of(folder: str) -> str:
    """Return the SHA-256 over the data files that the head of a catalog names, in order of names.

    Raises:
        OSError, ValueError, KeyError: the head or a file cannot be read.
    """
    import hashlib

    with open(os.path.join(folder, HEAD), encoding="utf-8") as file:
        names = sorted(json.load(file)["files"])
    whole = hashlib.sha256()
    for name in names:
        with open(os.path.join(folder, name), "rb") as data:
            whole.update(data.read())
    return whole.hexdigest()


def check_whole(folder: str, *, deep: bool = False) -> str:
    """Return what is wrong with the files of a refreshed catalog; ``""`` if they are whole.

    Sizes and CRC-32 are compared: enough against a full disk, a cut copy or changed line ends, in a
    millisecond. ``deep`` compares the SHA-256 too.
    """
    try:
        with open(os.path.join(folder, HEAD), encoding="utf-8") as file:
            head = json.load(file)
        listed = head["files"]
        for name, (size, crc) in listed.items():
            path = os.path.join(folder, os.path.basename(name))
            if os.stat(path).st_size != size or size > _MOST:
                return f"{name} does not have its size"
            with open(path, "rb") as data:
                if zlib.crc32(data.read()) != crc:
                    return f"{name} was changed"
        if deep and digest_of(folder) != head["digest"]:
            return "its digest is not that of its files"
        missing = [n for n in (*_needed(head), "partners.json", "health.json") if n not in listed]
    except OSError as error:
        return f"{os.path.basename(error.filename or HEAD)}: {error.strerror}"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return f"{HEAD} cannot be read"
    return f"{missing[0]} is missing" if missing else ""


def _needed(head: Mapping[str, Mapping[str, int]]) -> list[str]:
    return [f"builds-{name}.json" for name in head["builds"]]
