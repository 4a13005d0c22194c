"""Whole verdicts: builds on targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchpin.catalog.model import Build
from torchpin.fleet.model import Gpu, Python, Target
from torchpin.judge.model import BADNESS, Reason
from torchpin.judge.verdict import combine, judge

pytestmark = pytest.mark.usefixtures("nothing_brought")

Make = Callable[..., Build]
MakeGpu = Callable[..., Gpu]
MakeTarget = Callable[..., Target]

X86 = "75 80 86 90 100 120"
ARM = "80 90 100 110 120"
LINALG = ("libtorch_cuda_linalg.so", "80 86 90 100 120", "")


def test_v100_on_a_wheel_without_its_kernels(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    verdict = judge(build("cu128", X86, version="2.11.0"), target(gpu("Tesla V100", "7.0")), None)
    assert verdict.status == "fails"
    (reason,) = [reason for reason in verdict.reasons if reason.status == "fails"]
    assert reason.question == "kernels"
    assert reason.text == (
        "Tesla V100 (sm_70): torch 2.11.0+cu128 holds kernels for "
        "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 and no PTX that it could compile"
    )


def test_t4_runs_partly_without_linalg(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    verdict = judge(build("cu130", X86, libraries=(LINALG,)), target(gpu("Tesla T4", "7.5")))
    assert verdict.status == "partly"
    (reason,) = [reason for reason in verdict.reasons if reason.status == "partly"]
    assert (reason.question, reason.library) == ("libraries", "libtorch_cuda_linalg.so")
    assert "libtorch_cuda_linalg.so" in verdict.covers


@pytest.mark.parametrize(
    ("name", "capability", "expected"),
    [
        ("T4G", "7.5", "fails"),
        ("GB10", "12.1", "runs"),
        ("Jetson AGX Thor", "11.0", "runs"),
        ("GH200", "9.0", "runs"),
        ("Jetson AGX Orin", "8.7", "unknown"),
    ],
)
def test_aarch64(
    build: Make, gpu: MakeGpu, target: MakeTarget, name: str, capability: str, expected: str
) -> None:
    empty = (("libtorch_cuda_linalg.so", "", ""),)
    made = build("cu130", ARM, platform="linux-aarch64", libraries=empty)
    nodes = target(gpu(name, capability), platform="linux-aarch64")
    assert judge(made, nodes).status == expected


def test_thor_does_not_run_code_for_b200(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    made = build("cu128", "80 90 100 120", platform="linux-aarch64", version="2.9.1")
    nodes = target(gpu("Jetson AGX Thor", "11.0", tegra=True), platform="linux-aarch64")
    assert judge(made, nodes).status == "fails"


@pytest.mark.parametrize(
    ("channel", "compat", "expected"),
    [("cu126", None, "runs"), ("cu130", None, "fails"), ("cu130", "13.0", "runs")],
)
def test_h100_with_r535(
    build: Make,
    gpu: MakeGpu,
    target: MakeTarget,
    channel: str,
    compat: str | None,
    expected: str,
) -> None:
    nodes = target(gpu("H100", "9.0", datacenter=True), driver="535.183.01", cuda_compat=compat)
    assert judge(build(channel, "80 90"), nodes).status == expected


@pytest.mark.parametrize(
    ("channel", "sass", "driver", "expected", "questions"),
    [
        ("cu126", "50 60 70 75 80 86 90", "580.95.05", "runs", set()),
        ("cu126", "50 60 70 75 80 86 90", "525.60.13", "runs", set()),
        ("cu126", "50 60 70 75 80 86 90", "590.44.01", "fails", {"driver-branch"}),
        ("cu130", X86, "580.95.05", "fails", {"kernels"}),
    ],
)
def test_v100_and_its_drivers(
    build: Make,
    gpu: MakeGpu,
    target: MakeTarget,
    channel: str,
    sass: str,
    driver: str,
    expected: str,
    questions: set[str],
) -> None:
    verdict = judge(build(channel, sass), target(gpu("Tesla V100", "7.0"), driver=driver))
    assert verdict.status == expected
    assert {reason.question for reason in verdict.reasons if reason.status != "runs"} == questions


def test_rtx_5090_with_r535_contradicts_itself(
    build: Make, gpu: MakeGpu, target: MakeTarget
) -> None:
    nodes = target(gpu("GeForce RTX 5090", "12.0"), driver="535.183.01")
    verdict = judge(build("cu128", X86), nodes)
    assert verdict.status == "fails"
    assert any("R570" in reason.text for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("jetpack", "channel", "expected"),
    [
        ("7.2", "cu132", "runs"),
        ("7.2", "cu130", "runs"),
        ("6.2", "cu126", "unknown"),
        ("6.2", "cu130", "fails"),
    ],
)
def test_orin(
    build: Make, gpu: MakeGpu, target: MakeTarget, jetpack: str, channel: str, expected: str
) -> None:
    made = build(channel, "80 90", platform="linux-aarch64")
    nodes = target(
        gpu("Jetson AGX Orin", "8.7", tegra=True), platform="linux-aarch64", jetpack=jetpack
    )
    assert judge(made, nodes).status == expected


def test_rubin_runs_by_the_rule_with_its_driver(
    build: Make, gpu: MakeGpu, target: MakeTarget
) -> None:
    made = build("cu132", X86)
    verdict = judge(made, target(gpu("Rubin", "10.7"), driver="615.71.09"))
    assert verdict.status == "runs"
    assert {r.evidence for r in verdict.reasons if r.question == "kernels"} == {"inferred"}
    assert judge(made, target(gpu("Rubin", "10.7"), driver="610.43.02")).status == "fails"


def test_ptx_only(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    made = build("cu118", "37 50 60 70", "70", version="1.13.1")
    assert judge(made, target(gpu("A100", "8.0"))).status == "runs-via-ptx"
    assert judge(made, target(gpu("A100", "8.0"), driver="470.82.01")).status == "fails"
    assert judge(made, target(gpu("V100", "7.0"), driver="470.82.01")).status == "runs"


def test_every_gpu_of_the_group_must_run(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    nodes = target(gpu("A100", "8.0"), gpu("Tesla V100", "7.0"))
    verdict = judge(build("cu130", X86), nodes)
    assert verdict.status == "fails"
    assert {r.gpu.name for r in verdict.reasons if r.status == "fails" and r.gpu} == {"Tesla V100"}


AMD = Gpu("MI300X", "MI300X", "amd", None, "gfx942")
INTEL = Gpu("Arc B580", "Arc B580", "intel", None, None)


def test_vendors(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    rocm = build("rocm7.2", gfx="gfx90a gfx942")
    assert judge(rocm, target(AMD)).status == "runs"
    assert judge(rocm, target(AMD._replace(gfx="gfx1031"))).status == "fails"
    unknown_gfx = judge(rocm, target(AMD._replace(gfx=None)))
    assert unknown_gfx.status == "unknown"
    wrong = [
        (rocm, gpu("A100", "8.0")),
        (build("cu126", "80"), AMD),
        (build("xpu"), gpu("A100", "8.0")),
        (build("cu126", "80"), INTEL),
    ]
    for made, card in wrong:
        verdict = judge(made, target(card))
        assert verdict.status == "fails"
        assert [r.question for r in verdict.reasons] == ["vendor"]
    assert judge(build("xpu"), target(INTEL)).status == "unknown"


def test_cpu_builds_and_cpu_nodes(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    cpu, cuda = build("cpu"), build("cu126", "80")
    verdict = judge(cpu, target(gpu("A100", "8.0")))
    assert [(r.question, r.status) for r in verdict.reasons] == [("cpu-build", "fails")]
    assert judge(build("cpu", package="torchtext"), target(gpu("A100", "8.0"))).status == "runs"
    verdict = judge(cuda, target())
    assert verdict.status == "runs"
    assert [(r.question, r.status) for r in verdict.reasons] == [("cuda-on-cpu", "runs")]
    assert judge(cpu, target()).reasons == ()


def test_a_vendor_label_is_unknown(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    assert judge(build("nv23.6"), target(gpu("A100", "8.0"))).status == "unknown"


def test_a_missing_list_is_unknown_for_torch_only(
    build: Make, gpu: MakeGpu, target: MakeTarget
) -> None:
    nodes = target(gpu("A100", "8.0"))
    assert judge(build("cu126"), nodes).status == "unknown"
    companion = judge(build("cu126", package="torchvision"), nodes)
    assert companion.status == "runs"
    assert any("torchvision" in text for text in companion.leaves_out)


def test_inferred_lists_never_fail(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    made = build("cu130", X86, evidence="inferred")
    verdict = judge(made, target(gpu("Tesla V100", "7.0")))
    assert verdict.status == "unknown"
    assert not any(reason.status == "fails" for reason in verdict.reasons)
    rocm = build("rocm7.2", gfx="gfx942", evidence="inferred")
    assert judge(rocm, target(AMD._replace(gfx="gfx1031"))).status == "unknown"


@pytest.mark.parametrize("evidence", ["measured", "lockfile", "published", "bounded"])
def test_proof_fails(evidence: str) -> None:
    reason = Reason("kernels", "fails", "text", evidence, "source")
    assert combine([reason])[0] == "fails"
    assert combine([reason._replace(evidence="inferred")])[0] == "unknown"


def test_combine() -> None:
    runs = Reason("kernels", "runs", "a", "measured", "")
    partly = Reason("libraries", "partly", "b", "measured", "")
    assert combine([]) == ("runs", ())
    assert combine([runs, partly, runs]) == ("partly", (runs, partly))


def test_triton_is_told_below_7_0(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    made = build("cu126", "50 60 70")
    old = judge(made, target(gpu("GeForce GTX 1080", "6.1")))
    assert old.status == "runs"
    assert [r.question for r in old.reasons] == ["kernels", "triton"]
    assert [r.question for r in judge(made, target(gpu("V100", "7.0"))).reasons] == ["kernels"]


def test_covers_and_leaves_out(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    made = build("cu126", "80", libraries=(LINALG,))
    bare = judge(made, target(gpu("A100", "8.0")))
    assert bare.covers == ("kernels", "libtorch_cuda_linalg.so")
    assert "driver (none declared)" in bare.leaves_out
    full = judge(
        made,
        target(gpu("A100", "8.0"), python=Python(3, 11), driver="580.65.06", glibc="2.31"),
    )
    assert full.covers == ("glibc", "python", "kernels", "libtorch_cuda_linalg.so", "driver")
    assert not any("declared" in text for text in full.leaves_out)


def test_a_wheel_for_another_machine_says_only_that(
    build: Make, gpu: MakeGpu, target: MakeTarget
) -> None:
    verdict = judge(build("cu126", "80"), target(gpu("T4G", "7.5"), platform="linux-aarch64"))
    assert [(r.question, r.status) for r in verdict.reasons] == [("platform", "fails")]


def test_a_library_that_must_be_compiled_needs_the_driver(
    build: Make, gpu: MakeGpu, target: MakeTarget
) -> None:
    made = build("cu128", "80", libraries=(("lib.so", "", "80"),))
    assert judge(made, target(gpu("A100", "8.0"))).status == "runs-via-ptx"
    assert judge(made, target(gpu("A100", "8.0"), driver="535.54.03")).status == "partly"


CODES = [
    "50",
    "60",
    "70",
    "75",
    "80",
    "86",
    "87",
    "90",
    "90a",
    "100",
    "100f",
    "103",
    "110",
    "120",
    "120f",
]
CARDS = [
    "5.2",
    "6.1",
    "7.0",
    "7.2",
    "7.5",
    "8.0",
    "8.6",
    "8.7",
    "8.9",
    "9.0",
    "10.0",
    "10.3",
    "10.7",
    "11.0",
    "12.0",
    "12.1",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_more_kernels_never_make_it_worse(
    build: Make, gpu: MakeGpu, target: MakeTarget, data: Any
) -> None:
    codes = st.lists(st.sampled_from(CODES), min_size=1, max_size=5, unique=True)
    sass, ptx = data.draw(codes), data.draw(st.lists(st.sampled_from(CODES), max_size=2))
    more = data.draw(st.sampled_from(CODES))
    drivers = st.sampled_from([None, "525.60.13", "535.54.03", "570.26", "580.65.06", "595.45.04"])
    nodes = target(gpu("card", data.draw(st.sampled_from(CARDS))), driver=data.draw(drivers))
    channel = data.draw(st.sampled_from(["cu118", "cu126", "cu128", "cu130"]))
    evidence = data.draw(st.sampled_from(["measured", "inferred"]))

    def status(held: list[str]) -> str:
        made = build(channel, " ".join(held), " ".join(ptx), libraries=(LINALG,), evidence=evidence)
        return judge(made, nodes).status

    assert BADNESS.index(status([*sass, more])) <= BADNESS.index(status(sass))


def test_gpu_of_the_group_only_adds_reasons(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    made = build("cu130", X86)
    one = judge(made, target(gpu("A100", "8.0")))
    two = judge(made, target(gpu("A100", "8.0"), gpu("H100", "9.0")))
    assert set(one.reasons) <= set(two.reasons)
