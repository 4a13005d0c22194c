"""The data that ship are what the script gives, and its floors refuse what cannot be right."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools._assemble import Assembly, Part
from tools._common import DATA, MEASURED, FloorError
from tools._contents import Content
from tools._facts import FACTS, Row, locked_wheel, places, read_row, sources, tag_names
from tools._pypi import read_channel
from tools._spans import spans
from tools.measure_wheels import load, render

from tools import build_catalog
from torchpin.catalog.model import Build
from torchpin.catalog.store import Catalog, load_catalog

ROOT = Path(__file__).resolve().parents[2]


def facts_folder() -> Path:
    folder = Path(os.environ.get("TORCHPIN_FACTS") or ROOT.parent / "shared" / "facts")
    if not (folder / "torch_channels.json").is_file():
        pytest.skip("the gathered facts are not here; TORCHPIN_FACTS names their folder")
    return folder


def run(*arguments: str | Path) -> int:
    return build_catalog.main([str(a) for a in arguments])


def generated(folder: Path) -> dict[str, bytes]:
    prefixes = ("builds-", "hashes-")
    names = ("catalog.json", "health.json", "partners.json", "pins.json")
    return {
        p.name: p.read_bytes()
        for p in folder.iterdir()
        if p.name.startswith(prefixes) or p.name in names
    }


def test_shipped_data_are_what_the_script_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As long as no ``refresh_shipped`` came after it; ``test_refresh_shipped`` looks at that."""
    if "previous" in json.loads((DATA / "catalog.json").read_text(encoding="utf-8")):
        pytest.skip("the data that ship were renewed from live indexes since")
    assert run(facts_folder(), "--out", tmp_path) == 0
    assert "contradiction" not in capsys.readouterr().out
    assert generated(tmp_path) == generated(DATA)


def copied_facts(tmp_path: Path, **changes: Any) -> Path:
    folder = tmp_path / "facts"
    folder.mkdir()
    for name in FACTS:
        shutil.copyfile(facts_folder() / name, folder / name)
    for stem, change in changes.items():
        path = folder / f"{stem}.json"
        path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8")))))
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:200], "at least 650"),
        (lambda rows: [{**r, "platform": "plan9"} for r in rows], "unknown platform"),
        (lambda rows: [{**r, "confidence": "hearsay"} for r in rows], "unknown confidence"),
        (lambda rows: [{**r, "source": ["https://mirror.example/x"]} for r in rows], "the host"),
        (lambda rows: {"rows": rows}, "not a list"),
    ],
)
def test_wrong_facts_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    facts = copied_facts(tmp_path, torch_channels=change)
    out = tmp_path / "out"
    with pytest.raises(FloorError, match=message):
        run(facts, "--out", out)
    assert not out.exists()


def test_missing_facts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FloorError, match="missing"):
        run(tmp_path, "--out", tmp_path / "out")


def test_a_removal_needs_permission(tmp_path: Path) -> None:
    def without_cu124(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [r for r in rows if r["channel"] != "cu124" or r["torch"] != "2.4.0"]

    out = tmp_path / "out"
    shutil.copytree(DATA, out)
    before = generated(out)
    facts = copied_facts(tmp_path, torch_channels=without_cu124)
    with pytest.raises(FloorError, match=r"torch 2\.4\.0"):
        run(facts, "--out", out)
    assert generated(out) == before
    assert run(facts, "--out", out, "--allow-removal") == 0
    assert not Catalog(str(out)).find("torch", version="2.4.0", channel="cu124", home="channel")


def shipped() -> Assembly:
    catalog = load_catalog()
    parts = [Part(p, list(catalog.builds(p)), [], [], [], [], "", []) for p in catalog.packages()]
    return Assembly(parts, {}, [])


def changed(package: str, **values: Any) -> Assembly:
    whole = shipped()
    parts = [
        p._replace(builds=[p.builds[0]._replace(**values), *p.builds[1:]])
        if p.package == package
        else p
        for p in whole.parts
    ]
    return whole._replace(parts=parts)


def test_the_shipped_builds_pass_the_floors() -> None:
    build_catalog.check(shipped())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"version": "two"}, "Invalid version"),
        ({"platform": "linux"}, "unknown platform"),
        ({"evidence": "rumour"}, "unknown evidence"),
        ({"source": ""}, "no source"),
        ({"requires_torch": "=2"}, "Invalid specifier"),
        ({"home": "channel", "channel": "cuda12"}, "unknown channel"),
    ],
)
def test_a_wrong_build_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(FloorError, match=message):
        build_catalog.check(changed("torch", **values))


