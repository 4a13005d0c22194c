"""What hardware a file is made for, by its own words: a fix does not turn it into something else.

Projects keep one file for each kind of hardware (``requirements-rocm.txt``, ``…_macos_arm64.txt``).
Such a file is left to its machines; the fleet's other machines need another file.
"""

from __future__ import annotations

import re

from torchpin.catalog.labels import kind_of_label
from torchpin.documents.pins import exact_version
from torchpin.resolve.model import Plan
from torchpin.rewrite.request import current_channel, family_declarations
from torchpin.rewrite.requirement_indexes import home_of
from torchpin.rules.context import Context, Way, base_name
from torchpin.rules.model import DISPLAY, UNSAFE

MADE_FOR = {
    "cuda": "NVIDIA GPUs",
    "rocm": "AMD GPUs",
    "xpu": "Intel GPUs",
    "cpu": "CPUs",
    "macos": "macOS",
}
_WORDS = (
    ("cuda", r"cuda|cu\d{2,3}|nvidia"),
    ("rocm", r"rocm|hip|hipblas|amdgpu|amd(?!64)"),
    ("xpu", r"xpu|ipex|intel"),
    ("cpu", r"cpu"),
    ("macos", r"macos|mac|darwin|osx|mps|silicon|metal"),
)


def named_kinds(path: str) -> frozenset[str]:
    """Return the kinds of hardware (keys of ``MADE_FOR``) that a file's name speaks of."""
    name = base_name(path).lower()
    return frozenset(
        kind for kind, words in _WORDS if re.search(rf"(?<![a-z])(?:{words})(?![a-z])", name)
    )


def vendor_label(way: Way) -> str | None:
    """Return the label of a torch pin that is none of PyTorch's own channels: a vendor's build."""
    for placed in family_declarations(way):
        pin = exact_version(placed.declaration.specifier)
        if placed.declaration.name == "torch" and pin and pin[1] and not kind_of_label(pin[1]):
            return pin[1]
    return None


def plan_kinds(plan: Plan) -> frozenset[str]:
    """Return the kinds of hardware that a plan's torch builds are made for."""
    return frozenset(
        "macos" if platform.startswith("macos") else kind_of_label(build.channel) or build.channel
        for platform, package, build in plan.builds
        if package == "torch"
    )


def refusal(way: Way, context: Context, plan: Plan) -> tuple[str, str] | None:
    """Return how far a plan may go that gives a file another purpose, and why; None: it does not.

    ``DISPLAY`` where the file's name, or another file of the project, says that this one is for
    other hardware, or where it pins a vendor's build; else ``UNSAFE``.
    """
    label = vendor_label(way)
    if label is not None:
        return DISPLAY, f"+{label} is a vendor's build"
    kinds = plan_kinds(plan)
    named = named_kinds(way.install.root.path)
    if way.part is not None:
        named |= named_kinds(home_of(way).path)
    if named and not kinds & named and not ("cpu" in named and kinds <= {"cpu", "macos"}):
        names = " and ".join(MADE_FOR[kind] for kind in sorted(named))
        return DISPLAY, f"by its name the file is for {names}"
    channel = current_channel(way)
    if channel is None:
        return (UNSAFE, "PyPI's builds are for NVIDIA GPUs") if kinds & {"rocm", "xpu"} else None
    today = kind_of_label(channel)
    if today not in ("cuda", "rocm", "xpu") or today in kinds:
        return None
    if context.rivals(way):
        return DISPLAY, f"this file is for {MADE_FOR[today]}; other files of the project stand by"
    return UNSAFE, f"this file is for {MADE_FOR[today]}"
