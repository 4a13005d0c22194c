"""TP3: the family does not fit together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import Build
from torchpin.documents.base import line_starts, position
from torchpin.documents.pins import exact_version
from torchpin.evidence import MEASURED, PROOF, PUBLISHED
from torchpin.judge.companions import says_nothing
from torchpin.judge.model import FAILS, PARTLY, Reason
from torchpin.rules.context import Context, Judged, JudgedSet, Way, because
from torchpin.rules.exists import narrow, partner_of
from torchpin.rules.lock_stops import (
    NO_SOLUTION,
    first_line,
    hidden,
    is_stopped,
    missing_elsewhere,
    ways_of,
)
from torchpin.rules.model import DISPLAY, ERROR, WARNING, Because, Finding, Fix, Related
from torchpin.rules.registry import Rule

VERSION = "companion-version"
CUDA = "companion-cuda"


def misfits(way: Way, context: Context) -> Iterator[tuple[JudgedSet, Judged, Judged, list[Reason]]]:
    """Yield companions that do not fit the selected torch: set, companion, torch, reasons."""
    for judged_set in way.sets:
        torch = judged_set.torch
        if torch is None:
            continue
        for one in judged_set.judged:
            bad = [reason for reason in one.beside_torch if reason.status in (FAILS, PARTLY)]
            if bad:
                yield judged_set, one, torch, bad


def requirement_of(companion: Build) -> str:
    """Return what a companion asks of torch, as its METADATA says it."""
    return f"{companion.package} {companion.version} requires torch{companion.requires_torch}"


def floats(one: Judged, torch: Judged) -> bool:
    """True if torch is fixed and the companion is not."""
    return torch.selection.exact and not one.selection.exact


class MisfitRule(Rule):
    """Base of the rules about a companion beside torch."""

    question: str

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield companions for which the rule's question is answered badly."""
        for judged_set, one, torch, bad in misfits(way, context):
            reasons = [reason for reason in bad if reason.question == self.question]
            if not reasons or floats(one, torch):
                continue
            if not self.overruled(bad):
                yield self.misfit(way, context, judged_set, one, torch, reasons)

    def overruled(self, bad: list[Reason]) -> bool:
        """True if another rule already speaks of the same fault."""
        return False

    def message(self, one: Judged, torch: Judged, bad: list[Reason]) -> str:
        """Return the one sentence of the finding."""
        return bad[0].text

    def misfit(
        self,
        way: Way,
        context: Context,
        judged_set: JudgedSet,
        one: Judged,
        torch: Judged,
        bad: list[Reason],
    ) -> Finding:
        """Return the finding for one companion."""
        document, span = judged_set.place(one.selection)
        proved = any(reason.status == FAILS and reason.evidence in PROOF for reason in bad)
        severity = self.severity if proved else WARNING
        found = self.finding(
            document,
            narrow(document, span, one.selection),
            self.message(one, torch, bad),
            severity=context.severity(way, judged_set.target, severity),
            package=one.selection.package,
            target=judged_set.target,
            because=self.grounds(context, one, torch, bad),
        )
        if torch is not judged_set.earlier:
            return found
        where, at = judged_set.place(torch.selection)
        line = position(line_starts(where.text), at.start).line
        advice = f"install {one.selection.package} in one command with torch, from the same index"
        related = (Related(where.path, line, "torch is installed here"),)
        return found._replace(fix=Fix(DISPLAY, advice), related=related)

    def grounds(
        self, context: Context, one: Judged, torch: Judged, bad: list[Reason]
    ) -> list[Because]:
        """Return the grounds of the finding."""
        return [because(reason) for reason in bad]


