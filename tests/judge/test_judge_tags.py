"""What may be installed by its tags is not said to have no wheel: one question, one answer."""

from __future__ import annotations

import pytest

from torchpin.catalog.model import WATCHED
from torchpin.catalog.store import load_catalog
from torchpin.fleet.model import Python
from torchpin.judge.platform import judge_python
from torchpin.select.environments import python_fits

PYTHONS = [Python(3, minor, free) for minor in range(8, 16) for free in (False, minor > 12)]


@pytest.mark.parametrize("package", sorted(WATCHED))
def test_select_and_judge_read_tags_alike(package: str) -> None:
    for build in load_catalog().builds(package):
        for python in dict.fromkeys(PYTHONS):
            fits, _ = python_fits(build, python)
            (reason,) = judge_python(build, python)
            contrary = "fails" if fits else "runs"
            assert reason.status != contrary, (build.title, build.platform, str(python))
