"""What the proofs share: platforms as uv names them, and a tool's message as it is shown."""

from __future__ import annotations

from torchpin.fleet.model import NodeGroup
from torchpin.patterns import regex
from torchpin.report.style import clean

TAIL = 12
"""Lines of a tool's message that are shown."""
GLIBC = "2.28"
"""glibc of a Linux target that declares none: what current wheels ask for."""
_UV_PLATFORM = {
    "windows-x86_64": "x86_64-pc-windows-msvc",
    "windows-arm64": "aarch64-pc-windows-msvc",
    "macos-arm64": "aarch64-apple-darwin",
    "macos-x86_64": "x86_64-apple-darwin",
}
_UNREACHED = regex(
    r"(?i)failed to (?:resolve|fetch|connect)|connection (?:broken|refused|reset)"
    r"|timed? ?out|dns error"
)


def uv_platform(group: NodeGroup) -> str:
    """Return the platform of a group as ``--python-platform`` takes it."""
    platform = _UV_PLATFORM.get(group.platform)
    if platform is not None:
        return platform
    machine = group.platform.partition("-")[2]
    glibc = (group.glibc or GLIBC).replace(".", "_")
    return f"{machine}-{'unknown-linux-musl' if group.musl else f'manylinux_{glibc}'}"


def told_of(name: str, text: str, refused: str) -> tuple[str, str]:
    """Return what a tool's failure means, and the end of its message without secrets."""
    lines = text.strip().splitlines()
    told = "\n  ".join(clean(line) for line in lines[-TAIL:])
    if any(_UNREACHED.search(line) for line in lines):
        return f"{name} could not reach an index, so nothing is proved", told
    return f"{name} {refused}", told
