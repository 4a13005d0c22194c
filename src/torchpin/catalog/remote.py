"""A remote file as a file: what is read is fetched by HTTP ranges, once, and kept.

What was fetched goes to a spool (memory up to 16 MiB, then a temporary file), so a second pass over
a member costs no second download.
"""

from __future__ import annotations

import http.client
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable

from torchpin.catalog.bounded import Budget, InspectError
from torchpin.catalog.http import (
    FAILURES,
    IDLE_SECONDS,
    BusyError,
    Client,
    is_wrong_address,
    reason,
    retry_after,
)
from torchpin.named import NamedTuple
from torchpin.patterns import regex

TAIL = 64 * 1024
"""Bytes of the first request, from the end: the directory of a small wheel lies there."""
AHEAD = 64 * 1024
"""The least that a request asks for."""
GAP = 256 * 1024
"""So many bytes are read and kept rather than asked for anew."""
CHUNK = 256 * 1024
IN_MEMORY = 16 * 1024 * 1024
TRIES = 3
PAUSE = 0.25
"""Seconds, doubled with each try."""
LONGEST_PAUSE = 60.0
"""Seconds; a server that asks for a longer pause is asked again after these."""
BIGGEST = 8 * 1024**3
"""A file that claims more bytes is not read."""
BIGGEST_READ = 8 * 1024 * 1024
"""The most that is read at once: a directory of a wheel of 80,000 files."""
NOT_ASKED = "the server answers with a range that was not asked for"
_RANGE = regex(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})\Z")
_BUSY = (429, 500, 502, 503, 504)

Progress = Callable[[int], None]
"""Called with the number of bytes that came since the last call."""


class _Piece(NamedTuple):
    start: int
    end: int
    place: int
    """Where it lies in the spool."""


