"""One requirement as pip takes it: its parts with offsets, and why pip would refuse it.

This finds *where* things stand. What a version, a specifier or a marker *means* is left to
``packaging``; the patterns here only wave through the plain forms, so that a file with hundreds
of requirements costs no hundreds of parses.
"""

from __future__ import annotations

import re

from torchpin.documents.lines import VARIABLE
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_NAME = regex(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_EXTRAS = regex(r"[ \t]*\[([^\[\]]*)\]")
_BLANK = regex(r"[ \t]*")
_SEPARATORS = regex(r"[-_.]+")
_URL = regex(r"(?:https?|file|ftp|s?ftp|ssh|lp|(?:git|hg|bzr|svn)(?:\+[a-z]+)?):", re.IGNORECASE)
"""What pip takes for a URL: the schemes of the web and of its version control systems."""
_ARCHIVES = (
    *(".zip", ".whl", ".tar.bz2", ".tbz", ".tar.gz", ".tgz", ".tar"),
    *(".tar.xz", ".txz", ".tlz", ".tar.lz", ".tar.lzma"),
)
_WHEEL = regex(
    r"([A-Za-z0-9._]+)-(v?[0-9][A-Za-z0-9._+!]*)(?:-[0-9][^-/\\]*)?"
    r"-[A-Za-z0-9._]+-[A-Za-z0-9._]+-[A-Za-z0-9._]+\.whl"
)
_EGG = regex(r"[#&]egg=([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[([^\]&]*)\])?")
_PLAIN_CLAUSE = (
    r"(?:(?:[=!]=|~=|[<>]=?)[ \t]*[0-9]{1,18}(?:\.[0-9]{1,18})+"
    r"(?:(?:a|b|rc|\.post|\.dev)[0-9]{1,9})?"
    r"|[=!]=[ \t]*[0-9]{1,18}(?:\.[0-9]{1,18})*(?:\.\*|\+[a-z0-9]{1,60}(?:\.[a-z0-9]{1,60})*)?"
    r"|[<>]=?[ \t]*[0-9]{1,18})"
)
_PLAIN = regex(_PLAIN_CLAUSE)
_ENDLESS = regex(r"[0-9]{1000}")
"""Numbers that Python itself refuses to read (over 4,300 digits), long before any sense ends."""
_OPERATOR = regex(r"[<>=!~]")
_NEXT = regex(r"(?<=[^ \t,=<>!~(@;])[ \t]+(?=[A-Za-z][A-Za-z0-9._-]*[ \t]*(?:[\[=<>!~@;]|$))")
"""Where a second requirement begins on a line: ``torch==2.1 torchvision==0.16``."""
_MARKER_TOKEN = regex(
    r"[ \t]*(?:"
    r"(?P<v>(?:python_version|python_full_version|os_name|sys_platform|platform_release"
    r"|platform_system|platform_version|platform_machine|platform_python_implementation"
    r"|implementation_name|implementation_version|extra)\b)"
    r"|(?P<l>'[^'\n]*'|\"[^\"\n]*\")"
    r"|(?P<b>(?:and|or)\b)"
    r"|(?P<o>===?|[<>]=?|!=|~=|(?:not[ \t]+)?in\b)"
    r"|(?P<p>[()]))"
)
_MARKER_ATOM = regex("vol|lov|vov")
_MARKER_SHAPE = regex(r"\(*a\)*(?:b\(*a\)*)*")
_MAX_DEPTH = 40
_MAX_LENGTH = 20_000


class Part(NamedTuple):
    """A requirement in a piece of text; all offsets count in that text, -1 where there is none."""

    name: str
    extras: tuple[str, ...]
    specifier: str
    url: str | None
    marker: str | None
    start: int
    end: int
    name_start: int
    name_end: int
    specifier_start: int
    specifier_end: int
    url_start: int
    url_end: int
    marker_start: int
    marker_end: int
    problem: str = ""
    """Why pip refuses it, ``""`` if it does not."""
    code: str = ""


def canonical(name: str) -> str:
    """Return the PEP 503 form of a project name."""
    return _SEPARATORS.sub("-", name).lower()


def wheel_parts(url: str) -> tuple[str, str] | None:
    """Return (canonical name, version as written) of the wheel that a URL or path points to.

    Percent-encoding is undone; None if it does not point to a wheel file.
    """
    path = url.partition("#")[0].partition("?")[0]
    file = path[max(path.rfind("/"), path.rfind("\\")) + 1 :]
    if "%" in file:
        file = re.sub(r"%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), file)
    match = _WHEEL.fullmatch(file)
    return (canonical(match[1]), match[2].replace("_", "-")) if match is not None else None


def parse_parts(text: str, start: int, end: int, *, editable: bool = False) -> list[Part]:
    """Read the requirement in ``text[start:end]``, or the several that someone wrote there.

    Returns one part, or several where pip would refuse the line; none if nothing is there that
    looks like a requirement.
    """
    parts: list[Part] = []
    start, end = _trim(text, start, end)
    quoted = not editable and text[start : start + 1] in ("'", '"') and start < end
    while quoted and start < end and text[start] in "'\"":
        start += 1
    while quoted and start < end and text[end - 1] in "'\"":
        end -= 1
    start, end = _trim(text, start, end)
    while start < end:
        part = _parse_one(text, start, end, editable)
        if part is None:
            return parts
        parts.append(part)
        if part.end >= end:
            break
        start, end = _trim(text, part.end, end)
    if quoted:
        return [_refuse(part, "quotes do not belong in a requirements file") for part in parts]
    if len(parts) > 1:
        parts = [
            _refuse(part, "one line holds several requirements; pip takes one a line")
            for part in parts
        ]
    return parts


def _refuse(part: Part, problem: str, code: str = "syntax") -> Part:
    return part if part.problem else part._replace(problem=problem, code=code)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _parse_one(text: str, start: int, end: int, editable: bool) -> Part | None:
    url = _URL.match(text, start, end)
    if url is not None:
        semicolon = text.find("; ", start, end)
        part = _direct(text, start, start, end, semicolon)
        if part is not None and editable and not part.problem:
            problem = _editable_problem(part, url[0].lower())
            return _refuse(part, problem) if problem else part
        return part
    semicolon = text.find(";", start, end)
    stop = semicolon if semicolon >= 0 else end
    if _is_path(text, start, stop, editable):
        return _direct(text, start, start, end, semicolon)
    match = _NAME.match(text, start, end)
    if match is None:
        return None
    at = match.end()
    extras: tuple[str, ...] = ()
    problem = code = ""
    bracket = _EXTRAS.match(text, at, end)
    if bracket is not None:
        at = bracket.end()
        extras, good = _extras(bracket[1])
        if not good:
            problem, code = f"{bracket[0].strip()} is no list of extras", "syntax"
    blank = _BLANK.match(text, at, end)
    assert blank is not None
    at = blank.end()
    if text[at : at + 1] == "@" and at < end:
        part = _direct(text, start, at + 1, end, semicolon)
        if part is None:
            return None
        return part._replace(
            name=canonical(match[0]), extras=extras, start=start, name_start=start,
            name_end=match.end(), problem=problem or part.problem, code=code or part.code,
        )  # fmt: skip
    begin, finish = at, _trim(text, at, stop)[1]
    if begin < finish:
        following = _NEXT.search(text, max(begin - 1, start), finish)
        if following is not None and following.end() > begin:
            semicolon, finish, stop = -1, following.start(), following.start()
            end = stop
        elif following is not None:  # ``torch torchvision``: a name and nothing else
            name_end = match.end() if bracket is None else bracket.end()
            return _part(text, match, extras, problem, code, (-1, -1), -1, name_end)
    spec = (-1, -1)
    if begin < finish:
        if text[begin] == "(" and text[finish - 1] == ")":
            begin, finish = begin + 1, finish - 1
            while begin < finish and text[begin] in " \t":
                begin += 1
            while begin < finish and text[finish - 1] in " \t":
                finish -= 1
        if begin < finish:
            if not problem:
                problem, code = _check_specifier(text[begin:finish])
            # What nobody can compute with is no specifier: the line then asks for nothing known.
            spec = (begin, finish) if _within_reason(text[begin:finish]) else (-1, -1)
    return _part(text, match, extras, problem, code, spec, semicolon, end)


def _editable_problem(part: Part, scheme: str) -> str:
    """Return why pip would not install a bare URL as editable, ``""`` if it would."""
    if scheme in ("http:", "https:", "ftp:"):
        return "only a folder or a version control URL (git+https:…) can be editable"
    if scheme != "file:" and not part.name:
        return "an editable URL must tell its project: NAME @ URL"
    return ""


def _part(
    text: str,
    name: re.Match[str],
    extras: tuple[str, ...],
    problem: str,
    code: str,
    spec: tuple[int, int],
    semicolon: int,
    end: int,
) -> Part:
    marker_start, marker_end = _marker_place(text, semicolon, end)
    marker = None
    if marker_start >= 0:
        marker = text[marker_start:marker_end]
        if not problem:
            problem, code = _check_marker(marker)
    return Part(
        canonical(name[0]), extras, text[spec[0] : spec[1]] if spec[0] >= 0 else "", None, marker,
        name.start(), end, name.start(), name.end(), spec[0], spec[1], -1, -1,
        marker_start, marker_end, problem, code,
    )  # fmt: skip


def _marker_place(text: str, semicolon: int, end: int) -> tuple[int, int]:
    if semicolon < 0:
        return -1, -1
    start, end = _trim(text, semicolon + 1, end)
    return (start, end) if start < end else (-1, -1)


def _is_path(text: str, start: int, stop: int, editable: bool) -> bool:
    """Tell whether pip would look for a file: by the look of it only, no disk is read."""
    if editable or text[start] in "./\\":
        return "@" not in text[start:stop] or text[start] in "./\\"
    target = text[start:stop].rstrip()
    if target.endswith("]"):
        target = target[: target.rfind("[")]
    archive = target[-9:].lower().endswith(_ARCHIVES)
    if not archive and "/" not in target and "\\" not in target:
        return False
    before, at, _ = target.partition("@")
    if at and "/" not in before and "\\" not in before:
        return False
    name = _NAME.match(target)
    if archive or name is None:
        return True
    # ``torch>=2 /x``: garbage behind a requirement is no path.
    behind = target[name.end() : name.end() + 1]
    return behind in ("/", "\\") or (behind == ":" and name.end() == 1)


def _direct(text: str, start: int, url_start: int, end: int, semicolon: int) -> Part | None:
    """Read a URL or path from ``url_start`` on."""
    if semicolon >= 0 and semicolon < url_start:
        semicolon = -1
    url_start, url_end = _trim(text, url_start, semicolon if semicolon >= 0 else end)
    if url_start >= url_end:
        return None
    problem = code = ""
    url = text[url_start:url_end]
    cut = len(url)
    for index, char in enumerate(url):
        if char in " \t":
            cut = index
            break
    if cut < len(url):
        problem, code = f"{url[cut:].strip()[:40]!r} behind the URL is not understood", "syntax"
        url_end, url = url_start + cut, url[:cut]
    name = ""
    name_start = name_end = url_start
    extras: tuple[str, ...] = ()
    wheel = wheel_parts(url)
    egg = _EGG.search(url)
    if wheel is not None:
        name = wheel[0]
        path = url.partition("#")[0].partition("?")[0]
        name_start = url_start + max(path.rfind("/"), path.rfind("\\")) + 1
        name_end = text.find("-", name_start)
    elif egg is not None:
        name = canonical(egg[1])
        name_start, name_end = url_start + egg.start(1), url_start + egg.end(1)
        extras = _extras(egg[2] or "")[0]
    elif url.endswith("]") and "[" in url and not _URL.match(url):
        extras = _extras(url[url.rfind("[") + 1 : -1])[0]
    if wheel is None and not problem and url.partition("#")[0].endswith(".whl"):
        problem, code = f"{url[-60:]!r} is no valid wheel file name", "syntax"
    marker_start, marker_end = _marker_place(text, semicolon, end)
    marker = None
    if marker_start >= 0:
        marker = text[marker_start:marker_end]
        if not problem:
            problem, code = _check_marker(marker)
    return Part(
        name, extras, "", url, marker, start, end, name_start, name_end, -1, -1,
        url_start, url_end, marker_start, marker_end, problem, code,
    )  # fmt: skip


def _extras(inside: str) -> tuple[tuple[str, ...], bool]:
    if not inside.strip():
        return (), True
    names = [name.strip(" \t") for name in inside.split(",")]
    return (
        tuple(canonical(name) for name in names if name),
        all(_NAME.fullmatch(name) is not None for name in names),
    )


def _plain_specifier(specifier: str) -> bool:
    """Tell whether every clause is plain. Clause by clause: as one pattern, whose clauses can be
    read in two ways, a list of thirty would take minutes to be refused."""
    return all(_PLAIN.fullmatch(clause.strip(" \t")) for clause in specifier.split(","))


def _within_reason(specifier: str) -> bool:
    """Tell whether reading a specifier takes reasonable time and no number that has no end."""
    return len(specifier) <= _MAX_LENGTH and _ENDLESS.search(specifier) is None


def _check_specifier(specifier: str) -> tuple[str, str]:
    """Return why packaging refuses a specifier, and the code; two empty strings if it does not."""
    if len(specifier) > _MAX_LENGTH:
        return "the version specifier is too long", "specifier"
    if _plain_specifier(specifier) or VARIABLE.search(specifier):
        return "", ""
    shown = specifier if len(specifier) <= 60 else specifier[:57] + "..."
    operator = _OPERATOR.match(specifier)
    arbitrary = specifier.startswith("===")
    readable = operator is not None and (specifier.isascii() or arbitrary)
    if readable and _ENDLESS.search(specifier) is None:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            SpecifierSet(specifier)
        except (InvalidSpecifier, ValueError):
            pass
        else:
            if not re.search(r",[ \t]*,", specifier) and (
                arbitrary or specifier.replace("\t", " ").isprintable()
            ):
                return "", ""
    if "#" in specifier:
        return f"{shown!r}: a comment needs a space before its '#'", "syntax"
    if not specifier.isascii():
        return f"{shown!r} holds characters that are not ASCII", "syntax"
    if operator is None:
        return f"{shown!r} behind the name is not understood", "syntax"
    if specifier[0] == "=" and specifier[1:2] != "=":
        return f"{shown!r}: '=' is no operator of versions, '==' is", "specifier"
    if "+" in specifier and re.search(r"(?:[<>]=?|~=)[^,]*\+", specifier):
        return (
            f"{shown!r}: a local label such as '+cu126' may follow '==' and '!=' only",
            "specifier",
        )
    return f"{shown!r} is no valid version specifier", "specifier"


def _check_marker(marker: str) -> tuple[str, str]:
    """Return why packaging refuses a marker, and the code; two empty strings if it does not."""
    if VARIABLE.search(marker) is not None:
        return "", ""
    shown = marker if len(marker) <= 60 else marker[:57] + "..."
    if marker.count("(") > _MAX_DEPTH or len(marker) > _MAX_LENGTH or _ENDLESS.search(marker):
        return f"the marker {shown!r} is too long", "marker"
    if _plain_marker(marker):
        return "", ""
    from packaging.markers import InvalidMarker, Marker

    try:
        Marker(marker)
    except (InvalidMarker, ValueError, RecursionError):
        return f"{shown!r} is no valid marker", "marker"
    return "", ""


def _plain_marker(marker: str) -> bool:
    shape: list[str] = []
    at = depth = 0
    while at < len(marker):
        match = _MARKER_TOKEN.match(marker, at)
        if match is None:
            return False
        kind = match.lastgroup or ""
        if kind == "p":
            kind = marker[match.end() - 1]
            depth += 1 if kind == "(" else -1
            if depth < 0:
                return False
        shape.append(kind)
        at = match.end()
    return depth == 0 and _MARKER_SHAPE.fullmatch(_MARKER_ATOM.sub("a", "".join(shape))) is not None
