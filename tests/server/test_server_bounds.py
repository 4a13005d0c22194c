"""What many texts cost the server: one run for many changes, and no memory of what is gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from tests.server.editor import FLEET

from torchpin import engine
from torchpin.server import state as state_module
from torchpin.server.analysis import Memory, analyse
from torchpin.server.buffers import Buffer, opened
from torchpin.server.state import State
from torchpin.server.units import Unit


def text_of(path: Path, version: int = 1) -> Buffer:
    return opened(path.as_uri(), "plaintext", version, "torch==2.14.1\n", str(path.parent))


def test_what_changes_during_a_run_is_judged_by_one_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    runs: list[int] = []
    shown: dict[str, int] = {}

    def counted(*args: object) -> object:
        runs.append(1)
        return analyse(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(state_module, "analyse", counted)

    async def run() -> None:
        state = State(
            engine.Options(()),
            None,
            lambda uri, _, some: shown.update({uri: len(some)}),
            lambda _: None,
        )
        state.moved((str(tmp_path),))
        try:
            texts = [text_of(tmp_path / str(number) / "requirements.txt") for number in range(60)]
            asked = []
            for one in texts:
                state.put(one, at_once=True)
                asked.append(asyncio.ensure_future(state.fresh(state.unit(one))))
                await asyncio.sleep(0)
            for answer in await asyncio.gather(*asked):
                assert answer.report is not None
            unit = state.unit(texts[0])
            last = await state.fresh(unit)
            assert len(last.buffers) == 60 and state.analyses[unit] is last
        finally:
            state.close()

    asyncio.run(run())
    assert len(runs) <= 6  # of sixty changes
    assert len(shown) == 60 and set(shown.values()) == {2}


def test_texts_that_are_closed_leave_no_trace(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(FLEET)
    memory, options = Memory(), engine.Options(())
    unit = Unit(str(tmp_path), str(tmp_path / "torchpin.toml"))
    on_disk = tmp_path / "requirements-disk.txt"
    on_disk.write_text("torch==2.7.1\n")
    texts = [text_of(tmp_path / f"requirements-{number}.txt") for number in range(5)]
    for one in texts:
        analyse(unit, [one], (str(tmp_path),), options, memory)
        assert set(memory.documents) == {str(on_disk), one.path}
    on_disk.unlink()
    memory.forget_files()
    analyse(unit, texts[:1], (str(tmp_path),), options, memory)
    assert set(memory.documents) == {texts[0].path}
