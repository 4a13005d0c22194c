"""The web page in a real Chromium, clicked through; its answers are those of judge and resolve.

``nox -s browser``. The page is opened from ``file://``; no test makes a request.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.matrix.chromium import chromium

from torchpin.catalog.model import Build
from torchpin.catalog.store import shipped_catalog
from torchpin.cli.main import guarded
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.fleet.profile import load_profile
from torchpin.fleet.tables import gpu_table
from torchpin.judge.verdict import judge_companion
from torchpin.matrix import pack
from torchpin.matrix.judged import judged, offered, release, releases
from torchpin.matrix.page_data import SINCE, page_data, pythons
from torchpin.plugin.forms import uv_text
from torchpin.plugin.plan import Places, family_wants, whole_family
from torchpin.report.lines import requirement_lines
from torchpin.resolve.horizon import horizon
from torchpin.resolve.model import Request
from torchpin.resolve.space import AT_MOST_PARTLY, Space

tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

SEEDS = int(os.environ.get("TORCHPIN_MATRIX_SEEDS", "2"))
"""How many times 40 random choices are compared."""
FLEET = """\
[fleet.training]
gpus = ["Tesla V100", "A100-SXM4-80GB"]
driver = "550.54.15"
python = ">=3.10,<3.12"
glibc = "2.31"

[fleet.edge]
gpus = ["Jetson AGX Orin"]
platform = "linux-aarch64"
jetpack = "7.2"

[fleet.compat]
gpus = ["A100-SXM4-80GB"]
driver = "535.54.03"
cuda-compat = "13.0"

[fleet.alpine]
gpus = []
libc = "musl"
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def page_file(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as the command writes it, without a fleet."""
    path: Path = tmp_path_factory.mktemp("page") / "matrix.html"
    assert guarded(["matrix", "--html", "--isolated", "-q", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def fleet_file(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a fleet whose first group has a hostile name."""
    folder: Path = tmp_path_factory.mktemp("fleet")
    (folder / "torchpin.toml").write_text(FLEET)
    fleet = load_profile(str(folder / "torchpin.toml"))
    named = fleet.groups[0]._replace(name="</script><img src=x onerror=alert(1)>")
    fleet = fleet._replace(groups=(named, *fleet.groups[1:]))
    path = folder / "matrix.html"
    path.write_text(pack.page(page_data(shipped_catalog(), fleet, since="2.9")), "utf-8")
    return path


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, page_file: Path) -> Iterator[Open]:
    """Open the page; at the end nothing may have been said on the console or asked of a host."""
    troubles: list[str] = []
    contexts = []

    def asked(url: str, path: Path) -> None:
        if url.partition("#")[0] != path.as_uri():
            troubles.append(f"request: {url}")

    def opened(hash_: str = "", *, path: Path = page_file, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: asked(request.url, path))
        page.set_default_timeout(15_000)
        page.goto(path.as_uri() + hash_)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def big(page: Any) -> str:
    return str(page.locator("#answer .big").inner_text())


def pick(page: Any, *names: str) -> None:
    for name in names:
        page.fill("#gpu", name)
        page.keyboard.press("Enter")


def hash_of(page: Any) -> str:
    return str(page.evaluate("location.hash"))


def test_picks_give_the_right_rows(open_page: Open) -> None:
    page = open_page()
    assert page.locator("#grid tbody tr").count() >= 16
    pick(page, "v100")
    assert page.locator("#chips").inner_text().startswith("Tesla V100")
    assert big(page) == "torch 2.14.1+cu126 from the cu126 channel"
    assert page.locator('[data-build="2.15.0@pypi"]').get_attribute("data-verdict") == "fails"
    assert "2.15.0 ends it: Tesla V100" in page.locator("#horizon").inner_text()
    assert page.locator('[data-build="2.14.1@rocm7.2"]').count() == 0
    page.check("#other")
    cell = page.locator('[data-build="2.14.1@rocm7.2"]')
    assert cell.get_attribute("data-verdict") == "fails"
    page.fill("#driver", "450.80.02")
    assert big(page) == "torch 2.6.0+cu118 from the cu118 channel"
    page.select_option("#python", "3.8")
    assert big(page).startswith("torch 2.4.1+cu118")
    page.fill("#libc", "2.5")
    assert "2.0" not in big(page)
    page.click("#reset")
    assert page.locator("#chips li").count() == 0
    assert page.input_value("#driver") == ""


