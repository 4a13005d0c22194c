from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torchpin.catalog.store import load_catalog
from torchpin.evidence import PROOF
from torchpin.select.model import SelectedSet, Selection
from torchpin.select.selection import candidates

if TYPE_CHECKING:
    from tests.select.conftest import Choose, Installer, Targets

PYPI, MIRROR = "https://pypi.example/simple", "https://mirror.example/pypi/simple"
W = "https://download.pytorch.org/whl"


def of(chosen: SelectedSet, package: str) -> Selection:
    return next(s for s in chosen.selections if s.package == package)


def versions(chosen: SelectedSet) -> dict[str, str]:
    return {s.package: s.build.full_version if s.build else s.status for s in chosen.selections}


@pytest.mark.parametrize(
    ("text", "pip", "uv"),
    [
        ("torch\n", "2.15.0", "2.15.0"),
        (f"--index-url {W}/cu128\ntorch\n", "2.11.0+cu128", "2.11.0+cu128"),
        (f"--extra-index-url {W}/cu128\ntorch\n", "2.15.0", "2.11.0+cu128"),
        (f"torch==2.14.1\n--extra-index-url {W}/cu126\n", "2.14.1+cu126", "2.14.1+cu126"),
        (
            f"torch==2.14.1\n--extra-index-url {W}/cu126\n--extra-index-url {W}/cu130\n",
            "2.14.1+cu130",
            "2.14.1+cu126",
        ),
        (f"torch===2.14.1\n--extra-index-url {W}/cu126\n", "2.14.1", "none"),
        (f"torch!=2.15.0\n--extra-index-url {W}/cu126\n", "2.14.1+cu126", "2.14.1+cu126"),
        (f"torch~=2.10.0\n--extra-index-url {W}/cu126\n", "2.10.0+cu126", "2.10.0+cu126"),
        (f"torch==2.13.0+cu126\n--extra-index-url {W}/cu126\n", "2.13.0+cu126", "2.13.0+cu126"),
        ("torch==2.13.0+cu126\n", "none", "none"),
        (f"torch==2.12.0\n--extra-index-url {W}/rocm7.2\n", "2.12.0+rocm7.2", "2.12.0+rocm7.2"),
        (f"torch\n-f {W}/cu126/torch/\n", "2.15.0", "2.15.0"),
        (f"torch<2.15\n-f {W}/cu126/torch/\n", "2.14.1+cu126", "2.14.1+cu126"),
        (f"torch<2.15\n-f {W}/cu126/\n", "2.14.1", "2.14.1"),
        (f"torch<2.15\n-f {W}/cu126/torchvision/\n", "2.14.1", "2.14.1"),
        (f"torch==1.13.1+cu117\n-f {W}/torch_stable.html\n", "1.13.1+cu117", "1.13.1+cu117"),
        (f"torch==1.13.1\n-f {W}/torch_stable.html\n", "unknown", "unknown"),
        ("torch<2.4\ntorch>2.1\n", "2.3.1", "2.3.1"),
        ("torch==2.1.0 ; sys_platform == 'win32'\ntorch==2.3.0\n", "2.3.0", "2.3.0"),
        ("torch ; sys_platform == 'win32'\n", "skipped", "skipped"),
        ("torch ; sys_platform = 'win32'\n", "unknown", "unknown"),
        ("torch==2.16.0\n", "unknown", "unknown"),
        ("torch>=2.16\n", "unknown", "unknown"),
        (f"torch==2.4.0+cu127\n--extra-index-url {W}/cu127\n", "unknown", "unknown"),
        ("torch==2.1.0a0+32f93b1\n", "unknown", "unknown"),
        (f"torch==2.9.0+cpu.cxx11.abi\n--extra-index-url {W}/cpu\n", "unknown", "unknown"),
        (f"--pre\n--index-url {W}/nightly/cu130\ntorch\n", "unknown", "unknown"),
        (f"--index-url {W}/test/cu130\ntorch\n", "unknown", "unknown"),
        ("--index-url https://wheels.corp.example/simple\ntorch\n", "unknown", "unknown"),
        ("torch==${TV}\n", "unknown", "unknown"),
        ("--no-binary numpy,torch\ntorch\n", "unknown", "unknown"),
        ("--no-binary numpy\ntorch\n", "2.15.0", "2.15.0"),
        ("torch @ git+https://github.com/pytorch/pytorch\n", "unknown", "unknown"),
    ],
)
def test_one_torch(text: str, pip: str, uv: str, choose: Choose) -> None:
    assert versions(choose(text, python="3.10" if "1.13" in text else "3.11"))["torch"] == pip
    by_uv = choose(text, client="uv", python="3.10" if "1.13" in text else "3.11")
    assert versions(by_uv)["torch"] == uv


