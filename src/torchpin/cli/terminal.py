"""Where output goes and whether it has colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TextIO

from torchpin.errors import TorchpinError
from torchpin.report.style import Style


def wants_color(*, no_color: bool, environ: Mapping[str, str], is_terminal: bool) -> bool:
    """Tell whether to paint: ``--no-color``, NO_COLOR, FORCE_COLOR, then the terminal decide.

    A variable counts if it is set and not empty (no-color.org, force-color.org).
    """
    if no_color or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return is_terminal and environ.get("TERM") != "dumb"


def style(*, no_color: bool) -> Style:
    """Return the style for standard output."""
    return Style(
        wants_color(no_color=no_color, environ=os.environ, is_terminal=sys.stdout.isatty())
    )


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
