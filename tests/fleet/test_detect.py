"""``torchpin fleet detect`` with a fake NVML, fake commands and a fake /proc and /sys."""

from __future__ import annotations

import ctypes
import os
import platform as platform_module
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchpin.fleet import detect as module
from torchpin.fleet import nvml
from torchpin.fleet.importers.fold import fold
from torchpin.fleet.importers.profile import profile_text
from torchpin.fleet.model import NodeGroup
from torchpin.fleet.profile import load_profile, read_profile

linux = pytest.mark.skipif(sys.platform != "linux", reason="the fakes are those of Linux")
Detect = Callable[..., tuple[NodeGroup | None, str]]


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without NVML and without tools, whatever the real one has."""
    monkeypatch.setattr(nvml, "load", lambda: None)
    monkeypatch.setenv("PATH", "")


def detected(root: Path) -> tuple[NodeGroup | None, str]:
    """Return the group that is declared (None: none) and the text of the profile."""
    found = module.detect(str(root))
    text = profile_text(fold([found]), "test").text
    groups = read_profile(text, "torchpin.toml").groups
    return (groups[0] if groups else None), text + "".join(found.notes)


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def command(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!{shutil.which('sh', path=os.defpath)}\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Build the fake library, by the C compiler of the machine."""
    compiler = shutil.which("cc", path=os.environ.get("PATH", os.defpath))
    if compiler is None:
        pytest.skip("no C compiler")

    def make(option: str) -> str:
        path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
        source = Path(__file__).with_name("fake_nvml.c")
        path_and_tools = {**os.environ, "PATH": os.defpath}
        subprocess.run(
            [compiler, "-shared", "-fPIC", option, "-o", str(path), str(source)],
            check=True,
            env=path_and_tools,
        )
        return str(path)

    return make


@linux
def test_nvml(build: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ctypes.CDLL(build("-DNEW"))
    monkeypatch.setattr(nvml, "load", lambda: library)
    group, text = detected(tmp_path)
    assert group is not None
    assert [gpu.arch for gpu in group.gpus] == ["sm_70"]
    assert group.driver == "550.54.15"
    assert 'gpus = ["Tesla V100-SXM2-16GB"]  # NVML' in text


@linux
@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"FAKE_NAME": "NVIDIA Q900 Fancy", "FAKE_MAJOR": "12"}, '"sm_120",  # NVIDIA Q900 Fancy'),
        ({"FAKE_LOST": "1"}, "GPU 1 does not answer: the GPU has fallen off the bus"),
        ({"FAKE_INIT": "18"}, "of different versions: reboot"),
        ({"FAKE_INIT": "9"}, "the NVIDIA driver is not loaded"),
        ({"FAKE_INIT": "77"}, "NVML error 77"),
        ({"FAKE_COUNT": "0"}, "gpus = []"),
    ],
)
def test_what_nvml_tells(
    build: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    words: str,
) -> None:
    library = ctypes.CDLL(build("-DNEW"))
    monkeypatch.setattr(nvml, "load", lambda: library)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)  # os.environ reaches getenv
    assert words in detected(tmp_path)[1]


@linux
def test_an_old_nvml_tells_no_capability(build: Callable[[str], str]) -> None:
    told = nvml.ask(ctypes.CDLL(build("-DOLD")))
    assert [(gpu.name, gpu.capability) for gpu in told.gpus] == [("Tesla V100-SXM2-16GB", None)] * 2


def test_a_library_that_is_no_nvml() -> None:
    assert nvml.ask(object()).problems == ("NVML lacks nvmlInit_v2",)


