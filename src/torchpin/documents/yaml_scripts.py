"""Scripts that stand in YAML scalars: each character of a value and where it is written.

A block scalar loses its indentation, a folded one its line ends, a quoted one its escapes; words of
the commands inside are found at the place where the user wrote them all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from torchpin.documents.atoms import Atom, Source, Word, cut, span_of, text_of, unknown
from torchpin.documents.base import Document, Span
from torchpin.documents.command_parts import Setting
from torchpin.documents.command_words import python_in
from torchpin.documents.commands import Reader
from torchpin.documents.image_part import image_part, speaks
from torchpin.documents.parts import Cell, Image, Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import Shell, read_script
from torchpin.documents.yaml_spans import Node, scan_yaml
from torchpin.named import NamedTuple
from torchpin.patterns import regex

MOST_PARTS = 1_000
"""Installs of one file that are judged."""
MOST_CELLS = 256
"""Of one matrix; GitHub allows no more either."""
_PIECES = regex(r"\s+|\S+")
_BLANKS = regex(r"\s*")
_CLEAR = regex(r"([-+]?\d+)\.(\d*?)0*")
_POSIX = regex(r"(?:.*[/\\])?(?:ba|da|z|k|a)?sh(?:\.exe)?\b")
_BATCH = regex(r"(?:.*[/\\])?(?:pwsh|powershell|cmd)\b")
_PLAIN_INSTALL = regex(
    r"\s*(?:&\s*)?(?:py(?:thon[\d.]*)?(?:\.exe)?\s+(?:-\S+\s+)*-m\s+)?(?:pip[\d.]*|uv)(?:\.exe)?\s"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", " ": " "}
_NAME = regex(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
MERGE = "<<"
_DEEPEST = 20


def opened(path: str, data: bytes, kind: str) -> tuple[Document, tuple[Node, ...]]:
    """Return the document of a CI file with its comments, and the roots of its YAML.

    There are none where nothing in the text installs, or the text is no YAML (a problem of the
    code ``yaml``). Never raises.
    """
    file = file_of(path, data, kind)
    if file.problems or not speaks(file.text):
        return file, ()
    read = scan_yaml(file.text)
    if read.problem is not None:
        return file._replace(problems=(read.problem,)), ()
    return file._replace(comments=notes_in(file.text)), read.roots


def word_of(text: str, node: Node) -> Word:
    """Return the value of a scalar with the places of its characters; other nodes are empty."""
    if node.kind != "scalar" or not node.value:
        return ()
    start, end = node.inner
    if text[start:end] == node.value:
        return (Atom(node.value, start, end, True),)
    found = _aligned(text, node)
    return found if found is not None else (Atom(node.value, node.start, node.end, False),)


def _aligned(text: str, node: Node) -> Word | None:
    """Return the value beside its text; None if one cannot be followed in the other."""
    atoms: list[Atom] = []
    at, end = node.inner

    def add(value: str, begin: int, stop: int, *, plain: bool) -> None:
        last = atoms[-1] if atoms else None
        if plain and last is not None and last.plain and last.end == begin:
            atoms[-1] = Atom(last.value + value, last.start, stop, True)
        else:
            atoms.append(Atom(value, begin, stop, plain))

    for match in _PIECES.finditer(node.value):
        piece = match[0]
        if piece.isspace():
            begin = at
            at, exact = _blanks(text, at, end, node.style)
            exact = exact and text[begin:at] == piece
            add(piece, begin, at, plain=exact)
            continue
        if not text.startswith(piece, at):
            at, _ = _blanks(text, at, end, node.style)
        if text.startswith(piece, at):
            add(piece, at, at + len(piece), plain=True)
            at += len(piece)
            continue
        for char in piece:
            stop = _char(text, at, char, node.style)
            if stop < 0:
                return None
            add(char, at, stop, plain=stop - at == 1)
            at = stop
    return tuple(atoms) if at <= end else None


def _blanks(text: str, at: int, end: int, style: str) -> tuple[int, bool]:
    """Return where blanks end that begin at ``at``, and whether no escape is among them."""
    exact = True
    while at < end:
        match = _BLANKS.match(text, at, end)
        at = match.end() if match is not None else at
        if style != '"' or text[at : at + 1] != "\\":
            break
        if text[at + 1 : at + 2] not in ("n", "t", "r", " ", "\n", "\r"):
            break
        at += 2
        exact = False
    return at, exact


def _char(text: str, at: int, char: str, style: str) -> int:
    """Return where one character of a quoted value ends, -1 if it does not stand at ``at``."""
    if style == '"' and text[at : at + 1] == "\\":
        after = text[at + 1 : at + 2]
        if after == char or _ESCAPES.get(after) == char:
            return at + 2
        if after in ("\n", "\r"):  # a line that goes on
            match = _BLANKS.match(text, at + 1)
            return _char(text, match.end() if match is not None else at + 1, char, "'")
        return -1
    if style == "'" and char == "'" and text.startswith("''", at):
        return at + 2
    return at + 1 if text.startswith(char, at) else -1


def number_of(node: Node, word: Word) -> Word:
    """Return a value as systems print it that read bare numbers: ``3.10`` becomes ``3.1``."""
    if node.kind != "scalar" or node.style:
        return word
    match = _CLEAR.fullmatch(node.value)
    if match is None:
        return word
    value = f"{match[1]}.{match[2]}" if match[2] else match[1]
    return word if value == node.value else (Atom(value, node.start, node.end, False),)


# -- mappings with merge keys


def pairs(node: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield keys and values of a mapping, with what it merges in (``<<``)."""
    yield from _entries(node, set(), 0).items()


