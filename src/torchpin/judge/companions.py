"""Do two packages of the family fit each other: version and CUDA runtime?

What each import checks was read from the wheels: ``torchaudio/_extension/utils.py`` (up to 2.11.0
the CUDA major and minor must equal torch's, from 2.11.1 the major) and ``torchvision/extension.py``
(0.15 both, from 0.16 the major). xformers loads without its operators where its CUDA is another
(``xformers/_cpp_lib.py``), bitsandbytes picks one of its libraries by torch's CUDA
(``bitsandbytes/cextension.py``).
"""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from torchpin.catalog.model import Build
from torchpin.evidence import INFERRED, MEASURED, PROOF, PUBLISHED
from torchpin.judge.model import FAILS, PARTLY, RUNS, UNKNOWN, Reason
from torchpin.judge.settle import settle
from torchpin.judge.words import CPU, CUDA, ROCM, cuda_of, kind_of
from torchpin.patterns import regex

AUDIO_STABLE = "https://github.com/pytorch/audio/pull/4212"
AUDIO_CHECK = "torchaudio/_extension/utils.py of torchaudio 2.11.0 and 2.11.1"
AUDIO_MAJOR = "https://github.com/pytorch/audio/pull/4226"
VISION_CHECK = "https://github.com/pytorch/vision/pull/7726; torchvision/extension.py"
VISION_TABLE = "https://github.com/pytorch/vision#installation (table of versions)"
VISION_CPU = "https://github.com/pytorch/vision/issues/3058"
VISION_NO_TORCH_CUDA = "https://github.com/pytorch/pytorch/issues/122494"
AUDIO_NO_TORCH_CUDA = "https://github.com/pytorch/pytorch/issues/111983"
AUDIO_NO_TORCH_HIP = "https://github.com/pytorch/audio/issues/2525"
CODEC = "https://github.com/unslothai/unsloth/pull/7474"
XFORMERS = "xformers/_cpp_lib.py (xFormers can't load C++/CUDA extensions)"
BITS_CHECK = "bitsandbytes/cextension.py of bitsandbytes 0.45.0 to 0.50.2"
BITS_READ = Version("0.45")
"""The first release of bitsandbytes whose way to choose a library is known."""
BITS_NEAREST = Version("0.50")
"""From here on another library of the same CUDA major will do."""
CODEC_TABLE = "https://github.com/meta-pytorch/torchcodec#installing-torchcodec (table of versions)"
CODEC_LAST = Version("0.17.dev0")
"""The table that came with 0.17.0 ends with 0.16."""
_CODEC = (
    ("0.12", ">=2.11"),
    ("0.11", "==2.11.*"),
    ("0.10", "==2.10.*"),
    ("0.8", "==2.9.*"),
    ("0.6", "==2.8.*"),
    ("0.3", "==2.7.*"),
    ("0.2", "==2.6.*"),
    ("0.1", "==2.5.*"),
    ("0.0.3", "==2.4.*"),
)
"""First release of torchcodec, and the torch that it and the next ones load beside: its METADATA
say nothing."""
AO_TABLE = "https://github.com/pytorch/ao/issues/2919"
_AO = (
    ("0.17", ">=2.11"),
    ("0.16", "==2.10.*"),
    ("0.15", "==2.9.1"),
    ("0.14", "==2.9.*"),
    ("0.13", "==2.8.*"),
    ("0.12", ">=2.5,<2.8"),
)
"""The same for torchao: beside another torch it leaves its compiled kernels out."""
_BITS = regex(r"libbitsandbytes_cuda(\d\d)(\d)\.(?:so|dll)\Z")

LINKED = ("torchvision", "torchaudio", "torchcodec", "xformers")
"""Companions whose binaries link torch's GPU libraries."""


def judge_companion(companion: Build, torch: Build) -> tuple[Reason, ...]:
    """Judge a companion beside a torch build: one reason for the version, one for CUDA."""
    reasons = (*_version(companion, torch), *_cuda(companion, torch))
    if companion.evidence not in PROOF or torch.evidence not in PROOF:
        reasons = tuple(
            reason._replace(evidence=INFERRED) if reason.status == FAILS else reason
            for reason in reasons
        )
    return tuple(settle(reason) for reason in reasons)


