"""Which settings hold for a uv project, and what they change; each answer was measured with uv."""

from __future__ import annotations

import pytest

from torchpin.catalog.store import load_catalog
from torchpin.documents.base import Document
from torchpin.documents.pyproject import read_pyproject, read_uv_toml
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.select.model import SelectedSet, Selection
from torchpin.select.projects import project_installs
from torchpin.select.selection import select
from torchpin.select.uv_dates import cutoff_of
from torchpin.select.uv_prediction import lock_of
from torchpin.select.uv_settings import governing

HEAD = '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.11"\n'
CHANNEL = "https://download.pytorch.org/whl"


def index(name: str, *, explicit: bool = True, table: str = "tool.uv.index") -> str:
    text = f'[[{table}]]\nname = "{name}"\nurl = "{CHANNEL}/{name}"\n'
    return text + ("explicit = true\n" if explicit else "")


def chosen(
    text: str,
    *,
    beside: str | None = None,
    name: str | None = None,
    platform: str = "linux-x86_64",
    python: int = 12,
) -> SelectedSet:
    settings = None if beside is None else read_uv_toml("uv.toml", beside.encode())
    root = read_pyproject("pyproject.toml", text.encode())
    installs = project_installs(root, lock=None, client="uv", settings=settings)
    own = Python(3, python)
    target = Target(NodeGroup("group", (), (own,), platform), own)
    install = next(one for one in installs if one.name == name)
    return select(install, target, load_catalog())


def one(found: SelectedSet, package: str = "torch") -> Selection:
    return next(s for s in found.selections if s.package == package)


def build(found: SelectedSet, package: str = "torch") -> str:
    selection = one(found, package)
    assert selection.build is not None, selection.because
    return f"{selection.build.full_version} {selection.build.home}"


TORCH = HEAD + 'dependencies = ["torch==2.13.0"]\n'


def test_a_uv_toml_gives_the_indexes_in_place_of_the_project() -> None:
    own = TORCH + index("cu126", explicit=False)
    assert build(chosen(own)) == "2.13.0+cu126 channel"
    assert build(chosen(own, beside="")) == "2.13.0 pypi"
    other = index("cu130", explicit=False, table="index")
    assert build(chosen(own, beside=other)) == "2.13.0+cu130 channel"


def test_sources_use_the_indexes_of_the_project_beside_a_uv_toml_too() -> None:
    own = TORCH + '[tool.uv.sources]\ntorch = { index = "cu126" }\n' + index("cu126")
    other = '[[index]]\nname = "cu126"\nurl = "https://download.pytorch.org/whl/cu130"\n'
    assert build(chosen(own, beside=other)) == "2.13.0+cu126 channel"


def test_an_index_of_a_uv_toml_cannot_be_named_by_a_source() -> None:
    own = TORCH + '[tool.uv.sources]\ntorch = { index = "cu126" }\n'
    found = chosen(own, beside=index("cu126", table="index"))
    assert found.conflict is not None and "no index is named cu126" in found.conflict


def test_what_belongs_to_the_project_holds_beside_a_uv_toml() -> None:
    own = HEAD + 'dependencies = ["torch"]\n[tool.uv]\nconstraint-dependencies = ["torch<2.13"]\n'
    assert build(chosen(own, beside="")) == "2.12.1 pypi"
    plain = HEAD + 'dependencies = ["torch"]\n'
    assert build(chosen(plain, beside='constraint-dependencies = ["torch<2.13"]\n')) == (
        "2.15.0 pypi"
    )


@pytest.mark.parametrize(
    "wrong", ["no-such-key = 1\n", 'index-strategy = "best"\n', "[tool.uv.pip]\nfoo = 1\n"]
)
def test_a_mistake_in_the_settings_switches_all_of_them_off(wrong: str) -> None:
    text = TORCH + "[tool.uv]\n" + wrong + index("cu126", explicit=False)
    assert build(chosen(text)) == "2.13.0 pypi"
    sources = '[tool.uv.sources]\ntorch = { index = "cu126" }\n'
    assert build(chosen(text + sources)) == "2.13.0+cu126 channel"


