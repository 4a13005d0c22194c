"""Rules on projects and locks, beyond what the folders of ``fixtures/rules`` record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchpin import engine
from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import load_profile
from torchpin.rules.dead_markers import dead_comparisons
from torchpin.rules.disagree import purpose_of
from torchpin.rules.lock_hashes import poetry_hashes
from torchpin.rules.lock_spellings import wanted
from torchpin.rules.model import ERROR, SAFE, UNSAFE, Finding
from torchpin.rules.registry import all_rules
from torchpin.rules.torch_backend import backends

CHANNELS = "https://download.pytorch.org/whl"
LINUX = "sys_platform == 'linux'"
A100 = '[fleet.ampere]\ngpus = ["A100"]\ndriver = "580.82.07"\npython = "3.11"\nglibc = "2.35"\n'

Check = Callable[..., list[Finding]]


def index(channel: str, *, explicit: bool = True, url: str = CHANNELS) -> str:
    rest = "explicit = true\n" if explicit else ""
    return f'\n[[tool.uv.index]]\nname = "pytorch-{channel}"\nurl = "{url}/{channel}"\n{rest}'


def project(dependencies: str, rest: str = "", python: str = ">=3.11") -> str:
    head = f'[project]\nname = "app"\nversion = "0"\nrequires-python = "{python}"\n'
    return f"{head}dependencies = {dependencies}\n{rest}"


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Return a function that checks files of one folder, with a fleet given as TOML."""

    def run(fleet: str = "", **files: str) -> list[Finding]:
        names = {"pyproject": "pyproject.toml", "uv_lock": "uv.lock", "uv_toml": "uv.toml"}
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        for name, text in files.items():
            path = work / names.get(name, f"{name}.txt")
            path.write_text(text, "utf-8")
        loaded: Fleet | None = None
        if fleet:
            profile = tmp_path / "torchpin.toml"
            profile.write_text(fleet)
            loaded = load_profile(str(profile))
        return list(engine.check(engine.Options((str(work),), isolated=True), loaded).findings)

    return run


def codes(findings: list[Finding]) -> set[str]:
    return {one.code for one in findings if one.severity != "info"}


def of(findings: list[Finding], code: str) -> Finding:
    found = [one for one in findings if one.code == code]
    assert len(found) == 1, [(one.code, one.message) for one in findings]
    return found[0]


def marked(finding: Finding) -> str:
    assert finding.document is not None
    return finding.document.text[finding.span.start : finding.span.end]


def mended(finding: Finding) -> str:
    """Return the text of the document after the finding's fix."""
    from torchpin.documents.base import apply_edits

    assert finding.fix is not None and finding.document is not None
    ((document, edits),) = finding.fix.edits
    return apply_edits(document.text, edits)


# -- torch-backend = "auto"


@pytest.mark.parametrize(
    ("platform", "driver", "first"),
    [
        ("linux-x86_64", "375.26", "cu80"),
        ("linux-x86_64", "384.81", "cu90"),
        ("linux-x86_64", "440.33", "cu102"),
        ("linux-x86_64", "450.36.6", "cu110"),
        ("linux-x86_64", "450.80.2", "cu118"),
        ("linux-x86_64", "522.0", "cu118"),
        ("linux-x86_64", "525.60.12", "cu118"),
        ("linux-x86_64", "525.60.13", "cu129"),
        ("linux-x86_64", "579.99", "cu129"),
        ("linux-x86_64", "580.65.06", "cu132"),
        ("linux-aarch64", "580", "cu132"),
        ("windows-x86_64", "375.26", "cpu"),
        ("windows-x86_64", "384.81", "cu80"),
        ("windows-x86_64", "450.80.2", "cu102"),
        ("windows-x86_64", "452.39", "cu118"),
        ("windows-x86_64", "528.32", "cu118"),
        ("windows-x86_64", "528.33", "cu129"),
        ("windows-x86_64", "581.15", "cu132"),
        ("macos-arm64", "580", "cpu"),
    ],
)
def test_auto_takes_the_channel_that_uv_takes(platform: str, driver: str, first: str) -> None:
    assert backends(platform, driver)[0] == first
    assert backends(platform, driver)[-1] == "cpu"


def test_auto_tries_all_lower_channels_in_order() -> None:
    assert backends("linux-x86_64", "535.104.05")[:10] == (
        *("cu129", "cu128", "cu126", "cu125", "cu124"),
        *("cu123", "cu122", "cu121", "cu120", "cu118"),
    )


def test_auto_takes_the_first_channel_that_holds_the_pin(check: Check) -> None:
    text = project('["torch==2.4.1"]', '\n[tool.uv.pip]\ntorch-backend = "auto"\n')
    fleet = '[fleet.old]\ngpus = ["GTX 1080 Ti"]\ndriver = "580.82.07"\npython = "3.11"\n'
    assert "TP413" not in codes(check(fleet, pyproject=text))  # cu124 holds 2.4.1 and sm_61
    newer = text.replace("2.4.1", "2.9.1")
    assert "cu130" in of(check(fleet, pyproject=newer), "TP413").message


