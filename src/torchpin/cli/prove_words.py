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
    r"(?i)failed to (?:resolve|fetch|connect|establish)|connection (?:broken|refused|reset)"
    r"|timed? ?out|dns error|attempts to connect to|connecterror"
    r"|network (?:was|connectivity is) disabled"
)
_HOST = regex(
    r"host='([^'\s]+)'|attempts to connect to ([^\s'\"]+) failed"
    r"|https?://(?:[^/@\s'\"`]*@)?([^/\s'\"`()]+)"
)
_CAUSE = regex(
    r"(?i)connection refused|connection reset|name or service not known|network is unreachable"
    r"|temporary failure in name resolution|no route to host|certificate verify failed|timed out"
    r"|network (?:was|connectivity is) disabled"
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
    """Return what a tool's failure means, and the end of its message without secrets; of an index
    that it did not reach, in the place of its many tries, what to do."""
    lines = text.strip().splitlines()
    tries = [line for line in lines if _UNREACHED.search(line)]
    if not tries:
        return f"{name} {refused}", "\n  ".join(clean(line) for line in lines[-TAIL:])
    found = [match for line in tries for match in _HOST.finditer(line)]
    hosts = dict.fromkeys(clean(next(filter(None, match.groups()))) for match in found)
    cause = next(filter(None, map(_CAUSE.search, lines)), None)
    why = f" ({cause[0].lower()})" if cause is not None else ""
    where = " and ".join(hosts) or "an index"
    hint = "run it where the index can be reached, or without --prove"
    return f"{name} could not reach {where}{why}, so nothing is proved", hint
