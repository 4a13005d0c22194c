"""The reports that GitLab, test dashboards and pull requests show."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema
import pytest
from markdown_it import MarkdownIt
from tests.report.report_samples import TEXT, finding, view

from torchpin.cli.main import guarded
from torchpin.report import github, gitlab, junit, markdown, sarif
from torchpin.rules.model import Because, Finding

HOSTILE = "@octocat see #12 & !34 ~bug <b>x</b> a_b*c* `d` A|B ![x](y) [l](z) \\ ]]> -- &amp;"
ISSUES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "pattern": "^TP[0-9]{3}$"},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^(?!\\./)"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}
"""GitLab's documentation of the code quality report, as a schema."""


def issues(*findings: object) -> list[dict[str, object]]:
    value = json.loads(gitlab.render(view(*findings)))  # type: ignore[arg-type]
    jsonschema.Draft202012Validator(ISSUES).validate(value)
    assert isinstance(value, list)
    return value


def test_gitlab() -> None:
    found = issues(finding(path="./a/r.txt"), finding(severity="info"), finding(severity="warning"))
    assert [one["severity"] for one in found] == ["major", "info", "minor"]
    assert found[0]["location"] == {"path": "a/r.txt", "lines": {"begin": 2, "end": 2}}
    assert "the last release on cu124 is 2.6.0 [bounded]" in str(found[0]["description"])
    assert issues() == []


def test_gitlab_fingerprints_differ_and_outlive_a_move() -> None:
    twice = issues(finding(), finding())
    assert len({str(one["fingerprint"]) for one in twice}) == 2
    moved = issues(finding("# more\n" + TEXT))
    assert moved[0]["fingerprint"] == twice[0]["fingerprint"]
    assert moved[0]["location"] != twice[0]["location"]
    assert issues(finding(path="b.txt"))[0]["fingerprint"] != twice[0]["fingerprint"]


def test_gitlab_paths_within_the_checkout_are_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert gitlab.path_of(f"{tmp_path}/sub/r.txt") == "sub/r.txt"
    assert gitlab.path_of("/elsewhere/r.txt") == "/elsewhere/r.txt"
    assert gitlab.path_of("caf\udce9.txt") == "caf?.txt"


def test_junit() -> None:
    root = ET.fromstring(
        junit.render(
            view(
                finding(message=HOSTILE),
                finding(severity="info"),
                finding(path="other.txt", severity="warning"),
            )
        ).encode()
    )
    assert (root.tag, root.attrib["tests"], root.attrib["failures"]) == ("testsuites", "3", "2")
    suites = root.findall("testsuite")
    assert [s.attrib["name"] for s in suites] == ["requirements.txt", "other.txt"]
    assert [(s.attrib["tests"], s.attrib["failures"]) for s in suites] == [("2", "1"), ("1", "1")]
    for suite in suites:
        assert len(suite.findall("testcase")) == int(suite.attrib["tests"])
    failure = suites[0].find("testcase/failure")
    assert failure is not None
    assert failure.attrib == {"type": "error", "message": HOSTILE}
    assert failure.text is not None
    assert failure.text.startswith(f"{HOSTILE}\nbecause: ")


def test_junit_of_nothing_is_one_case_that_passes() -> None:
    root = ET.fromstring(junit.render(view()).encode())
    assert (root.attrib["tests"], root.attrib["failures"]) == ("1", "0")
    assert [list(case) for case in root.iter("testcase")] == [[]]


@pytest.mark.parametrize("odd", ["\x00\x0b", "\ufffe\uffff", "\udce9", "\x85\u2028"])
def test_junit_stays_xml(odd: str) -> None:
    text = junit.render(view(finding(message=f"a{odd}b", path=f"r{odd}.txt")))
    root = ET.fromstring(text.encode())
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.attrib["message"].startswith("a")


def test_markdown_shows_the_text_of_a_finding_as_it_is() -> None:
    text = markdown.render(view(finding(message=HOSTILE)))
    tokens = MarkdownIt("commonmark").parse(text)
    inline = next(t for t in tokens if t.type == "inline" and "octocat" in t.content)
    children = inline.children or []
    kinds = {t.type for t in children}
    assert kinds <= {"text", "text_special", "html_inline", "code_inline", "strong_open",
                     "strong_close", "softbreak"}  # fmt: skip
    assert {t.content for t in children if t.type == "html_inline"} <= {
        "<!-- -->", "<details>", "<summary>", "</summary>",
    }  # fmt: skip
    shown = "".join(t.content for t in children if t.type in ("text", "text_special"))
    assert HOSTILE in shown
    assert not re.search(r"@octocat|#12|!34|~bug", text)


def test_markdown_counts_and_says_what_fix_mends() -> None:
    text = markdown.render(
        view(finding(), finding(severity="warning", safety="unsafe"), finding(severity="info"))
    )
    assert text.startswith("### torchpin: 1 error, 1 warning, 1 note\n")
    assert "`torchpin fix` mends 2. `torchpin fix --unsafe-fixes` mends 1 more." in text
    assert text.count("**requirements.txt**") == 1
    assert "- line 2: **error** `TP106` cu124 stopped at torch 2.6.0\n" in text
    assert "no findings" in markdown.render(view())


def test_markdown_fits_a_comment() -> None:
    many = [finding(message=f"number {n} " + "x" * 500) for n in range(200)]
    text = markdown.render(view(*many))
    shown = text.count("- line 2:")
    assert len(text) < 65_536
    assert 0 < shown < 200
    assert f"… and {200 - shown} findings more." in text


@pytest.mark.parametrize("module", [gitlab, junit, markdown])
def test_no_secret_is_shown(module: object) -> None:
    text = module.render(view(finding(message="see https://u:s3cret@h.example/x")))  # type: ignore[attr-defined]
    assert "s3cret" not in text
    text.encode()


@pytest.mark.parametrize("kind", ["gitlab", "junit", "markdown"])
def test_check_writes_them(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.txt").write_text("torch==2.15.0\n", "utf-8")
    words = ["check", "--isolated", "--gpu", "V100", "--output-format", kind, "requirements.txt"]
    assert guarded(words) == 1
    said = capsys.readouterr().out
    assert "TP201" in said
    if kind == "gitlab":
        jsonschema.Draft202012Validator(ISSUES).validate(json.loads(said))
    elif kind == "junit":
        assert ET.fromstring(said.encode()).attrib["failures"] != "0"


def told_in_editor(one: Finding) -> str:
    pytest.importorskip("pygls")
    from torchpin.server.diagnostics import message_of

    return message_of(one)


@pytest.mark.parametrize("kind", ["github", "gitlab", "junit", "markdown", "sarif", "editor"])
def test_a_message_that_is_its_own_ground_is_said_once(kind: str) -> None:
    message = "cu124 stopped at torch x"
    one = finding(message=message)
    one = one._replace(because=(Because(message, "published", "notes"), *one.because))
    made = {
        "github": lambda: github.render(view(one)),
        "gitlab": lambda: gitlab.render(view(one)),
        "junit": lambda: junit.render(view(one)),
        "markdown": lambda: markdown.render(view(one)),
        "sarif": lambda: sarif.render(view(one), (), "1"),
        "editor": lambda: told_in_editor(one),
    }[kind]()
    assert made.count(message) == (2 if kind == "junit" else 1), "an attribute, and the text"
    assert "published" in made, "how it is known stands behind the message"
    assert "the last release on cu124" in made
