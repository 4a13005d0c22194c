from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.report.report_samples import TEXT, build, document, finding, target, view

import torchpin.report
from torchpin.catalog.show import row
from torchpin.judge.model import Reason, Verdict
from torchpin.report import github, json_, sarif, tables
from torchpin.report.lines import full_versions, requirement_lines
from torchpin.report.rule_docs import RuleText
from torchpin.report.style import PLAIN
from torchpin.resolve.model import Conflict, Origin, Outcome, Plan, Unserved
from torchpin.select.model import Miss, Selection

SCHEMAS = Path(torchpin.report.__file__).parent / "schemas"
ROOT = "https://download.pytorch.org/whl"
URL = f"{ROOT}/cu126"


def schema(name: str) -> Any:
    loaded = json.loads((SCHEMAS / f"{name}.v1.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(loaded)
    return loaded


def valid(name: str, text: str) -> Any:
    value = json.loads(text)
    jsonschema.Draft202012Validator(schema(name)).validate(value)
    return value


@pytest.mark.parametrize("name", sorted(path.name[:-8] for path in SCHEMAS.glob("*.v1.json")))
def test_schemas_refuse_another_version_and_a_missing_key(name: str) -> None:
    checker = jsonschema.Draft202012Validator(schema(name))
    assert not checker.is_valid({"version": 2})
    assert not checker.is_valid({"version": 1})


def test_check_has_the_keys_of_the_contract() -> None:
    lost = finding(safety=None)._replace(document=None, path="bad.txt")
    value = valid("check", json_.check(view(finding(), lost, finding(safety="display"))))
    assert set(value) == {"version", "catalog", "findings", "summary"}
    assert value["catalog"] == {"date": "2026-11-30", "digest": "0123abcd", "stale": False}
    assert value["summary"] == {"files": 1, "errors": 3, "warnings": 0, "infos": 0, "fixable": 1}
    first = value["findings"][0]
    assert (first["line"], first["column"], first["end_line"], first["end_column"]) == (2, 1, 2, 20)
    assert first["fix"]["edits"] == [
        {
            "path": "requirements.txt",
            "line": 2,
            "column": 1,
            "end_line": 2,
            "end_column": 20,
            "text": "torch==2.14.0+cu126",
        }
    ]
    assert value["findings"][1]["fix"] is None


def test_the_check_schema_refuses_what_is_no_contract() -> None:
    value = json.loads(json_.check(view(finding())))
    value["findings"][0]["severity"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, schema("check"))


def test_json_stays_valid_with_odd_paths_and_hides_credentials() -> None:
    odd = finding(path="caf\udce9.txt", message="see https://u:s3cret@h.example/x")
    text = json_.check(view(odd))
    text.encode("ascii")
    assert json.loads(text)["findings"][0]["path"] == "caf\udce9.txt"
    assert "s3cret" not in text


def selection(status: str = "selected", **changes: Any) -> Selection:
    made = Selection("torch", None, "torchvision", target(), status, None, None, None, "why")
    return made._replace(**changes)


def test_show() -> None:
    doc = document("torchvision==0.29.0\n")
    from torchpin.documents.requirements import read_requirements
    from torchpin.select.model import Placed

    doc = read_requirements("r.txt", b"# pins\ntorchvision==0.29.0\n")
    placed = selection(
        package="torchvision", implied_by=None, placed=Placed(doc, doc.declarations[0])
    )
    miss = Miss("version", "never published", "measured", "index")
    reason = Reason("kernels", "runs", "Tesla V100 runs sm_70", "measured", "wheel")
    pairs = (
        (placed._replace(status="none", miss=miss), None),
        (selection(build=build()), Verdict("runs", (reason,), ("torch kernels",))),
        (selection(status="unknown"), None),
    )
    value = valid("show", json_.show(pairs, ("2026-11-30", "0123abcd", False)))
    first, second, third = value["selections"]
    assert (first["path"], first["line"], first["status"]) == ("r.txt", 2, "none")
    assert first["because"] == [
        {"text": "never published", "evidence": "measured", "source": "index"}
    ]
    assert second["build"] == {
        "version": "2.14.1+cu126",
        "channel": "cu126",
        "index": "channel",
        "tag": "cp311",
    }
    assert (second["path"], second["line"], second["verdict"]) == ("r.txt", 2, "runs")
    assert (third["build"], third["verdict"], third["install"]) == (None, None, None)
    text = tables.show(pairs, PLAIN)
    assert "torchvision (line 2): finds no build\n    never published [measured]" in text
    assert "torch (implied by torchvision): 2.14.1+cu126 from channel cu126: runs" in text


def plan(*platforms: str, label: str = "cu126", mac_label: str = "") -> Plan:
    targets = tuple(target(f"g{i}", platform) for i, platform in enumerate(platforms))
    builds = tuple(
        (
            platform,
            package,
            build(package, version, mac_label if platform.startswith("macos") else label, platform),
        )
        for platform in platforms
        for package, version in (("torch", "2.14.1"), ("torchvision", "0.29.1"))
    )
    versions = (("torch", "2.14.1"), ("torchvision", "0.29.1"))
    return Plan(targets, "cu126", "channel", URL, versions, builds, (("best", "measured", "x"),))


def test_resolve() -> None:
    unserved = Unserved(target("old"), "Tesla K80", "1.12.1+cu102", "no kernels for sm_37")
    conflict = Conflict(Origin("r.txt", 1, "torch>=2.11"), "no sm_70", "measured", "2.10.0")
    outcome = Outcome((plan("linux-x86_64"),), (unserved,), (conflict,))
    value = valid("resolve", json_.resolve(outcome, ("2026-11-30", "0123abcd", False)))
    assert value["plans"] == [
        {
            "groups": ["g0"],
            "python": ["3.11"],
            "channel": "cu126",
            "index": "channel",
            "index_url": URL,
            "packages": {"torch": "2.14.1+cu126", "torchvision": "0.29.1+cu126"},
            "requirements": [
                f"--extra-index-url {URL}",
                "torch==2.14.1+cu126",
                "torchvision==0.29.1+cu126",
            ],
            "because": [{"text": "best", "evidence": "measured", "source": "x"}],
        }
    ]
    assert value["unserved"][0]["last_release"] == "1.12.1+cu102"
    text = tables.resolve(outcome, PLAIN)
    assert "    torch==2.14.1+cu126\n" in text
    assert "r.txt:1: no sm_70 [measured]\n    without it: 2.10.0" in text
    assert "Not served: old, Python 3.11 (Tesla K80)" in text


def test_lines_for_uv_shadow_no_other_package() -> None:
    assert requirement_lines(plan("linux-x86_64"), "uv")[:2] == (
        f"--find-links {URL}/torch/",
        f"--find-links {URL}/torchvision/",
    )
    rocm = plan("linux-x86_64")._replace(channel="rocm7.2")
    assert requirement_lines(rocm, "uv")[0] == f"--extra-index-url {URL}"


def test_lines_get_markers_where_platforms_differ() -> None:
    mixed = plan("linux-x86_64", "macos-arm64")
    assert requirement_lines(mixed)[1:3] == (
        'torch==2.14.1+cu126 ; sys_platform == "linux"',
        'torch==2.14.1 ; sys_platform == "darwin"',
    )
    assert full_versions(mixed)["torch"] == "2.14.1+cu126"
    two = plan("linux-x86_64", "linux-aarch64")
    assert requirement_lines(two)[1] == "torch==2.14.1+cu126"
    odd = two._replace(
        builds=tuple(
            (platform, name, made._replace(label="" if platform.endswith("aarch64") else "cu126"))
            for platform, name, made in two.builds
        )
    )
    assert requirement_lines(odd)[1:3] == (
        'torch==2.14.1+cu126 ; sys_platform == "linux" and platform_machine == "x86_64"',
        'torch==2.14.1 ; sys_platform == "linux" and platform_machine == "aarch64"',
    )


def test_lines_name_every_channel_that_builds_come_from() -> None:
    """On Windows no build of a ROCm channel exists: without its own index nothing is found."""
    several = plan("linux-x86_64", "windows-x86_64")
    mixed = several._replace(
        channel="rocm7.2",
        index_url=f"{ROOT}/rocm7.2",
        builds=tuple(
            (platform, name, made._replace(channel="rocm7.2", label="rocm7.2"))
            if platform.startswith("linux")
            else (platform, name, made)
            for platform, name, made in several.builds
        ),
    )
    assert requirement_lines(mixed)[:4] == (
        f"--extra-index-url {ROOT}/rocm7.2",
        f"--extra-index-url {ROOT}/cu126",
        'torch==2.14.1+rocm7.2 ; sys_platform == "linux"',
        'torch==2.14.1+cu126 ; sys_platform == "win32"',
    )
    assert requirement_lines(mixed, "uv")[:3] == (
        f"--extra-index-url {ROOT}/rocm7.2",
        f"--find-links {URL}/torch/",
        f"--find-links {URL}/torchvision/",
    )
    told = tables.resolve(Outcome((mixed,), (), ()), PLAIN)
    assert f"from {ROOT}/rocm7.2 and {URL}\n" in told


def test_builds_of_pypi_stay_those_of_pypi_beside_a_channel() -> None:
    """``2.14.1+cu126`` fits ``==2.14.1`` and is the higher version of the two."""
    from packaging.requirements import Requirement

    several = plan("linux-x86_64", "windows-x86_64", "macos-arm64")
    mixed = several._replace(
        channel="cu130",
        home="pypi",
        index_url=None,
        builds=tuple(
            (platform, name, made)
            if platform.startswith("windows")
            else (platform, name, made._replace(channel="cu130", home="pypi", label=""))
            for platform, name, made in several.builds
        ),
    )
    lines = requirement_lines(mixed)
    assert lines[0] == f"--extra-index-url {URL}"
    torch = {
        system: Requirement(line).specifier
        for line in lines[1:]
        for system in ("linux", "win32", "darwin")
        if line.startswith("torch==") and f'"{system}"' in line
    }
    assert torch["linux"].contains("2.14.1") and not torch["linux"].contains("2.14.1+cu126")
    assert str(torch["win32"]) == "==2.14.1+cu126"
    alone = mixed._replace(
        builds=tuple(one for one in mixed.builds if one[0].startswith("linux")),
    )
    assert requirement_lines(alone) == ("torch==2.14.1", "torchvision==0.29.1")


def test_markers_of_lines_are_valid_and_exclusive() -> None:
    from packaging.requirements import Requirement

    lines = requirement_lines(plan("linux-x86_64", "macos-arm64", "windows-x86_64"))
    for system in ("linux", "darwin", "win32"):
        hold = [
            line
            for line in lines
            if not line.startswith("--")
            and (marker := Requirement(line).marker) is not None
            and marker.evaluate({"sys_platform": system, "platform_machine": "x86_64"})
        ]
        assert len(hold) == 2, system


def test_catalog_show() -> None:
    cpu = build(label="cpu")._replace(kernels=None, libraries=())
    value = valid(
        "catalog-show",
        json_.catalog_show([row(build()), row(cpu)], ("2026-11-30", "0123abcd", False)),
    )
    first, second = value["builds"]
    assert first["version"] == "2.14.1+cu126"
    assert (first["sass"], first["ptx"]) == (["sm_70", "sm_90a"], ["compute_120"])
    assert first["libraries"] == {
        "libtorch_cuda_linalg.so": {"sass": ["sm_70", "sm_90a"], "ptx": []}
    }
    assert first["evidence"] == {"exists": "lockfile", "kernels": "measured"}
    assert (second["sass"], second["evidence"]["kernels"]) == ([], None)


def test_github_escapes_what_the_runner_reads() -> None:
    line = github.render(view(finding(path="a,b:c.txt", message="50% of\nit")))
    assert line.startswith(
        "::error file=a%2Cb%3Ac.txt,line=2,endLine=2,col=1,endColumn=20,"
        "title=TP106 discontinued-channel::50%25 of it%0Abecause: "
    )
    assert line.count("\n") == 1


def test_github_gives_no_columns_for_several_lines() -> None:
    several = finding(needle="torch==2.14.0+cu124  # pinned\n--extra")
    assert "col=" not in github.render(view(several))
    assert "line=2,endLine=3" in github.render(view(several))
    assert github.render(view(finding(severity="info"))).startswith("::notice ")


RULES = (RuleText("TP106", "discontinued-channel", "error", "The channel stopped.", "Why."),)


def run_of(text: str) -> Any:
    log = json.loads(text)
    assert log["version"] == "2.1.0"
    jsonschema.Draft7Validator(json.loads(REDUCED.read_text("utf-8"))).validate(log)
    return log["runs"][0]


REDUCED = Path(__file__).parent / "sarif-reduced.schema.json"


def test_sarif() -> None:
    run = run_of(sarif.render(view(finding(), finding(safety="display")), RULES, "1.2.3"))
    driver = run["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == ["TP106"]
    assert driver["rules"][0]["name"] == "DiscontinuedChannel"
    assert run["automationDetails"]["id"] == "torchpin/check/"
    first, second = run["results"]
    region = first["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 20}
    change = first["fixes"][0]["artifactChanges"][0]
    assert change["replacements"][0]["insertedContent"]["text"] == "torch==2.14.0+cu126"
    assert "fixes" not in second
    assert driver["rules"][first["ruleIndex"]]["id"] == first["ruleId"]


def test_sarif_of_nothing_and_of_an_unknown_rule() -> None:
    assert run_of(sarif.render(view(), RULES, "1"))["results"] == []
    run = run_of(sarif.render(view(finding(severity="info")), (), "1"))
    assert run["tool"]["driver"]["rules"][0]["defaultConfiguration"]["level"] == "note"


def test_the_reduced_schema_refuses_a_broken_log() -> None:
    log = json.loads(sarif.render(view(finding()), RULES, "1"))
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(json.loads(REDUCED.read_text("utf-8"))).validate(log)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("./a b.txt", "a%20b.txt"),
        ("sub/caf\u00e9.txt", "sub/caf%C3%A9.txt"),
        ("/abs/r.txt", "file:///abs/r.txt"),
        ("a:b.txt", "a%3Ab.txt"),
    ],
)
def test_sarif_paths_are_uri_references(path: str, uri: str) -> None:
    run = run_of(sarif.render(view(finding(TEXT, path=path)), RULES, "1"))
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri
