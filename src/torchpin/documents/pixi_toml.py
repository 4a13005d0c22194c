"""``pixi.toml``: the PyPI side of each environment, and what conda installs beside it.

Pixi resolves ``[pypi-dependencies]`` with uv's resolver, from the indexes of ``[pypi-options]``;
one with an ``index`` of its own comes from there alone. An environment holds its features and,
unless ``no-default-feature`` is set, what stands at the top. What conda installs under the name of
a PyPI package is not installed from PyPI again. Source:
https://pixi.sh/latest/reference/pixi_manifest/.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.documents.base import Document, IndexLine, Span
from torchpin.documents.conda import TORCH, Conda, CondaSpec, channel_name, pep440, python_of
from torchpin.documents.parts import Part, part_of
from torchpin.documents.pipfile import Asked, asked_of, editable
from torchpin.documents.requirement import canonical
from torchpin.documents.toml_view import View, opened_toml
from torchpin.named import NamedTuple

KIND = "pixi.toml"
_LINUX, _WINDOWS, _MAC = (f"sys_platform == '{one}'" for one in ("linux", "win32", "darwin"))
_TARGETS = {
    "linux": _LINUX,
    "win": _WINDOWS,
    "osx": _MAC,
    "unix": "sys_platform != 'win32'",
    "linux-64": f"{_LINUX} and platform_machine == 'x86_64'",
    "linux-aarch64": f"{_LINUX} and platform_machine == 'aarch64'",
    "win-64": f"{_WINDOWS} and platform_machine == 'AMD64'",
    "win-arm64": f"{_WINDOWS} and platform_machine == 'ARM64'",
    "osx-64": f"{_MAC} and platform_machine == 'x86_64'",
    "osx-arm64": f"{_MAC} and platform_machine == 'arm64'",
}
"""Pixi's targets as environment markers."""
_FOLLOWS = ("torchvision", "torchaudio", "torchtext", "torchrec", "xformers", "vllm")
"""Packages each release of which is for one release of torch."""


class Layer(NamedTuple):
    """What one table (the top, a feature, a target of them) adds to an environment."""

    view: View
    marker: str


def read_pixi_toml(path: str, data: bytes) -> Document:
    """Return the document of a ``pixi.toml``; never raises."""
    file, root = opened_toml(path, data, KIND)
    if root is None:
        return file
    return with_pixi(file, root)


def with_pixi(file: Document, root: View) -> Document:
    """Return a document with the parts of a Pixi manifest, of which ``root`` is the top."""
    features = dict(root.entries("feature"))
    parts: list[Part] = []
    seen: set[tuple[str, ...]] = set()
    specs: dict[Span, CondaSpec] = {}
    for name, chosen, plain in _environments(root):
        tables = ([root] if plain else []) + [features[one] for one in chosen if one in features]
        layers = [layer for table in tables for layer in _layers(table)]
        conda = Conda(_channels(root, tables), tuple(_specs(layers)))
        specs.update((spec.span, spec) for spec in conda.specs)
        for part in _parts(file, name, layers, tables, conda):
            key = (part.python or "", *_lines(part))
            if key not in seen:  # environments that ask for the same
                seen.add(key)
                parts.append(part)
    conda = Conda(_channels(root, [root]), tuple(specs[key] for key in sorted(specs)))
    return file._replace(parts=tuple(parts), conda=conda)


def _environments(root: View) -> Iterator[tuple[str, list[str], bool]]:
    """Yield name, features, and whether the top counts, of each environment."""
    yield "default", _features(root, "default"), True
    for name, view in root.entries("environments"):
        if name == "default":
            continue
        if isinstance(view.value, list):
            yield name, [one.value for one in view.strings()], True
        elif view.is_table():
            chosen = [one.value for one in view.strings("features")]
            yield name, chosen, not view.flag("no-default-feature")


def _features(root: View, name: str) -> list[str]:
    view = root.get("environments", name)
    if view is None:
        return []
    listed = view.strings() if isinstance(view.value, list) else view.strings("features")
    return [one.value for one in listed]


def _layers(table: View) -> Iterator[Layer]:
    yield Layer(table, "")
    for name, target in table.entries("target"):
        if target.is_table() and name in _TARGETS:
            yield Layer(target, _TARGETS[name])