@pytest.mark.parametrize(
    ("platform", "plain", "with_cu126"),
    [
        ("linux-x86_64", "2.14.1", "2.14.1+cu126"),
        ("linux-aarch64", "2.14.1", "2.14.1+cu126"),
        ("windows-x86_64", "2.14.1", "2.14.1+cu126"),
        ("macos-arm64", "2.14.1", "2.14.1"),
    ],
)
def test_platforms(platform: str, plain: str, with_cu126: str, choose: Choose) -> None:
    assert versions(choose("torch==2.14.1", platform=platform)) == {"torch": plain}
    text = f"torch==2.14.1\n--extra-index-url {W}/cu126\n"
    assert versions(choose(text, platform=platform)) == {"torch": with_cu126}


def test_intel_macs_stop_at_2_2(choose: Choose) -> None:
    assert versions(choose("torch", platform="macos-x86_64")) == {"torch": "2.2.2"}
    miss = of(choose("torch==2.14.1", platform="macos-x86_64"), "torch").miss
    assert miss is not None
    assert (miss.kind, miss.evidence in PROOF) == ("platform", True)


def test_uv_stops_on_macos_where_the_channel_knows_the_name(choose: Choose) -> None:
    text = f"torch==2.14.1\n--extra-index-url {W}/cu126\n"
    selection = of(choose(text, client="uv", platform="macos-arm64"), "torch")
    assert selection.miss is not None
    assert selection.miss.kind == "platform"


@pytest.mark.parametrize(
    ("text", "python", "expected"),
    [
        ("torch==2.0.1\ntorchaudio\n", "3.11", {"torch": "2.0.1", "torchaudio": "2.11.0"}),
        ("torchvision\ntorch==2.10.0\n", "3.11", {"torchvision": "0.25.0", "torch": "2.10.0"}),
        ("torch\ntorchvision\n", "3.10", {"torch": "2.14.1", "torchvision": "0.29.2"}),
        ("torch\ntorchvision<0.29.1\n", "3.11", {"torch": "2.14.0", "torchvision": "0.29.0"}),
        ("torch<2.5\ntorchvision\n", "3.11", {"torch": "2.4.1", "torchvision": "0.19.1"}),
        ("torchvision==0.19.0\n", "3.11", {"torchvision": "0.19.0", "torch": "2.4.0"}),
        ("torch==1.13.1\ntorchtext\n", "3.10", {"torch": "1.13.1", "torchtext": "0.14.1"}),
        ("vllm==0.33.0\n", "3.12", {"torch": "2.14.0"}),
        ("torchcodec\n", "3.12", {"torchcodec": "0.17.0"}),
        ("numpy\n", "3.12", {}),
    ],
)
def test_companions_are_chosen_together(
    text: str, python: str, expected: dict[str, str], choose: Choose
) -> None:
    chosen = choose(text, python=python)
    assert chosen.conflict is None
    assert versions(chosen) == expected


def test_an_implied_torch_names_who_brings_it(choose: Choose) -> None:
    torch = of(choose("torchvision"), "torch")
    assert torch.implied_by == "torchvision"
    assert torch.placed is None


def test_a_companion_goes_back_to_a_release_without_torch(choose: Choose) -> None:
    text = f"torchaudio\n-c c.txt\n--extra-index-url {W}/cu132\n"
    chosen = choose(text, files={"c.txt": "torch<2.7"})
    assert chosen.conflict is None
    assert versions(chosen) == {"torchaudio": "2.11.0"}


