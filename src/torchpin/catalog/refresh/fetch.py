"""A polite client for index pages and small files: bounded, patient, conditional.

It stands on ``torchpin.catalog.http`` (the standard library), which already ends hanging servers,
redirect loops and lies; what an index needs on top is here. Why no HTTP library:
``docs/explanation/refresh.md``.
"""

from __future__ import annotations

import datetime
import http.client
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar
from urllib.parse import urlsplit

from torchpin.catalog.bounded import Budget, InspectError
from torchpin.catalog.http import (
    FAILURES,
    BusyError,
    Client,
    is_wrong_address,
    origin,
    reason,
    retry_after,
    split_login,
)
from torchpin.catalog.refresh.cache import Cache, Stored
from torchpin.catalog.remote import LONGEST_PAUSE, Progress, RemoteFile
from torchpin.named import NamedTuple

MOST_PAGE = 64 * 1024 * 1024
"""The most bytes that a page may have, unpacked; PyPI's biggest has 20."""
MOST_METADATA = 4 * 1024 * 1024
TRIES = 4
PAUSE = 0.5
"""Seconds, doubled with each try."""
SILENT = 3
"""A host that let so many requests run out and never answered one is asked no more."""
PAGE_SECONDS = 120.0
"""The longest that one page may take, retries and pauses included."""
_CHUNK = 64 * 1024
_BUSY = (429, 500, 502, 503, 504)

Item = TypeVar("Item")
Result = TypeVar("Result")


class UnreachableError(InspectError):
    """No connection to a host."""


class Fetched(NamedTuple):
    """The answer to a request for a page."""

    status: str
    """``new``, ``same`` (not changed since it was kept) or ``absent`` (404, 403, 410)."""
    body: bytes
    content_type: str
    url: str
    """Where it came from in the end, without credentials."""
    complete: bool
    """Whether the transfer is known to be complete."""
    code: int = 200
    etag: str = ""
    modified: str = ""