class CompanionMismatch(MisfitRule):
    """A companion that does not accept this torch.

    What it does: compares the companion's own requirement on torch with the torch of the install.

    Why it is bad: the install stops with a conflict, or the import fails on a missing operator.

    Example: ``torch==2.14.0`` beside ``torchvision==0.19.0``, which requires ``torch==2.4.0``.

    Fix: the companion that was made for this torch.

    Evidence: Requires-Dist in the companion's METADATA; for torchcodec, torchao and wheels of old
    torchvision that ask for any torch, the tables of versions that their projects publish.
    """

    code = "TP301"
    name = "companion-mismatch"
    severity = ERROR
    question = VERSION

    def message(self, one: Judged, torch: Judged, bad: list[Reason]) -> str:
        """Name the versions; from which channel they come does not matter here."""
        companion, build = one.build, torch.build
        if companion is None or build is None or says_nothing(companion):
            return bad[0].text
        return f"{requirement_of(companion)}, not {build.version}"

    def grounds(
        self, context: Context, one: Judged, torch: Judged, bad: list[Reason]
    ) -> list[Because]:
        """Name the requirement, and what would fit."""
        companion, build = one.build, torch.build
        if companion is None or build is None:
            return super().grounds(context, one, torch, bad)
        if says_nothing(companion):
            grounds = super().grounds(context, one, torch, bad)
            return grounds + partner_of(context, build.version, companion.package)
        grounds = [
            Because(requirement_of(companion), reason.evidence, reason.source) for reason in bad
        ]
        return grounds + partner_of(context, build.version, companion.package)

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield mismatches, pins that belong elsewhere, and conflicts nobody else explains."""
        yield from super().check(way, context)
        for judged_set in way.sets:
            elsewhere = list(self._pinned_elsewhere(way, context, judged_set))
            yield from elsewhere
            if judged_set.chosen.conflict is None:
                continue
            explained = any(
                reason.question == VERSION and reason.status == FAILS
                for one in judged_set.judged
                for reason in one.beside_torch
            )
            torch = judged_set.of("torch")
            missing = any(one.selection.status == "none" for one in judged_set.judged)
            if is_stopped(way, judged_set):
                if not elsewhere:
                    yield from self._no_solution(way, context, judged_set)
                continue
            if explained or missing or torch is None:
                continue
            grounds, asking = self._asking(judged_set)
            if not grounds:
                continue  # what the companion requires is not known
            document, span = judged_set.place((asking or torch).selection)
            yield self.finding(
                document,
                narrow(document, span, (asking or torch).selection),
                judged_set.chosen.conflict,
                severity=context.severity(way, judged_set.target, ERROR),
                package=(asking or torch).selection.package,
                target=judged_set.target,
                because=grounds,
            )

    def _no_solution(self, way: Way, context: Context, judged_set: JudgedSet) -> Iterator[Finding]:
        """Yield versions of a project that exclude each other, so that uv finds no lock."""
        conflict = judged_set.chosen.conflict or ""
        if not conflict.startswith(NO_SOLUTION):
            return  # TP001, TP409
        gone = [
            one
            for other in ways_of(way.install.root, context)
            for each in other.sets
            for one in each.judged
            if one.selection.status == "none"
        ]
        if gone or any(True for _ in missing_elsewhere(way, context)):
            return  # TP1
        names = re.findall(r"(?:for|and) ([a-z][\w-]*)", conflict)
        declared = {
            one.name: one for one in reversed(way.install.root.declarations) if one.name in names
        }
        named = [name for name in names if name in declared]
        at = next((name for name in named if name != "torch"), named[0] if named else None)
        span = declared[at].span if at is not None else first_line(way.install.root)
        yield self.finding(
            way.install.root,
            span,
            f"uv lock stops: {hidden(conflict)}",
            package=at or "torch",
            target=judged_set.target,
            because=(
                Because(
                    "no versions that the project admits accept each other",
                    MEASURED,
                    "METADATA of the wheels",
                ),
            ),
        )

    def _asking(self, judged_set: JudgedSet) -> tuple[list[Because], Judged | None]:
        """Return what the packages that are named in a conflict require of torch, and the first."""
        conflict = judged_set.chosen.conflict or ""
        grounds: list[Because] = []
        asking: Judged | None = None
        for one in judged_set.judged:
            build = one.selection.build
            if build is None or not build.requires_torch or build.evidence not in PROOF:
                continue
            if not re.search(rf"(^| ){re.escape(build.package)}\b", conflict):
                continue
            grounds.append(Because(requirement_of(build), build.evidence, build.source))
            asking = asking or one
        for placed in judged_set.chosen.install.requirements:
            name, specifier = placed.declaration.name, placed.declaration.specifier
            if name and not grounds and conflict.startswith(f"{name}=="):
                told = conflict.split(", but ")[0]
                grounds.append(Because(told, PUBLISHED, f"METADATA of {name} {specifier[2:]}"))
        return grounds, asking

    def _pinned_elsewhere(
        self, way: Way, context: Context, judged_set: JudgedSet
    ) -> Iterator[Finding]:
        """Yield companions whose pin belongs to another torch, where a build is missing.

        The build that is asked for may not exist at all (TP106); that the numbers do not belong
        together is worth saying all the same.
        """
        from packaging.specifiers import SpecifierSet

        torch = judged_set.of("torch")
        asked = exact_public(torch)
        if torch is None or asked is None:
            return
        for one in judged_set.judged:
            if one is torch or (one.selection.build and torch.selection.build):
                continue
            pin = pin_of(one)
            if pin is None or (pin[1] and kind_of_label(pin[1]) is None):
                continue  # no pin, or a vendor's own build
            version = pin[0]
            for build in context.catalog.find(one.selection.package, version=version):
                if build.evidence not in PROOF or not build.requires_torch:
                    continue
                # Each build names its own label; the number is what counts here.
                numbers = re.sub(r"\+[A-Za-z0-9.]+", "", build.requires_torch)
                if SpecifierSet(numbers).contains(asked, prereleases=True):
                    break
                text = requirement_of(build)
                grounds = [Because(text, build.evidence, build.source)]
                grounds += partner_of(context, asked, one.selection.package)
                document, span = judged_set.place(one.selection)
                yield self.finding(
                    document,
                    narrow(document, span, one.selection),
                    f"{text}, not {asked}",
                    severity=context.severity(way, judged_set.target, ERROR),
                    package=one.selection.package,
                    target=judged_set.target,
                    because=grounds,
                )
                break


def exact_public(one: Judged | None) -> str | None:
    """Return the public version that the declaration pins exactly, without its label."""
    pin = pin_of(one)
    return pin[0] if pin else None


def pin_of(one: Judged | None) -> tuple[str, str] | None:
    """Return version and label of the pin that holds on the target; None if there is none."""
    if one is None or one.selection.placed is None or one.selection.status == "skipped":
        return None
    return exact_version(one.selection.placed.declaration.specifier)


class MixedChannels(MisfitRule):
    """The family comes from channels whose CUDA does not agree.

    What it does: compares the CUDA version of torch and of each companion.

    Why it is bad: the companion refuses to import ("compiled with different CUDA versions"), or an
    operator is missing. No metadata guards this: labels are not part of the requirement.

    Example: ``torch==2.6.0+cu124`` beside ``torchvision==0.21.0+cpu``.

    Fix: one channel for all.

    Evidence: the companions' own import-time checks.
    """

    code = "TP302"
    name = "mixed-channels"
    severity = ERROR
    question = CUDA

    def overruled(self, bad: list[Reason]) -> bool:
        """Leave a companion of another version to TP301."""
        return any(reason.question == VERSION and reason.status == FAILS for reason in bad)

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield misfits of selected builds, and labels that disagree already in the file."""
        yield from super().check(way, context)
        said: set[str] = set()
        for judged_set in way.sets:
            torch = judged_set.of("torch")
            label = pinned_label(torch)
            if torch is None or label is None:
                continue
            for one in judged_set.judged:
                other = pinned_label(one)
                text = f"{one.selection.package} is pinned to +{other}, torch to +{label}"
                if one is torch or other is None or other == label or text in said:
                    continue
                if one.selection.build and torch.selection.build:
                    continue  # the judges have spoken
                said.add(text)
                document, span = judged_set.place(one.selection)
                yield self.finding(
                    document,
                    narrow(document, span, one.selection),
                    text,
                    severity=WARNING,
                    package=one.selection.package,
                    target=judged_set.target,
                    because=(
                        Because(
                            "the family is built for one CUDA version at a time",
                            PUBLISHED,
                            "https://pytorch.org/get-started/previous-versions/",
                        ),
                    ),
                )