@pytest.mark.parametrize(
    ("typed", "chip"),
    [
        ("A100-SXM4-80GB", "A100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("Tesla V100-SXM2-16GB", "Tesla V100"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("4090", "GeForce RTX 4090"),
        ("sm_70", "sm_70"),
        ("gfx942", "gfx942"),
        ("p3.2xlarge", "Tesla V100"),
        ("cpu", "No GPU (CPU only)"),
    ],
)
def test_a_gpu_is_found_as_tools_print_it(open_page: Open, typed: str, chip: str) -> None:
    page = open_page()
    pick(page, typed)
    assert page.locator("#chips li span").all_inner_texts() == [chip]


def test_the_reason_of_a_cell_has_its_evidence_and_source(open_page: Open) -> None:
    page = open_page("#gpu=Tesla+V100")
    page.click('[data-build="2.15.0@pypi"]')
    details = page.locator("#details")
    first = details.locator(".reasons li").first
    text = first.inner_text()
    assert "no PTX that it could compile" in text and "measured" in text
    assert "does not run" in details.locator(".badge").inner_text()
    first.locator("summary").click()
    assert "sha256:" in first.inner_text()
    assert "build=2.15.0%40pypi" in hash_of(page)


@pytest.mark.parametrize(
    ("tool", "wanted"),
    [
        (
            "pip",
            "pip install --extra-index-url https://download.pytorch.org/whl/cu126 "
            "torch==2.14.1+cu126 torchvision==0.29.1+cu126 torchaudio==2.11.0+cu126",
        ),
        ("uv", '[[tool.uv.index]]\nname = "pytorch-cu126"\nurl = '),
        ("Poetry", "poetry source add --priority=explicit pytorch-cu126 https://"),
        ("PDM", 'include_packages = ["torch", "torchvision", "torchaudio"]'),
    ],
)
def test_each_tool_has_its_commands_to_copy(open_page: Open, tool: str, wanted: str) -> None:
    page = open_page("#gpu=Tesla+V100", permissions=["clipboard-read", "clipboard-write"])
    page.click(f"#answer-tab-{tool}")
    assert wanted in page.locator("#answer-panel pre").first.inner_text()
    if tool != "pip":
        assert f"tool={tool.lower()}" in hash_of(page)
    assert page.evaluate("document.activeElement.id") == f"answer-tab-{tool}"
    page.locator("#answer .copy").first.click()
    page.wait_for_function("document.querySelector('#live').textContent === 'Copied.'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert wanted in copied


@pytest.mark.parametrize("gpu", ["Tesla V100", "MI300X", "GeForce RTX 2080"])
def test_the_settings_for_uv_are_those_of_constraints(open_page: Open, gpu: str) -> None:
    """What ``torchpin constraints --format uv`` writes is tried with the real uv."""
    group = NodeGroup("group", find_gpu(gpu), (), "linux-x86_64")
    (found,) = whole_family(
        Request(family_wants(), (Target(group, None),)), shipped_catalog()
    ).plans
    assert found.home == "channel"
    wanted = tomllib.loads(uv_text(found, Places(), ""))["tool"]["uv"]
    page = open_page("#" + urlencode({"gpu": gpu, "tool": "uv"}))
    settings, command = page.locator("#answer-panel pre").all_inner_texts()
    told = tomllib.loads(settings)["tool"]["uv"]
    assert (told["index"], told["sources"]) == (wanted["index"], wanted["sources"])
    pins = [f'"{pin}"' for pin in wanted["constraint-dependencies"] if "==" in pin]
    bounds = [pin for pin in wanted["constraint-dependencies"] if "==" not in pin]
    assert command == f"uv add {' '.join(pins)}"
    assert told.get("constraint-dependencies", []) == bounds
    page.click("#answer-tab-PDM")
    source = tomllib.loads(page.locator("#answer-panel pre").first.inner_text())["tool"]["pdm"]
    assert source["source"][0]["include_packages"] == list(wanted["sources"])


def test_where_one_install_serves_not_all_each_has_its_own(open_page: Open) -> None:
    page = open_page("#gpu=GeForce+GTX+1080&gpu=B200")
    assert big(page) == "No published build is known to run."
    links = page.locator("#answer a")
    assert links.all_inner_texts() == ["torch 2.14.1+cu126", "torch 2.15.0"]
    links.first.click()
    assert big(page) == "torch 2.14.1+cu126 from the cu126 channel"
    assert page.title().startswith("torch 2.14.1+cu126 on GeForce GTX 1080")


def test_what_runs_only_partly_is_not_told_as_running(open_page: Open) -> None:
    page = open_page("#gpu=GeForce+RTX+2080&driver=580.65.06&python=3.12")
    assert big(page) == "torch 2.14.1+cu126 from the cu126 channel"
    assert page.locator("#horizon p").all_inner_texts() == [
        "GeForce RTX 2080",
        "Runs the newest release: 2.15.0 from PyPI (cu132), "
        "but only partly: a library in it fails there.",
        "Whole: 2.14.1+cu126 from the cu126 channel.",
    ]


def test_a_link_opens_the_page_as_it_was_and_back_goes_back(open_page: Open) -> None:
    page = open_page()
    pick(page, "V100")
    pick(page, "a100-sxm4")
    page.fill("#driver", "550.54.15")
    page.select_option("#python", "3.11")
    page.check("#patches")
    page.click('[data-build="2.10.0@cu126"]')
    link = hash_of(page)
    again = open_page(link)
    for one in ("#answer", "#horizon", "#grid", "#details", "#chips"):
        assert again.locator(one).inner_text() == page.locator(one).inner_text()
    assert again.input_value("#driver") == "550.54.15"
    assert again.input_value("#python") == "3.11"
    assert again.is_checked("#patches") and not again.is_checked("#other")
    page.go_back()
    assert "build=" not in hash_of(page)
    page.go_back()
    assert page.input_value("#python") == ""
    page.go_back()
    page.go_forward()
    assert page.locator("#chips li").count() == 2


@pytest.mark.parametrize(
    "hash_",
    [
        "#gpu=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&driver=%3Cb%3E&python=4&platform=beos",
        "#gpu=none&gpu=V100&libc=9&build=%22%3E&tool=conda",
        "#%%%&==&gpu",
        "#answer",
    ],
)
def test_a_wrong_link_does_no_harm(open_page: Open, hash_: str) -> None:
    page = open_page(hash_)
    assert page.locator("#grid tbody tr").count() > 10
    assert page.locator("img").count() == 0
    assert page.input_value("#driver") == ""


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("V100", ["Tesla V100"]),
        ("rtx-4090", ["GeForce RTX 4090"]),
        ("A100-SXM4-80GB", ["A100"]),
        ("NVIDIA+GeForce+GTX+1080", ["GeForce GTX 1080"]),
        ("100", []),
        ("nvidia", []),
    ],
)
def test_a_link_that_is_written_by_hand_names_gpus_as_people_do(
    open_page: Open, written: str, named: list[str]
) -> None:
    page = open_page(f"#gpu={written}&driver=550.54.15")
    assert [one.split("\n")[0] for one in page.locator("#chips li").all_inner_texts()] == named
    assert page.input_value("#driver") == "550.54.15"