def _version(companion: Build, torch: Build) -> tuple[Reason, ...]:
    question = "companion-version"
    this, other = companion.title, torch.title
    wants = companion.requires_torch
    source = companion.source
    evidence = MEASURED if companion.evidence == MEASURED else PUBLISHED
    if wants is None:
        text = f"which torch {this} accepts is not known"
        return (Reason(question, UNKNOWN, text, INFERRED, source),)
    failing = FAILS
    told = documented(companion) if says_nothing(companion) else None
    if wants == "" and told is None:
        return ()
    if told is not None:
        wants, source = told
        unlisted = companion.package == "torchcodec" and Version(companion.version) > CODEC_LAST
        evidence = INFERRED if unlisted else PUBLISHED
        said = f"{this} says nothing in its metadata and is built for torch{wants}"
        if companion.package == "torchaudio":
            said = f"{this} says nothing in its metadata and is built for torch 2.11 or newer"
        elif companion.package == "torchvision":
            said = f"{this} takes any torch by its metadata, and is built for torch{wants}"
        elif companion.package == "torchao":
            said = f"the kernels of {this} are built for torch{wants}"
            failing = PARTLY
    else:
        said = f"{this} requires torch{wants}"
    try:
        allowed = SpecifierSet(wants)
    except InvalidSpecifier:
        text = f"the requirement of {this} on torch cannot be read: {wants}"
        return (Reason(question, UNKNOWN, text, INFERRED, source),)
    local = f"{torch.version}+{torch.label or torch.channel}"
    if any(allowed.contains(version, prereleases=True) for version in (torch.version, local)):
        return (Reason(question, RUNS, f"{said}, which {other} is", evidence, source),)
    return (Reason(question, failing, f"{said}, which {other} is not", evidence, source),)


def says_nothing(companion: Build) -> bool:
    """True if METADATA name no version of torch; old torchvision asks for a plain ``torch``."""
    wants = companion.requires_torch
    return wants == "" or (wants == ">=0" and companion.package == "torchvision")


def _vision_torch(number: Version) -> tuple[str, str] | None:
    """Return what torchvision's own table says: 0.5 goes with torch 1.4, 0.14 with 1.13, 0.15 with
    2.0, and so on."""
    if number.major != 0 or number.minor < 5:
        return None
    minor = number.minor
    torch = f"1.{minor - 1}" if minor < 15 else f"2.{minor - 15}"
    return f"=={torch}.*", VISION_TABLE


def documented(companion: Build) -> tuple[str, str] | None:
    """Return (specifier on torch, source) of a companion whose METADATA say nothing of torch.

    None where no published table tells: then nothing stands against any torch.
    """
    number = Version(companion.version)
    if companion.package == "torchaudio":
        return (">=2.11", AUDIO_STABLE) if number >= Version("2.11") else None
    if companion.package == "torchvision":
        return _vision_torch(number)
    table, source = {"torchcodec": (_CODEC, CODEC_TABLE), "torchao": (_AO, AO_TABLE)}.get(
        companion.package, ((), "")
    )
    for first, specifier in table:
        if number >= Version(first):
            return (specifier, source)
    return None


def accepts(companion: Build, torch_version: str) -> bool | None:
    """Return whether a companion goes with a torch version, by METADATA or a published table.

    None where neither tells.
    """
    wants = companion.requires_torch
    if says_nothing(companion):
        told = documented(companion)
        wants = told[0] if told else ""
    if not wants:
        return None
    try:
        return SpecifierSet(wants).contains(torch_version, prereleases=True)
    except InvalidSpecifier:
        return None


def _cuda(companion: Build, torch: Build) -> tuple[Reason, ...]:
    question = "companion-cuda"
    if companion.package == "bitsandbytes":
        return _bits(companion, torch)
    if companion.package not in LINKED:
        return ()
    this, other = companion.title, torch.title
    ours, theirs = kind_of(companion), kind_of(torch)
    if ours is None or theirs is None:
        text = f"whether {this} and {other} are built for the same accelerator is not known"
        return (Reason(question, UNKNOWN, text, INFERRED, companion.source),)
    if ours == theirs == CUDA:
        return (_cuda_pair(companion, torch, this, other),)
    if ours == theirs:
        return _same_kind(companion, torch, this, other)
    if ours == CPU:
        return _cpu_companion(companion, this, other)
    if companion.package == "torchcodec":
        text = f"{this} needs the libraries of its accelerator, which {other} does not have"
        return (Reason(question, PARTLY, text, PUBLISHED, CODEC),)
    if companion.package == "torchaudio":
        source = AUDIO_NO_TORCH_HIP if ours == ROCM else AUDIO_NO_TORCH_CUDA
    else:
        source = VISION_NO_TORCH_CUDA
    evidence = PUBLISHED if ours in (CUDA, ROCM) and companion.package != "xformers" else INFERRED
    missing = {CUDA: "libtorch_cuda", ROCM: "libtorch_hip"}.get(ours, "torch's accelerator library")
    text = f"{this} needs {missing}, which {other} does not have: it does not load"
    return (Reason(question, FAILS, text, evidence, source),)


def loaded(companion: Build, torch: Build) -> Build:
    """Return a companion as it works beside a torch build.

    bitsandbytes holds a library for each of several CUDA versions: it becomes a build of the one
    that it loads. All others are as they are.
    """
    if companion.package != "bitsandbytes" or kind_of(torch) != CUDA:
        return companion
    chosen = _bits_library(companion, torch)
    if chosen is None:
        return companion
    name, cuda = chosen
    lists = dict(companion.libraries)[name]
    channel = f"cu{cuda[0]}{cuda[1]}"
    return companion._replace(
        channel=channel, cuda=f"{cuda[0]}.{cuda[1]}", kernels=lists, libraries=()
    )


