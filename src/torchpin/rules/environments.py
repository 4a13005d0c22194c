"""Environments that only test, of tox and nox: what is no error of the fleet there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpin.evidence import INFERRED
from torchpin.fleet.model import Fleet, Python
from torchpin.rules.containers import on_hardware
from torchpin.rules.model import ERROR, WARNING, Because, Finding

if TYPE_CHECKING:
    from torchpin.documents.parts import Part


def is_foreign(python: Python | str | None, part: Part | None, fleet: Fleet) -> bool:
    """True if an environment is made with a Python that no machine of the fleet has.

    A group that declares none may have any.
    """
    if part is None or not part.pythons or python is None:
        return False
    groups = fleet.groups
    if not all(group.pythons for group in groups):
        return False
    return all(str(python) != str(one) for group in groups for one in group.pythons)


def of_environment(finding: Finding, part: Part, fleet: Fleet) -> Finding | None:
    """Return a finding on an environment; on a Python that no machine of the fleet has, what rests
    on that Python or on the machines is a warning: a test environment is no deployment. How long
    releases will go on to run there is nobody's concern: None."""
    if not is_foreign(finding.python, part, fleet):
        return finding
    if finding.code.startswith("TP60"):
        return None
    if finding.severity != ERROR:
        return finding
    if finding.code != "TP102" and not on_hardware(finding):
        return finding
    text = f"not an error: no machine of the fleet has Python {finding.python}, it only tests"
    return finding._replace(
        severity=WARNING, because=(*finding.because, Because(text, INFERRED, ""))
    )
