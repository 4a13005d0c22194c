"""Index pages, read: PEP 691 (JSON) and PEP 503 (HTML) in the form that PyPI and PyTorch serve.

PyTorch's pages (https://github.com/pytorch/test-infra, ``s3_management/manage_v2.py``) are HTML:
absolute or root-relative links with ``%2B``, ``#sha256=`` where the digest is known,
``data-dist-info-metadata`` and ``data-core-metadata`` (PEP 658, 714), ``data-upload-time``. The
page of a channel lists packages; nothing lists the channels but the links of the root's pages.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from torchpin.catalog.bounded import InspectError
from torchpin.named import NamedTuple
from torchpin.patterns import regex

JSON = "application/vnd.pypi.simple.v1+json"
ACCEPT_BOTH = f"{JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
ACCEPT_HTML = "text/html"
MOST_FILES = 200_000
"""More files than any project has."""
_SHA256 = regex(r"[0-9a-fA-F]{64}\Z")
_DATE = regex(r"\d{4}-\d\d-\d\d")
_API = regex(r"\d{1,4}(?:\.\d{1,4})?\Z")
_NAME = regex(r"[A-Za-z0-9_.+!-]+\Z")


class PageError(InspectError):
    """A page is not what an index serves."""


class File(NamedTuple):
    """One file of an index page."""

    name: str
    url: str
    """Absolute, without fragment; a query is kept (signed links)."""
    sha256: str
    """``""`` where the page has none."""
    requires_python: str | None
    yanked: bool
    uploaded: str
    """ISO date, ``""`` where not told."""
    size: int | None
    metadata: str
    """``""``: no PEP 658 file; ``"true"``: there is one; else its SHA-256."""


class Page(NamedTuple):
    """One index page."""

    files: tuple[File, ...]
    versions: tuple[str, ...]
    """What a PEP 700 page lists; empty elsewhere."""
    links: tuple[tuple[str, str], ...]
    """Text and absolute URL of links that are no files: the projects of a root page."""


def parse(data: bytes, url: str, content_type: str, *, complete: bool = True) -> Page:
    """Return a page, JSON or HTML as its content type says (or its first byte, without one).

    Args:
        data: the body.
        url: where it came from: links are relative to it.
        content_type: of the answer.
        complete: whether the transfer is known to be complete; else HTML must be closed.

    Raises:
        PageError: it is neither, or cut off.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith("json") or (not kind.endswith("html") and data.lstrip()[:1] == b"{"):
        return parse_json(data, url)
    page = parse_html(data, url)
    if not complete and b"</html" not in data[-4096:].lower():
        raise PageError("the page is cut off")
    return page


def parse_json(data: bytes, url: str) -> Page:
    """Return a PEP 691 page.

    Raises:
        PageError: it is not JSON of that form.
    """
    try:
        raw = json.loads(data)
        api = str(raw["meta"]["api-version"])
        listed = raw.get("files", [])
        projects = raw.get("projects", [])
        versions = tuple(str(v) for v in raw.get("versions", ()))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise PageError("the page is not an index in JSON (PEP 691)") from None
    if api.partition(".")[0] != "1":
        told = api if _API.match(api) else "unknown"
        raise PageError(f"the page is of version {told} of the simple API, not 1")
    if not isinstance(listed, list) or not isinstance(projects, list) or len(listed) > MOST_FILES:
        raise PageError("the page is not an index in JSON (PEP 691)")
    files = tuple(file for entry in listed if (file := _json_file(entry, url)) is not None)
    links = tuple(
        (str(p["name"]), urljoin(url, f"{p['name']}/"))
        for p in projects
        if isinstance(p, dict) and "name" in p
    )
    return Page(files, versions, links)


def _json_file(entry: Any, url: str) -> File | None:
    if not isinstance(entry, dict):
        return None
    name, target = entry.get("filename"), entry.get("url")
    if not isinstance(name, str) or not isinstance(target, str) or not _NAME.match(name):
        return None
    absolute = _absolute(url, target)
    if absolute is None:
        return None
    hashes = entry.get("hashes")
    sha256 = hashes.get("sha256", "") if isinstance(hashes, dict) else ""
    metadata = entry.get("core-metadata", entry.get("dist-info-metadata", False))
    digest = metadata.get("sha256", "") if isinstance(metadata, dict) else ""
    requires = entry.get("requires-python")
    size = entry.get("size")
    return File(
        name,
        absolute[0],
        _digest(sha256),
        requires if isinstance(requires, str) and requires else None,
        entry.get("yanked", False) not in (False, None),
        _date(entry.get("upload-time")),
        size if isinstance(size, int) and size > 0 else None,
        _digest(digest) or ("true" if metadata else ""),
    )


class _Links(HTMLParser):
    """Collects the anchors of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base: str | None = None
        self.anchors: list[dict[str, str | None]] = []
        self.markup = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the attributes of ``a``."""
        self.markup = self.markup or tag in ("html", "body", "a")
        if tag == "a":
            if len(self.anchors) >= MOST_FILES:
                raise PageError(f"the page holds more than {MOST_FILES} links")
            self.anchors.append(dict(attrs))
        elif tag == "base" and self.base is None:
            self.base = dict(attrs).get("href")


def parse_html(data: bytes, url: str) -> Page:
    """Return a PEP 503 page.

    Raises:
        PageError: it is not HTML with links.
    """
    parser = _Links()
    try:
        parser.feed(data.decode("utf-8"))
        parser.close()
    except UnicodeDecodeError:
        raise PageError("the page is not HTML in UTF-8") from None
    except (AssertionError, RecursionError):  # html.parser on some broken declarations
        raise PageError("the page is not HTML that can be read") from None
    if not parser.markup:
        raise PageError("the page is not HTML")
    base = urljoin(url, parser.base) if parser.base else url
    files, links = [], []
    for anchor in parser.anchors:
        href = (anchor.get("href") or "").strip()
        absolute = _absolute(base, href) if href else None
        if absolute is None:
            continue
        target, fragment = absolute
        name = unquote(urlsplit(target).path.rpartition("/")[2])
        if name.endswith((".whl", ".tar.gz", ".zip")) and _NAME.match(name):
            files.append(_html_file(name, target, fragment, anchor))
        elif not name:
            links.append((unquote(urlsplit(target).path.rstrip("/").rpartition("/")[2]), target))
    return Page(tuple(dict.fromkeys(files)), (), tuple(links))


def _html_file(name: str, target: str, fragment: str, anchor: dict[str, str | None]) -> File:
    metadata = anchor.get("data-core-metadata", anchor.get("data-dist-info-metadata", ""))
    has = "data-core-metadata" in anchor or "data-dist-info-metadata" in anchor
    kind, _, digest = (metadata or "").partition("=")
    return File(
        name,
        target,
        _digest(fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""),
        anchor.get("data-requires-python") or None,
        "data-yanked" in anchor,
        _date(anchor.get("data-upload-time")),
        None,
        (_digest(digest) if kind == "sha256" else "") or ("true" if has else ""),
    )


def _absolute(base: str, href: str) -> tuple[str, str] | None:
    """Return an http(s) URL without fragment, and the fragment; None for anything else."""
    try:
        parts = urlsplit(urljoin(base, href))
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return None
    return parts._replace(fragment="").geturl(), parts.fragment


def _digest(text: Any) -> str:
    return text.lower() if isinstance(text, str) and _SHA256.match(text) else ""


def _date(text: Any) -> str:
    return text[:10] if isinstance(text, str) and _DATE.match(text) else ""
