"""The builds of PyPI: its file list is complete; rows and measurements add what wheels say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tools._contents import Content
from tools._facts import Row, Wheel, order_pythons
from tools._wheels import STATED, Read

from torchpin.catalog.kernel_lists import kernel_lists
from torchpin.catalog.labels import cuda_of, kind_of_label
from torchpin.catalog.model import FAMILY, Build, Kernels
from torchpin.evidence import INFERRED, MEASURED, PUBLISHED

KEY = tuple[str, str, str, str, str]
COMPILED = (*FAMILY, "torchcodec", "torchtext", "xformers")
"""Packages whose label says what they were built for."""


def key_of(build: Build) -> KEY:
    return (build.version, build.home, build.channel, build.platform, build.label)


def pypi_builds(
    package: str,
    rows: list[Row],
    files: list[Wheel],
    pairs: Mapping[str, str],
    defaults: Mapping[tuple[str, str], str],
    listing: str,
    contents: Mapping[str, Content],
    reads: Mapping[str, Read],
    contradictions: list[str],
) -> dict[KEY, Build]:
    """Return the builds of PyPI. What a wheel says itself goes before what rows tell."""
    groups: dict[tuple[str, str], list[Wheel]] = defaultdict(list)
    for file in files:
        for platform in file.platforms:
            groups[file.version, platform].append(file)
    by_place = {(r.version, r.platform): r for r in rows if r.channel == "pypi"}
    table: dict[KEY, Build] = {}
    for (version, platform), wheels in groups.items():
        row = by_place.get((version, platform))
        raw = row.raw if row else {}
        if row and not row.exists:
            contradictions.append(f"{package} {version} {platform}: rows deny a file of PyPI")
        live = [w for w in wheels if not w.yanked] or wheels
        source = listing
        if row:
            source += "; " + "; ".join(s for s in raw["source"] if "file list" not in s)
            source = source.rstrip("; ")
        content = next((contents[w.name] for w in live if w.name in contents), None)
        channel = pypi_channel(package, platform, raw)
        if content is not None:
            read = read_channel(content, platform)
            if read and channel and read != channel:
                contradictions.append(f"{package} {version} {platform}: {channel} or {read}?")
            channel = read or channel
            if content.file not in source:
                source += f"; PyPI: {content.file} sha256:{content.sha256}"
        told = defaults.get((version, platform), "") if package == "torch" else ""
        if told and channel and told != channel:
            contradictions.append(f"{package} {version} {platform}: {told} or {channel}?")
        channel = channel or told
        requires: str | None = None
        if content is not None and package != "torch":
            requires = content.requires_torch
        elif "requires_torch" in raw:
            requires = raw["requires_torch"] or ""
        elif version in pairs:
            requires = pairs[version]
        glibc = raw.get("glibc_floor") or lowest(w.glibc for w in wheels)
        read_here = next((reads[w.name] for w in live if w.name in reads), None)
        main, libraries = measured_kernels(read_here) if read_here else (None, ())
        told_by_row = kernels_of_row(raw)
        if main and told_by_row and (main.sass, main.ptx) != (told_by_row.sass, told_by_row.ptx):
            contradictions.append(f"{package} {version} {platform}: rows tell other kernels")
        build = Build(
            package=package,
            version=version,
            label=wheels[0].label,
            channel=channel,
            home="pypi",
            platform=platform,
            pythons=order_pythons(t for w in live for t in w.pythons),
            pythons_inferred=(),
            kernels=main or (None if read_here else told_by_row),
            libraries=libraries,
            cuda=cuda_of(channel) or raw.get("cuda"),
            glibc=glibc if platform.startswith("linux") else None,
            macos=lowest(w.macos for w in wheels) if platform.startswith("macos") else None,
            requires_torch=requires,
            requires_python=common(w.requires_python for w in wheels),
            yanked=all(w.yanked for w in wheels),
            released=min(w.date for w in wheels) or None,
            evidence=MEASURED,
            source=source,
        )
        table[key_of(build)] = build
    listed = set(groups)
    for (version, platform), row in by_place.items():
        if row.exists and (version, platform) not in listed:
            contradictions.append(f"{package} {version} {platform}: not in PyPI's file list")
    return table


def content_of(read: Read) -> Content:
    """Return what a read wheel says of torch and of its build."""
    torch = [
        Requirement(r) for r in read.requires if canonicalize_name(Requirement(r).name) == "torch"
    ]
    specifier = str(torch[0].specifier) or ">=0" if torch else ""
    return Content(read.package, read.file, read.sha256, specifier, read.version, read.cuda)


def measured_kernels(read: Read) -> tuple[Kernels | None, tuple[tuple[str, Kernels], ...]]:
    """Return the list that stands for a wheel, and the libraries that hold another one."""
    words = (read.states or "").split()
    stated = (
        tuple(w.removeprefix("sm_") for w in words if w.startswith("sm_")),
        tuple(w.removeprefix("compute_") for w in words if w.startswith("compute_")),
        (),
    )
    proof = f"PyPI wheel {read.file} sha256:{read.sha256}"
    return kernel_lists(read.package, stated, read.libraries, proof, MEASURED, STATED)


def read_channel(content: Content, platform: str) -> str:
    """Return what a wheel says that it was built for; ``""`` where it does not tell.

    ``version.py`` names the label; wheels without one name the CUDA, or were built without:
    for Linux on ARM every CUDA build has a label (PyTorch's build scripts, since 2.11).
    """
    if content.package not in COMPILED or content.file.endswith("-any.whl"):
        return ""
    label = (content.version or "").partition("+")[2]
    if kind_of_label(label):
        return label
    if content.cuda:
        return "cu" + "".join(content.cuda.split(".")[:2])
    unlabelled = content.package in FAMILY and content.version is not None
    return "cpu" if unlabelled and platform == "linux-aarch64" else ""


def pypi_channel(package: str, platform: str, raw: Mapping[str, Any]) -> str:
    """Return what a PyPI build really is, ``""`` where nobody looked."""
    if package in (*FAMILY, "torchcodec") and platform.startswith("macos"):
        return "cpu"
    local = raw.get("local_version")
    if not isinstance(local, str):
        return ""
    label = local.partition("+")[2] if "+" in local else local
    if kind_of_label(label):
        return label
    machine_without_gpu = platform in ("linux-aarch64", "windows-x86_64")
    plain = package in FAMILY and machine_without_gpu
    return "cpu" if plain or package == "torchcodec" else ""


def kernels_of_row(raw: Mapping[str, Any]) -> Kernels | None:
    words = {"measured": MEASURED, "inferred": INFERRED}
    if raw.get("arch"):
        evidence = words.get(raw.get("arch_confidence", "inferred"), PUBLISHED)
        return kernels(raw["arch"], evidence, raw.get("arch_source"))
    if raw.get("kernels"):
        evidence = words.get(raw.get("kernels_confidence", "inferred"), PUBLISHED)
        if raw.get("kernels_note"):
            evidence = INFERRED
        source = f"{raw.get('kernels_source') or 'not named'}"
        if note := raw.get("kernels_note"):
            source += f" [{note}]"
        return kernels(raw["kernels"], evidence, source)
    return None


def lowest(values: Iterable[str | None]) -> str | None:
    found = [v for v in values if v]
    return min(found, key=Version) if found else None


def common(values: Iterable[str | None]) -> str | None:
    found = Counter(v for v in values if v)
    return found.most_common(1)[0][0] if found else None


def kernels(lists: Mapping[str, Any] | None, evidence: str, source: Any) -> Kernels | None:
    """Return the kernel list of a row; None if it has none."""
    if not lists or not any(lists.values()):
        return None

    def bare(key: str, prefix: str) -> tuple[str, ...]:
        return tuple(a.removeprefix(prefix) for a in lists.get(key, ()))

    text = source if isinstance(source, str) else "; ".join(source or ())
    return Kernels(
        bare("sass", "sm_"), bare("ptx", "compute_"), tuple(lists.get("gfx", ())), evidence, text
    )
