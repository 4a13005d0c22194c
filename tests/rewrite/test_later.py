"""A command that is mended takes those behind it along, whatever form they are written in."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.engine import FixResult, Options, fix
from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import fleet_from_options

CHANNELS = "https://download.pytorch.org/whl/"
PYTHON = "FROM python:3.11-slim\n"
TORCH = f"RUN pip install torch==2.11.0 --index-url {CHANNELS}cu128\n"
AUDIO = f"pip install torchaudio==2.11.0 --index-url {CHANNELS}cu128"
WORDS = ", ".join(f'"{word}"' for word in AUDIO.split())


def fleet(*gpus: str, driver: str = "580.65.06") -> Fleet:
    found = fleet_from_options(
        gpus=gpus, driver=driver, python=("3.11",), platform="linux-x86_64", glibc=None
    )
    assert found is not None
    return found


def mended(folder: Path, text: str, *gpus: str, unsafe: bool = False, **files: str) -> FixResult:
    (folder / "Dockerfile").write_text(text)
    for name, content in files.items():
        (folder / f"{name}.txt").write_text(content)
    return fix(Options((str(folder),), unsafe_fixes=unsafe), fleet(*gpus))


def texts(done: FixResult) -> dict[str, str]:
    return {Path(one.path).name: data.decode() for one, data in done.changes}


def faults(done: FixResult) -> list[str]:
    return [one.code for one in done.report_after.findings if one.severity != "info"]


@pytest.mark.parametrize(
    "later",
    [
        f"RUN {AUDIO}\n",
        f"RUN [{WORDS}]\n",
        f'RUN ["/bin/bash", "-c", "{AUDIO} && true"]\n',
        f"RUN <<EOF\nset -e\n{AUDIO}\nEOF\n",
        f'RUN if [ -n "$AUDIO" ]; then {AUDIO}; fi\n',
        f"FROM first\nRUN [{WORDS}]\n",
        f"ENV VIRTUAL_ENV=\nONBUILD RUN [{WORDS}]\n",
    ],
)
@pytest.mark.parametrize("form", ["shell", "list"])
def test_a_companion_of_a_later_command_follows(tmp_path: Path, later: str, form: str) -> None:
    torch = TORCH
    if form == "list":
        torch = f"RUN [{', '.join(chr(34) + one + chr(34) for one in TORCH.split()[1:])}]\n"
    text = f"FROM python:3.11-slim AS first\n{torch}{later}"
    done = mended(tmp_path, text, "V100")
    assert texts(done) == {"Dockerfile": text.replace("cu128", "cu126")}
    assert faults(done) == []
    (one,) = {one.fix for one in done.report_before.findings if one.fix is not None}
    assert one.safety == "safe" and "; torchaudio of line " in one.message


def test_another_version_takes_the_companion_along(tmp_path: Path) -> None:
    text = f"{PYTHON}{TORCH}RUN [{WORDS}]\n"
    assert texts(mended(tmp_path, text, "V100", "B200")) == {}
    done = mended(tmp_path, text, "V100", "B200", unsafe=True)
    assert texts(done) == {"Dockerfile": text.replace("2.11.0", "2.10.0")}
    assert faults(done) == []


def test_a_command_that_would_put_its_own_torch_there_is_told_of(tmp_path: Path) -> None:
    later = f"RUN pip install torch==2.11.0 torchaudio==2.11.0 -i {CHANNELS}cu128\n"
    done = mended(tmp_path, f"{PYTHON}{TORCH}{later}", "V100", "B200", unsafe=True)
    (advice,) = {one.fix for one in done.report_before.findings if one.fix is not None}
    assert advice.message.endswith("; then mind torchaudio of line 3")
    assert texts(done)["Dockerfile"].count("torch==2.10.0") == 2
    assert faults(done) == []


def test_a_companion_without_an_edit_makes_the_fix_unsafe(tmp_path: Path) -> None:
    later = f"RUN A=cu1; {AUDIO.replace('cu128', '${A}28')}\n"
    done = mended(tmp_path, f"{PYTHON}{TORCH}{later}", "V100")
    advice = {one.fix for one in done.report_before.findings if one.fix is not None}
    assert [one.safety for one in advice] == ["unsafe"]
    assert all(one.message.endswith("; then mind torchaudio of line 3") for one in advice)
    assert texts(done) == {}


def test_what_does_not_stand_beside_it_stays(tmp_path: Path) -> None:
    later = f"RUN /opt/venv/bin/{AUDIO}\nFROM python:3.11\nRUN {AUDIO}\n"
    done = mended(tmp_path, f"{PYTHON}{TORCH}{later}", "V100")
    assert texts(done) == {"Dockerfile": f"{PYTHON}{TORCH.replace('cu128', 'cu126')}{later}"}


@pytest.mark.parametrize(
    ("later", "written"),
    [
        (
            "pip install torchvision",
            f"pip install torchvision==0.26.0+cu126 --extra-index-url {CHANNELS}cu126",
        ),
        (
            "uv pip install --system torchaudio==2.11.0 --torch-backend cu128",
            "uv pip install --system torchaudio==2.11.0 --torch-backend cu126",
        ),
    ],
)
def test_a_companion_that_never_fitted_goes_with_the_torch_before_it(
    tmp_path: Path, later: str, written: str
) -> None:
    torch = TORCH.replace("cu128", "cu126")
    done = mended(tmp_path, f"{PYTHON}{torch}RUN {later}\n", "V100", unsafe=True)
    assert texts(done) == {"Dockerfile": f"{PYTHON}{torch}RUN {written}\n"}
    assert faults(done) == []


def test_a_list_of_a_later_command_follows(tmp_path: Path) -> None:
    text = f"{PYTHON}{TORCH}COPY list.txt .\nRUN pip install -r list.txt\n"
    listed = f"--index-url {CHANNELS}cu128\ntorch==2.11.0\ntorchaudio==2.11.0\nnumpy\n"
    done = mended(tmp_path, text, "V100", list=listed)
    assert texts(done) == {
        "Dockerfile": text.replace("cu128", "cu126"),
        "list.txt": listed.replace("cu128", "cu126"),
    }
    assert faults(done) == []
