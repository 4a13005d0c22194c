"""Outputs of nvidia-smi become node groups."""

from __future__ import annotations

import pytest
from tests.effort import effort_below
from tests.fleet.importers.inputs import arches, fleet_of, group_of, smi_xml, written

from torchpin.errors import UsageError

CSV = """name, driver_version, compute_cap, memory.total [MiB]
NVIDIA A100-SXM4-80GB, 550.54.15, 8.0, 81920 MiB
NVIDIA A100-SXM4-80GB, 550.54.15, 8.0, 81920 MiB
"""


def test_xml_tells_gpus_and_driver() -> None:
    group = group_of(("node001.xml", smi_xml("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB")))
    assert arches(group) == ["sm_70", "sm_70"]
    assert group.driver == "550.54.15"
    assert group.platform == "linux-x86_64"


def test_a_windows_driver_model_tells_the_platform() -> None:
    group = group_of(("a.xml", smi_xml("NVIDIA GeForce RTX 4090", driver="551.86", model="WDDM")))
    assert (group.platform, group.driver) == ("windows-x86_64", "551.86")


def test_files_are_machines_and_fold() -> None:
    inputs = [(f"node{n:03}.xml", smi_xml("NVIDIA H100 80GB HBM3")) for n in (1, 2, 3, 7)]
    text = written(*inputs, ("old.xml", smi_xml("Tesla T4", driver="470.256.02"))).text
    assert "node[001-003,007]" in text
    assert "4 machines" in text
    assert text.count("[fleet.") == 2
    assert "hunter2" not in text


def test_one_card_in_two_sizes_is_one_group() -> None:
    fleet = fleet_of(
        ("a.xml", smi_xml("NVIDIA A100-SXM4-40GB")), ("b.xml", smi_xml("NVIDIA A100-SXM4-80GB"))
    )
    (group,) = fleet.groups
    assert {gpu.written for gpu in group.gpus} == {"NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"}


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7, 0.95])
def test_a_cut_off_xml_says_so(share: float) -> None:
    text = smi_xml("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3")
    with pytest.raises(UsageError, match="ends in the middle of its XML"):
        written(("a.xml", text[: max(150, int(len(text) * share))]))


def test_two_documents_in_one_file_are_told() -> None:
    with pytest.raises(UsageError) as caught:
        written(("all.xml", smi_xml("Tesla T4") + smi_xml("Tesla T4")))
    assert "file of its own" in caught.value.hint


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "b">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY a "x"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY % p SYSTEM "http://127.0.0.1:1/p.dtd"> %p;',
    ],
)
def test_entities_are_refused(declaration: str) -> None:
    text = smi_xml("Tesla T4").replace(
        '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">',
        f"<!DOCTYPE nvidia_smi_log [{declaration}]>",
    )
    with pytest.raises(UsageError, match="declares entities"):
        written(("a.xml", text))


def test_a_nesting_without_end_is_bounded() -> None:
    deep = "<nvidia_smi_log>" + "<gpu>" * 200_000
    with effort_below(20), pytest.raises(UsageError, match="nested without end"):
        written(("a.xml", deep))


def test_other_xml_is_refused() -> None:
    with pytest.raises(UsageError, match="is XML that torchpin does not know"):
        written(("a.xml", "<html><body>login</body></html>"))


def test_csv_with_header() -> None:
    group = group_of(("node001.csv", CSV))
    assert (arches(group), group.driver) == (["sm_80"], "550.54.15")


@pytest.mark.parametrize(
    "line",
    [
        "NVIDIA A100-SXM4-80GB, 550.54.15, 8.0",
        "0, NVIDIA A100-SXM4-80GB, GPU-5e0f1a2b-0000, 550.54.15, 81920 MiB",
        "550.54.15, 00000000:07:00.0, NVIDIA A100-SXM4-80GB, [N/A]",
    ],
)
def test_csv_without_header(line: str) -> None:
    group = group_of(("a.csv", f"{line}\n{line}\n"))
    assert (arches(group), group.driver) == (["sm_80"], "550.54.15")


def test_csv_of_many_hosts() -> None:
    lines = [f"gpu{n:02}: NVIDIA H100 80GB HBM3, 550.54.15, 9.0" for n in range(1, 5)]
    text = written(("all.txt", "\n".join([*lines, "gpu09: Tesla T4, 550.54.15, 7.5"]))).text
    assert "gpu[01-04]" in text
    assert "gpu09" in text
    assert text.count("[fleet.") == 2


def test_an_unknown_card_is_kept_by_its_capability() -> None:
    result = written(("a.csv", CSV.replace("A100-SXM4-80GB", "Q900 Fancy")))
    assert '"sm_80",  # NVIDIA Q900 Fancy: unknown GPU' in result.text
    assert (result.declared, result.open) == (1, 0)


def test_the_capability_of_the_input_beats_the_name() -> None:
    group = group_of(("a.csv", CSV.replace("8.0", "8.6")))
    assert arches(group) == ["sm_86"]


