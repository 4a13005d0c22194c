"""Records of ``verify`` as JSON lines and back; pure.

A line is ASCII, so that what a node is called or what torch says never breaks a log into pieces.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from torchpin.errors import TorchpinError
from torchpin.verify.model import (
    LIBRARIES,
    PREDICTIONS,
    REASONS,
    SUMMARY_STATUSES,
    VERSION,
    WORK_STATUSES,
    Host,
    HostGpu,
    Kernels,
    Record,
    Summary,
    TorchBuild,
    Work,
)

_T = TypeVar("_T")
_MISSING = object()
_SHOWN = 60


class LineError(TorchpinError):
    """A line is none of ``torchpin verify``."""


def to_line(record: Record) -> str:
    """Return a record as one line of JSON, without the line's end."""
    kind = type(record).__name__.lower()
    return json.dumps({"version": VERSION, "kind": kind, **_plain(record)}, allow_nan=False)


def read_line(text: str, *, path: str | None = None, line: int | None = None) -> Record:
    """Return the record of a line.

    Fields that this version does not know are passed over.

    Args:
        text: the line.
        path: where it comes from, for the error.
        line: its number there.

    Raises:
        LineError: it is no line of ``torchpin verify``, or one of a later version.
    """
    try:
        return _record(text)
    except _FieldError as error:
        start = text.strip()
        shown = start if len(start) <= _SHOWN else start[: _SHOWN - 1] + "…"
        raise LineError(
            f"no line of `torchpin verify`: {error}: {shown!r}", path=path, line=line
        ) from None


class _FieldError(Exception):
    """What is wrong with a line."""


def _plain(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = record._asdict()
    if isinstance(record, Host):
        fields["gpus"] = [_index_first(gpu) for gpu in record.gpus]
        fields["packages"] = dict(record.packages)
        if record.torch is not None:
            fields["torch"] = {
                **record.torch._asdict(),
                "libraries": [library._asdict() for library in record.torch.libraries],
            }
    return fields


def _index_first(gpu: HostGpu) -> dict[str, Any]:
    fields = gpu._asdict()
    return {"index": fields.pop("number"), **fields}


def _record(text: str) -> Record:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise _FieldError("not JSON") from None
    if not isinstance(value, dict):
        raise _FieldError("not a JSON object")
    kind, version = value.get("kind"), value.get("version")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None or type(version) is not int:
        raise _FieldError('it has no "kind" and "version" of one')
    if version > VERSION:
        raise _FieldError(f"it is of version {version}, this torchpin reads {VERSION}: upgrade it")
    return reader(_Fields(value))


class _Fields:
    """The fields of an object; each must be of its type."""

    def __init__(self, value: object, name: str = "") -> None:
        if not isinstance(value, dict):
            raise _FieldError(f'"{name}" is not an object')
        self._value = value

    def _get(self, name: str, kinds: tuple[type, ...], default: object) -> Any:
        value = self._value.get(name, default)
        if value is _MISSING:
            raise _FieldError(f'"{name}" is missing')
        # bool is an int for Python, not for JSON
        if value is not default and (
            not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
        ):
            raise _FieldError(f'"{name}" is not {_words(kinds)}')
        return value

    def text(self, name: str) -> str:
        return str(self._get(name, (str,), _MISSING))

    def one_of(self, name: str, choice: tuple[str, ...]) -> str:
        value = self.text(name)
        if value not in choice:
            raise _FieldError(f'"{name}" is {value[:_SHOWN]!r}, not one of {", ".join(choice)}')
        return value

    def maybe_one_of(self, name: str, choice: tuple[str, ...]) -> str | None:
        return None if self.maybe_text(name) is None else self.one_of(name, choice)

    def maybe_text(self, name: str) -> str | None:
        value = self._get(name, (str,), None)
        return None if value is None else str(value)

    def whole(self, name: str) -> int:
        return int(self._get(name, (int,), _MISSING))

    def maybe_whole(self, name: str) -> int | None:
        value = self._get(name, (int,), None)
        return None if value is None else int(value)

    def number(self, name: str) -> float:
        return float(self._get(name, (int, float), 0.0))

    def truth(self, name: str) -> bool | None:
        value = self._get(name, (bool,), None)
        return None if value is None else bool(value)

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._get(name, (list,), ())
        if not all(isinstance(value, str) for value in values):
            raise _FieldError(f'"{name}" is not a list of texts')
        return tuple(values)

    def objects(self, name: str, read: Callable[[_Fields], _T]) -> tuple[_T, ...]:
        return tuple(read(_Fields(value, name)) for value in self._get(name, (list,), ()))

    def maybe_object(self, name: str, read: Callable[[_Fields], _T]) -> _T | None:
        value = self._get(name, (dict,), None)
        return None if value is None else read(_Fields(value, name))

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        values: dict[str, object] = self._get(name, (dict,), None) or {}
        return tuple(sorted((key, _Fields(values).text(key)) for key in values))


def _words(kinds: tuple[type, ...]) -> str:
    names = {str: "a text", int: "a whole number", float: "a number", list: "a list"}
    return {**names, bool: "true or false", dict: "an object"}[kinds[-1]]


def _host(fields: _Fields) -> Host:
    return Host(
        node=fields.text("node"),
        python=fields.maybe_text("python"),
        platform=fields.text("platform"),
        glibc=fields.maybe_text("glibc"),
        driver=fields.maybe_text("driver"),
        gpus=fields.objects("gpus", _gpu),
        packages=fields.pairs("packages"),
        torch=fields.maybe_object("torch", _torch),
        group=fields.maybe_text("group"),
        differences=fields.texts("differences"),
        notes=fields.texts("notes"),
    )


def _gpu(fields: _Fields) -> HostGpu:
    return HostGpu(
        number=fields.whole("index"),
        name=fields.text("name"),
        capability=fields.maybe_text("capability"),
        memory_mib=fields.maybe_whole("memory_mib"),
        gfx=fields.maybe_text("gfx"),
    )


def _torch(fields: _Fields) -> TorchBuild:
    return TorchBuild(
        version=fields.text("version"),
        cuda=fields.maybe_text("cuda"),
        archs=fields.texts("archs"),
        channel=fields.maybe_text("channel"),
        libraries=fields.objects("libraries", _kernels),
        evidence=fields.maybe_text("evidence"),
    )


def _kernels(fields: _Fields) -> Kernels:
    return Kernels(fields.text("library"), fields.texts("sass"), fields.texts("ptx"))


def _work(fields: _Fields) -> Work:
    return Work(
        node=fields.text("node"),
        gpu=fields.maybe_whole("gpu"),
        library=fields.one_of("library", LIBRARIES),
        operation=fields.text("operation"),
        status=fields.one_of("status", WORK_STATUSES),
        reason=fields.maybe_one_of("reason", REASONS),
        error_code=fields.maybe_whole("error_code"),
        message=fields.maybe_text("message"),
        seconds=fields.number("seconds"),
        predicted=fields.maybe_one_of("predicted", PREDICTIONS),
        agrees=fields.truth("agrees"),
    )


def _summary(fields: _Fields) -> Summary:
    return Summary(
        node=fields.text("node"),
        group=fields.maybe_text("group"),
        status=fields.one_of("status", SUMMARY_STATUSES),
        ran=fields.whole("ran"),
        failed=fields.whole("failed"),
        skipped=fields.whole("skipped"),
        disagreements=fields.whole("disagreements"),
        notes=fields.texts("notes"),
    )


_READERS: dict[str, Callable[[_Fields], Record]] = {
    "host": _host,
    "work": _work,
    "summary": _summary,
}
