"""TP5: what changes without anybody touching the file."""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.catalog.files import admits_python
from torchpin.catalog.model import FAMILY, Build
from torchpin.documents.pins import exact_version
from torchpin.evidence import LOCKFILE, PUBLISHED
from torchpin.judge.model import FAILS, Reason
from torchpin.rules.context import Context, Judged, JudgedSet, Way, because
from torchpin.rules.exists import IndexLostInExport
from torchpin.rules.files import slice_of
from torchpin.rules.hardware import (
    NoKernelImage,
    floats_badly,
    gpu_names,
    newest_that_runs,
)
from torchpin.rules.model import ERROR, INFO, WARNING, Because, Finding
from torchpin.rules.registry import Rule

PIP_HASHES = "https://pip.pypa.io/en/stable/topics/secure-installs/#hash-checking-mode"


class FloatingTorch(NoKernelImage):
    """An open pin, and what it picks today does not run on the fleet.

    What it does: reports unpinned or open requirements without a lock whose newest match holds no
    kernels for a GPU of the fleet, although an older match does.

    Why it is bad: the same file installed a working build yesterday; nothing warns.

    Example: ``torch`` on a Tesla V100: broken since 2.11.0.

    Fix: pin the newest version that runs, from the channel that holds it.

    Evidence: as for TP201.
    """

    code = "TP501"
    name = "floating-torch"

    def message(self, one: Judged, reasons: list[Reason]) -> str:
        """Say what floats in."""
        build = one.selection.build
        name = build.title if build else "torch"
        return f"this floats to {name}, which holds no kernels for {gpu_names(reasons)}"

    def grounds(
        self, way: Way, context: Context, judged_set: JudgedSet, reasons: list[Reason]
    ) -> list[Because]:
        """Add the newest release that the requirement admits and that runs."""
        grounds = super().grounds(way, context, judged_set, reasons)
        runs = newest_that_runs(way, context, judged_set, "torch", known=True)
        if runs is not None:
            pypi = all(index.kind.kind == "pypi" for index in way.install.indexes)
            where = "from PyPI alone" if pypi and runs.home == "pypi" else "from its indexes alone"
            text = f"{where}, {runs.title} is the newest that this admits and that runs there"
            known = runs.kernels.evidence if runs.kernels is not None else runs.evidence
            grounds.append(Because(text, known, runs.source))
        return grounds

    def wanted(self, way: Way, context: Context, judged_set: JudgedSet, one: Judged) -> bool:
        """Only floating pins."""
        return one.selection.package == "torch" and floats_badly(way, context, judged_set, one)


class OpenUpperBound(Rule):
    """Runs today, and a newer release is known to drop part of the fleet.

    What it does: tells where a requirement admits a newer torch that does not run on the group,
    and only the Python version (or the index) holds it back today.

    Why it is bad: the next Python upgrade brings a torch that does not run.

    Example: ``torch>=2.4`` on Python 3.10 with a Tesla V100 and the cu126 index.

    Fix: none is offered; in an application's own file an upper bound keeps it.

    Evidence: as for TP201.
    """

    code = "TP502"
    name = "open-upper-bound"
    severity = INFO

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield open requirements whose newest admitted release fails on the group."""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        from torchpin.judge.verdict import judge
        from torchpin.select.channels import channel_url, index_kind

        if not context.declared:
            return
        newest = context.catalog.newest("torch")
        for judged_set in way.sets:
            one = judged_set.of("torch")
            if one is None or one.selection.placed is None or one.selection.exact or one.fails:
                continue
            build = one.selection.build
            declaration = one.selection.placed.declaration
            try:
                admits = SpecifierSet(declaration.specifier).contains(newest)
            except InvalidSpecifier:
                continue
            if build is None or not admits or build.version == newest:
                continue
            kinds = [index.kind for index in judged_set.chosen.install.indexes]
            backend = judged_set.chosen.install.torch_backend
            if backend is not None:  # then torch comes from there alone
                kinds = [index_kind(channel_url(backend))]
            for candidate in context.catalog.find("torch", version=newest, platform=build.platform):
                offered = (
                    any(kind.kind == "pypi" for kind in kinds)
                    if candidate.home == "pypi"
                    else any(kind.channel == candidate.channel for kind in kinds)
                )
                if not offered:
                    continue
                verdict = judge(candidate, judged_set.target, context.drivers)
                bad = [
                    reason
                    for reason in verdict.reasons
                    if reason.question == "kernels" and reason.status == FAILS
                ]
                if not bad:
                    continue
                yield self.finding(
                    one.selection.placed.document,
                    declaration.span,
                    f"runs today, but admits {candidate.title}, "
                    f"which does not run on {gpu_names(bad)}",
                    package="torch",
                    target=judged_set.target,
                    because=[because(reason) for reason in bad],
                )


class InvalidLocalSpecifier(Rule):
    """A local label behind an operator that does not take one.

    What it does: reports ``>=2.4+cu121``, ``~=2.4+cu121`` and their like.

    Why it is bad: PEP 440 allows a label behind ``==`` and ``!=`` only; pip and uv refuse the line.

    Example: ``torch>=2.13.0+cpu``, as update bots write it.

    Fix: drop the label from the bound; the index decides the channel.

    Evidence: PEP 440, local version identifiers.
    """

    code = "TP506"
    name = "invalid-local-specifier"
    severity = ERROR

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield specifier problems with a local label in them."""
        for document in way.install.documents:
            for problem in document.problems:
                text = slice_of(document.text, problem.span)
                if problem.code != "specifier" or "+" not in text:
                    continue
                yield self.finding(
                    document,
                    problem.span,
                    f"{text.strip()}: a local label is allowed behind == and != only",
                    because=(
                        Because(
                            "local versions are not permitted with ordered comparisons",
                            PUBLISHED,
                            "https://packaging.python.org/en/latest/specifications/version-specifiers/",
                        ),
                    ),
                )