@pytest.mark.parametrize("driver", ["", 'driver = "580.82.07"\n'])
def test_auto_needs_a_driver_to_be_judged(check: Check, driver: str) -> None:
    text = project('["torch"]', '\n[tool.uv.pip]\ntorch-backend = "auto"\n')
    fleet = f'[fleet.old]\ngpus = ["GTX 1080 Ti"]\n{driver}python = "3.11"\n'
    assert ("TP413" in codes(check(fleet, pyproject=text))) == bool(driver)


# -- dead markers


@pytest.mark.parametrize(
    ("marker", "right"),
    [
        ("sys_platform == 'windows'", "win32"),
        ('sys_platform=="Windows"', "win32"),
        ("'macos' == sys_platform", "darwin"),
        ("sys_platform == 'Darwin'", "darwin"),
        ("sys_platform == 'linux2'", "linux"),
        ("platform_system == 'linux'", "Linux"),
        ("platform_system == 'macOS'", "Darwin"),
        ("platform_system == 'win32'", "Windows"),
        ("os_name == 'windows'", "nt"),
        ("platform_machine == 'x86-64'", "x86_64"),
        ("platform_machine == 'X86_64'", "x86_64"),
        ("sys_platform == 'linux' and platform_machine == 'AMD64'", "x86_64"),
        ("sys_platform == 'linux' and platform_machine == 'amd64'", "x86_64"),
        ("sys_platform == 'win32' and platform_machine == 'amd64'", "AMD64"),
        ("implementation_name == 'CPython'", "cpython"),
        ("platform_python_implementation == 'cpython'", "CPython"),
        ("sys_platform != 'macos'", "darwin"),
    ],
)
def test_values_that_never_occur(marker: str, right: str) -> None:
    text = f"torch; {marker}"
    (dead,) = dead_comparisons(text, 7, len(text))
    assert dead.right == right
    assert text[dead.value.start : dead.value.end] == dead.written
    assert dead.negated == ("!=" in marker)


@pytest.mark.parametrize(
    "marker",
    [
        "sys_platform == 'win32'",
        "sys_platform == 'linux' or sys_platform == 'linux2'",
        "platform_machine == 'x86_64' or platform_machine == 'AMD64'",
        "platform_machine == 'AMD64'",
        "platform_machine == 'arm64' and sys_platform == 'darwin'",
        "platform_machine == 'ppc64le'",
        "sys_platform == 'emscripten'",
        "os_name == 'posix'",
        "platform_version == 'windows'",
        "extra == 'linux2'",
        "python_version >= '3.11'",
    ],
)
def test_values_that_occur(marker: str) -> None:
    assert list(dead_comparisons(marker, 0, len(marker))) == []


def test_dead_marker_without_a_plain_value_has_no_fix(check: Check) -> None:
    found = of(check(requirements="torch==2.9.1; os_name == 'darwin'\n"), "TP410")
    assert found.fix is None


def test_dead_markers_of_other_packages_are_not_ours(check: Check) -> None:
    assert "TP410" not in codes(check(requirements="torch\nfoo; sys_platform == 'windows'\n"))


def test_two_dead_markers_are_mended_together(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "torch==2.9.1; sys_platform == 'windows'\ntorchvision==0.24.1; sys_platform == 'windows'\n"
    )
    options = engine.Options((str(path),), isolated=True, unsafe_fixes=True)
    ((_, data),) = engine.fix(options, None).changes
    assert data.decode().count("'win32'") == 2 and b"windows" not in data


# -- extras as markers


EXTRAS = '\n[project.optional-dependencies]\ncuda = ["torch==2.13.0"]\ncpu = ["torch==2.13.0"]\n'
AS_MARKER = "\n[tool.uv.sources]\ntorch = {{ index = 'pytorch-cu126', marker = {} }}\n"


@pytest.mark.parametrize("quoted", ["\"extra == 'cuda'\"", "'extra == \"cuda\"'"])
def test_extra_becomes_a_key(check: Check, quoted: str) -> None:
    text = project("[]", EXTRAS + AS_MARKER.format(quoted) + index("cu126"))
    found = of(check(A100, pyproject=text), "TP411")
    assert found.fix is not None and found.fix.safety == SAFE
    assert mended(found) == text.replace(f"marker = {quoted}", 'extra = "cuda"')


def test_extra_beside_other_words_is_left_to_the_reader(check: Check) -> None:
    quoted = f"\"extra == 'cuda' and {LINUX}\""
    text = project("[]", EXTRAS + AS_MARKER.format(quoted) + index("cu126"))
    found = of(check(A100, pyproject=text), "TP411")
    assert found.fix is None or not found.fix.edits or found.fix.message != 'extra = "cuda"'


def test_extra_as_key_is_unsafe_beside_conflicts(check: Check) -> None:
    conflicts = '\n[tool.uv]\nconflicts = [[{ extra = "cpu" }, { extra = "cuda" }]]\n'
    quoted = "\"extra == 'cuda'\""
    text = project("[]", EXTRAS + conflicts + AS_MARKER.format(quoted) + index("cu126"))
    found = of(check(A100, pyproject=text), "TP411")
    assert found.fix is not None and found.fix.safety == UNSAFE


