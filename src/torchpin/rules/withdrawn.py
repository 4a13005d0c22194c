"""TP1: releases that were withdrawn, and nightly builds that are no longer listed."""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Span
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.rules.context import Context, Judged, JudgedSet, Way
from torchpin.rules.exists import misses, narrow
from torchpin.rules.files import nightly_day
from torchpin.rules.model import ERROR, INFO, WARNING, Because, Finding
from torchpin.rules.registry import Rule


class YankedVersion(Rule):
    """A version that its maintainers withdrew.

    What it does: reports a pin on a yanked release.

    Why it is bad: pip installs a yanked release only for an exact pin, with a warning; it was
    withdrawn for a reason.

    Example: ``torchvision==0.15.0``, replaced by 0.15.1.

    Fix: the next patch release.

    Evidence: PyPI's own mark.
    """

    code = "TP107"
    name = "yanked-version"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield selected builds that are yanked, and misses for that reason."""
        for judged_set, one, miss in misses(way, context):
            if miss.kind == "yanked":
                yield self._yanked(way, context, judged_set, one, miss.message, ERROR)
        for judged_set, one in context.pairs(way):
            build = one.selection.build
            if build is not None and build.yanked:
                text = f"{build.package} {build.version} was withdrawn (yanked) by its maintainers"
                yield self._yanked(way, context, judged_set, one, text, WARNING)

    def _yanked(
        self,
        way: Way,
        context: Context,
        judged_set: JudgedSet,
        one: Judged,
        text: str,
        severity: str,
    ) -> Finding:
        document, span = judged_set.place(one.selection)
        return self.finding(
            document,
            narrow(document, span, one.selection),
            text,
            severity=context.severity(way, judged_set.target, severity),
            package=one.selection.package,
            target=judged_set.target,
            because=(Because("the release is marked as yanked", MEASURED, "PyPI"),),
        )


class ExpiredNightly(Rule):
    """A dated nightly build that is no longer listed.

    What it does: reports pins on ``.devYYYYMMDD`` versions that are older than about 60 days.

    Why it is bad: PyTorch removes old nightlies from the index; the install then stops.

    Example: ``torch==2.7.0.dev20250311+cu128``

    Fix: the stable release that followed.

    Evidence: PyTorch's index holds nightlies for about 60 days.
    """

    code = "TP108"
    name = "expired-nightly"
    severity = ERROR

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield dated pins; how old they are is counted from the catalog's date."""
        import datetime

        today = datetime.date.fromisoformat(context.catalog.date)
        for document in way.install.documents:
            for declaration in document.declarations:
                day = nightly_day(declaration.specifier)
                if day is None or declaration.name not in FAMILY:
                    continue
                try:
                    built = datetime.datetime.strptime(day, "%Y%m%d").date()
                except ValueError:
                    continue
                age = (today - built).days
                old = age > 60
                specifier = declaration.specifier_span or declaration.span
                gone = (
                    "is no longer listed" if old else f"leaves the index in about {60 - age} days"
                )
                yield self.finding(
                    document,
                    Span(declaration.span.start, specifier.end),
                    f"the {declaration.name} nightly of {built.isoformat()} {gone}",
                    severity=ERROR if old else INFO,
                    package=declaration.name,
                    because=(
                        Because(
                            "nightly builds are listed for about 60 days",
                            PUBLISHED,
                            "https://github.com/pytorch/test-infra/pull/4900",
                        ),
                    ),
                )


RULES = (YankedVersion, ExpiredNightly)
