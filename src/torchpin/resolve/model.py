"""The words of resolution: requests, plans, explanations."""

from __future__ import annotations

from torchpin.catalog.model import Build
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple


class Origin(NamedTuple):
    """Where a requirement of the resolution comes from."""

    path: str
    line: int
    text: str
    """The requirement (``torch>=2.11``) or the fleet entry (``fleet training: Tesla V100``)."""


class Want(NamedTuple):
    """One package that the plan must hold, with what the user allows."""

    package: str
    specifier: str
    """PEP 440 *public* specifier text (labels removed), ``""`` for any."""
    origin: Origin
    soft: bool = False
    """A pin that may move (``nearest`` takes the closest version) rather than a hard bound."""


class Request(NamedTuple):
    """What to solve."""

    wants: tuple[Want, ...]
    targets: tuple[Target, ...]
    policy: str = "nearest"
    current_channel: str | None = None
    """Channel that the file names today; preferred if it runs."""
    asked_channels: tuple[str, ...] = ()
    """If set, only these channels are allowed (``--channel``)."""
    pypi: bool = True
    """Whether PyPI's own builds may be used."""
    avoid_inferred: bool = True
    """Use only builds whose existence and kernels are proved."""


class Plan(NamedTuple):
    """One channel and one version of each family package that runs on all ``targets``."""

    targets: tuple[Target, ...]
    channel: str
    """The builds' channel on the main platform (PyPI's too)."""
    home: str
    """``pypi`` or ``channel``."""
    index_url: str | None
    """``https://download.pytorch.org/whl/cu126``; None for PyPI."""
    versions: tuple[tuple[str, str], ...]
    """Package → public version, in the order of ``FAMILY`` then by name."""
    builds: tuple[tuple[str, str, Build], ...]
    """(platform, package, build) for every platform of the targets."""
    because: tuple[tuple[str, str, str], ...]
    """(text, evidence, source): why this one and what was passed over."""
    parts: tuple[Plan, ...] = ()
    """Where exact pins differ by marker: the plans of their targets, which this one joins."""
    moved: tuple[str, ...] = ()
    """Packages that follow torch and must be pinned anew: what the file says does not fit."""
    unfit: tuple[tuple[str, str], ...] = ()
    """(package, why): packages that follow torch, of which no version is known that fits."""


class Unserved(NamedTuple):
    """A target that no published wheel serves."""

    target: Target
    gpu: str | None
    last_release: str | None
    """Last torch release whose wheels run on the GPU, with its channel: ``2.7.1+cu118``."""
    because: str
    recipe: tuple[str, ...] = ()
    """How to build torch from source for the GPU: comments and commands."""


class Conflict(NamedTuple):
    """One member of a minimal conflicting set."""

    origin: Origin
    text: str
    evidence: str
    without: str
    """What giving it up would allow: ``torch 2.10.0 (PyPI, cu128)``; ``""`` if nothing."""


class Outcome(NamedTuple):
    """The answer: one plan, or a split, or why there is none."""

    plans: tuple[Plan, ...]
    """One plan: it serves every target. Several: the smallest split."""
    unserved: tuple[Unserved, ...]
    explanation: tuple[Conflict, ...]
    """Why no single plan serves all targets: a minimal conflicting set; empty if one does."""
    alternative: tuple[Plan, ...] = ()
    """Where the only single plan lies further from what was asked (an older version, or another
    than the pinned one) than its groups need: the split that stays nearer. For display."""