def test_fewer_builds_are_refused() -> None:
    whole = shipped()
    parts = [
        p._replace(builds=p.builds[:100]) if p.package == "torchaudio" else p for p in whole.parts
    ]
    with pytest.raises(FloorError, match="100 builds of torchaudio"):
        build_catalog.check(whole._replace(parts=parts))


def test_removed_names_what_goes() -> None:
    whole = shipped()
    parts = [p._replace(builds=p.builds[:-1]) for p in whole.parts if p.package == "torch"]
    gone = build_catalog.removed(DATA, whole._replace(parts=parts))
    last = whole.parts[[p.package for p in whole.parts].index("torch")].builds[-1]
    assert len(gone) == 1
    assert last.version in gone[0]


def test_measurements_survive_reading_and_writing() -> None:
    text = MEASURED.read_text(encoding="utf-8")
    assert render(load(text)) == text


def channel_build(version: str, evidence: str = "lockfile", channel: str = "cu199") -> Build:
    first = load_catalog().builds("torch")[-1]
    return first._replace(version=version, channel=channel, home="channel", evidence=evidence)


def denial(version: str, evidence: str, exists: bool | None = False) -> list[Any]:
    return [version, "cu199", "*", exists, evidence, f"notice of {version}"]


@pytest.mark.parametrize(
    ("held", "denied", "closed"),
    [
        (["2.1.0", "2.2.0"], [("2.3.0", "published")], True),
        (["2.1.0", "2.2.0"], [("2.3.0", "inferred")], False),
        (["2.1.0", "2.2.0"], [("2.2.1", "inferred"), ("2.2.2", "inferred")], False),
        (["2.1.0", "2.2.0"], [("2.3.0", "inferred"), ("2.4.0", "inferred")], True),
        (["2.1.0", "2.3.0"], [("2.2.0", "inferred"), ("2.4.0", "published")], False),
        (["2.1.0", "2.2.0"], [], False),
    ],
)
def test_when_a_channel_is_closed(
    held: list[str], denied: list[tuple[str, str]], closed: bool
) -> None:
    rows = [denial(version, evidence) for version, evidence in denied]
    (span,) = spans("torch", [channel_build(v) for v in held], rows, [], [])
    assert (span.first, span.last, span.closed) == (held[0], held[-1], closed)


def test_what_may_come_keeps_a_channel_open() -> None:
    rows = [denial("2.3.0", "published"), denial("2.4.0", "inferred", None)]
    (span,) = spans("torch", [channel_build("2.2.0")], rows, [], [])
    assert not span.closed
    builds = [channel_build("2.2.0"), channel_build("2.4.0", "inferred")]
    (span,) = spans("torch", builds, rows[:1], [], [])
    assert (span.last, span.closed) == ("2.2.0", False)


def test_nothing_proved_has_no_span() -> None:
    assert spans("torch", [channel_build("2.2.0", "inferred")], [], [], []) == []


def test_wheel_tags() -> None:
    assert places(["manylinux_2_17_aarch64", "manylinux2014_aarch64"]) == (
        ("linux-aarch64",),
        "2.17",
        None,
    )
    assert places(["macosx_11_0_universal2"])[0] == ("macos-arm64", "macos-x86_64")
    assert places(["manylinux_2_28_s390x", "win32"]) == ((), None, None)
    assert len(places(["any"])[0]) == 6
    assert tag_names("torch-2.9.0-cp313-cp313t-win_amd64.whl") == (("cp313t",), ["win_amd64"])
    assert tag_names("xformers-0.0.35-cp39-abi3-win_amd64.whl")[0] == ("cp39-abi3",)
    assert tag_names("x-1-cp310.cp39-abi3-win_amd64.whl")[0] == ("cp39-abi3", "cp310-abi3")


