"""Facts of Ansible: ``ansible all -m setup``, a fact cache, the JSON callback.

Of all facts only the system, its version, the machine, the kernel, Python's version and DeepOps'
count of GPUs are read: ``ansible_env`` and the rest never reach the output.
"""

from __future__ import annotations

import json
import re
from typing import Any

from torchpin.errors import UsageError
from torchpin.fleet.importers.distributions import glibc_of, is_musl
from torchpin.fleet.importers.hosts import compress
from torchpin.fleet.importers.model import Found, Machine, SeenGpu, Told
from torchpin.fleet.importers.text import rows, table, word
from torchpin.patterns import regex

_HOST = regex(r"(?m)^(\S{1,255}) \| ([A-Za-z!]+) (?:=>|>>) (?=\{)")
_MARKS = ("ansible_distribution", "ansible_system", "ansible_architecture")


def is_text(text: str) -> bool:
    """Tell whether ``text`` is of ``ansible … -m setup``."""
    return _HOST.search(text[:20_000]) is not None


def is_facts(value: object) -> bool:
    """Tell whether a JSON value holds facts of Ansible."""
    told = table(value)
    return bool(_own(told)) or "plays" in told or any(_own(table(v)) for v in told.values())


def read_text(text: str, source: str) -> Found:
    """Return the machines of ``ansible all -m setup``.

    Raises:
        UsageError: no host answered, or the output is cut off.
    """
    decoder = json.JSONDecoder()
    hosts: list[tuple[str, dict[str, Any]]] = []
    silent: list[str] = []
    place = 0
    while match := _HOST.search(text, place):
        try:
            value, place = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError) as error:
            raise UsageError(
                "ends in the middle of a host's facts",
                path=source,
                line=text.count("\n", 0, match.start()) + 1,
                hint="was the output cut off? Run `ansible all -m setup` again",
            ) from error
        facts = _own(table(value))
        if facts:
            hosts.append((match[1], facts))
        else:
            silent.append(match[1])
    return _found(hosts, silent, source)


def read_facts(value: Any, source: str, name: str) -> Found:
    """Return the machines of a fact cache, of ``--tree``, or of the callback ``json``.

    Raises:
        UsageError: it holds no facts.
    """
    told = table(value)
    single = _own(told)
    if single:
        host = _get(single, "inventory_hostname") or _get(single, "hostname") or name
        return _found([(host, single)], [], source)
    hosts: list[tuple[str, dict[str, Any]]] = []
    silent: list[str] = []
    for play in map(table, rows(told.get("plays"))):
        for task in map(table, rows(play.get("tasks"))):
            for host, result in table(task.get("hosts")).items():
                facts = _own(table(result))
                if facts:
                    hosts.append((host, facts))
                elif table(result).get("unreachable") is True:
                    silent.append(host)
    for host, result in told.items():
        facts = _own(table(result))
        if facts:
            hosts.append((host, facts))
    return _found(hosts, silent, source)


def _own(told: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of one host, or an empty object."""
    inner = told.get("ansible_facts")
    if isinstance(inner, dict) and (
        any(mark in inner or mark.removeprefix("ansible_") in inner for mark in _MARKS)
    ):
        return inner
    return told if any(isinstance(told.get(mark), str) for mark in _MARKS) else {}


def _get(facts: dict[str, Any], key: str) -> str:
    return word(facts.get(f"ansible_{key}")) or word(facts.get(key))


def _found(hosts: list[tuple[str, dict[str, Any]]], silent: list[str], source: str) -> Found:
    if not hosts:
        raise UsageError(
            "holds no facts of a host" + (": none answered" if silent else ""),
            path=source,
            hint="run: ansible all -m setup",
        )
    notes: tuple[str, ...] = ()
    if silent:
        notes = (f"{len(silent)} did not answer: {', '.join(compress(silent)[:20])}",)
    return Found("Ansible facts", tuple(_machine(*host) for host in hosts), notes)


def _machine(name: str, facts: dict[str, Any]) -> Machine:
    system = _get(facts, "system")
    distribution = _get(facts, "distribution")
    version = _get(facts, "distribution_version")
    named = f"{distribution} {version}".strip()
    told: list[tuple[str, Told]] = []
    platform = _platform(system, facts)
    if platform:
        told.append(("platform", Told(platform, "ansible_system, ansible_architecture")))
    if system == "Darwin":
        told.append(("macos", Told(version, "ansible_distribution_version")))
    elif system in ("", "Linux"):
        glibc = glibc_of(named)
        if glibc:
            told.append(("glibc", Told(glibc, f"ansible_distribution: {named}")))
        elif is_musl(named):
            told.append(("libc", Told("musl", f"ansible_distribution: {named}")))
        if "microsoft" in _get(facts, "kernel").lower():
            told.append(("wsl", Told("true", "ansible_kernel")))
    python = re.match(r"3\.[0-9]{1,2}", _get(facts, "python_version"))
    if python:
        told.append(
            ("python", Told(python[0], "ansible_python_version", "the Python that Ansible used"))
        )
    gpus, where = _gpus(facts)
    return Machine(name, gpus, where, tuple(told))


def _gpus(facts: dict[str, Any]) -> tuple[tuple[SeenGpu, ...] | None, str]:
    """Return what the custom fact ``gpus`` of DeepOps tells; Ansible itself tells of no GPU."""
    local = table(facts.get("ansible_local")) or table(facts.get("local"))
    count = word(table(local.get("gpus")).get("count"))
    if not count.isdecimal():
        return None, "Ansible tells of no GPU"
    where = "ansible_local.gpus.count"
    return ((SeenGpu(""),), where) if count.strip("0") else ((), f"{where} = 0")


def _platform(system: str, facts: dict[str, Any]) -> str:
    machine = _get(facts, "architecture2") or _get(facts, "architecture")
    if not machine:
        return ""
    if system == "Win32NT":  # "64-bit", in the language of the machine; "ARM 64-bit Processor"
        if "arm" in machine.lower():
            machine = "arm64"
        elif "64" in machine:
            machine = "x86_64"
        return f"windows-{machine}"
    if system == "Darwin":
        return f"macos-{machine}"
    return f"linux-{machine}" if system in ("", "Linux") else f"{system}-{machine}".lower()
