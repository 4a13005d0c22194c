"""The workflow that renews the catalog: what it may do, and that its commands exist."""

from __future__ import annotations

import json
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / ".github" / "workflows" / "catalog.yml"


@pytest.fixture(scope="module")
def workflow() -> Any:
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def steps(workflow: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(name, step) for name, job in workflow["jobs"].items() for step in job["steps"]]


def commands(workflow: Any) -> list[list[str]]:
    """Return the words of each ``python -m …`` line."""
    lines = [
        line.strip() for _, step in steps(workflow) for line in step.get("run", "").split("\n")
    ]
    return [shlex.split(line) for line in lines if line.startswith("python -m")]


def test_only_actions_of_github_itself_pinned_by_version(workflow: Any) -> None:
    uses = [step["uses"] for _, step in steps(workflow) if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+(\.\d+){0,2}", text) for text in uses)


def test_permissions_are_minimal(workflow: Any) -> None:
    assert workflow["permissions"] == {}
    assert workflow["jobs"]["refresh"]["permissions"] == {"contents": "read"}
    assert workflow["jobs"]["propose"]["permissions"] == {
        "contents": "write",
        "pull-requests": "write",
    }


def test_what_reads_foreign_files_holds_no_token_and_what_writes_runs_none(workflow: Any) -> None:
    checkout = workflow["jobs"]["refresh"]["steps"][0]
    assert checkout["with"] == {"persist-credentials": False}
    assert "GH_TOKEN" not in str(workflow["jobs"]["refresh"])
    for name, step in steps(workflow):
        if name == "propose":
            assert "python" not in step.get("run", "")


def test_no_value_from_outside_is_part_of_a_script(workflow: Any) -> None:
    assert not [step for _, step in steps(workflow) if "${{" in step.get("run", "")]


def test_it_runs_on_a_schedule_and_by_hand(workflow: Any) -> None:
    on = workflow[True]  # YAML 1.1 reads "on" so
    assert on["schedule"]
    assert list(on["workflow_dispatch"]["inputs"]) == ["allow-removal"]


def test_its_modules_exist_and_know_the_options(workflow: Any) -> None:
    found = {words[2]: words[3:] for words in commands(workflow)}
    assert {"tools.refresh_shipped", "tools.check_data", "torchpin", "pytest"} <= set(found)
    for module in ("tools.refresh_shipped", "tools.check_data"):
        main = import_module(module).main
        with pytest.raises(SystemExit) as caught:
            main([*(word for word in found[module] if word != "$ALLOW"), "--help"])
        assert caught.value.code == 0
    text = PATH.read_text(encoding="utf-8")
    assert "'--allow-removal'" in text
    assert "--sample" in found["torchpin"]
    for word in found["pytest"]:
        assert word.startswith("-") or (ROOT / word).exists()
    assert (ROOT / "src" / "torchpin" / "catalog" / "data").is_dir()


def test_answers_that_a_release_changes_are_recorded_and_told(workflow: Any) -> None:
    modules = [words[2] for words in commands(workflow)]
    assert {"tools.record_golden", "tools.gen_docs"} <= set(modules)
    assert modules.index("tools.refresh_shipped") < modules.index("tools.record_golden")
    assert modules.index("tools.record_golden") < modules.index("pytest")
    scripts = "".join(step.get("run", "") for _, step in steps(workflow))
    assert "Answers that changed" in scripts
    assert "git add --all fixtures README.md docs" in scripts


def test_recorded_answers_leave_the_day_of_the_catalog_out() -> None:
    from tools.record_golden import undated

    text = "not judged: the catalog of 2026-11-30 does not know torch 2.99.0 of 2026-12-01"
    assert undated(text) == text.replace("2026-11-30", "DATE")
    date = json.loads((ROOT / "src/torchpin/catalog/data/catalog.json").read_text("utf-8"))["date"]
    recorded = sorted(ROOT.glob("fixtures/*/*/expected.json"))
    assert recorded
    assert not [p.parent.name for p in recorded if f"catalog of {date}" in p.read_text("utf-8")]
