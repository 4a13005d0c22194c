"""TP7: what commands install where something is installed already, and how a shell reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchpin.catalog.labels import cuda_of
from torchpin.catalog.model import WATCHED
from torchpin.documents.base import IMAGE, Edit, line_starts, position
from torchpin.documents.pins import same_version
from torchpin.evidence import INFERRED, PUBLISHED
from torchpin.rules.context import Context, Judged, JudgedSet, Way
from torchpin.rules.model import (
    DISPLAY,
    ERROR,
    INFO,
    UNSAFE,
    WARNING,
    Because,
    FileEdits,
    Finding,
    Fix,
    Related,
)
from torchpin.rules.registry import Rule

if TYPE_CHECKING:
    from torchpin.catalog.images import ImageFacts
    from torchpin.documents.parts import Part, Reserved

PIP_INSTALL = "https://pip.pypa.io/en/stable/cli/pip_install/#description"
EXTENSIONS = "https://docs.pytorch.org/docs/stable/cpp_extension.html"
ARG_AND_FROM = "https://docs.docker.com/reference/dockerfile/#understand-how-arg-and-from-interact"
COMPOSE_GPU = "https://docs.docker.com/compose/how-tos/gpu-support/"
REDIRECTIONS = "https://www.gnu.org/software/bash/manual/html_node/Redirections.html"


def installed(way: Way) -> Iterator[tuple[JudgedSet, Judged]]:
    """Yield, for each target, the torch that a part installs where one is there already."""
    if way.part is None or "torch" not in way.before:
        return
    for judged_set in way.sets:
        torch = judged_set.of("torch")
        if torch is not None and torch.selection.build is not None:
            yield judged_set, torch


def shown(judged: Judged) -> str:
    """Return a selected build as messages name it."""
    build = judged.selection.build
    assert build is not None
    if build.home == "pypi":
        return f"torch {build.full_version} (PyPI, {build.channel})"
    return f"torch {build.full_version}"


def reason(way: Way, judged_set: JudgedSet, torch: Judged) -> str:
    """Return why torch is installed at all: the words that ask for it."""
    selection = torch.selection
    if selection.placed is not None:
        declaration = selection.placed.declaration
        return f"{declaration.name}{declaration.specifier} asks for another version"
    by = judged_set.of(selection.implied_by or "")
    if by is not None and by.selection.build is not None:
        build = by.selection.build
        wanted = build.requires_torch or f"=={torch.selection.build.version}"  # type: ignore[union-attr]
        return f"{build.package} {build.version} requires torch{wanted}"
    return f"{selection.implied_by or 'another package'} requires it"


class ImageTorchReplaced(Rule):
    """A container installs torch over the torch of its base image.

    What it does: compares what ``pip`` or ``uv`` installs in a container with the torch that its
    image is made for: ``pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime``,
    ``nvcr.io/nvidia/pytorch:25.01-py3``.

    Why it is bad: the image carries gigabytes that nobody uses, and the other packages of the image
    were made for its own torch. NVIDIA's images hold NVIDIA's own build of torch, with libraries
    (Transformer Engine, Apex, flash-attention) that fit no other.

    Example: ``FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime`` and
    ``RUN pip install torch==2.6.0``.

    Fix: take the image of the version that is wanted, or leave torch out of what is installed.

    Evidence: the tag of the image; pip leaves a package alone only if the installed version meets
    every requirement.
    """

    code = "TP701"
    name = "image-torch-replaced"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield one finding for each part that installs torch over the image's."""
        part = way.part
        for judged_set, torch in installed(way):
            before = way.before["torch"]
            if part is None or before.placed is not None or part.image is None:
                continue
            facts = facts_of(part)
            own = f"{facts.vendor}'s own build of torch" if facts.vendor else "torch"
            held = f"{own} {before.version}" if before.version else own
            document, span = judged_set.place(torch.selection)
            line = position(line_starts(part.document.text), part.image.span.start).line
            yield self.finding(
                document,
                span,
                f"{way.install.client} puts {shown(torch)} in the place of {held} of the image",
                package="torch",
                target=judged_set.target,
                because=(
                    Because(f"{part.image.reference} holds {held}", PUBLISHED, facts.source),
                    Because(reason(way, judged_set, torch), PUBLISHED, PIP_INSTALL),
                ),
                related=(Related(part.document.path, line, "the image is named here"),),
            )._replace(
                fix=Fix(
                    DISPLAY,
                    "take an image of the version that is wanted, or leave torch to the image",
                )
            )


