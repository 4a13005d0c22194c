"""Compare ``torchpin catalog show torch`` with the wheels on PyPI, read afresh.

    python -m tools.check_torch [--since 1.8] [--version 2.15.0] [--one] [--jobs 4]

Every wheel of torch for Linux on x86_64 and aarch64 is opened by HTTP ranges with the standard
library alone: its tags, METADATA, ``torch/version.py``, the list that ``libtorch_python.so``
states, the newest glibc that it asks for, and (in one wheel a version and machine) the kernels of
``libtorch_cuda_linalg.so``. Nothing of it comes from the measurements that the catalog was built
from. Exit code 1: something differs.
"""

from __future__ import annotations

import argparse
import email.parser
import io
import json
import re
import subprocess
import sys
import time
import zipfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, cast

if not __package__:  # run by its path, from any folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from packaging.utils import parse_wheel_filename
from packaging.version import Version
from tools._common import project_files, read_range

from torchpin.catalog.bounded import Held
from torchpin.catalog.elf import read_elf
from torchpin.catalog.fatbin import read_fatbins

MACHINES = ("x86_64", "aarch64")
STATED = re.compile(rb"((?:(?:sm|compute)_\d+[af]? )*(?:sm|compute)_\d+[af]?)\0")
LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
TRIES = 4
CHUNK = 1 << 18
GLIBC = re.compile(rb"\0GLIBC_(2\.\d+)")


class Ranges(io.RawIOBase):
    """A remote file that is read by ranges."""

    def __init__(self, url: str, size: int) -> None:
        self.url, self.size, self.at, self.fetched = url, size, 0, 0
        self._start, self._held = 0, b""

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a place."""
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def tell(self) -> int:
        """Return the place."""
        return self.at

    def read(self, count: int = -1) -> bytes:
        """Return up to ``count`` bytes; more are fetched than asked for."""
        end = self.size if count < 0 else min(self.size, self.at + count)
        if not (self._start <= self.at and end <= self._start + len(self._held)):
            self.hold(self.at, max(end, self.at + CHUNK))
        data = self._held[self.at - self._start : end - self._start]
        self.at += len(data)
        return data

    def hold(self, start: int, end: int) -> None:
        """Fetch a range at once."""
        until = min(self.size, end)
        for attempt in range(1, TRIES + 1):
            try:
                self._held = read_range(self.url, start, until)
                break
            except OSError:
                if attempt == TRIES:
                    raise
                time.sleep(2**attempt)
        self._start = start
        self.fetched += len(self._held)


def floor_of(tag: str) -> Version:
    """Return the glibc of a manylinux tag."""
    match = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    return Version(f"{match[1]}.{match[2]}" if match else LEGACY[tag.partition("_")[0]])


def python_tag(name: str) -> str:
    """Return ``cp311`` or ``cp313t``."""
    tag = next(iter(parse_wheel_filename(name)[3]))
    return tag.abi if tag.abi.endswith("t") else tag.interpreter


def read(file: dict[str, Any], linalg: bool) -> dict[str, Any]:
    """Return what one wheel says and holds."""
    remote = Ranges(file["url"], file["size"])
    with zipfile.ZipFile(cast("IO[bytes]", remote)) as archive:
        names = set(archive.namelist())

        def member(name: str) -> bytes:
            info = archive.getinfo(name)
            start = info.header_offset
            remote.hold(start, start + info.compress_size + len(name) + 512)
            return archive.read(name)

        folder = next(n for n in names if re.fullmatch(r"torch-[^/]+\.dist-info/METADATA", n))
        said = email.parser.Parser().parsestr(member(folder).decode(), headersonly=True)
        code = member("torch/version.py").decode()
        version = re.search(r"^__version__\s*(?::\s*\w+)?\s*=\s*'([^']+)'", code, re.M)
        cuda = re.search(r"^cuda\s*(?::[^=]+)?=\s*'([^']+)'", code, re.M)
        library = member("torch/lib/libtorch_python.so")
        stated = STATED.findall(library)
        found: dict[str, Any] = {
            "requires_python": said["Requires-Python"],
            "label": version[1].partition("+")[2] if version else "",
            "cuda": cuda[1] if cuda else None,
            "stated": max(stated, key=len, default=b"").decode(),
            "glibc": max(
                (Version(v.decode()) for v in GLIBC.findall(library)), default=Version("2")
            ),
        }
        path = "torch/lib/libtorch_cuda_linalg.so"
        if linalg and path in names:
            held = Held(member(path))
            bins = read_fatbins(held, read_elf(held).fatbins)
            counts: Counter[str] = Counter()
            for part in bins.parts:
                counts.update(dict.fromkeys(part.sass, part.fatbins))
            total = bins.total + bins.others
            found["linalg"] = sorted(f"sm_{a}" for a, n in counts.items() if 2 * n >= total)
    found["fetched"] = remote.fetched
    return found


def shown() -> dict[tuple[str, str], dict[str, Any]]:
    """Return PyPI's builds for Linux as the command line shows them."""
    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "catalog", "show", "torch", "--output-format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        (row["version"], row["platform"].partition("-")[2]): row
        for row in json.loads(done.stdout)["builds"]
        if row["index"] == "pypi" and row["platform"].startswith("linux")
    }