def _channels(root: View, tables: list[View]) -> tuple[tuple[str, Span], ...]:
    found: list[tuple[str, Span]] = []
    for view in (root.get("workspace"), root.get("project"), *tables[1:]):
        if view is None or not view.is_table():
            continue
        for one in view.items("channels"):
            if isinstance(one.value, str):
                found.append((channel_name(one.value), one.span))
            elif one.is_table():
                inner = one.string("channel")
                if inner is not None:
                    found.append((channel_name(inner.value), inner.span))
    return tuple(found)


def _specs(layers: list[Layer]) -> Iterator[CondaSpec]:
    for layer in layers:
        for name, view in layer.view.entries("dependencies"):
            version = view.value if isinstance(view.value, str) else ""
            channel = build = ""
            if view.is_table():
                given = view.value
                version = given.get("version", "")
                channel, build = given.get("channel", ""), given.get("build", "")
            if all(isinstance(one, str) for one in (version, channel, build)):
                wanted = "" if version in ("", "*") else pep440(version)[0]
                span = Span(view.entry.start, view.entry.end)
                yield CondaSpec(name.lower(), wanted, build, channel_name(channel), span)


def _parts(
    file: Document, name: str, layers: list[Layer], tables: list[View], conda: Conda
) -> Iterator[Part]:
    """Yield the parts of one environment: one for each index that packages come from alone."""
    indexes = [line for table in tables for line in _indexes(table)]
    torch = any(spec.name in TORCH for spec in conda.specs)
    groups: dict[str, list[Asked]] = {}
    for layer in layers:
        for key, view in layer.view.entries("pypi-dependencies"):
            one = asked_of(key, view, layer.marker)
            if one is not None:
                groups.setdefault(one.source, []).append(one)
    names: dict[str, int] = {}
    for url, group in _apart(groups).items():
        title = f"environment {name}" + (f" from {channel_of(url)}" if url else "")
        names[title] = names.get(title, 0) + 1
        start = min(one.line.line_span.start for one in group)
        part = part_of(
            file,
            [one.line for one in group],
            name=title if names[title] == 1 else f"{title} {names[title]}",
            span=Span(start, max(one.line.line_span.end for one in group)),
            syntax="toml",
            client="uv",
        )
        own = _own_index(group, url, layers) if url else indexes
        yield part._replace(
            document=editable(part.document, group)._replace(indexes=tuple(own)),
            python=python_of(conda),
            uncertain="conda installs torch in this environment" if torch else None,
            command=True,
            environment=name,
        )


def _apart(groups: dict[str, list[Asked]]) -> dict[str, list[Asked]]:
    """Return what comes from each index, that of torch first.

    Pixi resolves all of an environment together: what pins its torch and is open itself follows the
    torch of the other index, which no part tells.
    """
    home = next((url for url, some in groups.items() if any(a.name == "torch" for a in some)), None)
    if home is None:
        return groups
    found = {home: groups[home]}
    for url, group in groups.items():
        some = [one for one in group if one.name not in _FOLLOWS or "==" in one.line.text]
        if url != home and some:
            found[url] = some
    return found


def channel_of(url: str) -> str:
    """Return what a user calls an index: its host, so that a new channel keeps the name."""
    return url.partition("://")[2].partition("/")[0] or url


def _own_index(group: list[Asked], url: str, layers: list[Layer]) -> list[IndexLine]:
    """Return the index that packages name themselves."""
    names = {one.name for one in group}
    for layer in layers:
        for key, view in layer.view.entries("pypi-dependencies"):
            given = view.string("index") if view.is_table() else None
            if given is not None and given.value == url and canonical(key) in names:
                return [
                    IndexLine(
                        "--index-url", url, given.entry, given.span, given.entry, not given.plain
                    )
                ]
    return []


def _indexes(table: View) -> Iterator[IndexLine]:
    options = table.get("pypi-options")
    if options is None or not options.is_table():
        return
    main = options.string("index-url")
    if main is not None:
        yield IndexLine(
            "--index-url", main.value, main.entry, main.span, main.entry, not main.plain
        )
    for one in options.strings("extra-index-urls"):
        yield IndexLine("--extra-index-url", one.value, one.span, one.span, one.span, not one.plain)
    for item in options.items("find-links"):
        link = item.string("url") if item.is_table() else None
        if link is not None:
            yield IndexLine(
                "--find-links", link.value, link.entry, link.span, link.entry, not link.plain
            )


def _lines(part: Part) -> list[str]:
    document = part.document
    return [
        *(f"{one.span.start}" for one in document.declarations),
        *(f"{one.span.start}" for one in document.indexes),
    ]
