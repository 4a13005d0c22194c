"""Does the wheel fit the machine: platform, Python, C library, macOS version?"""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchpin.catalog.model import Build
from torchpin.evidence import INFERRED, PUBLISHED, weakest
from torchpin.fleet.model import NodeGroup, Python
from torchpin.judge.model import FAILS, RUNS, UNKNOWN, Reason

PACKAGING_GUIDE = "https://packaging.python.org/en/latest/specifications/"


def judge_platform(build: Build, group: NodeGroup) -> tuple[Reason, ...]:
    """Judge the wheel's platform, glibc or macOS floor against a node group."""
    subject = build.title
    if build.platform != group.platform:
        text = f"{subject} is a wheel for {build.platform}, the nodes are {group.platform}"
        return (Reason("platform", FAILS, text, PUBLISHED, build.source),)
    if group.musl and group.platform.startswith("linux"):
        return _musl(build, subject)
    if build.glibc is not None and group.glibc is not None:
        return (_floor("glibc", "glibc", build.glibc, group.glibc, build, subject),)
    if build.macos is not None and group.macos is not None:
        return (_floor("macos", "macOS", build.macos, group.macos, build, subject),)
    return ()


def _musl(build: Build, subject: str) -> tuple[Reason, ...]:
    if build.glibc is None and build.package != "torch":
        text = f"whether {subject} runs on musl is not known"
        return (Reason("platform", UNKNOWN, text, INFERRED, build.source),)
    text = f"{subject} needs glibc, the nodes have musl; no wheel of it is built for musl"
    return (
        Reason(
            "platform", FAILS, text, PUBLISHED, PACKAGING_GUIDE + "platform-compatibility-tags/"
        ),
    )


def _floor(question: str, word: str, need: str, have: str, build: Build, subject: str) -> Reason:
    needed, held = _numbers(need), _numbers(have)
    width = min(len(needed), len(held))
    if held >= needed or (question == "macos" and held[:width] == needed[:width]):
        text = f"{word} {have} of the nodes is enough for {subject} ({need} or newer)"
        return Reason(question, RUNS, text, build.evidence, build.source)
    text = f"{subject} needs {word} {need} or newer, the nodes have {have}"
    return Reason(question, FAILS, text, build.evidence, build.source)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def judge_python(build: Build, python: Python | None) -> tuple[Reason, ...]:
    """Judge the wheel's Python tags and Requires-Python. Nothing declared: no reasons.

    The tags of a PyPI build are all there are; those of a channel build are a lower bound, so that
    a missing one is unknown there. A tag that PyPI has for the same version is taken to exist.
    """
    if python is None:
        return ()
    subject = build.title
    if not _allowed(build.requires_python, python):
        text = f"{subject} requires Python {build.requires_python}, not {python}"
        return (Reason("python", FAILS, text, PUBLISHED, build.source),)
    if _has(build.pythons, python):
        text = f"{subject} has a wheel for Python {python}"
        return (Reason("python", RUNS, text, build.evidence, build.source),)
    if _has(build.pythons_inferred, python):
        text = f"{subject} is taken to have a wheel for Python {python}, as PyPI has"
        return (Reason("python", RUNS, text, INFERRED, build.source),)
    held = " ".join(build.pythons) or "no Python"
    if build.home == "pypi" and build.pythons:
        text = f"{subject} has no wheel for Python {python} ({python.tag}): {held}"
        evidence = weakest(build.evidence, PUBLISHED)
        return (Reason("python", FAILS, text, evidence, build.source),)
    text = (
        f"whether {subject} has a wheel for Python {python} ({python.tag}) is not known; "
        f"seen: {held}"
    )
    return (Reason("python", UNKNOWN, text, INFERRED, build.source),)


def _has(tags: tuple[str, ...], python: Python) -> bool:
    for tag in tags:
        if tag == python.tag or tag == "any":
            return True
        pure = re.fullmatch(r"(?:py2\.)?py3(\d*)(?:-none)?", tag)
        if pure and python.major == 3 and int(pure[1] or 0) <= python.minor:
            return True
        stable = re.fullmatch(r"cp3(\d+)-abi3", tag)
        if stable and not python.free_threaded and python.minor >= int(stable[1]):
            return True
    return False


def _allowed(specifier: str | None, python: Python) -> bool:
    """Whether some release of this Python satisfies Requires-Python; an unreadable one does."""
    if not specifier:
        return True
    try:
        allowed = SpecifierSet(specifier)
    except InvalidSpecifier:
        return True
    stem = f"{python.major}.{python.minor}"
    return any(allowed.contains(f"{stem}.{patch}") for patch in (0, 5, 99))
