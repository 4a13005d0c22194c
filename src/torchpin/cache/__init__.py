"""Floor 5: what a check of a folder found is kept, and shown again while what it rests on holds.

An entry answers one *question*: these arguments, in this folder, by this torchpin, this Python and
this catalog (``question``). It holds a *trace*: everything that the check asked of the file system,
with the answers, absent files included (``torchpin.seen``). A later check asks all of it again
(``verify``): it lists the folders, reads and hashes each file that might matter, and only where
every answer is the same does it show what was found then. Times of files are never trusted.

Entries are JSON in a folder of the user's own (``files``); damaged, foreign and unreadable ones are
passed over. They hold findings, no texts of files, and nothing that looks like a credential.
"""

from __future__ import annotations

import os

from torchpin import seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from torchpin.cli.arguments import Arguments
    from torchpin.report.model import CheckView

    Result = tuple[CheckView, tuple[str, ...]]
    """What a report shows, and the notes beside it."""

VARIABLE = "TORCHPIN_NO_CACHE"
"""Set to anything but nothing: no result is kept or shown again."""


def cache_for(args: Arguments) -> Cache | None:
    """Return the cache of a ``check`` with these arguments; None where it does not pay (files
    alone) or is not wanted."""
    if args.no_cache or os.environ.get(VARIABLE) or args.stdin_filename:
        return None
    paths = tuple(args.paths) or (".",)
    if not any(os.path.isdir(path) or os.path.basename(path) == "torchpin.toml" for path in paths):
        return None
    from torchpin.cache.question import question

    asked = question(args, paths)
    return None if asked is None else Cache(asked, paths)


class Cache:
    """The place of one result."""

    def __init__(self, asked: str, paths: tuple[str, ...]) -> None:
        self.asked = asked
        self.paths = paths
        self.why = ""
        """Why there was nothing to show again, or why a result was not kept: for developers."""

    def recall(self) -> Result | None:
        """Return what an earlier run found, if all that they rest on still holds."""
        from torchpin.cache.files import read
        from torchpin.cache.verify import contents_of

        entry, self.why = read(self.asked)
        if entry is None:
            return None
        contents, self.why = contents_of(entry, self.paths)
        if contents is None:
            return None
        from torchpin.cache.entry import unpack

        found = unpack(entry, contents)
        if found is None:
            self.why = "is none of this torchpin"
        return found

    def kept(self, run: Callable[[], Result]) -> Result:
        """Return what a run finds, and keep it; where that cannot be done safely, it is not kept.

        All that the run asks of the file system is noted, from its beginning.
        """
        trace = seen.start()
        try:
            result = run()
        finally:
            seen.stop()
        if not trace.sound or trace.walk is None:
            self.why = "files changed during the run"
            return result
        from torchpin.cache.entry import pack
        from torchpin.cache.files import write

        entry, self.why = pack(*result, trace)
        if entry is not None:
            self.why = write(self.asked, entry)
        return result
