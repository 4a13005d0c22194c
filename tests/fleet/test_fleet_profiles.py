"""Every example profile of fixtures/profiles, read and checked against the JSON Schema."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from torchpin.errors import ConfigError
from torchpin.fleet.profile import fleet_schema_path, load_profile

jsonschema: Any = importlib.import_module("jsonschema")

FIXTURES = Path(__file__).parents[2] / "fixtures" / "profiles"
VALID = sorted(FIXTURES.glob("valid/*/*.toml"))
INVALID = sorted(FIXTURES.glob("invalid/*/*.toml"))
SCHEMA_SEES = {
    "unknown-top-key",
    "unknown-group-key",
    "misplaced-key",
    "prefix-in-own-file",
    "missing-gpus",
    "gpu-as-number",
    "driver-as-number",
    "driver-latest",
    "driver-windows-form",
    "glibc-impossible",
    "bad-code",
    "bad-index-word",
    "bad-client",
    "bad-policy",
    "bad-group-name",
    "files-as-string",
    "several",
    "dotted",
}
"""Invalid profiles that the schema alone refuses; the others need torchpin's knowledge."""


def table(path: Path) -> Any:
    parser: Any = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")
    data = parser.loads(path.read_text(encoding="utf-8"))
    return data["tool"]["torchpin"] if path.name == "pyproject.toml" else data


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(Path(fleet_schema_path()).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def name(path: Path) -> str:
    return path.parent.name


@pytest.mark.parametrize("path", VALID, ids=name)
def test_valid_profile(path: Path, validator: Any) -> None:
    fleet = load_profile(str(path))
    assert fleet.path == str(path)
    assert [group.name for group in fleet.groups] == list(table(path).get("fleet", {}))
    assert [error.message for error in validator.iter_errors(table(path))] == []


@pytest.mark.parametrize("path", INVALID, ids=name)
def test_invalid_profile(path: Path) -> None:
    expected = re.findall(r"# expect: ([0-9]+): (.*)", path.read_text(encoding="utf-8"))
    assert expected
    with pytest.raises(ConfigError) as caught:
        load_profile(str(path))
    assert caught.value.exit_code == 2
    text = str(caught.value)
    places = [int(n) for n in re.findall(rf"^{re.escape(str(path))}:([0-9]+): ", text, re.M)]
    for line, fragment in expected:
        assert fragment in text
        assert int(line) in (places or [0])
    assert sorted(places or [0]) == sorted({int(line) for line, _ in expected})


NO_TABLE = {"not-toml", "duplicate-group", "no-table"}
TABLES = [path for path in INVALID if name(path) not in NO_TABLE]


@pytest.mark.parametrize("path", TABLES, ids=name)
def test_schema_agrees(path: Path, validator: Any) -> None:
    refused = bool(list(validator.iter_errors(table(path))))
    assert refused == (name(path) in SCHEMA_SEES)