def test_extra_that_does_not_list_the_package(check: Check) -> None:
    rest = '\n[project.optional-dependencies]\ncuda = ["nvitop"]\n'
    quoted = "\"extra == 'cuda'\""
    text = project('["torch==2.13.0"]', rest + AS_MARKER.format(quoted) + index("cu126"))
    found = of(check(A100, pyproject=text), "TP411")
    assert "does not list torch" in found.message


# -- indexes and sources


def test_open_index_is_told_once_however_many_extras(check: Check) -> None:
    extras = '\n[project.optional-dependencies]\na = ["torch"]\nb = ["torchvision"]\n'
    found = check(A100, pyproject=project('["torch"]', extras + index("cu126", explicit=False)))
    one = of(found, "TP405")
    assert marked(one) == f"{CHANNELS}/cu126"
    assert not codes(found) & {"TP401", "TP407"}


@pytest.mark.parametrize(
    "rest",
    [
        index("cu126"),
        '\n[[tool.uv.index]]\nurl = "https://wheels.example/simple"\n',
        f'\n[tool.uv.pip]\nextra-index-url = ["{CHANNELS}/cu126"]\n',
        f'\n[tool.uv]\nfind-links = ["{CHANNELS}/cu126/torch/"]\n',
        f'\n[[tool.uv.index]]\nurl = "{CHANNELS}/cu126"\ndefault = true\n',
    ],
)
def test_indexes_that_are_not_open_to_all(check: Check, rest: str) -> None:
    assert "TP405" not in codes(check(A100, pyproject=project('["torch", "jinja2"]', rest)))


@pytest.mark.parametrize(
    ("dependency", "source", "fires"),
    [
        ("torch==2.13.0", '{ index = "pytorch-cu126" }', True),
        (
            "torch==2.13.0",
            '{ index = "pytorch-cu126", marker = "python_version < \'3.13\'" }',
            True,
        ),
        ("torch==2.13.0", f'{{ index = "pytorch-cu126", marker = "{LINUX}" }}', False),
        (f"torch==2.13.0; {LINUX}", '{ index = "pytorch-cu126" }', False),
        ("torch==2.13.0", '{ url = "https://files.example/torch-2.13.0-py3-none-any.whl" }', False),
    ],
)
def test_sources_that_reach_macs(check: Check, dependency: str, source: str, fires: bool) -> None:
    rest = f"\n[tool.uv.sources]\ntorch = {source}\n{index('cu126')}"
    found = check(pyproject=project(f'["{dependency}"]', rest))
    assert ("TP406" in codes(found)) == fires


def test_source_by_extra_is_not_for_every_mac(check: Check) -> None:
    rest = '\n[project.optional-dependencies]\ngpu = ["torch==2.13.0"]\n\n[tool.uv.sources]\n'
    rest += 'torch = { index = "pytorch-cu126", extra = "gpu" }\n' + index("cu126")
    assert "TP406" not in codes(check(pyproject=project("[]", rest)))


def test_secrets_and_http_are_seen_in_explicit_indexes(check: Check) -> None:
    secret = index("cu126", url="http://user:hunter2@mirror.example/whl")
    rest = f'\n[tool.uv.sources]\ntorch = {{ index = "pytorch-cu126", marker = "{LINUX}" }}\n'
    found = check(A100, pyproject=project('["torch==2.13.0"]', rest + secret))
    assert {"TP403", "TP404"} <= codes(found)
    assert all("hunter2" not in one.message for one in found)


def test_secrets_stay_hidden_where_uv_stops(check: Check) -> None:
    extras = (
        '\n[project.optional-dependencies]\na = ["torch"]\nb = ["torch"]\n\n[tool.uv.sources]\n'
    )
    extras += 'torch = [\n  { index = "pytorch-cu126", extra = "a" },\n'
    extras += '  { index = "pytorch-cpu", extra = "b" },\n]\n'
    url = "https://user:hunter2@mirror.example/whl"
    text = project("[]", extras + index("cu126", url=url) + index("cpu", url=url))
    found = check(A100, pyproject=text)
    assert of(found, "TP409").severity == ERROR
    assert all("hunter2" not in one.message for one in found)


# -- what routes what


def test_base_is_not_routed_beside_conflicts(check: Check) -> None:
    extras = '\n[project.optional-dependencies]\ncu126 = ["torch==2.13.0"]\nother = []\n'
    sources = '\n[tool.uv.sources]\ntorch = { index = "pytorch-cu126", extra = "cu126" }\n'
    conflicts = '\n[tool.uv]\nconflicts = [[{ extra = "cu126" }, { extra = "other" }]]\n'
    text = project('["torch==2.13.0"]', extras + sources + index("cu126"))
    assert "the base install" in of(check(A100, pyproject=text), "TP409").message
    assert "TP409" not in codes(check(A100, pyproject=text + conflicts))