class RemoteFile:
    """A file behind a URL, readable and seekable.

    Args:
        url: http or https; credentials in it are sent to its own origin alone.
        budget: the time for everything.
        idle: seconds without a byte that end a request.
        progress: is told of each chunk.

    Raises:
        InspectError: not found, no ranges, a lie in the headers, too slow.
    """

    def __init__(
        self,
        url: str,
        budget: Budget,
        *,
        idle: float = IDLE_SECONDS,
        progress: Progress | None = None,
    ) -> None:
        self._client = Client(url, budget, idle)
        self._budget = budget
        self._progress = progress
        self._spool = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (closed by close)
        self._spooled = 0
        self._pieces: list[_Piece] = []
        self._answer: http.client.HTTPResponse | None = None
        self._at = self._stop = self._pos = 0
        self._hints: list[tuple[int, int]] = []
        self._etag: str | None = None
        self.size = 0
        self.requests = 0
        self.fetched = 0
        try:
            self._first()
        except BaseException:
            self.close()
            raise

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._pos

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position; nothing is fetched."""
        base = (0, self._pos, self.size)[whence]
        if base + offset < 0:
            raise ValueError("negative seek position")  # as files do: zipfile expects it
        self._pos = base + offset
        return self._pos

    def read(self, count: int | None = -1) -> bytes:
        """Return up to ``count`` bytes from the position on."""
        left = max(0, self.size - self._pos)
        count = left if count is None or count < 0 else min(count, left)
        if count > BIGGEST_READ:
            raise InspectError(f"holds a table of {count} bytes, too big to be true")
        parts = []
        while count:
            piece = self._held(self._pos)
            if piece is None:
                self._fetch(self._pos, self._pos + count)
                continue
            many = min(count, piece.end - self._pos)
            self._spool.seek(piece.place + self._pos - piece.start)
            parts.append(self._spool.read(many))
            self._pos += many
            count -= many
        return b"".join(parts)

    def hint(self, ranges: list[tuple[int, int]]) -> None:
        """Say which ranges (start, end) will be read in full: one request serves neighbours."""
        self._hints = []
        for start, end in sorted(ranges):
            if self._hints and start <= self._hints[-1][1] + GAP:
                first, last = self._hints.pop()
                start, end = first, max(last, end)
            self._hints.append((start, end))

    def cut(self) -> None:
        """End a read that another thread waits for."""
        self._client.cut()

    def close(self) -> None:
        """End the connection and forget what was fetched."""
        self._hang_up()
        self._client.close()
        self._spool.close()

    def _held(self, at: int) -> _Piece | None:
        index = bisect_right(self._pieces, at, key=lambda piece: piece.start) - 1
        if index >= 0 and at < self._pieces[index].end:
            return self._pieces[index]
        return None

    def _keep(self, start: int, data: bytes) -> None:
        self._spool.seek(self._spooled)
        try:
            self._spool.write(data)
        except OSError as error:
            raise InspectError(f"cannot keep what was fetched: {error.strerror}") from error
        index = bisect_right(self._pieces, start, key=lambda piece: piece.start)
        last = self._pieces[index - 1] if index else None
        if (
            last is not None
            and last.end == start
            and last.place + last.end - last.start == self._spooled
        ):
            self._pieces[index - 1] = last._replace(end=start + len(data))
        else:
            self._pieces.insert(index, _Piece(start, start + len(data), self._spooled))
        self._spooled += len(data)
        self.fetched += len(data)
        if self._progress is not None:
            self._progress(len(data))

    def _fetch(self, start: int, end: int) -> None:
        """Fetch bytes until the one at ``start`` is held, and as far as one chunk to ``end``."""
        for attempt in range(1, TRIES + 1):
            try:
                if self._answer is None or not self._at <= start <= min(self._at + GAP, self._stop):
                    self._ask(start, end)
                while self._at <= start:
                    self._step()
                return
            except FAILURES as error:
                self._hang_up()
                self._budget.check()
                if attempt == TRIES or _slow(error) or is_wrong_address(error):
                    raise InspectError(f"cannot be fetched: {reason(error)}") from error
                pause = _pause(attempt, error)
            time.sleep(min(pause, self._budget.remaining()))

    def _step(self) -> None:
        """Take one chunk of the running answer."""
        assert self._answer is not None
        self._budget.check()
        data = self._answer.read1(min(CHUNK, self._stop - self._at))
        if not data:
            raise http.client.IncompleteRead(b"")
        if self._held(self._at) is None:
            following = bisect_right(self._pieces, self._at, key=lambda piece: piece.start)
            room = (
                self._pieces[following].start - self._at
                if following < len(self._pieces)
                else len(data)
            )
            self._keep(self._at, data[:room])
        self._at += len(data)
        if self._at >= self._stop:
            self._hang_up()

    def _ask(self, start: int, end: int) -> None:
        """Open a request from ``start`` on, to the end of the hint that covers it."""
        self._hang_up()
        stop = max(end, start + AHEAD)
        for low, high in self._hints:
            if low <= start < high:
                stop = max(end, high)
        following = bisect_right(self._pieces, start, key=lambda piece: piece.start)
        if following < len(self._pieces):
            stop = min(stop, self._pieces[following].start)
        stop = min(stop, self.size)
        answer = self._request(f"bytes={start}-{stop - 1}")
        low, high, size = self._range_of(answer)
        if low != start or high > stop or size != self.size:
            answer.close()
            raise InspectError(NOT_ASKED)
        self._answer, self._at, self._stop = answer, start, high

    def _first(self) -> None:
        """Ask for the tail, which tells the size too."""
        for attempt in range(1, TRIES + 1):
            try:
                answer = self._request(f"bytes=-{TAIL}", strict=False)
                if answer.status != 206:  # no ranges from the end: ask for the size first
                    answer.close()
                    answer = self._request("bytes=0-0")
                low, high, self.size = self._range_of(answer)
                if (low, high) not in ((max(0, self.size - TAIL), self.size), (0, 1)):
                    answer.close()
                    raise InspectError(NOT_ASKED)
                self._etag = answer.headers.get("ETag")
                self._answer, self._at, self._stop = answer, low, high
                while self._answer is not None:
                    self._step()
                return
            except FAILURES as error:
                self._hang_up()
                self._budget.check()
                if attempt == TRIES or _slow(error) or is_wrong_address(error):
                    raise InspectError(f"cannot be fetched: {reason(error)}") from error
                pause = _pause(attempt, error)
            time.sleep(min(pause, self._budget.remaining()))

    def _request(self, span: str, *, strict: bool = True) -> http.client.HTTPResponse:
        self.requests += 1
        answer = self._client.get({"Range": span})
        status = answer.status
        if status == 206:
            etag = answer.headers.get("ETag")
            if None not in (self._etag, etag) and etag != self._etag:
                answer.close()
                raise InspectError("the file changed on the server while it was read")
            return answer
        if not strict and status in (400, 405, 416, 501):
            return answer
        answer.close()
        known = http.client.responses.get(status, "")
        if status == 200:
            raise InspectError(
                "the server does not answer range requests",
                hint="download the file and inspect it",
            )
        if status in _BUSY:
            after = retry_after(answer.headers.get("Retry-After"))
            raise BusyError(f"HTTP {status} {known}".rstrip(), after)
        hint = "the URL needs a login" if status in (401, 403, 407) else ""
        raise InspectError(f"HTTP {status} {known}".rstrip(), hint=hint)

    def _range_of(self, answer: http.client.HTTPResponse) -> tuple[int, int, int]:
        """Return start, end and size of the file as the answer gives them."""
        match = _RANGE.match(answer.headers.get("Content-Range", ""))
        coding = answer.headers.get("Content-Encoding", "identity")
        if match is not None and coding == "identity":
            low, last, size = (int(text) for text in match.groups())
            length = answer.headers.get("Content-Length", "")
            if low <= last < size <= BIGGEST and length in ("", str(last + 1 - low)):
                return low, last + 1, size
        answer.close()
        raise InspectError("the server's answer does not say which bytes it holds")

    def _hang_up(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None


def _pause(attempt: int, error: BaseException) -> float:
    """Return how many seconds to wait: as long as a busy server asks, within reason."""
    asked = error.after if isinstance(error, BusyError) else 0.0
    usual = PAUSE * float(2**attempt)
    return max(usual, min(asked, LONGEST_PAUSE))


def _slow(error: BaseException) -> bool:
    """Tell whether the server was silent for too long: asking again would double the wait."""
    return isinstance(error, TimeoutError) or isinstance(
        getattr(error, "reason", None), TimeoutError
    )