def pinned_label(one: Judged | None) -> str | None:
    """Return the channel that the declaration pins by its label; None for vendors' labels."""
    pin = pin_of(one)
    return pin[1] if pin and kind_of_label(pin[1]) is not None else None


class CompanionFloats(MisfitRule):
    """torch is fixed, a companion is not, and what floats in does not fit.

    What it does: works out which companion the installer takes beside a pinned torch.

    Why it is bad: torchaudio 2.11.0 declares no torch requirement, so every resolver pairs it with
    any older torch; its import then fails.

    Example: ``torch==2.10.0`` beside bare ``torchaudio``.

    Fix: pin the companion that was made for this torch.

    Evidence: METADATA of the wheels; torchaudio's own import-time check.
    """

    code = "TP306"
    name = "companion-floats"
    severity = ERROR

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield unpinned companions that do not fit the pinned torch."""
        for judged_set, one, torch, bad in misfits(way, context):
            if floats(one, torch):
                yield self.misfit(way, context, judged_set, one, torch, bad)

    def message(self, one: Judged, torch: Judged, bad: list[Reason]) -> str:
        """Say what floats in."""
        if one.build is None or torch.build is None:
            return bad[0].text
        return f"this floats to {one.build.title}, which does not fit {torch.build.title}"


RULES = (CompanionMismatch, MixedChannels, CompanionFloats)
