"""Properties of resolution over generated fleets and wants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.resolve.resolve_fleets import group, request

from torchpin.catalog.store import load_catalog
from torchpin.evidence import PROOF
from torchpin.fleet.model import NodeGroup, Target
from torchpin.judge.model import FAILS
from torchpin.judge.verdict import judge, judge_companion
from torchpin.resolve.explain import Explainer
from torchpin.resolve.model import Plan, Request
from torchpin.resolve.solve import solve
from torchpin.resolve.space import Space

GPUS = (
    "Tesla K80",
    "GTX 1080",
    "Tesla V100",
    "Tesla T4",
    "A100-SXM4-80GB",
    "H100",
    "B200",
    "RTX 5090",
    "gfx942",
    "gfx906",
    "sm_30",
)
WANTS = (
    "torch",
    "torch==2.14.0",
    "torch==2.15.0",
    "torch==2.13.0",
    "torch==2.7.0",
    "torch>=2.11",
    "torch>=2.8,<2.12",
    "torch<2.4",
    "torch!==2.15.0",
)
COMPANIONS = ("torchvision", "torchaudio", "torchvision==0.19.0", "torchaudio==2.14.0")

groups = st.builds(
    lambda name, gpus, python, platform, driver: group(
        name, *gpus, python=python, platform=platform, driver=driver if gpus else None
    ),
    name=st.sampled_from("abcd"),
    gpus=st.lists(st.sampled_from(GPUS), max_size=2, unique=True),
    python=st.sampled_from(("3.11", "3.10 3.12", "3.9", "3.8 3.13", "3.13", "3.14")),
    platform=st.sampled_from(("linux-x86_64", "linux-x86_64", "linux-aarch64", "windows-x86_64")),
    driver=st.sampled_from((None, None, "535.104.05", "580.65.06", "590.44.01", "470.82.01")),
)
fleets = st.lists(groups, min_size=1, max_size=3, unique_by=lambda g: g.name).map(tuple)


@st.composite
def requests(draw: st.DrawFn, fleet: st.SearchStrategy[tuple[NodeGroup, ...]] = fleets) -> Request:
    texts = [draw(st.sampled_from(WANTS))]
    texts += draw(st.lists(st.sampled_from(COMPANIONS), max_size=2, unique_by=lambda t: t[:10]))
    return request(
        draw(fleet),
        *texts,
        policy=draw(st.sampled_from(("nearest", "newest"))),
        channel=draw(st.sampled_from((None, "cu124", "cu126", "cu128", "cu130", "cpu"))),
    )


def pieces(targets: Iterable[Target]) -> Counter[tuple[str, str, str]]:
    """Count (group, Python, GPU): a plan may serve the GPUs of a group apart."""
    found: Counter[tuple[str, str, str]] = Counter()
    for target in targets:
        name = target.group.name.partition(" (")[0]
        for gpu in target.group.gpus or (None,):
            found[(name, str(target.python), gpu.written if gpu else "")] += 1
    return found


def check_plan(plan: Plan) -> None:
    torch = {place: build for place, package, build in plan.builds if package == "torch"}
    said = {text for text, _, _ in plan.because}
    for target in plan.targets:
        place = target.group.platform
        for where, package, build in plan.builds:
            if where != place:
                continue
            verdict = judge(build, target)
            assert verdict.status != FAILS, (build, target)
            assert build.evidence in PROOF
            assert not build.yanked
            for reason in verdict.reasons:
                if reason.status in ("partly", "unknown", "runs-via-ptx"):
                    assert reason.text in said
            if package != "torch":
                pair = judge_companion(build, torch[place])
                assert all(reason.status != FAILS for reason in pair)
    versions = dict(plan.versions)
    assert all(versions[package] == build.version for _, package, build in plan.builds)
    assert {t.group.platform for t in plan.targets} == set(torch)


@settings(max_examples=60, deadline=None)
@given(requests())
def test_plans_satisfy_every_judge_and_cover_every_target_once(asked: Request) -> None:
    outcome = solve(asked, load_catalog())
    for plan in (*outcome.plans, *outcome.alternative):
        check_plan(plan)
    covered: Counter[tuple[str, str, str]] = Counter()
    for plan in outcome.plans:
        covered += pieces(plan.targets)
    covered += pieces(u.target for u in outcome.unserved)
    assert covered == pieces(asked.targets)
    if outcome.alternative:
        alternative: Counter[tuple[str, str, str]] = Counter()
        for plan in outcome.alternative:
            alternative += pieces(plan.targets)
        assert alternative == pieces(asked.targets)
    assert bool(outcome.explanation) == (len(outcome.plans) != 1 or bool(outcome.unserved))
    assert solve(asked, load_catalog()) == outcome


@settings(max_examples=40, deadline=None)
@given(requests())
def test_explanations_are_minimal(asked: Request) -> None:
    explainer = Explainer(asked, Space(load_catalog()))
    found = explainer.minimal()
    everything = frozenset(explainer.members())
    if not found:
        assert explainer.solve(everything) is not None
        return
    assert explainer.solve(frozenset(found)) is None
    for member in found:
        assert explainer.solve(frozenset(found) - {member}) is not None


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(GPUS), max_size=3, unique=True), st.sampled_from(GPUS))
def test_adding_a_gpu_never_adds_builds(gpus: list[str], more: str) -> None:
    """A CPU-only group takes CPU builds too, so the first GPU may only take away as well."""
    space = Space(load_catalog())

    def open_builds(names: list[str]) -> set[tuple[str, str]]:
        number = space.intern(Target(group("g", *names, python=""), None))
        (lane,) = space.lanes((number,))
        return {
            (version, key)
            for version in space.versions("torch")
            for key in space.torch_keys(version, lane)
        }

    assert open_builds([*gpus, more]) <= open_builds(gpus)
