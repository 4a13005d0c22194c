"""``torchpin inspect`` against NVIDIA's ``cuobjdump``.

``objects/own_object.elf`` was made of ``own_kernel.ptx``: ``ptxas`` for sm_75, sm_80, sm_90a,
sm_100f and sm_120, ``fatbinary`` once without and once with compression, ``.incbin`` of both in
``.nv_fatbin`` (``gcc -shared -nostdlib``); its listing is cuobjdump's (13.5.37).

``TORCHPIN_LIVE=1`` compares libraries of wheels on PyPI, with cuobjdump from its own wheel. What
cuobjdump cannot read (cubins of CUDA 12 and older, DLLs) is left to our reader alone.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import urllib.error
import urllib.request
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from torchpin.catalog.inspect import inspect
from torchpin.catalog.inspection import Library

OBJECTS = Path(__file__).parent / "objects"
MOST_PACKED = 48 * 1024 * 1024
"""Libraries that are bigger in the wheel are not fetched (libtorch_cuda.so)."""
WHEELS = (
    ("torch", "2.15.0", "cp312-cp312-manylinux_2_28_x86_64"),
    ("torch", "2.15.0", "cp312-cp312-manylinux_2_28_aarch64"),
    ("torchvision", "0.29.2", "manylinux_2_28_x86_64"),
    ("torchaudio", "2.11.1", "manylinux_2_28_x86_64"),
    ("bitsandbytes", None, "manylinux_2_24_x86_64"),
    ("bitsandbytes", None, "win_amd64"),
)


def listing(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return SASS and PTX target → how often, of ``cuobjdump --list-elf --list-ptx``.

    The listing names ``sm_100f`` as ``sm_100``.
    """
    found = re.findall(r"^(ELF|PTX) file +\d+: \S*?\.sm_(\d+a?)f?\.(?:cubin|ptx)$", text, re.M)
    assert len(found) == len([line for line in text.splitlines() if " file " in line])
    counts = {kind: Counter(arch for k, arch in found if k == kind) for kind in ("ELF", "PTX")}
    return dict(counts["ELF"]), dict(counts["PTX"])


def ours(library: Library) -> tuple[dict[str, int], dict[str, int]]:
    sass: Counter[str] = Counter()
    ptx: Counter[str] = Counter()
    for part in library.fatbins.parts:
        for arch in part.sass:
            sass[arch.removesuffix("f")] += part.fatbins
        for arch in part.ptx:
            ptx[arch.removesuffix("f")] += part.fatbins
    return dict(sass), dict(ptx)


def test_an_object_of_our_own() -> None:
    (library,) = inspect(str(OBJECTS / "own_object.elf")).device
    told = listing((OBJECTS / "own_object.cuobjdump.txt").read_text(encoding="utf-8"))
    assert ours(library) == told
    assert told == ({"75": 2, "80": 1, "90a": 1, "100": 1, "120": 1}, {"120": 1, "75": 1})
    assert "100f" in library.fatbins.sass


def page(project: str) -> list[dict[str, Any]]:
    from tools._common import project_files

    try:
        files: list[dict[str, Any]] = project_files(project)["files"]
    except (urllib.error.URLError, OSError) as error:
        pytest.skip(f"the index cannot be reached: {error}")
    return files


@pytest.fixture(scope="module")
def cuobjdump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetch NVIDIA's tool (290 KB)."""
    if not os.environ.get("TORCHPIN_LIVE"):
        pytest.skip("TORCHPIN_LIVE=1 fetches libraries from the real index")
    files = [f for f in page("nvidia-cuda-cuobjdump") if f["filename"].endswith("x86_64.whl")]
    with urllib.request.urlopen(files[-1]["url"], timeout=60) as answer:
        archive = zipfile.ZipFile(io.BytesIO(answer.read()))
    name = next(n for n in archive.namelist() if n.endswith("/cuobjdump"))
    path = tmp_path_factory.mktemp("cuobjdump") / "cuobjdump"
    path.write_bytes(archive.read(name))
    path.chmod(0o755)
    try:
        subprocess.run([path, "--version"], capture_output=True, check=True)
    except OSError as error:
        pytest.skip(f"cuobjdump does not run here: {error}")
    return path


def test_the_stored_listing_is_what_the_tool_says(cuobjdump: Path, tmp_path: Path) -> None:
    copy = tmp_path / "own.so"
    copy.write_bytes((OBJECTS / "own_object.elf").read_bytes())
    done = subprocess.run(
        [cuobjdump, "--list-elf", "--list-ptx", copy], capture_output=True, text=True, check=True
    )
    stored = (OBJECTS / "own_object.cuobjdump.txt").read_text(encoding="utf-8")
    assert listing(done.stdout) == listing(stored)


@pytest.mark.parametrize(("package", "version", "tag"), WHEELS)
def test_wheels_of_the_index(
    cuobjdump: Path, tmp_path: Path, package: str, version: str | None, tag: str
) -> None:
    from tools._common import project_files
    from tools._zips import RemoteZip

    if version is None:
        version = newest(project_files(package)["versions"])
    files = [
        f
        for f in page(package)
        if f["filename"].startswith(f"{package}-{version}-") and tag in f["filename"]
    ]
    archive = RemoteZip(files[0]["url"], files[0]["size"])
    compared: dict[str, str] = {}
    for member in archive.members:
        if not re.search(r"\.(?:so(?:\.\d+)*|dll)$", member.name) or member.packed > MOST_PACKED:
            continue
        path = tmp_path / member.name.rpartition("/")[2]
        path.write_bytes(archive.read(member))
        (library,) = inspect(str(path)).libraries
        done = subprocess.run(
            [cuobjdump, "--list-elf", "--list-ptx", path],
            capture_output=True,
            text=True,
            check=False,
        )
        path.unlink()
        if not library.fatbins.parts:
            assert " file " not in done.stdout, member.name
        elif done.returncode or " file " not in done.stdout:
            compared[member.name] = "cuobjdump cannot read it"
        else:
            assert ours(library) == listing(done.stdout), member.name
            compared[member.name] = "equal"
    print(json.dumps(compared, indent=1))
    assert compared
    if tag != "win_amd64":
        assert "equal" in compared.values()


def newest(versions: list[str]) -> str:
    from packaging.version import Version

    return max((v for v in versions if not Version(v).is_prerelease), key=Version)
