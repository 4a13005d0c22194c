"""TP4 on uv projects: an extra that names another extra of its own project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Declaration, Document
from torchpin.documents.project import Project
from torchpin.documents.requirement import canonical
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, WARNING, Because, Finding, Fix
from torchpin.rules.project_words import UV, UV_SOURCES, ProjectRule, needs_of

if TYPE_CHECKING:
    from torchpin.select.forks import Need
    from torchpin.select.uv_lowering import Unit
    from torchpin.select.uv_needs import Needs


class ExtraByReference(ProjectRule):
    """An extra that brings torch through another extra, without its index.

    What it does: reports, in uv projects, an extra (or the dependencies themselves) that names
    another extra of the project, ``all = ["demo[cu126]"]``, where the source of torch is for that
    extra and declared conflicts keep extras apart.

    Why it is bad: the reference hands on the requirements of the extra and does not switch it on.
    ``uv sync --extra all`` installs torch, but not from the index of the source: PyPI's build comes
    instead, without a word. (A dependency group that names the extra does switch it on.)

    Example: ``all = ["demo[cu126]"]`` beside ``torch = { index = "pytorch-cu126", extra = "cu126"
    }`` and ``conflicts = [[{ extra = "cpu" }, { extra = "cu126" }]]``.

    Fix: lists torch in ``all`` itself, gives it a source with ``extra = "all"``, and adds
    ``{ extra = "all" }`` to the conflicts (unsafe: ``--extra all --extra cu126`` is refused from
    then on, ``--extra all`` is enough). Or install with ``--extra cu126``.

    Evidence: real uv locked and synchronised such projects.
    """

    code = "TP416"
    name = "extra-by-reference"
    severity = WARNING

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield references that lose the index of the extra that they name."""
        own = canonical(project.name)
        scoped = any(one.extra for one in project.sources)
        if not own or not scoped or not project.conflicts:
            return
        if not any(one.name == own and one.extras for one in root.declarations):
            return
        needs = needs_of(way, context)
        if needs is None:
            return
        for unit in needs.units():
            if unit[0] != own or unit[1] == "group":
                continue
            lost = [need for need in needs.declared(unit) if loses_index(need, unit, needs)]
            reference = reference_of(root, own, unit)
            if not lost or reference is None:
                continue
            yield self.tell(root, reference, unit, lost)

    def tell(self, root: Document, reference: Declaration, unit: Unit, lost: list[Need]) -> Finding:
        """Return the finding at the reference."""
        first = lost[0]
        names = list(dict.fromkeys(need.name for need in lost))
        channel = first.source.kind.channel if first.source is not None else None
        extra = first.item[2] if first.item is not None else ""
        what = f"extra {unit[2]}" if unit[1] else "the base install"
        return self.finding(
            root,
            reference.span,
            f"{what} brings {' and '.join(names)}, but not from {channel}: "
            f"that source counts only where extra {extra} itself is enabled",
            package=first.name,
            because=(
                Because(
                    f"uv sync takes {first.name} from another index through such a reference",
                    MEASURED,
                    UV,
                ),
                Because("extra is a key of a source", PUBLISHED, UV_SOURCES),
            ),
        )._replace(fix=Fix(DISPLAY, advice(root, unit, names, extra)))


def loses_index(need: Need, unit: Unit, needs: Needs) -> bool:
    """True for what a part has from an extra in a conflict, of which the source does not hold for
    it, and no other source does."""
    if need.name not in WATCHED or need.source is None or need.source.kind.kind != "channel":
        return False
    if need.item is None or need.item == unit:
        return False
    if not any(need.item in members for members in needs.conflicts):
        return False  # without conflicts the source routes every part
    return not any(
        other.name == need.name
        and other.source is not None
        and other.item in (None, unit)
        and other.mask & need.mask
        for other in needs.declared(unit)
    )


def reference_of(root: Document, own: str, unit: Unit) -> Declaration | None:
    """Return the declaration by which a part names another extra of its project."""
    for one in root.declarations:
        scope = one.scope.partition(":")
        if one.name == own and one.extras and (scope[0], canonical(scope[2])) == unit[1:]:
            return one
    return None


def advice(root: Document, unit: Unit, names: list[str], extra: str) -> str:
    """Return what to write instead."""
    if not unit[1]:
        return f"dependencies cannot switch an extra on: install with --extra {extra}"
    project = root.project
    index = next(
        (
            one.value
            for one in (project.sources if project is not None else ())
            if one.package == names[0] and one.extra and canonical(one.extra) == extra
        ),
        "",
    )
    return (
        f"list {' and '.join(names)} in extra {unit[2]} itself, with a source "
        f'{{ index = "{index}", extra = "{unit[2]}" }}, and add {{ extra = "{unit[2]}" }} to the '
        f"conflicts of {extra}; or install with --extra {extra}"
    )