@linux
def test_the_command_finds_the_library(build: Callable[[str], str], tmp_path: Path) -> None:
    folder = str(Path(build("-DNEW")).parent)
    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "fleet", "detect", "--output", "torchpin.toml"],
        cwd=tmp_path,
        env={
            "LD_LIBRARY_PATH": folder,
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (group,) = load_profile(str(tmp_path / "torchpin.toml")).groups
    assert (group.name, group.driver) == ("tesla-v100", "550.54.15")
    assert str(group.pythons[0]).rstrip("t") == f"3.{sys.version_info.minor}"


@linux
def test_nvidia_smi_where_nvml_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "echo 'name, driver_version, compute_cap'; echo 'Tesla T4, 535.54.03, 7.5'"
    command(tmp_path / "bin", "nvidia-smi", line, monkeypatch)
    group, text = detected(tmp_path)
    assert group is not None
    assert ([gpu.arch for gpu in group.gpus], group.driver) == (["sm_75"], "535.54.03")
    assert "# nvidia-smi" in text


@linux
def test_an_old_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """case "$1" in
*compute_cap*) echo 'Field "compute_cap" is not a valid field to query.'; exit 2;;
esac
echo 'name, driver_version'; echo 'Tesla K80, 450.80.02'"""
    command(tmp_path / "bin", "nvidia-smi", script, monkeypatch)
    group, _ = detected(tmp_path)
    assert group is not None
    assert ([gpu.arch for gpu in group.gpus], group.driver) == (["sm_37"], "450.80.02")


@linux
@pytest.mark.parametrize(
    "script",
    [
        "exit 9",
        "echo 'No devices were found'",
        "echo",
        "/usr/bin/head -c 9999 /dev/urandom",
        "exec /usr/bin/yes no",
    ],
)
def test_a_broken_nvidia_smi_is_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    command(tmp_path / "bin", "nvidia-smi", script, monkeypatch)
    group, _ = detected(tmp_path)
    assert group is not None
    assert group.gpus == ()
    assert "nvidia-smi is there, but names no GPU" in " ".join(module.detect(str(tmp_path)).notes)


@linux
def test_two_drivers_on_one_machine_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "echo 'Tesla V100, 550.54.15, 7.0'; echo 'Tesla T4, 470.57.02, 7.5'"
    script = f"echo 'name, driver_version, compute_cap'; {rows}"
    command(tmp_path / "bin", "nvidia-smi", script, monkeypatch)
    group, _ = detected(tmp_path)
    assert group is not None
    assert ([gpu.arch for gpu in group.gpus], group.driver) == (["sm_75", "sm_70"], None)
    (said,) = module.detect(str(tmp_path)).notes
    assert "different drivers (550.54.15 and 470.57.02)" in said


@linux
def test_each_gpu_of_nvidia_smi_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "echo 'Tesla T4, 535.54.03, 7.5'\n" * 4
    script = f"echo 'name, driver_version, compute_cap'\n{rows}"
    command(tmp_path / "bin", "nvidia-smi", script, monkeypatch)
    (machine,) = module.detect(str(tmp_path)).machines
    assert [gpu.name for gpu in machine.gpus or ()] == ["Tesla T4"] * 4


@linux
def test_the_kernel_tells_where_no_tool_does(tmp_path: Path) -> None:
    put(
        tmp_path,
        "proc/driver/nvidia/gpus/0000:07:00.0/information",
        "Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 16\n",
    )
    put(
        tmp_path,
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n",
    )
    group, text = detected(tmp_path)
    assert group is not None
    assert ([gpu.arch for gpu in group.gpus], group.driver) == (["sm_80"], "550.54.15")
    assert "/proc/driver/nvidia" in text


@linux
@pytest.mark.parametrize(
    ("version", "gfx"),
    [
        (90402, "gfx942"),
        (90010, "gfx90a"),
        (110000, "gfx1100"),
        (120001, "gfx1201"),
        (90500, "gfx950"),
    ],
)
def test_amd(tmp_path: Path, version: int, gfx: str) -> None:
    nodes = "sys/class/kfd/kfd/topology/nodes"
    put(tmp_path, f"{nodes}/0/properties", "cpu_cores_count 96\ngfx_target_version 0\n")
    put(tmp_path, f"{nodes}/1/properties", f"simd_count 1216\ngfx_target_version {version}\n")
    put(tmp_path, "opt/rocm/.info/version", "6.2.0-66\n")
    group, _ = detected(tmp_path)
    assert group is not None
    assert ([gpu.arch for gpu in group.gpus], group.rocm) == ([gfx], "6.2.0")


@linux
@pytest.mark.parametrize("kind", ["0x030000", "0x030200"])
def test_a_gpu_without_driver_is_not_cpu_only(tmp_path: Path, kind: str) -> None:
    put(tmp_path, "sys/bus/pci/devices/0000:07:00.0/vendor", "0x10de\n")
    put(tmp_path, "sys/bus/pci/devices/0000:07:00.0/class", f"{kind}\n")
    group, text = detected(tmp_path)
    assert group is None
    assert "no driver tells of it" in text


@linux
@pytest.mark.parametrize(("place", "known"), [("0000:00:02.0", True), ("0000:03:00.0", False)])
def test_intel_cards_and_processors(tmp_path: Path, place: str, known: bool) -> None:
    put(tmp_path, f"sys/bus/pci/devices/{place}/vendor", "0x8086\n")
    put(tmp_path, f"sys/bus/pci/devices/{place}/class", "0x030000\n")
    group, text = detected(tmp_path)
    assert (group is not None) is known
    assert ("an Intel card" in text) is not known


@linux
def test_amd_display_without_rocm_is_no_gpu(tmp_path: Path) -> None:
    put(tmp_path, "sys/bus/pci/devices/0000:04:00.0/vendor", "0x1002\n")
    put(tmp_path, "sys/bus/pci/devices/0000:04:00.0/class", "0x030000\n")
    group, text = detected(tmp_path)
    assert group is not None
    assert group.gpus == ()
    assert "no ROCm driver" in text


@linux
def test_cards_of_two_vendors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 90402\n")
    line = "echo 'name, driver_version, compute_cap'; echo 'Tesla T4, 535.54.03, 7.5'"
    command(tmp_path / "bin", "nvidia-smi", line, monkeypatch)
    group, _ = detected(tmp_path)
    assert group is not None
    assert sorted(gpu.arch for gpu in group.gpus) == ["gfx942", "sm_75"]


@linux
def test_sound_of_nvidia_is_no_gpu(tmp_path: Path) -> None:
    put(tmp_path, "sys/bus/pci/devices/0000:07:00.1/vendor", "0x10de\n")
    put(tmp_path, "sys/bus/pci/devices/0000:07:00.1/class", "0x040300\n")
    group, _ = detected(tmp_path)
    assert group is not None
    assert group.gpus == ()


@linux
@pytest.mark.parametrize(
    ("release", "line", "jetpack"),
    [
        ("R36 (release), REVISION: 3.0", 'jetpack = "6.0"', "6.0"),
        ("R36 (release), REVISION: 4.3", '# jetpack = "6.1"', None),
        ("R35 (release), REVISION: 4.1", '# jetpack = "5"', None),
        ("R99 (release), REVISION: 1.0", "[fleet.", None),
    ],
)
def test_a_jetson(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    release: str,
    line: str,
    jetpack: str | None,
) -> None:
    monkeypatch.setattr(platform_module, "machine", lambda: "aarch64")
    put(tmp_path, "proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0")
    put(tmp_path, "etc/nv_tegra_release", f"# {release}, GCID: 1, BOARD: generic\n")
    group, text = detected(tmp_path)
    assert group is not None
    assert [gpu.arch for gpu in group.gpus] == ["sm_87"]
    assert (group.platform, group.jetpack) == ("linux-aarch64", jetpack)
    assert f"\n{line}" in text


@linux
def test_wsl(tmp_path: Path) -> None:
    put(tmp_path, "proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2 (root@…)\n")
    group, _ = detected(tmp_path)
    assert group is not None
    assert group.wsl


@linux
@pytest.mark.parametrize(
    ("script", "glibc", "musl"),
    [
        ("echo 'ldd (Ubuntu GLIBC 2.31-0ubuntu9.16) 2.31'", "2.31", False),
        ("echo 'ldd (GNU libc) 2.17'", "2.17", False),
        ("echo 'musl libc (x86_64)' >&2; echo 'Version 1.2.5' >&2; exit 1", None, True),
        ("exit 127", None, False),
    ],
)
def test_libc_by_ldd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, glibc: str | None, musl: bool
) -> None:
    monkeypatch.setattr(os, "confstr", lambda _name: None)
    command(tmp_path / "bin", "ldd", script, monkeypatch)
    group, _ = detected(tmp_path)
    assert group is not None
    assert (group.glibc, group.musl) == (glibc, musl)