def _entries(node: Node | None, seen: set[int], depth: int) -> dict[str, Node]:
    found: dict[str, Node] = {}
    if node is None or node.kind != "mapping" or depth > _DEEPEST or id(node) in seen:
        return found
    seen.add(id(node))  # twice gives no more, and aliases shall not unfold without end
    for key, _, value in node.pairs():
        if key == MERGE:
            below = value.items if value.kind == "sequence" else (value,)
            for one in reversed(list(below)):
                found.update(_entries(one, seen, depth + 1))
    for key, _, value in node.pairs():
        if key != MERGE:
            found[key] = value
    return found


def entry(node: Node | None, *keys: str) -> Node | None:
    """Return the value below a path of keys, merged ones too; None if it is missing."""
    for key in keys:
        direct = node.get(key) if node is not None else None
        if direct is None and node is not None and node.get(MERGE) is not None:
            direct = dict(pairs(node)).get(key)
        node = direct
        if node is None:
            return None
    return node


def text_in(node: Node | None) -> str:
    """Return the value of a scalar, ``""`` for everything else."""
    return node.value if node is not None and node.kind == "scalar" else ""


# -- values in values


def replaced(
    word: Word, pattern: re.Pattern[str], value: Callable[[str, int], Word | None]
) -> Word:
    """Return a word with each match of ``pattern`` replaced by what ``value`` gives for it.

    ``value`` takes the first group that matched and its offset in the word; None: not known.
    """
    text = text_of(word)
    found: list[Atom] = []
    at = 0
    for match in pattern.finditer(text):
        found += cut(word, at, match.start())
        at = match.end()
        number = match.lastindex or 0
        span = span_of(cut(word, match.start(), match.end()))
        inner = value(match[number], match.start(number))
        if inner is None:
            found.append(unknown(_short(match[number]), *span))
        else:
            found += [atom.used_at(*span, match[number].strip()) for atom in inner]
    found += cut(word, at)
    return tuple(found)


def _short(text: str) -> str:
    name = re.search(r"[A-Za-z_]\w*(?=[\s'\"\])]*\Z)", text) or re.search(r"[A-Za-z_]\w*", text)
    return name[0] if name is not None else "VALUE"


def expanded(variables: Mapping[str, Word]) -> dict[str, Word]:
    """Return variables with the ``$NAME`` of others in them replaced, as some systems do."""
    known = dict(variables)
    for _ in range(5):
        changed = False
        for name, word in known.items():
            text = text_of(word)
            if "$" not in text or len(text) > 2_000:
                continue

            def value(one: str, _: int, own: str = name) -> Word | None:
                return known.get(one) if one != own else None

            new = replaced(word, _NAME, value)
            if text_of(new) != text:
                known[name] = new
                changed = True
        if not changed:
            break
    return known


# -- what a job runs


class Place(NamedTuple):
    """The machine of a job, as far as the file tells."""

    platform: str | None = None
    runner: Image | None = None
    """A machine of the provider without a GPU."""
    image: Image | None = None
    elsewhere: str | None = "the file does not tell on which machine the job runs"
    """Why its machine need not be one of the fleet."""


