"""The text report of ``verify``, as it comes; in 80 columns, but paths and symbols stay whole."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from torchpin.report.style import Style, clean
from torchpin.verify.model import (
    FAILED,
    INCOMPLETE,
    OK,
    Host,
    HostGpu,
    Kernels,
    Record,
    Summary,
    Work,
)

WIDTH = 79
_NAME, _STATUS = 13, 9
_TITLES = {"cublas": "cuBLAS", "cudnn": "cuDNN", "linalg": "linear alg."}
_FILES = {
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "cusolver": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "nccl": "NCCL",
}


class TextReport:
    """Turns records into text, each when it can be told."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._waiting: list[Work] = []
        self._last: tuple[str, list[str]] | None = None

    def add(self, record: Record) -> str:
        """Return what is to be printed now."""
        if isinstance(record, Host):
            return _joined(self._host(record))
        if isinstance(record, Summary):
            return _joined([*self._flush(), *self._summary(record)])
        out: list[str] = []
        if self._waiting and _place(self._waiting[0]) != _place(record):
            out = self._flush()
        self._waiting.append(record)
        return _joined(out)

    def _host(self, host: Host) -> list[str]:
        system = [f"Python {host.python}" if host.python else "no Python", host.platform]
        system += [f"glibc {host.glibc}"] if host.glibc else []
        system += [f"driver {host.driver}"] if host.driver else []
        out = [self._style.paint("bold", clean(f"{host.node}: {', '.join(system)}"))]
        out += _wrap(_installed(host))
        for gpus in _alike(host.gpus):
            out += _wrap(_gpus(gpus))
        if not host.gpus:
            out.append("  no GPU: the work is done on the CPU")
        for kernels in host.torch.libraries if host.torch is not None else ():
            out += _wrap(_kernels(kernels))
        if host.group is not None:
            out += _wrap(f"group {host.group} of the profile")
        for text in host.differences:
            out += [self._style.paint("bad", line) for line in _wrap(f"differs: {text}")]
        for text in host.notes:
            out += [self._style.paint("dim", line) for line in _wrap(f"note: {text}")]
        return out

    def _flush(self) -> list[str]:
        """Return the block of a GPU; one that is like the last is told in a line."""
        works, self._waiting = self._waiting, []
        if not works:
            return []
        place = _place(works[0])
        libraries: dict[str, list[Work]] = {}
        for work in works:
            libraries.setdefault(work.library, []).append(work)
        lines = [line for some in libraries.values() for line in self._library(some)]
        title = self._style.paint("bold", place)
        if self._last is not None and self._last[1] == lines:
            return ["", f"{title}: as {self._last[0]}"]
        self._last = place, lines
        return ["", title, *lines]

    def _library(self, works: list[Work]) -> list[str]:
        out: list[str] = []
        title = f"  {_TITLES.get(works[0].library, works[0].library):<{_NAME}}"
        fine = [work for work in works if work.status == OK]
        if fine:
            out += _row(title, self._style.paint("good", "ok"), "ok", _told(fine))
        for work in works:
            if work.status == FAILED:
                words = self._style.paint("bad", "FAILED")
                out += _row(title, words, "FAILED", _failed(work))
        left: dict[str, list[Work]] = {}
        for work in works:
            if work.status not in (OK, FAILED):
                left.setdefault(work.message or "", []).append(work)
        for message, skipped in left.items():
            words = f"{_told(skipped)}: {message}" if message else _told(skipped)
            out += _row(title, self._style.paint("dim", "skipped"), "skipped", words)
        return out

    def _summary(self, summary: Summary) -> list[str]:
        out = [""]
        for text in summary.notes:
            out += [self._style.paint("dim", line) for line in _wrap(f"note: {text}")]
        counted = [f"{summary.ran} tried", f"{summary.failed or 'none'} failed"]
        counted += [f"{summary.skipped} skipped"] if summary.skipped else []
        odd = summary.disagreements
        counted += [f"{odd} otherwise than predicted"] if odd else []
        words = {OK: "runs", FAILED: "does not run as it should", INCOMPLETE: "no work was tried"}
        verdict = words[summary.status]
        if summary.status == FAILED and not summary.failed:
            verdict = "runs, but is not as the profile says"
        first = f"{clean(summary.node)}: "
        lines = textwrap.wrap(
            f"{first}{verdict} ({', '.join(counted)})",
            WIDTH,
            subsequent_indent=" " * min(len(first), 8),
            break_long_words=False,
            break_on_hyphens=False,
        )
        paint = "good" if summary.status == OK else "bad"
        return [*out, *(self._style.paint(paint, line) for line in lines)]


