"""Whether all that an earlier run asked of the file system is still answered the same."""

from __future__ import annotations

import os

from torchpin import seen
from torchpin.documents.discover import (
    Candidate,
    content_of,
    digest_of,
    fingerprint,
    listing_of,
    python_files,
)
from torchpin.documents.kinds import KINDS
from torchpin.documents.loader import folders_in, locks_beside, plain_bytes
from torchpin.errors import TorchpinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def contents_of(
    entry: dict[str, Any], paths: tuple[str, ...]
) -> tuple[dict[str, bytes] | None, str]:
    """Return the bytes of the files whose text the findings of an entry show, if it still holds.

    Otherwise None and what differs. Never raises.
    """
    try:
        walk: str = entry["walk"]
        texts: dict[str, str] = entry["texts"]
        asked: list[list[str]] = entry["asked"]
        return _contents(walk, texts, asked, paths)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None, "is none of this torchpin"
    except (OSError, TorchpinError) as error:
        return None, f"a path cannot be looked at: {error}"


def _contents(
    walk: str, texts: dict[str, str], asked: list[list[str]], paths: tuple[str, ...]
) -> tuple[dict[str, bytes] | None, str]:
    contents: dict[str, bytes] = {}
    digests: dict[str, str] = {}
    listing = listing_of(paths, KINDS)
    for one in listing.candidates:
        content = content_of(one)
        digests[one.path] = digest = digest_of(content)
        if isinstance(content, bytes) and texts.get(one.path) == digest:
            contents[one.path] = content
    if fingerprint(listing, digests) != walk:
        return None, "the files of the folder differ"
    for question, about, answer, real in asked:
        if _answer(question, about) != answer or (real and os.path.realpath(about) != real):
            return None, f"{about} differs"
    for path, digest in texts.items():
        if path not in contents:
            content = content_of(Candidate(path, "", True, ""))
            if not isinstance(content, bytes) or digest_of(content) != digest:
                return None, f"{path} differs"
            contents[path] = content
    return contents, ""


def _answer(question: str, about: str) -> str:
    """Return what the answer to a question is now, as ``torchpin.seen`` would note it."""
    if question == seen.STATE:
        return seen.state(about)
    if question == seen.READ:
        try:
            return seen.digest(plain_bytes(about))
        except TorchpinError as error:
            return f"!{error.message}"
    if question == seen.LOCKS:
        return seen.listed(locks_beside(about))
    if question == seen.FOLDERS:
        return seen.listed(folders_in(about))
    if question == seen.SOURCES:
        return seen.listed(python_files(about.split("\0")))
    raise ValueError(f"unknown question {question!r}")
