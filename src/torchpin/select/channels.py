"""What an index URL is, by its form alone: a channel, PyPI, or something that cannot be known.

PyTorch serves every channel at ``https://download.pytorch.org/whl/<channel>`` and every mirror
keeps that path, so the path decides and the host does not. Nothing here touches the network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchpin.patterns import regex
from torchpin.select.model import IndexKind

CHANNEL_ROOT = "https://download.pytorch.org/whl"

UNKNOWN = IndexKind("unknown")
PYPI = IndexKind("pypi")

_CHANNEL = regex(r"(?:cpu|xpu|cu\d{2,3}|rocm\d+\.\d+(?:\.\d+)?)\Z")
_PROJECT = regex(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_URL = regex(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)")
_ESCAPE = regex(r"%([0-9A-Fa-f]{2})")
_ACCELERATOR = regex(
    r"cu\d{2,3}(?!\d)|cuda|rocm|torch|nvidia|jetson|ascend|nightly|[cgnx]pu(?![a-z])"
)
_TOKEN = regex(r"[A-Za-z0-9_~=-]+\Z")
_KNOWN_TOKEN = regex(
    r"(?:gh[pousr]_|github_pat_|gl[a-z]{2,4}-|pypi-Ag|hf_|AKC[a-z]|cmVmd|eyJ)[A-Za-z0-9_~=-]{16,}\Z"
)
_NO_TOKEN = regex(
    r"(?:[0-9a-f]{32,}|[0-9A-F]{32,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\Z"
)
"""Digests, commits and UUIDs (feeds and projects of Azure)."""
_PARTS = regex(r"[-_~=]")
_CHANGE = regex(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_SECRET_KEY = regex(
    r"(?i)((?:^|&)[\w-]*(?:token|auth|secret|passw|api_?key|sig(?:nature)?)[\w-]*=)[^&]+"
)
_OTHER_PROJECTS = ("flashinfer.ai", "anaconda.org", "github.io")
"""Hosts whose ``/whl/<channel>`` or ``/simple`` pages are one project's own, not PyTorch's
(llama-cpp-python and auto-gptq on github.io, flashinfer, users' channels on anaconda.org)."""


def channel_url(channel: str) -> str:
    """Return the index URL of ``channel`` on PyTorch's own host."""
    return f"{CHANNEL_ROOT}/{channel}"


def is_channel(name: str) -> bool:
    """Return whether ``name`` has the form of a channel (``cu126``, ``rocm7.2``, ``cpu``)."""
    return _CHANNEL.match(name) is not None


def unescape(text: str) -> str:
    """Return ``text`` with its percent escapes of ASCII characters replaced."""
    return _ESCAPE.sub(
        lambda m: chr(int(m[1], 16)) if int(m[1], 16) < 0x80 else m[0],
        text,
    )


def redact(url: str) -> str:
    """Return ``url`` without what may be a secret: user, password and query become ``****``.

    A password with an unescaped ``/`` or ``#`` is hidden as well, and so is a part of the path that
    is a token (see ``is_token``), which pip and uv show.
    """
    start = url.find("://")
    if start < 0:
        return url
    head, rest = url[: start + 3], url[start + 3 :]
    netloc = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    if "@" in netloc:
        rest = "****" + rest[netloc.rindex("@") :]
    elif re.search(r"(?<!\]):(?!\d*\Z)", netloc) and "@" in rest and "[" not in netloc:
        rest = "****" + rest[rest.index("@") :]
    body, mark, query = rest.partition("?")
    if mark and query:
        _, hash_mark, fragment = query.partition("#")
        body, rest = _without_tokens(body), f"?****{hash_mark}{_fragment(fragment)}"
        return head + body + rest
    body, hash_mark, fragment = rest.partition("#")
    return f"{head}{_without_tokens(body)}{hash_mark}{_fragment(fragment)}"


def _fragment(text: str) -> str:
    """Return a fragment without the values of keys that name a secret."""
    return _SECRET_KEY.sub(r"\1****", text) if "=" in text else text


def _without_tokens(body: str) -> str:
    """Return host and path with the segments that are tokens replaced."""
    segments = body.split("/")
    host = segments[0].rpartition("@")[2].lower()
    for at in range(1, len(segments)):
        if is_token(segments[at], segments[at - 1], host):
            segments[at] = "****"
    return "/".join(segments)


def is_token(segment: str, before: str = "", host: str = "") -> bool:
    """Return whether a segment of a path is surely a secret.

    That is: what begins as the tokens of GitHub, GitLab, PyPI, Hugging Face and Artifactory do, a
    web token (JWT); the token that Cloudsmith (first segment) and packagecloud (behind ``priv``)
    have in the path; and long segments in which letters and digits change at random, as in
    ``https://pypi.fury.example/TOKEN/user/``. Digests, commits and UUIDs are no secrets, nor are
    file names.
    """
    if len(segment) < 12 or not _TOKEN.match(segment):
        return False
    if before == "priv" or (host.endswith("cloudsmith.io") and before.lower().endswith(host)):
        return True
    if _KNOWN_TOKEN.match(segment):
        return True
    if len(segment) < 20 or _NO_TOKEN.match(segment):
        return False
    return any(len(_CHANGE.findall(part)) >= 4 for part in _PARTS.split(segment) if len(part) > 15)


def holds_token(url: str) -> bool:
    """Return whether a secret stands in the path or the query of ``url``, beside any password."""
    rest = url[url.find("://") + 3 :]
    body, _, query = rest.partition("?")
    return _without_tokens(body) != body or _SECRET_KEY.search(query) is not None


def split_url(url: str) -> tuple[str, str, str] | None:
    """Return scheme, host (lower case, without credentials) and path (escapes kept) of ``url``.

    None if it is not a URL (a local path) or cannot be parsed.
    """
    match = _URL.match(url.strip())
    if match is None:
        return None
    scheme, netloc, path = match[1].lower(), match[2], match[3]
    host = netloc.rpartition("@")[2].lower()
    if host.count("[") != host.count("]") or any(c in host for c in " \\<>"):
        return None
    if not host and scheme != "file":
        return None
    return scheme, host, path


def _normal(url: str) -> str:
    """Return the form in which private URLs are compared."""
    parts = split_url(url)
    if parts is None:
        return url.strip().rstrip("/\\")
    scheme, host, path = parts
    return f"{scheme}://{host}{unescape(path)}".rstrip("/")


def _private_kind(url: str, private: Mapping[str, str]) -> IndexKind | None:
    """Return what the profile says about ``url``: its longest entry that is a prefix."""
    if not private:
        return None
    normal = _normal(url)
    best = ""
    value: str | None = None
    for key, said in private.items():
        prefix = _normal(key)
        fits = normal == prefix or normal.startswith(prefix + "/")
        if fits and (value is None or len(prefix) > len(best)):
            best, value = prefix, said
    if value is None:
        return None
    rest = normal[len(best) :].strip("/")
    project = rest if rest and _PROJECT.match(rest) else None
    if value == "pypi":
        return IndexKind("pypi", None, project)
    if value == "private":
        return IndexKind("private", None, project)
    return IndexKind("channel", value, project) if is_channel(value) else UNKNOWN


def _after_whl(rest: list[str]) -> IndexKind:
    """Return the kind of a path by its segments behind ``/whl``."""
    if not rest:
        return IndexKind("root")
    if rest[0] in ("nightly", "test"):
        if len(rest) == 1:
            return IndexKind(rest[0])
        if is_channel(rest[1]):
            if len(rest) == 2:
                return IndexKind(rest[0], rest[1])
            if len(rest) == 3 and _PROJECT.match(rest[2]):
                return IndexKind(rest[0], rest[1], _project(rest[2]))
        elif len(rest) == 2 and _PROJECT.match(rest[1]) and "html" not in rest[1]:
            return IndexKind(rest[0], None, _project(rest[1]))
        return UNKNOWN
    if rest[-1] == "torch_stable.html":
        if len(rest) == 1:
            return IndexKind("legacy")
        if len(rest) == 2 and is_channel(rest[0]):
            return IndexKind("legacy", rest[0])
        return UNKNOWN
    if is_channel(rest[0]):
        if len(rest) == 1:
            return IndexKind("channel", rest[0])
        if len(rest) == 2 and _PROJECT.match(rest[1]) and not rest[1].endswith((".html", ".whl")):
            return IndexKind("channel", rest[0], _project(rest[1]))
        return UNKNOWN
    if rest == ["torch"] or rest == ["torchvision"] or rest == ["torchaudio"]:
        return IndexKind("legacy", None, rest[0])
    return UNKNOWN


def _project(segment: str) -> str:
    """Return the canonical project name of a page (PEP 503)."""
    return re.sub(r"[-_.]+", "-", segment).lower()


def index_kind(
    url: str, private: Mapping[str, str] | None = None, *, option: str = "--index-url"
) -> IndexKind:
    """Return what ``url`` is, by its form.

    ``private`` maps URLs of the profile to a channel name, ``pypi`` or ``private``; the longest
    prefix wins, trailing slashes and credentials do not matter. ``url`` ``""`` is the default
    PyPI. An undefined variable, a local folder, a vendor's variant of a channel and a page of
    PyTorch's long-term-support releases are unknown.
    """
    if url == "":
        return PYPI
    said = _private_kind(url, private or {})
    if said is not None:
        return said
    parts = split_url(url)
    if parts is None:
        return UNKNOWN
    scheme, host, path = parts
    if "$" in host or "$" in path or (scheme == "file" and option == "--find-links"):
        return UNKNOWN
    if scheme not in ("http", "https", "file"):
        return UNKNOWN
    if "//" in path or "%2f" in path.lower():
        return UNKNOWN  # another address for every server that takes paths as they are
    segments = [segment for segment in unescape(path).split("/") if segment]
    bare_host = host.partition(":")[0] if "[" not in host else host
    if any(bare_host == other or bare_host.endswith("." + other) for other in _OTHER_PROJECTS):
        return UNKNOWN
    if "whl" in segments:
        at = len(segments) - 1 - segments[::-1].index("whl")
        return _after_whl(segments[at + 1 :])
    return _pypi_kind(bare_host, segments)


def is_public_pypi(url: str) -> bool:
    """Return whether ``url`` is the index that a client asks by default, by its form: ``""``, or
    ``https://pypi.<domain>/simple``. A mirror of PyPI is another address."""
    if url == "":
        return True
    parts = split_url(url)
    if parts is None or parts[0] != "https" or parts[2].removesuffix("/") != "/simple":
        return False
    labels = parts[1].split(".")
    return len(labels) == 2 and labels[0] == "pypi"


def _pypi_kind(host: str, segments: list[str]) -> IndexKind:
    """Return PyPI's kind if the URL has the form of PyPI or of a mirror of it."""
    project = None
    if len(segments) >= 2 and segments[-2] == "simple" and _PROJECT.match(segments[-1]):
        project = _project(segments[-1])
        segments = segments[:-1]
    if not segments or segments[-1] != "simple":
        return UNKNOWN
    place = "/".join((host, *segments)).lower()
    if "pypi" not in place or host.startswith("test.") or _ACCELERATOR.search(place):
        return UNKNOWN
    return IndexKind("pypi", None, project)
