"""Poetry's version constraints in the words of PEP 440.

Rules as documented by Poetry under "Dependency specification": caret, tilde, wildcard,
inequality, exact and multiple requirements; a union (``||``) where PEP 440 can say it.
"""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from torchpin.named import NamedTuple
from torchpin.patterns import regex

_UNION = regex(r"[ \t]*\|\|?[ \t]*")
_CLAUSE = regex(
    r"[ \t]*,?[ \t]*(?P<op>\^|~=|~(?!=)|===|==|!=|<>|<=|>=|<|>|=)?[ \t]*"
    r"(?P<version>(?:\d{1,9}!)?[^\s,<>=!~^|]+)"
)
_LABELLED = regex(r"((?:\^|~=?|[<>]=?)[ \t]*[^\s,|+]+)\+[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*")
"""A bound with a local label: Poetry takes it (``^2.1.0+cpu`` admits no plain 2.1.0)."""
_WILD = regex(r"v?(?P<release>\d{1,9}(?:\.\d{1,9}){0,6})\.[xX*](?:\.[xX*])*")
_MAX = 400
_MAX_GAPS = 20


class Interval(NamedTuple):
    """Versions from ``low`` to ``high``, None for no bound; flags tell whether the bound belongs
    to it."""

    low: Version | None
    low_in: bool
    high: Version | None
    high_in: bool


def to_pep440(constraint: str) -> str | None:
    """Return a constraint of Poetry as a PEP 440 specifier, ``""`` for any version.

    None where PEP 440 cannot say it: a union with a gap that is no run of ``X.*``, a bound with a
    local label.

    Raises:
        ValueError: Poetry would refuse it.
    """
    plain = _LABELLED.sub(r"\1", constraint)
    if plain != constraint:
        to_alternatives(plain)  # Poetry refuses the rest of it, or nothing
        return None
    alternatives = to_alternatives(constraint)
    if len(alternatives) == 1:
        return alternatives[0]
    return _join(alternatives)


def to_alternatives(constraint: str) -> tuple[str, ...]:
    """Return the PEP 440 specifiers of which a constraint of Poetry wants one to hold.

    Raises:
        ValueError: Poetry would refuse it.
    """
    if len(constraint) > _MAX:
        raise ValueError("the constraint is too long")
    return tuple(
        dict.fromkeys(_conjunction(part.strip()) for part in _UNION.split(constraint.strip()))
    )


def _conjunction(text: str) -> str:
    clauses: list[str] = []
    at = 0
    text = text.rstrip(", \t")
    if not text:
        raise ValueError("the constraint is empty")
    while at < len(text):
        match = _CLAUSE.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:].strip()!r} is not understood")
        at = match.end()
        for clause in _clause(match["op"] or "", match["version"]):
            if clause not in clauses:
                clauses.append(clause)
    specifier = ",".join(clauses)
    try:
        SpecifierSet(specifier)
    except InvalidSpecifier as error:
        raise ValueError(f"{text!r} is no version constraint") from error
    return specifier


def _clause(operator: str, written: str) -> tuple[str, ...]:
    if written in ("*", "x", "X") and operator in ("", "=", "==", "^", "~", ">="):
        return ()
    wild = _WILD.fullmatch(written)
    if wild is not None:
        release = wild["release"]
        if operator in ("", "=", "=="):
            return (f"=={release}.*",)
        if operator in ("!=", "<>"):
            return (f"!={release}.*",)
        written = release
    if operator == "===":
        return (f"==={written}",)
    try:
        version = Version(written)
    except InvalidVersion as error:
        raise ValueError(f"{written!r} is no version") from error
    if operator in ("", "="):
        operator = "=="
    if operator == "<>":
        operator = "!="
    if operator == "^":
        return (f">={written}", f"<{_caret_end(version)}")
    if operator == "~":
        place = 0 if len(version.release) == 1 else 1
        return (f">={written}", f"<{_bump(version, place)}")
    return (f"{operator}{written}",)


def _caret_end(version: Version) -> str:
    """Return the first version that breaks: the left-most number that is not 0 goes up."""
    release = version.release
    for place, number in enumerate(release[:3]):
        if number or place == len(release) - 1 or place == 2:
            return _bump(version, place)
    raise AssertionError("a release has at least one number")


def _bump(version: Version, place: int) -> str:
    release = version.release
    bumped = [*release[:place], release[place] + 1, *(0 for _ in release[place + 1 :])]
    epoch = f"{version.epoch}!" if version.epoch else ""
    return epoch + ".".join(map(str, bumped))


