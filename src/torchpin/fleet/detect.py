"""This machine as a node group, without torch: NVML, nvidia-smi, /proc, /sys, the C library.

Nothing is written and no GPU is used: the driver and the kernel are asked what there is.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterable
from contextlib import suppress

from torchpin.errors import TorchpinError
from torchpin.fleet import nvml
from torchpin.fleet.importers.model import Found, Machine, SeenGpu, Told
from torchpin.fleet.importers.nvidia import read_csv
from torchpin.fleet.tables import jetpack_table
from torchpin.named import NamedTuple

_SECONDS = 30
_MOST_BYTES = 1_000_000
"""No output that is read is as long: what prints more is not the program that it seems."""
_QUERIES = ("name,driver_version,compute_cap", "name,driver_version")
"""The second for drivers before 510, whose nvidia-smi does not know ``compute_cap``."""
_DISPLAY_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
"""PCI classes: VGA, 3D and other display controllers, processing accelerators (pci-ids)."""
_NVIDIA, _AMD, _INTEL = "0x10de", "0x1002", "0x8086"


class Seen(NamedTuple):
    """The GPUs of this machine."""

    gpus: tuple[SeenGpu, ...] | None
    where: str
    facts: tuple[tuple[str, Told], ...] = ()
    problems: tuple[str, ...] = ()


def detect(root: str = "/") -> Found:
    """Return this machine.

    Args:
        root: where ``/proc``, ``/sys``, ``/etc`` and ``/opt`` stand.
    """
    seen = _gpus(root)
    facts = (*seen.facts, *_system(root))
    machine = Machine(platform.node(), seen.gpus, seen.where, facts)
    return Found("itself", (machine,), seen.problems)


def _gpus(root: str) -> Seen:
    nvidia, amd = _nvidia(root), _amd(root)
    if nvidia.gpus and amd.gpus:
        return Seen(
            (*nvidia.gpus, *amd.gpus),
            f"{nvidia.where}; {amd.where}",
            (*nvidia.facts, *amd.facts),
            nvidia.problems,
        )
    if nvidia.gpus or amd.gpus:
        found = nvidia if nvidia.gpus else amd
        return found._replace(problems=nvidia.problems + amd.problems)
    if _on_bus(root, _NVIDIA):
        silent = "there is an NVIDIA GPU on the PCI bus, but no driver tells of it"
        return Seen(None, silent, (), nvidia.problems)
    if _on_bus(root, _INTEL):
        silent = 'there is an Intel card on the PCI bus: if it is an Arc, Flex or Max, write "xpu"'
        return Seen(None, silent, (), nvidia.problems)
    # A processor of AMD may bring a display controller that ROCm does not know: no GPU for torch.
    ours = "ROCm driver (/sys/class/kfd)" if _on_bus(root, _AMD) else "driver"
    return Seen((), f"no {ours} tells of a GPU", (), nvidia.problems)


def _nvidia(root: str) -> Seen:
    problems: tuple[str, ...] = ()
    library = nvml.load() if sys.platform != "darwin" else None
    if library is not None:
        told = nvml.ask(library)
        problems = told.problems
        if told.gpus:
            return Seen(told.gpus, "NVML", _driver(told.driver, "NVML"), problems)
    for query in _QUERIES:
        text = run("nvidia-smi", f"--query-gpu={query}", "--format=csv")
        if text is None:
            continue
        try:
            found = read_csv(text, "nvidia-smi", "")
        except TorchpinError:
            continue  # what it printed instead of a table tells of no GPU
        return _smi(found.machines, problems)
    if shutil.which("nvidia-smi"):
        problems += ("nvidia-smi is there, but names no GPU: run it to see why",)
    return _proc(root)._replace(problems=problems)


def _smi(machines: Iterable[Machine], problems: tuple[str, ...]) -> Seen:
    """Return the GPUs of nvidia-smi's table, and its driver if it tells one."""
    gpus: list[SeenGpu] = []
    facts: dict[tuple[tuple[str, Told], ...], None] = {}
    for machine in machines:
        gpus += machine.gpus or ()
        facts[machine.facts] = None
    if len(facts) == 1:
        return Seen(tuple(gpus), "nvidia-smi", next(iter(facts)), problems)
    named = " and ".join(told.value for one in facts for _, told in one)
    said = f"nvidia-smi tells of different drivers ({named}): none of them is written"
    return Seen(tuple(gpus), "nvidia-smi", (), (*problems, said))


def _proc(root: str) -> Seen:
    """Return what the driver in the kernel tells: names, no capability."""
    folder = os.path.join(root, "proc/driver/nvidia")
    gpus: list[SeenGpu] = []
    for name in _names(os.path.join(folder, "gpus")):
        match = re.search(
            r"(?m)^Model:\s*(\S.*?)\s*$", _read(os.path.join(folder, "gpus", name, "information"))
        )
        if match:
            gpus.append(SeenGpu(match[1]))
    version = re.search(
        r"Kernel Module.*?\s([0-9]{3}\.[0-9.]+)", _read(os.path.join(folder, "version"))
    )
    where = "/proc/driver/nvidia"
    model = _read(os.path.join(root, "proc/device-tree/model")).strip("\0 \n")
    if not gpus and "Jetson" in model:
        return Seen((SeenGpu(model),), "/proc/device-tree/model")
    return Seen(tuple(gpus), where, _driver(version[1] if version else "", where))


def _driver(version: str, where: str) -> tuple[tuple[str, Told], ...]:
    return (("driver", Told(version, where)),) if version else ()


