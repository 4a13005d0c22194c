"""Real pip and uv install exactly what the mended commands of every golden file promise.

That the shells hand on these very words is tested with the readers.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.clients.harness import assert_installs
from tests.clients.installs import _PYPI, _PYTORCH, SERVED, others_in, shared, where_of
from tools.record_golden import FILES

from torchpin.documents.loader import load
from torchpin.documents.parts import Part
from torchpin.fleet.profile import load_profile
from torchpin.part_ways import part_targets

pytestmark = pytest.mark.clients


class Case(NamedTuple):
    folder: Path
    part: Part
    group: str
    python: str
    expected: dict[str, str]


def cases() -> list[Case]:
    """Return every part whose install on a target is known, alone and sure."""
    found: list[Case] = []
    for folder in sorted(FILES.glob("*")):
        if folder.name.partition("-")[0] not in ("docker", "shell", "make", "just"):
            continue
        if (folder / "input" / "pyproject.toml").exists():  # test_uv_pip_settings.py
            continue
        known = json.loads((folder / "expected.json").read_text("utf-8"))["installs"]
        for path in sorted((folder / "input").rglob("*")):
            mended = folder / "fixed" / path.relative_to(folder / "input")
            if not path.is_file() or path.suffix == ".toml":
                continue
            for part in load(str(mended if mended.exists() else path), {}).parts:
                document = part.document
                if part.uncertain or document.includes or part.torch_backend:
                    continue
                if any(not one.url.startswith("https://download") for one in document.indexes):
                    continue
                for key, packages in known.items():
                    name, group, python, rest = (*key.split(" ", 3), "", "")[:4]
                    if name != path.name or rest != part.name:
                        continue
                    texts = {package: text.split(" (")[0] for package, text in packages.items()}
                    if not any(text.startswith("none") for text in texts.values()):
                        found.append(Case(folder, part, group, python, texts))
    return found


CASES = cases()


def test_there_are_cases() -> None:
    assert {one.part.client for one in CASES} == {"pip", "uv"}
    assert len(CASES) >= 12


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{one.folder.name}-{one.part.name}-{one.group}" for one in CASES]
)
def test_a_command_installs_what_it_promises(case: Case) -> None:
    fleet = load_profile(str(case.folder / "input" / "torchpin.toml"))
    (target,) = {
        one
        for one in part_targets(case.part, fleet.targets())
        if one.group.name == case.group and str(one.python) == case.python
    }
    document = case.part.document
    requirements = [
        f"{one.name}{one.specifier}" for one in document.declarations if one.name and not one.url
    ]
    options = [f"{one.option}={one.url}" for one in document.indexes]
    if case.part.client == "uv":
        text = "\n".join([*(one.replace("=", " ", 1) for one in options), *requirements, ""])
        assert_installs(text, target, case.expected, "uv")
        return
    stub, pip, _ = shared()
    stub.content.add(others_in({"x": "\n".join(requirements)}))
    base = stub.base
    arguments = tuple(
        _PYPI.sub(f"{base}/pypi/simple", _PYTORCH.sub(base, one))
        for one in (*options, *requirements)
    )
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "none.txt"
        root.write_text("")
        result = pip.run(root, where_of(target), stub.at(base), arguments)
    assert result.ok, f"pip {' '.join(arguments)} stops:\n{result.log}"
    said = {name: one.version for name, one in result.packages.items() if name in SERVED}
    assert {name: said.get(name) for name in case.expected} == case.expected