def test_lowest_and_lowest_direct() -> None:
    text = HEAD + 'dependencies = ["torchvision>=0.27"]\n[tool.uv]\nresolution = "{}"\n'
    for resolution in ("lowest", "lowest-direct"):
        found = chosen(text.format(resolution))
        assert build(found, "torchvision") == "0.27.0 pypi"
        assert build(found) == "2.12.0 pypi"
    loose = HEAD + 'dependencies = ["torchaudio>=2.11.1"]\n[tool.uv]\nresolution = "{}"\n'
    assert build(chosen(loose.format("lowest-direct"))) == "2.15.0 pypi"
    assert build(chosen(loose.format("lowest"))) == "2.11.0 pypi"


def test_exclude_newer_on_pypi_and_on_a_channel() -> None:
    text = HEAD + 'dependencies = ["torch"]\n[tool.uv]\nexclude-newer = "2026-04-10T00:00:00Z"\n'
    assert build(chosen(text)) == "2.11.0 pypi"
    channel = text + '[tool.uv.sources]\ntorch = { index = "cu126" }\n' + index("cu126")
    assert one(chosen(channel)).status == "unknown"
    days = text.replace("2026-04-10T00:00:00Z", "30 days")
    assert one(chosen(days)).status == "unknown"
    free = text + "exclude-newer-package = { torch = false }\n"
    assert build(chosen(free)) == "2.15.0 pypi"


def test_near_the_date_it_is_not_known_which_files_count() -> None:
    cutoff = cutoff_of("2026-03-10T00:00:00Z")
    assert cutoff.admits("2026-01-21") is True
    assert cutoff.admits("2026-03-05") is None
    assert cutoff.admits("2026-03-20") is False
    assert cutoff.admits(None) is None
    assert cutoff_of("P7D").admits("2020-01-01") is None
    assert cutoff_of("2026-13-45").admits("2020-01-01") is None


def test_metadata_of_the_project_replaces_that_of_a_package() -> None:
    text = HEAD + 'dependencies = ["torchvision==0.28.0"]\n'
    given = '[[tool.uv.dependency-metadata]]\nname = "torchvision"\n'
    assert build(chosen(text + given + 'requires-dist = ["torch<2.12"]\n')) == "2.11.0 pypi"
    other = given + 'version = "0.27.0"\nrequires-dist = ["torch<2.12"]\n'
    assert build(chosen(text + other)) == "2.13.0 pypi"
    none = chosen(text + given + "requires-dist = []\n")
    assert [s.package for s in none.selections] == ["torchvision"]
    extension = HEAD + 'dependencies = ["flash-attn"]\n[[tool.uv.dependency-metadata]]\n'
    extension += 'name = "flash-attn"\nrequires-dist = ["torch<2.12", "einops"]\n'
    assert build(chosen(extension)) == "2.11.0 pypi"


def test_exclusions_and_overrides_of_one_package() -> None:
    text = HEAD + 'dependencies = ["torch", "torchvision==0.28.0"]\n[tool.uv]\n'
    found = chosen(text + 'exclude-dependencies = ["torch"]\n')
    assert one(found).status == "skipped"
    assert build(found, "torchvision") == "0.28.0 pypi"
    scoped = '{ package = { name = "torchvision" }, dependencies = ["torch"] }'
    assert build(chosen(text + f"exclude-dependencies = [{scoped}]\n")) == "2.15.0 pypi"
    scoped = scoped.replace('["torch"]', '["torch<2.12"]')
    assert build(chosen(text + f"override-dependencies = [{scoped}]\n")) == "2.11.0 pypi"


def test_the_python_of_a_group_limits_what_it_asks_for() -> None:
    text = (
        HEAD.replace("3.11", "3.10") + 'dependencies = []\n[dependency-groups]\ngpu = ["torch"]\n'
    )
    text += '[tool.uv]\ndependency-groups = { gpu = { requires-python = ">=3.12" } }\n'
    assert build(chosen(text, name="group:gpu")) == "2.15.0 pypi"
    outside = one(chosen(text, name="group:gpu", python=10))
    assert outside.status == "none" and outside.miss is not None and outside.miss.kind == "python"


