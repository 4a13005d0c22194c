"""Tables of what repeats: each text, reason and answer is written once and named by its number."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from torchpin.evidence import ORDER
from torchpin.judge.model import BADNESS, Reason
from torchpin.matrix.facts import Answer, Steps

_T = TypeVar("_T", bound=Hashable)


class Numbers(Generic[_T]):
    """Gives each value a number: equal values have one."""

    def __init__(self) -> None:
        self.values: list[_T] = []
        self._numbers: dict[_T, int] = {}

    def of(self, value: _T) -> int:
        """Return the number of a value."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


class Tables:
    """The tables of a page."""

    def __init__(self) -> None:
        self.texts: Numbers[str] = Numbers()
        self.reasons: Numbers[tuple[int, int, int, int]] = Numbers()
        self.answers: Numbers[tuple[int, ...]] = Numbers()
        self.steps: Numbers[tuple[object, ...]] = Numbers()
        self.rows: Numbers[tuple[int, ...]] = Numbers()

    def reason(self, reason: Reason, own: Sequence[str] = ()) -> int:
        """Return the number of a reason: (text, status, evidence, source).

        ``own``: the sources of the build in question; they are named from the end (-1, -2 …), so
        that what is said alike of many builds is one reason.
        """
        source = reason.source
        return self.reasons.of(
            (
                self.texts.of(reason.text),
                BADNESS.index(reason.status),
                ORDER.index(reason.evidence),
                ~own.index(source) if source in own else self.texts.of(source),
            )
        )

    def answer(self, answer: Answer, own: Sequence[str] = (), base: Answer | None = None) -> int:
        """Return the number of an answer: (level, status, reasons …).

        With ``base``: only what is said besides, and what is no longer said (``~reason``).
        """
        status = max((BADNESS.index(reason.status) for reason in answer.reasons), default=0)
        told = [self.reason(reason, own) for reason in answer.reasons]
        if base is not None:
            before = [self.reason(reason, own) for reason in base.reasons]
            gone = [~number for number in before if number not in told]
            told = [number for number in told if number not in before] + gone
        return self.answers.of((answer.level, status, *told))

    def step(
        self, steps: Steps, own: Sequence[str] = (), floors: Sequence[str] | None = None
    ) -> int:
        """Return the number of steps: (unset, from, answer, from, answer …).

        ``floors``: versions are named by their place in it. The answers behind the first tell how
        they differ from it.
        """
        parts: list[object] = [self.answer(steps.unset, own)]
        for version, answer in steps.steps:
            parts.append(floors.index(version) if floors is not None else version)
            parts.append(self.answer(answer, own, steps.unset))
        return self.steps.of(tuple(parts))

    def row(self, numbers: Sequence[int]) -> int:
        """Return the number of a row of numbers."""
        return self.rows.of(tuple(numbers))
