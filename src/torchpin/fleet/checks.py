"""Contradictions inside one node group: declarations that no machine can satisfy.

A contradiction needs a certain fact. What may be unwise but exists (a V100 with a 590 driver, which
no longer supports it) is legal here: rules judge it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchpin.errors import ConfigError
from torchpin.fleet.model import Gpu, NodeGroup
from torchpin.fleet.tables import architecture_table, jetpack_table
from torchpin.fleet.values import branch_of

Where = Callable[[str], int | None]
"""Line of a key of the group (``driver``, ``gpus[0]``); None on the command line."""


DEFAULT_PLATFORM = "linux-x86_64"


def default_platform(gpus: Sequence[Gpu]) -> str:
    """Return the platform of a group that declares none.

    It is ``linux-x86_64``, or ``linux-aarch64`` if a GPU exists in Arm machines only.
    """
    return "linux-aarch64" if any(gpu.host == "aarch64" for gpu in gpus) else DEFAULT_PLATFORM


def contradictions(group: NodeGroup, where: Where, path: str | None = None) -> list[ConfigError]:
    """Return every contradiction of the group, in the order of its keys.

    Args:
        group: the group as declared.
        where: the line of each key, for the errors.
        path: the profile, for the errors.
    """
    found: list[ConfigError] = []

    def say(key: str, message: str, hint: str = "") -> None:
        text = f"fleet {group.name}: {message}"
        found.append(ConfigError(text, path=path, line=where(key), hint=hint))

    vendors = {gpu.vendor for gpu in group.gpus}
    system, _, machine = group.platform.partition("-")
    _gpus_and_platform(group, system, machine, say)
    _driver(group, vendors, system, say)
    _libc(group, system, say)
    _cuda_compat(group, vendors, system, say)
    if group.macos is not None:
        if system != "macos":
            say("macos", f'macos on "{group.platform}"')
        elif machine == "arm64" and int(group.macos.partition(".")[0]) < 11:
            say("macos", f"macOS {group.macos} does not run on arm64: it begins with macOS 11")
    if group.wsl and system != "linux":
        say("wsl", f'wsl on "{group.platform}"', "inside WSL the platform is linux-x86_64")
    _jetpack(group, say)
    if group.rocm is not None:
        if group.gpus and "amd" not in vendors:
            say("rocm", "rocm without an AMD GPU")
        elif system == "macos":
            say("rocm", f'rocm on "{group.platform}"')
    return found


Say = Callable[..., None]


def _gpus_and_platform(group: NodeGroup, system: str, machine: str, say: Say) -> None:
    arm = machine in ("aarch64", "arm64")
    for number, gpu in enumerate(group.gpus):
        key = f"gpus[{number}]"
        if system == "macos":
            say(
                key,
                f'a GPU ({gpu.written}) on "{group.platform}"',
                "PyTorch's macOS wheels use neither CUDA nor ROCm: declare gpus = []",
            )
        elif gpu.tegra and group.platform != "linux-aarch64":
            say(
                key,
                f'{gpu.name} is a Jetson GPU, which exists on linux-aarch64 only, not "'
                f'{group.platform}"',
                'declare platform = "linux-aarch64"',
            )
        elif gpu.host == "aarch64" and not arm:
            say(
                key,
                f'{gpu.written} sits in an Arm machine, not in "{group.platform}"',
                f'declare platform = "{system}-{"arm64" if system == "windows" else "aarch64"}"',
            )
        elif gpu.host == "x86_64" and arm:
            say(
                key,
                f'{gpu.written} is an x86_64 machine, not "{group.platform}"',
                "a group is a set of like machines: give other machines a group of their own",
            )


def _driver(group: NodeGroup, vendors: set[str], system: str, say: Say) -> None:
    if group.driver is None:
        return
    if system == "macos":
        say("driver", f'an NVIDIA driver on "{group.platform}"')
        return
    if group.gpus and "nvidia" not in vendors:
        say(
            "driver",
            "driver is the version of the NVIDIA driver, and the group has no NVIDIA GPU",
            'for AMD declare the ROCm release: rocm = "7.2"' if "amd" in vendors else "",
        )
        return
    branch = branch_of(group.driver)
    said: set[tuple[int, int]] = set()
    for gpu in group.gpus:
        floor = first_branch(gpu)
        if floor is None or branch >= floor or gpu.capability is None or gpu.capability in said:
            continue
        said.add(gpu.capability)
        major, minor = gpu.capability
        say(
            "driver",
            f"driver {group.driver} is older than {gpu.name} (compute capability {major}.{minor}): "
            f"no branch before {floor} knows it",
            f"declare the driver that these machines run, {floor} or newer",
        )


def first_branch(gpu: Gpu) -> int | None:
    """Return the oldest driver branch that may know the GPU; None where nothing is stated.

    Jetson boards carry their driver in L4T, with numbers of its own: None.
    """
    if gpu.capability is None or gpu.tegra:
        return None
    architecture = architecture_table().get(gpu.capability)
    return architecture.min_driver_branch if architecture else None


def _libc(group: NodeGroup, system: str, say: Say) -> None:
    if group.glibc is not None and system != "linux":
        say("glibc", f'glibc on "{group.platform}"')
    elif group.glibc is not None and group.musl:
        say("glibc", 'glibc and libc = "musl" exclude each other')
    if group.musl and system != "linux":
        say("libc", f'libc = "musl" on "{group.platform}"')


def _cuda_compat(group: NodeGroup, vendors: set[str], system: str, say: Say) -> None:
    if group.cuda_compat is None:
        return
    if system != "linux":
        say("cuda-compat", f'cuda-compat on "{group.platform}": the package exists for Linux only')
    elif group.gpus and "nvidia" not in vendors:
        say("cuda-compat", "cuda-compat without an NVIDIA GPU")
    elif group.gpus and all(gpu.product == "consumer" for gpu in group.gpus):
        say(
            "cuda-compat",
            f"cuda-compat does not work on {group.gpus[0].name}: consumer cards give error 804",
            "NVIDIA supports forward compatibility on data-center GPUs and selected RTX cards",
        )


def _jetpack(group: NodeGroup, say: Say) -> None:
    if group.jetpack is None:
        return
    if group.platform != "linux-aarch64":
        say("jetpack", f'jetpack on "{group.platform}"', 'declare platform = "linux-aarch64"')
        return
    if group.gpus and not any(gpu.tegra for gpu in group.gpus):
        say("jetpack", f"jetpack without a Jetson GPU ({group.gpus[0].written})")
        return
    version = tuple(int(part) for part in group.jetpack.split("."))
    served: set[tuple[int, int]] = set()
    for release in jetpack_table():
        if version[: len(release.version)] == release.version:
            served.update(release.capabilities)
    for gpu in group.gpus:
        if served and gpu.tegra and gpu.capability not in served:
            say("jetpack", f"JetPack {group.jetpack} does not serve {gpu.name}")
