"""How long a full-catalog resolve takes after import, beside a bare interpreter.

Prints each case in milliseconds and as a ratio to ``python -c pass``; exits 1 if a case takes more
CPU time than the budget of 20 ms. Nothing is remembered from run to run: each has a space of its
own, and what the judge remembers is dropped before it.
"""

from __future__ import annotations

import subprocess
import sys
import time

import resolvelib  # noqa: F401  (its import is not what is measured)

from torchpin.catalog.store import load_catalog
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.judge import internals, kernels
from torchpin.resolve.model import Origin, Request, Want
from torchpin.resolve.solve import solve

BUDGET_MS = 20.0
RUNS = 7


def case(gpus: tuple[tuple[str, ...], ...], wants: tuple[str, ...], policy: str) -> Request:
    """Return a request: one node group an entry of ``gpus``, Python 3.11, Linux."""
    python = Python(3, 11)
    groups = [
        NodeGroup(f"group{n}", tuple(find_gpu(g)[0] for g in names), (python,), "linux-x86_64")
        for n, names in enumerate(gpus)
    ]
    found = []
    for line, text in enumerate(wants, 1):
        name = text.rstrip("=<>!.0123456789")
        specifier = text[len(name) :]
        found.append(Want(name, specifier, Origin("r.txt", line, text), specifier.startswith("==")))
    targets = tuple(Target(group, python) for group in groups)
    return Request(tuple(found), targets, policy=policy, current_channel=None)


FAMILY = ("torch", "torchvision", "torchaudio")
CASES = {
    "newest, V100": case((("Tesla V100",),), FAMILY, "newest"),
    "newest, V100 and B200": case((("Tesla V100",), ("B200",)), FAMILY, "newest"),
    "nearest, three old groups": case(
        (("Tesla V100",), ("GTX 1080",), ("A100-SXM4-80GB",)),
        ("torch==2.14.0", "torchvision==0.19.0", "torchaudio==2.14.0"),
        "nearest",
    ),
    "down to the oldest that runs, K80 and A100": case(
        (("Tesla K80",), ("A100-SXM4-80GB",)), FAMILY, "newest"
    ),
    "what follows torch": case(
        (("Tesla V100",), ("B200",)),
        ("torch==2.13.0", "xformers==0.0.33.post2", "torchcodec==0.7.0", "bitsandbytes==0.45.0"),
        "nearest",
    ),
    "split with explanation": case(
        (("Tesla V100",), ("B200",)), ("torch>=2.11", *FAMILY[1:]), "newest"
    ),
}


def best(request: Request) -> float:
    """Return the fastest of some runs, in milliseconds."""
    catalog = load_catalog()
    solve(request, catalog)
    times = []
    for _ in range(RUNS):
        kernels._kernel_match.cache_clear()
        internals._products.cache_clear()
        start = time.process_time()
        solve(request, catalog)
        times.append((time.process_time() - start) * 1000)
    return min(times)


def bare() -> float:
    """Return the fastest ``python -c pass``, in milliseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.append((time.perf_counter() - start) * 1000)
    return min(times)


def main() -> int:
    """Print the table; return 1 if the budget does not hold."""
    unit = bare()
    over = False
    print(f"{'case':45} {'ms':>7} {'x bare':>7}   (bare: {unit:.1f} ms, budget {BUDGET_MS:.0f} ms)")
    for name, request in CASES.items():
        took = best(request)
        over = over or took > BUDGET_MS
        print(f"{name:45} {took:7.2f} {took / unit:7.2f}{'   OVER' if took > BUDGET_MS else ''}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
