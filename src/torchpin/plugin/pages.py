"""A simple index as files: PEP 503 in HTML, PEP 691 in JSON, PEP 658 where upstream has it."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping

from torchpin.plugin.choice import Wheel

HTML = "index.html"
JSON = "index.json"
HTML_TYPE = "text/html; charset=utf-8"
JSON_TYPE = "application/vnd.pypi.simple.v1+json"


def pages(wheels: Iterable[Wheel], title: str) -> dict[str, str]:
    """Return path → text of all pages: of the index itself and of each package.

    Args:
        wheels: the files.
        title: for people who look at it: for whom, and as of when.
    """
    by_package: dict[str, dict[str, Wheel]] = {}
    for wheel in wheels:
        by_package.setdefault(wheel.package, {})[wheel.filename] = wheel
    names = sorted(by_package)
    links = [f'<a href="{name}/">{name}</a><br>' for name in names]
    projects = [{"name": name} for name in names]
    out = {
        HTML: _html(title, links),
        JSON: _json({"meta": {"api-version": "1.0"}, "projects": projects}),
    }
    for name in names:
        files = by_package[name].values()
        out[f"{name}/{HTML}"] = _html(f"{name}: {title}", [link(one) for one in files])
        out[f"{name}/{JSON}"] = _json(
            {"meta": {"api-version": "1.0"}, "name": name, "files": [entry(one) for one in files]}
        )
    return out


def url_of(wheel: Wheel) -> str:
    """Return the URL of a file as the page of its package names it."""
    return wheel.url if wheel.path is None else f"../{wheel.url}"


def link(wheel: Wheel) -> str:
    """Return the anchor of a file."""
    href = url_of(wheel) + (f"#sha256={wheel.sha256}" if wheel.sha256 else "")
    attributes: dict[str, str] = {"href": href}
    if wheel.requires_python:
        attributes["data-requires-python"] = wheel.requires_python
    if wheel.metadata:
        told = "true" if wheel.metadata == "true" else f"sha256={wheel.metadata}"
        attributes["data-core-metadata"] = told
        attributes["data-dist-info-metadata"] = told
    if wheel.yanked:
        attributes["data-yanked"] = ""
    text = " ".join(f'{name}="{html.escape(value)}"' for name, value in attributes.items())
    return f"<a {text}>{html.escape(wheel.filename)}</a><br>"


def entry(wheel: Wheel) -> Mapping[str, object]:
    """Return a file of a PEP 691 page."""
    found: dict[str, object] = {
        "filename": wheel.filename,
        "url": url_of(wheel),
        "hashes": {"sha256": wheel.sha256} if wheel.sha256 else {},
    }
    if wheel.requires_python:
        found["requires-python"] = wheel.requires_python
    if wheel.metadata:
        told = True if wheel.metadata == "true" else {"sha256": wheel.metadata}
        found["core-metadata"] = told
        found["dist-info-metadata"] = told
    found["yanked"] = wheel.yanked
    return found


def _html(title: str, lines: Iterable[str]) -> str:
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="pypi:repository-version" content="1.0">\n'
        f"<title>{html.escape(title)}</title>\n</head>\n<body>\n"
    )
    return head + "".join(f"{line}\n" for line in lines) + "</body>\n</html>\n"


def _json(page: object) -> str:
    return json.dumps(page, indent=1) + "\n"
