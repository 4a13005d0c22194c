"""Real uv locks the fixed scripts as promised: their blocks, indexes and sources are accepted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.clients.installs import catalog_wheels, plain_wheel  # noqa: E402
from tests.clients.runners import clean_environment, uv_binary  # noqa: E402
from tests.clients.stub_server import Stub  # noqa: E402
from tests.projects.project_oracle import interpreter_for  # noqa: E402
from tests.projects.uv_lock_walk import parse  # noqa: E402

FILES = ROOT / "fixtures" / "files"
SCRIPTS = sorted(
    one for one in FILES.glob("script-*/fixed/*.py") if not one.parts[-3].startswith("script-lock-")
)
"""Without a lock of their own, so that what installs is what the script says."""
CHANNELS = "https://download.pytorch.org"

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def world() -> Iterator[Stub]:
    """A stub that serves everything that the shipped catalog holds to exist."""
    others = [plain_wheel(name) for name in ("numpy", "rich")]
    with Stub(wheels=[*catalog_wheels(), *others]) as stub:
        yield stub


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 3


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.parts[-3])
def test_uv_locks_the_script(path: Path, world: Stub, tmp_path: Path) -> None:
    binary = uv_binary()
    if binary is None:
        pytest.skip("uv is not installed")
    text = path.read_text("utf-8")
    script = tmp_path / path.name
    script.write_text(text.replace(CHANNELS, world.base), "utf-8")
    environment = clean_environment()
    del environment["UV_NO_CONFIG"]
    environment |= {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_DEFAULT_INDEX": world.pypi}
    python = interpreter_for(re.sub(r"^# ", "", text, flags=re.M))
    done = subprocess.run(
        [binary, "lock", "--script", path.name, "--no-progress", "--python", python],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert script.read_text("utf-8") == text.replace(CHANNELS, world.base)
    lock = parse((tmp_path / f"{path.name}.lock").read_text("utf-8"))
    locked = {one["version"] for one in lock["package"] if one["name"] == "torch"}
    promised = json.loads((path.parent.parent / "expected.json").read_text("utf-8"))["installs"]
    told = {
        packages["torch"].split(" ")[0]
        for key, packages in promised.items()
        if key.startswith(f"{path.name} ")
    }
    assert told
    assert told <= locked
