"""The age of the catalog, and what is said of an old one."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpin.catalog.staleness import (
    DEFAULT_DAYS,
    age,
    day_number,
    is_stale,
    sentence,
    today,
)
from torchpin.catalog.store import load_catalog
from torchpin.errors import ConfigError, UsageError
from torchpin.fleet.profile import load_profile


@given(st.dates(), st.dates())
def test_days_are_those_of_the_calendar(left: datetime.date, right: datetime.date) -> None:
    assert age(left.isoformat(), right.isoformat()) == (right - left).days


@pytest.mark.parametrize("text", ["", "2026", "2026-13-01", "2026-00-10", "2026-1-1", "soon"])
def test_what_is_no_date(text: str) -> None:
    assert day_number(text) is None
    assert age(text, "2026-01-01") is None
    assert not is_stale(text, "2026-01-01", 1)


def test_the_limit() -> None:
    assert not is_stale("2026-01-01", "2026-04-01", 90)
    assert is_stale("2026-01-01", "2026-04-02", 90)
    assert not is_stale("2026-01-01", "2099-04-02", 0)
    assert not is_stale("2026-01-01", "2025-01-01", 90)


def test_today_comes_from_the_environment_or_the_clock() -> None:
    assert today({"TORCHPIN_TODAY": "2027-02-28"}) == "2027-02-28"
    now = datetime.datetime.now(tz=datetime.timezone.utc).date()
    assert abs((datetime.date.fromisoformat(today({})) - now).days) <= 1
    with pytest.raises(UsageError, match="TORCHPIN_TODAY"):
        today({"TORCHPIN_TODAY": "tomorrow"})


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ('"30d"', 30),
        ("14", 14),
        ("0", 0),
        ("false", 0),
        ('"0d"', 0),
    ],
)
def test_the_setting(tmp_path: Path, text: str, days: int) -> None:
    path = tmp_path / "torchpin.toml"
    path.write_text(f"catalog-max-age = {text}\n")
    assert load_profile(str(path)).settings.catalog_max_age == days


@pytest.mark.parametrize(
    "text", ["true", '"90"', '"3 weeks"', "-1", "1.5", "[90]", '"-1d"', "1_000_000"]
)
def test_a_wrong_setting_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "torchpin.toml"
    path.write_text(f'policy = "newest"\ncatalog-max-age = {text}\n')
    with pytest.raises(ConfigError, match="catalog-max-age must be a number of days") as caught:
        load_profile(str(path))
    assert caught.value.line == 2
    assert '"90d"' in caught.value.hint


def test_the_default_is_that_of_the_profile(tmp_path: Path) -> None:
    path = tmp_path / "torchpin.toml"
    path.write_text('policy = "newest"\n')
    assert load_profile(str(path)).settings.catalog_max_age == DEFAULT_DAYS


def later(days: int) -> str:
    day = datetime.date.fromisoformat(load_catalog().date) + datetime.timedelta(days)
    return day.isoformat()


COMMANDS = (
    ("check", "requirements.txt"),
    ("fix", "requirements.txt"),
    ("show", "requirements.txt"),
    ("resolve", "requirements.txt"),
    ("catalog", "show", "torch", "2.14.1"),
)


def run(folder: Path, day: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "torchpin", *args],
        cwd=folder,
        env={**os.environ, "TORCHPIN_TODAY": day},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "requirements.txt").write_text("torch==2.14.1\n")
    (tmp_path / "torchpin.toml").write_text(
        '[fleet.main]\ngpus = ["A100"]\ndriver = "580.65.06"\npython = "3.12"\n'
    )
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_every_command_says_that_the_catalog_is_old(
    project: Path, command: tuple[str, ...]
) -> None:
    expected = sentence(load_catalog().date, later(91))
    old = run(project, later(91), *command)
    assert expected in old.stderr
    assert "91 days old" in expected
    fresh = run(project, later(90), *command)
    assert "days old" not in fresh.stderr
    assert (old.returncode, old.stdout) == (fresh.returncode, fresh.stdout)
    quiet = run(project, later(91), *command, "--quiet")
    assert "days old" not in quiet.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_json_says_it_too(project: Path, command: tuple[str, ...]) -> None:
    for day, stale in ((later(91), True), (later(0), False)):
        done = run(project, day, *command, "--output-format", "json", "--quiet")
        told = json.loads(done.stdout)["catalog"]
        assert (told["date"], told["stale"]) == (load_catalog().date, stale)


def test_the_profile_turns_it_off(project: Path) -> None:
    path = project / "torchpin.toml"
    path.write_text("catalog-max-age = false\n" + path.read_text())
    for command in COMMANDS:
        assert "days old" not in run(project, later(4000), *command).stderr
    path.write_text(path.read_text().replace("false", '"10d"'))
    assert "11 days old" in run(project, later(11), *COMMANDS[0]).stderr


def test_a_wrong_day_is_a_usage_error(project: Path) -> None:
    done = run(project, "yesterday", *COMMANDS[0])
    assert done.returncode == 2
    assert "TORCHPIN_TODAY takes a date" in done.stderr