def _bits_library(companion: Build, torch: Build) -> tuple[str, tuple[int, int]] | None:
    """Return file name and CUDA of the library that bitsandbytes loads; None if there is none."""
    wanted = re.fullmatch(r"(\d+)\.(\d+)", cuda_of(torch) or "")
    if wanted is None or Version(companion.version) < BITS_READ:
        return None
    need = (int(wanted[1]), int(wanted[2]))
    held = {
        (int(match[1]), int(match[2])): name
        for name, _ in companion.libraries
        if (match := _BITS.match(name))
    }
    if need in held or Version(companion.version) < BITS_NEAREST:
        return (held[need], need) if need in held else None
    lower = [cuda for cuda in held if cuda[0] == need[0] and cuda < need]
    higher = [cuda for cuda in held if cuda[0] == need[0] and cuda > need]
    best = max(lower) if lower else min(higher) if higher else None
    return (held[best], best) if best is not None else None


def _bits(companion: Build, torch: Build) -> tuple[Reason, ...]:
    question = "companion-cuda"
    if kind_of(torch) != CUDA or cuda_of(torch) is None:
        return ()
    if not companion.libraries or Version(companion.version) < BITS_READ:
        return ()  # not read
    this, other, cuda = companion.title, torch.title, cuda_of(torch)
    chosen = _bits_library(companion, torch)
    source = f"{BITS_CHECK}; {companion.libraries[0][1].source}"
    if chosen is None:
        text = f"{this} holds no library for CUDA {cuda} of {other}: its operators do not load"
        return (Reason(question, FAILS, text, PUBLISHED, source),)
    text = f"{this} loads {chosen[0]} beside {other} (CUDA {cuda})"
    return (Reason(question, RUNS, text, PUBLISHED, source),)


def _cpu_companion(companion: Build, this: str, other: str) -> tuple[Reason, ...]:
    if companion.package not in ("torchvision", "torchaudio"):
        return ()
    example, evidence, source = {
        "torchvision": ("nms, roi_align", PUBLISHED, VISION_CPU),
        "torchaudio": ("forced_align, rnnt_loss", INFERRED, AUDIO_CHECK),
    }[companion.package]
    text = (
        f"{this} is a CPU build beside {other}: its own operators ({example}) do not run on the GPU"
    )
    return (Reason("companion-cuda", PARTLY, text, evidence, source),)


def _same_kind(companion: Build, torch: Build, this: str, other: str) -> tuple[Reason, ...]:
    if companion.channel == torch.channel or kind_of(torch) != ROCM:
        return ()
    text = f"{this} and {other} are built for different ROCm releases; nothing says that they fit"
    return (Reason("companion-cuda", UNKNOWN, text, INFERRED, companion.source),)


def cuda_rule(package: str, version: str) -> tuple[str, str, str]:
    """Return how a companion compares CUDA with torch's: (rule, evidence, source).

    The rule ``minor``: major and minor must be equal; ``major``: the major alone.
    """
    number = Version(version)
    if package == "torchaudio":
        if number >= Version("2.11.1"):
            return ("major", PUBLISHED, AUDIO_MAJOR)
        return ("minor", PUBLISHED if number >= Version("2.0") else INFERRED, AUDIO_CHECK)
    if package == "torchvision":
        if number >= Version("0.16"):
            return ("major", PUBLISHED, VISION_CHECK)
        return ("minor", PUBLISHED if number >= Version("0.15") else INFERRED, VISION_CHECK)
    if package == "torchcodec":
        return ("major", PUBLISHED, CODEC)
    if package == "xformers":
        return ("major", PUBLISHED, XFORMERS)
    return ("major", INFERRED, "")


def _cuda_pair(companion: Build, torch: Build, this: str, other: str) -> Reason:
    question = "companion-cuda"
    ours, theirs = cuda_of(companion), cuda_of(torch)
    if ours is None or theirs is None:
        text = f"the CUDA versions of {this} and {other} are not known"
        return Reason(question, UNKNOWN, text, INFERRED, companion.source)
    rule, evidence, source = cuda_rule(companion.package, companion.version)
    if ours == theirs:
        text = f"{this} and {other} are both built with CUDA {ours}"
        return Reason(question, RUNS, text, evidence, companion.source)
    same_major = ours.split(".")[0] == theirs.split(".")[0]
    if rule == "major" and same_major:
        text = f"{this} (CUDA {ours}) fits {other} (CUDA {theirs}): it compares the major only"
        return Reason(question, RUNS, text, evidence, source)
    what = "CUDA major version" if rule == "major" else "CUDA version, major and minor"
    text = (
        f"{this} is built with CUDA {ours}, {other} with CUDA {theirs}: "
        f"{companion.package} {companion.version} needs the same {what}"
    )
    # Nothing checks it, and the libraries may come from elsewhere; xformers only warns.
    status = PARTLY if companion.package in ("torchcodec", "xformers") else FAILS
    return Reason(question, status, text, evidence, source)