def test_a_constraint_limits_and_does_not_install(choose: Choose) -> None:
    files = {"c.txt": "torch<2.12\ntorchaudio<2\n"}
    assert versions(choose("torch\n-c c.txt\n", files=files)) == {"torch": "2.11.0"}
    implied = choose("torchvision\n-c c.txt\n", files=files)
    assert versions(implied) == {"torchvision": "0.26.0", "torch": "2.11.0"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("torch==2.14.0\ntorchvision==0.19.0\n", ("torchvision 0.19.0", "torch==2.4.0", "2.14.0")),
        ("torch==2.15.0\nvllm==0.33.0\n", ("vllm==0.33.0", "torch==2.14.0", "2.15.0")),
    ],
)
def test_a_conflict_keeps_every_own_build(
    text: str, words: tuple[str, ...], choose: Choose
) -> None:
    chosen = choose(text)
    assert chosen.conflict is not None
    assert all(word in chosen.conflict for word in words)
    assert all(s.status == "selected" and s.build is not None for s in chosen.selections)
    assert all(chosen.conflict in s.because for s in chosen.selections)


@pytest.mark.parametrize(
    ("text", "python", "kind", "said"),
    [
        ("torch>=2.4+cu121\n", "3.11", "specifier", "torch>=2.4+cu121"),
        (f"torch==2.2.0+cu121\n-i {W}/cu121\n", "3.13", "python", "3.13"),
        ("torch==2.14.9\n", "3.11", "version", "2.14.9 was never published"),
        ("torch>2.14.1,<2.15\n", "3.11", "version", "no version of torch"),
        ("torchaudio==2.14.0\n", "3.11", "version", "2.11.1"),
        ("torchvision==2.5.1\n", "3.11", "version", "0.29.2"),
        ("torch==2.4,>=2.11\n", "3.11", "version", "excludes every version"),
        ("torch==2.13.0+cu126\n", "3.11", "label-not-on-index", "cu126"),
        (f"torch==2.13.0+cu126\n-i {W}/cu130\n", "3.11", "label-not-on-index", "cu130"),
        (f"torch==2.14.0+cu124\n-i {W}/cu124\n", "3.11", "not-on-channel", "2.6.0"),
        ("torch==2.11.0+cu124\n", "3.11", "not-on-channel", "cu124 holds torch 2.4.0 to 2.6.0"),
        (f"torch==2.4.0+cu126\n-i {W}/cu118\n", "3.11", "not-on-channel", "not 2.4.0"),
        ("torchaudio==2.6.0+cu124\n", "3.11", "label-not-on-index", "lies on cu124, not on PyPI"),
        (f"torch==2.15.0\n-i {W}/cu126\n", "3.11", "not-on-channel", "2.14.1"),
        (f"torch>=2.12\n-i {W}/cu128\n", "3.11", "not-on-channel", "2.11.0"),
        ("torch~=2.1.0\n", "3.12", "python", "3.12"),
        ("torch==2.15.0\n", "3.10", "python", "3.11"),
        ("torch==2.6.0\n", "3.13t", "python", "3.13t"),
        ("--no-index\ntorch\n", "3.11", "no-index", "no index"),
        (f"torch==2.9.0.dev20260101\n-i {W}/nightly/cpu\n", "3.11", "nightly", "2026-01-01"),
    ],
)
def test_misses(text: str, python: str, kind: str, said: str, choose: Choose) -> None:
    selection = of(choose(text, python=python), text.split("=")[0].split(">")[0].split("~")[0]
                   if not text.startswith("--") else "torch")  # fmt: skip
    assert selection.status == "none"
    assert selection.miss is not None
    assert selection.miss.kind == kind
    assert said in selection.miss.message
    assert selection.miss.evidence in PROOF


def test_only_a_build_that_exists_is_said_to_lie_on_the_channel_of_its_label(
    choose: Choose,
) -> None:
    catalog = load_catalog()
    seen = set()
    for label in ("cu118", "cu124", "cu126", "cu129", "cu130", "rocm6.4", "xpu"):
        for version in ("2.1.2", "2.5.1", "2.6.0", "2.8.0", "2.11.0", "2.14.1"):
            miss = of(choose(f"torch=={version}+{label}\n", python="3.11"), "torch").miss
            assert miss is not None
            there = catalog.existence("torch", version, channel=label, home="channel").exists
            assert (f"lies on {label}" in miss.message) == (there is True), miss
            assert (miss.kind == "not-on-channel") == (there is False), miss
            seen.add(there)
    assert {True, False} <= seen