class Fetcher:
    """Fetches for one refresh.

    Args:
        jobs: connections at a time.
        idle: seconds without a byte that end a request.
        cache: where pages are kept.
        today: ISO date.
    """

    def __init__(self, cache: Cache, *, jobs: int, idle: float, today: str) -> None:
        self.cache = cache
        self.jobs = jobs
        self.idle = idle
        self.today = today
        self.requests = 0
        self.fetched = 0
        self.wheels = 0
        """Wheels and METADATA files that were read."""
        self.progress: Progress = lambda count: None
        self._lock = threading.Lock()
        self._free: dict[object, float] = {}
        """Origin → when it wants to be asked again (monotonic)."""
        self._dead: dict[object, str] = {}
        self._alive: set[object] = set()
        self._silent: dict[object, int] = {}
        self._logins: dict[object, str] = {}
        """Origin → user and password of the index URLs that were given."""
        self._running: dict[int, Callable[[], None]] = {}
        """What ends each running request."""
        self._stopped = False

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Return the hosts that were given up."""
        return tuple(sorted({why.partition(": ")[0] for why in self._dead.values()}))

    def page(self, url: str, accept: str) -> Fetched:
        """Return a page; one conditional request if it is kept and did not change.

        Raises:
            InspectError: no answer, or none that can be used.
        """
        bare, login = split_login(url)
        if login is not None:
            self._logins[origin(bare)] = urlsplit(url).netloc.rpartition("@")[0]
        key = f"{accept} {bare}"
        kept = self.cache.page(key)
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        if kept is not None and kept.etag:
            headers["If-None-Match"] = kept.etag
        if kept is not None and kept.modified:
            headers["If-Modified-Since"] = kept.modified

        def take(client: Client, answer: http.client.HTTPResponse) -> Fetched:
            if answer.status == 304 and kept is not None:
                answer.close()
                return Fetched("same", kept.body, kept.content_type, client.url, True, 304)
            if answer.status in (403, 404, 410):
                answer.close()
                return Fetched("absent", b"", "", client.url, True, answer.status)
            complete = answer.length is not None or bool(getattr(answer, "chunked", False))
            body = self._body(answer, MOST_PAGE)
            same = kept is not None and kept.body == body
            told = answer.headers
            return Fetched(
                "same" if same else "new",
                body,
                told.get("Content-Type", ""),
                client.url,
                complete,
                200,
                told.get("ETag", ""),
                told.get("Last-Modified", ""),
            )

        return self._patiently(url, headers, take)

    def keep(self, url: str, accept: str, page: Fetched) -> None:
        """Keep a page for the next refresh: one that was read and believed."""
        if page.status == "absent" or page.code == 304:
            return
        key = f"{accept} {split_login(url)[0]}"
        self.cache.keep_page(
            key, Stored(page.body, page.content_type, page.etag, page.modified, self.today)
        )

    def small(self, url: str) -> bytes | None:
        """Return a small file, None if the server has none.

        Raises:
            InspectError: no answer, or too many bytes.
        """

        def take(client: Client, answer: http.client.HTTPResponse) -> bytes | None:
            if answer.status in (403, 404, 410):
                answer.close()
                return None
            return self._body(answer, MOST_METADATA)

        return self._patiently(url, {"Accept-Encoding": "gzip"}, take)

    def open(self, url: str, budget: Budget) -> RemoteFile:
        """Open a wheel for reading by ranges; ``done`` counts what it cost.

        Raises:
            InspectError: it cannot be read.
        """
        self._enter(url)
        file = RemoteFile(self._with_login(url), budget, idle=self.idle, progress=self._advance)
        self._running[id(file)] = file.cut
        return file

    def done(self, file: RemoteFile) -> None:
        """Close a wheel."""
        self._running.pop(id(file), None)
        file.close()
        with self._lock:
            self.requests += file.requests
            self.wheels += 1

    def each(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result | InspectError]]:
        """Yield each item with its result, or why there is none, as they come."""
        pool = ThreadPoolExecutor(self.jobs)
        running: dict[Future[Result], Item] = {}
        waiting = iter(items)
        try:
            while True:
                while len(running) < 2 * self.jobs and (item := next(waiting, None)) is not None:
                    running[pool.submit(work, item)] = item
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    item = running.pop(future)
                    error = future.exception()
                    if error is not None and not isinstance(error, InspectError):
                        raise error
                    yield item, error if isinstance(error, InspectError) else future.result()
        except BaseException:
            self._stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _stop(self) -> None:
        """End what runs in other threads within a moment."""
        self._stopped = True
        for cut in list(self._running.values()):
            cut()

    def _advance(self, count: int) -> None:
        with self._lock:
            self.fetched += count
        self.progress(count)

    def _with_login(self, url: str) -> str:
        """Return a URL with the credentials of the index, if it lies on the same origin."""
        parts = urlsplit(url)
        login = self._logins.get(origin(url))
        if login is None or "@" in parts.netloc:
            return url
        return parts._replace(netloc=f"{login}@{parts.netloc}").geturl()

    def _enter(self, url: str) -> None:
        """Wait as long as the host wants to be left alone.

        Raises:
            InspectError: it was unreachable before, or wants a pause that is too long.
        """
        place = origin(url)
        if self._stopped:
            raise InspectError("stopped")
        if place in self._dead:
            raise UnreachableError(self._dead[place])
        left = self._free.get(place, 0.0) - time.monotonic()
        if left > LONGEST_PAUSE:
            raise InspectError(f"the server asks to come back in {left:.0f} s")
        if left > 0:
            time.sleep(left)

    def _patiently(
        self,
        url: str,
        headers: dict[str, str],
        take: Callable[[Client, http.client.HTTPResponse], Result],
    ) -> Result:
        place = origin(split_login(url)[0])
        budget = Budget(PAGE_SECONDS)
        client = Client(self._with_login(url), budget, self.idle)
        self._running[id(client)] = client.cut
        start = client.url
        try:
            for attempt in range(1, TRIES + 1):
                self._enter(start)
                client.url = start
                pause = PAUSE * 2**attempt
                try:
                    with self._lock:
                        self.requests += 1
                    answer = client.get(headers)
                    self._alive.add(place)
                    self._refuse(answer)
                    return take(client, answer)
                except FAILURES as error:
                    budget.check()
                    if is_wrong_address(error):
                        raise InspectError(reason(error)) from error
                    if place not in self._alive and _no_connection(error):
                        if attempt == 2:
                            self._dead[place] = f"{place[1]}: {reason(error)}"
                            raise UnreachableError(self._dead[place]) from error
                    elif attempt == TRIES or isinstance(error, TimeoutError):
                        self._count_silence(place, error)
                        raise InspectError(reason(error)) from error
                    if isinstance(error, BusyError) and error.after:
                        self._free[place] = time.monotonic() + error.after
                        pause = 0.0
                time.sleep(min(pause, budget.remaining()))
            raise InspectError("no answer")
        finally:
            self._running.pop(id(client), None)
            client.close()

    def _count_silence(self, place: tuple[str, str | None, int | None], error: object) -> None:
        """Give a host up that never answered: each further page would cost the time-out again."""
        if place in self._alive or not isinstance(error, TimeoutError):
            return
        with self._lock:
            self._silent[place] = self._silent.get(place, 0) + 1
            if self._silent[place] >= SILENT:
                self._dead[place] = f"{place[1]}: {reason(error)}"

    def _refuse(self, answer: http.client.HTTPResponse) -> None:
        """Raise for a status that is neither content nor its absence."""
        status = answer.status
        if status in (200, 304, 403, 404, 410):
            return
        answer.close()
        words = f"HTTP {status} {http.client.responses.get(status, '')}".rstrip()
        if status in _BUSY:
            raise BusyError(words, retry_after(answer.headers.get("Retry-After")))
        hint = "the index needs a login: user:password@ in the URL, or ~/.netrc"
        raise InspectError(words, hint=hint if status in (401, 407) else "")

    def _body(self, answer: http.client.HTTPResponse, most: int) -> bytes:
        """Return the body, unpacked.

        Raises:
            InspectError: more than ``most`` bytes, or an unknown packing.
            http.client.IncompleteRead: cut off.
        """
        coding = answer.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("identity", "gzip", ""):
            answer.close()
            raise InspectError("the answer is packed in a way that was not asked for")
        unpack = zlib.decompressobj(31) if coding == "gzip" else None
        parts: list[bytes] = []
        size = 0
        try:
            while chunk := answer.read1(_CHUNK):
                self._advance(len(chunk))
                data = chunk if unpack is None else unpack.decompress(chunk, most - size + 1)
                size += len(data)
                parts.append(data)
                if size > most or (unpack is not None and unpack.unconsumed_tail):
                    raise InspectError(f"the answer has more than {most // 1048576} MiB")
        except zlib.error:
            raise InspectError("the answer cannot be unpacked") from None
        finally:
            left = answer.length
            answer.close()
        if left or (unpack is not None and not unpack.eof):
            raise http.client.IncompleteRead(b"")
        return b"".join(parts)


def _no_connection(error: BaseException) -> bool:
    """Tell whether a request failed before the server said anything."""
    inner = getattr(error, "reason", None)
    return isinstance(inner, OSError)


def today() -> str:
    """Return the date in UTC, ISO."""
    return datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
