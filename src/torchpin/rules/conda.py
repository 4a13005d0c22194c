"""TP8: what conda installs beside pip, or in its place."""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Document, Span, line_starts, position
from torchpin.documents.conda import COMPANIONS, TORCH, Conda, CondaSpec
from torchpin.evidence import PUBLISHED
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, ERROR, INFO, WARNING, Because, Finding, Fix, Related
from torchpin.rules.registry import Rule

ANNOUNCEMENT = "https://github.com/pytorch/pytorch/issues/138506"
PREVIOUS = "https://pytorch.org/get-started/previous-versions/"
PIP_SECTION = (
    "https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-environments.html"
)
LAST = {
    "pytorch": "2.5.1",
    "torchvision": "0.20.1",
    "torchaudio": "2.5.1",
    "torchtext": "0.18.0",
}
"""The last release of each package on the pytorch channel."""
CUDAS = ("11.6", "11.7", "11.8", "12.1", "12.4")
"""Every ``pytorch-cuda`` that the channel holds: of PyTorch 1.13 to 2.5."""
OTHERS = ("conda-forge", "defaults", "main", "anaconda", "pkgs/main")
"""Channels that hold a package ``pytorch`` of their own."""


class CondaChannelEnded(Rule):
    """PyTorch from the ``pytorch`` channel of conda, which gets no releases any more.

    What it does: reports specs of PyTorch that conda takes from the channel ``pytorch``: an error
    where the version, or the ``pytorch-cuda``, was never published there and no other channel is
    listed; else a warning for an open spec and information for a pinned one.

    Why it is bad: PyTorch 2.5 is the last release there. An environment with
    ``pytorch::pytorch=2.6`` cannot be solved; an open spec stays at 2.5.1 for ever, and a channel
    below may hand out another build, often one for CPUs.

    Example: ``channels: [pytorch, nvidia]`` and ``- pytorch=2.6``

    Fix: ``conda-forge`` holds ``pytorch`` for CPUs and CUDA; or take conda for Python alone and
    the wheels of PyTorch's own index in the ``pip:`` section.

    Evidence: the announcement of the maintainers (pytorch/pytorch issue 138506) and the list of
    previous versions.
    """

    code = "TP801"
    name = "conda-channel-ended"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield nothing: what conda installs is no way in of pip or uv."""
        yield from ()

    def check_document(self, document: Document, context: Context) -> Iterator[Finding]:
        """Yield the specs that come from the channel."""
        conda = document.conda
        if conda is None:
            return
        told = False
        for spec in conda.specs:
            if spec.name in LAST and source_of(spec, conda) == "pytorch":
                known = known_below(spec)
                if told and known is not False:
                    continue  # one word on the channel is enough
                told = True
                yield self.on(document, conda, spec, known)
            elif spec.name == "pytorch-cuda" and spec.version and known_cuda(spec) is False:
                yield self.finding(
                    document,
                    spec.span,
                    f"pytorch-cuda {shown(spec)} was never published: the pytorch channel of conda "
                    f"ended with {CUDAS[-1]}",
                    severity=ERROR,
                    because=(
                        Because(
                            f"pytorch-cuda was published for CUDA {', '.join(CUDAS)}",
                            PUBLISHED,
                            PREVIOUS,
                        ),
                    ),
                )._replace(fix=advice())

    def on(self, document: Document, conda: Conda, spec: CondaSpec, known: bool | None) -> Finding:
        """Return the finding on one spec."""
        last = LAST[spec.name]
        alone = bool(spec.channel) or not any(name in OTHERS for name, _ in conda.channels)
        if known is False and alone:
            severity = ERROR
            text = (
                f"the pytorch channel of conda ended with {spec.name} {last}: "
                f"it has no {spec.name} {shown(spec)}"
            )
        elif known is False:
            severity = WARNING
            text = (
                f"the pytorch channel of conda ended with {spec.name} {last}: "
                f"{shown(spec)} comes from another channel, if at all"
            )
        elif spec.version:
            severity = INFO
            text = f"the pytorch channel of conda ended with {spec.name} {last}"
        else:
            severity = WARNING
            text = f"the pytorch channel of conda ended: this stays at {spec.name} {last}"
        return self.finding(
            document,
            spec.span,
            text,
            severity=severity,
            package="torch" if spec.name == "pytorch" else spec.name,
            because=(
                Because(
                    "PyTorch 2.5 is the last release on the pytorch channel",
                    PUBLISHED,
                    ANNOUNCEMENT,
                ),
            ),
        )._replace(fix=advice())


class CondaAndPipTorch(Rule):
    """Both conda and pip install packages of the PyTorch family into one environment.

    What it does: reports torch or its companions in the ``pip:`` section of an environment whose
    conda part installs PyTorch or a companion, too.

    Why it is bad: pip runs after conda, with ``--upgrade``, and puts its wheels over conda's files:
    two builds with other CUDA libraries are mixed, gigabytes come twice, and the next
    ``conda update`` breaks what is there.

    Example: ``- pytorch=2.4`` and, below ``pip:``, ``- torchvision==0.19.0``

    Fix: take the whole family from one of the two.

    Evidence: the environment file, and conda's documentation.
    """

    code = "TP802"
    name = "conda-and-pip-torch"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield nothing: this is a matter of the whole file."""
        yield from ()

    def check_document(self, document: Document, context: Context) -> Iterator[Finding]:
        """Yield the family packages of the pip section beside a PyTorch of conda's."""
        conda = document.conda
        if conda is None or document.kind != "environment.yml":
            return  # Pixi takes what conda installs for what PyPI would
        mine = next((one for one in conda.specs if one.name in TORCH | COMPANIONS), None)
        if mine is None:
            return
        line = position(line_starts(document.text), mine.span.start).line
        for name, span in pip_family(document, context):
            yield self.finding(
                document,
                span,
                f"pip installs {name} over the {mine.name} that conda installs",
                package=name,
                because=(Because("pip runs after conda, on top of it", PUBLISHED, PIP_SECTION),),
                related=(Related(document.path, line, f"conda installs {mine.name}"),),
            )._replace(fix=Fix(DISPLAY, "take the whole family from conda, or all of it from pip"))