def test_a_python_of_the_next_release_is_inferred_to_be_missing(choose: Choose) -> None:
    miss = choose(f"torch==2.4.1+cu121\n-i {W}/cu121\n", python="3.13").selections[0].miss
    assert miss is not None
    assert (miss.kind, miss.evidence in PROOF) == ("python", False)


def test_a_fresh_nightly_is_unknown(choose: Choose) -> None:
    day = load_catalog().date.replace("-", "")
    text = f"torch==2.17.0.dev{day}\n--index-url {W}/nightly/cpu\n"
    assert of(choose(text), "torch").status == "unknown"


def test_glibc(choose: Choose) -> None:
    selection = of(choose("torch==2.11.0", glibc="2.17"), "torch")
    assert selection.miss is not None
    assert selection.miss.kind == "glibc"
    assert "2.28" in selection.miss.message
    assert versions(choose("torch", glibc="2.17"))["torch"] < "2.7"


def test_the_guide(choose: Choose) -> None:
    text = (
        "torch==2.14.0+cu124\ntorchvision==0.19.0+cu124\ntorchaudio==2.14.0+cu124\n"
        f"--extra-index-url {W}/cu124\n"
    )
    chosen = choose(text)
    torch, vision, audio = chosen.selections
    assert torch.miss is not None
    assert (torch.miss.kind, torch.miss.channel, torch.miss.last) == (
        "not-on-channel",
        "cu124",
        "2.6.0",
    )
    assert vision.build is not None
    assert vision.build.requires_torch == "==2.4.0"
    assert audio.miss is not None
    assert audio.miss.kind == "version"


def test_an_unknown_index_hides_all_but_a_labelled_pin(choose: Choose) -> None:
    indexes = f"--extra-index-url https://corp.example/simple\n--extra-index-url {W}/cu126\n"
    assert versions(choose("torch==2.14.1+cu126\n" + indexes)) == {"torch": "2.14.1+cu126"}
    assert versions(choose("torch==2.14.1\n" + indexes)) == {"torch": "unknown"}
    assert versions(choose("torch==2.14.1+cu126\n" + indexes, client="uv")) == {"torch": "unknown"}
    mapped = {"https://corp.example/simple": "pypi"}
    assert versions(choose("torch==2.14.1\n" + indexes, private=mapped)) == {
        "torch": "2.14.1+cu126"
    }


def test_a_secret_of_an_index_is_never_shown(choose: Choose) -> None:
    text = "torch\n--extra-index-url https://user:secret@corp.example/simple\n"
    assert "secret" not in of(choose(text), "torch").because
    text = "torch\n--index-url https://user:secret@corp.example/whl/cu126\n"
    assert "secret" not in of(choose(text), "torch").because


def test_a_hash_picks_the_build(choose: Choose) -> None:
    known = load_catalog().hashes("torch", "2.14.1", "linux-x86_64")
    digest = next(digest for file, digest in known if "cp311" in file)
    text = f"torch==2.14.1 --hash=sha256:{digest}\n--extra-index-url {W}/cu126\n"
    assert versions(choose(text)) == {"torch": "2.14.1"}


def test_a_hash_of_no_known_wheel_is_unknown(choose: Choose) -> None:
    assert versions(choose(f"torch==2.14.1 --hash=sha256:{'0' * 64}\n")) == {"torch": "unknown"}


