"""Tell by its content what an input is, and read it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from torchpin.errors import UsageError
from torchpin.fleet.importers import amd, ansible, kubernetes, nvidia, slurm
from torchpin.fleet.importers.model import Found
from torchpin.fleet.importers.text import decode, parse_json

KINDS = ("nvidia-smi", "rocm-smi", "amd-smi", "kubernetes", "slurm", "ansible")
COMMANDS = (
    "nvidia-smi -q -x",
    "nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv",
    "rocm-smi --showproductname --json",
    "amd-smi static --asic --json",
    "kubectl get nodes -o json",
    "scontrol show nodes",
    'sinfo -N -o "%N %G"',
    "ansible all -m setup",
)
"""What can be read, as the commands that write it."""
_BROKEN = (
    (
        "NVIDIA-SMI has failed",
        "nvidia-smi itself failed on that machine: its driver is not running",
    ),
    ("Failed to initialize NVML", "nvidia-smi itself failed on that machine: NVML did not start"),
    ("No devices were found", "nvidia-smi found no GPU: declare such a machine as gpus = []"),
    ("slurm_load_", "Slurm's controller did not answer"),
    ("The connection to the server", "kubectl did not reach the cluster"),
)
"""What the tools write in place of their output."""


_TABLES = (
    (r"\| NVIDIA-SMI [0-9]|=NVSMI LOG=", "run: nvidia-smi -q -x"),
    (r"^NAME +STATUS +ROLES|^apiVersion: |^Name: +\S+\nRoles: ", "run: kubectl get nodes -o json"),
    (r"^PARTITION +AVAIL", 'run: sinfo -N -o "%N %G"'),
    (r"ROCm System Management Interface", "run: rocm-smi --showproductname --json"),
    (r"^GPU: [0-9]+\n", "run: amd-smi static --asic --json"),
)
"""What the tools show to people, and what writes it for programs."""


def read(data: bytes, source: str, kind: str | None = None) -> Found:
    """Return the machines of which an input tells.

    Args:
        data: the input.
        source: its path, for messages; the name of the file names a single machine.
        kind: one of ``KINDS``, or None: the content tells.

    Raises:
        UsageError: empty, cut off, too big, no text, or nothing that is known; or not of ``kind``.
    """
    text = decode(data, source).lstrip()
    name = _stem(source)
    value: Any = None
    found = _kind(text, None) if text[:1] not in _BEGINS else None
    if found is None:
        text = _without_preamble(text)
        if text[:1] in ("{", "["):
            value = parse_json(text, source)
        found = _kind(text, value)
    if found is None:
        if kind is None:
            raise _unknown(text, value, source)
        found = {"nvidia-smi": "csv", "slurm": "sinfo", "ansible": "facts"}.get(kind, kind)
    elif kind is not None and _FAMILY[found] != kind:
        raise UsageError(f"is an output of {_FAMILY[found]}, not of {kind}", path=source)
    machines = _READERS[found](text, value, source, name)
    if found in _LINES and not text.endswith("\n"):
        return machines._replace(notes=(*machines.notes, _UNENDED))
    return machines


_LINES = ("csv", "list", "scontrol", "sinfo")
"""Forms of which nothing but the end of the last line tells that they are whole."""
_UNENDED = "the last line has no end: if the output was cut off, look at its last machine"
_Reader = Callable[[str, Any, str, str], Found]
_READERS: dict[str, _Reader] = {
    "xml": lambda text, _value, source, name: nvidia.read_xml(text, source, name),
    "csv": lambda text, _value, source, name: nvidia.read_csv(text, source, name),
    "list": lambda text, _value, source, name: nvidia.read_list(text, source, name),
    "rocm-smi": lambda _text, value, source, name: amd.read_rocm_smi(value, source, name),
    "amd-smi": lambda _text, value, source, name: amd.read_amd_smi(value, source, name),
    "kubernetes": lambda _text, value, source, _name: kubernetes.read_nodes(value, source),
    "scontrol": lambda text, _value, source, _name: slurm.read_scontrol(text, source),
    "sinfo": lambda text, _value, source, _name: slurm.read_sinfo(text, source),
    "slurm-json": lambda _text, value, source, _name: slurm.read_json(value, source),
    "setup": lambda text, _value, source, _name: ansible.read_text(text, source),
    "facts": lambda _text, value, source, name: ansible.read_facts(value, source, name),
}
_FAMILY = {
    "xml": "nvidia-smi",
    "csv": "nvidia-smi",
    "list": "nvidia-smi",
    "rocm-smi": "rocm-smi",
    "amd-smi": "amd-smi",
    "kubernetes": "kubernetes",
    "scontrol": "slurm",
    "sinfo": "slurm",
    "slurm-json": "slurm",
    "setup": "ansible",
    "facts": "ansible",
}


def _kind(text: str, value: Any) -> str | None:
    if value is not None:
        for name, is_it in (
            ("kubernetes", kubernetes.is_kubernetes),
            ("slurm-json", slurm.is_slurm),
            ("amd-smi", amd.is_amd_smi),
            ("rocm-smi", amd.is_rocm_smi),
            ("facts", ansible.is_facts),
        ):
            if is_it(value):
                return name
        return None
    if text.startswith("<"):
        return "xml" if "<nvidia_smi_log" in text[:10_000] else None
    for name, is_of in (
        ("setup", ansible.is_text),
        ("scontrol", slurm.is_scontrol),
        ("list", nvidia.is_list),
        ("sinfo", slurm.is_sinfo),
    ):
        if is_of(text):
            return name
    first = text.split("\n", 1)[0].lower()
    cells = {cell.partition(" [")[0].strip() for cell in first.split(",")}
    if cells & {"name", "gpu_name", "driver_version", "compute_cap"}:
        return "csv"
    looks = re.match(r"(?:[\w.-]+: +)?[^,\n{}<>]{1,100},[^\n{}<>]*(?:\n|$)", text)
    if looks and re.search(r"(?:^|[\s,:])(?:NVIDIA|Tesla|Quadro|GeForce|GRID) ", looks[0]):
        return "csv"
    return None


_BEGINS = ("{", "[", "<")


def _without_preamble(text: str) -> str:
    """Return the text from the first line that begins JSON or XML, past words before it.

    Tools write warnings before it, and ``2>&1`` puts those of kubectl there (rocm-smi: "AMD GPU
    device(s) is/are in a low-power state"; kubectl: "W1130 12:00:00.000000 … Config not found").
    """
    if text[:1] in ("{", "<") or re.match(r"\[\s*[\[{\"\]0-9]", text):
        return text
    match = re.search(r"(?m)^(?=\{|<\?xml|<nvidia_smi_log|\[\s*(?:\{|$))", text[:20_000])
    return text[match.start() :] if match else text


def _stem(source: str) -> str:
    if source == "-":
        return ""
    name = os.path.basename(source)
    stem, dot, last = name.rpartition(".")
    return stem if dot and last.lower() in ("xml", "csv", "json", "txt", "out", "log") else name


def _unknown(text: str, value: Any, source: str) -> UsageError:
    for words, meaning in _BROKEN:
        if words in text[:5_000]:
            return UsageError(meaning, path=source)
    known = "\n".join(f"    {command}" for command in COMMANDS)
    for pattern, command in _TABLES:
        if re.search(pattern, text[:2_000], re.M):
            return UsageError("is a form for people to read", path=source, hint=command)
    what = "JSON" if value is not None else "XML" if text.startswith("<") else "text"
    return UsageError(
        f"is {what} that torchpin does not know", path=source, hint=f"it reads:\n{known}"
    )