def test_what_is_no_value_is_said_and_not_used(open_page: Open) -> None:
    page = open_page("#gpu=GeForce+RTX+4090")
    before = page.locator("#grid").inner_text()
    page.fill("#driver", "latest")
    assert page.get_attribute("#driver", "aria-invalid") == "true"
    assert "nvidia-smi" in page.locator("#driver-help").inner_text()
    assert page.locator("#grid").inner_text() == before
    page.fill("#driver", "535")
    assert page.get_attribute("#driver", "aria-invalid") == "false"
    assert page.locator("#grid").inner_text() != before


def test_all_can_be_done_by_keyboard(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "answer"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "gpu"
    page.keyboard.type("b20")
    assert page.get_attribute("#gpu", "aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    active = page.get_attribute("#gpu", "aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Escape")
    assert page.get_attribute("#gpu", "aria-expanded") == "false"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#chips li").count() == 1
    page.keyboard.press("Backspace")
    assert page.locator("#chips li").count() == 0
    pick(page, "B200")

    cell = page.locator('#grid td[tabindex="0"]')
    assert cell.count() == 1
    cell.focus()
    here = "document.activeElement.dataset.build ?? document.activeElement.textContent"
    assert page.evaluate(here) == "2.15.0@pypi"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(here) == "2.14.1@pypi"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(here) == "2.14.1@cu132"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")  # the edge holds
    assert page.evaluate(here) == "2.14.1@pypi"
    page.keyboard.press("Control+End")
    page.keyboard.press("Control+Home")
    assert page.evaluate(here) == "2.15.0@pypi"
    page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "details"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    assert page.locator('#grid td[tabindex="0"]').count() == 1


def test_what_changes_is_told_to_who_does_not_see_it(open_page: Open) -> None:
    page = open_page()
    live = page.locator("#live")
    assert (live.get_attribute("role"), live.get_attribute("aria-live")) == ("status", "polite")
    pick(page, "V100")
    assert live.inner_text() == (
        "torch 2.14.1+cu126 from the cu126 channel is the newest that runs on Tesla V100."
    )


TWO = "gpu=Tesla+V100&gpu=GeForce+RTX+2080"
CHECKS = (Path(__file__).parent / "page_checks.js").read_text("utf-8").partition("\n")[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize(
    "hash_",
    [
        "",
        f"#{TWO}&driver=550&python=3.11&other=1&patches=1",
        "#gpu=MI300X",
    ],
)
def test_names_references_contrast_and_width(
    open_page: Open, scheme: str, width: int, hash_: str
) -> None:
    page = open_page(hash_, color_scheme=scheme, viewport={"width": width, "height": 800})
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.evaluate("for (const one of document.getAnimations()) one.finish()")
    assert page.evaluate(CHECKS) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_theme_can_be_chosen(open_page: Open) -> None:
    page = open_page(color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    bright = page.evaluate(ground)
    page.click("#theme")
    page.click("#theme")
    assert page.locator("#theme").inner_text() == "Theme: dark"
    assert page.evaluate(ground) != bright
    page.emulate_media(color_scheme="dark")
    page.click("#theme")
    assert page.locator("#theme").inner_text() == "Theme: auto"
    assert page.evaluate(ground) != bright


def test_it_prints_and_rests_where_motion_is_not_wanted(open_page: Open) -> None:
    page = open_page("#gpu=Tesla+V100", color_scheme="dark", reduced_motion="reduce")
    assert page.evaluate(
        "getComputedStyle(document.querySelector('button')).transitionDuration"
    ) in (
        "0s",
        "",
    )
    page.emulate_media(media="print")
    assert not page.is_visible("#theme")
    assert page.is_visible("#grid")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_groups_of_the_fleet_are_presets(open_page: Open, fleet_file: Path) -> None:
    page = open_page(path=fleet_file)
    buttons = page.locator("#presets button")
    assert buttons.first.inner_text() == "</script><img src=x onerror=alert(1)>"
    assert page.locator("img").count() == 0
    assert buttons.first.get_attribute("aria-pressed") == "true"  # the page opens with it
    assert page.locator("#chips").inner_text().split("\n")[0] == "Tesla V100"
    assert page.input_value("#python") == "3.10, 3.11"
    assert page.input_value("#libc") == "2.31"
    buttons.nth(1).click()
    assert page.input_value("#platform") == "linux-aarch64"
    assert "JetPack 7.2" in page.locator("#chips").inner_text()
    assert buttons.first.get_attribute("aria-pressed") == "false"
    buttons.nth(3).click()
    assert big(page) == "No published build is known to run."
    assert "musl" in page.locator("#answer").inner_text()


READ = """hash => {
  history.replaceState(null, '', hash);
  window.dispatchEvent(new PopStateEvent('popstate'));
  return {
    cells: [...document.querySelectorAll('[data-build]')].map(
      (cell) => [cell.dataset.build, cell.dataset.verdict]),
    big: document.querySelector('#answer .big').textContent,
    code: document.querySelector('#answer code')?.textContent ?? null,
    horizon: document.querySelector('#horizon').textContent,
  };
}"""
REASONS = """id => {
  document.querySelector(`[data-build="${id}"]`).click();
  return [...document.querySelectorAll('#details .reasons li')].map((one) => [
    one.querySelector('p').lastChild.textContent,
    one.querySelector('.tag').textContent,
    one.querySelector('.source p')?.textContent ?? '',
  ]);
}"""
DRIVERS = ("470.82.01", "525.60.12", "525.60.13", "535", "550.54.15", "572.83", "580", "580.65.06")


def group_of(choice: random.Random) -> NodeGroup:
    """Return a group at random, of what the page has fields for."""
    names = (*gpu_table().by_name, "sm_70", "sm_90", "sm_121", "gfx90a")
    gpus = [find_gpu(name)[0] for name in choice.sample(names, choice.choice((1, 1, 1, 2, 3)))]
    number = f"{choice.randint(400, 619)}.{choice.randint(0, 99)}.{choice.randint(0, 99):02}"
    platform = choice.choice(
        ("linux-x86_64", "linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64")
    )
    python: tuple[Python, ...] = ()
    if choice.random() < 0.7:
        python = tuple(sorted(choice.sample(pythons(), choice.choice((1, 1, 2)))))
    group = NodeGroup("group", tuple(gpus), python, platform)
    if platform.startswith("macos"):
        return group._replace(gpus=(), macos=choice.choice((None, "13", "14", "11.5", "26")))
    if choice.random() < 0.1:
        group = group._replace(gpus=())
    if platform.startswith("linux"):
        group = group._replace(glibc=choice.choice((None, None, "2.17", "2.27", "2.28", "2.35")))
        if group.glibc is None and choice.random() < 0.05:
            group = group._replace(musl=True)
    return group._replace(driver=choice.choice((None, None, number, *DRIVERS)))


def link(group: NodeGroup) -> str:
    """Return the address of a group on the page."""
    pairs = [("gpu", gpu.name) for gpu in group.gpus] or [("gpu", "none")]
    pairs += [("python", str(python)) for python in group.pythons]
    pairs += [("platform", group.platform), ("patches", "1"), ("other", "1")]
    libc = "musl" if group.musl else group.macos or group.glibc
    pairs += [(key, value) for key, value in (("driver", group.driver), ("libc", libc)) if value]
    return "#" + urlencode(pairs)


def id_of(build: Build) -> str:
    """Return what a link calls a build."""
    return f"{build.version}@{'pypi' if build.home == 'pypi' else build.channel}"


def verdicts(group: NodeGroup) -> list[tuple[str, str]]:
    """Return what the judge says of every build of the page."""
    catalog = shipped_catalog()
    return sorted(
        (
            f"{version}@{'pypi' if build.home == 'pypi' else build.channel}",
            judged(build, group).status,
        )
        for version in releases("torch", catalog, since=SINCE, every=True)
        for build in offered(catalog.find("torch", version=version, platform=group.platform))
    )


def plan(group: NodeGroup) -> tuple[str | None, bool]:
    """Return the command of the plan that ``resolve`` gives, and whether it is one that is known to
    run, of a release that the page has."""
    targets = tuple(Target(group, python) for python in group.pythons or (None,))
    outcome = whole_family(Request(family_wants(), targets), shipped_catalog())
    if len(outcome.plans) != 1 or outcome.unserved:
        return None, True
    (found,) = outcome.plans
    space = Space(shipped_catalog())
    known = all(
        space.level(build, space.intern(target)) <= AT_MOST_PARTLY
        for _, _, build in found.builds
        for target in targets
    )
    old = release(dict(found.versions)["torch"]) < release(SINCE)
    return f"pip install {' '.join(requirement_lines(found))}", known and not old


def calls_of(page: Any, cdp: Any, hash_: str) -> dict[str, int]:
    """Return how often each function of the page ran for one choice."""
    cdp.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": False})
    cdp.send("Profiler.takePreciseCoverage")
    page.evaluate(READ.partition("return")[0] + "}", hash_)
    found: dict[str, int] = {}
    for script in cdp.send("Profiler.takePreciseCoverage")["result"]:
        for one in script["functions"]:
            name = one["functionName"]
            found[name] = found.get(name, 0) + one["ranges"][0]["count"]
    cdp.send("Profiler.stopPreciseCoverage")
    return found


MIXED = ("Tesla V100", "A100", "GeForce RTX 4090", "B200", "GeForce GTX 1080", "T4", "L4", "H100")


@pytest.mark.parametrize("more", [{}, {"python": "3.11", "driver": "550"}, {"patches": "1"}])
@pytest.mark.parametrize("number", [0, 1, 4, 8])
def test_a_choice_costs_a_bounded_number_of_answers(
    open_page: Open, number: int, more: dict[str, str]
) -> None:
    """Work, not time: each build is judged once for all GPUs and once for each alone."""
    page = open_page()
    cdp = page.context.new_cdp_session(page)
    cdp.send("Profiler.enable")
    builds = page.evaluate(
        "(data => data.builds.filter(b => data.platforms[b.platform] === 'linux-x86_64').length)"
        "(JSON.parse(document.getElementById('data').textContent))"
    )
    assert builds > 100
    gpus = [("gpu", name) for name in MIXED[:number]]
    calls = calls_of(page, cdp, "#" + urlencode([*gpus, *more.items()]))
    assert page.locator("#chips li").count() == number
    assert 0 < calls["judged"] <= builds * (1 + number)
    # A reader's choice on a build: one answer a GPU, one for Python. What is told is told once.
    assert calls.get("stepAnswer", 0) <= builds * 3 * max(number, 1)
    assert calls["make"] <= 2 * page.evaluate("document.querySelectorAll('*').length")


def test_what_goes_with_a_build_stands_with_it_and_why(open_page: Open) -> None:
    page, catalog = open_page("#gpu=Tesla+V100"), shipped_catalog()
    assert page.locator("#answer-body > .help").inner_text() == (
        "The torchvision and torchaudio in the command go with it."
    )
    command = page.locator("#answer-panel code").inner_text()
    (torch,) = catalog.find("torch", version="2.14.1", channel="cu126", platform="linux-x86_64")
    items = page.locator("#details .with > li")
    assert items.count() == 2
    for item, package in zip(items.all(), ("torchvision", "torchaudio"), strict=True):
        title = item.locator("> p").inner_text()
        name, version = title.split()
        assert name == package and f"{name}=={version}" in command
        (build,) = (
            one
            for one in catalog.find(package, channel="cu126", platform="linux-x86_64")
            if one.full_version == version and one.home == torch.home
        )
        wanted = {(one.text, one.evidence, one.source) for one in judge_companion(build, torch)}
        told = item.evaluate(
            "item => [...item.querySelectorAll('div')].map((one) => ["
            "one.querySelector('p').textContent, one.querySelector('.tag').textContent,"
            "one.querySelector('.source p').textContent])"
        )
        assert {tuple(one) for one in told} == wanted and wanted
    page.locator('[data-build="2.15.0@pypi"]').click()  # also what does not run has companions
    assert items.first.locator("> p").all_inner_texts() == [
        "torchvision 0.29.2 (PyPI, cu132)",
        "Not known to run on what was chosen.",
    ]


def test_it_is_said_where_nothing_is_known_to_go_with_a_build(open_page: Open) -> None:
    page = open_page("#gpu=GeForce+RTX+5090&driver=610.0&python=3.14t&libc=2.27")
    texts = page.locator("#answer-body, #details-body").all_inner_texts()
    assert "is known to" in " ".join(texts)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_page_says_what_judge_and_resolve_say(open_page: Open, seed: int) -> None:
    choice, compared, known = random.Random(seed), 0, 0
    page = open_page()
    for _ in range(40):
        group = group_of(choice)
        found = page.evaluate(READ, link(group))
        assert sorted(map(tuple, found["cells"])) == verdicts(group), link(group)
        compared += len(found["cells"])
        wanted, sure = plan(group)
        if sure:
            assert found["code"] == wanted, link(group)
            known += 1
    assert compared > 2000 and known > 28


@pytest.mark.parametrize("seed", range(3))
def test_every_reason_is_the_judges_word_for_word(open_page: Open, seed: int) -> None:
    choice = random.Random(100 + seed)
    page, catalog = open_page(), shipped_catalog()
    for _ in range(40):
        group = group_of(choice)
        found = page.evaluate(READ, link(group))["cells"]
        if not found:
            continue
        id_, _ = choice.choice(found)
        builds = catalog.find("torch", version=id_.partition("@")[0], platform=group.platform)
        (build,) = (one for one in offered(builds) if id_of(one) == id_)
        told = {(one.text, one.evidence, one.source) for one in judged(build, group).reasons}
        assert {tuple(one) for one in page.evaluate(REASONS, id_)} == told, (link(group), id_)


def test_the_horizon_is_that_of_resolve(open_page: Open) -> None:
    page, catalog, choice = open_page(), shipped_catalog(), random.Random(7)
    for _ in range(40):
        group = group_of(choice)
        if group.platform.startswith("macos") or not group.gpus or len(group.pythons) > 1:
            continue
        text = page.evaluate(READ, link(group))["horizon"]
        for gpu in group.gpus:
            python = group.pythons[0] if group.pythons else None
            found = horizon(Target(group._replace(gpus=(gpu,)), python), catalog)
            if found.last_version is not None and release(found.last_version) >= release(SINCE):
                assert found.last_version in text, link(group)


def test_groups_with_more_than_fields_are_judged_as_declared(
    open_page: Open, fleet_file: Path
) -> None:
    """JetPack, cuda-compat, musl: the page has no field for them, a preset keeps them."""
    page, catalog = open_page("#patches=1&other=1", path=fleet_file), shipped_catalog()
    fleet = load_profile(str(fleet_file.with_name("torchpin.toml")))
    for number, group in enumerate(fleet.groups):
        page.locator("#presets button").nth(number).click()
        found = page.evaluate(READ, hash_of(page))["cells"]
        wanted = sorted(
            (id_of(one), judged(one, group).status)
            for v in releases("torch", catalog, since="2.9", every=True)
            for one in offered(catalog.find("torch", version=v, platform=group.platform))
        )
        assert sorted(map(tuple, found)) == wanted, group.name
