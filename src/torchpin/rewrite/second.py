"""The second opinion: what pip-requirements-parser 32 reads in a requirements file.

Known faults of it that are worked round: it reads from files only (``from_string`` raises
``NameError``), refuses ``--config-settings``, and does not replace ``${VARIABLES}``.
"""

from __future__ import annotations

import os
from collections import Counter

from torchpin.documents.base import Document, Edit, Span, apply_edits
from torchpin.documents.options import LONG
from torchpin.documents.requirement import canonical
from torchpin.patterns import regex

Fact = tuple[object, ...]

_BLANK = r"[^\S\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
_VOID = regex(rf"(?<!{_BLANK}){_BLANK}{{500,}}")
"""Blanks without end within a line: the reader's search for comments takes quadratic time on
them."""


def facts_of_own(document: Document) -> Counter[Fact]:
    """Return what our reader sees, in the words of ``facts_of``."""
    facts: Counter[Fact] = Counter()
    with_declaration: set[Span] = set()
    for declaration in document.declarations:
        with_declaration.add(declaration.line_span)
        if not declaration.valid or declaration.from_variable:
            continue
        hashes = () if declaration.editable else declaration.hashes
        facts[
            (
                "requirement",
                declaration.name,
                _specifier(declaration.specifier),
                tuple(sorted(declaration.extras)),
                _marker(declaration.marker),
                declaration.url or "",
                tuple(sorted(f"{digest.algorithm}:{digest.digest}" for digest in hashes)),
                declaration.editable,
            )
        ] += 1
    for line in document.indexes:
        if line.line_span not in with_declaration and not line.from_variable:
            facts[(line.option, line.url)] += 1
    for include in document.includes:
        if "${" not in include.path:
            facts[("--constraint" if include.constraint else "--requirement", include.path)] += 1
    return facts


def facts_of(document: Document) -> Counter[Fact]:
    """Return what pip-requirements-parser sees in the document."""
    import tempfile

    from pip_requirements_parser import RequirementsFile

    text = _VOID.sub(" ", apply_edits(document.text, _unknown_to_it(document)))
    by_locale = any(problem.code == "encoding" for problem in document.problems)
    with tempfile.TemporaryDirectory(prefix="torchpin-") as folder:
        path = os.path.join(folder, "requirements.txt")
        with open(path, "wb") as file:
            file.write(text.encode() if by_locale else document.encode(text))
        parsed = RequirementsFile.from_file(path, include_nested=False)
    facts: Counter[Fact] = Counter()
    for requirement in parsed.requirements:
        link = "" if requirement.link is None else str(requirement.link.url)
        if "${" in requirement.requirement_line.line.partition(" --hash")[0]:
            continue
        facts[
            (
                "requirement",
                canonical(requirement.name or ""),
                "" if link else _specifier(str(requirement.specifier or "")),
                tuple(sorted(canonical(extra) for extra in requirement.extras)),
                _marker(str(requirement.marker) if requirement.marker else None),
                link,
                () if requirement.is_editable else tuple(sorted(requirement.hash_options)),
                bool(requirement.is_editable),
            )
        ] += 1
    for line in parsed.options:
        for name, value in line.options.items():
            option = "--" + str(name).rstrip("s").replace("_", "-")
            if name == "find_links":
                option = "--find-links"
            if option not in _COMPARED:
                continue
            for one in value if isinstance(value, list) else [value]:
                shown = "" if one is True else str(one)
                if "${" not in shown:
                    facts[(option, shown)] += 1
    return facts


_COMPARED = (
    "--index-url",
    "--extra-index-url",
    "--find-links",
    "--no-index",
    "--requirement",
    "--constraint",
)


def _unknown_to_it(document: Document) -> tuple[Edit, ...]:
    """Return edits that take out what makes it drop a whole requirement and pip does not mind.

    That is ``--config-settings``, and global options behind a requirement, which pip ignores.
    """
    spans = {
        option.span
        for declaration in document.declarations
        for option in declaration.options
        if option.name in LONG
    }
    lines = {declaration.line_span for declaration in document.declarations}
    spans |= {line.span for line in document.indexes if line.misplaced and line.line_span in lines}
    return tuple(Edit(span, "") for span in spans)


def _specifier(text: str) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return ",".join(sorted(str(one).replace(" ", "") for one in SpecifierSet(text)))
    except (InvalidSpecifier, ValueError):
        return text


def _marker(text: str | None) -> str:
    if text is None:
        return ""
    from packaging.markers import InvalidMarker, Marker

    try:
        return str(Marker(text))
    except (InvalidMarker, ValueError):
        return text
