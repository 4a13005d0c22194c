"""``pixi.lock``: what each environment installs from PyPI and from PyTorch's channels.

Pixi writes the file itself, always in one layout (versions 4 to 7 of the format): it is read line
by line, since as YAML a large one would take seconds. Of each environment and platform the wheels
of one place are a part; conda's packages count only for the Python that they bring. They are
judged, and never edited: ``pixi lock`` makes the file anew. Source:
https://pixi.sh/latest/workspace/lockfile/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchpin.documents.base import Document, IndexLine, Span
from torchpin.documents.conda import TORCH
from torchpin.documents.lines import Logical
from torchpin.documents.parts import Part, file_of, part_of, pieces
from torchpin.documents.pixi_toml import _TARGETS as TARGETS
from torchpin.named import NamedTuple
from torchpin.patterns import regex

KIND = "pixi.lock"
_LINE = regex(
    r"(?P<indent> *)(?P<dash>- )?(?P<key>[\w.'\"-]+):(?: +(?P<value>\S[^\r\n]*?))?[ \t]*$"
)
_ITEM = regex(r" +- (?P<value>https?://\S+)[ \t]*$")
_CONDA = regex(r"[^/]+/(?P<name>[^/]+)-(?P<version>[^-/]+)-[^-/]+\.(?:conda|tar\.bz2)$")
_WHEEL = regex(r"https?://[^\s#?]+\.whl(?:#\S*)?$")
_DIGEST = regex(r"[0-9a-f]{64}")


class Package(NamedTuple):
    """One wheel of the lock."""

    name: str
    version: str
    version_span: Span
    digest: str
    origin: str = ""
    """The index that it was found on, where that is not the default one (version 7)."""


class Chosen(NamedTuple):
    """One environment on one platform."""

    environment: str
    platform: str
    """As Pixi calls it: ``linux-64``."""
    indexes: tuple[str, ...]
    urls: tuple[tuple[str, Span], ...]
    python: str | None
    torch: bool
    """conda installs torch in it."""


def read_pixi_lock(path: str, data: bytes) -> Document:
    """Return the document of a ``pixi.lock``; never raises."""
    file = file_of(path, data, KIND)
    if file.problems:
        return file
    packages, chosen = _read(file.text)
    parts: list[Part] = []
    for one in chosen:
        parts += _parts(file, one, packages)
    return file._replace(parts=tuple(parts))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, line.rstrip("\r")
        at += len(line) + 1


def _read(text: str) -> tuple[dict[str, Package], list[Chosen]]:
    """Return the wheels by their URL, and the environments."""
    packages: dict[str, Package] = {}
    found: list[Chosen] = []
    fields: dict[str, tuple[str, Span]] = {}
    top = environment = section = platform = named = ""
    systems: dict[str, str] = {}
    base = -1
    indexes: list[str] = []
    for at, line in _lines(text):
        match = _LINE.match(line)
        if match is None:
            item = _ITEM.match(line) if section == "indexes" else None
            if item is not None:
                indexes.append(item["value"])
            continue
        depth, dash = len(match["indent"]), match["dash"] is not None
        key, value = match["key"].strip("'\""), match["value"] or ""
        if depth == 0 and not dash:
            _keep(packages, fields)
            top, fields, environment, section, base = key, {}, "", "", -1
        elif top == "platforms":  # version 7: names, and the systems that they stand for
            named = value if key == "name" else named
            if key == "subdir":
                systems[named] = value
        elif top == "environments":
            if depth == 2 and not dash:
                environment, section, indexes = key, "", []
            elif depth == 4 and not dash:
                section = key
            elif section == "packages" and depth == 6 and not dash:
                platform = systems.get(key, key)
                found.append(Chosen(environment, platform, tuple(indexes), (), None, False))
            elif section == "packages" and depth in (6, 8) and dash and found:
                span = Span(at + line.rindex(value), at + line.rindex(value) + len(value))
                found[-1] = _with(found[-1], key, value, span) if value else found[-1]
        elif top == "packages":
            base = depth if dash and base < 0 else base
            if dash and depth == base:
                _keep(packages, fields)
                fields = {}
            if depth == (base if dash else base + 2) and value:
                plain = value.strip("'\"")
                start = at + line.rindex(plain) if plain else at
                fields.setdefault(key, (plain, Span(start, start + len(plain))))
    _keep(packages, fields)
    return packages, found


def _with(chosen: Chosen, key: str, value: str, span: Span) -> Chosen:
    if key == "pypi":
        return chosen._replace(urls=(*chosen.urls, (value, span)))
    conda = _CONDA.search(value)
    if conda is None:
        return chosen
    if conda["name"] == "python":
        return chosen._replace(python=".".join(conda["version"].split(".")[:2]))
    return chosen._replace(torch=chosen.torch or conda["name"] in TORCH)


def _keep(packages: dict[str, Package], fields: dict[str, tuple[str, Span]]) -> None:
    """Keep the wheel that an entry of ``packages`` describes."""
    url = fields.get("pypi", fields.get("url", ("", Span(0, 0))))[0]
    if ("pypi" in fields or fields.get("kind", ("",))[0] == "pypi") and _WHEEL.match(url):
        name, version = fields.get("name"), fields.get("version")
        digest = fields.get("sha256", ("", Span(0, 0)))[0]
        if name is not None and version is not None:
            good = digest if _DIGEST.fullmatch(digest) else ""
            index = fields.get("index", ("", Span(0, 0)))[0]
            packages[url] = Package(name[0], version[0], version[1], good, index)


def _parts(file: Document, chosen: Chosen, packages: dict[str, Package]) -> Iterator[Part]:
    """Yield a part for each place that the wheels of an environment come from."""
    marker = TARGETS.get(chosen.platform)
    if marker is None:
        return
    groups: dict[str, list[tuple[Package, Span]]] = {}
    for url, span in chosen.urls:
        package = packages.get(url)
        if package is not None:
            groups.setdefault(_place(url) or package.origin, []).append((package, span))
    for place, group in sorted(
        groups.items(), key=lambda each: all(one.name != "torch" for one, _ in each[1])
    ):
        title = f"environment {chosen.environment}, {chosen.platform}"
        index = place or (chosen.indexes[0] if chosen.indexes else "")
        part = part_of(
            file,
            _requirements(group, marker),
            name=f"{title} from {place}" if place else title,
            span=Span(group[0][1].start, max(span.end for _, span in group)),
            syntax="lock",
            client="uv",
        )
        if index:
            at = group[0][1]
            line = IndexLine("--index-url", index, at, at, at, from_variable=True)
            part = part._replace(document=part.document._replace(indexes=(line,)))
        yield part._replace(
            python=chosen.python,
            uncertain="conda installs torch in this environment" if chosen.torch else None,
            command=True,
            environment=f"{chosen.environment}, {chosen.platform}",
        )


def _place(url: str) -> str:
    """Return the channel that a wheel lies on, ``""`` for any other place."""
    folder = url.partition("#")[0].rpartition("/")[0]
    host, found, channel = folder.partition("/whl/")
    if not found or "pytorch" not in host:
        return ""
    return f"{host}/whl/{channel.partition('/')[0]}"


def _requirements(group: Iterable[tuple[Package, Span]], marker: str) -> Iterator[Logical]:
    for package, _ in group:
        span = package.version_span
        line = [
            (f"{package.name}==", span.start, span.start, False),
            (package.version, span.start, span.end, False),
            (f" ; {marker}", span.end, span.end, False),
        ]
        if package.digest:
            line.append((f" --hash=sha256:{package.digest}", span.end, span.end, False))
        yield pieces(line, span)
