"""SARIF logs against the schema of the standard (OASIS), which is not kept here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import jsonschema
import pytest

ROOT = Path(__file__).parent.parent.parent
URL = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


@lru_cache
def official() -> Any:
    """Return the schema: the file that ``TORCHPIN_SARIF_SCHEMA`` names, or as OASIS serves it."""
    named = os.environ.get("TORCHPIN_SARIF_SCHEMA")
    if named:
        return json.loads(Path(named).read_text("utf-8"))
    try:
        with urlopen(URL, timeout=20) as answer:
            return json.loads(answer.read())
    except (URLError, TimeoutError, ConnectionError):
        return None


def log_of(*words: str, folder: Path = ROOT, environ: dict[str, str] | None = None) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "check", "--output-format", "sarif", *words],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "place", ("examples/legacy-cluster", "examples/mixed-fleet", "examples/uv-project", "docs")
)
def test_logs_are_valid(place: str) -> None:
    schema = official()
    if schema is None:
        pytest.skip(f"{URL} cannot be reached, and TORCHPIN_SARIF_SCHEMA names no copy of it")
    log = log_of(place)
    jsonschema.Draft7Validator(schema).validate(log)
    assert (place == "docs") == (not log["runs"][0]["results"])
    log["runs"][0]["results"] = [{"message": {}}]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(log)


def test_a_log_with_what_is_silenced_is_valid(tmp_path: Path) -> None:
    schema = official()
    if schema is None:
        pytest.skip(f"{URL} cannot be reached, and TORCHPIN_SARIF_SCHEMA names no copy of it")
    (tmp_path / "requirements.txt").write_text(
        "torch==2.15.0  # torchpin: ignore[TP201] no V100\ntorchvision==0.1.99\n"
    )
    log = log_of("--ignored", "--gpu", "V100", "--python", "3.11", folder=tmp_path)
    jsonschema.Draft7Validator(schema).validate(log)
    told = [one["suppressions"] for one in log["runs"][0]["results"]]
    assert [] in told and any(told)
    log["runs"][0]["results"][0]["suppressions"] = [{"justification": "without a kind"}]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(log)


def test_rules_and_results_say_what_services_read(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.15.0\n")
    log = log_of("--gpu", "V100", "--python", "3.11", folder=tmp_path)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    kernels = next(one for one in rules if one["id"] == "TP201")
    assert kernels["properties"] == {"tags": ["pytorch", "hardware"], "problem.severity": "error"}
    assert kernels["help"]["markdown"] and kernels["shortDescription"]["text"]
    result = next(one for one in run["results"] if one["ruleId"] == "TP201")
    assert len(result["partialFingerprints"]["torchpin/v1"]) == 64
    (tmp_path / "requirements.txt").write_text("# one line more\ntorch==2.15.0\n")
    moved = log_of("--gpu", "V100", "--python", "3.11", folder=tmp_path)["runs"][0]["results"]
    assert result["partialFingerprints"] in [one["partialFingerprints"] for one in moved]


def test_rules_lead_to_their_pages_where_the_package_names_them(tmp_path: Path) -> None:
    """No link is written as long as the metadata name no documentation; then every rule has one."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "requirements.txt").write_text("torch==2.15.0\n")
    installed = tmp_path / "installed" / "torchpin-99.dist-info"
    installed.mkdir(parents=True)
    for url in ("", "https://docs.example/torchpin/"):
        more = f"Project-URL: Documentation, {url}\n" if url else ""
        (installed / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: torchpin\nVersion: 99\n{more}"
        )
        environ = {**os.environ, "PYTHONPATH": str(installed.parent)}
        log = log_of("--gpu", "V100", folder=folder, environ=environ)
        rules = log["runs"][0]["tool"]["driver"]["rules"]
        page = f"{url}reference/rules/"
        assert rules and [one.get("helpUri") for one in rules] == [
            f"{page}{one['id']}/" if url else None for one in rules
        ]
        for one in rules:
            assert (ROOT / "docs" / "reference" / "rules" / f"{one['id']}.md").is_file()
    assert "docs.example" not in json.dumps(log_of("--gpu", "V100", folder=folder))


def test_a_fix_that_would_write_credentials_stays_out(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "--extra-index-url https://user:hunter2@mirror.example/whl/cu130\ntorch==2.14.1+cu130\n"
    )
    said = json.dumps(log_of("--gpu", "V100", "--python", "3.11", folder=tmp_path))
    assert "hunter2" not in said and "****" not in json.dumps(
        [
            change
            for one in json.loads(said)["runs"][0]["results"]
            for fix in one.get("fixes", ())
            for change in fix["artifactChanges"]
        ]
    )