@pytest.mark.parametrize(
    ("package", "version", "cuda", "platform", "channel"),
    [
        ("torchvision", "0.14.1+cu117", None, "linux-x86_64", "cu117"),
        ("torchvision", "0.14.1+cpu", None, "windows-x86_64", "cpu"),
        ("torchvision", "0.8.2", None, "linux-x86_64", ""),
        ("torchvision", "0.10.0", None, "linux-aarch64", "cpu"),
        ("torchvision", "0.10.0+git1a2b", None, "linux-x86_64", ""),
        ("torchvision", None, None, "linux-aarch64", ""),
        ("torch", "1.1.0", "9.0.176", "linux-x86_64", "cu90"),
        ("torch", "1.7.1", "10.2", "linux-x86_64", "cu102"),
        ("torchdata", "0.11.0+cpu", None, "linux-x86_64", ""),
    ],
)
def test_what_a_wheel_was_built_for(
    package: str, version: str | None, cuda: str | None, platform: str, channel: str
) -> None:
    content = Content(package, "x-cp39-cp39-x.whl", "0", "", version, cuda)
    assert read_channel(content, platform) == channel
    assert read_channel(content._replace(file="x-py3-none-any.whl"), platform) == ""


def test_a_wheel_goes_before_what_rows_tell() -> None:
    """Facts pair torchvision 0.13.0 with torch 1.12.0; its wheels for ARM take any torch."""
    catalog = load_catalog()
    for version in ("0.13.0", "0.14.1"):
        told = {
            b.platform: b.requires_torch
            for b in catalog.find("torchvision", version=version, home="pypi")
        }
        assert told["linux-aarch64"] == told["macos-arm64"] == ">=0"
        assert (told["linux-x86_64"] or "").startswith("==1.1")
    (build,) = catalog.find("torchvision", version="0.13.0", home="pypi", platform="linux-x86_64")
    assert (build.channel, build.cuda) == ("cu102", "10.2")
    assert "manylinux1_x86_64.whl sha256:" in build.source


def test_contradicting_wheels_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = json.loads(MEASURED.read_text(encoding="utf-8"))
    for row in state["contents"]:
        if row[1] == "torchvision-0.16.0-cp310-cp310-manylinux1_x86_64.whl":
            row[4] = "0.16.0+cu118"
    measured = tmp_path / "measured.json"
    measured.write_text(json.dumps(state))
    assert run(facts_folder(), "--measured", measured, "--out", tmp_path / "out") == 0
    assert "torchvision 0.16.0 linux-x86_64: cu121 or cu118?" in capsys.readouterr().out


def test_stable_abi_in_rows_of_channels() -> None:
    builds = load_catalog().find("xformers", version="0.0.33", home="channel")
    assert {b.pythons for b in builds} == {("cp39-abi3",)}


@pytest.mark.parametrize("script", ["build_catalog", "measure_wheels"])
def test_scripts_run_from_any_folder(tmp_path: Path, script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / f"{script}.py", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage:" in done.stdout


def test_locked_wheels() -> None:
    base = "https://download.pytorch.org/whl"
    raw = {"sha256": "0" * 64, "confidence": "lockfile"}
    wheel = locked_wheel(
        {**raw, "url": f"{base}/cu126/torch-2.9.0%2Bcu126-cp312-cp312-manylinux_2_28_x86_64.whl"}
    )
    assert wheel is not None
    assert (wheel.version, wheel.label, wheel.channel) == ("2.9.0", "cu126", "cu126")
    test_page = f"{base}/test/cu126/torch-2.9.0%2Bcu126-cp312-cp312-win_amd64.whl"
    assert locked_wheel({**raw, "url": test_page}) is None


def test_rows_of_test_pages_are_left_out() -> None:
    raw = {
        "channel": "test/cu130",
        "platform": "win_amd64",
        "confidence": "lockfile",
        "exists": True,
        "source": ["x"],
    }
    assert read_row(raw, "torch", "2.9.0") == []
    (row,) = read_row({**raw, "channel": "cu130", "note": "n"}, "torch", "2.9.0")
    assert isinstance(row, Row)
    assert (row.platform, row.source) == ("windows-x86_64", "x [n]")


def test_many_sources_are_counted() -> None:
    assert sources(["a", "a", "b"]) == "a; b"
    assert sources(list("abcdef")) == "a; b; c; d; and 2 more"


def test_missing_measurements_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FloorError, match="measure_wheels"):
        run(facts_folder(), "--measured", tmp_path / "none.json", "--out", tmp_path / "out")


def test_the_catalog_has_the_date_of_the_file_lists() -> None:
    dates = load(MEASURED.read_text(encoding="utf-8"))["dates"]
    assert load_catalog().date == dates["index"]