class EarlierTorchReplaced(Rule):
    """A later command installs another torch over that of an earlier one.

    What it does: follows the commands of one stage, script or target in order, and tells where one
    of them makes the installer take another torch than the one that was pinned before it.

    Why it is bad: the first torch, often chosen with care from a channel, is gone: what runs is
    another version or another CUDA.

    Example: ``pip install torch==2.11.0+cu126 --extra-index-url …/cu126`` and then
    ``pip install torchvision``, whose newest release requires the newest torch.

    Fix: install them in one command, or pin the second package to the release made for that torch.

    Evidence: the requirements of the packages; pip and uv install the newest release of a package
    that is not there, and then whatever it requires.
    """

    code = "TP702"
    name = "earlier-torch-replaced"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield one finding for each part that replaces a pinned torch."""
        for judged_set, torch in installed(way):
            before = way.before["torch"]
            build = torch.selection.build
            if before.placed is None or before.version is None or build is None:
                continue
            if same_version(before.version, build.version):
                continue
            earlier = before.placed
            line = position(line_starts(earlier.document.text), earlier.declaration.span.start).line
            document, span = judged_set.place(torch.selection)
            yield self.finding(
                document,
                span,
                f"this installs {shown(torch)} over torch {before.version} of an earlier command",
                package="torch",
                target=judged_set.target,
                because=(Because(reason(way, judged_set, torch), PUBLISHED, PIP_INSTALL),),
                related=(Related(earlier.document.path, line, "installed here"),),
            )._replace(
                fix=Fix(DISPLAY, "install both in one command, or pin what goes with that torch")
            )


class OtherToolkit(Rule):
    """The CUDA compiler of the image is of another major version than the wheel's CUDA.

    What it does: compares the toolkit of a ``-devel`` image with the CUDA that the torch wheel was
    built with. Wheels bring their own CUDA libraries, so that the image's do not matter to them:
    only who compiles an extension in the image is concerned.

    Why it is bad: ``torch.utils.cpp_extension`` stops where the major versions differ.

    Example: ``FROM nvidia/cuda:12.6.3-devel-ubuntu22.04`` and ``torch==2.15.0`` (CUDA 13).

    Fix: none is needed unless extensions are compiled; then take an image with the wheel's CUDA.

    Evidence: the tag of the image and the label of the wheel.
    """

    code = "TP703"
    name = "other-toolkit"
    severity = INFO

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield one finding for each part whose torch was built with another major version."""
        part = way.part
        if part is None or part.image is None:
            return
        facts = facts_of(part)
        if facts.cuda is None or not facts.compiler:
            return
        for judged_set in way.sets:
            torch = judged_set.of("torch")
            build = torch.selection.build if torch is not None else None
            if torch is None or build is None:
                continue
            cuda = cuda_of(build.channel)
            if cuda is None or cuda.split(".")[0] == facts.cuda.split(".")[0]:
                continue
            document, span = judged_set.place(torch.selection)
            yield self.finding(
                document,
                span,
                f"the image's nvcc is of CUDA {facts.cuda}, {shown(torch)} of {cuda}: it runs, "
                "but extensions do not compile here",
                package="torch",
                target=judged_set.target,
                because=(
                    Because(
                        f"{part.image.reference} holds CUDA {facts.cuda}", PUBLISHED, facts.source
                    ),
                    Because(
                        "torch.utils.cpp_extension asks for the same major version",
                        PUBLISHED,
                        EXTENSIONS,
                    ),
                ),
            )


class UnquotedSpecifier(Rule):
    """A requirement that the shell cuts in two: ``torch>=2.5`` without quotes.

    What it does: finds requirements whose ``>=`` the shell reads as a redirection, so that the
    installer sees the bare name and its output goes to a file named ``=2.5``.

    Why it is bad: the bound is not applied, any version comes, and nobody is told.

    Example: ``pip install torch>=2.5 torchvision``

    Fix: ``pip install "torch>=2.5" torchvision``.

    Evidence: the grammar of the shell.
    """

    code = "TP704"
    name = "unquoted-specifier"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield one finding for each such requirement of a package that is watched."""
        part = way.part
        if part is None:
            return
        text = part.document.text
        for slip in part.slips:
            written = text[slip.span.start : slip.span.end]
            name = written.partition(">")[0].partition("[")[0].lower().replace("_", "-")
            if name not in WATCHED or any(char in written for char in "'\"$`\\ \t\r\n"):
                continue
            edit = Edit(slip.span, f'"{written}"')
            yield self.finding(
                part.document,
                slip.span,
                slip.message,
                package=name,
                because=(Because("> redirects what a command prints", PUBLISHED, REDIRECTIONS),),
            )._replace(fix=Fix(UNSAFE, edit.text, (FileEdits(part.document, (edit,)),)))


RULES = (ImageTorchReplaced, EarlierTorchReplaced, OtherToolkit, UnquotedSpecifier)


def on_hardware(finding: Finding) -> bool:
    """True if a finding rests on what the fleet says of its machines."""
    return finding.code.startswith("TP2") or finding.code in ("TP104", "TP303", "TP501")


def facts_of(part: Part) -> ImageFacts:
    """Return what is known of a part's image; most runs see none, and do not import it."""
    from torchpin.select import parts

    return parts.facts_of(part)


