"""A fix leaves a file to the hardware that it is made for, and a mirror to its host."""

from pathlib import Path

import pytest

from torchpin import engine
from torchpin.fleet.model import Fleet
from torchpin.fleet.options import fleet_from_options
from torchpin.fleet.profile import load_profile
from torchpin.rewrite.purpose import named_kinds
from torchpin.rules.model import DISPLAY, SAFE, UNSAFE

CHANNELS = "https://download.pytorch.org/whl"
ROCM = f"--extra-index-url {CHANNELS}/rocm6.3\ntorch==2.7.1+rocm6.3\ntorchvision==0.22.1+rocm6.3\n"
CU128 = f"--extra-index-url {CHANNELS}/cu128\ntorch==2.7.1+cu128\ntorchvision==0.22.1+cu128\n"


def v100(driver: str = "580.65.06") -> Fleet:
    return fleet_from_options(gpus=["V100"], driver=driver, python="3.11")


def fixes(
    path: Path, fleet: Fleet, *, others: tuple[Path, ...] = (), client: str = "pip"
) -> set[tuple[str, bool]]:
    """Return safety and whether there are edits, of every fix proposed for ``path``."""
    paths = tuple(str(one) for one in (path, *others))
    report = engine.check(engine.Options(paths, isolated=True, client=client), fleet)
    return {
        (finding.fix.safety, bool(finding.fix.edits))
        for finding in report.findings
        if finding.fix and finding.path == str(path)
    }


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("requirements.txt", set()),
        ("requirements-cuda-legacy.txt", {"cuda"}),
        ("requirements_cu118.txt", {"cuda"}),
        ("requirements-hipblas.txt", {"rocm"}),
        ("a/rocm/requirements_linux.txt", set()),
        ("requirements_macos_amd64.txt", {"macos"}),
        ("requirements-amd.txt", {"rocm"}),
        ("requirements_ipex_xpu.txt", {"xpu"}),
        ("requirements.docker-cpu.txt", {"cpu"}),
        ("requirements-machine.txt", set()),
        ("requirements-ship.txt", set()),
        ("requirements-cpu-cuda.txt", {"cpu", "cuda"}),
    ],
)
def test_what_a_name_says(name: str, kinds: set[str]) -> None:
    assert named_kinds(name) == kinds


def test_a_file_for_another_vendor_is_never_turned_safely(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(ROCM)
    assert fixes(path, v100()) == {(UNSAFE, True)}


def test_a_file_named_for_another_vendor_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "requirements-rocm.txt"
    path.write_text(ROCM)
    assert fixes(path, v100()) == {(DISPLAY, False)}


def test_beside_other_files_of_the_project_it_is_left_alone(tmp_path: Path) -> None:
    path, other = tmp_path / "requirements.txt", tmp_path / "requirements-other.txt"
    path.write_text(ROCM)
    other.write_text(CU128)
    assert fixes(path, v100(), others=(other,)) <= {(DISPLAY, False)}


def test_a_move_within_a_vendor_stays_safe(tmp_path: Path) -> None:
    path = tmp_path / "requirements-cuda.txt"
    path.write_text(CU128)
    assert fixes(path, v100()) == {(SAFE, True)}


def test_a_plain_file_on_amd_needs_consent(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.4.1\n")
    fleet = fleet_from_options(gpus=["MI300X"], python="3.11")
    assert fixes(path, fleet) == {(UNSAFE, True)}


def test_a_vendors_build_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.6.0+rocm6.4.1.git1ded221d\ntorchaudio==2.6.0+cu126\n")
    for fleet in (v100(), fleet_from_options(gpus=["MI300X"], python="3.11")):
        assert not any(edits for _, edits in fixes(path, fleet))


def test_link_pages_stay_on_the_mirror(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "--extra-index-url https://mirror.example/pytorch/whl/cu128/\n"
        "torch==2.7.1+cu128\ntqdm\nsetuptools\n"
    )
    options = engine.Options((str(path),), isolated=True, client="uv", unsafe_fixes=True)
    ((_, data),) = engine.fix(options, v100()).changes
    assert data.decode() == (
        "-f https://mirror.example/pytorch/whl/cu126/torch/\ntorch==2.7.1+cu126\ntqdm\nsetuptools\n"
    )


def test_platforms_that_take_different_channels_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(CU128.replace("2.7.1", "2.4.1").replace("0.22.1", "0.19.1"))
    profile = tmp_path / "torchpin.toml"
    profile.write_text(
        '[fleet.amd]\ngpus = ["MI300X"]\npython = "3.11"\n'
        '[fleet.desk]\ngpus = ["RTX 4090"]\npython = "3.11"\nplatform = "windows-x86_64"\n'
        'driver = "581.15"\n'
    )
    report = engine.check(
        engine.Options((str(path),), profile=str(profile)), load_profile(str(profile))
    )
    texts = {finding.fix.message for finding in report.findings if finding.fix}
    (text,) = texts
    assert "(index rocm6" in text
    assert " / torch==2.4.1+cu1" in text


def test_notes_below_a_removed_pin_go_with_it(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "numpy==2.2.6\n    # via other\nnvidia-cublas-cu11==11.11.3.6\n    # via\n    #   torch\n"
        "nvidia-cuda-nvrtc-cu11==11.8.89\n    # via torch\n# the end\ntorch==2.7.1\n"
    )
    options = engine.Options((str(path),), isolated=True, unsafe_fixes=True)
    ((_, data),) = engine.fix(options, v100()).changes
    assert data.decode() == "numpy==2.2.6\n    # via other\n# the end\ntorch==2.7.1\n"


def test_a_link_page_is_not_moved_to_an_index_that_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "-f https://download.pytorch.org/whl/torch_stable.html\ntorch==2.14.0+cu199\n", "utf-8"
    )
    fleet = fleet_from_options(gpus=["A100-SXM4-80GB"], python="3.11", platform="linux-x86_64")
    options = engine.Options(paths=(str(path),), isolated=True, unsafe_fixes=True)
    for _, data in engine.fix(options, fleet).changes:
        assert b"cu199" not in data


def test_a_safe_fix_does_not_let_another_torch_float_in(tmp_path: Path) -> None:
    """Only the index moved would let torchvision, and torch with it, float to a newer release."""
    path = tmp_path / "requirements.txt"
    path.write_text(
        f"torchvision\ntorch==2.9.1 ; sys_platform == 'win32'\n--index-url {CHANNELS}/cu124\n",
        "utf-8",
    )
    fleet = fleet_from_options(
        gpus=["A100-SXM4-80GB"], driver="460.32.03", python="3.12", platform="linux-x86_64"
    )
    ((_, data),) = engine.fix(engine.Options(paths=(str(path),), isolated=True), fleet).changes
    assert data.decode().splitlines() == [
        "torchvision==0.21.0",
        "torch==2.9.1 ; sys_platform == 'win32'",
        f"--index-url {CHANNELS}/cu118",
    ]
