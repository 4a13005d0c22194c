"""The services of a compose file, with what they extend and what their variables hold.

Sources: https://docs.docker.com/reference/compose-file/services/#extends and
https://docs.docker.com/compose/how-tos/environment-variables/envvars-precedence/. A shell may set
other values than ``.env`` does; nobody but its user knows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from torchpin.documents.atoms import Atom, Word, cut, span_of, text_of, unknown
from torchpin.documents.base import Document, Span, line_starts, position
from torchpin.documents.parts import Reserved, file_of
from torchpin.documents.yaml_scripts import entry, pairs, text_in, word_of
from torchpin.documents.yaml_spans import Node, scan_yaml
from torchpin.errors import TorchpinError
from torchpin.named import NamedTuple
from torchpin.patterns import regex

KIND = "compose"
_MAIN = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
"""Files that Compose reads by itself; others are laid over them (``-f compose.gpu.yaml``)."""
_VARIABLE = regex(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+?])([^{}]*))?\})|\$\$")
_SETTING = regex(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|(.*?))\s*")
_SECRET = regex(r"(?i)token|secret|pass|key|cred|auth|user|login")
_MACHINES = {
    "amd64": "linux-x86_64",
    "x86_64": "linux-x86_64",
    "arm64": "linux-aarch64",
    "aarch64": "linux-aarch64",
}
_DEEPEST = 8
"""Services that extend one another."""

Read = Callable[[str], bytes]


class Layer(NamedTuple):
    """What one service writes itself."""

    file: Document
    node: Node
    folder: str = ""
    """Of its file, relative to that of the compose file that is read."""
    at: Span | None = None
    """Of another file: where the compose file that is read names it."""


class Service(NamedTuple):
    """A service with all that it extends."""

    name: str
    layers: tuple[Layer, ...]
    """Its own, then what it extends, the nearest first."""
    known: Mapping[str, str]
    """Values of ``.env``."""
    below: Service | None = None
    """The service of the main file that this one, of a file beside it, is laid over."""

    def first(self, *keys: str) -> tuple[Layer, Node] | None:
        """Return the value that counts of a key, with where it stands."""
        for layer in self.layers:
            node = entry(layer.node, *keys)
            if node is not None:
                return layer, node
        return None

    def text(self, *keys: str) -> str:
        """Return the scalar that counts of a key, ``""`` if there is none."""
        found = self.first(*keys)
        return text_of(self.word(*found)) if found is not None else ""

    @property
    def machine(self) -> str:
        """The platform that the service asks for, ``linux``: any."""
        return _MACHINES.get(self.text("platform").removeprefix("linux/").split("/")[0], "linux")

    def word(self, layer: Layer, node: Node) -> Word:
        """Return a scalar with its variables replaced."""
        return _placed(layer, interpolated(word_of(layer.file.text, node), self.known))

    def listed(self, *keys: str) -> dict[str, Word]:
        """Return a mapping, or a list of ``NAME=value``, as words.

        A name without a value takes that of ``.env``, and is left out where there is none.
        """
        found: dict[str, Word] = {}
        for layer in reversed(self.layers):
            node = entry(layer.node, *keys)
            for name, value in pairs(node):
                if value.kind == "scalar":
                    bare = not value.style and value.value in ("", "~", "null")
                    word = None if bare else self.word(layer, value)
                    self._put(found, name, word, layer.at or value.span)
            for one in node.scalars() if node is not None and node.kind == "sequence" else ():
                name, equals, _ = one.value.partition("=")
                word = cut(word_of(layer.file.text, one), len(name) + 1)
                value_of = _placed(layer, interpolated(word, self.known)) if equals else None
                self._put(found, name, value_of, layer.at or one.span)
        return found

    def _put(self, found: dict[str, Word], name: str, word: Word | None, at: Span) -> None:
        if word is not None:
            found[name] = word
        elif name in self.known:
            found[name] = (Atom(self.known[name], *at, False, None, name),)

    def reserved(self) -> Reserved | None:
        """Return the words by which the service asks for a GPU; None: it asks for none.

        Source: https://docs.docker.com/compose/how-tos/gpu-support/.
        """
        for layer in self.layers:
            found = _reserving(layer.node)
            if found is not None:
                words, span = found
                line = position(line_starts(layer.file.text), span.start).line
                return Reserved(words, self.name, layer.file.path, line)
        return None


def _reserving(service: Node) -> tuple[str, Span] | None:
    runtime = entry(service, "runtime")
    if runtime is not None and runtime.value == "nvidia":
        return "runtime: nvidia", runtime.inner
    gpus = entry(service, "gpus")
    if gpus is not None and (gpus.items or gpus.value not in ("", "0")):
        return "gpus", gpus.span
    devices = entry(service, "deploy", "resources", "reservations", "devices")
    for device in devices.items if devices is not None else ():
        driver = text_in(entry(device, "driver"))
        capabilities = entry(device, "capabilities")
        for one in capabilities.scalars() if capabilities is not None else ():
            if one.value in ("gpu", "nvidia") and driver in ("", "nvidia", "cdi"):
                return "capabilities: [gpu]", one.inner
    return None


def services(root: Node | None, file: Document, read: Read) -> Iterator[Service]:
    """Yield the services of a compose file.

    Args:
        read: gives the bytes of a file that is extended, or of ``.env``; one that cannot be read
            is passed over.
    """
    every = entry(root, "services")
    known = values_in(file, ".env", read) if "$" in file.text or "args" in file.text else None
    for name, node in pairs(every):
        layers = [Layer(file, node)]
        seen = {(file.path, name)}
        while len(layers) <= _DEEPEST:
            last = layers[-1]
            more = _extended(last, read)
            if more is None or (more[0].file.path, more[1]) in seen:
                break
            seen.add((more[0].file.path, more[1]))
            layers.append(more[0])
        below = _below(file, name, node, read) if len(layers) == 1 else None
        if below is None:
            yield Service(name, tuple(layers), known or {})
        else:
            under = Service(name, (below,), known or {})
            yield Service(name, (*layers, below), known or {}, under)


def _below(file: Document, name: str, node: Node, read: Read) -> Layer | None:
    """Return what a service of the main file says that one of another file only adds a GPU or
    arguments to."""
    folder, base = os.path.split(file.path)
    build = entry(node, "build")
    if base in _MAIN or entry(node, "image") is not None:
        return None
    if build is not None and (build.kind == "scalar" or entry(build, "context") is not None):
        return None
    if build is None and _reserving(node) is None:
        return None
    for one in _MAIN:
        try:
            main = file_of(os.path.join(folder, one), read(os.path.join(folder, one)), KIND)
        except TorchpinError:
            continue
        found = entry(scan_yaml(main.text).root, "services", name)
        line = file.text.find("\n", node.start)
        at = Span(node.start, line if node.start < line < node.end else node.end)
        return Layer(main, found, "", at) if found is not None else None
    return None


def _extended(layer: Layer, read: Read) -> tuple[Layer, str] | None:
    """Return what a service extends, and its name."""
    node = entry(layer.node, "extends")
    if node is None:
        return None
    name = text_in(node) or text_in(entry(node, "service"))
    path = text_in(entry(node, "file"))
    file, folder = layer.file, layer.folder
    if path:
        place = os.path.normpath(os.path.join(os.path.dirname(file.path), path))
        try:
            file = file_of(place, read(place), KIND)
        except TorchpinError:
            return None  # it is not here: nothing is known
        folder = os.path.join(folder, os.path.dirname(path))
    base = entry(scan_yaml(file.text).root, "services", name)
    if base is None:
        return None
    at = layer.at or (node.span if path else None)
    return Layer(file, base, folder, at), name


def _placed(layer: Layer, word: Word) -> Word:
    """Return a word of another file as one that is not written in this one."""
    if layer.at is None:
        return word
    return tuple(Atom(one.value, *layer.at, False, None, one.name, one.known) for one in word)


# -- variables


def values_in(file: Document, name: str, read: Read) -> dict[str, str] | None:
    """Return the values in a file of settings beside a compose file; None if it is not there.

    What may be a secret is left out.
    """
    try:
        data = read(os.path.normpath(os.path.join(os.path.dirname(file.path), name)))
    except TorchpinError:
        return None
    found: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        match = _SETTING.fullmatch(line)
        if match is None:
            continue
        quoted = match[2] if match[2] is not None else match[3]
        value = quoted if quoted is not None else match[4].partition(" #")[0].rstrip()
        if _SECRET.search(match[1]) is None and "@" not in value and "$" not in value:
            found[match[1]] = value
    return found


def interpolated(word: Word, known: Mapping[str, str]) -> Word:
    """Return a word with the variables of the user's environment replaced: by ``known``, or by
    their defaults."""
    text = text_of(word)
    if "$" not in text:
        return word
    found: list[Atom] = []
    at = 0
    for match in _VARIABLE.finditer(text):
        found += cut(word, at, match.start())
        at = match.end()
        span = span_of(cut(word, match.start(), match.end()))
        name = match[1] or match[2]
        operator = match[3] or ""
        value = known.get(name) if match[0] != "$$" else None
        is_set = value is not None and bool(value or not operator.startswith(":"))
        if match[0] == "$$":
            found.append(Atom("$", *span, False))
        elif operator.endswith("+"):
            if is_set:
                found += cut(word, match.start(4), match.end(4))
        elif is_set and value is not None:
            found.append(Atom(value, *span, False, None, name))
        elif operator.endswith("-"):
            inner = cut(word, match.start(4), match.end(4))
            found += [atom.used_at(*span, name) for atom in inner]
        else:
            found.append(unknown(name, *span))
    found += cut(word, at)
    return tuple(found)
