"""A script with a block of metadata (PEP 723), as ``uv run`` resolves it without a lock.

uv solves a script for the interpreter and machine that run it, not for every platform at once as
it locks a project: here the target's. Indexes and sources of the block count as in a project.
"""

from __future__ import annotations

from torchpin.documents.base import Document
from torchpin.fleet.model import Target
from torchpin.select.environments import marker_environment
from torchpin.select.facts import Facts
from torchpin.select.model import Install, Placed, SelectedSet
from torchpin.select.uv_project import select_uv_project


def select_script(install: Install, target: Target, catalog: Facts) -> SelectedSet:
    """Return what ``uv run`` would install for a script on ``target``."""
    here = narrowed(install.root, target)

    def moved(placed: tuple[Placed, ...]) -> tuple[Placed, ...]:
        return tuple(
            one._replace(document=here) if one.document is install.root else one for one in placed
        )

    def back(placed: Placed | None) -> Placed | None:
        if placed is not None and placed.document is here:
            return placed._replace(document=install.root)
        return placed

    found = select_uv_project(
        install._replace(
            root=here,
            documents=tuple(here if one is install.root else one for one in install.documents),
            requirements=moved(install.requirements),
            constraints=moved(install.constraints),
            settings=here if install.settings is install.root else install.settings,
        ),
        target,
        catalog,
    )
    return found._replace(
        install=install,
        selections=tuple(one._replace(placed=back(one.placed)) for one in found.selections),
    )


def narrowed(root: Document, target: Target) -> Document:
    """Return a script's document as it stands for one machine and one Python."""
    project = root.project
    if project is None:
        return root
    values = marker_environment(target)
    marker = (
        f"sys_platform == '{values['sys_platform']}'"
        f" and platform_machine == '{values['platform_machine']}'"
    )
    python = project.requires_python
    if target.python is not None:
        python = f"=={values['python_version']}.*"
    return root._replace(project=project._replace(environments=(marker,), requires_python=python))