def test_an_ambiguous_name_with_capability_is_no_question() -> None:
    group = group_of(("a.csv", "name, compute_cap\nRTX 6000, 8.9\n"))
    assert arches(group) == ["sm_89"]


def test_an_unknown_card_without_capability_is_left_open() -> None:
    result = written(("a.xml", smi_xml("NVIDIA Q900 Fancy")))
    assert (result.declared, result.open) == (0, 1)
    assert "# Which GPUs? NVIDIA Q900 Fancy: unknown GPU" in result.text
    assert fleet_of(("a.xml", smi_xml("NVIDIA Q900 Fancy"))).groups == ()


def test_a_known_card_beside_an_unknown_one_counts() -> None:
    result = written(("a.xml", smi_xml("NVIDIA Q900 Fancy", "Tesla T4")))
    assert (result.declared, result.open) == (1, 1)
    assert "# not among them: NVIDIA Q900 Fancy" in result.text


def test_a_driver_that_cannot_know_the_card_is_left_out() -> None:
    result = written(("a.xml", smi_xml("NVIDIA GeForce RTX 5090", driver="535.54.03")))
    assert (result.declared, result.open) == (1, 1)
    assert '# driver = "535.54.03"' in result.text
    assert "is older than" in result.text


def test_a_jetson_has_no_driver_of_its_own() -> None:
    group = group_of(("a.csv", "name, driver_version\nOrin (nvgpu), 540.3.0\n"))
    assert (arches(group), group.driver) == (["sm_87"], None)
    assert group.platform == "linux-aarch64"
    assert written(("a.csv", "name, driver_version\nOrin (nvgpu), 540.3.0\n")).open == 1


def test_what_is_not_told_is_a_comment() -> None:
    lines = written(("a.xml", smi_xml("Tesla T4"))).text.splitlines()
    keys = [line.partition(" = ")[0] for line in lines if " = " in line]
    assert keys == ["gpus", "driver", "# python", "# platform", "# glibc"]
    windows = written(("a.xml", smi_xml("NVIDIA GeForce RTX 4090", driver="551.86", model="WDDM")))
    assert "# python = " in windows.text
    assert "glibc" not in windows.text
    assert "# platform" not in windows.text
    assert windows.open == 0


def test_a_short_line_is_told() -> None:
    with pytest.raises(UsageError, match="2 of 4 columns") as caught:
        written(("a.csv", CSV + "NVIDIA A100-SXM4-80GB, 550."))
    assert caught.value.line == 4


def test_the_list_of_nvidia_smi() -> None:
    lines = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n  MIG 1g.10gb Device 0: (UUID: MIG-2)\n"
    assert arches(group_of(("a.txt", lines))) == ["sm_80"]
    spread = "n1: GPU 0: Tesla T4 (UUID: GPU-1)\nn2: GPU 0: Tesla T4 (UUID: GPU-2)\n"
    assert "n[1-2]" in written(("a.txt", spread)).text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "driver is not running",
        ),
        ("Failed to initialize NVML: Driver/library version mismatch", "NVML did not start"),
        ("No devices were found\n", "found no GPU"),
        ("| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15 |\n", "for people to read"),
        ("uuid, memory.total [MiB]\nGPU-1, 81920 MiB\n", "does not know"),
        ("driver_version\n550.54.15\n", "holds no names of GPUs"),
    ],
)
def test_what_nvidia_smi_says_instead(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        written(("a.txt", text))


@pytest.mark.parametrize("prefix", ["", "n1: "])
def test_two_drivers_are_two_machines(prefix: str) -> None:
    rows = ("Tesla V100-SXM2-16GB, 470.82.01", "NVIDIA A100-SXM4-80GB, 550.54.15")
    fleet = fleet_of(("gpus.csv", "".join(f"{prefix}{row}\n" for row in rows)))
    assert [(arches(group), group.driver) for group in fleet.groups] == [
        (["sm_70"], "470.82.01"),
        (["sm_80"], "550.54.15"),
    ]


def test_a_row_without_a_driver_takes_none_of_two() -> None:
    rows = "name, driver_version\nTesla V100, 470.82.01\nTesla T4, [N/A]\nA100, 550.54.15\n"
    fleet = fleet_of(("gpus.csv", rows))
    assert {(*arches(group), group.driver) for group in fleet.groups} == {
        ("sm_70", "470.82.01"),
        ("sm_75", None),
        ("sm_80", "550.54.15"),
    }


def test_files_of_one_name_with_two_drivers_are_two_machines() -> None:
    old, new = smi_xml("Tesla T4", driver="470.82.01"), smi_xml("Tesla T4", driver="550.54.15")
    fleet = fleet_of(("a/n1.xml", old), ("b/n1.xml", new), ("c/n1.xml", old))
    assert [group.driver for group in fleet.groups] == ["470.82.01", "550.54.15"]
