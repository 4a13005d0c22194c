"""TP4 on projects: indexes, sources and settings of a ``pyproject.toml``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import WATCHED, Build
from torchpin.documents.atoms import span_of
from torchpin.documents.base import Document, Span
from torchpin.documents.project import Project, ProjectIndex, Setting
from torchpin.evidence import MEASURED, PROOF, PUBLISHED
from torchpin.fleet.model import Target
from torchpin.judge.model import FAILS
from torchpin.judge.verdict import judge
from torchpin.rules.context import Context, Way, because
from torchpin.rules.hardware import gpu_names
from torchpin.rules.index_order import copies, shorten
from torchpin.rules.model import INFO, WARNING, Because, Finding
from torchpin.rules.project_words import (
    MAC,
    UV,
    UV_INDEX,
    UV_PYTORCH,
    ProjectRule,
    channel_of,
    covers,
    kind_of_index,
    may_hold,
)
from torchpin.rules.torch_backend import backends
from torchpin.select.model import IndexKind

_OPEN = {"poetry": ("primary", "default", None), "pdm": (None,), "uv": (None,)}
"""Priorities at which every package may come from an index."""
_ORDER = {
    "uv": ("uv takes the first index that knows a name; PyPI comes last", UV_INDEX),
    "poetry": (
        "Poetry looks for every package in all primary sources",
        "https://python-poetry.org/docs/repositories/#primary-package-sources",
    ),
    "pdm": (
        "PDM looks for every package in all sources without include_packages",
        "https://pdm-project.org/latest/usage/config/#respect-the-order-of-the-sources",
    ),
}


class IndexNotExplicit(ProjectRule):
    """A channel as an index that every package may come from.

    What it does: reports, in projects, a channel among the indexes without ``explicit = true`` (in
    uv also ``extra-index-url``; in Poetry a primary source; in PDM a source without
    ``include_packages``).

    Why it is bad: channels hold old copies of general packages and some of their own, and uv takes
    the first index that knows a name: jinja2 or requests then come from the channel.

    Example: ``[[tool.uv.index]]`` with ``url = "…/whl/cu126"`` and nothing else.

    Fix: ``explicit = true``, and a source for each package of the family.

    Evidence: documented behaviour of the tools; the copies that were seen on the channels.
    """

    code = "TP405"
    name = "index-not-explicit"
    severity = WARNING
    clients: ClassVar[tuple[str, ...]] = ("uv", "poetry", "pdm")

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield channels that are open to every package."""
        client = way.install.client
        given = way.install.settings or root
        if given.project is None or (client == "uv" and given.project.ignored):
            return  # uv takes no settings from the file: sources alone use its indexes
        declared = {one.name for one in root.declarations if one.scope != "build"}
        stale = sorted(declared & context.catalog.shadowed())
        first = not any(
            one.key == "uv.index-strategy" and one.value.startswith("unsafe-")
            for one in given.project.settings
        )
        for index in given.project.indexes:
            kind = kind_of_index(index, way)
            if not self.is_open(index, client, kind):
                continue
            text = f"every package may come from the {kind.channel} index, not only PyTorch's"
            if stale and first:
                text = f"{shorten(stale)} would be an old copy: {text}"
            told, source = _ORDER[client]
            yield self.finding(
                given,
                index.url_span,
                text,
                because=[Because(told, PUBLISHED, source), *copies(stale, context)],
            )

    def is_open(self, index: ProjectIndex, client: str, kind: IndexKind) -> bool:
        """True for a channel from which any package may come beside another index."""
        if index.tool not in (client, f"{client}-url") or index.scope or index.explicit:
            return False
        if kind.kind != "channel" or kind.project is not None or index.include:
            return False
        if client == "uv" and index.default:
            return False  # TP407: it replaces PyPI
        return index.option != "--find-links" and index.priority in _OPEN[client]


