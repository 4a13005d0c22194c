"""``exclude-newer``: which builds were uploaded before a date, as far as the catalog knows.

uv drops every *file* that was uploaded later, and all files of an index that tells no times.
The catalog knows the day on which the first file of a build was uploaded to PyPI. Files of one
release arrive within days (rebuilt ones within weeks), so near the date it cannot be known.
"""

from __future__ import annotations

import re

from torchpin.named import NamedTuple
from torchpin.patterns import regex

_DATE = regex(r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z|[+-].*)?)?")
_LATE = 14
"""Days in which the files of a release arrive."""


class Cutoff(NamedTuple):
    """A date that an upload must precede."""

    text: str
    """As written."""
    first: int | None
    """The earliest day that it can mean, as an ordinal; None: it depends on the day of the run."""
    last: int | None
    """The latest."""

    def admits(self, released: str | None) -> bool | None:
        """Return whether files of a build were uploaded before; None if that cannot be known."""
        day = _ordinal(released)
        if day is None or self.first is None or self.last is None:
            return None
        if day > self.last:
            return False
        return True if day + _LATE < self.first else None


def cutoff_of(text: str) -> Cutoff:
    """Return a date as uv reads it: a day in the zone of the machine, or a moment."""
    match = _DATE.fullmatch(text.strip())
    day = _ordinal(text.strip()[:10]) if match is not None else None
    if match is None or day is None:
        return Cutoff(text, None, None)
    # A day means its end in the zone of the machine; a moment may lie in another day in UTC.
    return Cutoff(text, day - 1, day + 1)


def _ordinal(text: str | None) -> int | None:
    """Return a day as a number of days."""
    if text is None or not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    from datetime import date

    try:
        return date.fromisoformat(text[:10]).toordinal()
    except ValueError:
        return None
