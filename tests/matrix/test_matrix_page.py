"""The web page as a file: one piece, harmless whatever the profile says, readable colours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from torchpin.catalog.drivers import at_least, load_drivers
from torchpin.catalog.store import shipped_catalog
from torchpin.fleet.profile import load_profile
from torchpin.matrix import pack
from torchpin.matrix.page_data import page_data

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 & 'x' \"y\""
PROFILE = """\
[fleet.training]
gpus = ["Tesla V100"]
driver = "550.54.15"
python = ">=3.10,<3.13"
glibc = "2.31"

[fleet.edge]
gpus = ["Jetson AGX Orin"]
platform = "linux-aarch64"
jetpack = "7.2"

[fleet.cloud]
gpus = ["A100-SXM4-80GB", "RTX 4090"]
driver = "535.54.03"
cuda-compat = "13.0"

[fleet.alpine]
gpus = []
libc = "musl"
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("fleet") / "torchpin.toml"
    path.write_text(PROFILE, "utf-8")
    fleet = load_profile(str(path))
    # Names of groups are checked where a profile is read; the page does not lean on that.
    named = fleet.groups[0]._replace(name=HOSTILE)
    fleet = fleet._replace(groups=(named, *fleet.groups[1:]))
    return page_data(shipped_catalog(), fleet, since="2.14", version="1")


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[int, str] = {}
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            at = len(self.found) - 1
            self.text[at] = self.text.get(at, "") + data


def elements(page: str) -> _Elements:
    parser = _Elements()
    parser.feed(page)
    return parser


def test_the_page_is_one_piece_that_asks_nothing(data: dict[str, Any]) -> None:
    page = pack.page(data)
    found = elements(page)
    assert not {"link", "img", "iframe", "base", "object"} & {tag for tag, _ in found.found}
    for tag, attributes in found.found:
        assert not {"src", "srcset", "action", "formaction"} & attributes.keys()
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        if tag == "a":
            assert str(attributes["href"]).startswith("#")
    assert "url(" not in pack.source("style.css") and "@import" not in pack.source("style.css")
    script = pack.script()
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|importScripts|sendBeacon)\b", script)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", script)
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)