class SourceWithoutMarker(ProjectRule):
    """A source for GPUs that also applies to macOS.

    What it does: reports a source on a CUDA, ROCm or XPU channel that neither a marker nor an extra
    nor a group keeps from macOS.

    Why it is bad: these channels hold no wheel for macOS. uv locks the channel's build for every
    system all the same, and ``uv sync`` fails on a Mac.

    Example: ``torch = { index = "pytorch-cu126" }``

    Fix: ``marker = "sys_platform == 'linux'"`` in the source: PyPI's own wheel then serves macOS.

    Evidence: the lists of the channels. Information where the fleet has no Mac.
    """

    code = "TP406"
    name = "source-without-marker"
    severity = WARNING

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield unscoped GPU sources."""
        if not covers(project, MAC):
            return
        macs = [one for one in context.fleet.groups if one.platform.startswith("macos")]
        asking = [
            one
            for document in (root, *way.install.siblings)
            for one in document.declarations
            if one.scope != "build" and may_hold(one.marker, MAC)
        ]
        for source in project.sources:
            channel = channel_of(source, way)
            if channel is None or kind_of_label(channel) not in ("cuda", "rocm", "xpu"):
                continue
            if source.extra or source.group or source.package not in WATCHED:
                continue
            if not may_hold(source.marker, MAC):
                continue
            if not any(one.name == source.package for one in asking):
                continue
            held = context.catalog.find(source.package, channel=channel, platform="macos-arm64")
            if held:
                continue
            yield self.finding(
                root,
                source.span,
                f"{source.package} comes from {channel} on macOS too, "
                "which that channel has no wheels for",
                severity=INFO if context.declared and not macs else WARNING,
                package=source.package,
                because=(
                    Because("CUDA, ROCm and XPU builds exist for no Mac", PUBLISHED, UV_PYTORCH),
                ),
            )


class SettingWithoutEffect(ProjectRule):
    """A ``torch-backend`` where uv does not look at it.

    What it does: reports ``torch-backend`` in ``[tool.uv]`` or ``uv.toml`` of a project, and tells
    of one in ``[tool.uv.pip]`` beside a ``uv.lock``.

    Why it is bad: only ``uv pip`` (and ``uv tool``) know it. ``uv lock``, ``sync``, ``add`` and
    ``run`` pass over it without a word, and PyPI's build comes.

    Example: ``torch-backend = "cu126"`` under ``[tool.uv]``.

    Fix: an explicit index and ``[tool.uv.sources]``. Where these bring torch from that channel,
    nothing is told.

    Evidence: real uv: the lock is the same with and without it.
    """

    code = "TP408"
    name = "setting-without-effect"
    severity = WARNING

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield settings that lock and sync pass over."""
        for document, setting in backend_settings(root, way, context):
            pip = setting.key == "uv.pip.torch-backend"
            if way.install.lock is None if pip else comes_from(setting.value, way):
                continue
            text = "torch-backend has no effect on uv lock, sync, add and run"
            if pip:
                text = "torch-backend counts for uv pip alone, not for uv.lock"
            yield self.finding(
                document,
                setting.span,
                text,
                severity=INFO if pip else WARNING,
                because=(Because("the lock is the same with and without it", MEASURED, UV),),
            )


def comes_from(backend: str, way: Way) -> bool:
    """True if torch comes from the channel ``backend`` on each machine with a GPU all the same."""
    torches = [one.of("torch") for one in way.sets if one.target.group.gpus]
    builds = [one.selection.build for one in torches if one is not None]
    return bool(builds) and all(one is not None and one.channel == backend for one in builds)


def backend_settings(
    root: Document, way: Way, context: Context
) -> Iterator[tuple[Document, Setting]]:
    """Yield the ``torch-backend`` settings of a project, those of a ``uv.toml`` beside it too."""
    folder = root.path.replace("\\", "/").rpartition("/")[0]
    beside = [
        one
        for one in context.documents
        if one.kind == "uv.toml" and one.path.replace("\\", "/").rpartition("/")[0] == folder
    ]
    for document in (root, *beside):
        for setting in document.project.settings if document.project is not None else ():
            if setting.key in ("uv.torch-backend", "uv.pip.torch-backend"):
                yield document, setting


