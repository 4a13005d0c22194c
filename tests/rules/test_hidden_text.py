"""Sentences of selection with URLs in them: secrets hidden, in linear time."""

from __future__ import annotations

import time

import pytest

from torchpin.rules.lock_stops import hidden


def test_secrets_of_urls_in_a_sentence() -> None:
    text = "torch has two indexes: https://u:p@a.example/simple, git+https://t0k3n@b.example/x"
    assert hidden(text) == (
        "torch has two indexes: https://****@a.example/simple, git+https://****@b.example/x"
    )


@pytest.mark.parametrize("piece", ["a", "a.", "a+", "a:", "a:/", "a-b", "://", "a ://"])
def test_hostile_text_takes_linear_time(piece: str) -> None:
    begin = time.process_time()
    hidden(piece * (200_000 // len(piece)))
    assert time.process_time() - begin < 2
