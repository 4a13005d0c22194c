"""On any file and fleet: errors rest on proof, places exist, and one fault is told once."""

from __future__ import annotations

import functools
import json
from collections import Counter

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from torchpin import engine
from torchpin.engine import Options, Report
from torchpin.evidence import ORDER, PROOF
from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import fleet_from_options
from torchpin.report import json_
from torchpin.report.model import CheckView, ordered
from torchpin.rules.model import ERROR, INFO, Finding

CHANNELS = ["cpu", "cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130", "cu132"]
VERSIONS = {
    "torch": "1.10.0 1.13.1 2.0.1 2.3.1 2.4.0 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.13.0 2.14.0 "
    "2.14.1 2.15.0 2.5.7 2.99.0 2.7.0.dev20250311",
    "torchvision": "0.11.0 0.15.0 0.15.2 0.19.0 0.21.0 0.24.1 0.25.0 0.26.0 0.29.0 0.29.2 2.5.1",
    "torchaudio": "2.0.2 2.4.0 2.6.0 2.9.1 2.10.0 2.11.0 2.11.1 2.14.0",
    "torchtext": "0.15.0 0.18.0",
    "torchcodec": "0.9.0 0.17.0",
    "triton": "3.0.0 3.5.1",
}
GPUS = ["V100", "GTX 1080", "T4", "A100-SXM4-80GB", "H100", "B200", "RTX 5090", "MI300X", "sm_87"]
PLATFORMS = ["linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64"]


@st.composite
def requirement(draw: st.DrawFn) -> str:
    """One line for a package of the family, or another."""
    package = draw(st.sampled_from([*VERSIONS, "torch", "torch", "numpy", "requests"]))
    if package not in VERSIONS:
        return package
    version = draw(st.sampled_from(VERSIONS[package].split()))
    label = draw(st.sampled_from(["", "", "", *(f"+{one}" for one in CHANNELS), "+nv25.1"]))
    operator = draw(st.sampled_from(["", "==", "==", "==", ">=", "<=", "~=", "!=", "==="]))
    marker = draw(st.sampled_from(["", "", "", ' ; sys_platform == "linux"']))
    return package + (f"{operator}{version}{label}" if operator else "") + marker


@st.composite
def index(draw: st.DrawFn) -> str:
    """One index line."""
    option = draw(st.sampled_from(["--index-url", "--extra-index-url", "--extra-index-url", "-f"]))
    channel = draw(st.sampled_from(CHANNELS))
    url = draw(
        st.sampled_from(
            [
                f"https://download.pytorch.org/whl/{channel}",
                f"https://download.pytorch.org/whl/{channel}",
                f"https://download.pytorch.org/whl/{channel}/torch/",
                "https://download.pytorch.org/whl/torch_stable.html",
                "https://download.pytorch.org/whl",
                f"https://download.pytorch.org/whl/nightly/{channel}",
                "https://pypi.example/simple",
                "https://wheels.corp.example/simple",
                "http://user:secret@mirror.example/simple",
            ]
        )
    )
    return f"{option} {url}"


FILES = st.tuples(
    st.lists(index(), max_size=2), st.lists(requirement(), min_size=1, max_size=4)
).map(lambda parts: "\n".join([*parts[0], *parts[1]]) + "\n")


@functools.cache
def fleet_of(gpus: tuple[str, ...], driver: str | None, python: str, platform: str) -> Fleet | None:
    """Return a fleet of one group, None where it contradicts itself."""
    from torchpin.errors import TorchpinError

    try:
        return fleet_from_options(
            gpus=gpus, driver=driver, python=python, platform=platform, glibc=None
        )
    except TorchpinError:
        return None


FLEETS = st.one_of(
    st.none(),
    st.builds(
        fleet_of,
        st.lists(st.sampled_from(GPUS), min_size=1, max_size=2).map(tuple),
        st.sampled_from([None, "470.82.01", "535.183.06", "550.54.15", "580.82.07", "590.48.01"]),
        st.sampled_from(["3.9", "3.10", "3.11", "3.13"]),
        st.sampled_from(PLATFORMS),
    ),
)


def report(text: str, fleet: Fleet | None, client: str) -> Report:
    """Check a text as standard input."""
    options = Options(
        ("-",), client=client, isolated=True, stdin=text.encode(), stdin_filename="requirements.txt"
    )
    return engine.check(options, fleet)


def looks_sound(finding: Finding) -> None:
    assert finding.document is not None
    text = finding.document.text
    assert 0 <= finding.span.start < finding.span.end <= len(text), finding
    assert text[finding.span.start : finding.span.end].strip(), finding
    assert finding.message and finding.message == finding.message.strip()
    assert "None" not in finding.message and "secret" not in finding.message
    assert not finding.message.endswith("."), finding.message
    assert all(ground.evidence in ORDER and ground.source for ground in finding.because)
    texts = [ground.text for ground in finding.because]
    assert len(texts) == len(set(texts)), texts
    if finding.code == "TP003":
        assert finding.severity == INFO
    else:
        assert finding.because, finding
    if finding.severity == ERROR and finding.code != "TP001":
        assert any(ground.evidence in PROOF for ground in finding.because), finding


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FILES, FLEETS, st.sampled_from(["pip", "uv"]))
def test_findings_are_sound(text: str, fleet: Fleet | None, client: str) -> None:
    found = report(text, fleet, client)
    for finding in found.findings:
        looks_sound(finding)
        assert (finding.group is None) == (fleet is None) or finding.group is None
    view = CheckView(
        findings=ordered(found.findings),
        files=1,
        catalog_date=found.catalog_date,
        catalog_digest=found.catalog_digest,
        unsafe_fixes=False,
    )
    rendered = json_.check(view)
    assert "secret" not in rendered
    assert len(json.loads(rendered)["findings"]) == len(found.findings)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FILES, FLEETS, st.sampled_from(["pip", "uv"]))
@example(
    text="torch==2.9.1\ntorch\n",
    fleet=fleet_of(("GTX 1080",), None, "3.9", "linux-x86_64"),
    client="pip",
)
def test_one_fault_is_told_once(text: str, fleet: Fleet | None, client: str) -> None:
    findings = report(text, fleet, client).findings
    same = Counter((one.code, one.span, one.package) for one in findings if one.package)
    assert not [one for one, count in same.items() if count > 1 and one[0] not in SEVERAL]
    errors = Counter(
        (one.package, one.span) for one in findings if one.severity == ERROR and one.package
    )
    crowded = {key for key, count in errors.items() if count > 1}
    codes = [
        tuple(sorted(one.code for one in findings if (one.package, one.span) == key))
        for key in crowded
    ]
    assert not [one for one in codes if not BESIDE & set(one)], codes


SEVERAL: frozenset[str] = frozenset()
BESIDE = frozenset({"TP102", "TP104", "TP203", "TP204", "TP207", "TP301"})
"""A group may hold GPUs of two vendors, and each has its own fault.
The driver is another matter than the wheel, and so is to whom a version belongs. Where only the
Python or the C library stops the install, the build that the pin means is judged as well."""