def test_group_routes_the_base_too(check: Check) -> None:
    groups = '\n[dependency-groups]\ngpu = ["torch==2.13.0"]\n\n[tool.uv.sources]\n'
    groups += 'torch = { index = "pytorch-cu126", group = "gpu" }\n' + index("cu126")
    found = of(check(A100, pyproject=project('["torch==2.13.0"]', groups)), "TP409")
    assert "group gpu is in no conflicts" in found.message
    assert marked(found).startswith("{ index")


def test_one_fault_is_one_error_where_uv_stops(check: Check) -> None:
    sources = (
        '\n[tool.uv.sources]\ntorch = [\n  { index = "pytorch-cu126", marker = "'
        + LINUX
        + '" },\n  { index = "pytorch-cpu" },\n]\n'
    )
    found = check(A100, pyproject=project('["torch"]', sources + index("cu126") + index("cpu")))
    assert [one.code for one in found if one.severity == ERROR] == ["TP409"]
    assert not any(one.code == "TP003" for one in found)


def test_default_group_gives_way_to_the_group_it_conflicts_with(check: Check) -> None:
    groups = '\n[dependency-groups]\npypi = ["torch==2.13.0"]\ncpu = ["torch==2.13.0"]\n'
    groups += '\n[tool.uv]\ndefault-groups = ["pypi"]\n'
    groups += 'conflicts = [[{ group = "pypi" }, { group = "cpu" }]]\n'
    groups += '\n[tool.uv.sources]\ntorch = { index = "pytorch-cpu", group = "cpu" }\n'
    found = check(A100, pyproject=project("[]", groups + index("cpu")))
    assert "TP001" not in codes(found)


FAMILY = '["torch==2.13.0", "torchvision==0.28.0"]'


@pytest.mark.parametrize(
    ("channel", "told"),
    [
        ("cu126", "TP302"),  # the judges know better: another CUDA major than PyPI's
        ("cu130", None),  # PyPI's own CUDA
    ],
)
def test_companion_without_a_source(check: Check, channel: str, told: str | None) -> None:
    rest = f'\n[tool.uv.sources]\ntorch = {{ index = "pytorch-{channel}", marker = "{LINUX}" }}\n'
    found = check(A100, pyproject=project(FAMILY, rest + index(channel)))
    assert codes(found) == ({told} if told else set())


def test_constraint_makes_a_source_count(check: Check) -> None:
    constraint = '\n[tool.uv]\nconstraint-dependencies = ["torch<2.14"]\n'
    sources = f'\n[tool.uv.sources]\ntorch = {{ index = "pytorch-cu126", marker = "{LINUX}" }}\n'
    sources += f'torchvision = {{ index = "pytorch-cu126", marker = "{LINUX}" }}\n'
    text = project('["torchvision==0.28.0"]', sources + index("cu126"))
    assert "no effect" in of(check(A100, pyproject=text), "TP415").message
    assert "TP415" not in codes(check(A100, pyproject=text + constraint))


@pytest.mark.parametrize(
    ("channel", "name"),
    [
        ("rocm6.2", "pytorch-triton-rocm"),
        ("rocm7.2", "triton-rocm"),
        ("xpu", "pytorch-triton-xpu"),
    ],
)
def test_triton_of_the_channel_by_its_name(check: Check, channel: str, name: str) -> None:
    rest = f'\n[tool.uv.sources]\ntorch = {{ index = "pytorch-{channel}", marker = "{LINUX}" }}\n'
    found = check(pyproject=project('["torch"]', rest + index(channel)))
    told = [one for one in found if one.code == "TP415"]
    assert [name in one.message for one in told] == [True]


@pytest.mark.parametrize(("backend", "told"), [("cu126", False), ("cu128", True)])
def test_backend_that_the_sources_agree_with(check: Check, backend: str, told: bool) -> None:
    text = project('["torch==2.13.0"]', f'\n[tool.uv]\ntorch-backend = "{backend}"\n')
    assert "TP408" in codes(check(A100, pyproject=text))
    text += '\n[tool.uv.sources]\ntorch = { index = "pytorch-cu126" }\n' + index("cu126")
    assert ("TP408" in codes(check(A100, pyproject=text))) == told


@pytest.mark.parametrize("scope", ["optional-dependencies", "dependency-groups"])
def test_cpu_part_that_pypi_serves(check: Check, scope: str) -> None:
    table = f"project.{scope}" if scope.startswith("optional") else scope
    rest = f'\n[{table}]\ncpu = ["torch==2.13.0"]\n\n[tool.uv]\n'
    found = check(pyproject=project("[]", rest))
    assert "CUDA" in of(found, "TP415").message
    mac = '[fleet.mac]\ngpus = []\nplatform = "macos-arm64"\npython = "3.12"\n'
    assert "TP415" not in codes(check(mac, pyproject=project("[]", rest)))


# -- where uv lock stops


