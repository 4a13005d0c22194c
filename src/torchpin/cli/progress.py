"""A progress bar on standard error, for what may take minutes."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID
    from typing_extensions import Self

SHOWN_AFTER = 1.0
"""Seconds before the progress bar appears."""


class Bar:
    """A progress bar on standard error, if that is a terminal and it takes over a second."""

    def __init__(self, *, quiet: bool) -> None:
        self._wanted = not quiet and sys.stderr.isatty()
        self._begun = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def columns(self) -> list[ProgressColumn]:
        """Return what stands behind the description."""
        raise NotImplementedError

    def draw(self, description: str, done: int, total: int | None, size: str = "") -> None:
        """Show how much of how much is done; ``size`` is for columns that name it."""
        if not self._wanted or time.monotonic() - self._begun < SHOWN_AFTER:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                *self.columns(),
                console=Console(file=sys.stderr),
                transient=True,
            )
            self._task = self._bar.add_task("", size="")
            self._bar.start()
        assert self._task is not None
        self._bar.update(
            self._task, description=description, completed=done, total=total, size=size
        )


class FilesBar(Bar):
    """Shows how many files, installs or findings are done."""

    def columns(self) -> list[ProgressColumn]:
        """Return the column of numbers."""
        from rich.progress import MofNCompleteColumn

        return [MofNCompleteColumn()]
