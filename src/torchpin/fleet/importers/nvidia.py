"""Output of nvidia-smi: ``-q -x`` (XML), ``--query-gpu=… --format=csv``, ``-L``."""

from __future__ import annotations

import re
from xml.parsers import expat

from torchpin.errors import UsageError
from torchpin.fleet.importers.model import Found, Machine, SeenGpu, Told
from torchpin.fleet.importers.text import word
from torchpin.patterns import regex

_DEEPEST = 64
_DRIVER = regex(r"[0-9]{3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?")
_CAPABILITY = regex(r"[0-9]{1,2}\.[0-9]")
_HOST = regex(r"^([A-Za-z0-9][\w.-]*): +(?=\S)")
_LISTED = regex(r"^\s*GPU +[0-9]+: *(.+?) *\(UUID: *[^)]*\)\s*$")
_SAYS = regex(r"(?i)(?:Unable to |Failed to |GPU \S+ is lost|GPU is lost|Warning|NVIDIA-SMI has )")
_NAME_COLUMNS = ("name", "gpu_name")


class _StopError(Exception):
    """What a document does that no nvidia-smi does."""


class _Reader:
    """Collects the few elements that count. No entity is ever expanded or fetched."""

    def __init__(self) -> None:
        self.path: list[str] = []
        self.text: list[str] = []
        self.root = ""
        self.driver = ""
        self.models: set[str] = set()
        self.gpus: list[SeenGpu] = []

    def start(self, name: str, _attributes: object) -> None:
        self.path.append(name)
        self.root = self.root or name
        self.text.clear()
        if len(self.path) > _DEEPEST:
            raise _StopError("is nested without end")
        if self.path[1:] == ["gpu"]:
            self.gpus.append(SeenGpu(""))

    def end(self, _name: str) -> None:
        value = word("".join(self.text))
        below = self.path[1:]
        if below == ["driver_version"]:
            self.driver = value
        elif below == ["gpu", "product_name"]:
            self.gpus[-1] = self.gpus[-1]._replace(name=value)
        elif below == ["gpu", "driver_model", "current_dm"]:
            self.models.add(value)
        self.text.clear()
        self.path.pop()

    def data(self, text: str) -> None:
        self.text.append(text)

    def entity(self, *_declaration: object) -> None:
        raise _StopError("declares entities")


def read_xml(text: str, source: str, name: str) -> Found:
    """Return the machine of ``nvidia-smi -q -x``.

    Raises:
        UsageError: cut off, no XML, or not of nvidia-smi.
    """
    reader = _Reader()
    parser = expat.ParserCreate(
        "utf-8"
    )  # whatever the declaration says: the text is decoded already
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.EntityDeclHandler = reader.entity
    try:
        parser.Parse(text.strip().encode("utf-8", "replace"), True)
    except _StopError as error:
        raise UsageError(f"{error}, which nvidia-smi never writes", path=source) from error
    except expat.ExpatError as error:
        cut = expat.errors.messages[error.code] in (
            expat.errors.XML_ERROR_NO_ELEMENTS,
            expat.errors.XML_ERROR_UNCLOSED_TOKEN,
            expat.errors.XML_ERROR_PARTIAL_CHAR,
        )
        second = expat.errors.messages[error.code] == expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT
        raise UsageError(
            "ends in the middle of its XML"
            if cut
            else f"is not XML: {expat.ErrorString(error.code)}",
            path=source,
            line=error.lineno,
            hint="was the command interrupted, or the copy cut off? Run `nvidia-smi -q -x` again"
            if cut
            else "several outputs in one file? Give each machine a file of its own"
            if second
            else "",
        ) from error
    if reader.root != "nvidia_smi_log":
        raise UsageError("is XML, but not of `nvidia-smi -q -x`", path=source)
    facts: list[tuple[str, Told]] = []
    if reader.driver:
        facts.append(("driver", Told(reader.driver, "driver_version")))
    if reader.models & {"WDDM", "TCC", "MCDM"}:  # driver models of Windows; N/A elsewhere
        facts.append(("platform", Told("windows-x86_64", "driver_model, which Windows alone has")))
    machine = Machine(name, tuple(reader.gpus), "product_name", tuple(facts))
    return Found("nvidia-smi -q -x", (machine,))


def is_list(text: str) -> bool:
    """Tell whether ``text`` is of ``nvidia-smi -L``."""
    return any(_LISTED.match(_HOST.sub("", line)) for line in text.split("\n")[:50])