def test_missing_build_of_one_extra_leaves_the_others_judged(check: Check) -> None:
    extras = '\n[project.optional-dependencies]\na = ["torch==2.13.0"]\nb = ["torch==2.13.0"]\n'
    extras += '\n[tool.uv]\nconflicts = [[{ extra = "a" }, { extra = "b" }]]\n\n[tool.uv.sources]\n'
    extras += 'torch = [\n  { index = "pytorch-cu128", extra = "a" },\n'
    extras += '  { index = "pytorch-cu130", extra = "b" },\n]\n'
    fleet = '[fleet.old]\ngpus = ["A100"]\ndriver = "570.172.08"\npython = "3.12"\n'
    found = check(fleet, pyproject=project("[]", extras + index("cu128") + index("cu130")))
    assert {one.code for one in found if one.severity == ERROR} == {"TP106", "TP203"}


def test_missing_build_is_told_though_no_group_installs_it(check: Check) -> None:
    extras = (
        '\n[project.optional-dependencies]\nbad = ["torch==2.13.0"]\ngood = ["torch==2.13.0"]\n'
    )
    extras += '\n[tool.uv]\nconflicts = [[{ extra = "bad" }, { extra = "good" }]]\n'
    extras += '\n[tool.uv.sources]\ntorch = [\n  { index = "pytorch-cu128", extra = "bad" },\n'
    extras += '  { index = "pytorch-cu126", extra = "good" },\n]\n'
    text = project("[]", extras + index("cu128") + index("cu126"))
    found = check(A100 + 'extras = ["good"]\n', pyproject=text)
    assert "torch==2.13.0" in marked(of(found, "TP106"))


def test_a_fork_of_many_markers_is_told_in_few_words(check: Check) -> None:
    arm = "sys_platform == 'linux' and platform_machine == 'aarch64'"
    rest = (
        "\n[tool.uv]\nenvironments = [\"sys_platform == 'darwin' or sys_platform == 'win32'"
        f" or {arm} or sys_platform == 'linux' and platform_machine == 'x86_64'\"]\n"
    )
    asked = (
        "[\"torch==2.13.0 ; sys_platform == 'darwin' and platform_machine != 'aarch64'\", "
        f'"torch==2.14.0 ; not_{arm}", "torch<2.12 ; sys_platform == \'darwin\'"]'
    ).replace("not_sys", "sys")
    found = of(check(A100, pyproject=project(asked, rest)), "TP101")
    where = "where sys_platform == 'darwin' and platform_machine != 'aarch64'"
    assert found.message.startswith(f"uv lock stops {where}: ")


def test_label_is_missing_where_the_source_does_not_reach(check: Check) -> None:
    rest = f'\n[tool.uv.sources]\ntorch = {{ index = "pytorch-cu126", marker = "{LINUX}" }}\n'
    text = project('["torch==2.13.0+cu126"]', rest + index("cu126"))
    found = of(check(A100, pyproject=text), "TP105")
    assert found.severity == ERROR and "uv lock stops" in found.message


def test_versions_that_exclude_each_other_are_one_error(check: Check) -> None:
    for dependencies in (
        '["torch==2.13.0", "torchvision==0.24.1"]',
        '["torch==2.13.0", "torchvision>=0.24,<0.25"]',
    ):
        found = check(A100, pyproject=project(dependencies, "\n[tool.uv]\n"))
        assert [one.code for one in found if one.severity == ERROR] == ["TP301"]


def test_python_outside_the_project_is_told_once(check: Check) -> None:
    text = project(FAMILY, "\n[tool.uv]\n", python=">=3.12")
    found = of(check(A100, pyproject=text), "TP102")
    assert marked(found) == 'requires-python = ">=3.12"'


def test_no_vendor_build_is_taken_for_pytorchs(check: Check) -> None:
    text = project('["torch==2.9.1", "xformers==0.0.33+cu130.torch29"]', "\n[tool.uv]\n")
    assert not [one for one in check(pyproject=text) if one.code == "TP301"]


# -- files that cannot be read


def test_broken_project_file_is_told(check: Check) -> None:
    found = of(check(pyproject="[project\ndependencies = ['torch']\n"), "TP001")
    assert found.severity == ERROR and marked(found)


def test_broken_lock_beside_a_project_is_told(check: Check) -> None:
    text = project('["torch==2.13.0"]', "\n[tool.uv]\n")
    found = of(check(pyproject=text, uv_lock="version = 1\n[[package\n"), "TP001")
    assert found.path.endswith("uv.lock")


# -- locks


def lock(specifier: str = "==2.13.0", python: str = "==3.11.*", extra: str = "") -> str:
    return (
        f'version = 1\nrevision = 3\nrequires-python = "{python}"\n\n'
        '[[package]]\nname = "app"\nversion = "0"\nsource = { virtual = "." }\n'
        'dependencies = [\n    { name = "torch" },\n]\n\n'
        "[package.metadata]\n"
        f'requires-dist = [{{ name = "torch", specifier = "{specifier}" }}]\n{extra}\n'
        '[[package]]\nname = "torch"\nversion = "2.13.0"\n'
        'source = { registry = "https://pypi.example/simple" }\nwheels = [\n'
        '    { url = "https://files.example/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl", '
        f'hash = "sha256:{"0" * 64}", size = 1 }},\n]\n'
    )


