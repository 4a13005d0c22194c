"""What torch's wheels bring from NVIDIA, and the kernels of that: the file ``internals.json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version
from tools._facts import PLATFORMS
from tools._wheels import Read

from torchpin.catalog.kernel_lists import sorted_targets
from torchpin.catalog.model import Build
from torchpin.catalog.records import Interned, table
from torchpin.evidence import INFERRED, MEASURED

SCRIPT = "pytorch/pytorch .github/scripts/generate_binary_build_matrix.py"
CHANNELS = (
    (
        "cu126",
        ("2.8", "2.14.99"),
        {
            "nvidia-cublas-cu12": "12.6.4.1",
            "nvidia-cudnn-cu12": "9.10.2.21",
            "nvidia-cusparselt-cu12": "0.7.1",
        },
        INFERRED,
        f"{SCRIPT}, 12.6: the same cuDNN 9.10.2.21 while CUDA 12.8 and 13.0 moved to 9.13 and 9.17",
    ),
)
"""What channels bring whose CUDA is not that of PyPI's wheel: channel, first and last torch,
versions, evidence, source. Only what holds for all of these releases."""


def machine_of(file: str) -> str:
    """Return the machine of a Linux wheel's file name."""
    return "aarch64" if file.endswith("aarch64.whl") else "x86_64"


def internals_file(measured: Mapping[str, Any], torch: Iterable[Build]) -> str:
    """Return the data file; its columns are told in ``torchpin.catalog.internals``."""
    brought = {file: (specs, exact) for file, specs, exact in measured["internals"]["brings"]}
    reads = {row[1]: Read(*row) for row in measured["wheels"]["rows"] if row[0] == "torch"}
    of_place: dict[tuple[str, str], Read] = {}
    for name, read in reads.items():
        version = str(parse_wheel_filename(name)[1])
        of_place[version, f"linux-{machine_of(name)}"] = read
    builds = [b for b in torch if b.cuda and b.platform.startswith("linux")]
    real = {(b.version, b.platform): b.channel for b in builds if b.home == "pypi"}
    sets, sources, lists = Interned(), Interned(), Interned()
    rows: dict[tuple[str, str, str], list[Any]] = {}
    for build in builds:
        place = (build.version, build.platform)
        at: list[Any] | None = None
        read_here = of_place.get(place)
        if real.get(place) == build.channel and read_here and read_here.file in brought:
            specs, exact = brought[read_here.file]
            source = f"PyPI wheel {read_here.file} sha256:{read_here.sha256} (METADATA)"
            at = [sets.at([" ".join(specs), exact]), MEASURED, sources.at(source)]
        elif build.platform == "linux-x86_64":
            for channel, (first, last), exact, evidence, source in CHANNELS:
                held = Version(first) <= Version(build.version) <= Version(last)
                if channel == build.channel and held:
                    at = [sets.at(["", exact]), evidence, sources.at(source)]
        if at is not None:
            rows[build.version, build.platform, build.channel] = at
    wheels: list[list[Any]] = []
    for raw in measured["internals"]["rows"]:
        read = Read(*raw)
        name, parsed, _, _ = parse_wheel_filename(read.file)
        libraries = [
            [
                path.rpartition("/")[2],
                lists.at([" ".join(sorted_targets(sass)), " ".join(sorted_targets(ptx))]),
            ]
            for path, (_, sass, ptx) in sorted(read.libraries.items())
        ]
        wheels.append(
            [
                canonicalize_name(name),
                str(parsed),
                f"linux-{machine_of(read.file)}",
                libraries,
                sources.at(f"PyPI wheel {read.file} sha256:{read.sha256} (.nv_fatbin)"),
            ]
        )
    return table(
        {
            "torch": [
                [*key, *at]
                for key, at in sorted(
                    rows.items(),
                    key=lambda item: (
                        Version(item[0][0]),
                        PLATFORMS.index(item[0][1]),
                        item[0][2],
                    ),
                )
            ],
            "brings": sets.items,
            "wheels": sorted(wheels, key=lambda r: (r[0], Version(str(r[1])), r[2])),
            "lists": lists.items,
            "sources": sources.items,
        }
    )
