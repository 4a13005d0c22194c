"""Where output goes, whether it has colours and links, and how wide it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from torchpin.errors import TorchpinError
from torchpin.report.style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_COLOR_LOGS = ("GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "TF_BUILD")
"""Set where the log of a job is shown in colours although it is no terminal."""
_LINKING = ("VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM")
"""Set by terminals that know links (OSC 8)."""
_LINKING_PROGRAMS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "mintty")


def wants_color(
    *, no_color: bool, environ: Mapping[str, str], is_terminal: bool, is_log: bool = False
) -> bool:
    """Tell whether to paint: ``--no-color``, NO_COLOR, FORCE_COLOR, then where the output goes.

    A variable counts if it is set and not empty (no-color.org, force-color.org). The log of a CI
    job is painted where its service shows colours, but nothing that another program may read.
    """
    if no_color or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    if is_terminal:
        return environ.get("TERM") != "dumb"
    return is_log and any(environ.get(name) for name in _COLOR_LOGS)


def wants_links(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Tell whether the terminal is one that makes links of OSC 8; FORCE_HYPERLINK decides first.

    None is taken for one: others would show the escapes, or drop them.
    """
    forced = environ.get("FORCE_HYPERLINK", "")
    if forced:
        return forced != "0"
    if not is_terminal or environ.get("TERM") == "dumb":
        return False
    if environ.get("TERM_PROGRAM") in _LINKING_PROGRAMS:
        return True
    if any(environ.get(name) for name in _LINKING):
        vte = environ.get("VTE_VERSION", "")  # 0.50.0 breaks on links
        return not vte.isdecimal() or int(vte) > 5000
    return environ.get("TERM", "").startswith(("xterm-kitty", "alacritty", "foot", "contour"))


def style(*, no_color: bool, log: bool = False) -> Style:
    """Return the style for standard output.

    Args:
        no_color: ``--no-color`` was given.
        log: it is a report for people: what a CI job prints of it goes to its log.
    """
    terminal = sys.stdout.isatty()
    painted = wants_color(
        no_color=no_color,
        environ=os.environ,
        is_terminal=terminal,
        is_log=log and not terminal and not _is_file(sys.stdout),
    )
    linked = painted and wants_links(os.environ, is_terminal=terminal)
    return Style(painted, columns(sys.stdout), linked)


def _is_file(stream: TextIO) -> bool:
    """Tell whether a stream writes to a file on disk."""
    from stat import S_ISREG

    try:
        return S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # a stream without a file behind it
        return True


def columns(stream: TextIO) -> int:
    """Return how wide the terminal behind ``stream`` is; 0 for a file or a pipe."""
    if not stream.isatty():
        return 0
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # a terminal that does not tell
        return 0


def folded(text: str, stream: TextIO, *, every: bool = False) -> str:
    """Return ``text`` as it reads well on ``stream``: on a terminal its sentences are folded.

    ``every``: all lines are sentences.
    """
    wide = columns(stream)
    if not wide:
        return text
    from torchpin.report.fold import fold

    return fold(text, wide, every=every)


def tell(text: str, *, every: bool = False) -> None:
    """Write a report for people to standard output, folded to the terminal; see ``folded``.

    Raises:
        TorchpinError: the output cannot be written.
    """
    out(folded(text, sys.stdout, every=every))


def out(text: str) -> None:
    """Write ``text`` to standard output as it is.

    Raises:
        TorchpinError: the output cannot be written (a full disk).
    """
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TorchpinError(f"the output cannot be written: {error.strerror}") from error


def note(text: str) -> None:
    """Write a note to standard error: standard output holds the report alone."""
    sys.stderr.write(folded(f"note: {text}\n", sys.stderr))