@pytest.mark.parametrize(
    ("asked", "recorded", "stale"),
    [
        ("==2.13.0", "==2.13.0", False),
        (" == 2.13.0", "==2.13.0", False),
        ("==2.13", "==2.13.0", False),
        ("<3,>=2.13", ">=2.13,<3", False),
        (">=2.13", "==2.13.0", True),
        ("", "==2.13.0", True),
    ],
)
def test_recorded_requirement(check: Check, asked: str, recorded: str, stale: bool) -> None:
    text = project(f'["torch{asked}"]', "\n[tool.uv]\n", python="==3.11.*")
    found = check(A100, pyproject=text, uv_lock=lock(recorded))
    assert ("TP503" in codes(found)) == stale


@pytest.mark.parametrize(
    ("asked", "recorded", "stale"),
    [
        (">=3.11,<3.13", ">=3.11, <3.13", False),
        ("~=3.11", ">=3.11, <4", False),
        (">=3.11.0", ">=3.11", False),
        (">=3.11", "==3.11.*", True),
    ],
)
def test_recorded_python(check: Check, asked: str, recorded: str, stale: bool) -> None:
    text = project('["torch==2.13.0"]', "\n[tool.uv]\n", python=asked)
    found = check(A100, pyproject=text, uv_lock=lock(python=recorded))
    assert ("TP503" in codes(found)) == stale


@pytest.mark.parametrize(
    ("now", "recorded", "stale"),
    [
        ("[\"sys_platform == 'linux'\"]", "", True),
        ("[\"sys_platform == 'linux'\"]", "[\"sys_platform == 'linux'\"]", False),
        ("[\"sys_platform == 'linux'\"]", "[\"sys_platform == 'darwin'\"]", True),
        ("", "[\"sys_platform == 'linux'\"]", True),
        ("[\"python_full_version >= '3.11'\"]", "", False),
    ],
)
def test_recorded_environments(check: Check, now: str, recorded: str, stale: bool) -> None:
    rest = "\n[tool.uv]\n" + (f"environments = {now}\n" if now else "")
    text = project('["torch==2.13.0"]', rest, python="==3.11.*")
    locked = lock()
    if recorded:
        locked = locked.replace("\n\n[[pack", f"\nsupported-markers = {recorded}\n\n[[pack", 1)
    found = check(A100, pyproject=text, uv_lock=locked)
    assert ("TP503" in codes(found)) == stale


def test_a_marker_of_an_override_is_compared(check: Check) -> None:
    rest = "\n[tool.uv]\noverride-dependencies = [\"torch==2.13.0 ; sys_platform == 'linux'\"]\n"
    manifest = '[manifest]\noverrides = [{ name = "torch", specifier = "==2.13.0"MARK }]\n\n'
    text = project('["torch==2.13.0"]', rest, python="==3.11.*")
    for mark, stale in (("", True), (", marker = \"sys_platform == 'linux'\"", False)):
        locked = lock().replace("[[pack", manifest.replace("MARK", mark) + "[[pack", 1)
        assert ("TP503" in codes(check(A100, pyproject=text, uv_lock=locked))) == stale


def test_a_lock_from_a_link_page_of_the_project_is_its_own(check: Check) -> None:
    page = "https://download.pytorch.org/whl/cu128/torch/"
    rest = f'\n[tool.uv]\nfind-links = ["{page}"]\n'
    text = project('["torch==2.11.0"]', rest, python="==3.11.*")
    locked = lock("==2.11.0").replace("2.13.0", "2.11.0+cu128")
    locked = locked.replace('"==2.11.0+cu128"', '"==2.11.0"')
    own = locked.replace("https://pypi.example/simple", page)
    assert "TP504" not in codes(check(A100, pyproject=text, uv_lock=own))
    other = locked.replace("https://pypi.example/simple", page.replace("cu128", "cu126"))
    assert "TP504" in codes(check(A100, pyproject=text, uv_lock=other))


def test_requirement_that_the_lock_does_not_know(check: Check) -> None:
    text = project(FAMILY, "\n[tool.uv]\n", python="==3.11.*")
    found = of(check(A100, pyproject=text, uv_lock=lock()), "TP503")
    assert marked(found) == "torchvision==0.28.0"


def test_a_source_with_a_url_is_recorded_beside_the_requirement(check: Check) -> None:
    url = "https://files.example/torch-2.13.0-cp311-cp311-linux_x86_64.whl"
    marker = "platform_machine == 'x86_64'"
    rest = f'\n[tool.uv.sources]\ntorch = {{ url = "{url}", marker = "{marker}" }}\n'
    recorded = (
        '[{ name = "torch", marker = "platform_machine != \'x86_64\'", specifier = ">=2.13" }, '
        f'{{ name = "torch", marker = "{marker}", url = "{url}" }}]'
    )
    text = project('["torch>=2.13"]', rest, python="==3.11.*")
    locked = lock().replace('[{ name = "torch", specifier = "==2.13.0" }]', recorded)
    assert recorded in locked
    assert "TP503" not in codes(check(A100, pyproject=text, uv_lock=locked))