def pinned_build(one: Judged, judged_set: JudgedSet, context: Context) -> Build | None:
    """Return the one build that an exact pin means on the platform, hashes aside."""
    placed = one.selection.placed
    pin = exact_version(placed.declaration.specifier) if placed is not None else None
    if pin is None:
        return None
    platform = judged_set.target.group.platform
    channels = {index.kind.channel for index in judged_set.chosen.install.indexes}
    builds = [
        build
        for build in context.catalog.find(one.selection.package, version=pin[0], platform=platform)
        if build.label == pin[1] and (build.home == "pypi" or build.channel in channels)
    ]
    return builds[0] if len(builds) == 1 else None


class HashUnverifiable(Rule):
    """A digest that belongs to no known wheel of the pin, or is missing where one is needed.

    What it does: compares the ``--hash`` digests of a pin with the digests of the wheel that the
    target would install; in locks, reports wheels of torch and its companions without a digest. For
    pip, a requirement of the family without a digest where another requirement has one is an error:
    pip stops at it.

    Why it is bad: without a digest nobody notices that a file was replaced, and installs that
    require digests stop. With a wrong one pip stops with "THESE PACKAGES DO NOT MATCH THE HASHES".
    The usual cause is a digest copied from ``data-dist-info-metadata`` of an index page: it is the
    digest of the METADATA file, not of the wheel.

    Example: ``torch==2.11.0+cu128 --hash=sha256:…`` with a digest of another file.

    Fix: the digest of the wheel, from a download or a lock file.

    Evidence: digests in public lock files and on PyPI; a warning, since a wheel may have been
    uploaded again.
    """

    code = "TP508"
    name = "hash-unverifiable"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield pins none of whose digests is known for the selected wheel, and bare locks."""
        yield from self.bare(way, context)
        yield from self.missing(way, context)
        for judged_set, one in context.pairs(way):
            placed = one.selection.placed
            if placed is None or not placed.declaration.hashes:
                continue
            build = one.selection.build or pinned_build(one, judged_set, context)
            if build is None:
                continue
            given = {one.digest for one in placed.declaration.hashes if one.algorithm == "sha256"}
            python = judged_set.target.python
            place = build.channel if build.home == "channel" else None
            known = {
                digest: wheel
                for wheel, digest in context.catalog.hashes(
                    build.package, build.full_version, build.platform, place
                )
                if admits_python(wheel, python.tag if python is not None else None)
            }
            if not known or not given or given & set(known):
                continue
            yield self.finding(
                placed.document,
                placed.declaration.hashes[0].span,
                f"no digest given here is one of {build.title}"
                + (f" for Python {python}" if python is not None else ""),
                package=build.package,
                target=judged_set.target,
                because=[
                    Because(f"{wheel} has sha256:{digest}", LOCKFILE, "digests in the catalog")
                    for digest, wheel in sorted(known.items())[:2]
                ],
            )

    def missing(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield requirements without a digest where another one has one: pip stops at them."""
        if way.install.client != "pip":
            return
        install = way.install
        asks = any(o.name == "--require-hashes" for one in install.documents for o in one.options)
        hashed = next(
            (p for p in (*install.requirements, *install.constraints) if p.declaration.hashes), None
        )  # pip looks at no markers here
        if hashed is not None:
            cause = "a --hash anywhere"
            why = f"{hashed.declaration.name} has one: pip wants one for every requirement then"
        elif asks:
            cause = "the option"
            why = "--require-hashes makes pip want one for every requirement"
        else:
            return
        for judged_set, one in context.pairs(way):
            placed = one.selection.placed
            if placed is None or one.selection.status == "skipped":
                continue
            asked = placed.declaration
            if asked.hashes or asked.url is not None:
                continue
            yield self.finding(
                placed.document,
                asked.span,
                f"{asked.name} has no --hash, and {why}",
                severity=ERROR,
                package=asked.name,
                target=judged_set.target,
                because=[Because(f"{cause} makes pip check all", PUBLISHED, PIP_HASHES)],
            )

    def bare(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield locked packages of the family that have wheels without a digest."""
        document = way.install.lock
        if document is None or document.lock is None:
            return
        if way is not next(
            one
            for one in context.ways
            if one.install.lock is not None and one.install.lock.path == document.path
        ):
            return
        for package in document.lock.packages:
            bare = [one for one in package.wheels if one.hash is None]
            if not bare or package.name not in FAMILY:
                continue
            many = len(package.wheels)
            wheels = f"{len(bare)} of {many} wheels have" if many > 1 else "its wheel has"
            yield self.finding(
                document,
                package.version_span,
                f"{package.name} {package.version}: {wheels} no digest in the lock",
                package=package.name,
                because=(
                    Because(f"{bare[0].filename} stands without a digest", LOCKFILE, "the lock"),
                ),
            )


RULES = (FloatingTorch, OpenUpperBound, InvalidLocalSpecifier, IndexLostInExport, HashUnverifiable)
