"""What the server knows: open texts, folders, the last analysis of each unit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lsprotocol.types import Diagnostic

from torchpin import engine
from torchpin.fleet.model import Fleet
from torchpin.server.analysis import Analysis, Memory, analyse
from torchpin.server.buffers import Buffer, overlay_of
from torchpin.server.diagnostics import Places, diagnostics
from torchpin.server.fits import Fits
from torchpin.server.units import Unit, inside, unit_of

Publish = Callable[[str, int | None, list[Diagnostic]], None]
Tell = Callable[[str], None]
_T = TypeVar("_T")


class State:
    """Open texts and what is known of them.

    All of the engine runs in one thread of its own, one run after the other, so that the server
    answers while it works; everything else runs in the thread of the event loop.
    """

    def __init__(
        self, options: engine.Options, fixed: Fleet | None, publish: Publish, tell: Tell
    ) -> None:
        self.options = options
        self.fixed = fixed
        self.publish = publish
        self.tell = tell
        self.encoding = "utf-16"
        self.folders: tuple[str, ...] = ()
        self.buffers: dict[str, Buffer] = {}
        self.delay = 0.2
        """Seconds without a change after which texts are judged."""
        self.analyses: dict[Unit, Analysis] = {}
        self._stale: set[Unit] = set()
        self._memory = Memory()
        self._fits: tuple[Analysis, Fits] | None = None
        self._pool = ThreadPoolExecutor(1, "torchpin")
        self._timers: dict[Unit, asyncio.TimerHandle] = {}
        self._running: dict[Unit, tuple[tuple[Buffer, ...], asyncio.Task[Analysis]]] = {}
        self._shown: dict[str, Unit] = {}
        """URIs with diagnostics, and the unit that they come from."""
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[Analysis]] = set()

    def close(self) -> None:
        """Start nothing more."""
        for timer in self._timers.values():
            timer.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def unit(self, buffer: Buffer) -> Unit:
        """Return the unit of an open text."""
        return unit_of(buffer, self.folders, overlay_of(self._profiles()))

    def _profiles(self) -> list[Buffer]:
        return [one for one in self.buffers.values() if one.profile]

    def units(self) -> set[Unit]:
        """Return the units that anything open belongs to."""
        return {self.unit(one) for one in self.buffers.values()}

    def put(self, buffer: Buffer, *, at_once: bool = False) -> None:
        """Take in a text that was opened or changed, and have it judged."""
        self.buffers[buffer.uri] = buffer
        self.plan([buffer], at_once=at_once)

    def drop(self, uri: str) -> None:
        """Forget a text that was closed: what is on disk counts."""
        buffer = self.buffers.pop(uri, None)
        if buffer is not None:
            self.plan([buffer])

    def saved(self, paths: Iterable[str]) -> None:
        """Look for files anew after some were written, made or removed."""
        self._memory.forget_files()
        paths = list(paths)
        for unit in self.units():
            if any(inside(path, unit.root) or path == unit.profile for path in paths):
                self._stale.add(unit)
                self._later(unit, self.delay)

    def moved(self, folders: tuple[str, ...]) -> None:
        """Take in the folders of the workspace."""
        self.folders = folders
        self._memory.forget_files()
        self.plan(self.buffers.values(), everything=True)

    def plan(
        self, changed: Iterable[Buffer], *, everything: bool = False, at_once: bool = False
    ) -> None:
        """Have judged what some changed texts touch; a profile touches everything."""
        changed = list(changed)
        units = self.units()
        gone = {*self._shown.values(), *self.analyses} - units
        for unit in gone:
            self.analyses.pop(unit, None)
            self._clear(unit)
        if everything or any(one.profile for one in changed):
            touched = units
        else:
            touched = {self.unit(one) for one in changed} & units
        for unit in touched:
            self._stale.add(unit)
            self._later(unit, 0 if at_once else self.delay)

    def _clear(self, unit: Unit) -> None:
        for uri in [one for one, owner in self._shown.items() if owner == unit]:
            del self._shown[uri]
            self.publish(uri, None, [])

    def _later(self, unit: Unit, delay: float) -> None:
        timer = self._timers.pop(unit, None)
        if timer is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers[unit] = loop.call_later(delay, self._start, unit)

    def _start(self, unit: Unit) -> None:
        self._timers.pop(unit, None)
        if any(self.unit(one) == unit for one in self.buffers.values()):
            task = asyncio.ensure_future(self.fresh(unit))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Analysis]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.tell(f"cannot judge: {task.exception()!r}")

    async def fresh(self, unit: Unit) -> Analysis:
        """Return an analysis of the texts as they are now.

        Of a unit one run is under way; what changes meanwhile is judged by one more, not by one a
        change.
        """
        while True:
            now = tuple(self.buffers.values())
            known, stale = self.analyses.get(unit), unit in self._stale
            if known is not None and not stale and known.buffers == now:
                return known
            running = self._running.get(unit)
            if running is None:
                self._stale.discard(unit)
                running = self._running[unit] = now, asyncio.ensure_future(self._run(unit, now))
            elif stale or running[0] != now:
                await asyncio.wait([running[1]])
                continue
            return await asyncio.shield(running[1])

    async def _run(self, unit: Unit, now: tuple[Buffer, ...]) -> Analysis:
        options = self.options._replace(profile=unit.profile)
        try:
            analysis, shown = await self.work(
                self._judge, unit, now, self.folders, options, self.encoding
            )
        finally:
            del self._running[unit]
        for text in analysis.told:
            if text not in self._told:
                self._told.add(text)
                self.tell(text)
        if self._current(analysis):
            self.analyses[unit] = analysis
            self._show(unit, shown)
        return analysis

    def _judge(
        self,
        unit: Unit,
        now: tuple[Buffer, ...],
        folders: tuple[str, ...],
        options: engine.Options,
        encoding: str,
    ) -> tuple[Analysis, list[tuple[str, int | None, list[Diagnostic]]]]:
        analysis = analyse(unit, now, folders, options, self._memory, self.fixed)
        places = Places(analysis, encoding)
        shown = []
        for path, some in diagnostics(analysis, encoding).items():
            buffer = analysis.buffer(path)
            shown.append((places.uri(path), buffer.version if buffer else None, some))
        return analysis, shown

    def _current(self, analysis: Analysis) -> bool:
        """Tell whether nothing that was judged has changed since."""
        real = {os.path.realpath(one) for one in analysis.options.files}
        if analysis.unit.profile is not None:
            real.add(os.path.realpath(analysis.unit.profile))

        def mine(buffers: Iterable[Buffer]) -> list[Buffer]:
            return [one for one in buffers if one.real in real]

        return mine(analysis.buffers) == mine(self.buffers.values())

    def _show(self, unit: Unit, shown: list[tuple[str, int | None, list[Diagnostic]]]) -> None:
        before = {uri for uri, owner in self._shown.items() if owner == unit}
        for uri, version, some in shown:
            if some or uri in self.buffers or uri in self._shown:
                self.publish(uri, version, some)
            if some or uri in self.buffers:
                self._shown[uri] = unit
            else:
                self._shown.pop(uri, None)
            before.discard(uri)
        for uri in before:
            del self._shown[uri]
            self.publish(uri, None, [])

    async def work(self, function: Callable[..., _T], *args: object) -> _T:
        """Run a function in the thread of the engine."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    def fits(self, analysis: Analysis) -> Fits | None:
        """Return what judges on the fleet of an analysis; kept as long as the fleet is the same."""
        if analysis.context is None or not analysis.context.declared:
            return None
        if (
            self._fits is None
            or self._fits[0].fleet != analysis.fleet
            or self._fits[0].context is None
            or self._fits[0].context.catalog is not analysis.context.catalog
        ):
            self._fits = analysis, Fits(analysis.context)
        return self._fits[1]
