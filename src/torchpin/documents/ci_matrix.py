"""Matrices of CI jobs: from lists of values to cells.

A cell maps names (``torch``, ``python-version``, ``config.torch`` of nested values) to words with
the place of their one literal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from torchpin.documents.atoms import Atom, Word, text_of
from torchpin.documents.parts import Cell as CellText
from torchpin.documents.yaml_scripts import MOST_CELLS, entry, number_of, pairs, word_of
from torchpin.documents.yaml_spans import Node
from torchpin.patterns import regex

Cell = dict[str, Word]
MOST_NAMED = 20
"""Values of one cell that are told."""
_USED = regex(r"matrix\.([\w-]+)|matrix\[\s*'([\w-]+)'")


def values_of(text: str, name: str, node: Node, depth: int = 0) -> Cell:
    """Return a value of a matrix as a cell of its own; mappings give dotted names."""
    if node.kind == "scalar":
        return {name: number_of(node, word_of(text, node))}
    found: Cell = {}
    if node.kind == "mapping" and depth < 3:
        for key, value in pairs(node):
            if len(found) >= MOST_CELLS:
                break
            found.update(values_of(text, f"{name}.{key}", value, depth + 1))
    return found


def github_cells(
    text: str,
    matrix: Node | None,
    used: frozenset[str],
    computed: Callable[[Node], Node] = lambda node: node,
) -> list[Cell] | None:
    """Return the cells of ``strategy.matrix``, told apart by the names of ``used`` alone.

    ``computed`` gives the value of a scalar that an expression makes from text of the file.

    None: it is computed, so that nothing is known. No matrix is one empty cell. Source:
    https://docs.github.com/actions/how-tos/write-workflows/choose-what-workflows-do/run-job-variations
    """
    if matrix is None:
        return [{}]
    matrix = computed(matrix)
    if matrix.kind != "mapping":
        return None
    vectors: dict[str, list[Cell]] = {}
    for key, value in pairs(matrix):
        if key in ("include", "exclude"):
            continue
        value = computed(value)
        if value.kind != "sequence":
            if key in used:
                return None
            continue
        vectors[key] = [values_of(text, key, item) for item in value.items] or [{}]
    include = _listed(text, matrix, "include", computed)
    exclude = _listed(text, matrix, "exclude", computed)
    if include is None:
        return None
    matched = {key.split(".")[0] for one in exclude or () for key in one}
    matched |= {key.split(".")[0] for one in include for key in one if key.split(".")[0] in vectors}
    wanted = [key for key in vectors if key in used or key in matched]
    cells: list[Cell] = []
    for combination in product(*(vectors[key] for key in wanted)):
        cell: Cell = {}
        for one in combination:
            cell.update(one)
        if len(cells) >= MOST_CELLS:
            break
        if exclude and any(_fits(one, cell) for one in exclude):
            continue
        cells.append(cell)
    if not vectors:
        cells = []
    base = [dict(cell) for cell in cells]
    more: list[Cell] = []
    for one in include:
        fits = [
            number
            for number, cell in enumerate(base)
            if all(key not in cell or _same(word, cell[key]) for key, word in one.items())
            and not any(key not in wanted and key.split(".")[0] in vectors for key in one)
        ]
        for number in fits:
            cells[number].update(
                {key: word for key, word in one.items() if key not in base[number]}
            )
        if not fits and len(cells) + len(more) < MOST_CELLS:
            more.append(one)
    # A literal that include or exclude repeats has more than one place.
    loose = [
        {
            key: _homeless(word) if key.split(".")[0] in matched else word
            for key, word in one.items()
        }
        for one in cells
    ]
    return _distinct([*loose, *more], used) or [{}]


def used_keys(text: str) -> frozenset[str]:
    """Return the keys of the matrix that a text names."""
    return frozenset(match[1] or match[2] for match in _USED.finditer(text))


def _listed(
    text: str, matrix: Node, key: str, computed: Callable[[Node], Node]
) -> list[Cell] | None:
    node = entry(matrix, key)
    if node is None:
        return []
    node = computed(node)
    if node.kind != "sequence":
        return None
    found: list[Cell] = []
    for item in node.items:
        cell: Cell = {}
        for name, value in pairs(item):
            cell.update(values_of(text, name, value))
        if cell:
            found.append(cell)
    return found


def _fits(pattern: Mapping[str, Word], cell: Mapping[str, Word]) -> bool:
    return all(key in cell and _same(word, cell[key]) for key, word in pattern.items())


def _same(one: Word, other: Word) -> bool:
    return text_of(one) == text_of(other)


def _homeless(word: Word) -> Word:
    return tuple(Atom(one.value, one.start, one.end, False) for one in word)


def _distinct(cells: Sequence[Cell], used: frozenset[str]) -> list[Cell]:
    found: dict[tuple[tuple[str, str], ...], Cell] = {}
    for cell in cells:
        key = tuple(
            sorted(
                (name, text_of(word)) for name, word in cell.items() if name.split(".")[0] in used
            )
        )
        found.setdefault(key, cell)
    return list(found.values())


def plain_cells(text: str, entries: Node | None) -> Iterator[Cell]:
    """Yield the cells of a list of mappings of lists (GitLab's ``parallel: matrix``)."""
    count = 0
    for item in entries.items if entries is not None else ():
        names: list[str] = []
        lists: list[list[Word]] = []
        for key, value in pairs(item):
            names.append(key)
            lists.append([number_of(one, word_of(text, one)) for one in value.scalars()] or [()])
        for combination in product(*lists):
            count += 1
            if count > MOST_CELLS:
                return
            yield dict(zip(names, combination, strict=True))


def named(cell: Mapping[str, Word], used: frozenset[str] | None = None) -> CellText:
    """Return the values of a cell that are used, by their names, as findings tell them."""
    return tuple(
        (name, text_of(word)[:40])
        for name, word in cell.items()
        if (used is None or name.split(".")[0] in used) and text_of(word)
    )[:MOST_NAMED]


def title(cell: Mapping[str, Word], used: frozenset[str] | None = None) -> str:
    """Return a cell as people see it: ``(3.11, cu126)``, ``""`` for an empty one."""
    shown = [value for _, value in named(cell, used)]
    return f" ({', '.join(shown)})"[:120] if shown else ""