def test_included_groups_are_recorded_flat(check: Check) -> None:
    groups = (
        '\n[dependency-groups]\ngpu = ["torchvision==0.28.0"]\nall = [{ include-group = "gpu" }]\n'
    )
    recorded = (
        "\n[package.metadata.requires-dev]\n"
        'all = [{ name = "torchvision", specifier = "==0.28.0" }]\n'
        'gpu = [{ name = "torchvision", specifier = "==0.28.0" }]\n'
    )
    text = project('["torch==2.13.0"]', groups + "\n[tool.uv]\n", python="==3.11.*")
    assert "TP503" not in codes(check(A100, pyproject=text, uv_lock=lock(extra=recorded)))


def test_lock_of_another_project_is_not_compared(check: Check) -> None:
    text = project('["torch==2.14.0"]', "\n[tool.uv]\n").replace('"app"', '"other"')
    found = check(A100, pyproject=text, uv_lock=lock())
    assert "was made" not in " ".join(one.message for one in found if one.code == "TP503")


@pytest.mark.parametrize(
    ("one", "other"),
    [(">=2.0,<3", "<3, >=2"), ("==2.9.1", "==2.9.1"), ("", ""), ("~=2.1.0", "~=2.1.0")],
)
def test_specifiers_that_are_the_same(one: str, other: str) -> None:
    assert wanted(one) == wanted(other)


@pytest.mark.parametrize(("one", "other"), [("~=2.1", "~=2.1.0"), (">=2", ">2"), ("==2.*", "==2")])
def test_specifiers_that_differ(one: str, other: str) -> None:
    assert wanted(one) != wanted(other)


POETRY = """[tool.poetry]
name = "app"
version = "0"
description = ""
authors = []

[tool.poetry.dependencies]
python = "^3.11"
torch = { version = "2.9.1", source = "pytorch-cu126" }

[tool.poetry.group.dev.dependencies]
pytest = "*"

[[tool.poetry.source]]
name = "pytorch-cu126"
url = "https://download.pytorch.org/whl/cu126"
priority = "explicit"
"""
STANDARD = """[project]
name = "app"
version = "0"
requires-python = ">=3.11,<4"
dependencies = ["torch==2.9.1", "größe"]

[project.optional-dependencies]
vision = ["torchvision==0.24.1"]

[dependency-groups]
dev = ["pytest"]

[tool.poetry]
packages = []
"""
LEGACY = """[tool.poetry]
name = "app"
version = "0"
description = ""
authors = []
[tool.poetry.dependencies]
python = "^3.11"
torch = "2.9.1"
[tool.poetry.extras]
a = ["torch"]
[tool.poetry.dev-dependencies]
black = "*"
"""


@pytest.mark.parametrize(
    ("text", "digests"),
    [
        (POETRY, ("1807c692be1f900463aa12c0075f1c86e806ab1b364af2f732012c5233bd54d4",)),
        (
            STANDARD,
            (
                "80d5d6f56cfdbf8a04fff59d5315114f6f500cad2a50421bdc3a8a4447ef45e3",
                "197a16ac38c98c49c666f8c5010cf1052d21abb456a1e4fa55b9a8447c9d4eec",
            ),
        ),
        (LEGACY, ("7853faaa5abedf046d890ce9dcfdf4204df8261c184283b963e0a532dd035f7c",)),
    ],
)
def test_digest_is_that_of_poetry(text: str, digests: tuple[str, ...]) -> None:
    """The digests are those of Poetry 2.5.1, with and without dependency groups."""
    assert poetry_hashes(text) == digests


def test_digest_of_what_poetry_stops_at_is_unknown() -> None:
    assert poetry_hashes(LEGACY.replace('black = "*"', "black = 2020-01-01")) == ()
    assert poetry_hashes("[") == ()


# -- files of one project


def test_files_of_one_purpose_are_compared(check: Check) -> None:
    text = project('["torch==2.13.0"]', "\n[tool.uv]\n")
    found = of(check(A100, pyproject=text, requirements="torch==2.9.1\n"), "TP505")
    assert found.path.endswith("requirements.txt")
    assert found.related[0].path.endswith("pyproject.toml")


@pytest.mark.parametrize("pins", ["torch==2.13.0+cu126\n", "torch>=2.9\n", "torchvision\n"])
def test_files_that_do_not_disagree(check: Check, pins: str) -> None:
    text = project('["torch==2.13.0"]', "\n[tool.uv]\n")
    assert "TP505" not in codes(check(A100, pyproject=text, requirements=pins))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("requirements.txt", set()),
        ("a/requirements/base.txt", set()),
        ("uv.lock", set()),
        ("pyproject.toml", set()),
        ("requirements-gpu.txt", {"gpu"}),
        ("requirements_cu118.in", {"cu118"}),
        ("dev-requirements.txt", {"dev"}),
    ],
)
def test_purpose_of_a_file(path: str, words: set[str]) -> None:
    assert purpose_of(path) == words


# -- the register


