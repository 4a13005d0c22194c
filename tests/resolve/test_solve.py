"""What requests come to, with the shipped catalog and the real judge."""

from __future__ import annotations

import pytest
from tests.resolve.resolve_fleets import group, request

from torchpin.catalog.store import load_catalog
from torchpin.resolve.model import Outcome, Plan, Request
from torchpin.resolve.solve import solve

INDEX = "https://download.pytorch.org/whl/"


def answer(asked: Request) -> Outcome:
    return solve(asked, load_catalog())


def only(asked: Request) -> Plan:
    outcome = answer(asked)
    assert len(outcome.plans) == 1, outcome
    assert outcome.unserved == ()
    assert outcome.explanation == ()
    return outcome.plans[0]


def brief(plan: Plan) -> tuple[str, str, dict[str, str]]:
    return (plan.channel, plan.home, dict(plan.versions))


V100, GTX, A100, B200, T4 = "Tesla V100", "GTX 1080", "A100-SXM4-80GB", "B200", "Tesla T4"


def test_the_guide() -> None:
    plan = only(
        request(
            (group("v", V100), group("g", GTX), group("a", A100)),
            "torch==2.14.0",
            "torchvision==0.19.0",
            "torchaudio==2.14.0",
            channel="cu124",
        )
    )
    assert brief(plan) == (
        "cu126",
        "channel",
        {"torch": "2.14.0", "torchvision": "0.29.0", "torchaudio": "2.11.0"},
    )
    assert plan.index_url == INDEX + "cu126"
    assert [name for name, _ in plan.versions] == ["torch", "torchvision", "torchaudio"]
    said = "\n".join(text for text, _, _ in plan.because)
    assert "cu124 holds torch 2.4.0 to 2.6.0" in said
    assert "requires torch==2.4.0" in said
    assert "torchaudio 2.14.0 was never published" in said
    inferred = [text for text, evidence, _ in plan.because if evidence == "inferred"]
    assert any("Python 3.11" in text for text in inferred)


def test_bare_torch_on_v100_leaves_pypi() -> None:
    plan = only(request((group("v", V100),), "torch"))
    assert brief(plan) == ("cu126", "channel", {"torch": "2.14.1"})
    assert any("2.15.0" in text and "sm_70" in text for text, _, _ in plan.because)


def test_a_pin_moves_its_channel_before_its_version() -> None:
    assert brief(only(request((group("v", V100),), "torch==2.13.0"))) == (
        "cu126",
        "channel",
        {"torch": "2.13.0"},
    )
    plan = only(request((group("v", V100),), "torch==2.11.0", channel="cu128"))
    assert brief(plan)[0] == "cu126"
    assert brief(plan)[2] == {"torch": "2.11.0"}


def test_a_pin_without_a_home_goes_to_the_nearest_lower_minor() -> None:
    assert brief(only(request((group("v", V100),), "torch==2.15.0")))[2] == {"torch": "2.14.1"}
    plan = only(request((group("a", A100, python="3.10"),), "torch==2.15.0"))
    assert brief(plan) == ("cu130", "pypi", {"torch": "2.14.1"})
    assert any("requires Python" in text for text, _, _ in plan.because)


def test_v100_and_b200_meet_at_2_10() -> None:
    outcome = answer(request((group("v", V100), group("b", B200)), "torch", policy="newest"))
    (plan,) = outcome.plans
    assert brief(plan) == ("cu128", "pypi", {"torch": "2.10.0"})
    assert plan.index_url is None
    text = plan.because[0][0]
    assert text.startswith("torch 2.10.0 is the last release of which one build serves all groups")
    assert "2.14.1+cu126 for v" in text
    assert "2.15.0 (PyPI, cu132) for b" in text
    assert [brief(p)[2]["torch"] for p in outcome.alternative] == ["2.14.1", "2.15.0"]


def test_v100_and_b200_keep_their_channel() -> None:
    groups = (group("v", V100), group("b", B200))
    plan = only(request(groups, "torch==2.11.0", channel="cu128"))
    assert brief(plan) == ("cu128", "channel", {"torch": "2.10.0"})


def test_the_bound_makes_a_split() -> None:
    outcome = answer(request((group("v", V100), group("b", B200)), "torch>=2.11"))
    assert [(p.targets[0].group.name, p.channel, p.home) for p in outcome.plans] == [
        ("v", "cu126", "channel"),
        ("b", "cu132", "pypi"),
    ]
    assert [(c.origin.text, bool(c.without)) for c in outcome.explanation] == [
        ("torch>=2.11", True),
        ("fleet v: Tesla V100 (sm_70)", True),
        ("fleet b: B200 (sm_100)", True),
    ]
    assert outcome.explanation[0].origin.path == "r.txt"
    assert outcome.explanation[0].without == "torch 2.10.0 (PyPI, cu128)"
    assert (outcome.explanation[1].origin.path, outcome.explanation[1].origin.line) == (
        "torchpin.toml",
        2,
    )


