"""``torchpin inspect``: reports, exit codes, and which GPUs run what, library by library."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.catalog.inspect_samples import WHEEL_NAME, elf, fatbin, pe, wheel

import torchpin.report
from torchpin.catalog.inspect import inspect
from torchpin.cli import inspect as command
from torchpin.cli.main import guarded
from torchpin.fleet.profile import fleet_from_options
from torchpin.report.inspect_fleet import GpuFit, fits, runs_everywhere

VERSION = "__version__ = '2.15.0+cu132'\ncuda: Optional[str] = '13.2'\n"


def schema() -> Any:
    path = Path(torchpin.report.__file__).parent / "schemas" / "inspect.v1.json"
    return json.loads(path.read_text("utf-8"))


def placed(tmp_path: Path, members: dict[str, bytes | str], name: str = "ext") -> str:
    path = tmp_path / WHEEL_NAME
    path.write_bytes(wheel(members, name))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = guarded(["inspect", "--isolated", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


def judged(
    tmp_path: Path, members: dict[str, bytes | str], *gpus: str, driver: str | None = None
) -> dict[str, GpuFit]:
    fleet = fleet_from_options(gpus=gpus, driver=driver, python=["3.12"], platform=None, glibc=None)
    rows = fits(inspect(placed(tmp_path, members)), fleet)
    return {row.gpu.written: row for row in rows}


def status(
    tmp_path: Path, members: dict[str, bytes | str], *gpus: str, driver: str | None = None
) -> list[str]:
    return [row.status for row in judged(tmp_path, members, *gpus, driver=driver).values()]


def test_a_report_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = placed(
        tmp_path,
        {
            "ext/_C.abi3.so": elf(fatbin("80 90a", "120"), ["libcudart.so.13"]),
            "ext/plain.so": elf(),
            "ext/version.py": VERSION,
        },
    )
    code, out, err = run(capsys, path, "--gpu", "A100", "--gpu", "V100")
    assert code == 1
    assert err == ""
    assert "ext 1.0 (" in out
    assert "CUDA: 13.2" in out
    assert "needs: libcudart.so.13" in out
    assert "_C.abi3.so" in out
    assert "80 90a" in out
    assert "1 more library without device code" in out
    assert "A100 (sm_80): runs" in out or "A100-" in out
    assert "Tesla V100 (sm_70): fails" in out
    assert "command-line" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = placed(tmp_path, {"ext/_C.so": elf(fatbin("80"))})
    code, _, err = run(capsys, path)
    assert code == 0
    assert "no fleet is declared" in err
    assert run(capsys, path, "--gpu", "A100")[0] == 0
    assert run(capsys, path, "--gpu", "V100")[0] == 1
    assert run(capsys, path, "--gpu", "A100", "--gpu", "V100", "-q")[0] == 1
    assert run(capsys, str(tmp_path / "none.whl"))[0] == 2
    assert run(capsys, path, "--gpu", "A1000000")[0] == 2
    assert run(capsys, path, "--timeout", "0")[0] == 2
    assert run(capsys, path, "--timeout", "nan")[0] == 2
    assert run(capsys)[0] == 2
    code, out, err = run(capsys, "https://me:secret@127.0.0.1:1/x.whl?token=hidden")
    assert (code, out) == (2, "")
    assert "secret" not in err
    assert "hidden" not in err
    assert err.startswith("torchpin: https://127.0.0.1:1/x.whl: cannot be fetched")


def test_the_profile_declares_the_fleet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = placed(tmp_path, {"ext/_C.so": elf(fatbin("80"))})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchpin.toml").write_text('[fleet.old]\ngpus = ["V100"]\n[fleet.ci]\ngpus = []\n')
    assert guarded(["inspect", path]) == 1
    assert "Tesla V100 (sm_70) in old: fails" in capsys.readouterr().out
    assert guarded(["inspect", path, "--isolated"]) == 0
    (tmp_path / "torchpin.toml").write_text("[fleet.ci]\ngpus = []\n")
    capsys.readouterr()
    assert guarded(["inspect", path]) == 0
    assert "has no GPUs" in capsys.readouterr().err


def test_json_is_what_the_schema_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = placed(
        tmp_path,
        {
            "torch/lib/libtorch_python.so": elf(data=b"\0sm_75 sm_80 compute_80\0"),
            "torch/lib/libtorch_cuda.so": elf(
                fatbin("75 80", "80"), ["libcudart.so.13", "libc.so"]
            ),
            "torch/lib/odd.so": "text",
            "torch/version.py": VERSION,
        },
        "torch",
    )
    checker = jsonschema.Draft202012Validator(schema())
    code, out, err = run(capsys, path, "--gpu", "T4", "--output-format", "json")
    value = json.loads(out)
    checker.validate(value)
    assert (code, err) == (0, "")
    assert (value["version"], value["kind"], value["source"]) == (1, "wheel", path)
    assert value["built"] == "2.15.0+cu132"
    assert value["arches"]["sass"] == ["sm_75", "sm_80"]
    assert value["arches"]["ptx"] == ["compute_80"]
    cuda = value["libraries"][0]
    assert cuda["parts"] == [{"sass": ["sm_75", "sm_80"], "ptx": ["compute_80"], "fatbins": 1}]
    assert (cuda["needed"], cuda["needs"]) == (["libcudart.so.13", "libc.so"], ["libcudart.so.13"])
    assert value["fleet"][0]["status"] == "runs"
    assert value["fleet"][0]["libraries"][0]["code"] == "sm_75"
    value = json.loads(run(capsys, path, "--output-format", "json", "-q")[1])
    checker.validate(value)
    assert value["fleet"] is None


def test_a_library_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.dll"
    path.write_bytes(pe(fatbin("75"), ["cudart64_12.dll"]))
    code, out, _ = run(capsys, str(path), "--gpu", "T4")
    assert code == 0
    assert out.startswith("x.dll (")
    assert "CUDA: 12" in out


@pytest.mark.parametrize(
    ("libraries", "statuses"),
    [
        # V100 sm_70 · A100 sm_80 · RTX 4090 sm_89 · H100 sm_90 · B200 sm_100
        ({"a.so": fatbin("80")}, ["fails", "runs", "runs", "fails", "fails"]),
        ({"a.so": fatbin("", "80")}, ["fails", *["runs-via-ptx"] * 4]),
        ({"a.so": fatbin("80", "80")}, ["fails", "runs", "runs", "runs-via-ptx", "runs-via-ptx"]),
        ({"a.so": fatbin("90a")}, ["fails", "fails", "fails", "runs", "fails"]),
        # A library for single GPUs does not count against the others …
        ({"a.so": fatbin("70 80 90"), "h.so": fatbin("90a")}, [*["runs"] * 4, "fails"]),
        # … any other does.
        (
            {"a.so": fatbin("70 80 90"), "b.so": fatbin("80")},
            ["partly", "runs", "runs", "partly", "fails"],
        ),
        # Builds for several CUDA versions are alternatives.
        ({"x_cuda126.so": fatbin("70 80"), "x_cuda130.so": fatbin("80 90 100")}, ["runs"] * 5),
        (
            {"x_cu126.so": fatbin("70"), "y_cu130.so": fatbin("80")},
            ["partly", "partly", "partly", "fails", "fails"],
        ),
        ({"sm80/x.so": fatbin("80"), "sm90/x.so": fatbin("90")}, ["fails", *["runs"] * 3, "fails"]),
        # Most fatbins serve, or fewer than half do.
        ({"a.so": fatbin("70 80") * 3 + fatbin("80")}, ["runs", "runs", "runs", "fails", "fails"]),
        (
            {"a.so": fatbin("70 80") + fatbin("80") * 3},
            ["partly", "runs", "runs", "fails", "fails"],
        ),
        ({"a.so": b""}, ["no-device-code"] * 5),
    ],
)
def test_which_gpus_run_it(
    tmp_path: Path, libraries: dict[str, bytes], statuses: list[str]
) -> None:
    members: dict[str, bytes | str] = {
        f"ext/{name}": elf(device or None) for name, device in libraries.items()
    }
    gpus = ("V100", "sm_80", "RTX 4090", "sm_90", "sm_100")
    assert status(tmp_path, members, *gpus) == statuses


def test_libraries_of_one_name_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = placed(
        tmp_path,
        {f"ext/{name}": elf(fatbin("80")) for name in ("a/x.so", "b/x.so", "x.so", "y.so")},
    )
    out = run(capsys, path, "--gpu", "sm_80")[1]
    for name in ("a/x.so", "b/x.so", "ext/x.so", "y.so"):
        assert out.count(f"  {name} ") == 2


def test_how_many_fatbins_serve(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {"ext/a.so": elf(fatbin("70 80") * 3 + fatbin("80"))}
    (row,) = judged(tmp_path, members, "V100").values()
    (fit,) = row.libraries
    assert (fit.status, fit.code, fit.covered, fit.total) == ("runs", "sm_70", 3, 4)


def test_a_contested_pair_is_unknown_and_no_finding(tmp_path: Path) -> None:
    rows = judged(tmp_path, {"ext/a.so": elf(fatbin("80"))}, "sm_87")
    assert rows["sm_87"].status == "unknown"
    assert runs_everywhere(rows.values())


def test_the_driver_counts_where_the_cuda_is_known(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {
        "ext/a.so": elf(fatbin("80")),
        "ext/version.py": VERSION,
    }
    (row,) = judged(tmp_path, members, "sm_80", driver="535.54.03").values()
    assert row.status == "fails"
    assert "535.54.03" in row.because[0]
    assert status(tmp_path, members, "sm_80", driver="610.43.02") == ["runs"]
    assert status(tmp_path, {"ext/a.so": elf(fatbin("80"))}, "sm_80", driver="535.54.03") == [
        "runs"
    ]


def test_gpus_of_other_vendors(tmp_path: Path) -> None:
    cuda: dict[str, bytes | str] = {"ext/a.so": elf(fatbin("80"))}
    assert status(tmp_path, cuda, "gfx942") == ["fails"]
    assert status(tmp_path, {"ext/a.so": elf()}, "gfx942") == ["no-device-code"]
    both: dict[str, bytes | str] = {**cuda, "ext/b.so": elf(None, ["libamdhip64.so.7"])}
    assert status(tmp_path, both, "gfx942") == ["unknown"]
    rocm: dict[str, bytes | str] = {
        "torch/lib/libtorch_python.so": elf(data=b"\0gfx90a gfx942\0"),
    }
    assert status(tmp_path, rocm, "gfx942", "gfx1100", "V100") == ["runs", "fails", "fails"]


def test_the_list_of_torch_stands_for_what_was_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members: dict[str, bytes | str] = {
        "torch/lib/libtorch_python.so": elf(data=b"\0sm_75 sm_80\0"),
        "torch/lib/libtorch_cuda.so": elf(),
    }
    rows = judged(tmp_path, members, "T4", "V100")
    assert [row.status for row in rows.values()] == ["runs", "fails"]
    assert rows["T4"].libraries[0].library == "list that torch states"


class Terminal:
    """A standard error that is a terminal."""

    def __init__(self) -> None:
        self.text = ""
        self.encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Nothing to do."""


@pytest.mark.parametrize(("after", "drawn"), [(0.0, True), (60.0, False)])
def test_a_bar_on_a_terminal_after_a_second(
    monkeypatch: pytest.MonkeyPatch, after: float, drawn: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("torchpin.cli.progress.SHOWN_AFTER", after)
    monkeypatch.setenv("TERM", "xterm")
    with command.InspectBar(quiet=False) as bar:
        bar.step("ext/[bold]_C.so", 1000)
        bar.advance(500)
    assert bool(terminal.text) is drawn
    if drawn:
        assert "[bold]_C.so" in terminal.text


def test_no_bar_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchpin.cli.progress.SHOWN_AFTER", 0.0)
    with command.InspectBar(quiet=False) as bar:
        bar.step("x", 0)
    assert capsys.readouterr().err == ""
