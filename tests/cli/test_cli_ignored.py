"""``check --ignored``, and the rule that asks for reasons."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from tests.report.report_samples import finding, view

import torchpin.report
from torchpin.cli.main import guarded
from torchpin.report import markdown
from torchpin.rules.ignores import SETTING, Ignored

SCHEMAS = Path(torchpin.report.__file__).parent / "schemas"

PROFILE = """\
[per-file-ignores]
"legacy/*" = ["TP1"]

[fleet.main]
gpus = ["A100"]
driver = "580.65.06"
python = "3.11"
"""
INDEX = "--extra-index-url https://download.pytorch.org/whl/cu124\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    (tmp_path / "requirements.txt").write_text(
        "torch==2.14.0+cu124  # torchpin: ignore[TP106] our mirror has it\n"
        f"torchaudio==2.14.0  # torchpin: ignore\n{INDEX}"
    )
    (tmp_path / "legacy").mkdir()
    (tmp_path / "legacy" / "requirements.txt").write_text(f"torch==2.14.0+cu124\n{INDEX}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_silenced_is_listed_with_who_silences_it_and_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guarded(["check", "--ignored"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "legacy/requirements.txt:1:1: error[TP106] cu124 stopped at torch 2.6.0: "
        "it has no torch 2.14.0",
        "  = per-file-ignores: legacy/*: TP1",
        "requirements.txt:1:1: error[TP106] cu124 stopped at torch 2.6.0: it has no torch 2.14.0",
        "  = line 1: our mirror has it",
        "requirements.txt:2:1: error[TP101] torchaudio 2.14.0 was never published "
        "(the last is 2.11.1)",
        "  = line 2: no reason is given",
        "3 findings ignored, 1 without a reason.",
    ]


def test_nothing_is_listed_where_nothing_is_silenced(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "requirements.txt").write_text("torch==2.9.1\n")
    assert guarded(["check", "--ignored", "requirements.txt"]) == 0
    assert capsys.readouterr().out == "Nothing is ignored.\n"


def test_a_list_of_what_fix_changes_is_another_list() -> None:
    assert guarded(["check", "--ignored", "--diff"]) == 2


def test_the_list_has_the_forms_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["check", "--ignored", "--output-format", "concise"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "requirements.txt:1:1: error[TP106] cu124 stopped at torch 2.6.0: it has no torch 2.14.0 "
        "(line 1: our mirror has it)",
        "requirements.txt:2:1: error[TP101] torchaudio 2.14.0 was never published "
        "(the last is 2.11.1) (line 2: no reason is given)",
        "3 findings ignored, 1 without a reason.",
    ]
    assert guarded(["check", "--ignored", "--output-format", "grouped"]) == 0
    assert capsys.readouterr().out.splitlines()[:4] == [
        "error[TP106] cu124 stopped at torch 2.6.0: it has no torch 2.14.0",
        "  --> legacy/requirements.txt:1:1: per-file-ignores: legacy/*: TP1",
        "  --> requirements.txt:1:1: line 1: our mirror has it",
        "",
    ]
    assert guarded(["check", "--ignored", "--statistics"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["2", "TP106"],
        ["1", "TP101"],
    ]


@pytest.fixture
def known(project: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A finding that the baseline knows, and an open one in another file."""
    (project / "old").mkdir()
    (project / "old" / "requirements.txt").write_text("torch==2.14.9\n")
    assert guarded(["baseline", "create"]) == 0
    (project / "new").mkdir()
    (project / "new" / "requirements.txt").write_text("torch==2.13.9\n")
    capsys.readouterr()
    return project


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what a check shows that names open findings by its exit code."""
    baseline = ("--baseline", "torchpin-baseline.json")
    assert guarded(["check", "--ignored", "-q", *baseline, *words]) == 1
    return capsys.readouterr().out


@pytest.mark.usefixtures("known")
def test_json_holds_what_is_open_and_what_is_silenced(capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads(shown(capsys, "--output-format", "json"))
    schema = json.loads((SCHEMAS / "check.v1.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(report)
    assert [one["path"] for one in report["findings"]] == ["new/requirements.txt"]
    assert report["summary"]["errors"] == 1
    assert [(one["path"], one["code"], one["ignored"]) for one in report["ignored"]] == [
        (
            "legacy/requirements.txt",
            "TP106",
            {"by": "per-file-ignores", "line": None, "reason": "legacy/*: TP1"},
        ),
        (
            "old/requirements.txt",
            "TP101",
            {"by": "baseline", "line": None, "reason": "torchpin-baseline.json"},
        ),
        (
            "requirements.txt",
            "TP106",
            {"by": "comment", "line": 1, "reason": "our mirror has it"},
        ),
        ("requirements.txt", "TP101", {"by": "comment", "line": 2, "reason": ""}),
    ]
    del report["ignored"][0]["ignored"]["by"]
    assert not jsonschema.Draft202012Validator(schema).is_valid(report)


@pytest.mark.usefixtures("known")
def test_sarif_says_of_each_result_whether_it_is_suppressed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (run,) = json.loads(shown(capsys, "--output-format", "sarif"))["runs"]
    assert [one["suppressions"] for one in run["results"]] == [
        [],
        [{"kind": "external", "justification": "per-file-ignores: legacy/*: TP1"}],
        [{"kind": "external", "justification": "baseline: torchpin-baseline.json"}],
        [
            {
                "kind": "inSource",
                "location": {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "requirements.txt"},
                        "region": {"startLine": 1},
                    }
                },
                "justification": "our mirror has it",
            }
        ],
        [
            {
                "kind": "inSource",
                "location": {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "requirements.txt"},
                        "region": {"startLine": 2},
                    }
                },
            }
        ],
    ]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[one["ruleIndex"]]["id"] for one in run["results"]] == [
        one["ruleId"] for one in run["results"]
    ]
    # An open finding is known again by the same fingerprint whether or not the others are shown.
    words = ["--output-format", "sarif", "--baseline", "torchpin-baseline.json", "--no-cache"]
    assert guarded(["check", "-q", *words]) == 1
    (plain,) = json.loads(capsys.readouterr().out)["runs"]
    (one,) = plain["results"]
    assert "suppressions" not in one
    assert one["partialFingerprints"] == run["results"][0]["partialFingerprints"]


@pytest.mark.usefixtures("known")
def test_services_are_told_what_is_silenced_in_their_own_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = shown(capsys, "--output-format", "github").splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::error", *["::notice"] * 4]
    assert lines[3].endswith("%0Aignored: line 1: our mirror has it")
    assert "title=TP106 discontinued-channel%2C ignored::" in lines[3]
    issues = json.loads(shown(capsys, "--output-format", "gitlab"))
    assert [one["severity"] for one in issues] == ["major", *["info"] * 4]
    assert len({one["fingerprint"] for one in issues}) == 5
    assert issues[2]["description"].endswith("ignored: baseline: torchpin-baseline.json")
    suites = ElementTree.fromstring(shown(capsys, "--output-format", "junit"))
    assert suites.attrib == {
        "name": "torchpin",
        "tests": "5",
        "failures": "1",
        "errors": "0",
        "skipped": "4",
    }
    assert [one.get("skipped") for one in suites] == [None, "1", "1", "2"]
    told = [one.get("message") for one in suites.iter("skipped")]
    assert told[0] is not None and told[0].endswith("(ignored: per-file-ignores: legacy/*: TP1)")
    text = shown(capsys, "--output-format", "markdown")
    assert text.startswith("### torchpin: 1 error\n")
    assert text.count("\n- ignored: ") == 4


def test_where_nothing_is_open_services_are_told_what_is_silenced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guarded(["check", "--ignored", "--output-format", "markdown"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("### torchpin: no findings\n") and text.count("\n- ignored: ") == 3
    assert guarded(["check", "--ignored", "--output-format", "junit"]) == 0
    assert 'tests="3" failures="0" errors="0" skipped="3"' in capsys.readouterr().out


def test_the_list_is_narrowed_as_the_report_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["check", "--ignored", "--evidence", "measured"]) == 0
    assert "1 finding ignored, 1 without a reason.\n" in capsys.readouterr().out


def test_a_long_comment_counts_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuple(Ignored(finding(), None, f"p{n}: TP1", SETTING) for n in range(40))
    monkeypatch.setattr(markdown, "LIMIT", 2_000)
    text = markdown.render(view()._replace(ignored=found))
    shown = text.count("\n- ignored: ")
    assert 0 < shown < 40 and len(text) < 2_300
    assert f"\n… and {40 - shown} more are ignored.\n" in text


def test_a_profile_may_ask_for_reasons(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["check", "--output-format", "concise"]) == 0
    assert "TP004" not in capsys.readouterr().out
    (project / "torchpin.toml").write_text(f"require-reasons = true\n{PROFILE}")
    assert guarded(["check", "--output-format", "concise"]) == 1
    out = capsys.readouterr().out
    # a comment without codes does not silence what is said of itself
    assert "requirements.txt:2:21: warning[TP004] this comment gives no reason\n" in out
    assert out.count("TP004") == 1
