"""Whatever changes in a folder, a check with the cache says what one without it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.cache_world import ARGUMENTS, FORMATS, World, run

STEPS = 40


@pytest.mark.parametrize("seed", range(6))
def test_a_kept_result_is_never_stale(
    seed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = World(tmp_path, seed, monkeypatch, git=bool(seed % 2))
    done: list[str] = []
    for _ in range(12):
        done.append(world.change())
    for _ in range(STEPS):
        done += [world.change() for _ in range(world.chance.choice((0, 1, 1, 1, 2)))]
        arguments = world.chance.choice((*ARGUMENTS, *((".",),) * 12))
        shown = (*arguments, "--output-format", world.chance.choice(FORMATS))
        plain = run((*shown, "--no-cache"), capsys)
        assert plain.code != 3, (done, plain.err)
        first, second = run(shown, capsys), run(shown, capsys)
        assert first == plain, (done, shown)
        assert second == plain, (done, shown)
        if plain.code == 2:  # a wrong profile: nothing is kept, and the next check would say so too
            world.remove(tmp_path / "repo" / "torchpin.toml")
    assert world.hits > STEPS // 4
