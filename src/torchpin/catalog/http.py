"""One HTTP request for a range of a file, over the standard library.

urllib knows proxies (``https_proxy``, ``no_proxy``) and certificates; what it lacks for files of
500 MB from servers that nobody vouches for is here: an end to redirects, no step from https to
http, credentials for their own origin alone, and a clock that ends a request whose server sends
a byte now and then. A client library behind an extra would add an install step and 50 to 100 ms
of import for connection reuse alone: an inspection makes some ten requests.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from torchpin import __version__
from torchpin.catalog.bounded import Budget, InspectError

if TYPE_CHECKING:
    import ssl

IDLE_SECONDS = 20.0
"""The longest that a server may send nothing."""
REDIRECTS = 5
FAILURES = (OSError, http.client.HTTPException, ValueError)
"""What urllib raises for an unreachable, silent or lying server (``URLError`` is an OSError)."""


class Client:
    """Sends requests until the budget's time is over.

    Args:
        url: http or https, credentials allowed; without them those of ``~/.netrc`` are used.
        budget: its end ends a running request.
        idle: seconds without a byte that end a request.

    Raises:
        InspectError: the URL is neither http nor https, or none.
    """

    def __init__(self, url: str, budget: Budget, idle: float = IDLE_SECONDS) -> None:
        self.url, login = split_login(url)
        self._login = login or netrc_login(self.url)
        self._origin = origin(self.url)
        self._budget = budget
        self._idle = idle
        self._sockets: list[socket.socket] = []
        self._watch: threading.Timer | None = None
        self._opener = _opener(self._sockets)

    def get(self, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        """Return the answer to a GET, whatever its status, after redirects.

        Raises:
            InspectError: redirects in a loop or to something that is not asked for.
            OSError, http.client.HTTPException, ValueError: no answer.
        """
        for _ in range(REDIRECTS + 1):
            self._budget.check()
            if self._watch is None:
                self._watch = threading.Timer(self._budget.remaining(), self.cut)
                self._watch.daemon = True
                self._watch.start()
            self._sockets[:] = self._sockets[-8:]
            request = urllib.request.Request(self.url, headers=self._headers(headers))
            answer: http.client.HTTPResponse = self._opener.open(
                request, timeout=min(self._idle, self._budget.remaining())
            )
            try:
                self._budget.check()  # a cut connection looks like the end of the headers
            except InspectError:
                answer.close()
                raise
            target = answer.headers.get("Location")
            if answer.status not in (301, 302, 303, 307, 308) or not target:
                return answer
            answer.close()
            self._follow(target)
        raise InspectError(f"the server redirects more than {REDIRECTS} times")

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        out = {"User-Agent": f"torchpin/{__version__}", "Accept-Encoding": "identity", **headers}
        if self._login is not None and origin(self.url) == self._origin:
            out["Authorization"] = self._login
        return out

    def _follow(self, target: str) -> None:
        try:
            new, _ = split_login(urllib.parse.urljoin(self.url, target))
        except (InspectError, ValueError):
            raise InspectError("the server redirects to something other than http(s)") from None
        if self.url.startswith("https:") and not new.startswith("https:"):
            raise InspectError("the server redirects from https to http")
        self.url = new

    def cut(self) -> None:
        """End whatever still waits for bytes: run by the clock or whoever stops, in its thread."""
        for held in self._sockets:
            try:
                socket.socket.shutdown(held, socket.SHUT_RDWR)
            except OSError:  # closed already
                continue

    def close(self) -> None:
        """Stop the clock."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None


