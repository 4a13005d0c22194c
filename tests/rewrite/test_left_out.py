"""Which Pythons a project has to leave out before Poetry or PDM can lock a plan."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from torchpin.select.whole_lock import narrowed, narrowing


def test_every_clause_that_a_python_of_the_project_breaks() -> None:
    own = SpecifierSet(">=3.10,<4.0")
    assert narrowing(own, ">=3.11") == ">=3.11"
    assert narrowing(own, ">=3.10,!=3.14.1") == "!=3.14.1"
    assert narrowing(own, ">=3.10") == ""
    assert narrowing(SpecifierSet(">=3.11,<3.14"), ">=3.11,!=3.14.1") == ""
    assert narrowed(">=3.10,<4.0", ">=3.11,!=3.14.1") == ">=3.11,!=3.14.1,<4.0"
