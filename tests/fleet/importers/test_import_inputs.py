"""Any bytes become a profile that loads, or a clear error; host lists; encodings; bounds."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort_below
from tests.fleet.importers.inputs import (
    arches,
    facts,
    gfd,
    group_of,
    node,
    nodes,
    scontrol,
    smi_xml,
    written,
)

from torchpin.errors import UsageError
from torchpin.fleet.importers import slurm
from torchpin.fleet.importers import text as importer_text
from torchpin.fleet.importers.hosts import compress, expand
from torchpin.fleet.importers.recognise import read
from torchpin.fleet.profile import read_profile

SAMPLES = (
    smi_xml("Tesla T4", "NVIDIA Q900 Fancy"),
    "name, driver_version, compute_cap\nTesla T4, 550.54.15, 7.5\n",
    nodes(node("a", gfd("NVIDIA-L4", "8.9")), node("b")),
    scontrol("n1", "gpu:a100:4(S:0-1)") + scontrol("n2", "(null)"),
    "NODELIST GRES\nnode[001-064] gpu:a100:4(S:0-1)\n",
    json.dumps({"ansible_facts": facts()}),
    "n1 | SUCCESS => " + json.dumps({"ansible_facts": facts()}),
    json.dumps({"card0": {"Card Series": "AMD Instinct MI300X", "GFX Version": "gfx942"}}),
    json.dumps([{"gpu": 0, "asic": {"market_name": "MI300X"}}]),
)


def survives(data: bytes) -> None:
    """Fail unless the bytes give a profile that loads or an error for users."""
    try:
        result = written(("input", data))
    except UsageError as error:
        assert error.message
        assert error.path == "input"
        return
    fleet = read_profile(result.text, "torchpin.toml")
    assert len(fleet.groups) == result.declared
    assert result.declared or result.open
    assert all(char.isprintable() or char == "\n" for char in result.text)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    survives(data)


@given(st.sampled_from(SAMPLES), st.data())
def test_samples_with_damage(sample: str, data: st.DataObject) -> None:
    raw = bytearray(sample.encode())
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    survives(bytes(raw[: data.draw(st.integers(len(raw) // 2, len(raw)))]))


@given(st.sampled_from((gfd("NVIDIA-L4", "8.9"), facts())), st.data())
def test_any_value_of_a_label_or_fact(told: dict[str, object], data: st.DataObject) -> None:
    value = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.integers()))
    changed = {key: data.draw(st.one_of(st.just(old), value)) for key, old in told.items()}
    item = node("a")
    item["metadata"]["labels"] = changed
    item["metadata"]["name"] = data.draw(value)
    item["status"]["nodeInfo"]["osImage"] = data.draw(value)
    survives(json.dumps(item).encode())
    survives(json.dumps(changed).encode())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("sample", [SAMPLES[0], SAMPLES[2], SAMPLES[4]])
def test_encodings_of_a_shell(sample: str, encoding: str) -> None:
    text = sample.replace("\n", "\r\n").encode(encoding)
    assert written(("input", text)).text == written(("input", sample)).text


def test_bytes_of_a_code_page() -> None:
    text = json.dumps(facts(ansible_distribution="Größe"), ensure_ascii=False).encode("cp1252")
    assert written(("input", text), gpus=()).declared == 1


@pytest.mark.parametrize("data", [b"", b"   \n\n", b"\xff\xfe", b"\xef\xbb\xbf"])
def test_empty(data: bytes) -> None:
    with pytest.raises(UsageError, match="is empty"):
        written(("input", data))


def test_no_text() -> None:
    with pytest.raises(UsageError, match="is no text"):
        written(("input", b"\x7fELF\x02\x01\x01" + bytes(3) + b"x" * 300 + b"\0"))


def test_too_big(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer_text, "MOST_BYTES", 1000)
    with pytest.raises(UsageError, match="has more than"):
        written(("input", b" " * 1001))


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"nodes":' * 50_000, '{"a": ' + "9" * 10_000 + "}", '{"apiVersion": "v1"}'],
)
def test_json_without_end(text: str) -> None:
    with pytest.raises(UsageError):
        written(("input", text))


def test_a_big_cluster_is_bounded_work() -> None:
    items = [node(f"gpu-{n}", gfd("NVIDIA-L4", "8.9")) for n in range(5_000)]
    text = nodes(*items)
    with effort_below(60):
        assert "gpu-[0-4999]" in written(("nodes.json", text)).text


def test_like_lines_are_read_once() -> None:
    text = "name, driver_version, compute_cap\n" + "Tesla T4, 550.54.15, 7.5\n" * 300_000
    with effort_below(20):
        group = group_of(("q.csv", text))
    assert arches(group) == ["sm_75"]


@pytest.mark.parametrize(
    "many",
    [
        lambda count: "".join(scontrol(f"n{n}", "gpu:a100:4") for n in range(count)),
        lambda count: "NODELIST GRES\n" + "".join(f"n{n} gpu:a100:4\n" for n in range(count)),
        lambda count: f"NODELIST GRES\nn[0-{count - 1}] gpu:a100:4\n",
        lambda count: json.dumps(
            {"nodes": [{"name": f"n{n}", "gres": "gpu:a100:4"} for n in range(count)]}
        ),
    ],
)
def test_nodes_that_are_left_out_are_told(
    many: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "MOST_NODES", 5)
    whole = read(many(5).encode(), "nodes", None)
    assert (len(whole.machines), whole.notes) == (5, ())
    part = read(many(8).encode(), "nodes", None)
    assert len(part.machines) == 5
    assert "only the first 5 nodes are read" in part.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "name, driver_version\nTesla T4, 550.54.15\nTesla T4, 550.54.1",
        "NODELIST GRES\nn1 gpu:a100:4\nn2 gpu:a10",
        "GPU 0: Tesla T4 (UUID: GPU-1)\nGPU 1: Tesla V100 (UUI",
        scontrol("n1", "gpu:a100:4").rstrip()[:-3],
    ],
)
def test_lines_that_are_cut_off_are_told(text: str) -> None:
    assert any("the last line has no end" in note for note in read(text.encode(), "x").notes)


def test_many_kinds_of_machines_are_bounded_work() -> None:
    items = [
        node(f"n{n}", gfd(f"NVIDIA-Fancy-{n}", f"{n % 4 + 6}.0", f"550.{n % 400}.15"))
        for n in range(400)
    ]
    with effort_below(200):
        assert written(("nodes.json", nodes(*items))).declared > 100


@pytest.mark.parametrize(
    "before",
    [
        "W1130 12:00:00.000000 1234 loader.go:222] Config not found: /root/.kube/config\n",
        "[WARNING]: Invalid characters were found in group names\n",
        "Avertissement : la carte est en veille, voir https://user:s3cret@proxy.example\n\n",
    ],
)
@pytest.mark.parametrize("sample", [SAMPLES[0], SAMPLES[2], SAMPLES[7], SAMPLES[8]])
def test_words_before_the_output_do_not_matter(sample: str, before: str) -> None:
    assert written(("input", before + sample)).text == written(("input", sample)).text


@pytest.mark.parametrize("encoding", ["utf-16", "UTF-16", "windows-1252", "GB2312"])
def test_xml_that_declares_the_encoding_of_another_program(encoding: str) -> None:
    text = SAMPLES[0].replace('version="1.0" ?>', f'version="1.0" encoding="{encoding}"?>', 1)
    assert encoding in text
    assert written(("input", text.encode("utf-16"))).text == written(("input", SAMPLES[0])).text


def test_what_nvidia_smi_says_among_the_rows_is_no_gpu() -> None:
    lost = "Unable to determine the device handle for GPU0000:07:00.0: GPU is lost.  Reboot\n"
    found = read((SAMPLES[1] + lost).encode(), "q.csv")
    assert found.machines[0].gpus is not None
    assert [gpu.name for gpu in found.machines[0].gpus] == ["Tesla T4"]
    assert found.notes == ("line 3 is no GPU, but what nvidia-smi says of one",)


def test_two_outputs_in_one_file_are_told() -> None:
    with pytest.raises(UsageError) as caught:
        read((SAMPLES[7] + "\n" + SAMPLES[7]).encode(), "cards.json")
    assert "a file of its own" in caught.value.hint


def test_values_cannot_leave_their_line() -> None:
    evil = 'x"]\ndriver = "1"\n[fleet.evil]\ngpus = ["V100"] #\u202e\x1b[31m'
    item = node(evil, {"nvidia.com/gpu.product": f"Tesla-T4{evil}"}, image=f"Ubuntu 22.04 {evil}")
    result = written((f"a{evil}.json", json.dumps(item)))
    assert read_profile(result.text, "torchpin.toml").groups == ()
    assert "\x1b" not in result.text
    assert "\u202e" not in result.text


def test_another_kind_than_said() -> None:
    with pytest.raises(UsageError, match="is an output of slurm, not of kubernetes"):
        read(SAMPLES[3].encode(), "input", "kubernetes")
    found = read(b"GeForce 1, 550.54.15, 7.5\n", "input", "nvidia-smi")
    assert found.machines[0].gpus is not None


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("==============NVSMI LOG==============\n\nDriver Version : 550.54.15\n", "-q -x"),
        ("NAME    STATUS   ROLES    AGE   VERSION\nn1  Ready  <none> 1d v1.31\n", "-o json"),
        ("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n", "-o json"),
        ("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nmain* up infinite 3 idle a\n", "%G"),
        ("==== ROCm System Management Interface ====\n", "--json"),
        ("GPU: 0\n    ASIC:\n        MARKET_NAME: MI300X\n", "--asic --json"),
    ],
)
def test_forms_for_people_name_the_command_for_programs(text: str, command: str) -> None:
    with pytest.raises(UsageError) as caught:
        written(("input", text))
    assert command in caught.value.hint


@pytest.mark.parametrize("kind", ["nvidia-smi", "rocm-smi", "amd-smi", "kubernetes", "slurm"])
def test_a_kind_that_is_said_but_is_not_there(kind: str) -> None:
    for data in (b"hello\n", b"{}", b"[1]", b"<a/>"):
        with pytest.raises(UsageError):
            read(data, "input", kind)


def test_two_spellings_of_one_card_are_one_group() -> None:
    group = group_of(("a.xml", smi_xml("Tesla T4")), ("b.xml", smi_xml("NVIDIA T4")))
    assert set(arches(group)) == {"sm_75"}


@pytest.mark.parametrize(
    ("names", "pieces"),
    [
        (["node001", "node002", "node010"], ["node[001-002,010]"]),
        ([f"n{n}" for n in range(8, 12)], ["n[8-11]"]),
        (["n009", "n010", "n100", "n101"], ["n[009-010,100-101]"]),
        (["a1.example", "a2.example", "b"], ["a[1-2].example", "b"]),
        (["ip-10-0-1-5.internal", "ip-10-0-1-6.internal"], ["ip-10-0-1-[5-6].internal"]),
        (["x", "x", "y"], ["x", "y"]),
        ([], []),
    ],
)
def test_ranges(names: list[str], pieces: list[str]) -> None:
    assert compress(names) == pieces


@given(st.lists(st.from_regex(r"[a-z]{1,3}[0-9]{1,3}(\.[a-z]{1,2})?", fullmatch=True), max_size=40))
def test_ranges_and_back(names: list[str]) -> None:
    assert sorted(expand(",".join(compress(names)))) == sorted(set(names))


def test_a_list_without_end_stays_as_it_is() -> None:
    assert expand("n[1-999999999]") == ["n[1-999999999]"]
    assert expand("n[9-1],n[1-x],n[],n[1][2]") == ["n[9-1]", "n[1-x]", "n[]", "n[1][2]"]