@pytest.mark.parametrize(
    ("text", "home"),
    [
        (f"torch==2.4.1\n--extra-index-url {W}/cpu\n", "pypi"),
        (f"torchvision==0.22.1\n--extra-index-url {W}/cpu\n", "channel"),
        (f"torchaudio==2.6.0\n--extra-index-url {W}/cu126\n", "pypi"),
        (f"torchaudio==2.7.1\n--extra-index-url {W}/cu128\n", "channel"),
        # an address that is given again keeps its first place, with or without its last slash
        (f"torchvision==0.22.1\n--extra-index-url {W}/cpu\n--extra-index-url {PYPI}\n", "channel"),
        (f"torchvision==0.22.1\n--extra-index-url {W}/cpu\n--extra-index-url {PYPI}/\n", "channel"),
        (f"torchvision==0.22.1\n--extra-index-url {W}/cpu\n--extra-index-url {MIRROR}\n", "pypi"),
    ],
)
def test_equal_versions_go_by_tag_then_by_the_last_index(
    text: str, home: str, choose: Choose
) -> None:
    build = choose(text, platform="linux-aarch64").selections[0].build
    assert build is not None
    assert (build.label, build.home) == ("", home)


@pytest.mark.parametrize(
    ("url", "python", "expected"),
    [
        (f"{W}/cu128/torch-2.9.1%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl", "3.11", "cu128"),
        (f"{W}/cu128/torch-2.9.1%2Bcu128-cp312-cp312-manylinux_2_28_x86_64.whl", "3.11", "python"),
        (f"{W}/cu128/torch-2.9.1%2Bcu128-cp311-cp311-win_amd64.whl", "3.11", "platform"),
        ("https://corp.example/torch-2.9.1%2Bcu128-cp311-cp311-linux_x86_64.whl", "3.11", None),
    ],
)
def test_direct_urls(url: str, python: str, expected: str | None, choose: Choose) -> None:
    selection = of(choose(f"torch @ {url}\n", python=python), "torch")
    assert selection.exact
    if expected is None:
        assert selection.status == "unknown"
    elif selection.build is not None:
        assert selection.build.label == expected
    else:
        assert selection.miss is not None
        assert selection.miss.kind == expected


def test_a_direct_url_brings_its_torch(choose: Choose) -> None:
    url = f"{W}/cu128/torchvision-0.24.1%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert versions(choose(f"torchvision @ {url}\n")) == {
        "torchvision": "0.24.1+cu128",
        "torch": "2.9.1",
    }


def test_a_constraint_holds_for_a_direct_url(choose: Choose) -> None:
    url = f"{W}/cu128/torch-2.9.1%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl"
    chosen = choose(f"torch @ {url}\n-c c.txt\n", files={"c.txt": "torch<2.9"})
    assert chosen.selections[0].miss is not None
    assert chosen.selections[0].miss.kind == "version"


def test_the_hash_of_the_wheel_of_another_python_does_not_pick(choose: Choose) -> None:
    known = load_catalog().hashes("torch", "2.14.1", "linux-x86_64")
    digest = next(digest for file, digest in known if "cp312" in file)
    assert versions(choose(f"torch==2.14.1 --hash=sha256:{digest}\n")) == {"torch": "unknown"}


def test_an_undeclared_python_is_not_judged(choose: Choose) -> None:
    assert versions(choose("torch==2.1.0", python=None)) == {"torch": "2.1.0"}


def test_what_torch_pins_itself_is_left_to_torch(choose: Choose) -> None:
    assert versions(choose("torch\ntriton\n"))["triton"] == "unknown"
    assert versions(choose("torch\ntriton==3.9.0\n"))["triton"] == "3.9.0"


def test_inferred_tags_make_the_choice_inferred(choose: Choose) -> None:
    build = next(
        b
        for b in load_catalog().find("torch", channel="cu126", platform="linux-x86_64")
        if "cp311" in b.pythons_inferred and b.home == "channel"
    )
    text = f"torch=={build.full_version}\n--extra-index-url {W}/cu126\n"
    assert of(choose(text), "torch").inferred
    assert not of(choose("torch==2.13.0"), "torch").inferred


def test_candidates_are_public(install: Installer, target: Targets) -> None:
    made = install(f"torch<2.12,>=2.10\n--extra-index-url {W}/cu126\n")
    found = candidates(made, "torch", target(), load_catalog())
    assert [build.full_version for build, _ in found] == [
        "2.11.0+cu126",
        "2.11.0",
        "2.10.0+cu126",
        "2.10.0",
    ]
    assert found[1][1].url == ""
    assert candidates(made, "torchvision", target(), load_catalog()) == ()