def differences(row: dict[str, Any], files: list[dict[str, Any]], read_: list[Any]) -> list[str]:
    """Return what a build of the catalog tells otherwise than its wheels."""
    out = []

    def same(what: str, told: Any, true: Any) -> None:
        if told != true:
            out.append(f"{what}: the catalog says {told!r}, the wheels {true!r}")

    live = [f for f in files if not f.get("yanked")] or files
    same("pythons", sorted(row["pythons"]), sorted({python_tag(f["filename"]) for f in live}))
    tags = [t.platform for f in files for t in parse_wheel_filename(f["filename"])[3]]
    told = Version(row["glibc"])  # the tags of CUDA wheels said manylinux1 up to torch 2.6
    needs = max((one["glibc"] for one in read_), default=told)
    if not (min(map(floor_of, tags)) <= told and needs <= told):
        out.append(f"glibc: the catalog says {told}, {needs} is needed; tags {sorted(set(tags))}")
    same("yanked", row["yanked"], all(bool(f.get("yanked")) for f in files))
    for file, one in zip(files, read_, strict=True):
        name = file["filename"]
        cuda = one["cuda"]
        channel = one["label"] or ("cu" + cuda.replace(".", "") if cuda else "cpu")
        same(f"{name} channel", row["channel"], channel)
        same(f"{name} CUDA", row["cuda"], cuda)
        same(f"{name} Requires-Python", row["requires_python"], one["requires_python"])
        same(f"{name} GPUs", " ".join(row["sass"] + row["ptx"]), one["stated"])
        if "linalg" in one:
            lists = row["libraries"].get("libtorch_cuda_linalg.so")
            same(f"{name} linalg", sorted(lists["sass"]) if lists else None, one["linalg"])
    return out


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--since", default="1.8", type=Version)
    parser.add_argument("--version", action="append", type=Version)
    parser.add_argument("--one", action="store_true", help="one wheel a version and machine")
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args(arguments)
    wheels: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for file in project_files("torch")["files"]:
        name = file["filename"]
        match = re.search(r"linux[\w.]*_(x86_64|aarch64)\.whl$", name)
        if match is None:
            continue
        version = parse_wheel_filename(name)[1]
        wanted = not options.version or version in options.version
        if version >= options.since and not version.is_prerelease and wanted:
            wheels[str(version), match[1]].append(file)
    rows = {
        key: row
        for key, row in shown().items()
        if Version(key[0]) >= options.since
        and (not options.version or Version(key[0]) in options.version)
    }
    wrong = [f"torch {' '.join(key)}: only the catalog knows it" for key in set(rows) - set(wheels)]
    wrong += [f"torch {' '.join(key)}: only PyPI has it" for key in set(wheels) - set(rows)]
    count = fetched = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for key in sorted(set(rows) & set(wheels), key=lambda k: (Version(k[0]), k[1])):
            files = sorted(wheels[key], key=lambda f: str(f["filename"]))
            some = files[:1] if options.one else files
            done = list(pool.map(read, some, [n == 0 for n in range(len(some))]))
            if options.one:
                told = differences(rows[key], files, done * len(files))
            else:
                told = differences(rows[key], files, done)
            wrong += [f"torch {' '.join(key)}: {text}" for text in told]
            count += len(some)
            fetched += sum(one["fetched"] for one in done)
            print(*key, len(some), "wheels", "differs" if told else "ok", flush=True)
    for text in wrong:
        print(text)
    print(f"{len(rows)} builds, {count} wheels, {fetched >> 20} MiB read: {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
