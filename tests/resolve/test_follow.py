"""Packages that follow torch: what a plan takes for them, and where it moves their pins."""

from __future__ import annotations

import pytest
from tests.resolve.resolve_fleets import group, request

from torchpin.catalog.store import load_catalog
from torchpin.evidence import PROOF
from torchpin.resolve.model import Plan, Request
from torchpin.resolve.solve import solve

A100, V100, B200 = "A100-SXM4-80GB", "Tesla V100", "B200"


def only(asked: Request) -> Plan:
    """Return the one plan of a request."""
    outcome = solve(asked, load_catalog())
    assert (len(outcome.plans), outcome.unserved) == (1, ())
    return outcome.plans[0]


def plan_for(gpu: str, *wants: str, policy: str = "nearest") -> Plan:
    """Return the plan for one group."""
    return only(request((group("g", gpu),), *wants, policy=policy))


@pytest.mark.parametrize(
    ("gpu", "torch", "pin", "version"),
    [
        (A100, "2.9.1", "xformers==0.0.33.post2", "0.0.33.post2"),  # it fits: it stays
        (A100, "2.9.0", "xformers==0.0.33.post2", "0.0.33.post1"),  # made for this torch
        (A100, "2.13.0", "xformers==0.0.33.post2", "0.0.35"),
        (A100, "2.13.0", "torchcodec==0.7.0", "0.12.0"),  # the nearest by the table
        (A100, "2.9.1", "torchcodec==0.17.0", "0.9.1"),
        (A100, "2.13.0", "torchcodec==0.15.0", "0.15.0"),
        (A100, "2.13.0", "torchao==0.13.0", "0.17.0"),
        (A100, "2.8.0", "torchao==0.18.0", "0.13.0"),
        (A100, "2.13.0", "bitsandbytes==0.45.5", "0.48.2"),  # the next with CUDA 13
        (V100, "2.13.0", "bitsandbytes==0.45.5", "0.45.5"),  # cu126 is in it
        (A100, "2.13.0", "torchtext==0.18.0", "0.18.0"),
        (A100, "2.2.2", "torchtext==0.16.0", "0.17.2"),
        (V100, "2.14.1", "triton==3.9.0", "3.8.0"),  # torch requires it
        (A100, "2.15.0", "triton==3.9.0", "3.9.0"),
    ],
)
def test_version(gpu: str, torch: str, pin: str, version: str) -> None:
    plan = plan_for(gpu, f"torch=={torch}", pin)
    name, _, pinned = pin.partition("==")
    assert dict(plan.versions) == {"torch": torch, name: version}
    assert plan.moved == (() if version == pinned else (name,))
    assert plan.unfit == ()


def test_a_moved_pin_says_why() -> None:
    plan = plan_for(A100, "torch==2.13.0", "xformers==0.0.33.post2")
    told = [(text, evidence) for text, evidence, _ in plan.because if "xformers" in text]
    assert any("requires torch==2.9.1" in text and e in PROOF for text, e in told)
    assert any("0.0.35" in text and "requires torch>=2.10" in text for text, _ in told)


def test_the_channel_of_torch_comes_before_pypi() -> None:
    plan = plan_for(V100, "torch==2.13.0", "torchcodec==0.15.0")
    codec = next(build for _, package, build in plan.builds if package == "torchcodec")
    assert (plan.channel, codec.channel, codec.home) == ("cu126", "cu126", "channel")


def test_what_never_fits_is_told_and_torch_stays() -> None:
    plan = plan_for(V100, "torch==2.13.0", "xformers==0.0.33.post2")
    assert dict(plan.versions) == {"torch": "2.13.0"}
    ((package, why),) = plan.unfit
    assert package == "xformers"
    assert "holds kernels for" in why


def test_nothing_is_taken_of_which_nobody_says_that_it_fits() -> None:
    plan = plan_for(A100, "torch==2.3.0", "torchcodec==0.7.0")  # older than the table
    assert dict(plan.unfit).keys() == {"torchcodec"}
    text = plan_for(A100, "torch==2.13.0", "torchtext==0.17.2")  # its METADATA accept any later one
    assert dict(text.unfit).keys() == {"torchtext"}


def test_a_bare_name_is_pinned_where_it_would_float_to_what_does_not_fit() -> None:
    plan = plan_for(A100, "torch==2.9.1", "torchcodec", "torchao", "xformers")
    assert dict(plan.versions)["torchcodec"] == "0.9.1"
    assert dict(plan.versions)["torchao"] == "0.15.0"
    assert set(plan.moved) == {"torchcodec", "torchao"}  # xformers' METADATA keep it right


def test_two_groups_get_one_version_that_fits_both() -> None:
    plan = only(request((group("v", V100), group("b", B200)), "torch==2.10.0", "torchcodec==0.7.0"))
    assert dict(plan.versions) == {"torch": "2.10.0", "torchcodec": "0.10.0"}


def test_newest_keeps_a_pin_that_fits() -> None:
    plan = plan_for(A100, "torch", "bitsandbytes==0.50.2", policy="newest")
    assert dict(plan.versions) == {"torch": "2.15.0", "bitsandbytes": "0.50.2"}


def test_hard_bounds_of_a_follower_bind_torch() -> None:
    plan = plan_for(A100, "torch", "xformers~=0.0.33.post2,<0.0.34", policy="newest")
    assert dict(plan.versions) == {"torch": "2.9.1", "xformers": "0.0.33.post2"}
