"""What a refresh is asked for, and what comes out of it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from packaging.version import Version

from torchpin.catalog.http import split_login
from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import WATCHED
from torchpin.errors import TorchpinError, UsageError
from torchpin.named import NamedTuple
from torchpin.patterns import regex

CHANNEL_ROOT = "https://download.pytorch.org/whl"
PACKAGES = (*WATCHED, "bitsandbytes")
"""What a refresh asks the indexes for, beside what the catalog holds already."""
_DATE = regex(r"\d{4}-\d\d-\d\d\Z")


class Settings(NamedTuple):
    """What a refresh is asked for."""

    packages: tuple[str, ...] = ()
    """Canonical names; empty: all."""
    channels: tuple[str, ...] = ()
    """``pypi`` and channels; empty: PyPI and all channels that are known or found."""
    since: str = ""
    """A version of torch or an ISO date: read wheels from then on where facts are missing."""
    pypi: str | None = None
    """URL of the index that stands for PyPI; None: what pip and uv use."""
    whl: str = CHANNEL_ROOT
    """URL under which the channels lie."""
    mirrors: tuple[tuple[str, str], ...] = ()
    """Channel and URL, where one has an address of its own."""
    jobs: int = 8
    idle: float = 20.0
    output: str | None = None
    dry_run: bool = False
    allow_removal: bool = False
    today: str = ""


class Failed(NamedTuple):
    """A part that could not be read."""

    part: str
    """``pypi/torch``, ``cu126/torch``, ``cu126``, or a wheel's file name."""
    why: str
    kept: str
    """Date of the data that stay; ``""``: nothing was known."""


class Change(NamedTuple):
    """One thing that a refresh found."""

    kind: str
    package: str
    text: str


class Result(NamedTuple):
    """What a refresh did."""

    folder: str | None
    """Where the new catalog lies; None for a dry run, or if nothing was reached."""
    date: str
    digest: str
    """Of the catalog that is used from now on; of the old one if nothing was written."""
    changes: tuple[Change, ...]
    failed: tuple[Failed, ...]
    pages: int
    """Pages that answered, changed or not."""
    unchanged: int
    wheels: int
    """Wheels and METADATA files read over the network."""
    requests: int
    fetched: int
    seconds: float
    unreachable: tuple[str, ...] = ()
    """Hosts that could not be reached at all."""
    not_kept: str = ""
    """Why pages or what was read of wheels could not be kept for the next time."""


def addresses(urls: Sequence[str], settings: Settings) -> Settings:
    """Return the settings with what ``--index`` names.

    ``…/whl`` stands for the root of the channels, ``…/whl/cu126`` for one of them, anything else
    for PyPI.

    Raises:
        UsageError: a URL that cannot be used.
    """
    for url in urls:
        try:
            bare, _ = split_login(url)
        except TorchpinError as error:
            raise UsageError(f"--index: {error.message}") from error
        whole = url.partition("#")[0].rstrip("/")
        path = bare.partition("?")[0].rstrip("/").split("/")
        if path[-1] == "whl":
            settings = settings._replace(whl=whole)
        elif len(path) > 1 and path[-2] == "whl" and kind_of_label(path[-1]):
            settings = settings._replace(mirrors=(*settings.mirrors, (path[-1], whole)))
        else:
            settings = settings._replace(pypi=whole)
    return settings


def check_since(text: str) -> str:
    """Return ``text`` if it is a version or a date.

    Raises:
        UsageError: it is neither.
    """
    text = text.strip()
    try:
        if _DATE.match(text):
            datetime.date.fromisoformat(text)
        else:
            Version(text)
    except ValueError:  # InvalidVersion is one
        raise UsageError(
            f"--since takes a version of torch or a date, not {text!r}",
            hint="--since 2.14, --since 2026-11-30",
        ) from None
    return text