SPLIT = (
    '[project.optional-dependencies]\ncpu = ["torch==2.13.0"]\ncu126 = ["torch==2.13.0"]\n{}'
    '[tool.uv]\nconflicts = [[{{ extra = "cpu" }}, {{ extra = "cu126" }}]]\n[tool.uv.sources]\n'
    'torch = [{{ index = "cpu", extra = "cpu" }}, {{ index = "cu126", extra = "cu126" }}]\n'
)


def test_an_extra_hands_on_another_one_without_its_index() -> None:
    text = HEAD + SPLIT.format('all = ["app[cu126]"]\n') + index("cpu") + index("cu126")
    assert build(chosen(text, name="extra:all")) == "2.13.0 pypi"
    assert build(chosen(text, name="extra:cu126")) == "2.13.0+cu126 channel"


def test_a_group_switches_an_extra_on() -> None:
    group = '[dependency-groups]\ngpu = ["app[cu126]"]\n'
    text = HEAD + SPLIT.format(group) + index("cpu") + index("cu126")
    assert build(chosen(text, name="group:gpu")) == "2.13.0+cu126 channel"
    dev = HEAD + SPLIT.format(group.replace("gpu", "dev")) + index("cpu") + index("cu126")
    assert build(chosen(dev)) == "2.13.0+cu126 channel"
    clash = chosen(dev, name="extra:cpu")
    assert clash.conflict is not None and clash.conflict.endswith("are declared to conflict")


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("no-index = true", "no-index"),
        ('no-binary-package = ["torch"]', "no-binary"),
        ("managed = false", "managed"),
        ('conflicts = [[{ package = "app" }, { extra = "x" }]]', "whole packages"),
    ],
)
def test_what_cannot_be_foretold_is_unknown(setting: str, why: str) -> None:
    text = TORCH + f"[project.optional-dependencies]\nx = []\n[tool.uv]\n{setting}\n"
    found = one(chosen(text))
    assert found.status == "unknown"
    assert why in found.because


@pytest.mark.parametrize(
    "setting",
    ["no-build = true", 'no-build-package = ["torch"]', 'prerelease = "allow"',
     '[tool.uv.pip]\nresolution = "lowest"', 'index-strategy = "first-index"'],
)  # fmt: skip
def test_settings_that_change_nothing(setting: str) -> None:
    text = HEAD + f'dependencies = ["torch"]\n[tool.uv]\n{setting}\n'
    assert build(chosen(text)) == "2.15.0 pypi"


def test_no_sources_for_one_package() -> None:
    text = HEAD + 'dependencies = ["torch==2.13.0", "torchvision"]\n[tool.uv]\n'
    text += 'no-sources-package = ["torch"]\n[tool.uv.sources]\ntorch = { index = "cu126" }\n'
    text += 'torchvision = { index = "cu126" }\n' + index("cu126")
    found = chosen(text)
    assert build(found) == "2.13.0 pypi"
    assert build(found, "torchvision") == "0.28.0+cu126 channel"


def document(path: str, text: str) -> Document:
    reader = read_uv_toml if path.endswith("uv.toml") else read_pyproject
    return reader(path, text.encode())


def test_settings_above_hold_where_the_project_has_none_that_uv_can_read() -> None:
    above = document("a/uv.toml", "")
    assert governing(above, document("a/b/pyproject.toml", HEAD)) is above
    assert governing(above, document("a/b/pyproject.toml", HEAD + "[tool.uv]\n")) is None
    wrong = document("a/b/pyproject.toml", HEAD + "[tool.uv]\nfoo = 1\n")
    assert governing(above, wrong) is above
    beside = document("a/b/uv.toml", "")
    assert governing(beside, document("a/b/pyproject.toml", HEAD + "[tool.uv]\n")) is beside


def test_a_workspace_whose_members_no_python_suits_is_refused() -> None:
    root = document("pyproject.toml", TORCH.replace(">=3.11", ">=3.13"))
    member = document("lib/pyproject.toml", HEAD.replace('"app"', '"lib"').replace(">=", "<"))
    install = project_installs(root, lock=None, siblings=(member,), client="uv")[0]
    conflict = lock_of(install, load_catalog()).conflict
    assert conflict is not None and conflict.startswith("no Python suits all members")