def _join(alternatives: tuple[str, ...]) -> str | None:
    """Return one specifier for a union: its outer bounds without the gaps; None if none can."""
    if "" in alternatives:
        return ""
    intervals: list[Interval] = []
    for specifier in alternatives:
        interval = _interval(specifier)
        if interval is None:
            return None
        intervals.append(interval)
    zero = Version("0.dev0")
    intervals.sort(key=lambda one: (one.low or zero, not one.low_in))
    merged = intervals[0]
    gaps: list[str] = []
    for following in intervals[1:]:
        if merged.high is None:
            break
        low = following.low
        if low is not None and low > merged.high:
            if merged.high_in or not following.low_in:
                return None
            between = _gap(merged.high, low)
            if between is None:
                return None
            gaps += between
        elif low is not None and low == merged.high and not merged.high_in and not following.low_in:
            gaps.append(f"!={low}")
        high, inside = following.high, following.high_in
        if high is None or high > merged.high:
            merged = merged._replace(high=high, high_in=inside)
        elif high == merged.high:
            merged = merged._replace(high_in=merged.high_in or inside)
    clauses: list[str] = []
    if merged.low is not None:
        clauses.append(f"{'>=' if merged.low_in else '>'}{merged.low}")
    if merged.high is not None:
        clauses.append(f"{'<=' if merged.high_in else '<'}{merged.high}")
    return ",".join([*clauses, *gaps])


def _interval(specifier: str) -> Interval | None:
    """Return the one run of versions that a specifier without exclusions allows, else None."""
    found = Interval(None, False, None, False)
    for clause in specifier.split(","):
        match = re.fullmatch(r"(>=|<=|>|<|==|~=)(.+)", clause)
        if match is None:
            return None
        operator, written = match[1], match[2]
        wild = written.endswith(".*")
        version = Version(written[:-2] if wild else written)
        if version.local is not None or (operator == "~=" and len(version.release) < 2):
            return None
        if wild or operator == "~=":
            place = len(version.release) - (1 if wild else 2)
            end = Version(_bump(version, 0)) if place < 0 else _prefix_end(version, place)
            found = _narrow(found, version, True, end, False)
        elif operator == "==":
            found = _narrow(found, version, True, version, True)
        elif operator in (">=", ">"):
            found = _narrow(found, version, operator == ">=", None, False)
        else:
            found = _narrow(found, None, False, version, operator == "<=")
    return found


def _prefix_end(version: Version, place: int) -> Version:
    epoch = f"{version.epoch}!" if version.epoch else ""
    release = (*version.release[:place], version.release[place] + 1)
    return Version(epoch + ".".join(map(str, release)))


def _narrow(
    one: Interval, low: Version | None, low_in: bool, high: Version | None, high_in: bool
) -> Interval:
    if low is not None and (one.low is None or low > one.low or (low == one.low and not low_in)):
        one = one._replace(low=low, low_in=low_in)
    if high is not None and (
        one.high is None or high < one.high or (high == one.high and not high_in)
    ):
        one = one._replace(high=high, high_in=high_in)
    return one


def _gap(start: Version, end: Version) -> list[str] | None:
    """Return ``!=X.*`` clauses for exactly what lies from ``start`` (in) to ``end`` (out)."""
    if start.is_prerelease or end.is_prerelease or start.is_postrelease or end.is_postrelease:
        return None
    if start.epoch or end.epoch:
        return None
    width = max(len(start.release), len(end.release))
    at = [*start.release, *(0 for _ in range(width - len(start.release)))]
    stop = [*end.release, *(0 for _ in range(width - len(end.release)))]
    clauses: list[str] = []
    while at < stop:
        if len(clauses) >= _MAX_GAPS:
            return None
        for place in range(width):
            following = [*at[:place], at[place] + 1, *(0 for _ in range(width - place - 1))]
            if not any(at[place + 1 :]) and following <= stop:
                clauses.append("!=" + ".".join(map(str, at[: place + 1])) + ".*")
                at = following
                break
    return clauses


def python_marker(constraint: str) -> str:
    """Return the marker of a ``python = "…"`` constraint, ``""`` for any Python.

    Raises:
        ValueError: Poetry would refuse it.
    """
    alternatives = to_alternatives(constraint)
    if "" in alternatives:
        return ""
    texts = [
        " and ".join(_python_clause(clause) for clause in one.split(",")) for one in alternatives
    ]
    if len(texts) == 1:
        return texts[0]
    return " or ".join(f"({text})" if " and " in text else text for text in texts)


def _python_clause(clause: str) -> str:
    match = re.fullmatch(r"(===|==|~=|!=|>=|<=|>|<)(.+)", clause)
    assert match is not None
    operator, version = match[1], match[2]
    if version.endswith(".*"):
        if version.count(".") == 2:
            version = version[:-2]
        elif version.count(".") == 1:
            return f'python_version {operator} "{version}"'
    if operator in ("<", ">=") and version.count(".") == 2 and version.endswith(".0"):
        version = version[:-2]  # <3.12.0 and <3.12 draw the same line
    # ``python_version`` has no patch: for it 3.9.5 is not above 3.9, for Poetry it is.
    full = version.count(".") > 1 or operator in (">", "<=")
    variable = "python_full_version" if full else "python_version"
    return f'{variable} {operator} "{version}"'
