from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver

from torchpin.catalog.store import load_catalog
from torchpin.errors import UsageError
from torchpin.fleet.model import Target
from torchpin.fleet.profile import fleet_from_options
from torchpin.resolve.compose import Family
from torchpin.resolve.model import Conflict, Origin, Outcome, Plan, Request, Unserved, Want
from torchpin.resolve.solve import solve

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"


def targets(gpu: str, python: str = "3.11", platform: str | None = None) -> tuple[Target, ...]:
    fleet = fleet_from_options(
        gpus=(gpu,), driver=None, python=(python,), platform=platform, glibc=None
    )
    return fleet.targets()


class Outer(AbstractProvider[Any, Any, Any]):
    """A world in which each package has one version; it asks for packages of the family."""

    def __init__(self, family: Family, world: dict[str, list[tuple[str, str]]]) -> None:
        self.family, self.world = family, world

    def identify(self, requirement_or_candidate: Any) -> str:
        return str(requirement_or_candidate[0])

    def get_preference(
        self,
        identifier: str,
        resolutions: Any,
        candidates: Any,
        information: Any,
        backtrack_causes: Any,
    ) -> Any:
        return self.family.owns(identifier), (
            self.family.provider.get_preference(
                identifier, resolutions, candidates, information, backtrack_causes
            )
            if self.family.owns(identifier)
            else 0
        )

    def find_matches(self, identifier: str, requirements: Any, incompatibilities: Any) -> Any:
        if self.family.owns(identifier):
            return self.family.provider.find_matches(identifier, requirements, incompatibilities)
        return [] if list(incompatibilities[identifier]) else [(identifier,)]

    def is_satisfied_by(self, requirement: Any, candidate: Any) -> bool:
        return not self.family.owns(candidate[0]) or self.family.provider.is_satisfied_by(
            requirement, candidate
        )

    def get_dependencies(self, candidate: Any) -> Any:
        if self.family.owns(candidate[0]):
            return self.family.provider.get_dependencies(candidate)
        return [
            one
            for name, specifier in self.world[candidate[0]]
            for one in (
                self.family.requirements(name, specifier)
                if self.family.owns(name)
                else [(name, specifier)]
            )
        ]


def resolved(family: Family, world: dict[str, list[tuple[str, str]]]) -> dict[str, Any]:
    resolver: Any = Resolver(Outer(family, world), BaseReporter())
    return dict(resolver.resolve([(name,) for name in world]).mapping)


def test_the_page_tells_the_truth() -> None:
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert len(blocks) == 3
    runner = doctest.DocTestRunner(verbose=False)
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "api.md", str(PAGE), 0)
    said: list[str] = []
    outcome = runner.run(example, out=said.append)
    assert outcome.failed == 0, "".join(said)
    assert outcome.attempted > 20


def test_the_page_names_every_public_name_and_every_parameter() -> None:
    text = PAGE.read_text("utf-8")
    for kind in (Request, Want, Origin, Outcome, Unserved, Conflict):
        fields = ", ".join(kind._fields[:4])
        assert f"`{kind.__name__}({fields.split(',')[0]}" in text, kind
    for name in (*Request._fields, *Want._fields, *Outcome._fields, *Plan._fields[:7]):
        assert name in text, name
    for of in (Family.__init__, Family.requirements):
        for name in inspect.signature(of).parameters:
            assert name == "self" or name in text, name


@pytest.mark.parametrize("gpu", ["V100", "H100", "MI300X", "none"])
def test_alone_it_arrives_where_solve_does(gpu: str) -> None:
    where = targets(gpu, "3.12")
    family = Family(where)
    found = family.plan(resolved(family, {"app": [("torchvision", ""), ("torch", "")]}))
    wants = tuple(Want(name, "", Origin("x", 1, name)) for name in ("torch", "torchvision"))
    (plan,) = solve(Request(wants, where, "newest"), load_catalog()).plans
    assert (found.versions, found.index_url, found.builds) == (
        plan.versions,
        plan.index_url,
        plan.builds,
    )


def test_what_others_ask_binds() -> None:
    family = Family(targets("V100"), ("torch", "torchvision"))
    mapping = resolved(family, {"one": [("torchvision", "<0.26")], "two": [("torch", ">=2.9")]})
    plan = family.plan(mapping)
    assert dict(plan.versions) == {"torch": "2.10.0", "torchvision": "0.25.0"}
    with pytest.raises(ResolutionImpossible):
        resolved(family, {"one": [("torchvision", "<0.20")], "two": [("torch", ">=2.10")]})
    with pytest.raises(ResolutionImpossible):
        resolved(family, {"one": [("torch", ">=2.15")]})


def test_all_targets_bind() -> None:
    both = (*targets("V100", "3.12"), *targets("RTX 5090", "3.12"))
    family = Family(both, ("torch",))
    plan = family.plan(resolved(family, {"app": [("torch", "")]}))
    assert plan.versions == (("torch", "2.10.0"),)
    assert plan.targets == both


def test_channels_can_be_limited() -> None:
    family = Family(targets("H100"), ("torch",), channels=("cu128",), pypi=False)
    plan = family.plan(resolved(family, {"app": [("torch", "")]}))
    assert plan.index_url == "https://download.pytorch.org/whl/cu128"


def test_wrong_use_is_told() -> None:
    family = Family(targets("V100"), ("torch",))
    assert family.owns("torch")
    assert family.owns("channel@linux-x86_64")
    assert not family.owns("torchvision")
    with pytest.raises(UsageError, match="torchvision is not one of torch"):
        family.requirements("torchvision")
    with pytest.raises(UsageError, match="not a version specifier"):
        family.requirements("torch", "new")
    with pytest.raises(UsageError, match="holds no torch"):
        family.plan({})
    for args in (((), ("torch",)), (targets("V100"), ("numpy",))):
        with pytest.raises(UsageError, match="a family needs targets"):
            Family(*args)
    with pytest.raises(UsageError, match="no verdict 'fine'"):
        Family(targets("V100"), worst="fine")
