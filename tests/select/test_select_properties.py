from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.select.conftest import make_install, make_target

from torchpin.catalog.model import PLATFORMS
from torchpin.catalog.store import load_catalog
from torchpin.select.selection import candidates, select

if TYPE_CHECKING:
    from torchpin.catalog.model import Build

CATALOG = load_catalog()
VERSIONS = st.sampled_from(CATALOG.versions("torch")[-25:])
SPECIFIERS = st.builds(
    "{}{}".format, st.sampled_from(["==", ">=", "<=", "<", ">", "!=", "~="]), VERSIONS
)
CHANNELS = st.sampled_from(["cu118", "cu126", "cu128", "cu130", "cpu", "rocm7.2"])
INDEXES = st.lists(
    st.builds(
        "{} https://download.pytorch.org/whl/{}".format,
        st.sampled_from(["--extra-index-url", "--index-url"]),
        CHANNELS,
    ),
    max_size=2,
)
PYTHONS = st.sampled_from(["3.10", "3.12", "3.14", "3.13t", None])
CLIENTS = st.sampled_from(["pip", "uv"])


def builds(
    text: str, client: str, python: str | None, platform: str, package: str = "torch"
) -> set[Build]:
    found = candidates(make_install(text, client), package, make_target(python, platform), CATALOG)
    return {build for build, _ in found}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(SPECIFIERS, max_size=2),
    SPECIFIERS,
    INDEXES,
    CLIENTS,
    PYTHONS,
    st.sampled_from(PLATFORMS),
)
def test_a_stricter_specifier_never_adds_builds(
    loose: list[str],
    more: str,
    indexes: list[str],
    client: str,
    python: str | None,
    platform: str,
) -> None:
    lines = "\n".join(indexes)
    before = builds(f"torch{','.join(loose)}\n{lines}\n", client, python, platform)
    after = builds(f"torch{','.join([*loose, more])}\n{lines}\n", client, python, platform)
    assert {b.full_version for b in after} <= {b.full_version for b in before}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(SPECIFIERS, max_size=2),
    st.sampled_from(["", "torchvision\n", "torchaudio\n", "torchvision\ntorchaudio\n"]),
    INDEXES,
    CLIENTS,
    PYTHONS,
    st.sampled_from(PLATFORMS),
)
def test_every_choice_is_a_candidate_and_goes_with_torch(
    specifiers: list[str],
    companions: str,
    indexes: list[str],
    client: str,
    python: str | None,
    platform: str,
) -> None:
    from packaging.specifiers import SpecifierSet

    text = f"torch{','.join(specifiers)}\n{companions}" + "\n".join(indexes) + "\n"
    chosen = select(make_install(text, client), make_target(python, platform), CATALOG)
    torch = next(s for s in chosen.selections if s.package == "torch")
    for selection in chosen.selections:
        assert (selection.status == "selected") == (selection.build is not None)
        assert (selection.status == "none") == (selection.miss is not None)
        if selection.build is None:
            continue
        assert selection.build.platform == platform
        assert selection.build in builds(text, client, python, platform, selection.package)
        required = selection.build.requires_torch
        if chosen.conflict is None and required and torch.build is not None:
            assert SpecifierSet(required).contains(torch.build.full_version, prereleases=True)


@settings(max_examples=40, deadline=None)
@given(SPECIFIERS, CHANNELS, PYTHONS, st.sampled_from(PLATFORMS))
def test_one_index_alone_is_the_same_for_both_clients(
    specifier: str, channel: str, python: str | None, platform: str
) -> None:
    text = f"torch{specifier}\n--index-url https://download.pytorch.org/whl/{channel}\n"
    assert builds(text, "pip", python, platform) == builds(text, "uv", python, platform)
