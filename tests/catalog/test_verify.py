"""``catalog verify``: what is measured again, what does not hold, what cannot be read."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.catalog.index_server import Answer, IndexServer, Listed, with_metadata
from tests.catalog.inspect_samples import elf, fatbin
from tests.catalog.small_catalog import NAME, state, torch_build, write

import torchpin.report
from torchpin.catalog.bounded import Held
from torchpin.catalog.elf import read_elf
from torchpin.catalog.inspect import inspect
from torchpin.catalog.inspection import Inspection
from torchpin.catalog.model import Build, Kernels
from torchpin.catalog.store import Catalog, load_catalog
from torchpin.catalog.verify import asked, channel_of, requires_torch, sample, units
from torchpin.cli.main import guarded

VISION = "torchvision-0.29.2-py3-none-manylinux_2_28_x86_64.whl"


def torch_wheel(
    *,
    label: str = "cu132",
    cuda: str | None = "13.2",
    states: str = "sm_80 sm_90",
    linalg: bytes | None = None,
    before: bytes = b"\0",
) -> bytes:
    members: dict[str, bytes | str] = {
        "torch/version.py": f"__version__ = '2.15.0+{label}'\ncuda: str = {cuda!r}\n",
        "torch/lib/libtorch_python.so": elf(data=before + states.encode() + b"\0"),
        "torch/lib/libtorch_cuda_linalg.so": linalg or elf(fatbin("80 90")),
        "torch/lib/libtorch_cpu.so": elf(data=b"x" * 1000),
    }
    return with_metadata(members, "torch", "2.15.0", ["numpy"])


def vision_wheel(sass: str = "80 90", requires: str = "torch>=2.14") -> bytes:
    members: dict[str, bytes | str] = {
        "torchvision/version.py": "__version__ = '0.29.2+cu132'\ncuda = '13.2'\n",
        "torchvision/_C_stable.so": elf(fatbin(sass)),
        "torchvision.libs/libnvjpeg.36e1.so.13": elf(fatbin("75")),
    }
    return with_metadata(members, "torchvision", "0.29.2", [requires])


def vision_build(**changes: object) -> Build:
    lists = Kernels(("80", "90"), (), (), "measured", f"PyPI wheel {VISION}")
    return torch_build(
        package="torchvision",
        version="0.29.2",
        kernels=lists,
        libraries=(),
        pythons=("py3",),
        requires_torch=">=2.14",
    )._replace(**changes)  # type: ignore[arg-type]


class Setting:
    """A catalog in a folder, and the index that it is verified against."""

    def __init__(self, folder: Path, server: IndexServer) -> None:
        self.folder = folder
        self.server = server

    def catalog(self, *builds: Build, digest: str | None = None) -> None:
        served = next((f.digest for f in self.server.files if f.name == NAME), "0" * 64)
        hashes = [["2.15.0", "linux-x86_64", "pypi", NAME, digest or served]]
        held = [b for b in builds if b.package == "torch"]
        write(self.folder, state(*builds, hashes=hashes if held else []))

    def serve(self, *files: Listed) -> None:
        self.server.files = []
        self.server.add(*files)

    def run(self, capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> dict[str, Any]:
        index = ["--index", f"{self.server.base}/simple", "--index", f"{self.server.base}/whl"]
        asked = ["--catalog", str(self.folder), "--output-format", "json", *index, *argv]
        got = guarded(["catalog", "verify", *asked])
        said = capsys.readouterr()
        assert got == code, said
        value: dict[str, Any] = json.loads(said.out)
        return value


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with IndexServer([]) as server:
        made = Setting(tmp_path / "catalog", server)
        made.serve(
            Listed("pypi", NAME, torch_wheel(), requires_python=">=3.11"),
            Listed("pypi", VISION, vision_wheel(), requires_python=">=3.11"),
        )
        yield made


def schema() -> Any:
    path = Path(torchpin.report.__file__).parent / "schemas" / "catalog-verify.v1.json"
    return json.loads(path.read_text("utf-8"))


def test_all_facts_hold(setting: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    setting.catalog(torch_build(), vision_build())
    value = setting.run(capsys)
    jsonschema.validate(value, schema())
    torch, vision = value["builds"]
    assert (torch["status"], torch["file"], torch["differences"]) == ("holds", NAME, [])
    assert set(torch["checked"]) == {
        "digest",
        "python",
        "glibc",
        "yanked",
        "requires-python",
        "channel",
        "cuda",
        "kernels",
        "kernels of libtorch_cuda_linalg.so",
    }
    assert {"requires-torch", "kernels"} < set(vision["checked"])
    assert value["seed"] is None
    assert value["summary"]["holds"] == value["summary"]["measured"] == 2


WRONG: list[tuple[dict[str, object], str, str]] = [
    ({"pythons": ("cp312", "cp313")}, "python", "cp312"),
    ({"glibc": "2.17"}, "glibc", "2.28"),
    ({"yanked": True}, "yanked", "False"),
    ({"requires_python": ">=3.10"}, "requires-python", ">=3.11"),
    ({"channel": "cu130"}, "channel", "cu132"),
    ({"cuda": "13.0"}, "cuda", "13.2"),
    ({"kernels": Kernels(("75", "80"), (), (), "measured", "x")}, "kernels", "sm_80 sm_90"),
    ({"kernels": Kernels(("80", "90"), ("90",), (), "measured", "x")}, "kernels", "sm_80 sm_90"),
    (
        {"libraries": (("libtorch_cuda_linalg.so", Kernels((), (), (), "measured", "x")),)},
        "kernels of libtorch_cuda_linalg.so",
        "sm_80 sm_90",
    ),
    (
        {"libraries": (("libnone.so", Kernels((), (), (), "measured", "x")),)},
        "kernels of libnone.so",
        "no such library",
    ),
]


@pytest.mark.parametrize(("change", "fact", "wheel"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_fact_is_found(
    setting: Setting,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, object],
    fact: str,
    wheel: str,
) -> None:
    setting.catalog(torch_build(**change))
    (build,) = setting.run(capsys, code=1)["builds"]
    assert build["status"] == "differs"
    assert [(d["fact"], d["wheel"]) for d in build["differences"]] == [(fact, wheel)]


def test_what_is_not_called_measured_is_not_compared(
    setting: Setting, capsys: pytest.CaptureFixture[str]
) -> None:
    guess = Kernels(("50",), (), (), "inferred", "a guess")
    setting.catalog(torch_build(kernels=guess, libraries=(("libtorch_cuda_linalg.so", guess),)))
    (build,) = setting.run(capsys)["builds"]
    assert not [fact for fact in build["checked"] if fact.startswith("kernels")]


def test_a_companion(setting: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    setting.serve(Listed("pypi", VISION, vision_wheel("75 80 90", "torch==2.15.0")))
    setting.catalog(vision_build())
    (build,) = setting.run(capsys, code=1)["builds"]
    told = {d["fact"]: (d["catalog"], d["wheel"]) for d in build["differences"]}
    assert told == {
        "requires-torch": (">=2.14", "==2.15.0"),
        "kernels": ("sm_80 sm_90", "sm_75 sm_80 sm_90"),
    }


def test_a_changed_digest(setting: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    setting.catalog(torch_build(), digest="f" * 64)
    (build,) = setting.run(capsys, code=1)["builds"]
    (difference,) = build["differences"]
    assert difference["fact"] == "digest"
    assert "f" * 64 in difference["catalog"]


def test_a_file_that_the_page_lists_no_more(
    setting: Setting, capsys: pytest.CaptureFixture[str]
) -> None:
    other = NAME.replace("cp312", "cp313")
    setting.catalog(torch_build())
    setting.serve(Listed("pypi", other, torch_wheel(), requires_python=">=3.11"))
    (build,) = setting.run(capsys, code=1)["builds"]
    assert {d["fact"] for d in build["differences"]} == {"digest", "python"}
    assert build["file"] == other


def test_a_list_behind_another_string(setting: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    setting.serve(Listed("pypi", NAME, torch_wheel(before=b"std::string ipc_h")))
    setting.catalog(torch_build())
    assert setting.run(capsys)["builds"][0]["status"] == "holds"


def test_one_target_behind_a_letter_is_no_list(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(torch_wheel(states="sm_80", before=b"\0compile_for_"))
    assert inspect(str(path)).arches is None


def with_versions(*versions: str) -> bytes:
    """Return a shared object that asks for symbols of these versions of libc."""
    names = [name.encode() + b"\0" for name in ("libc.so.6", *versions)]
    strings = b"\0" + b"".join(names)
    starts = [1]
    for name in names[:-1]:
        starts.append(starts[-1] + len(name))
    need = struct.pack("<HHIII", 1, len(versions), starts[0], 16, 0)
    for at, start in enumerate(starts[1:]):
        last = at == len(versions) - 1
        need += struct.pack("<IHHII", 0, 0, 2, start, 0 if last else 16)
    parts = [(3, strings, 0), (0x6FFFFFFE, need, 1), (3, b"\0", 0)]
    body = b""
    headers = struct.pack("<IIQQQQIIQQ", *([0] * 10))
    for kind, content, link in parts:
        body = body.ljust((len(body) + 7) // 8 * 8, b"\0")
        place = 64 + len(body)
        headers += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, place, len(content), link, 0, 8, 0)
        body += content
    body = body.ljust((len(body) + 7) // 8 * 8, b"\0")
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHI", 3, 62, 1)
    head += struct.pack("<QQQ", 0, 0, 64 + len(body))
    head += struct.pack("<IHHHHHH", 0, 64, 56, 0, 64, 4, 3)
    return head + body + headers


def test_the_newest_glibc_that_a_library_asks_for() -> None:
    found = read_elf(Held(with_versions("GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.4", "GCC_3.0")))
    assert found.glibc == "2.17"
    assert read_elf(Held(with_versions("GLIBC_PRIVATE"))).glibc is None
    assert read_elf(Held(elf())).glibc is None


def old_build(glibc: str) -> Build:
    lists = Kernels(("80", "90"), (), (), "measured", "x")
    return torch_build(glibc=glibc, kernels=lists, libraries=())


@pytest.mark.parametrize(("glibc", "holds"), [("2.17", True), ("2.5", True), ("2.12", False)])
def test_old_tags_admit_more_than_the_libraries_do(
    setting: Setting, capsys: pytest.CaptureFixture[str], glibc: str, holds: bool
) -> None:
    name = NAME.replace("manylinux_2_28", "manylinux1")
    members: dict[str, bytes | str] = {
        "torch/version.py": "__version__ = '2.15.0+cu132'\ncuda: str = '13.2'\n",
        "torch/lib/libtorch_python.so": elf(data=b"\0sm_80 sm_90\0"),
        "torch/lib/libgomp-a34b3233.so.1": with_versions("GLIBC_2.14", "GLIBC_2.17"),
    }
    data = with_metadata(members, "torch", "2.15.0", [])
    setting.serve(Listed("pypi", name, data, requires_python=">=3.11"))
    write(setting.folder, state(old_build(glibc)))
    (build,) = setting.run(capsys, code=0 if holds else 1)["builds"]
    assert [d["fact"] for d in build["differences"]] == ([] if holds else ["glibc"])


def broken(answer: Answer) -> None:
    answer.status(503)


def forbidden(answer: Answer) -> None:
    answer.status(403)


def garbage(answer: Answer) -> None:
    answer.whole(b"<<<< no page", "text/html")


@pytest.mark.parametrize(
    ("path", "behaviour", "words"),
    [
        ("/simple/torch/", garbage, "the page is not HTML"),
        ("/simple/torch/", forbidden, "HTTP 403"),
        (f"/files/{NAME}", forbidden, "HTTP 403"),
        (f"/files/{NAME}", lambda answer: answer.ranged(b"PK" * 50), "not a zip"),
    ],
)
def test_what_cannot_be_read_is_said(
    setting: Setting,
    capsys: pytest.CaptureFixture[str],
    path: str,
    behaviour: Callable[[Answer], None],
    words: str,
) -> None:
    setting.catalog(torch_build(), vision_build())
    setting.server.behave[path] = behaviour
    torch, vision = setting.run(capsys, code=1)["builds"]
    assert torch["status"] == "unread"
    assert words.lower() in torch["reason"].lower()
    assert vision["status"] == "holds"


def test_no_wheel_of_the_build_is_listed(
    setting: Setting, capsys: pytest.CaptureFixture[str]
) -> None:
    setting.catalog(torch_build(platform="linux-aarch64"))
    (build,) = setting.run(capsys, code=1)["builds"]
    assert build["status"] == "unread"
    assert "holds no wheel" in build["reason"]


def test_a_file_without_metadata_is_odd_but_holds(
    setting: Setting, capsys: pytest.CaptureFixture[str]
) -> None:
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("torch-2.15.0.dist.info/METADATA", "Name: torch\n")
    setting.serve(Listed("pypi", NAME, buffer.getvalue()))
    setting.catalog(torch_build(kernels=None, libraries=()))
    (build,) = setting.run(capsys)["builds"]
    assert build["notes"] == ["is not a wheel: it holds no METADATA"]


def test_a_measured_build_of_a_channel(
    setting: Setting, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "torch-2.15.0+cu132-cp312-cp312-manylinux_2_28_x86_64.whl"
    setting.serve(Listed("cu132", name, torch_wheel(), requires_python=None))
    build = torch_build(home="channel", label="cu132")
    write(setting.folder, state(build))
    (found,) = setting.run(capsys)["builds"]
    assert (found["status"], found["index"], found["file"]) == ("holds", "channel", name)


def test_text(setting: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    setting.catalog(torch_build(cuda="13.0"), vision_build())
    index = ["--index", f"{setting.server.base}/simple"]
    code = guarded(["catalog", "verify", "--catalog", str(setting.folder), *index])
    said = capsys.readouterr()
    assert (code, said.err) == (1, "")
    assert "torch 2.15.0 pypi linux-x86_64: does not hold" in said.out
    assert "cuda: the catalog says 13.0" in said.out
    assert "1 of 2 builds hold" in said.out
    assert "1 do not" in said.out


def test_nothing_secret_is_printed(setting: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    setting.catalog(torch_build())
    setting.server.behave["/simple/torch/"] = forbidden
    base = setting.server.base.replace("http://", "http://user:hunter2@")
    argv = ["catalog", "verify", "--catalog", str(setting.folder), "--index", f"{base}/simple"]
    assert guarded(argv) == 1
    said = capsys.readouterr()
    assert "hunter2" not in said.out + said.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--sample", "0"], "--sample takes"),
        (["--jobs", "0"], "--jobs takes"),
        (["--jobs", "99"], "--jobs takes"),
        (["--package", "torchvison"], "did you mean `torchvision`?"),
        (["--index", "ftp://x/simple"], "--index"),
        (["--catalog", "/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], argv: list[str], words: str) -> None:
    assert guarded(["catalog", "verify", *argv]) == 2
    assert words in capsys.readouterr().err


def test_samples_can_be_drawn_again() -> None:
    everything = units(load_catalog("shipped"))
    first = sample(everything, 20, 7)
    assert first == sample(everything, 20, 7)
    assert len(set(first)) == 20
    assert first != sample(everything, 20, 8)
    assert sample(everything[:5], 20, 1) == everything[:5]
    places = [everything.index(unit) for unit in first]
    assert places == sorted(places)


def test_all_measured_builds_of_pypi_are_units() -> None:
    catalog: Catalog = load_catalog("shipped")
    everything = units(catalog)
    wanted = [b for p in catalog.packages() for b in catalog.builds(p) if b.home == "pypi"]
    assert [unit.build for unit in everything if unit.place == "pypi"] == wanted
    named = [unit for unit in everything if unit.build.kernels and unit.build.package == "torch"]
    assert named
    assert all(unit.wheels for unit in named)


def test_only_what_tells_is_read() -> None:
    build = torch_build()
    assert asked(build, "torch/lib/libtorch_python.so")
    assert asked(build, "torch/lib/libtorch_cuda_linalg.so")
    assert not asked(build, "torch/lib/libtorch_cpu.so")
    assert asked(vision_build(), "torchvision/image.so")
    assert not asked(vision_build(kernels=None), "torchvision/image.so")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], ""),
        (["numpy", "Torch==2.1"], "==2.1"),
        (["torch"], ">=0"),
        (["torch>=2; extra == 'all'"], ""),
        (["not a requirement ;;", "torch (>=1)"], ">=1"),
    ],
)
def test_what_is_required_of_torch(lines: list[str], expected: str) -> None:
    assert requires_torch(lines) == expected


def said(package: str, built: str | None, cuda: str | None) -> str | None:
    blank = Inspection(
        "", "", "", 0, None, None, (), None, (), None, None, None, None, (), (), 0, 0
    )
    return channel_of(package, blank._replace(built=built, cuda=cuda))


def test_what_a_wheel_was_built_for() -> None:
    assert said("torch", "2.15.0+cu132", "13.2") == "cu132"
    assert said("torch", "1.7.1", "10.2") == "cu102"
    assert said("torch", "2.15.0+cpu", None) == "cpu"
    assert said("torch", "2.15.0", None) == "cpu"
    assert said("torchvision", "0.28.0", "13") is None
    assert said("bitsandbytes", None, None) is None


def test_what_is_asked_for_is_read_however_big_it_is(
    setting: Setting, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchpin.catalog.inspect.SKIPPED_ABOVE", 10)
    setting.catalog(torch_build())
    (build,) = setting.run(capsys)["builds"]
    assert "kernels of libtorch_cuda_linalg.so" in build["checked"]
