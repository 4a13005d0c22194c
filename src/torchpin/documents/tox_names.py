"""tox's names of environments: lists with braces, factors, conditions, and the Python they choose.

Source: https://tox.wiki/en/latest/config.html (generative environments, conditional settings).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from torchpin.patterns import regex

MOST = 500
"""Environments of one list; more are not told apart."""
SYSTEMS = ("linux", "darwin", "win32")
"""``sys.platform`` of the systems that torch has wheels for."""
_BRACES = regex(r"\{([^{}]*)\}")
_CONDITION = regex(r"(?P<when>[\w {},.!-]+?)\s*:\s+(?P<what>\S.*)\Z", re.DOTALL)
_PY = regex(r"(?:py|python|cpython)-?(?P<major>[23])\.?(?P<minor>\d+)?(?P<free>t)?")


def expand(text: str) -> list[str]:
    """Return what a list with braces stands for: ``py3{10,11}-{cpu,cu126}`` is four names."""
    found: list[str] = []
    for item in _split(text):
        stack = [item]
        while stack and len(found) < MOST:
            one = stack.pop()
            braces = _BRACES.search(one)
            if braces is None:
                if one.strip():
                    found.append(one.strip())
                continue
            stack += [
                one[: braces.start()] + choice + one[braces.end() :]
                for choice in reversed(_choices(braces[1]))
            ]
            if len(stack) > MOST:
                break
    return list(dict.fromkeys("".join(one.split()) for one in found))


def _choices(inside: str) -> list[str]:
    """Return the choices of one pair of braces; ``{3.9-3.11}`` is a range."""
    found: list[str] = []
    for part in inside.split(","):
        span = re.fullmatch(r"\s*(\d*\.?)(\d+)-(?:\d+\.)?(\d+)\s*", part)
        if span is None or int(span[3]) - int(span[2]) > 100:
            found.append(part.strip())
        else:
            found += [f"{span[1]}{n}" for n in range(int(span[2]), int(span[3]) + 1)]
    return found


def _split(text: str) -> list[str]:
    """Return the items of a list: by commas outside of braces, and by lines."""
    items, depth, current = [], 0, ""
    for char in text:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if (char == "," and depth <= 0) or (char == "\n" and depth <= 0):
            items.append(current)
            current = ""
        else:
            current += char
    return [*items, current]


def condition_of(line: str) -> tuple[str, int]:
    """Return the condition before a line of a setting and where the line itself begins.

    ``py311-cu126: torch==2.11.0`` has the condition ``py311-cu126``; ``("", 0)`` for none.
    """
    found = _CONDITION.match(line)
    if found is None or "://" in line[: found.end("when") + 3]:
        return "", 0
    return found["when"], found.start("what")


def holds(condition: str, name: str) -> bool:
    """Tell whether a condition holds for an environment: any of its parts, all factors of it."""
    factors = set(name.split("-"))
    for part in expand(condition):
        wanted = part.split("-")
        if part and all(
            (one[1:] not in factors) if one.startswith("!") else (one in factors) for one in wanted
        ):
            return True
    return False


def factors_of(condition: str) -> list[str]:
    """Return environments that the condition itself speaks of, without those that it excludes."""
    return [part for part in expand(condition) if part and "!" not in part]


def marker_of(pattern: str) -> str | None:
    """Return ``platform`` of an environment as a marker; None: it takes any system.

    tox matches it as a regular expression with ``sys.platform``; environments for another one are
    skipped. Source: https://tox.wiki/en/latest/config.html#platform.
    """
    pattern = pattern.strip()
    if not pattern or "{" in pattern or len(pattern) > 200:
        return None
    try:
        found = [one for one in SYSTEMS if re.match(pattern, one)]
    except (re.error, RecursionError):
        return None
    if len(found) == len(SYSTEMS):
        return None
    return " or ".join(f"sys_platform == '{one}'" for one in found or ["none of these"])


def python_of(name: str) -> str | None:
    """Return the Python that the name of an environment chooses, ``"3.11"`` or ``"3.14t"``; None:
    the default."""
    for factor in name.split("-"):
        found = _PY.fullmatch(factor)
        if found is not None and found["minor"]:
            return f"{found['major']}.{found['minor']}{found['free'] or ''}"
        version = re.fullmatch(r"3\.\d+t?", factor)
        if version is not None:
            return factor
    return None


def range_of(versions: Iterable[str]) -> str | None:
    """Return some minor versions of Python 3 as one version, or as a PEP 440 specifier; None if one
    of them is ``""`` (any)."""
    some = set(versions)
    minors = sorted({int(one.split(".")[1].rstrip("t")) for one in some if one.startswith("3.")})
    if not minors or "" in some:
        return None
    if len(minors) == 1:
        return f"3.{minors[0]}"
    holes = [n for n in range(minors[0], minors[-1]) if n not in minors]
    return f">=3.{minors[0]},<3.{minors[-1] + 1}" + "".join(f",!=3.{n}.*" for n in holes)


def joined_name(names: Sequence[str], prefix: str) -> str:
    """Return what a user calls a part that several environments share."""
    shown = ", ".join(names[:3])
    return f"{prefix}{shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