def test_one_group_of_both_is_split_by_gpu() -> None:
    outcome = answer(request((group("mix", V100, B200),), "torch>=2.11"))
    assert [p.targets[0].group.name for p in outcome.plans] == ["mix (Tesla V100)", "mix (B200)"]
    assert outcome.unserved == ()


def test_cpu_and_gpu_machines_share_what_pypi_serves() -> None:
    plan = only(request((group("ci"), group("a", A100)), "torch"))
    assert brief(plan) == ("cu132", "pypi", {"torch": "2.15.0"})
    asked = request((group("ci"), group("a", A100)), "torch==2.14.0", channel="cu124")
    assert brief(only(asked)) == ("cu126", "channel", {"torch": "2.14.0"})


def test_cpu_channel_stays_on_cpu_machines() -> None:
    plan = only(request((group("ci"),), "torch==2.11.0", channel="cpu"))
    assert brief(plan) == ("cpu", "channel", {"torch": "2.11.0"})
    with_gpu = request((group("ci"), group("a", A100)), "torch==2.11.0", channel="cpu")
    assert brief(only(with_gpu))[0] != "cpu"


def test_mac_and_linux_take_one_version_from_two_places() -> None:
    plan = only(request((group("mac", platform="macos-arm64"), group("v", V100)), "torch==2.13.0"))
    assert brief(plan) == ("cu126", "channel", {"torch": "2.13.0"})
    assert {(place, b.full_version, b.home) for place, _, b in plan.builds} == {
        ("linux-x86_64", "2.13.0+cu126", "channel"),
        ("macos-arm64", "2.13.0", "pypi"),
    }


def test_windows_gpu_needs_a_channel() -> None:
    plan = only(request((group("w", A100, platform="windows-x86_64"),), "torch", "torchvision"))
    assert plan.home == "channel"
    assert plan.channel.startswith("cu")


def test_driver_decides_the_channel() -> None:
    plan = only(request((group("h", "H100", driver="535.104.05"),), "torch"))
    assert brief(plan) == ("cu126", "channel", {"torch": "2.14.1"})
    assert any("535.104.05" in text for text, _, _ in plan.because)


def test_partly_counts_only_where_nothing_better_is_allowed() -> None:
    plan = only(request((group("t", T4),), "torch>=2.15"))
    assert brief(plan) == ("cu132", "pypi", {"torch": "2.15.0"})
    assert any("libtorch_cuda_linalg.so" in text for text, _, _ in plan.because)
    better = only(request((group("t", T4),), "torch"))
    assert brief(better) == ("cu126", "channel", {"torch": "2.14.1"})


def test_amd_takes_rocm_for_the_whole_family() -> None:
    plan = only(request((group("m", "gfx942"),), "torch", "torchvision", "torchaudio"))
    assert plan.channel.startswith("rocm")
    assert {b.channel for _, _, b in plan.builds} == {plan.channel}


def test_intel_is_never_taken_silently() -> None:
    plan = only(request((group("x", "xpu"),), "torch"))
    assert plan.channel == "xpu"
    assert any(e == "inferred" and "Intel" in text for text, e, _ in plan.because)


def test_no_wheel_for_t4g() -> None:
    outcome = answer(
        request((group("k", "T4G", platform="linux-aarch64"), group("v", V100)), "torch")
    )
    assert [p.targets[0].group.name for p in outcome.plans] == ["v"]
    (unserved,) = outcome.unserved
    assert (unserved.gpu, unserved.last_release) == ("NVIDIA T4G", None) or (
        "T4G" in str(unserved.gpu) and unserved.last_release is None
    )
    assert "linux-aarch64" in unserved.because
    assert {c.origin.text.split(": ")[1].split(" ")[0] for c in outcome.explanation} >= {"platform"}


def test_no_wheel_for_kepler_3_0() -> None:
    outcome = answer(request((group("k", "sm_30"),), "torch"))
    assert outcome.plans == ()
    assert outcome.unserved[0].last_release is None


def test_a_hard_pin_that_does_not_run_is_explained() -> None:
    outcome = answer(request((group("v", V100),), "torch!==2.15.0"))
    assert outcome.plans == ()
    (unserved,) = outcome.unserved
    assert unserved.last_release == "2.14.1+cu126"
    assert [c.origin.text for c in outcome.explanation] == [
        "torch==2.15.0",
        "fleet v: Tesla V100 (sm_70)",
    ]
    assert outcome.explanation[0].without == "torch 2.14.1+cu126"


def test_a_driver_too_new_for_the_gpu() -> None:
    outcome = answer(request((group("v", V100, driver="590.44.01"),), "torch"))
    assert outcome.plans == ()
    assert {c.origin.text for c in outcome.explanation} == {
        "fleet v: driver 590.44.01",
        "fleet v: Tesla V100 (sm_70)",
    }


def test_nothing_is_built_for_a_gpu_that_the_driver_left_behind() -> None:
    (new,) = answer(request((group("v", V100, driver="590.44.01"),), "torch")).unserved
    assert (new.last_release, new.recipe) == ("2.14.1+cu126", ())
    (old,) = answer(request((group("v", V100, driver="550.54.15"),), "torch!==2.15.0")).unserved
    assert old.last_release == "2.14.1+cu126"
    assert old.recipe