class BackendAutoUnsafe(ProjectRule):
    """``torch-backend = "auto"`` picks by the driver alone.

    What it does: works out which channel uv's ``auto`` takes on each group, by its driver, and
    judges the newest torch that the project admits there.

    Why it is bad: uv looks at the driver's version and not at the GPU: driver 580 gives cu132 on a
    GTX 1080 too, for which that channel has no kernels.

    Example: ``torch-backend = "auto"`` on a GTX 1080 Ti with driver 580. Of ``uv pip install
    --torch-backend auto`` in a command it is an information: the machine that runs it decides.

    Fix: name the backend: ``torch-backend = "cu126"``.

    Evidence: the order of backends of uv 0.13.9, tried with 28 drivers on Linux and Windows; the
    kernels of the wheel.
    """

    code = "TP413"
    name = "backend-auto-unsafe"
    severity = WARNING

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield ``auto`` where it picks what does not run."""
        places = [
            (document, one.span)
            for document, one in backend_settings(root, way, context)
            if one.value == "auto"
        ]
        asked = [
            one.specifier
            for one in root.declarations
            if one.name == "torch" and one.scope != "build" and one.url is None
        ]
        yield from self.tell(places, asked, context.fleet.targets(), context, WARNING)

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield what ``auto`` picks, in a setting of a project or as an option of a command.

        A command is only told of: it is the machine that runs it that decides.
        """
        yield from super().check(way, context)
        part = way.part
        if part is None or part.torch_backend != "auto":
            return
        span = span_of(part.backend) if part.backend else part.span
        asked = [
            placed.declaration.specifier
            for placed in (*way.install.requirements, *way.install.constraints)
            if placed.declaration.name == "torch" and placed.declaration.url is None
        ]
        targets = [one.target for one in way.sets]
        yield from self.tell([(part.document, span)], asked, targets, context, INFO)

    def tell(
        self,
        places: list[tuple[Document, Span]],
        asked: list[str],
        targets: Iterable[Target],
        context: Context,
        severity: str,
    ) -> Iterator[Finding]:
        """Yield a finding at each place for every target on which ``auto`` picks wrongly."""
        if not context.declared or not places:
            return
        for target in targets:
            build = picked_by_auto(target, asked, context)
            if build is None:
                continue
            bad = [
                reason
                for reason in judge(build, target, context.drivers).reasons
                if reason.status == FAILS and reason.question in ("kernels", "driver")
            ]
            if not bad:
                continue
            told = (
                f"holds no kernels for {gpu_names(bad)}"
                if bad[0].question == "kernels"
                else "needs a newer driver"
            )
            for document, span in places:
                yield self.finding(
                    document,
                    span,
                    f"auto looks at the driver alone: {target.group.driver} gives {build.channel}, "
                    f"and {build.title} {told}",
                    severity=severity,
                    package="torch",
                    target=target,
                    because=[
                        Because(
                            f"driver {target.group.driver} makes uv try {build.channel} first",
                            MEASURED,
                            UV,
                        ),
                        *(because(reason) for reason in bad),
                    ],
                )


def picked_by_auto(target: Target, specifiers: list[str], context: Context) -> Build | None:
    """Return the torch that uv's ``auto`` takes on a target: the newest of the first channel that
    holds an admitted version; None where that cannot be known."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    group = target.group
    if group.driver is None or not any(gpu.vendor == "nvidia" for gpu in group.gpus):
        return None
    try:
        admitted = SpecifierSet(",".join(one for one in specifiers if one))
    except InvalidSpecifier:
        return None
    tag = target.python.tag if target.python is not None else None
    for channel in backends(group.platform, group.driver):
        builds = [
            build
            for build in context.catalog.find("torch", channel=channel, platform=group.platform)
            if build.home == "channel"
            and build.evidence in PROOF
            and admitted.contains(build.version)
            and (tag is None or tag in (*build.pythons, *build.pythons_inferred))
        ]
        if builds:
            return builds[-1]
    return None


RULES = (IndexNotExplicit, SourceWithoutMarker, SettingWithoutEffect, BackendAutoUnsafe)
