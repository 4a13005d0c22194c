"""GPU names: as tools print them, as people write them, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchpin.errors import ConfigError
from torchpin.fleet.gpus import find_gpu, key_of, nearest
from torchpin.fleet.tables import gpu_table, instance_table

NAMED = [
    # text, product, architecture
    ("Tesla V100-SXM2-16GB", "Tesla V100", "sm_70"),
    ("NVIDIA-H100-80GB-HBM3", "H100", "sm_90"),
    ("RTX 4060 Laptop GPU", "GeForce RTX 4060 Laptop GPU", "sm_89"),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100", "sm_80"),
    ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100", "sm_80"),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "H100", "sm_90"),
    ("GRID V100D-8Q", "Tesla V100", "sm_70"),
    ("NVIDIA A40-48Q", "A40", "sm_86"),
    ("NVIDIA A100-4-20C", "A100", "sm_80"),
    ("NVIDIA A100-1-5CME", "A100", "sm_80"),
    ("NVIDIA RTX6000-Ada-48Q", "RTX 6000 Ada", "sm_89"),
    ("GRID RTX6000-24Q", "Quadro RTX 6000", "sm_75"),
    ("NVIDIA-GeForce-RTX-4090-SHARED", "GeForce RTX 4090", "sm_89"),
    ("DGX Spark GB10", "DGX Spark (GB10)", "sm_121"),
    ("Jetson Thor", "Jetson AGX Thor (T5000)", "sm_110"),
    ("Jetson AGX Orin 64GB", "Jetson AGX Orin", "sm_87"),
    ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-6cc12345)", "A100", "sm_80"),
    ("NVIDIA Corporation TU104GL [Tesla T4] (rev a1)", "T4", "sm_75"),
    ("8x A100", "A100", "sm_80"),
    ("H100:8", "H100", "sm_90"),
    ("A100 x8", "A100", "sm_80"),
    ("NVIDIA GeForce RTX™ 4090", "GeForce RTX 4090", "sm_89"),
    ("RTX2080Ti", "GeForce RTX 2080 Ti", "sm_75"),
    ("GeForce RTX 3070 Mobile / Max-Q", "GeForce RTX 3070", "sm_86"),
    ("Tesla H100", "H100", "sm_90"),
    ("Quadro RTX A6000", "RTX A6000", "sm_86"),
    ("NVIDIA H100 PCIe 80GB", "H100", "sm_90"),
    ("H200 141GB", "H200", "sm_90"),
    ("GTX 960M", "GeForce GTX 960M", "sm_50"),
    ("GTX 960", "GeForce GTX 960", "sm_52"),
    ("GTX TITAN X", "GeForce GTX Titan X (Maxwell)", "sm_52"),
    ("TITAN X (Pascal)", "Titan X (Pascal)", "sm_61"),
    ("RTX 3050 A Laptop GPU", "GeForce RTX 3050 A Laptop GPU", "sm_89"),
    ("RTX 3050 Laptop GPU", "GeForce RTX 3050 Laptop GPU", "sm_86"),
    ("AMD Instinct MI300X VF", "MI300X", "gfx942"),
    ("Radeon RX 7900 XTX 24GB", "Radeon RX 7900 XTX", "gfx1100"),
    ("p3.2xlarge", "Tesla V100", "sm_70"),
    ("ml.g5.xlarge", "A10G", "sm_86"),
    ("Standard_NC6s_v3", "Tesla V100", "sm_70"),
    ("nc6s_v3", "Tesla V100", "sm_70"),
    ("a2-highgpu-1g", "A100", "sm_80"),
    ("n1-standard-8 + nvidia-tesla-t4", "T4", "sm_75"),
    ("g4ad.xlarge", "Radeon Pro V520", "gfx1011"),
]


@pytest.mark.parametrize(("text", "name", "arch"), NAMED, ids=[row[0] for row in NAMED])
def test_named(text: str, name: str, arch: str) -> None:
    (gpu,) = find_gpu(text)
    assert (gpu.written, gpu.name, gpu.arch) == (text, name, arch)
    assert gpu.source


@pytest.mark.parametrize(
    ("text", "name", "capability"),
    [
        ("sm_70", "sm_70", (7, 0)),
        ("sm70", "sm_70", (7, 0)),
        ("SM_120", "sm_120", (12, 0)),
        ("7.0", "sm_70", (7, 0)),
        ("9.0", "sm_90", (9, 0)),
        ("compute_86", "sm_86", (8, 6)),
        ("compute capability 7.0", "sm_70", (7, 0)),
        ("cc 8.6", "sm_86", (8, 6)),
        ("sm_90a", "sm_90", (9, 0)),
        ("sm_101", "sm_101", (11, 0)),  # Thor under CUDA 12
        ("10.1", "sm_101", (11, 0)),
        ("13.0", "sm_130", (13, 0)),  # newer than every known card
    ],
)
def test_capability(text: str, name: str, capability: tuple[int, int]) -> None:
    (gpu,) = find_gpu(text)
    assert (gpu.name, gpu.capability, gpu.vendor) == (name, capability, "nvidia")


@pytest.mark.parametrize("text", ["7.3", "sm_99", "2.1", "sm_20", "99.9"])
def test_no_such_capability(text: str) -> None:
    with pytest.raises(ConfigError, match="no GPU has compute capability"):
        find_gpu(text)


@pytest.mark.parametrize(
    ("text", "gfx"),
    [("gfx942", "gfx942"), ("GFX1100", "gfx1100"), ("gfx90a:sramecc+:xnack-", "gfx90a")],
)
def test_amd_isa(text: str, gfx: str) -> None:
    (gpu,) = find_gpu(text)
    assert (gpu.vendor, gpu.gfx, gpu.name, gpu.capability) == ("amd", gfx, gfx, None)


@pytest.mark.parametrize("text", ["xpu", "Arc A770", "Intel Arc B580", "Intel Max 1550"])
def test_intel(text: str) -> None:
    (gpu,) = find_gpu(text)
    assert (gpu.vendor, gpu.arch) == ("intel", "")


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("RTX 6000", ["Quadro RTX 6000 (7.5)", "RTX A6000 (8.6)", "RTX 6000 Ada (8.9)"]),
        ("NVIDIA RTX 6000", ["RTX PRO 6000 Blackwell (12.0)"]),
        ("RTX 5000 Laptop GPU", ["RTX 5000 Ada (8.9)"]),
        ("rtx-4000", ["Quadro RTX 4000 (7.5)"]),
        ("Titan X", ["GeForce GTX Titan X (Maxwell) (5.2)", "Titan X (Pascal) (6.1)"]),
        ("Blackwell", ["GeForce RTX 5090 (12.0)"]),
        ("Jetson", ["Jetson Nano (5.3)"]),
    ],
)
def test_ambiguous(text: str, candidates: list[str]) -> None:
    with pytest.raises(ConfigError, match="ambiguous") as caught:
        find_gpu(text, path="torchpin.toml", line=7)
    assert (caught.value.path, caught.value.line) == ("torchpin.toml", 7)
    for candidate in candidates:
        assert candidate in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("RTX 4099", "GeForce RTX 4090"),
        ("RTX 4099", 'e.g. "sm_90"'),
        ("4090", "GeForce RTX 4090"),
        ("GeForce M10", "unknown GPU"),  # never the Tesla M10
        ("GTX 960 Laptop", "unknown GPU"),  # may be the 960M, another chip
        ("m5.xlarge", "has no GPU"),
        ("g5.99xlarge", "g5.xlarge"),
        ("M2 Max", "macos-arm64"),
        ("70", '"sm_70"'),
        ("cpu", "CPU only"),
        ("", "empty GPU name"),
        ("®", "empty GPU name"),
        ("MIG 1g.5gb", "unknown GPU"),
    ],
)
def test_unknown(text: str, fragment: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_gpu(text)
    assert fragment in str(caught.value)


def test_every_key_gives_its_own_product() -> None:
    for key, product in gpu_table().by_key.items():
        (gpu,) = find_gpu(key)
        assert (gpu.name, gpu.capability, gpu.gfx) == (
            product.name,
            product.capability,
            product.gfx,
        )


def test_every_ambiguous_candidate_is_accepted() -> None:
    for _, candidates in gpu_table().ambiguous.values():
        for name, capability in candidates:
            (gpu,) = find_gpu(name)
            assert gpu.capability is not None
            assert f"{gpu.capability[0]}.{gpu.capability[1]}" == capability


def test_every_instance_gives_its_gpus() -> None:
    for name, instance in instance_table().items():
        gpus = find_gpu(name)
        assert tuple(gpu.name for gpu in gpus) == instance.gpus
        assert {gpu.host for gpu in gpus} == {instance.host}


@pytest.mark.parametrize(
    ("text", "tegra", "datacenter", "host"),
    [
        ("V100", False, True, ""),
        ("RTX 4090", False, False, ""),
        ("Titan V", False, False, ""),
        ("A800 40GB Active", False, False, ""),
        ("Jetson Nano", True, False, "aarch64"),
        ("sm_87", True, False, "aarch64"),
        ("sm_90", False, True, ""),  # every 9.0 product is a data-center product
        ("sm_70", False, False, ""),  # Titan V and Quadro GV100 are not
        ("T4G", False, True, "aarch64"),
        ("GB10", False, False, "aarch64"),
        ("MI300X", False, False, ""),
        ("g5g.xlarge", False, True, "aarch64"),
        ("p3.2xlarge", False, True, "x86_64"),
    ],
)
def test_flags(text: str, tegra: bool, datacenter: bool, host: str) -> None:
    (gpu,) = find_gpu(text)
    assert (gpu.tegra, gpu.datacenter, gpu.host) == (tegra, datacenter, host)


@given(st.text(max_size=80))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_a_gpu_or_a_clear_error(text: str) -> None:
    try:
        gpus = find_gpu(text)
    except ConfigError as error:
        assert error.message
    else:
        assert gpus
        assert all(gpu.written == text for gpu in gpus)


PRODUCTS = sorted(gpu_table().by_name)


@given(
    st.sampled_from(PRODUCTS),
    st.sampled_from(["{}", "{}-SHARED", "{} MIG 1g.10gb", "8x {}", "NVIDIA {}"]),
    st.sampled_from([str.lower, str.upper, str]),
)
@settings(max_examples=150, deadline=None)
def test_what_tools_add_does_not_change_the_card(name: str, form: str, case: type[str]) -> None:
    (plain,) = find_gpu(name)
    if form == "NVIDIA {}" and plain.vendor != "nvidia":
        return
    (gpu,) = find_gpu(form.format(case(name)))
    assert (gpu.name, gpu.arch) == (plain.name, plain.arch)


def test_key_keeps_ascii_letters_and_digits() -> None:
    assert key_of("NVIDIA® GeForce RTX™ 4090-x") == "nvidiageforcertx4090x"


def test_nearest_is_short_and_without_repetition() -> None:
    names = nearest("RTX 309O")
    assert names[0] == "GeForce RTX 3090"
    assert len(names) == len(set(names)) <= 4


@pytest.mark.parametrize("text", ["cpu", "M2 Max", "m5.xlarge"])
def test_a_file_is_told_what_to_write_in_it_and_an_option_what_to_type(text: str) -> None:
    with pytest.raises(ConfigError) as in_file:
        find_gpu(text, path="torchpin.toml", line=1)
    with pytest.raises(ConfigError) as typed:
        find_gpu(text)
    assert "gpus = []" in in_file.value.hint
    assert "--gpu none" in typed.value.hint and "gpus =" not in typed.value.hint