def _amd(root: str) -> Seen:
    """Return the GPUs of ROCm's driver; ``gfx_target_version`` 90402 is gfx942, 90010 gfx90a.

    Source: the kernel's amdkfd topology (drivers/gpu/drm/amd/amdkfd/kfd_topology.c), numbers as
    in libhsakmt: major * 10000 + minor * 100 + stepping.
    """
    folder = os.path.join(root, "sys/class/kfd/kfd/topology/nodes")
    gpus: list[SeenGpu] = []
    for name in _names(folder):
        match = re.search(
            r"(?m)^gfx_target_version ([0-9]{1,7})$",
            _read(os.path.join(folder, name, "properties")),
        )
        number = int(match[1]) if match else 0
        if number:
            major, minor, stepping = number // 10000, number // 100 % 100, number % 100
            gpus.append(SeenGpu("", None, f"gfx{major}{minor:x}{stepping:x}"))
    release = re.match(
        r"[0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,2})?",
        _read(os.path.join(root, "opt/rocm/.info/version")),
    )
    facts: tuple[tuple[str, Told], ...] = ()
    if release and gpus:
        facts = (("rocm", Told(release[0], "/opt/rocm/.info/version")),)
    return Seen(tuple(gpus), "/sys/class/kfd", facts)


def _on_bus(root: str, vendor: str) -> bool:
    """Tell whether the PCI bus has a display controller or accelerator of a vendor.

    The display controller of an Intel processor is on bus 0, a card is not.
    """
    folder = os.path.join(root, "sys/bus/pci/devices")
    return any(
        _read(os.path.join(folder, name, "vendor")).strip() == vendor
        and _read(os.path.join(folder, name, "class")).startswith(_DISPLAY_CLASSES)
        for name in _names(folder)
        if vendor != _INTEL or not name.startswith("0000:00:")
    )


def _system(root: str) -> tuple[tuple[str, Told], ...]:
    """Return what the system and this Python tell."""
    free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    python = f"{sys.version_info.major}.{sys.version_info.minor}{free}"
    facts = [("python", Told(python, "the Python that runs torchpin"))]
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, sys.platform)
    facts.append(("platform", Told(f"{system}-{platform.machine()}", "uname")))
    if system == "macos":
        facts.append(("macos", Told(platform.mac_ver()[0], "SystemVersion.plist")))
    elif system == "linux":
        libc = _libc()
        if libc is not None:
            facts.append(libc)
        facts += _jetpack(root)
        if "microsoft" in _read(os.path.join(root, "proc/version")).lower():
            facts.append(("wsl", Told("true", "/proc/version")))
    return tuple(facts)


def _jetpack(root: str) -> list[tuple[str, Told]]:
    """Return the JetPack of a Jetson, by the release of its Jetson Linux (L4T).

    One release of Jetson Linux may belong to several JetPacks: then it is a comment.
    """
    text = _read(os.path.join(root, "etc/nv_tegra_release"))
    match = re.match(r"# R([0-9]{2}) \(release\), REVISION: ([0-9]+)", text)
    if match is None:
        return []
    l4t = f"{match[1]}.{match[2]}"
    found = sorted({pack.version for pack in jetpack_table() if {l4t, match[1]} & {*pack.l4t}})
    names = [".".join(map(str, version)) for version in found]
    if not names:
        return []
    doubt = f"or {', '.join(names[1:])}" if len(names) > 1 else ""
    if "." not in names[0]:
        doubt = "write its release, like 5.1"
    return [("jetpack", Told(names[0], f"Jetson Linux {l4t} (/etc/nv_tegra_release)", doubt))]


def _libc() -> tuple[str, Told] | None:
    """Return glibc's version, or that it is musl; None: neither tells."""
    try:
        told = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # musl does not know the name
        told = ""
    match = re.match(r"glibc ([0-9.]+)", told)
    if match:
        return "glibc", Told(match[1], "confstr")
    text = run("ldd", "--version", any_code=True) or ""
    if "musl" in text:
        return "libc", Told("musl", "ldd --version")
    match = re.match(r"ldd .*?([0-9]+\.[0-9]+)\s*$", text.split("\n", 1)[0])
    return ("glibc", Told(match[1], "ldd --version")) if match else None


def run(*command: str, any_code: bool = False) -> str | None:
    """Return what a command prints; None if it is not there, fails or does not end.

    Args:
        command: the command and its arguments.
        any_code: return what it prints to both streams even if it fails.
    """
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if any_code else subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=sys.platform != "win32",
        )
    except OSError:
        return None
    assert child.stdout is not None
    parts: list[bytes] = []
    reader = threading.Thread(target=_take, args=(child.stdout.fileno(), parts), daemon=True)
    reader.start()
    ended = False
    try:
        reader.join(_SECONDS)
        if not reader.is_alive() and sum(map(len, parts)) <= _MOST_BYTES:
            child.wait(_SECONDS)
            ended = True
    except subprocess.TimeoutExpired:
        pass
    finally:
        if not ended:
            _kill(child)
            reader.join(5)
        if not reader.is_alive():
            child.stdout.close()
    if not ended or (child.returncode and not any_code):
        return None
    return b"".join(parts).decode("utf-8", "replace")


def _take(stream: int, parts: list[bytes]) -> None:
    """Read a pipe to its end, or a little more than is allowed."""
    size = 0
    while size <= _MOST_BYTES:
        try:
            part = os.read(stream, 1 << 16)
        except OSError:
            return
        if not part:
            return
        parts.append(part)
        size += len(part)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End a child and what it started; one that hangs in the driver may stay."""
    with suppress(OSError):
        if sys.platform == "win32":
            child.kill()
        else:
            os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        child.wait(5)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # not this kind of machine
        return []


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(100_000).decode("utf-8", "replace")
    except OSError:  # not this kind of machine
        return ""
