"""Which GPU a text names: product names as tools print them, capabilities, instance types.

The order of the look-up: a compute capability or AMD ISA name; ambiguous short names (refused);
the whole name, lower-case letters and digits only; the name without what tools add (counts, UUIDs,
``-SHARED``, ``MIG …``, vGPU profiles, memory sizes, form factors); cloud instance types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.errors import ConfigError
from torchpin.fleet.model import Gpu
from torchpin.fleet.tables import (
    GpuTable,
    Instance,
    Product,
    architecture_table,
    gpu_table,
    instance_table,
)
from torchpin.patterns import regex

HOW_TO_DECLARE = (
    'declare an unknown NVIDIA card by its compute capability, e.g. "sm_90", an AMD '
    'card by its ISA name, e.g. "gfx942", an Intel card as "xpu"'
)
TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (11, 0)})
"""Capabilities that exist in Jetson modules only (NVIDIA's list of CUDA GPUs)."""

_CAPABILITY = regex(
    r"(?:(?:sm|compute)[ _-]?([0-9]{1,2})([0-9])"
    r"|(?:cuda )?(?:(?:compute[ _-]?capability|capability|cc|sm|compute)[ :=_-]*)?"
    r"([0-9]{1,2})\.([0-9]))[af]?(?:\+ptx)?"
)
_GFX = regex(r"(gfx[0-9]{1,3}[0-9a-f]{2})(?::[a-z0-9:+-]*)?")
_KEY = regex(r"[^a-z0-9]+")
# The patterns that most names never need are plain text: re compiles them on first use.
_WRAPPERS = (
    r"(?i)^gpu +[0-9]+: *",  # nvidia-smi -L
    r"(?i) *\(uuid:[^)]*\)$",
    r"(?i) *\(rev [0-9a-f]+\)$",  # lspci
    r"(?i)^[0-9]+ *[x×*] +|^[0-9]+[x×*](?=[a-z])",  # 8x A100
    r"(?i)(?: +\(?[x×*] *|: *|\()[0-9]+\)?$",  # A100 x8, A100:8
)
_BRACKETS = r"\[([^\]/]+)\]$"
_SHARED = r"(?i)-SHARED$"
_MIG = r"(?i)[ -]MIG[ -].*$"
_VGPU = r"(?i)[ -](?:[0-9]+-)?[0-9]+(?:[ABCQ]|CME)$"
_VENDOR = regex(
    r"^(?:nvidia(?: corporation)?|advanced micro devices,? inc\.?|amd(?:/ati)?|grid)[ -]+", re.I
)
_BRANDS = {
    "tesla": "datacenter",
    "instinct": "datacenter",
    "quadro": "workstation",
    "geforce": "consumer",
    "radeon": "",
}
_BRAND = regex(r"^(tesla|instinct|quadro|geforce|radeon)[ -]+", re.I)
_CONSUMER = regex(r"(?:gtx|rtx|gt|mx) ?[0-9t]", re.I)
_TAIL = (
    r"(?i)[ ,(/-]+(?:[0-9]+ ?gi?b?|(?:hbm|gddr|ddr)[0-9][ex]?|sxm[0-9]?|pcie?(?:[ -]?x16)?"
    r"|nvl|oam|fhhl"
    r"|(laptop(?: gpu)?|mobile|notebook|(?:with )?max-?[qp](?: design)?)"
    r"|gpu|graphics(?: card)?|tensor core(?: gpu)?|accelerator|founders edition|fe|lhr|oem"
    r"|vf|developer kit|dev kit|generation)\)?$"
)
_N1 = r"n1-[a-z0-9*-]+ *\+ *(.+)"
_AWS = (
    r"([a-z]+[0-9]+[a-z0-9-]*)\.(?:nano|micro|small|medium|large|[0-9]*xlarge|metal(?:-[0-9a-z]+)?)"
)
_CPU_AWS = r"(?:c|m|r|t|x|z|i|is|im|d|h|a|u|hpc)[0-9]"
_APPLE = r"(?:apple.*|m[1-9](?: (?:pro|max|ultra))?|mps)"


def key_of(text: str) -> str:
    """Return the look-up key of a name: lower-case ASCII letters and digits only."""
    return _KEY.sub("", text.lower())


def find_gpu(text: str, *, path: str | None = None, line: int | None = None) -> tuple[Gpu, ...]:
    """Return the GPU that ``text`` names; a cloud instance type gives every kind that it has.

    Args:
        text: as written in a profile or on the command line.
        path: file of the text, for the error.
        line: line of the text, for the error.

    Raises:
        ConfigError: the name is unknown (with the nearest names), ambiguous (with the
            candidates), or an instance type without a GPU.
    """
    clean = " ".join(re.sub(r"[®™©_]+", " ", text).split())[:200]
    low = clean.lower()
    declared = _by_architecture(text, low, path, line)
    if declared is not None:
        return (declared,)
    table = gpu_table()
    n1 = re.fullmatch(_N1, low) if low.startswith("n1") else None
    if n1:
        return tuple(
            gpu._replace(written=text, host="x86_64")
            for gpu in find_gpu(n1.group(1), path=path, line=line)
        )
    for form, mobile in _forms(clean):
        product = _look_up(table, form, text, path, line)
        if product is not None and not (
            mobile and product.capability and product.capability < (6, 0)
        ):
            return (_gpu(text, product),)
    instance = _instance(text)
    if instance is not None:
        return tuple(
            _gpu(text, table.by_name[name])._replace(host=instance.host, source=instance.source)
            for name in instance.gpus
        )
    raise _unknown(text, clean, table, path, line)


def _by_architecture(text: str, low: str, path: str | None, line: int | None) -> Gpu | None:
    """Return the GPU of ``sm_70``, ``7.0``, ``gfx942`` …; None if ``low`` is none of these."""
    match = _CAPABILITY.fullmatch(low)
    if match:
        major, minor = (int(part) for part in match.groups() if part is not None)
        return _by_capability(text, (major, minor), path, line)
    match = _GFX.fullmatch(low)
    if match:
        name = match.group(1)
        return Gpu(text, name, "amd", None, name, source="declared by its ISA name")
    return None


def _by_capability(
    text: str, capability: tuple[int, int], path: str | None, line: int | None
) -> Gpu:
    known = architecture_table()
    name = f"sm_{capability[0]}{capability[1]}"
    if capability == (10, 1):  # Thor's name under CUDA 12
        capability = (11, 0)
    elif capability not in known and not max(known) < capability < (20, 0):
        near = [f"{a}.{b}" for a, b in sorted(known) if a == capability[0]]
        hint = f"capabilities of that generation: {', '.join(near)}" if near else ""
        raise ConfigError(
            f"no GPU has compute capability {capability[0]}.{capability[1]} ({_quote(text)})",
            path=path,
            line=line,
            hint=hint or "compute capabilities are written like 7.0 or sm_70",
        )
    products = {p.product for p in gpu_table().by_name.values() if p.capability == capability}
    return Gpu(
        text,
        name,
        "nvidia",
        capability,
        None,
        tegra=capability in TEGRA,
        datacenter=products == {"datacenter"},
        source="declared by its compute capability",
        host="aarch64" if capability in TEGRA else "",
    )


def _gpu(text: str, product: Product) -> Gpu:
    return Gpu(
        text,
        product.name,
        product.vendor,
        product.capability,
        product.gfx,
        product.tegra,
        product.vendor == "nvidia" and product.product == "datacenter",
        "; ".join(gpu_table().sources[number] for number in product.source),
        product.product,
        product.host,
    )


def _forms(clean: str) -> Iterator[tuple[str, bool]]:
    """Yield ``clean`` and its shorter forms; the flag says that "Laptop" or "Max-Q" was cut off.

    A Maxwell laptop chip may differ from the desktop card of the same number (GTX 960 and 960M).
    """
    yield clean, False
    seen = {clean}
    form = clean
    for pattern in _WRAPPERS:
        form = re.sub(pattern, "", form)
    bracket = re.search(_BRACKETS, form)
    if bracket:
        form = bracket.group(1)
    stages = [form]
    for pattern in (_SHARED, _MIG, _VGPU):
        form = re.sub(pattern, "", form)
        stages.append(form)
    for stage in stages:
        if stage and stage not in seen:
            seen.add(stage)
            yield stage, False
    mobile = False
    for _ in range(8):
        tail = re.search(_TAIL, form)
        if tail is None or tail.start() == 0:
            return
        mobile = mobile or tail.group(1) is not None
        form = form[: tail.start()]
        yield form, mobile


def _look_up(
    table: GpuTable, form: str, text: str, path: str | None, line: int | None
) -> Product | None:
    """Return the product of ``form``, with and without vendor and brand."""
    bare = _VENDOR.sub("", form)
    brand = _BRAND.match(bare)
    names = [form] if bare == form else [form, bare]
    if _CONSUMER.match(bare):
        names.append(f"geforce {bare}")
    if brand:
        names.append(bare[brand.end() :])
    for name in names:
        key = key_of(name)
        if key in table.ambiguous:
            _, candidates = table.ambiguous[key]
            raise ConfigError(
                f"ambiguous GPU {_quote(text)}: it may be "
                + ", ".join(f"{candidate} ({cc})" for candidate, cc in candidates),
                path=path,
                line=line,
                hint="write the full product name, or the compute capability in brackets above",
            )
        product = table.by_key.get(key)
        if product is None:
            continue
        if name is names[-1] and brand:
            wanted = _BRANDS[brand.group(1).lower()]
            if wanted and product.product != wanted:
                continue
        return product
    return None


def _instance(text: str) -> Instance | None:
    name = text.strip().lower()
    table = instance_table()
    for form in (name, name.removeprefix("ml."), f"standard_{name}"):
        if form in table:
            return table[form]
    return None


def _quote(text: str) -> str:
    shown = text if len(text) <= 60 else text[:57] + "…"
    return '"' + "".join(c if c.isprintable() else "?" for c in shown) + '"'


def _unknown(
    text: str, clean: str, table: GpuTable, path: str | None, line: int | None
) -> ConfigError:
    low = clean.lower()
    if not key_of(clean):
        return ConfigError(
            f"empty GPU name {_quote(text)}", path=path, line=line, hint=HOW_TO_DECLARE
        )
    aws = re.fullmatch(_AWS, low.removeprefix("ml."))
    if aws and re.match(_CPU_AWS, aws.group(1)):
        return ConfigError(
            f"instance type {_quote(text)} has no GPU",
            path=path,
            line=line,
            hint="declare a group without GPUs as gpus = []" if path else "write --gpu none",
        )
    if re.fullmatch(_APPLE, low):
        how = "write --gpu none --platform macos-arm64"
        if path:
            how = 'declare gpus = [] and platform = "macos-arm64"'
        return ConfigError(
            f"{_quote(text)}: the GPU of an Apple machine is not declared",
            path=path,
            line=line,
            hint=f"{how}; its wheels are the same for all",
        )
    if low in ("cpu", "none", "no"):
        hint = "write gpus = [] for CPU only" if path else "--gpu none stands alone: CPU only"
        return ConfigError(f"{_quote(text)} is no GPU", path=path, line=line, hint=hint)
    bare = re.fullmatch(r"[0-9]{2,3}", low)
    if bare and (int(low[:-1]), int(low[-1])) in architecture_table():
        return ConfigError(
            f"unknown GPU {_quote(text)}", path=path, line=line, hint=f'did you mean "sm_{low}"?'
        )
    near = nearest(clean)
    hint = f"nearest names: {', '.join(near)}; {HOW_TO_DECLARE}" if near else HOW_TO_DECLARE
    what = "instance type" if aws or low.startswith("standard_") else "GPU"
    return ConfigError(f"unknown {what} {_quote(text)}", path=path, line=line, hint=hint)


def nearest(text: str, count: int = 4) -> list[str]:
    """Return up to ``count`` product or instance names that look like ``text``, best first."""
    import difflib

    wanted = key_of(_VENDOR.sub("", text[:60]))
    keys: dict[str, str] = {key: product.name for key, product in gpu_table().by_key.items()}
    for instance in instance_table().values():
        keys.setdefault(key_of(instance.name), instance.name)
    found: list[str] = []
    inside = sorted((k for k in keys if len(wanted) >= 3 and wanted in k), key=len)
    for key in (*inside, *difflib.get_close_matches(wanted, keys, n=20, cutoff=0.6)):
        if keys[key] not in found:
            found.append(keys[key])
    return found[:count]