class Job:
    """Follows the steps of one job, in one cell of its matrix."""

    def __init__(
        self, file: Document, name: str, environment: str, place: Place, cell: Cell = ()
    ) -> None:
        self.file = file
        self.place = place
        self.cell = cell
        self.label = name
        self.reader = Reader(
            Setting(
                file,
                prefix=f"{name}, ",
                environment=environment,
                platform=place.platform or ("linux" if place.image is not None else None),
                image=place.image,
            )
        )
        self.shell = Shell()
        own = image_part(
            file,
            place.image,
            name=f"{name}, image",
            platform=place.platform,
            environment=environment,
        )
        self.own = self.placed(own) if own is not None else None

    @property
    def parts(self) -> list[Part]:
        """What the steps so far install, and the torch of the image."""
        return self.reader.parts if self.own is None else [*self.reader.parts, self.own]

    def python(self, text: str) -> None:
        """Take in that a step has put a Python first on the path."""
        version = python_in(text.strip())
        self.reader.setting = self.reader.setting._replace(python=version)

    def python_of(self, other: Job) -> None:
        """Take in the Python that the steps of an action have put first on the path."""
        python = other.reader.setting.python
        self.reader.setting = self.reader.setting._replace(python=python)

    def script(
        self,
        word: Word,
        environ: Mapping[str, Word],
        *,
        shell: str = "bash",
        folder: str = "",
        uncertain: str | None = None,
        own: bool = True,
    ) -> None:
        """Take in a script. ``own``: it runs in a shell of its own."""
        text = text_of(word)
        if INSTALLS.search(text) is None and own:
            return
        reader = self.reader
        reader.setting = reader.setting._replace(folder=folder, uncertain=uncertain)
        if own:
            reader.fresh()
            self.shell = Shell()
        before = len(reader.parts)
        if _BATCH.match(shell):
            for line in _lines(word):
                reader.read(read_script(Source(line), environ, shell=Shell()))
        elif _POSIX.match(shell):
            reader.read(read_script(Source(word), environ, shell=self.shell))
        for number in range(before, len(reader.parts)):
            part = reader.parts[number]
            if _BATCH.match(shell) and part.slips:
                part = part._replace(slips=())
            reader.parts[number] = self.placed(part)

    def placed(self, part: Part) -> Part:
        """Return a part with what is known of the machine, and the cell of the matrix."""
        return part._replace(
            runner=self.place.runner,
            elsewhere=self.place.elsewhere if self.place.runner is None else None,
            cell=self.cell,
        )


def _lines(word: Word) -> Iterator[Word]:
    """Yield the plain install commands of a script of PowerShell or ``cmd``."""
    text = text_of(word)
    at = 0
    while at < len(text):
        begin = at
        pieces: list[Atom] = []
        while True:
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            body = text[at:stop].rstrip("\r \t")
            more = body.endswith(("`", "^")) and stop < len(text)
            pieces += cut(word, at, at + len(body) - (1 if more else 0))
            at = stop + 1
            if not more:
                break
            pieces += (Atom(" ", *_seam(word, stop), False),)
        if _PLAIN_INSTALL.match(text, begin) is not None:
            yield tuple(pieces)


def _seam(word: Word, offset: int) -> tuple[int, int]:
    span = span_of(cut(word, offset, offset + 1))
    return span.start, span.end


_HOSTED = regex(
    r"(?P<system>ubuntu|windows|macos)-(?P<version>latest|\d[\w.]*)(?P<rest>(?:-[\w.]+)*)",
    re.IGNORECASE,
)


def hosted(label: str, span: Span) -> Place:
    """Return the machine that a label of GitHub or Azure names: ``ubuntu-22.04``, ``macos-14``.

    Source: https://docs.github.com/actions/reference/runners/github-hosted-runners. Other labels
    are those of machines that users run themselves: nothing is known of them.
    """
    match = _HOSTED.fullmatch(label.strip())
    if match is None or "gpu" in label.lower():
        return Place()
    rest = match["rest"].lower()
    system = match["system"].lower()
    arm = "arm" in rest
    if system == "ubuntu":
        platform = "linux-aarch64" if arm else "linux-x86_64"
    elif system == "windows":
        platform = "windows-arm64" if arm else "windows-x86_64"
    else:
        old = re.match(r"\d+", match["version"])
        intel = (old is not None and int(old[0]) < 14) or "intel" in rest
        intel = (intel and "xlarge" not in rest) or rest == "-large"
        platform = "macos-x86_64" if intel else "macos-arm64"
    return Place(platform, Image(label.strip(), span))


def unique(names: dict[str, int], name: str) -> str:
    """Return ``name``, numbered where it has come before."""
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name} {names[name]}"


def bounded(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts of a file, as many as are judged, with names of their own."""
    seen: dict[str, int] = {}
    return tuple(one._replace(name=unique(seen, one.name)) for one in parts[:MOST_PARTS])
