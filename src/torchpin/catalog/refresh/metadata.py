"""METADATA of a wheel: its PEP 658 file where the index has one, else by ranges; kept by digest."""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

from torchpin.catalog.bounded import InspectError
from torchpin.catalog.http import split_login
from torchpin.catalog.refresh.fetch import Fetcher
from torchpin.catalog.refresh.kernels import Reading, _same, from_json, read_wheel, to_json
from torchpin.catalog.refresh.pages import File

FORM = 1
"""Raised when readings hold more than before: older ones are then read anew."""


def key_of(file: File) -> str:
    """Return what a file is known by: its digest, else its URL without credentials."""
    return file.sha256 or split_login(file.url)[0]


def read_file(fetcher: Fetcher, file: File, *, device: bool) -> Reading:
    """Return the reading of a wheel, from the cache if these bytes were read before.

    Args:
        fetcher: with the cache.
        file: as its page lists it.
        device: device code is wanted, not METADATA alone.

    Raises:
        InspectError: it cannot be read.
    """
    names = [f"{FORM} device {key_of(file)}"]
    if not device:
        names.append(f"{FORM} metadata {key_of(file)}")
    for name in names:
        kept = from_json(fetcher.cache.reading(name))
        if kept is not None and kept.file == file.name:
            return kept
    reading = None if device else read_metadata(fetcher, file)
    if reading is None:
        reading = read_wheel(fetcher, file, device=device)
    fetcher.cache.keep_reading(names[-1], to_json(reading))
    return reading


def read_metadata(fetcher: Fetcher, file: File) -> Reading | None:
    """Return what the PEP 658 file of a wheel says; None if there is none that can be used.

    One with another digest than the page lists is not used: the wheel itself decides.

    Raises:
        InspectError: the server cannot be reached.
    """
    if not file.metadata:
        return None
    parts = urlsplit(file.url)
    data = fetcher.small(parts._replace(path=f"{parts.path}.metadata").geturl())
    if data is None:
        return None
    if file.metadata != "true" and hashlib.sha256(data).hexdigest() != file.metadata:
        return None
    from packaging.metadata import parse_email

    try:
        raw, _ = parse_email(data)
        _same(file, raw.get("name"), raw.get("version"))
    except (ValueError, TypeError, LookupError, InspectError):
        return None
    fetcher.wheels += 1
    return Reading(
        file.name,
        file.sha256,
        False,
        False,
        False,
        raw.get("version") or "",
        None,
        None,
        None,
        raw.get("requires_python"),
        tuple(raw.get("requires_dist", ())),
        None,
        (),
    )
