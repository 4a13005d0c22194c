"""``tox.toml``: what each environment installs.

``[env_run_base]`` holds what environments have in common, ``[env.NAME]`` what is their own; a table
in ``deps`` (``{ replace = "ref" … }``) is left out and makes the part unsure. Source:
https://tox.wiki/en/latest/config.html.
"""

from __future__ import annotations

from torchpin.documents.base import Document, IndexLine, Span
from torchpin.documents.lines import Logical
from torchpin.documents.parts import Part, part_of, quoted
from torchpin.documents.toml_view import View, opened_toml
from torchpin.documents.tox_ini import UV_VARIABLES, VARIABLES
from torchpin.documents.tox_names import MOST, joined_name, marker_of, python_of, range_of

KIND = "tox.toml"


def read_tox_toml(path: str, data: bytes) -> Document:
    """Return the document of a ``tox.toml``; never raises."""
    file, root = opened_toml(path, data, KIND)
    if root is None:
        return file
    return file._replace(parts=tuple(parts_of(file, root)))


def parts_of(file: Document, root: View) -> list[Part]:
    """Return the parts of a configuration of tox in TOML, of which ``root`` is the top."""
    base = root.get("env_run_base")
    own = {name: view for name, view in root.entries("env") if view.is_table()}
    names = [one.value for one in root.strings("env_list")]
    names = list(dict.fromkeys([*names, *own]))[:MOST] or (["base"] if base is not None else [])
    requires = [one.value for one in root.strings("requires")]
    client = "uv" if any(one.startswith("tox-uv") for one in requires) else "pip"
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in names:
        found = [_key(own.get(name), base, key) for key in ("deps", "set_env", "platform")]
        deps = found[0]
        if deps is not None and isinstance(deps.value, list):
            places = tuple(-1 if one is None else one.node.start for one in found)
            groups.setdefault(places, []).append(name)
    parts = []
    for some in groups.values():
        deps, variables = (
            _key(own.get(some[0]), base, "deps"),
            _key(own.get(some[0]), base, "set_env"),
        )
        systems = _key(own.get(some[0]), base, "platform")
        pythons = tuple(dict.fromkeys(_python(name, own, base) for name in some))
        assert deps is not None
        lines, unsure = _lines(file.text, deps)
        part = part_of(
            file,
            lines,
            name=joined_name(some, "tox "),
            span=Span(deps.node.start, deps.node.end),
            syntax="toml",
            client=client,
        )
        indexes = (*_from_variables(variables), *part.document.indexes)
        parts.append(
            part._replace(
                document=part.document._replace(indexes=indexes),
                python=range_of(pythons),
                pythons=pythons if any(pythons) else (),
                uncertain="some of its deps are taken from elsewhere" if unsure else None,
                environment=some[0],
                marker=marker_of(systems.value)
                if systems is not None and isinstance(systems.value, str)
                else None,
            )
        )
    return parts


def _key(own: View | None, base: View | None, key: str) -> View | None:
    for view in (own, base):
        found = view.get(key) if view is not None and view.is_table() else None
        if found is not None:
            return found
    return None


def _lines(text: str, deps: View) -> tuple[list[Logical], bool]:
    lines, unsure = [], False
    for item in deps.items():
        if not isinstance(item.value, str):
            unsure = True
        elif "{" in item.value.replace("{tox_root}", ""):
            unsure = unsure or "torch" in item.value
        else:
            value = item.value.replace("{tox_root}/", "")
            lines.append(quoted(value, text, *item.span))
    return lines, unsure


def _from_variables(view: View | None) -> list[IndexLine]:
    found: list[IndexLine] = []
    if view is None or not view.is_table():
        return found
    for key, value in view.entries():
        known = VARIABLES.get(key) or UV_VARIABLES.get(key)
        if known is None or not isinstance(value.value, str):
            continue
        many = len(value.value.split()) != 1 or not value.plain
        for url in value.value.split():
            found.append(
                IndexLine(known, url, value.entry, value.span, value.entry, from_variable=many)
            )
    return found


def _python(name: str, own: dict[str, View], base: View | None) -> str:
    version = python_of(name)
    if version is None:
        given = _key(own.get(name), base, "base_python")
        written = given.value if given is not None else None
        first = written[0] if isinstance(written, list) and written else written
        version = python_of(first) if isinstance(first, str) else None
    return version or ""