def read_list(text: str, source: str, name: str) -> Found:
    """Return the machines of ``nvidia-smi -L``, with or without ``HOST: `` before each line.

    Raises:
        UsageError: no line names a GPU.
    """
    seen: dict[str, list[SeenGpu]] = {}
    for line in text.split("\n"):
        host = _HOST.match(line)
        rest = line[host.end() :] if host else line
        match = _LISTED.match(rest) or _LISTED.match(line)
        if match:
            owner = host[1] if host and _LISTED.match(rest) else name
            seen.setdefault(owner, []).append(SeenGpu(match[1]))
    if not seen:
        raise UsageError("names no GPU", path=source)
    machines = (Machine(owner, tuple(gpus), "nvidia-smi -L") for owner, gpus in seen.items())
    return Found("nvidia-smi -L", tuple(machines))


def read_csv(text: str, source: str, name: str) -> Found:
    """Return the machines of ``nvidia-smi --query-gpu=… --format=csv``, with header or without.

    Lines may begin with ``HOST: ``, as ``pdsh`` and ``clush`` write them. A machine has one driver:
    lines with different ones are of different machines, of whatever name.

    Raises:
        UsageError: no column holds the names of GPUs, or a line is cut off.
    """
    columns: list[str] = []
    seen: dict[str, list[tuple[SeenGpu, str]]] = {}
    width = 0
    notes: list[str] = []
    before: dict[str, tuple[list[tuple[SeenGpu, str]], tuple[SeenGpu, str]]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line in before:  # a machine has many GPUs of a kind: like lines are read once
            pairs, pair = before[line]
            pairs.append(pair)
            continue
        if not line.strip():
            continue
        host = _HOST.match(line)
        cells = [cell.strip() for cell in line[host.end() if host else 0 :].split(",")]
        heads = [cell.partition(" [")[0].lower() for cell in cells]
        if set(heads) & {*_NAME_COLUMNS, "driver_version", "compute_cap", "uuid", "pci.bus_id"}:
            columns = heads
            width = len(cells)
            before.clear()
            continue
        width = width or len(cells)
        if len(cells) != width and _SAYS.match(line, host.end() if host else 0):
            notes.append(f"line {number} is no GPU, but what nvidia-smi says of one")
            continue
        if len(cells) != width:
            raise UsageError(
                f"has {len(cells)} of {width} columns here",
                path=source,
                line=number,
                hint="was the output cut off? Run the command again",
            )
        pairs = seen.setdefault(host[1] if host else name, [])
        pair = _by_head(columns, cells) if columns else _by_look(cells)
        pairs.append(pair)
        before[line] = (pairs, pair)
    if not any(gpu.name for pairs in seen.values() for gpu, _ in pairs):
        raise UsageError(
            "holds no names of GPUs",
            path=source,
            hint="run: nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv",
        )
    machines: list[Machine] = []
    for owner, pairs in seen.items():
        told = list(dict.fromkeys(driver for _, driver in pairs if driver))
        if len(told) == 1:
            pairs = [(gpu, told[0]) for gpu, _ in pairs]
        for driver in dict.fromkeys(driver for _, driver in pairs):  # a machine has one
            own = tuple(gpu for gpu, its in pairs if its == driver)
            facts = (("driver", Told(driver, "driver_version")),) if driver else ()
            machines.append(Machine(owner if driver or not told else "", own, "name", facts))
    return Found("nvidia-smi --query-gpu", tuple(machines), tuple(notes[:5]))


def _by_head(columns: list[str], cells: list[str]) -> tuple[SeenGpu, str]:
    values = dict(zip(columns, (word(cell) for cell in cells), strict=True))
    name = next((values[column] for column in _NAME_COLUMNS if values.get(column)), "")
    return SeenGpu(name, _capability(values.get("compute_cap", ""))), values.get(
        "driver_version", ""
    )


def _by_look(cells: list[str]) -> tuple[SeenGpu, str]:
    """Read a line without a header: each value tells by its look which column it is."""
    name = driver = ""
    capability = None
    for cell in map(word, cells):
        if _DRIVER.fullmatch(cell):
            driver = driver or cell
        elif _CAPABILITY.fullmatch(cell):
            capability = capability or _capability(cell)
        elif not name and _is_name(cell):
            name = cell
    return SeenGpu(name, capability), driver


def _is_name(cell: str) -> bool:
    """Tell a product name from a UUID, a bus address, a size, a state or a number."""
    from torchpin.errors import ConfigError
    from torchpin.fleet.gpus import find_gpu

    if len(cell) > 100 or not re.search(r"[A-Za-z]", cell):
        return False
    if re.match(r"(?:GPU|MIG)-|[0-9A-Fa-f]+:|[0-9.]+ ?(?:MiB|W|%|MHz)$", cell):
        return False
    if re.match(r"(?:NVIDIA|Tesla|Quadro|GeForce|GRID|TITAN|Orin|Xavier|Thor|Graphics)\b", cell):
        return True
    try:
        return bool(find_gpu(cell))
    except ConfigError:
        return False


def _capability(text: str) -> tuple[int, int] | None:
    if not _CAPABILITY.fullmatch(text):
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor)
