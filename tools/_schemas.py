"""Reference pages made from the JSON Schemas that torchpin ships."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent / "src" / "torchpin"
PROFILE = ROOT / "fleet" / "schema.json"
REPORTS = ROOT / "report" / "schemas"


def kind_of(schema: dict[str, Any]) -> str:
    """Return what a value may be, in words."""
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    if "anyOf" in schema or "oneOf" in schema:
        kinds = [kind_of(one) for one in schema.get("anyOf", schema.get("oneOf", []))]
        return " or ".join(dict.fromkeys(kinds))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and schema.get("items", {}).get("type") in ("string", "integer"):
        return f"array of {schema['items']['type']}s"
    return str(kind)


def rows(
    schema: dict[str, Any], whole: dict[str, Any], path: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Yield (path of the key, what it may be, what it says) for all keys, in their order."""
    schema = resolved(schema, whole)
    required = schema.get("required", ())
    for name, value in schema.get("properties", {}).items():
        value = resolved(value, whole)
        here = f"{path}.{name}" if path else name
        told = value.get("description", "")
        if "default" in value:
            told = f"{told} Default: `{json.dumps(value['default'])}`.".strip()
        if schema.get("additionalProperties") is False and name in required and path:
            told = f"{told} Required.".strip()
        yield here, kind_of(value), told
        yield from below(value, whole, here)


def below(
    value: dict[str, Any], whole: dict[str, Any], here: str
) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of what lies inside of a value: an object, a list or a table of them."""
    for one in (value, *value.get("anyOf", ()), *value.get("oneOf", ())):
        one = resolved(one, whole)
        if one.get("properties"):
            yield from rows(one, whole, here)
        extra = one.get("additionalProperties")
        if isinstance(extra, dict):
            yield from rows(resolved(extra, whole), whole, f"{here}.NAME")
        items = one.get("items")
        if isinstance(items, dict):
            yield from rows(resolved(items, whole), whole, f"{here}[]")


def resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its ``$ref`` replaced."""
    if "$ref" not in schema:
        return schema
    found: Any = whole
    for step in schema["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return {**found, **{key: value for key, value in schema.items() if key != "$ref"}}


def table(schema: dict[str, Any]) -> list[str]:
    """Return the keys of a schema as the rows of a Markdown table."""
    out = ["| key | value | |", "|---|---|---|"]
    found = [*rows(schema, schema)]
    for one in schema.get("oneOf", ()):  # each line is one of several objects
        which = one["properties"]["kind"]["const"]
        found += [(f"{which}: {path}", kind, told) for path, kind, told in rows(one, schema)]
    for path, kind, told in found:
        cells = (f"`{path}`", kind, told)
        out.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return out


def settings_page() -> str:
    """Return the page of all keys of a profile."""
    schema = json.loads(PROFILE.read_text("utf-8"))
    head = (
        "# All settings",
        "",
        "The keys of `torchpin.toml`; in `pyproject.toml` they stand in `[tool.torchpin]`. NAME is",
        "of your choice. What they mean, with examples: [the fleet profile](fleet.md).",
        "",
    )
    return "\n".join((*head, *table(schema), ""))


def fields_page() -> str:
    """Return the page of all keys of the JSON reports."""
    parts = [
        "# JSON fields",
        "",
        "Every key of the [JSON reports](json.md), as the schemas in `torchpin/report/schemas/`",
        "list them. `[]` is each member of an array, NAME each name of a table.",
        "",
    ]
    for path in sorted(REPORTS.glob("*.json")):
        schema = json.loads(path.read_text("utf-8"))
        parts += [f"## {path.name}", "", schema.get("description", ""), ""]
        parts += [*table(schema), ""]
    return "\n".join(parts)
