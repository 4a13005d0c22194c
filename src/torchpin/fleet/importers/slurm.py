"""Slurm: ``scontrol show nodes`` (plain, ``--json``), ``sinfo --json``, ``sinfo -o "%N %G"``."""

from __future__ import annotations

import re
from typing import Any

from torchpin.errors import UsageError
from torchpin.fleet.importers.hosts import expand, split_list
from torchpin.fleet.importers.model import Found, Machine, SeenGpu, Told
from torchpin.fleet.importers.text import rows, table, word
from torchpin.patterns import regex

_NODE = regex(r"(?m)(?:^|\s)NodeName=")
_FIELD = regex(r"(?:^|\s)(Arch|Gres)=(\S*)")
_GRES = regex(r"gpu(?::(?P<parts>[^()]*))?(?:\(.*\))?")
_MIG = regex(r"[_ .-][0-9]g\.[0-9]+gb(?:[+._-]me\S*)?$", re.I)
_TELLS_GRES = regex(r"(?i)^(?:\(null\)|gpu(?:[:(,].*)?|.*,gpu[:(].*)$")
MOST_NODES = 200_000
"""Of how many nodes an input tells at most; what follows is told of, and left out."""


def is_scontrol(text: str) -> bool:
    """Tell whether ``text`` is of ``scontrol show nodes``."""
    return re.search(r"(?m)^NodeName=\S", text[:20_000]) is not None


def is_sinfo(text: str) -> bool:
    """Tell whether ``text`` is of ``sinfo`` with nodes and GRES."""
    for line in text.split("\n", 20)[:20]:
        cells = _cells(line)
        if "NODELIST" in cells and "GRES" in cells:
            return True
        if any(re.match(r"gpu[:(]", cell) for cell in cells) and len(cells) > 1:
            return True
    return False


def is_slurm(value: object) -> bool:
    """Tell whether a JSON value is of ``scontrol show nodes --json`` or ``sinfo --json``."""
    told = table(value)
    nodes = rows(told.get("nodes")) or rows(told.get("sinfo"))
    return any("gres" in table(node) for node in nodes) or (
        "errors" in told and ("nodes" in told or "sinfo" in told)
    )


def gpus_of(gres: str) -> tuple[SeenGpu, ...]:
    """Return the GPUs of a GRES list: ``gpu:a100:4(S:0-1),shard:16`` → A100.

    A count does not matter; a MIG profile in the type (``nvidia_a100_3g.20gb``) is left away.
    """
    seen: list[SeenGpu] = []
    for part in split_list(gres):
        match = _GRES.fullmatch(part)
        if match is None:
            continue
        names: list[str] = []
        count = "1"
        for piece in (match["parts"] or "").split(":"):
            if re.fullmatch(r"[0-9]+[KMGTkmgt]?", piece):
                count = piece
            elif piece and piece != "no_consume":
                names.append(piece)
        if count != "0":
            gpu = SeenGpu(_MIG.sub("", names[0]) if names else "")
            if gpu not in seen:
                seen.append(gpu)
    return tuple(seen)


def read_scontrol(text: str, source: str) -> Found:
    """Return the machines of ``scontrol show nodes`` (also ``--oneliner``).

    Raises:
        UsageError: it holds no node, or ends in the middle of one.
    """
    machines: list[Machine] = []
    records = _NODE.split(text)[1:]
    for record in records[: MOST_NODES + 1]:
        name = record.split(None, 1)[0] if record.strip() else ""
        fields = dict(_FIELD.findall(record))
        if not name or ("Gres" not in fields and record is records[-1]):
            raise UsageError(
                "ends in the middle of a node",
                path=source,
                line=text.count("\n") + 1,
                hint="was the output cut off? Run `scontrol show nodes` again",
            )
        gpus = gpus_of(word(fields.get("Gres", ""))) if "Gres" in fields else None
        machines += _machines(name, gpus, "Gres", fields.get("Arch", ""))
    if not machines:
        raise UsageError("holds no Slurm node", path=source, hint="run: scontrol show nodes")
    return _found("scontrol show nodes", machines)


def read_json(value: Any, source: str) -> Found:
    """Return the machines of ``scontrol show nodes --json`` or ``sinfo --json``.

    Raises:
        UsageError: it holds no node.
    """
    machines: list[Machine] = []
    told = table(value)
    for node in map(table, rows(told.get("nodes"))[: MOST_NODES + 1]):
        gpus = gpus_of(word(node.get("gres"))) if "gres" in node else None
        machines += _machines(word(node.get("name")), gpus, "gres", word(node.get("architecture")))
    for row in map(table, rows(told.get("sinfo"))[: MOST_NODES + 1]):
        gres = row.get("gres")
        total = table(gres).get("total") if isinstance(gres, dict) else gres
        gpus = gpus_of(word(total)) if gres is not None else None
        for name in rows(table(row.get("nodes")).get("nodes")):
            machines += _machines(word(name), gpus, "gres", "")
    if not machines:
        raise UsageError("holds no Slurm node", path=source, hint="run: scontrol show nodes --json")
    return _found("Slurm's JSON", machines)


def read_sinfo(text: str, source: str) -> Found:
    """Return the machines of ``sinfo -o "%N %G"``, columns in any order, with or without header.

    Raises:
        UsageError: no line holds nodes and their GRES.
    """
    machines: list[Machine] = []
    columns: tuple[int, int] | None = None
    for line in text.split("\n"):
        cells = _cells(line)
        if "NODELIST" in cells and "GRES" in cells:
            columns = (cells.index("NODELIST"), cells.index("GRES"))
            continue
        place = columns or _columns(cells)
        if place is None or max(place) >= len(cells):
            continue
        gres = word(cells[place[1]])
        machines += _machines(cells[place[0]], gpus_of(gres), "GRES", "")
        if len(machines) > MOST_NODES:
            break
    if not machines:
        raise UsageError(
            "holds no nodes with their GRES", path=source, hint='run: sinfo -N -o "%N %G"'
        )
    return _found("sinfo", machines)


def _found(what: str, machines: list[Machine]) -> Found:
    notes: tuple[str, ...] = ()
    if len(machines) > MOST_NODES:
        notes = (f"only the first {MOST_NODES:,} nodes are read: give the others in another file",)
    return Found(what, tuple(machines[:MOST_NODES]), notes)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")] if "|" in line else line.split()


def _columns(cells: list[str]) -> tuple[int, int] | None:
    """Return the places of the nodes and of their GRES in a line without a header."""
    gres = next((n for n, cell in enumerate(cells) if _TELLS_GRES.match(cell)), None)
    if gres is None or len(cells) < 2:
        return None
    names = [n for n, cell in enumerate(cells) if n != gres and cell[:1].isalpha()]
    # A partition may stand there, too (``main*``); most nodes have a number or a range of them.
    names.sort(key=lambda n: ("[" not in cells[n], not re.search("[0-9]", cells[n]), n))
    return (names[0], gres) if names else None


def _machines(names: str, gpus: tuple[SeenGpu, ...] | None, where: str, arch: str) -> list[Machine]:
    told = f"{where}: none" if gpus == () else where
    facts = (("platform", Told(f"linux-{arch}", "Arch")),) if word(arch) else ()
    return [Machine(name, gpus, told, facts) for name in expand(names) or [""]]