def test_rules_on_projects_are_left_out_where_there_are_none() -> None:
    every, plain = all_rules(), all_rules(projects=False)
    left_out = {one.code for one in every} - {one.code for one in plain}
    assert left_out == {
        *("TP405", "TP406", "TP408", "TP409", "TP411", "TP413", "TP415", "TP416", "TP503", "TP504"),
        *("TP701", "TP702", "TP703", "TP704"),
        *("TP801", "TP802", "TP901", "TP902", "TP903", "TP904"),
    }


def test_a_version_for_too_few_pythons_of_a_poetry_project_is_not_called_yanked(
    check: Check,
) -> None:
    rest = '[tool.poetry]\n[build-system]\nbuild-backend = "poetry.core.masonry.api"\n'
    found = check(pyproject=project('["torch==2.15.0", "torchvision>=0.29"]', rest))
    finding = of(found, "TP102")
    assert finding.severity == "error"
    assert finding.package == "torchvision"
    assert finding.fix is not None
    assert (finding.fix.safety, finding.fix.message) == (
        "display",
        'write requires-python = ">=3.11,!=3.14.1"',
    )
    assert not any("yanked" in one.message for one in found)


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_a_python_that_the_project_leaves_out_is_told_at_its_place(
    check: Check, client: str
) -> None:
    text = project('["torch==2.14.1"]', "[dependency-groups]\ntest = ['torch']\n", ">=3.12")
    text += "[tool.uv]\n" if client == "uv" else ""
    fleet = '[fleet.a]\ngpus = []\npython = "{}"\n'
    finding = of(check(fleet.format("3.11"), pyproject=text), "TP102")
    assert marked(finding) == 'requires-python = ">=3.12"'
    assert finding.severity == "error"
    assert finding.fix is not None
    assert finding.fix.safety == "display"
    assert finding.fix.message.startswith("widen requires-python")
    assert not [f for f in check(fleet.format("3.12"), pyproject=text) if f.code == "TP102"]


def test_a_group_alone_asks_for_no_python_of_pip(check: Check) -> None:
    text = project("[]", "[dependency-groups]\ntest = ['torch==2.14.1']\n", ">=3.12")
    fleet = '[fleet.a]\ngpus = []\npython = "3.11"\n'
    assert not [f for f in check(fleet, pyproject=text) if f.code == "TP102"]


def test_a_patch_release_that_may_be_there_is_not_refused(check: Check) -> None:
    fleet = '[fleet.a]\ngpus = []\npython = "3.12"\n'
    found = check(fleet, pyproject=project('["torch==2.14.1"]', "", ">=3.12.4"))
    assert not [f for f in found if f.code == "TP102"]


def test_a_label_without_an_index_is_an_error_on_a_mac_alone(check: Check) -> None:
    text = project('["torch==2.14.1+cu130"]', "[tool.uv]\n", ">=3.12")
    fleet = '[fleet.a]\ngpus = []\nplatform = "{}"\npython = "3.12"\n'
    mac = of(check(fleet.format("macos-arm64"), pyproject=text), "TP105")
    assert (mac.severity, mac.message) == (
        "error",
        "uv lock stops: torch 2.14.1+cu130 lies on cu130, not on PyPI",
    )
    linux = of(check(fleet.format("linux-x86_64"), pyproject=text), "TP105")
    assert linux.severity == "warning"


V100_AND_MAC = (
    '[fleet.servers]\ngpus = ["V100"]\ndriver = "580.82.07"\npython = "3.12"\n'
    '[fleet.dev]\ngpus = []\nplatform = "macos-arm64"\npython = "3.12"\n'
)
UV_TOO = '; if uv locks this project, say client = "uv" in the profile or --client uv'


def test_advice_names_the_place_of_each_platform_and_that_it_may_be_uvs(check: Check) -> None:
    finding = of(check(V100_AND_MAC, pyproject=project('["torch==2.14.1"]')), "TP201")
    assert finding.fix is not None
    assert finding.fix.message == (
        "servers: torch 2.14.1 (channel cu126) · dev: torch 2.14.1 (PyPI); "
        f"pip reads no index from pyproject.toml: put these into a constraints file{UV_TOO}"
    )


def test_a_fleet_that_says_pip_is_not_asked_whether_it_is_uv(check: Check) -> None:
    fleet = V100_AND_MAC.replace("gpus", 'client = "pip"\ngpus')
    finding = of(check(fleet, pyproject=project('["torch==2.14.1"]')), "TP201")
    assert finding.fix is not None
    assert finding.fix.message.endswith("put these into a constraints file")


def test_a_version_without_a_wheel_for_the_pythons_of_a_uv_project_is_not_called_yanked(
    check: Check,
) -> None:
    found = check(pyproject=project('["torchvision==0.15.2"]', "[tool.uv]\n", ">=3.12"))
    finding = of(found, "TP102")
    assert (finding.severity, finding.message) == (
        "error",
        "uv lock stops: torchvision 0.15.2 has no wheel for the Pythons of the project (>=3.12)",
    )
    assert not [one for one in found if one.code == "TP107"]