def _place(work: Work) -> str:
    if work.operation == "import":
        return "Python"
    return "CPU" if work.gpu is None else f"GPU {work.gpu}"


def _installed(host: Host) -> str:
    if host.torch is None:
        return "torch is not installed"
    cuda = f" (CUDA {host.torch.cuda})" if host.torch.cuda else ""
    rest = "".join(f", {name} {text}" for name, text in host.packages if name != "torch")
    return f"torch {host.torch.version}{cuda}{rest}"


def _alike(gpus: Iterable[HostGpu]) -> list[list[HostGpu]]:
    groups: dict[HostGpu, list[HostGpu]] = {}
    for gpu in gpus:
        groups.setdefault(gpu._replace(number=0), []).append(gpu)
    return list(groups.values())


def _gpus(gpus: Sequence[HostGpu]) -> str:
    first = gpus[0]
    facts = [first.capability or first.gfx or ""]
    facts += [f"{first.memory_mib / 1024:.0f} GiB"] if first.memory_mib else []
    known = ", ".join(fact for fact in facts if fact)
    numbers = ", ".join(str(gpu.number) for gpu in gpus)
    return f"GPU {numbers}: {first.name}" + (f" ({known})" if known else "")


def _kernels(kernels: Kernels) -> str:
    names = [name.removeprefix("sm_") for name in kernels.sass]
    ptx = [name.removeprefix("compute_") for name in kernels.ptx]
    names += ["PTX", *ptx] if ptx else []
    title = _FILES.get(kernels.library, kernels.library)
    return f"kernels of {title}: {' '.join(names)}"


def _told(works: Sequence[Work]) -> str:
    """Name operations: ``matmul fp32, fp16``."""
    names: dict[str, list[str]] = {}
    for work in works:
        name, _, dtype = work.operation.rpartition(" ")
        if dtype in ("fp32", "fp16", "bf16"):
            names.setdefault(name, []).append(dtype)
        else:
            names.setdefault(work.operation, [])
    told = [" ".join((name, ", ".join(types))).rstrip() for name, types in names.items()]
    text = ", ".join(told)
    odd: dict[str, list[Work]] = {}
    for work in works:
        if work.agrees is False:
            odd.setdefault(str(work.predicted), []).append(work)
    if odd and len(works) == sum(map(len, odd.values())) and len(odd) == 1:
        return f"{text} (predicted {next(iter(odd))})"
    for predicted, some in odd.items():
        text += f" ({_told([work._replace(agrees=None) for work in some])}: predicted {predicted})"
    return text


def _failed(work: Work) -> str:
    reason = (work.reason or "failed").replace("-", " ")
    code = f" (CUDA error {work.error_code})" if work.error_code is not None else ""
    told = f": {work.message}" if work.message else ""
    head = f"{work.operation}: {reason}"
    if reason.startswith(f"{work.operation} "):  # import: import failed
        head = reason
    text = f"{head}{code}{told}"
    if work.predicted is not None and work.agrees is not None:
        text += "; as predicted" if work.agrees else f"; predicted: {work.predicted}"
    return text


def _row(title: str, painted: str, status: str, words: str) -> list[str]:
    indent = " " * (len(title) + _STATUS)
    lines = textwrap.wrap(
        clean(words),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    first = title + painted + " " * (_STATUS - len(status)) + lines[0][len(indent) :]
    return [first, *lines[1:]]


def _wrap(words: str) -> list[str]:
    return textwrap.wrap(
        clean(words),
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
