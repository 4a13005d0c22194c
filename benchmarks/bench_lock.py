"""How long reading a 5 MB ``uv.lock`` takes, beside ``tomllib.loads`` on the same text.

Prints both in milliseconds and their ratio, and how long a selection from the lock takes; exits 1
if the ratio is above a tenth. The decoding of the bytes counts. The lock is made here: packages as
uv writes them, with a family of three builds that is used directly and through other packages.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from torchpin.documents.uv_lock import read_uv_lock

tomllib: Any = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")

BUDGET = 0.1
TOLERANCE = 1.2
"""Factor on the budget for the noise of the machine, as in ``run.py``."""
SIZE = 5_000_000
RUNS = 7
PYPI = "https://pypi.example/simple"
DIGEST = "0123456789abcdef" * 4
PLACES = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64", "macosx_11_0_arm64")
TAGS = [
    f"cp3{minor}-cp3{minor}-{place}"
    for minor in range(10, 15)
    for place in (
        "manylinux_2_28_x86_64",
        "manylinux_2_28_aarch64",
        "win_amd64",
        "macosx_11_0_arm64",
    )
]


def wheels(name: str, version: str, base: str) -> str:
    """Return the list of wheels of a package."""
    shown = version.replace("+", "%2B")
    lines = [
        f'    {{ url = "{base}/{name}-{shown}-{tag}.whl", hash = "sha256:{DIGEST}", '
        f'size = 123456, upload-time = "2026-01-01T00:00:00.000Z" }},'
        for tag in TAGS
    ]
    return "wheels = [\n" + "\n".join(lines) + "\n]\n"


def block(name: str, version: str, source: str, uses: tuple[str, ...], base: str) -> str:
    """Return one ``[[package]]``."""
    text = f'[[package]]\nname = "{name}"\nversion = "{version}"\n'
    text += f'source = {{ registry = "{source}" }}\n'
    if uses:
        text += "dependencies = [\n" + "".join(f"    {use},\n" for use in uses) + "]\n"
    return text + wheels(name, version, base) + "\n"


def synthetic(*, everywhere: bool = False, size: int = SIZE) -> str:
    """Return a lock of about ``size`` characters; ``everywhere``: all packages lead to torch."""
    channels = ("cpu", "cu126", "cu130")
    edges = []
    family = []
    for channel in channels:
        index = f"https://download.pytorch.org/whl/{channel}"
        marker = f"extra == 'extra-4-demo-{channel}'"
        edges.append(
            f'{{ name = "torch", version = "2.10.0+{channel}", '
            f'source = {{ registry = "{index}" }}, marker = "{marker}" }}'
        )
        for name, version in (("torch", "2.10.0"), ("torchvision", "0.25.0")):
            uses = tuple(edges) if name != "torch" else ('{ name = "package-1" }',)
            family.append(block(name, f"{version}+{channel}", index, uses, index))
    extras = "".join(f"{c} = [\n    {e},\n]\n" for c, e in zip(channels, edges, strict=True))
    head = 'version = 1\nrevision = 5\nrequires-python = ">=3.10"\nconflicts = [[\n'
    head += "".join(f'    {{ package = "demo", extra = "{c}" }},\n' for c in channels) + "]]\n\n"
    demo = '[[package]]\nname = "demo"\nversion = "0.1.0"\nsource = { virtual = "." }\n'
    demo += 'dependencies = [\n    { name = "package-0" },\n]\n\n'
    demo += f"[package.optional-dependencies]\n{extras}\n"
    parts = [head, demo, *family]
    total, number = sum(map(len, parts)), 0
    while total < size:
        uses = tuple(f'{{ name = "package-{number + step}" }}' for step in (1, 2, 7))
        if number < 30 or everywhere:  # real locks: some 20 to 30 packages lead to torch
            uses += tuple(edges) if number % 3 == 0 else ()
        part = block(f"package-{number}", "1.2.3", PYPI, uses, "https://files.example/packages/ab")
        parts.append(part)
        total, number = total + len(part), number + 1
    return "".join(parts)


def best(task: Callable[[], object], runs: int = RUNS) -> float:
    """Return the least processor time of some runs, in milliseconds."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        task()
        times.append((time.process_time() - start) * 1000)
    return min(times)


def main() -> int:
    """Print the figures; return 1 if the budget is broken."""
    broken = False
    for name, everywhere in (("a usual lock", False), ("every package leads to torch", True)):
        text = synthetic(everywhere=everywhere)
        data = text.encode()
        document = read_uv_lock("uv.lock", data)
        assert document.lock is not None
        versions = [p.version for p in document.lock.packages if p.name == "torch"]
        assert versions == ["2.10.0+cpu", "2.10.0+cu126", "2.10.0+cu130"]
        whole = best(lambda: tomllib.loads(text), 3)  # noqa: B023
        read = best(lambda: read_uv_lock("uv.lock", data))  # noqa: B023
        ratio = read / whole
        budget = f" (budget {BUDGET})" if not everywhere else ""
        print(f"{name}: {len(data) / 1e6:.1f} MB, {text.count('[[package]]')} packages")
        print(f"  tomllib.loads   {whole:8.1f} ms")
        print(f"  read_uv_lock    {read:8.1f} ms   {ratio:.3f} x{budget}")
        broken = broken or (not everywhere and ratio > BUDGET * TOLERANCE)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
