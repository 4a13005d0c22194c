"""Whether the catalog in use is old: wheels appear that it does not know.

PyTorch makes a release about every two months, with patch releases between
(https://github.com/pytorch/pytorch/blob/main/RELEASE.md, *Release Cadence*); a catalog of three
months lacks one. A profile sets another limit: ``catalog-max-age = "30d"``, 0 or false for none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from torchpin.errors import UsageError
from torchpin.patterns import regex

DEFAULT_DAYS = 90
VARIABLE = "TORCHPIN_TODAY"
"""Names the day that counts as today (``2026-12-31``), for reports that can be made again."""
_DATE = regex(r"(\d{4})-(\d\d)-(\d\d)\Z")


def today(environ: Mapping[str, str]) -> str:
    """Return the current date in UTC, ISO; ``TORCHPIN_TODAY`` goes before the clock.

    Raises:
        UsageError: the variable holds no date.
    """
    told = environ.get(VARIABLE, "")
    if not told:
        return time.strftime("%Y-%m-%d", time.gmtime())
    if day_number(told) is None:
        raise UsageError(f"{VARIABLE} takes a date (2026-12-31), not {told!r}")
    return told


def day_number(date: str) -> int | None:
    """Return a number that grows by one a day (Gregorian calendar); None if it is no date.

    Without ``datetime``, whose import a check would feel.
    """
    match = _DATE.match(date)
    if match is None:
        return None
    year, month, day = map(int, match.groups())
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    if month <= 2:  # the year begins in March: the leap day is its last
        year, month = year - 1, month + 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day


def age(date: str, now: str) -> int | None:
    """Return the age of a catalog in days, None if one of the dates cannot be read."""
    then, current = day_number(date), day_number(now)
    return None if then is None or current is None else current - then


def is_stale(date: str, now: str, limit: int) -> bool:
    """Return whether a catalog is older than a limit in days; 0: there is no limit."""
    days = age(date, now)
    return limit > 0 and days is not None and days > limit


def sentence(date: str, now: str) -> str:
    """Return what to say of a stale catalog."""
    return (
        f"the catalog of {date} is {age(date, now)} days old: newer wheels are not known "
        "(update torchpin, or run `torchpin catalog refresh`)"
    )
