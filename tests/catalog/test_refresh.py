"""``catalog refresh`` against a loopback index in the form of the real pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.catalog.index_server import Answer
from tests.catalog.refresh_world import LINUX, World, listed, make_world

from torchpin.catalog.store import Catalog


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[World]:
    made, server = make_world(tmp_path, monkeypatch, capsys)
    with server:
        yield made


def test_a_first_refresh_proves_what_was_inferred(world: World) -> None:
    code, out, err = world.refresh()
    assert (code, err) == (0, "")
    assert "torch: " in out and "builds that were inferred are published" in out
    found = world.catalog()
    assert found.date == "2026-12-05"
    assert found.base == world.shipped.digest
    build = found.find("torch", version="2.15.0", channel="cpu", platform="linux-x86_64")[0]
    assert build.evidence == "published"
    assert build.source.endswith("/whl/cpu/torch/ of 2026-12-05 (by a mirror)")
    assert build.pythons and not build.pythons_inferred
    read = found.find("torch", version="2.15.0", channel="cu130", platform="linux-x86_64")[0]
    assert read.evidence == "measured"  # a CUDA build of the newest release: its wheel is read
    assert "cu130 wheel torch-2.15.0+cu130-cp311" in (read.kernels.source if read.kernels else "")
    before = world.shipped.find("torch", version="2.15.0", home="pypi")
    assert [b.evidence for b in before] == [
        b.evidence for b in found.find("torch", version="2.15.0", home="pypi")
    ]


def test_a_new_release_with_a_new_channel_and_another_default(world: World) -> None:
    assert world.refresh()[0] == 0
    world.release()
    code, out, err = world.refresh()
    assert (code, err) == (0, "")
    assert "torch: new channel cu134" in out
    assert "torch: new version 2.16.0 on PyPI, cu132, cu134" in out
    assert "torch: PyPI's build for linux-x86_64: cu132 (2.15.0) → cu134 (2.16.0)" in out
    assert "torchvision: new version 0.30.0 on PyPI, cu134" in out
    found = world.catalog()
    assert found.newest("torch") == "2.16.0"
    (build,) = found.find("torch", version="2.16.0", home="pypi")
    assert (build.channel, build.cuda, build.evidence) == ("cu134", "13.4", "measured")
    assert build.kernels is not None and build.kernels.sass == ("80", "90", "100", "120")
    assert build.kernels.evidence == "measured" and "sha256:" in build.kernels.source
    assert [name for name, _ in build.libraries] == ["libtorch_cuda_linalg.so"]
    (other,) = found.find("torch", version="2.16.0", channel="cu134", home="channel")
    assert (other.label, other.cuda, other.pythons) == ("cu134", "13.4", ("cp311", "cp312"))
    assert other.requires_python == ">=3.11"
    assert found.channel_span("torch", "cu134") is not None
    assert found.partners("2.16.0", "torchvision") == ("0.30.0", "0.29.2", "0.29.1")
    assert found.partners("2.16.0", "triton") == ("3.9.0",)
    assert found.existence("torch", "2.16.0", channel="cu126").exists is False
    assert found.existence("torch", "2.16.0", channel="cu126").evidence in ("published", "bounded")
    assert found.hashes("torch", "2.16.0+cu134", "linux-x86_64")


def test_check_and_resolve_use_it(world: World, tmp_path: Path) -> None:
    world.release()
    assert world.refresh()[0] == 0
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.16.0\ntorchvision==0.30.0\n")
    fleet = ["--driver", "550.54.15", "--python", "3.12", "--platform", "linux-x86_64"]
    code, out, _ = world.run("check", str(path), "--gpu", "T4", *fleet)
    assert code == 1
    assert "TP201" in out and "TP203" in out and "13.4" in out
    url = "https://download.pytorch.org/whl/cu134"
    path.write_text(f"--index-url {url}\ntorch==2.16.0\ntorchvision==0.30.0\n")
    code, out, _ = world.run(
        *("check", str(path), "--gpu", "H100", "--driver", "620.10", "--python", "3.12")
    )
    assert "TP201" not in out and "TP101" not in out and "TP106" not in out
    code, out, _ = world.run("check", str(path), "--gpu", "T4", *fleet, "--isolated")
    assert "TP201" not in out  # the shipped catalog does not know 2.16.0
    path.write_text("torch>=2.16\ntorchvision\n")
    code, out, _ = world.run("resolve", str(path), "--gpu", "H100", "--python", "3.12")
    assert code == 0
    assert "2.16.0" in out


def test_a_refresh_without_changes_asks_each_page_once(world: World) -> None:
    assert world.refresh()[0] == 0
    pages = [path for path, _ in world.server.asked if path.endswith("/")]
    code, out, err = world.refresh()
    assert (code, err) == (0, "")
    assert out.startswith("nothing changed\n")
    again = world.server.asked
    assert sorted(path for path, _ in again) == sorted(pages)  # no wheel, no page twice
    missing = {path for path, etag in again if not etag}
    known = {path for path in pages if world.server.page(path, "text/html") is not None}
    assert not missing & known  # each that exists with its ETag
    assert f"({len(known)} from the cache)" in out


def test_what_was_read_of_wheels_is_not_read_again(world: World) -> None:
    world.release()
    name = f"torch-2.16.0+cu134-cp311-cp311-{LINUX}.whl"
    path = f"/whl/cu134/{name}"
    world.server.behave[path] = lambda answer: answer.status(500)
    code, _, err = world.refresh()
    assert code == 1
    assert f"not read: {name}: cannot be fetched: HTTP 500" in err
    (build,) = world.catalog().find("torch", version="2.16.0", channel="cu134", home="channel")
    assert (build.kernels, build.evidence) == (None, "published")
    del world.server.behave[path]
    code, out, err = world.refresh()
    assert (code, err) == (0, "")
    wheels = [path for path, _ in world.server.asked if path.endswith(".whl")]
    assert set(wheels) == {path}
    (build,) = world.catalog().find("torch", version="2.16.0", channel="cu134", home="channel")
    assert build.kernels is not None and build.evidence == "measured"
    assert "kernels read: 2.16.0 on cu134" in out


def test_a_withdrawn_file_is_recorded(world: World) -> None:
    assert world.refresh()[0] == 0
    world.server.drop("cu126", "torch-2.14.1+cu126-", "win_amd64.whl")
    world.server.drop("pypi", "torchaudio-2.11.1-py3-none-win_amd64")
    code, out, _ = world.refresh()
    assert code == 0
    assert "torch: no longer listed: 2.14.1 on cu126 (windows-x86_64)" in out
    assert "torchaudio: no longer listed: 2.11.1 on PyPI (windows-x86_64)" in out
    found = world.catalog()
    gone = found.existence("torch", "2.14.1", channel="cu126", platform="windows-x86_64")
    assert (gone.exists, gone.evidence) == (False, "published")
    assert gone.source.startswith("withdrawn: known before [")
    gone = found.existence("torchaudio", "2.11.1", channel="pypi", platform="windows-x86_64")
    assert gone.exists is False and gone.source.startswith("withdrawn: ")
    code, out, _ = world.refresh()
    assert out.startswith("nothing changed")
    kept = world.catalog().existence("torch", "2.14.1", channel="cu126", platform="windows-x86_64")
    assert kept.source.startswith("withdrawn: ")


def test_a_yanked_release(world: World) -> None:
    assert world.refresh()[0] == 0
    server = world.server
    server.files = [
        f._replace(yanked=True) if f.channel == "pypi" and f.name.startswith("torch-2.15.0") else f
        for f in server.files
    ]
    server.changed()
    code, out, _ = world.refresh()
    assert code == 0
    assert "torch: yanked: 2.15.0 on PyPI" in out
    found = world.catalog()
    assert all(b.yanked for b in found.find("torch", version="2.15.0", home="pypi"))
    assert found.newest("torch") == "2.14.1"


def test_requirements_by_pep_658_need_no_wheel(world: World) -> None:
    text = (
        b"Metadata-Version: 2.1\nName: torchaudio\nVersion: 2.12.0\nRequires-Dist: torch==2.15.0\n"
    )
    name = "torchaudio-2.12.0-py3-none-macosx_14_0_arm64.whl"
    world.server.add(listed("pypi", name, b"x" * 10, metadata=text))
    code, _, err = world.refresh()
    assert (code, err) == (0, "")
    (build,) = world.catalog().find("torchaudio", version="2.12.0")
    assert (build.requires_torch, build.channel, build.evidence) == ("==2.15.0", "cpu", "published")
    assert world.catalog().partners("2.15.0", "torchaudio")[0] == "2.12.0"
    assert ("/files/" + name, "") not in world.server.asked


def test_metadata_with_another_digest_are_not_believed(world: World) -> None:
    text = b"Metadata-Version: 2.1\nName: torchaudio\nVersion: 2.12.0\nRequires-Dist: torch==1.0\n"
    from tests.catalog.index_server import companion_wheel

    data = companion_wheel("torchaudio", "2.12.0", "80", "cpu", ["torch==2.15.0"])
    name = "torchaudio-2.12.0-py3-none-macosx_14_0_arm64.whl"
    world.server.add(listed("pypi", name, data, metadata=text, metadata_sha256="0" * 64))
    code, _, err = world.refresh()
    assert (code, err) == (0, "")
    (build,) = world.catalog().find("torchaudio", version="2.12.0")
    assert (build.requires_torch, build.evidence) == ("==2.15.0", "measured")


def test_a_wheel_with_another_digest_is_not_measured(world: World) -> None:
    world.release()
    server = world.server
    server.files = [
        f._replace(sha256="1" * 64) if "2.16.0+cu132-cp311" in f.name else f for f in server.files
    ]
    server.changed()
    code, _, err = world.refresh()
    assert code == 1
    assert "does not have the SHA-256 that its page lists" in err
    (build,) = world.catalog().find("torch", version="2.16.0", channel="cu132", home="channel")
    assert (build.kernels, build.evidence) == (None, "published")


def test_a_dry_run_reads_no_wheel_and_writes_nothing(world: World) -> None:
    world.release()
    code, out, _ = world.refresh("--dry-run")
    assert code == 0
    assert "new version 2.16.0" in out and "wheels would be read" in out
    assert not (world.cache / "catalog").exists()
    assert not any(path.endswith(".whl") for path, _ in world.server.asked)
    assert world.catalog().folder == world.shipped.folder


def test_output_goes_to_a_folder_that_catalog_uses(world: World, tmp_path: Path) -> None:
    world.release()
    folder = tmp_path / "own"
    code, out, _ = world.refresh("--output", str(folder))
    assert code == 0 and str(folder) in out
    assert world.catalog().folder == world.shipped.folder
    code, out, _ = world.run("show", "--catalog", str(folder), "/dev/null", "--gpu", "H100")
    assert Catalog(str(folder)).newest("torch") == "2.16.0"
    (folder / "builds-torch.json").write_text("{}")
    from torchpin.errors import CatalogError

    with pytest.raises(CatalogError, match="damaged"):
        world.run("check", "--catalog", str(folder), "/dev/null")


def test_only_a_package_and_a_channel(world: World) -> None:
    code, _, err = world.refresh("--package", "torch", "--channel", "cu126")
    assert (code, err) == (0, "")
    assert {path for path, _ in world.server.asked} == {"/whl/cu126/", "/whl/cu126/torch/"}
    found = world.catalog()
    assert found.date == world.shipped.date  # the rest is as old as it was
    page = found.page("torch", "cu126")
    assert page is not None and (page.date, page.newest) == ("2026-12-05", "2.15.0")
    assert found.page("torch", "cu130") is None


def test_a_channel_that_does_not_exist(world: World) -> None:
    code, _, err = world.refresh("--channel", "cu199")
    assert code == 2
    assert "not read: cu199: the server answers 404" in err


def test_since_reads_known_releases(world: World) -> None:
    from tests.catalog.index_server import torch_wheel

    server = world.server
    server.files = [
        f._replace(data=torch_wheel("2.14.1+cu126", "sm_50 sm_90", "cu126", (), f.name))
        if f.channel == "cu126" and f.name.startswith("torch-2.14.1+cu126-cp310-cp310-many")
        else f
        for f in server.files
    ]
    server.changed()
    code, _, err = world.refresh("--since", "2.14", "--channel", "cu126", "--package", "torch")
    assert code == 1  # the wheels of Windows cannot be read
    assert "win_amd64.whl" in err
    (build,) = world.catalog().find(
        "torch", version="2.14.1", channel="cu126", platform="linux-x86_64"
    )
    assert build.kernels is not None
    assert (build.kernels.sass, build.kernels.evidence) == (("50", "90"), "measured")


def as_html(page: bytes) -> Callable[[Answer], None]:
    return lambda answer: answer.whole(page, "text/html")


def test_html_pages_of_pypi_do_as_well(world: World) -> None:
    server = world.server
    for name in ("torch", "torchvision", "torchaudio", "triton"):
        here = [f for f in server.files if f.channel == "pypi" and f.package == name]
        server.behave[f"/simple/{name}/"] = as_html(server.html(name, here))
    world.release()
    code, out, err = world.refresh()
    assert (code, err) == (0, "")
    assert world.catalog().newest("torch") == "2.15.0"  # the page of PyPI has no 2.16.0
    assert "new version 2.16.0 on cu132, cu134" in out


def test_the_data_are_canonical(world: World) -> None:
    world.release()
    world.refresh()
    found = world.catalog()
    head = json.loads((Path(found.folder) / "catalog.json").read_text())
    assert head["refreshed"] == "2026-12-05" and head["digest"] == found.digest
    from torchpin.catalog.records import read_state, render
    from torchpin.catalog.schema import check_folder

    assert check_folder(found.folder) == []
    files = render(read_state(found.folder))
    assert all((Path(found.folder) / name).read_text() == text for name, text in files.items())


def test_a_package_whose_page_is_odd_stays(world: World) -> None:
    world.release()
    name = "torchaudio-2.12.0-xx9999-none-macosx_14_0_arm64.whl"
    world.server.add(listed("cpu", name, b""))
    code, out, err = world.refresh()
    assert code == 1
    assert "not read: torchaudio: what its pages say is odd" in err and "as of 2026-11-30" in err
    assert "torch: new version 2.16.0" in out
    assert world.catalog().versions("torchaudio") == world.shipped.versions("torchaudio")


def test_new_releases_of_packages_that_pin_torch(world: World) -> None:
    from tests.catalog.index_server import metadata

    text = metadata("vllm", "0.2", ["torch==2.15.0"])
    name = "vllm-0.2-cp38-abi3-manylinux_2_31_x86_64.whl"
    world.server.add(listed("pypi", name, b"x", metadata=text))
    code, _, err = world.refresh()
    assert (code, err) == (0, "")
    found = world.catalog()
    assert (found.pins("vllm", "0.2"), found.pins("vllm", "0.1")) == ("==2.15.0", "==2.14.1")
    assert "vllm" not in found.packages()
    code, _, err = world.refresh("--package", "vllm")
    assert (code, err) == (0, "")
    assert "vllm" not in world.catalog().packages()
    assert [path for path, _ in world.server.asked if path.startswith("/simple")] == [
        "/simple/vllm/"
    ]


def test_since_a_day(world: World) -> None:
    code, _, err = world.refresh("--since", "2026-11-15", "--channel", "pypi")
    assert (code, err) == (0, "")  # nothing was released since
    assert not any(path.endswith(".whl") for path, _ in world.server.asked)


def test_the_bar_is_for_terminals(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("torchpin.cli.progress.SHOWN_AFTER", 0.0)
    code, _, err = world.refresh()
    assert (code, err) == (0, "")
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    world.refresh()
    assert "index pages" in shown.getvalue()
    silent = Terminal()
    monkeypatch.setattr(sys, "stderr", silent)
    world.refresh("--quiet")
    assert silent.getvalue() == ""