def split_login(url: str) -> tuple[str, str | None]:
    """Return ``url`` without credentials and fragment, and the Authorization header, if any.

    Raises:
        InspectError: not an http or https URL with a host.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        raise InspectError("the URL cannot be read") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InspectError("only http and https URLs can be read")
    if any(ord(c) <= 0x20 or ord(c) == 0x7F for c in url):
        raise InspectError("the URL holds blanks or control characters")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    try:
        host.encode("ascii")
    except UnicodeEncodeError:
        raise InspectError("the URL's host is not ASCII: write its xn-- form") from None
    place = f"{host}:{port}" if port is not None else host
    login: str | None = None
    if parts.username is not None:
        user = urllib.parse.unquote(parts.username)
        pair = f"{user}:{urllib.parse.unquote(parts.password or '')}"
        login = "Basic " + base64.b64encode(pair.encode()).decode()
    path = urllib.parse.quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = urllib.parse.quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
    return urllib.parse.urlunsplit((parts.scheme, place, path, query, "")), login


def netrc_login(url: str) -> str | None:
    """Return the Authorization header for the host of ``url`` in ``$NETRC`` or ``~/.netrc``.

    A file that cannot be read or parsed gives none, as with pip and curl: the server's refusal
    is what the user then sees.
    """
    path = os.environ.get("NETRC") or os.path.expanduser(
        "~/_netrc" if os.name == "nt" else "~/.netrc"
    )
    host = urllib.parse.urlsplit(url).hostname
    if host is None or not os.path.isfile(path):
        return None
    import netrc

    try:
        found = netrc.netrc(path).authenticators(host)
    except (netrc.NetrcParseError, OSError, UnicodeDecodeError):
        return None
    if found is None:
        return None
    pair = f"{found[0] or found[1] or ''}:{found[2] or ''}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def retry_after(text: str | None) -> float:
    """Return the seconds of a ``Retry-After`` header (a number or a date); 0 without one."""
    if not text:
        return 0.0
    if text.strip().isdecimal():
        return min(float(text.strip()), 1e6)
    from email.utils import parsedate_to_datetime

    try:
        until = parsedate_to_datetime(text)
        return max(0.0, until.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0


class BusyError(http.client.HTTPException):
    """The server asks to come back later."""

    def __init__(self, message: str, after: float) -> None:
        super().__init__(message)
        self.after = after


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port: what credentials are for."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _opener(sockets: list[socket.socket]) -> urllib.request.OpenerDirector:
    """Return an opener for http and https alone, which keeps its sockets in ``sockets``."""

    class Connection(http.client.HTTPConnection):
        def connect(self) -> None:
            self._create_connection = _connection
            super().connect()
            sockets.append(self.sock)

    class SecureConnection(http.client.HTTPSConnection):
        def connect(self) -> None:
            self._create_connection = _connection
            super().connect()
            sockets.append(self.sock)

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Connection, req)

    class Secure(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(SecureConnection, req, context=_trust())

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        Plain(),
        Secure(),
    ):
        opener.add_handler(handler)
    return opener


class _Names:
    """Addresses of hosts, looked up once: a refresh makes hundreds of connections to two hosts.

    Name servers drop lookups that come in bursts, and each costs seconds then.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], list[Any]] = {}
        self._locks: dict[tuple[str, int], threading.Lock] = {}

    def of(self, host: str, port: int) -> list[Any]:
        with self._locks.setdefault((host, port), threading.Lock()):
            found = self._known.get((host, port))
            if found is None:
                found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
                self._known[host, port] = found
            return found

    def forget(self, host: str, port: int) -> None:
        self._known.pop((host, port), None)


_NAMES = _Names()


def _connection(
    address: tuple[str, int], timeout: float | None = None, source: Any = None
) -> socket.socket:
    """Do what ``socket.create_connection`` does, with addresses that were looked up before."""
    failure: OSError | None = None
    for family, kind, protocol, _, place in _NAMES.of(*address):
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(timeout)
            if source:
                made.bind(source)
            made.connect(place)
        except OSError as error:
            made.close()
            failure = error
        else:
            return made
    _NAMES.forget(*address)
    raise failure or OSError("the name of the server has no address")


@lru_cache(maxsize=1)
def _trust() -> ssl.SSLContext:
    import ssl

    return ssl.create_default_context()


def is_wrong_address(error: BaseException) -> bool:
    """Tell whether a request failed before it was sent: no second try helps.

    URLs are checked before, so it is the address of a proxy, as a rule.
    """
    if isinstance(error, http.client.InvalidURL | UnicodeError):
        return True
    words = getattr(error, "reason", None) or (isinstance(error, ValueError) and str(error)) or ""
    return str(words).startswith(("unknown url type", "proxy URL with no"))


def reason(error: BaseException) -> str:
    """Return why a request failed, in words without a URL: a proxy's may hold a password."""
    if is_wrong_address(error):
        return "the address of the server, or of the proxy (https_proxy), cannot be used"
    inner = getattr(error, "reason", None)
    cause = inner if isinstance(error, urllib.error.URLError) and inner else error
    if isinstance(cause, TimeoutError):
        return "the server sends nothing"
    if isinstance(cause, http.client.RemoteDisconnected):
        return "the server closed the connection"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    if isinstance(cause, http.client.IncompleteRead):
        return "the connection ended early"
    if isinstance(cause, BusyError):
        return str(cause)
    text = "".join(c if c.isprintable() else "?" for c in str(cause)[:100])
    return f"{type(cause).__name__}: {text}" if isinstance(cause, BaseException) else text
