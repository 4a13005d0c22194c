"""One run of ``verify`` on this machine: its records as they come."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchpin.errors import UsageError
from torchpin.fleet.model import Fleet
from torchpin.named import NamedTuple
from torchpin.report.style import clean
from torchpin.verify.classify import COMPANIONS, classify, first_line
from torchpin.verify.compare import choose_group, differences
from torchpin.verify.held import kernels_of, read_held
from torchpin.verify.installed import Package, ask, read_installed
from torchpin.verify.machine import Card, child_environment, hidden, hides, look, place
from torchpin.verify.model import (
    CPU_BUILD,
    CRASHED,
    DRIVER_TOO_OLD,
    FAILED,
    IMPORT_FAILED,
    INCOMPLETE,
    NO_DRIVER,
    NO_KERNEL_IMAGE,
    OK,
    OTHER,
    SKIPPED,
    TIMEOUT,
    WRONG_RESULT,
    Host,
    Kernels,
    Record,
    Summary,
    TorchBuild,
    Work,
)
from torchpin.verify.predict import Prediction, build_of, compared, is_version, predict
from torchpin.verify.run import Died, Event, TimedOut, converse
from torchpin.verify.secrets import hide
from torchpin.verify.worker import OPERATIONS

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog

IMPORT, FIND = "import", "find the GPU"
_MOST_HANGS = 2
"""So many pieces of work on one GPU may hang; what is left is then skipped."""
_SHOWN = 200
_ABOUT_GPUS = ("CUDA", "cuda", "capability", "driver", "HIP")
"""Warnings of torch that are told: those that have one of these words."""


class Asked(NamedTuple):
    """What the command line asks for."""

    python: str
    gpus: tuple[int, ...] = ()
    """Numbers of the GPUs to try; empty: all."""
    group: str | None = None
    timeout: float = 300.0
    """Seconds that one piece of work may take."""


def verify(
    asked: Asked, fleet: Fleet | None, catalog: Catalog, environ: Mapping[str, str]
) -> Iterator[Record]:
    """Yield the host, each piece of work as it is done, and the summary.

    Args:
        asked: what is asked for.
        fleet: of the profile; None: there is none.
        catalog: where builds are looked up.
        environ: the environment; the worker gets it too.

    Raises:
        UsageError: the Python does not start, there is no such group or GPU.
    """
    yield from _Session(asked, fleet, catalog, environ).records()


class _Session:
    def __init__(
        self, asked: Asked, fleet: Fleet | None, catalog: Catalog, environ: Mapping[str, str]
    ) -> None:
        self._asked, self._catalog = asked, catalog
        self._environ = environ
        self._child = child_environment(environ)
        self._here = look(environ)
        group, doubt = choose_group(fleet, asked.group, self._here)
        self._group, self._notes = group, [*self._here.notes]
        if doubt:
            self._notes.append(doubt)
        self._python = ask(asked.python, self._child)
        packages = read_installed(self._python.path, catalog.packages())
        self._packages = {package.name: package for package in packages}
        self._held = {
            name: read_held(package)
            for name, package in self._packages.items()
            if name in ("torch", *COMPANIONS)
        }
        self._warnings: dict[str, None] = {}
        self._done: list[Work] = []

    def records(self) -> Iterator[Record]:
        imported, probe = self._probe()
        self._here, numbers = place(self._here, probe.devices)
        for number in self._asked.gpus:
            if all(card.host.number != number for card in self._here.cards):
                known = ", ".join(str(card.host.number) for card in self._here.cards)
                raise UsageError(
                    f"--gpu {number}: this machine has no such GPU",
                    hint=f"it has {known}" if known else "it has none",
                )
        differing = self._differences()
        yield self._host(probe, differing)
        plan = [imported]
        self._done.append(self._predicted(imported, self._here.cards))
        yield self._done[-1]
        if plan[0].status == OK:
            for work in self._all_work(probe, numbers):
                self._done.append(work)
                yield work
        yield self._summary(differing)

    # What torch says of itself

    def _probe(self) -> tuple[Work, _Probe]:
        """Import torch once and ask what it finds."""
        node = self._here.node
        if "torch" not in self._packages:
            text = (
                f"torch is not installed for {self._python.executable}; --python PATH names another"
            )
            work = Work(node, None, "torch", IMPORT, FAILED, IMPORT_FAILED, message=clean(text))
            return work, _Probe()
        probe = _Probe()
        work = Work(node, None, "torch", IMPORT, FAILED, OTHER, message="it was never begun")
        at = IMPORT
        for event in self._converse("probe"):
            if isinstance(event, (Died, TimedOut)):
                reason = CRASHED if isinstance(event, Died) else TIMEOUT
                if at == IMPORT:
                    work = work._replace(reason=reason, message=self._told(event.message))
                else:
                    probe = probe._replace(failure=(reason, None, self._told(event.message)))
            elif event["event"] == "place":
                self._place(str(event["file"]))
            elif event["event"] == "begin":
                at = str(event["operation"])
            elif event["event"] == "torch":
                probe = probe._replace(torch=event)
            elif event["event"] == "devices":
                probe = probe._replace(
                    archs=tuple(map(str, event["archs"])),
                    devices=tuple(event["devices"]),
                    driver_cuda=event["driver_cuda"],
                )
            elif event["event"] == "end" and at == IMPORT:
                work = self._ended(work, event, None)
            elif event["event"] == "end" and event.get("types"):
                reason, code = classify(event, "torch", driver_cuda=probe.driver_cuda)
                probe = probe._replace(failure=(reason, code, self._told(event["message"])))
        return work, probe

    def _place(self, file: str) -> None:
        """Note a torch that hides the one that is installed, as by ``PYTHONPATH``."""
        package = self._packages["torch"]
        own = os.path.realpath(os.path.join(package.folder, "torch"))
        if os.path.isdir(own) and os.path.dirname(os.path.realpath(file)) != own:
            self._notes.append(
                f"`import torch` takes {file}, which hides torch {package.full_version} in "
                f"{package.folder}: look at PYTHONPATH"
            )

    def _converse(self, task: str, *arguments: str) -> Iterator[Event | Died | TimedOut]:
        for event in converse(
            self._python.executable,
            task,
            *arguments,
            timeout=self._asked.timeout,
            environ=self._child,
        ):
            if isinstance(event, dict) and event.get("event") == "warning":
                text = " ".join(str(event["text"]).split())
                if any(word in text for word in _ABOUT_GPUS):
                    self._warnings[text] = None
                continue
            yield event

    def _ended(self, work: Work, event: Event, driver_cuda: int | None) -> Work:
        """Return work that the worker did to its end."""
        seconds = round(float(event["seconds"]), 3)
        if event.get("skipped"):
            return work._replace(
                status=SKIPPED, reason=None, message=str(event["skipped"]), seconds=seconds
            )
        if event.get("wrong"):
            return work._replace(
                reason=WRONG_RESULT, message=f"the result {event['wrong']}", seconds=seconds
            )
        if not event.get("types"):
            return work._replace(status=OK, reason=None, message=None, seconds=seconds)
        stage = {"stage": "import"} if work.operation == IMPORT else {}
        reason, code = classify({**event, **stage}, work.library, driver_cuda=driver_cuda)
        return work._replace(
            reason=reason, error_code=code, message=self._told(event["message"]), seconds=seconds
        )

    # The machine

    def _differences(self) -> tuple[str, ...]:
        if self._group is None:
            return ()
        return differences(self._group, self._here, self._python.python, self._python.version)

    def _host(self, probe: _Probe, differing: tuple[str, ...]) -> Host:
        here, torch = self._here, self._packages.get("torch")
        notes = [*self._notes]
        build = None
        if torch is not None:
            held = [self._held[name] for name in ("torch", *COMPANIONS) if name in self._held]
            libraries = tuple(kernels for one in held for kernels in one.shown)
            evidence = "files" if libraries else None
            if not libraries:
                libraries = self._published(torch)
                evidence = "catalog" if libraries else None
            notes += [problem for one in held for problem in one.problems]
            stated = self._held["torch"].main
            archs = probe.archs
            if not archs and stated is not None:
                shown = kernels_of("torch", stated)
                archs = (*shown.sass, *shown.ptx)
            build = TorchBuild(
                str((probe.torch or {}).get("version") or torch.full_version),
                (probe.torch or {}).get("cuda") or torch.cuda,
                archs,
                torch.channel or None,
                libraries,
                evidence,
            )
        return Host(
            here.node,
            self._python.version,
            here.platform,
            here.facts.get("glibc"),
            here.facts.get("driver"),
            tuple(card.host for card in here.cards),
            tuple((name, package.full_version) for name, package in self._packages.items()),
            build,
            self._group.name if self._group is not None else None,
            tuple(map(clean, differing)),
            tuple(map(clean, notes)),
        )

    def _published(self, torch: Package) -> tuple[Kernels, ...]:
        """Return what the catalog knows of the kernels of the installed torch."""
        python = self._python.python
        if not is_version(torch.version):
            return ()
        build = build_of(torch, None, self._catalog, self._here.platform, python)
        if build.kernels is None:
            return ()
        lists = (("torch", build.kernels), *build.libraries)
        return tuple(kernels_of(name, kernels) for name, kernels in lists)

    def _predicted(self, work: Work, cards: Sequence[Card]) -> Work:
        """Return work that no one GPU did, with its prediction."""
        if work.operation == IMPORT:
            cards = ()  # what it needs is the system
        return compared(work, self._prediction(cards))

    def _prediction(self, cards: Sequence[Card]) -> Prediction:
        here, python = self._here, self._python.python
        if any(card.gpu is None for card in cards):
            return Prediction((), {})
        builds = {
            name: build_of(package, self._held.get(name), self._catalog, here.platform, python)
            for name, package in self._packages.items()
            if name in ("torch", *COMPANIONS) and is_version(package.version)
        }
        companions = [builds[name] for name in COMPANIONS if name in builds]
        return predict(builds.get("torch"), companions, here.group(cards, python))

    # The work

    def _all_work(self, probe: _Probe, numbers: Sequence[int]) -> Iterator[Work]:
        here, node = self._here, self._here.node
        wanted = [
            card
            for card in here.cards
            if card.host.number in self._asked.gpus or not self._asked.gpus
        ]
        if here.silent and not here.cards:
            text = clean(here.silent)
            yield Work(node, None, "torch", FIND, FAILED, NO_DRIVER, message=text)
            return
        if not wanted:
            yield from self._on("cpu", None, self._prediction(()), None)
            return
        for card in wanted:
            prediction = self._prediction((card,))
            number = card.host.number
            if number not in numbers:
                yield compared(self._not_found(card, probe), prediction)
            for at, of in enumerate(numbers):  # the slices of a MIG card are of one number
                if of == number:
                    yield from self._on(f"cuda:{at}", number, prediction, probe.driver_cuda)

    def _not_found(self, card: Card, probe: _Probe) -> Work:
        """Say why torch does not list a GPU."""
        work = Work(self._here.node, card.host.number, "torch", FIND, FAILED, OTHER)
        torch = probe.torch or {}
        if not torch.get("cuda") and not torch.get("hip"):
            text = f"torch {torch.get('version')} is built without CUDA and ROCm"
            return work._replace(reason=CPU_BUILD, message=clean(text))
        if hides(self._environ, some_are_seen=bool(probe.devices)):
            text = f"hidden from torch by {hidden(self._environ)}"
            return work._replace(status=SKIPPED, reason=None, message=clean(text))
        if probe.failure is not None:
            reason, code, message = probe.failure
            return work._replace(reason=reason, error_code=code, message=message)
        return work._replace(message="torch does not list this GPU")

    def _on(
        self, device: str, gpu: int | None, prediction: Prediction, driver_cuda: int | None
    ) -> Iterator[Work]:
        """Do all work on one device; a process that dies is followed by another."""
        left = {
            operation.name: Work(
                self._here.node, gpu, _library(operation, device), operation.name, FAILED, OTHER
            )
            for operation in OPERATIONS
            if operation.module == "torch" or operation.module in self._packages
        }
        hangs = 0
        while left and hangs < _MOST_HANGS:
            at: str | None = None
            before = len(left)
            for event in self._converse("work", device, *left):
                if isinstance(event, (Died, TimedOut)):
                    hangs += isinstance(event, TimedOut)
                    name = at or next(iter(left))
                    reason = CRASHED if isinstance(event, Died) else TIMEOUT
                    work = left.pop(name)._replace(reason=reason, message=self._told(event.message))
                    if reason == TIMEOUT:
                        work = work._replace(seconds=self._asked.timeout)
                    yield compared(work, prediction)
                elif event["event"] == "begin":
                    at = str(event["operation"])
                elif event["event"] == "end" and at in left:
                    work = self._ended(left.pop(at), event, driver_cuda)
                    at = None
                    yield compared(work, prediction)
            if len(left) == before:
                break  # a process that does nothing will not do more
        for work in left.values():
            text = "not tried: work before it hung" if hangs else "not tried"
            yield work._replace(status=SKIPPED, reason=None, message=text)

    # The end

    def _summary(self, differing: tuple[str, ...]) -> Summary:
        failed = sum(work.status == FAILED for work in self._done)
        skipped = sum(work.status == SKIPPED for work in self._done)
        ran = len(self._done) - skipped
        status = FAILED if failed or differing else OK
        if status == OK and all(
            work.operation == IMPORT for work in self._done if work.status == OK
        ):
            status = INCOMPLETE
        return Summary(
            self._here.node,
            self._group.name if self._group is not None else None,
            status,
            ran,
            failed,
            skipped,
            sum(work.agrees is False for work in self._done),
            tuple(self._verdict(text) for text in self._warnings),
        )

    def _told(self, message: object) -> str:
        text = clean(hide(first_line(str(message)), self._environ))
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

    def _verdict(self, warning: str) -> str:
        """Say of a warning of torch what came of it."""
        told = self._told(warning)
        bad = {work.reason for work in self._done if work.status == FAILED}
        on_gpus = [work for work in self._done if work.gpu is not None and work.status == OK]
        concerned = bad & {NO_KERNEL_IMAGE, DRIVER_TOO_OLD, NO_DRIVER, CPU_BUILD}
        if concerned:
            return f"torch warned, and it does fail: {told}"
        if not self._here.cards:
            return f"torch warned, which does not matter without a GPU: {told}"
        if on_gpus and not bad:
            return f"torch warned in vain, all of the work ran: {told}"
        return f"torch warned: {told}"


class _Probe(NamedTuple):
    torch: Mapping[str, Any] | None = None
    archs: tuple[str, ...] = ()
    devices: tuple[Mapping[str, Any], ...] = ()
    driver_cuda: int | None = None
    failure: tuple[str, int | None, str] | None = None


def _library(operation: Any, device: str) -> str:
    """Return what does the work: on the CPU torch's own kernels do what cuBLAS and cuDNN do."""
    library = str(operation.library)
    return "torch" if device == "cpu" and library in ("cublas", "cudnn") else library
