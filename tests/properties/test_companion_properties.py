"""Properties of fixes of files that pin companions which follow torch."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import parse_wheel_filename
from tools.record_golden import findings, installs, torchpin

FACTS = Path(__file__).parents[1] / "clients" / "facts" / "pypi.json"
CODES = ("TP301", "TP302", "TP303", "TP305", "TP306")
TORCH = (
    "",
    "torch",
    "torch>=2.8",
    "torch==2.15.0",
    "torch==2.13.0",
    "torch==2.9.1",
    "torch==2.8.0",
)
FOLLOWING = {
    "xformers": ("", "==0.0.35", "==0.0.34", "==0.0.33.post2", "==0.0.32.post2", "<0.0.34"),
    "torchcodec": ("", "==0.7.0", "==0.9.1", "==0.10.0", "==0.12.0", "==0.15.0", "<0.10"),
    "torchao": ("", "==0.13.0", "==0.15.0", "==0.17.0", ">=0.14"),
    "bitsandbytes": ("", "==0.45.5", "==0.47.0", "==0.49.2", "==0.50.2"),
}
FLEETS = {
    "volta": 'gpus = ["Tesla V100"]\ndriver = "580.82.07"\n',
    "ampere": 'gpus = ["A100-SXM4-80GB"]\ndriver = "580.82.07"\n',
    "blackwell": 'gpus = ["B200"]\ndriver = "580.82.07"\n',
    "ci": "gpus = []\n",
}
lines = st.tuples(
    st.sampled_from(TORCH),
    *(st.sampled_from((None, None, *specs)) for specs in FOLLOWING.values()),
).map(
    lambda drawn: [
        *([drawn[0]] if drawn[0] else []),
        *(name + spec for name, spec in zip(FOLLOWING, drawn[1:], strict=True) if spec is not None),
    ]
)
fleets = st.lists(st.sampled_from(sorted(FLEETS)), min_size=1, max_size=2, unique=True)


def recorded() -> dict[tuple[str, str], list[Requirement]]:
    """Return (package, version) → requirements on torch, as PyPI's METADATA say."""
    found: dict[tuple[str, str], list[Requirement]] = {}
    for record in json.loads(FACTS.read_text("utf-8")):
        if "metadata" not in record:
            continue
        version = str(parse_wheel_filename(record["metadata"])[1])
        wants = [Requirement(text) for text in record["requires"]]
        found[record["package"], version] = [r for r in wants if r.name == "torch"]
    return found


RECORDED = recorded()


def broken(folder: Path, client: str) -> list[str]:
    """Return the errors about companions for which there is a safe fix."""
    return [
        one["message"]
        for one in findings(folder, ["--client", client])
        if one["code"] in CODES and one["fix"] is not None and one["fix"]["safety"] == "safe"
    ]


def pinned(text: str) -> dict[str, str]:
    """Return the versions that a file pins exactly."""
    found = {}
    for line in text.splitlines():
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        pins = [s.version for s in requirement.specifier if s.operator == "=="]
        if len(pins) == 1:
            found[requirement.name] = pins[0]
    return found


@given(lines, fleets, st.sampled_from(("pip", "uv")), st.booleans())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_fix_leaves_companions_that_fit(
    written: list[str], names: list[str], client: str, unsafe: bool
) -> None:
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        fleet = "".join(f'[fleet.{n}]\n{FLEETS[n]}python = "3.11"\nglibc = "2.35"\n' for n in names)
        (folder / "torchpin.toml").write_text(fleet, "utf-8")
        path = folder / "requirements.txt"
        before = "".join(f"{line}\n" for line in written)
        path.write_text(before, "utf-8")
        options = ["--client", client, *(["--unsafe-fixes"] if unsafe else [])]
        assert torchpin("fix", "--quiet", *options, str(folder)).returncode in (0, 1)
        after = path.read_text("utf-8")
        assert broken(folder, client) == []
        torchpin("fix", "--quiet", *options, str(folder))
        assert path.read_text("utf-8") == after
        if after == before:
            return
        for packages in installs(folder, ["--client", client]).values():
            got = {name: text.split(" (")[0] for name, text in packages.items()}
            torch = got.get("torch", "none")
            for name, version in got.items():
                known = RECORDED.get((name, version.partition("+")[0]), ())
                for requirement in known if name != "torch" and torch != "none" else ():
                    assert requirement.specifier.contains(torch, prereleases=True), (before, after)
        for name, version in pinned(after).items():
            if pinned(before).get(name) != version and name in FOLLOWING:
                assert (name, version.partition("+")[0]) in RECORDED, (before, after)