def pip_family(document: Document, context: Context) -> Iterator[tuple[str, Span]]:
    """Yield the packages of the family that the pip section asks for, once each, and where: in a
    file that it includes, at the include."""
    told: set[str] = set()
    for way in context.ways:
        if way.part is None or way.install.root.path != document.path:
            continue
        for placed in way.install.requirements:
            name = placed.declaration.name
            if name not in FAMILY or name in told:
                continue
            told.add(name)
            if placed.document is way.install.root:
                yield name, placed.declaration.span
            elif way.install.root.includes:
                yield name, way.install.root.includes[0].span


def source_of(spec: CondaSpec, conda: Conda) -> str:
    """Return the channel that a spec comes from: its own, else the first that holds PyTorch."""
    if spec.channel:
        return spec.channel
    for name, _ in conda.channels:
        if name == "pytorch" or name in OTHERS:
            return name
    return ""


def known_below(spec: CondaSpec) -> bool | None:
    """Tell whether a spec admits a version that the channel may hold: none newer than the last.

    None: it is not known.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    if not spec.version:
        return True
    try:
        wanted = SpecifierSet(spec.version)
    except InvalidSpecifier:
        return None
    last = Version(LAST[spec.name])
    for part in wanted:
        text = part.version.removesuffix(".*")
        bound = Version(text)
        lower = part.operator in ("==", "===", "~=", ">=", ">")
        if lower and bound.release[:3] > last.release[: len(bound.release[:3])]:
            return False
        if part.operator == ">" and bound >= last:
            return False
    return True


def known_cuda(spec: CondaSpec) -> bool:
    """Tell whether a spec of ``pytorch-cuda`` admits one that was published."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        wanted = SpecifierSet(spec.version)
    except InvalidSpecifier:
        return True
    return any(wanted.contains(version) for version in CUDAS)


def shown(spec: CondaSpec) -> str:
    """Return a version for people: ``2.6`` for ``==2.6.*``."""
    text = spec.version
    if text.startswith("==") and "," not in text:
        return text[2:].removesuffix(".*")
    return text


def advice() -> Fix:
    """Return what to do instead."""
    return Fix(
        DISPLAY,
        "take pytorch from conda-forge, or its wheels from PyTorch's index in the pip section",
    )


RULES = (CondaChannelEnded, CondaAndPipTorch)