@pytest.mark.parametrize(
    ("name", "driver", "text"),
    [
        ("L4", "515.43.04", "no published torch wheel for linux-x86_64 is known to run on {}"),
        ("L4", "550.54.15", "the last torch that runs on {} is 2.14.1+cu126"),
        ("H100", "570.26", "the last torch that runs on {} is 2.14.1+cu126"),
        (V100, "590.44.01", "no published torch wheel for linux-x86_64 is known to run on {}"),
    ],
)
def test_a_gpu_is_told_of_with_the_driver_that_stands_in_the_way(
    name: str, driver: str, text: str
) -> None:
    own = group("g", name, driver=driver, python="3.12")
    outcome = answer(request((own,), "torch" if name == V100 else "torch!==2.15.0"))
    assert outcome.plans == ()
    (gpu,) = own.gpus
    told = [c.text for c in outcome.explanation if c.origin.line == 2]
    assert told == [text.format(f"{gpu.name} ({gpu.arch}) with driver {driver}")]


def test_pythons_of_a_group_part_only_if_they_must() -> None:
    outcome = answer(request((group("a", A100, python="3.8 3.9 3.13"),), "torch"))
    assert [[str(t.python) for t in p.targets] for p in outcome.plans] == [["3.8", "3.9"], ["3.13"]]
    plan = only(request((group("a", A100, python="3.10 3.12"),), "torch"))
    assert brief(plan)[2] == {"torch": "2.14.1"}


def test_musl_has_no_wheel() -> None:
    outcome = answer(request((group("m", A100, musl=True),), "torch"))
    assert outcome.plans == ()
    assert [c.origin.text for c in outcome.explanation] == ["fleet m: musl"]


def test_asked_channels_are_a_member_of_the_explanation() -> None:
    asked = request((group("b", B200),), "torch>=2.12", asked=("cu126",), pypi=False)
    outcome = answer(asked)
    assert outcome.plans == ()
    assert {c.origin.text for c in outcome.explanation} == {
        "fleet b: B200 (sm_100)",
        "only cu126",
    }
    assert [c.text for c in outcome.explanation] == [
        "no published torch wheel of cu126 for linux-x86_64 runs on B200 (sm_100)",
        "only cu126 may be used",
    ]
    assert brief(only(request((group("a", A100),), "torch", asked=("cu126",), pypi=False))) == (
        "cu126",
        "channel",
        {"torch": "2.14.1"},
    )


def test_pinned_companion_of_a_bare_torch_anchors_it() -> None:
    plan = only(request((group("a", A100),), "torch", "torchvision==0.19.0"))
    assert dict(plan.versions) == {"torch": "2.4.0", "torchvision": "0.19.0"}
    newest = only(request((group("a", A100),), "torch", "torchvision==0.19.0", policy="newest"))
    assert dict(newest.versions)["torch"] == "2.15.0"


def test_ended_companion_comes_from_pypi_beside_a_channel() -> None:
    plan = only(request((group("v", V100),), "torch==2.14.0", "torchtext==0.18.0"))
    text = next(b for _, package, b in plan.builds if package == "torchtext")
    assert (plan.channel, text.home, text.version) == ("cu126", "pypi", "0.18.0")


def test_a_companion_of_another_cuda_is_no_companion() -> None:
    """PyPI's torchaudio 2.11.0 is cu130 and refuses PyPI's torch 2.15.0, which is cu132."""
    plan = only(request((group("a", A100),), "torch==2.15.0", "torchaudio!==2.11.0"))
    assert dict(plan.versions) == {"torch": "2.14.1", "torchaudio": "2.11.0"}
    assert {b.cuda for _, _, b in plan.builds} == {"13.0"}


def test_unknown_packages_are_left_alone() -> None:
    plan = only(request((group("a", A100),), "torch==2.14.0", "torchmetrics==1.0"))
    assert dict(plan.versions) == {"torch": "2.14.0"}
    assert any("torchmetrics" in text for text, _, _ in plan.because)


def test_torch_is_in_the_plan_even_if_only_a_companion_is_wanted() -> None:
    plan = only(request((group("a", A100),), "torchvision"))
    assert set(dict(plan.versions)) == {"torch", "torchvision"}


def test_no_targets_no_plan() -> None:
    assert answer(request((), "torch")) == Outcome((), (), ())


@pytest.mark.parametrize("policy", ["nearest", "newest"])
def test_smallest_split_joins_what_fits_together(policy: str) -> None:
    """Four groups, two builds."""
    groups = (
        group("v", V100),
        group("b", B200),
        group("p", GTX),
        group("t", "RTX 5090"),
    )
    outcome = answer(request(groups, "torch>=2.11", "torchvision", policy=policy))
    assert [sorted(t.group.name for t in p.targets) for p in outcome.plans] == [
        ["p", "v"],
        ["b", "t"],
    ]