def test_the_policy_allows_this_style_and_this_script_alone(data: dict[str, Any]) -> None:
    found = elements(pack.page(data))
    (policy,) = (
        str(attributes["content"])
        for tag, attributes in found.found
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    texts = {
        (tag, attributes.get("type")): found.text[at]
        for at, (tag, attributes) in enumerate(found.found)
        if tag in ("style", "script")
    }
    assert policy == pack.policy(texts["style", None], texts["script", "module"])
    assert len([tag for tag, _ in found.found if tag == "script"]) == 2


def test_a_hostile_profile_stays_text(data: dict[str, Any]) -> None:
    page = pack.page(data)
    assert "alert(1)</script" not in page and "<!-- " not in page
    found = elements(page)
    at = next(i for i, (tag, a) in enumerate(found.found) if a.get("type") == "application/json")
    back = json.loads(found.text[at])
    assert back == json.loads(json.dumps(data))
    assert back["presets"][0]["name"] == HOSTILE


def test_groups_become_presets_with_all_that_they_declare(data: dict[str, Any]) -> None:
    first, edge, cloud, alpine = data["presets"]
    assert first == {
        "name": HOSTILE,
        "gpus": ["Tesla V100"],
        "driver": "550.54.15",
        "pythons": ["3.10", "3.11", "3.12"],
        "platform": "linux-x86_64",
        "libc": "2.31",
    }
    assert edge["gpus"] == ["Jetson AGX Orin with JetPack 7.2"]
    assert cloud["gpus"] == [
        "A100 with cuda-compat 13.0",
        "GeForce RTX 4090 with cuda-compat 13.0",
    ]
    assert (alpine["gpus"], alpine["libc"]) == (["none"], "musl")
    names = {gpu["name"]: gpu for gpu in data["gpus"]}
    plain, compat = names["A100"], names["A100 with cuda-compat 13.0"]
    assert plain["kind"] != compat["kind"]


def test_every_reference_of_the_data_leads_somewhere(data: dict[str, Any]) -> None:
    texts, reasons, answers = len(data["texts"]), data["reasons"], data["answers"]
    for text, status, evidence, source in reasons:
        assert 0 <= text < texts and source < texts
        assert data["statuses"][status] and data["evidence"][evidence]
    for level, status, *told in answers:
        assert 0 <= level <= 4 and 0 <= status <= 4
        assert all(-len(reasons) <= one < len(reasons) for one in told)
    for steps in data["steps"]:
        assert len(steps) % 2 == 1
        assert all(0 <= one < len(answers) for one in steps[::2])
    for build in data["builds"]:
        assert len(data["rows"][build["gpus"]]) == len(data["kinds"])
        assert len(data["rows"][build["pythons"]]) == len(data["pythons"])
        for _, _, _, pythons, kinds, _, title, told in build["beside"]:
            assert data["texts"][title].startswith("torch")
            assert told and all(0 <= one < len(reasons) for one in told)
            assert len(data["texts"][pythons]) == len(data["pythons"])
            assert len(data["texts"][kinds]) == len(data["kinds"])
    for _, gpus in data["instances"]:
        assert gpus and all(0 <= one < len(data["gpus"]) for one in gpus)


def test_a_driver_changes_answers_at_thresholds_only() -> None:
    """What lies between two thresholds reaches the same floors as the lower one."""
    tables = load_drivers()
    marks = tables.thresholds()
    assert list(marks) == sorted(marks, key=lambda text: [int(n) for n in text.split(".")])
    for cuda in ("11.8", "12.4", "12.6", "13.0", "13.2"):
        for platform in ("linux-x86_64", "windows-x86_64"):
            for fact in (
                tables.family_floor(cuda, platform),
                tables.toolkit_driver(cuda, platform),
            ):
                assert fact is None or fact.value in marks
    branches = [tables.branch_of(mark) for mark in marks]
    for number in range(418, 640):
        below = [mark for mark in marks if at_least(f"{number}.0", mark)]
        assert not below or number > 629 or tables.branch_of(str(number)) in branches


def test_the_sources_of_the_page_are_all_packed_and_shipped() -> None:
    """The wheel holds every file below the package that git tracks; the page is made of them."""
    folder = Path(pack.FOLDER)
    assert {path.name for path in folder.iterdir()} == {"page.html", "style.css", *pack.MODULES}
    done = subprocess.run(
        ["git", "check-ignore", *map(str, folder.iterdir())], capture_output=True, text=True
    )
    assert done.stdout == ""
    names = re.findall(
        r"^(?:export )?(?:async )?(?:function|const|let) (?:\{[^}]*\}|(\w+))",
        "\n".join(pack.source(name) for name in pack.MODULES),
        re.MULTILINE,
    )
    found = [name for name in names if name]
    assert len(found) == len(set(found)), "joined modules share their names"


def channel(value: int) -> float:
    part = value / 255
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def luminance(color: str) -> float:
    red, green, blue = (channel(int(color[at : at + 2], 16)) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, *contrast ratio*."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


PAIRS = [
    *(("text", ground) for ground in ("bg", "surface", "raised")),
    *(("muted", ground) for ground in ("bg", "surface", "raised")),
    ("accent", "surface"),
    ("on-accent", "accent"),
    *((word, f"{word}-bg") for word in ("runs", "ptx", "partly", "unknown", "fails")),
    ("fails", "surface"),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_colours_have_enough_contrast(theme: str) -> None:
    css = pack.source("style.css")
    colors = {
        name: (light if theme == "light" else dark)
        for name, light, dark in re.findall(
            r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", css
        )
    }
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    for ink, ground in PAIRS:
        assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)
    assert contrast(colors["edge"], colors["surface"]) >= 3  # borders of fields: WCAG 1.4.11


def test_the_command_writes_the_whole_page(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "matrix", "--html", "--isolated", "--since", "2.15"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "note: matrix.html is written: open it in a browser\n"
    page = (tmp_path / "matrix.html").read_text("utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert not re.search(r"@(CSP|STYLE|SCRIPT|DATA)@", page)
