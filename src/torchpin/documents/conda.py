"""What an environment file or a Pixi manifest asks of conda: channels, and specs of packages.

Source: conda's ``MatchSpec`` (https://docs.conda.io/projects/conda-build/en/stable/resources/
package-spec.html) and the environment file of ``conda env``. No solver: torchpin looks only at
what is written about PyTorch, Python and CUDA.
"""

from __future__ import annotations

import re

from torchpin.documents.base import Span
from torchpin.named import NamedTuple
from torchpin.patterns import regex

TORCH = frozenset(("pytorch", "pytorch-gpu", "pytorch-cpu", "libtorch"))
"""Conda packages that are torch itself (``pytorch-gpu`` and ``pytorch-cpu`` pull it in)."""
COMPANIONS = frozenset(("torchvision", "torchaudio", "torchtext"))
CUDA = frozenset(("pytorch-cuda", "cudatoolkit", "cuda-version", "cuda-toolkit", "cpuonly"))
_SPEC = regex(
    r"(?:(?P<channel>[^\s:\[\]=<>!~]+(?:/[^\s:]+)?)::)?"
    r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)"
    r"(?P<rest>.*)",
    re.DOTALL,
)
_BRACKET = regex(r"\[(?P<inside>[^\]]*)\]\s*\Z")
_FIELD = regex(r"\b(version|channel|build)\s*=\s*(['\"]?)(.*?)\2\s*(?=,|\Z)")
_SINGLE = regex(r"(?P<op>={0,2})\s*(?P<version>[0-9][0-9A-Za-z_.!+*]*)(?:[= ](?P<build>\S+))?")


class CondaSpec(NamedTuple):
    """One entry of ``dependencies``: ``pytorch::pytorch=2.4=py3.11_cuda12.1_cudnn9_0``."""

    name: str
    """In lower case."""
    version: str
    """As PEP 440 writes it: ``==2.4.*`` for conda's ``=2.4``, ``""`` for any."""
    build: str
    channel: str
    """``""`` where the entry names none."""
    span: Span
    """The entry, without quotes."""


class Conda(NamedTuple):
    """What conda installs in one environment."""

    channels: tuple[tuple[str, Span], ...]
    """In order of priority, as written."""
    specs: tuple[CondaSpec, ...]

    def of(self, name: str) -> CondaSpec | None:
        """Return the first entry for a package, None if there is none."""
        return next((spec for spec in self.specs if spec.name == name), None)


def parse_spec(text: str, span: Span) -> CondaSpec | None:
    """Return the spec in ``text``, None if it is none (a path, a URL, an empty entry)."""
    text = text.split("#", 1)[0].strip()
    found = _SPEC.fullmatch(text)
    if found is None or len(text) > 500:
        return None
    channel, rest = found["channel"] or "", found["rest"].strip()
    version = build = ""
    bracket = _BRACKET.search(rest)
    if bracket is not None:
        rest = rest[: bracket.start()].strip()
        for key, _, value in _FIELD.findall(bracket["inside"]):
            if key == "version":
                version = value.strip()
            elif key == "channel":
                channel = value.strip()
            else:
                build = value.strip()
    if rest and rest[0] not in "=<>!~0123456789":
        return None
    if rest:
        version = rest
    pinned, label = pep440(version)
    return CondaSpec(found["name"].lower(), pinned, label or build, channel_name(channel), span)


def pep440(version: str) -> tuple[str, str]:
    """Return conda's version (and build) in PEP 440's words: ``=2.4`` is ``==2.4.*``.

    ``""`` where it has no counterpart (``1.0|2.0``): it then says nothing.
    """
    version = version.strip()
    single = _SINGLE.fullmatch(version)
    if single is not None:
        number, build = single["version"].rstrip("."), single["build"] or ""
        if number.endswith("*"):
            number = number.rstrip("*").rstrip(".")
            return (f"=={number}.*", build) if _plain(number) else ("", build)
        if not _plain(number):
            return "", build
        exact = single["op"] == "==" or build or not single["op"]
        return (f"=={number}" if exact else f"=={number}.*"), build
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    parts = [_clause(part.strip()) for part in version.split(",")]
    if not version or "|" in version:
        return "", ""
    try:
        SpecifierSet(",".join(parts))
    except (InvalidSpecifier, ValueError):
        return "", ""
    return ",".join(parts), ""


def _clause(part: str) -> str:
    """Return one part of a list: ``>=2.1.*`` is conda for ``>=2.1``, ``2.1.*`` for ``==2.1.*``."""
    if part[:1] in "<>" and part.endswith(".*"):
        return part[:-2]
    if part[:1].isdigit():
        return f"=={part}"
    if part[:1] == "=" and part[1:2] != "=":
        return f"=={part[1:].strip()}" + ("" if part.endswith("*") else ".*")
    return part


def _plain(number: str) -> bool:
    from packaging.version import Version

    try:
        Version(number)
    except ValueError:  # or more digits than Python reads
        return False
    return True


def channel_name(channel: str) -> str:
    """Return the name of a channel: ``https://conda.anaconda.org/pytorch/linux-64`` is ``pytorch``.

    Labels are kept (``pytorch/label/nightly``); other hosts as they are written.
    """
    name = channel.strip().rstrip("/")
    for host in ("https://conda.anaconda.org/", "http://conda.anaconda.org/"):
        name = name.removeprefix(host)
    head, _, last = name.rpartition("/")
    known = last in ("noarch",) or last.split("-")[0] in ("linux", "osx", "win")
    return head if head and known else name


def python_of(conda: Conda) -> str | None:
    """Return the Python that conda installs: ``3.11``, or a specifier; None if it is not told."""
    spec = conda.of("python")
    if spec is None or not spec.version:
        return None
    exact = re.fullmatch(r"==(3\.\d+)(?:\.\d+)?(?:\.\*)?", spec.version)
    return exact[1] if exact is not None else spec.version