def of_image(finding: Finding, part: Part) -> Finding:
    """Return a finding on the torch that an image brings, with what says that it does."""
    assert part.image is not None
    facts = facts_of(part)
    held = dict(facts.packages).get("torch")
    text = f"{part.image.reference} brings torch {held} for CUDA {facts.cuda}"
    ground = Because(text, PUBLISHED, facts.source)
    return finding._replace(because=(*finding.because, ground))


def in_a_job(part: Part) -> bool:
    """True for a part of a CI job whose Python is the fleet's for want of a better one."""
    job = part.runner is not None or part.elsewhere is not None
    return job and not part.python and facts_of(part).python is None


def beside_gpu(finding: Finding, gpu: Reserved) -> Finding:
    """Return a finding on a CPU build with what says that a GPU is there: not only information."""
    message = f"service {gpu.service}: {finding.message}"
    return finding._replace(
        message=message,
        severity=WARNING if finding.severity == INFO else finding.severity,
        because=(
            *(
                one._replace(text=message) if one.text == finding.message else one
                for one in finding.because
            ),
            Because(f"service {gpu.service} reserves a GPU ({gpu.words})", PUBLISHED, COMPOSE_GPU),
        ),
        related=(*finding.related, Related(gpu.path, gpu.line, "a GPU is reserved here")),
    )


def before_from(part: Part) -> Iterator[Because]:
    """Yield which arguments of a command stand before ``FROM`` alone: its stage does not see them.

    Source: https://docs.docker.com/reference/dockerfile/#understand-how-arg-and-from-interact.
    """
    import re

    from torchpin.documents.kinds import kind_of

    text = part.document.text
    first = re.search(r"(?im)^[ \t]*FROM\s", text)
    if first is None or kind_of(part.document.path) != "dockerfile":
        return
    written = text[part.span.start : part.span.end]
    for name in dict.fromkeys(re.findall(r"\$\{?([A-Za-z_]\w*)", written)):
        said = rf"(?im)^[ \t]*(?:ARG|ENV)\s[^\n]*\b{name}\b"
        if re.search(said, text[: first.start()]) and not re.search(said, text[first.end() :]):
            ground = f"ARG {name} stands before FROM: a stage sees it behind an ARG of its own only"
            yield Because(ground, PUBLISHED, ARG_AND_FROM)


def of_part(finding: Finding, part: Part) -> Finding:
    """Return a finding on a command with what the file itself adds to it.

    An error of a command that may not run as it reads is a warning that says so; what the Python
    or the C library decides names the image that brings it.
    """
    if part.cell:
        finding = finding._replace(cells=(part.cell,))
    if part.uncertain is not None and finding.severity == ERROR:
        ground = Because(f"not an error: {part.uncertain}", INFERRED, "")
        finding = finding._replace(severity=WARNING, because=(*finding.because, ground))
    if finding.code == "TP102" and finding.severity == ERROR and in_a_job(part):
        ground = Because("not an error: the file does not tell the Python of the job", INFERRED, "")
        finding = finding._replace(severity=WARNING, because=(*finding.because, ground))
    if finding.code == "TP003" and part.image is not None and part.command:
        finding = finding._replace(because=(*finding.because, *before_from(part)))
    if part.gpu is not None and finding.code == "TP205":
        finding = beside_gpu(finding, part.gpu)
    if part.without_gpu and finding.code == "TP205":
        finding = finding._replace(severity=INFO)
    if part.elsewhere is not None and finding.code in ("TP205", "TP207"):
        finding = finding._replace(severity=INFO)  # it tells for which hardware it is
    if part.elsewhere is not None and finding.severity == ERROR and on_hardware(finding):
        from torchpin.documents.parts import HOOK

        ground = Because(f"not an error: {part.elsewhere}", INFERRED, "")
        grave = INFO if part.elsewhere == HOOK else WARNING  # types and styles need no GPU
        finding = finding._replace(severity=grave, because=(*finding.because, ground))
    if part.image is not None and part.syntax == IMAGE:
        return of_image(finding, part)
    if finding.code not in ("TP102", "TP104") or part.image is None:
        return finding
    facts = facts_of(part)
    if finding.code == "TP102" and not (facts.python or part.python or part.pythons):
        text = (
            f"it is not known which Python {part.image.reference} has: that of the fleet is taken"
        )
        grave = WARNING if finding.severity == ERROR else finding.severity
        ground = Because(text, INFERRED, "")
        return finding._replace(severity=grave, because=(*finding.because, ground))
    text = ""
    if finding.code == "TP104" and (facts.musl or facts.glibc):
        text = "musl" if facts.musl else f"glibc {facts.glibc}"
    elif finding.code == "TP102" and facts.python and part.python is None:
        text = f"Python {facts.python}"
    if not text:
        return finding
    line = position(line_starts(part.document.text), part.image.span.start).line
    return finding._replace(
        because=(
            *finding.because,
            Because(f"{part.image.reference} has {text}", PUBLISHED, facts.source),
        ),
        related=(*finding.related, Related(part.document.path, line, "the image is named here")),
    )