def other_system(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform_module, "machine", lambda: machine)
    monkeypatch.setattr(platform_module, "mac_ver", lambda: ("14.6.1", ("", "", ""), machine))


@pytest.mark.parametrize(
    ("system", "machine", "platform", "macos"),
    [
        ("darwin", "arm64", "macos-arm64", "14.6"),
        ("win32", "AMD64", "windows-x86_64", None),
        ("win32", "ARM64", "windows-arm64", None),
        ("linux", "aarch64", "linux-aarch64", None),
    ],
)
def test_systems(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    machine: str,
    platform: str,
    macos: str | None,
) -> None:
    monkeypatch.setattr(module, "run", lambda *_command, **_options: None)
    other_system(monkeypatch, system, machine)
    group, _ = detected(tmp_path)
    assert group is not None
    assert (group.platform, group.macos) == (platform, macos)


def test_an_unknown_system_is_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other_system(monkeypatch, "freebsd14", "amd64")
    group, text = detected(tmp_path)
    assert group is None
    assert "Left out: unknown platform" in text


def test_a_command_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    arguments: Any = (sys.executable, "-c", "import time; time.sleep(60)")
    assert module.run(*arguments) is None


@linux
def test_what_a_command_started_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS", 3)
    mark = tmp_path / "pid"
    assert module.run("/bin/sh", "-c", f"/bin/sleep 60 & echo $! > {mark}; wait") is None
    pid = int(mark.read_text())
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.05)
    pytest.fail("the child of the command is still there")


def test_a_command_that_prints_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 1000)
    arguments: Any = (sys.executable, "-c", "while True: print('A' * 100)")
    assert module.run(*arguments) is None
    assert module.run(sys.executable, "-c", "print('A' * 900)") == "A" * 900 + os.linesep


def test_this_machine_whatever_it_is(tmp_path: Path) -> None:
    group, text = detected(Path(os.sep))
    assert group is not None or "# Which GPUs?" in text or "# Left out" in text
