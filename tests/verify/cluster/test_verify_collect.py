"""Answers of many nodes, from lines as logs hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verify.fake_install import install

from torchpin.cli.main import CLEAN, FINDINGS, main
from torchpin.errors import UsageError
from torchpin.report.style import PLAIN
from torchpin.verify.cluster import summary
from torchpin.verify.cluster.collect import Collector, natural_order
from torchpin.verify.cluster.expected import read_expected
from torchpin.verify.cluster.model import Expected
from torchpin.verify.cluster.pods import Pod
from torchpin.verify.lines import to_line
from torchpin.verify.model import Host, HostGpu, Record, Summary, TorchBuild, Work

SCHEMAS = Path(summary.__file__).parent.parent.parent / "report" / "schemas"
GPU = HostGpu(0, "Tesla V100-SXM2-32GB", "7.0", 32768)


def host(node: str, **changes: Any) -> Host:
    made = Host(
        node,
        "3.11.7",
        "linux-x86_64",
        "2.31",
        "550.54.15",
        (GPU, GPU._replace(number=1)),
        (("torch", "2.14.1+cu126"),),
        TorchBuild("2.14.1+cu126", "12.6", ("sm_70",), "cu126"),
        "training",
    )
    return made._replace(**changes)


def work(node: str, gpu: int = 0, **changes: Any) -> Work:
    made = Work(node, gpu, "cublas", "matmul fp16", "ok", predicted="runs", agrees=True)
    return made._replace(**changes)


def broken(node: str, gpu: int = 0, **changes: Any) -> Work:
    told = {"status": "failed", "reason": "no-kernel-image", "error_code": 209, "agrees": False}
    return work(node, gpu, **{**told, "message": "no kernel image is available", **changes})


def answer(node: str, *works: Work, **changes: Any) -> list[str]:
    failed = sum(one.status == "failed" for one in works)
    status = "failed" if failed else "ok"
    records: tuple[Record, ...] = (
        host(node, **changes),
        *works,
        Summary(node, changes.get("group", "training"), status, len(works), failed),
    )
    return [to_line(record) for record in records]


def collected(lines: list[str]) -> Collector:
    collector = Collector()
    for line in lines:
        collector.feed(line)
    return collector


def statuses(collector: Collector) -> dict[str, str]:
    return {one.node: one.status for one in collector.answers()}


def text(collector: Collector) -> str:
    return summary.text(collector.answers(), PLAIN)


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[pod/torchpin-verify-abc12/verify] ",
        "2026-11-30T20:00:00.123456789Z ",
        "[pod/torchpin-verify-abc12/verify] 2026-11-30T20:00:00.123456789Z ",
        "2026-11-30T20:00:00.123456789Z stdout F ",
        "0: ",
        "n1: ",
        "warning: something{",
        "\x1b[32m",
    ],
)
@pytest.mark.parametrize("end", ["", "\r", " trailing words }"])
def test_lines_are_found_whatever_stands_around_them(prefix: str, end: str) -> None:
    lines = [f"{prefix}{line}{end}" for line in answer("n1", work("n1"))]
    mixed = ["kernel: NVRM", *lines[:1], "", "W0101 {not: ours}", '{"a": 1}', *lines[1:]]
    (one,) = collected(mixed).answers()
    assert one.status == "ok"
    assert len(one.works) == 1


def test_two_records_on_one_line() -> None:
    lines = answer("n1", work("n1"))
    assert statuses(collected([lines[0] + lines[1], lines[2]])) == {"n1": "ok"}


def test_interleaved_nodes_are_kept_apart() -> None:
    lines = [one for pair in zip(answer("n1"), answer("n2"), strict=True) for one in pair]
    assert statuses(collected(lines)) == {"n1": "ok", "n2": "ok"}


def test_an_answer_that_ends_early_is_cut_short() -> None:
    collector = collected(answer("n1", work("n1"))[:-1])
    assert statuses(collector) == {"n1": "cut-short"}
    assert "its output ends before the summary" in text(collector)


def test_a_line_that_is_cut_off_is_told() -> None:
    *lines, last = answer("n1", work("n1"))
    collector = collected([*lines, last[: len(last) // 2]])
    assert statuses(collector) == {"n1": "cut-short"}
    assert "cut off in the middle of a line" in text(collector)


def test_what_failed_is_not_outvoted_by_the_summary() -> None:
    lines = [to_line(host("n1")), to_line(broken("n1")), to_line(Summary("n1", None, "ok"))]
    assert statuses(collected(lines)) == {"n1": "failed"}


def test_a_difference_from_the_profile_fails_a_node() -> None:
    told = ("driver: 535.104 here, 550.54.15 in the profile",)
    collector = collected(answer("n1", work("n1"), differences=told))
    assert statuses(collector) == {"n1": "failed"}
    assert f"differs: {told[0]}" in text(collector)


def test_lines_of_a_later_version_say_to_upgrade() -> None:
    (first, *_) = answer("n1")
    collector = collected([answer("n1")[0], first.replace('"version": 1', '"version": 2')])
    (one,) = collector.answers()
    assert one.status == "cut-short"
    assert "it is of version 2, this torchpin reads 1: upgrade it" in one.reason


def test_the_last_run_of_a_node_counts_and_that_is_told() -> None:
    collector = collected([*answer("n1", broken("n1")), *answer("n1", work("n1"))])
    assert statuses(collector) == {"n1": "ok"}
    assert collector.notes() == ("answered more than once, the last answer counts: n1",)


def test_a_pod_that_prints_no_result_is_named_with_its_last_words() -> None:
    collector = collected(
        [
            "[pod/verify-x/verify] Traceback (most recent call last):",
            "[pod/verify-x/verify] ModuleNotFoundError: No module named 'torchpin'",
            *(f"[pod/verify-y/verify] {line}" for line in answer("n1")),
        ]
    )
    assert statuses(collector) == {"n1": "ok", "pod verify-x": "no-answer"}
    told = " ".join(text(collector).split())
    assert "its last line: ModuleNotFoundError: No module named 'torchpin'" in told


def test_like_nodes_are_one_row_and_their_names_a_range() -> None:
    lines = [line for number in range(1, 65) for line in answer(f"n{number:03}")]
    lines += answer("n065", broken("n065", 0), broken("n065", 1))
    assert text(collected(lines)) == (
        "training\n"
        "  64 nodes  ok      n[001-064]: 2 x Tesla V100-SXM2-32GB, driver 550.54.15,\n"
        "                    torch 2.14.1+cu126\n"
        "   1 node   failed  n065: 2 x Tesla V100-SXM2-32GB, driver 550.54.15, torch\n"
        "                    2.14.1+cu126\n"
        "      - GPU 0-1: cublas matmul fp16: no kernel image (CUDA error 209): no\n"
        "        kernel image is available; predicted: runs\n"
        "\n"
        "65 nodes: 64 ok, 1 failed\n"
    )


def test_failures_of_one_cause_are_one_line() -> None:
    works = [broken("n1", gpu, operation=f"op {at}") for gpu in range(8) for at in range(5)]
    told = " ".join(text(collected(answer("n1", *works))).split())
    assert "GPU 0-7: cublas op 0, cublas op 1, cublas op 2 and 2 more: no kernel image" in told


def test_what_ran_against_the_prediction_is_told() -> None:
    odd = work("n1", predicted="fails", agrees=False)
    collector = collected(answer("n1", odd))
    assert statuses(collector) == {"n1": "ok"}
    assert "GPU 0: cublas matmul fp16: ran; predicted: fails" in text(collector)


def test_groups_come_in_order_and_silence_last() -> None:
    collector = collected([*answer("z1", group="b"), *answer("y1", group=None)])
    collector.lost("a1", "Slurm has it down")
    for line in answer("x1", group="a"):
        collector.feed(line)
    heads = [line for line in text(collector).splitlines() if line[:1].strip()]
    assert heads[:-1] == ["a", "b", "no node group", "did not answer"]


def test_no_node_is_not_well() -> None:
    assert not summary.all_ok(())


def test_one_machine_as_json_and_markdown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = install(tmp_path / "none", None)
    words = ["verify", "--isolated", f"--python={python}"]
    assert main([*words, "--output-format=json"]) == FINDINGS
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (node["status"], node["work"][0]["reason"]) == ("failed", "import-failed")
    assert main([*words, "--output-format=markdown"]) == FINDINGS
    assert "torch is not installed" in capsys.readouterr().out


def test_secrets_and_control_characters_do_not_get_through(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = "cannot reach https://user:hunter2@host.example/x \x1b[31m\u202e"
    lines = answer("n1", broken("n1", message=message), notes=("https://a:hunter2@b.example",))
    (tmp_path / "log").write_text("\n".join([*lines, "password=https://u:hunter2@c.example"]))
    for form in ("text", "json", "jsonl", "markdown"):
        code = main(["verify", "--isolated", f"--output-format={form}", f"--from={tmp_path}/log"])
        told = capsys.readouterr()
        assert code == FINDINGS
        assert "hunter2" not in told.out + told.err
        assert "\x1b" not in told.out
        assert "\u202e" not in told.out


def test_secrets_that_json_escapes_are_found() -> None:
    line = to_line(host("n1", notes=("https://u:hunter2@b.example/x",)))
    collector = Collector()
    at = line.replace("@", "\\u0040")
    for escaped in (at, line.replace("://", ":\\/\\/"), at.replace("://", ":\\/\\/")):
        (record,) = collector.feed(escaped)
        assert isinstance(record, Host)
        assert record.notes == ("https://****@b.example/x",)


def test_markdown_cannot_be_marked_up_by_nodes() -> None:
    collector = collected(answer("n1", broken("n1", message="a|b <img> `x` [l](u)")))
    table = summary.markdown(collector.answers())
    row = next(line for line in table.splitlines() if "n1" in line)
    assert "a\\|b \\<img\\> \\`x\\` \\[l\\]\\(u\\)" in row


def test_json_holds_every_record() -> None:
    collector = collected(answer("n1", work("n1"), broken("n1", 1)))
    collector.lost("n2", "Slurm has it down")
    told = json.loads(summary.json_report(collector.answers()))
    first, second = told["nodes"]
    assert (first["node"], first["status"], first["group"]) == ("n1", "failed", "training")
    assert first["host"]["driver"] == "550.54.15"
    assert [one["status"] for one in first["work"]] == ["ok", "failed"]
    assert (second["host"], second["reason"]) == (None, "Slurm has it down")
    assert told["summary"] == {
        "nodes": 2,
        "ok": 0,
        "failed": 1,
        "incomplete": 0,
        "cut_short": 0,
        "no_answer": 1,
    }


def test_reports_keep_to_their_schemas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text("\n".join([*answer("n1", work("n1")), *answer("n2")[:1]]))
    (tmp_path / "nodes").write_text("n3")
    words = ["verify", "--isolated", f"--from={tmp_path}/log", f"--nodes={tmp_path}/nodes"]
    lines = json.loads((SCHEMAS / "verify.v1.json").read_text())
    report = json.loads((SCHEMAS / "verify-cluster.v1.json").read_text())
    main([*words, "--output-format=json"])
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, report)
    for node in told["nodes"]:
        for line in (node["host"], *node["work"], node["summary"]):
            if line is not None:
                jsonschema.validate(line, lines)
    main([*words, "--output-format=jsonl"])
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in printed:
        jsonschema.validate(line, lines)
    assert [line["status"] for line in printed if line["kind"] == "node"] == [
        "ok",
        "cut-short",
        "no-answer",
    ]


def test_expected_nodes_that_are_silent_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text("\n".join(answer("n1")))
    (tmp_path / "nodes").write_text("node/n1\nnode/n2\nn[3-4]\n")
    words = [f"--from={tmp_path}/log", f"--nodes={tmp_path}/nodes", "--isolated"]
    assert main(["verify", *words]) == FINDINGS
    told = capsys.readouterr().out
    assert "3 nodes  no answer  n[2-4]" in told
    assert "no line of it was found" in told


def test_a_report_that_is_read_again_says_the_same() -> None:
    first = collected([*answer("n1"), *answer("n2", work("n2"))[:-1]])
    first.lost("n3", "Slurm has it drained: fan is broken")
    first.lost("n2", "srun: error: task 0: Killed")
    lines = [*answer("n1"), *answer("n2", work("n2"))[:-1]]
    lines += summary.closing_lines(first.answers()).splitlines()
    assert text(collected(lines)) == text(first)


def test_a_list_of_nodes_may_have_long_names() -> None:
    collector = collected(answer("n1"))
    expected = (Expected("n1.example.com"), Expected("n2.example.com"))
    assert [one.node for one in collector.answers(expected)] == ["n1", "n2.example.com"]


def test_a_pod_on_no_node_stands_for_those_that_it_was_made_for() -> None:
    collector = collected(answer("n1"))
    collector.place(Pod("v-0-1", "", "its pod is Pending: Unschedulable", ("n1", "n2.example")))
    collector.place(Pod("v-1-0", "", "its pod is Pending", ("n9",)))
    expected = [Expected("n1"), Expected("n2", hostname="n2.example"), Expected("n3")]
    found = {one.node: one.reason for one in collector.answers(expected)}
    assert found == {
        "n1": "",
        "n2": "no pod is on it; v-0-1 is Pending: Unschedulable",
        "n3": "no line of it was found",
        "pod v-1-0": "its pod is Pending",
    }
    assert len(collector.answers()) == 3, "pods alone, where nobody says which nodes there are"


def test_pods_say_why_they_printed_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def pod(name: str, node: str | None, **status: Any) -> dict[str, Any]:
        field = {"key": "metadata.name", "operator": "In", "values": ["n4"]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        meant = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec: dict[str, Any] = {"nodeName": node} if node else {}
        if node is None:
            spec["affinity"] = {"nodeAffinity": meant}
        return {"kind": "Pod", "metadata": {"name": name}, "spec": spec, "status": status}

    def container(**state: Any) -> list[dict[str, Any]]:
        return [{"name": "verify", "state": state}]

    pull = {"reason": "ImagePullBackOff", "message": "cannot pull https://u:hunter2@r.example/x"}
    short = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    short["message"] = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."
    killed = {"exitCode": 137, "reason": "OOMKilled"}
    pods = [
        pod("p1", "n1", phase="Succeeded"),
        pod("p2", "n2", phase="Pending", containerStatuses=container(waiting=pull)),
        pod("p3", "n3", phase="Failed", containerStatuses=container(terminated=killed)),
        pod("p4", None, phase="Pending", conditions=[short]),
        pod("p5", "", phase="Pending", conditions=[short]),
        pod("p6", "n6", phase="Running", containerStatuses=container(running={})),
    ]
    (tmp_path / "pods").write_text(json.dumps({"kind": "List", "items": pods}))
    lines = [*(f"[pod/p1/verify] {line}" for line in answer("n1"))]
    lines += [f"[pod/p3/verify] {line}" for line in answer("n3", work("n3"))[:-1]]
    lines += ["[pod/p6/verify] Killed by a wrapper"]
    (tmp_path / "log").write_text("\n".join(lines))
    words = [f"--from={tmp_path}/log", f"--pods={tmp_path}/pods", "--isolated"]
    assert main(["verify", *words, "--output-format=json"]) == FINDINGS
    out = capsys.readouterr().out
    assert "hunter2" not in out
    told = {node["node"]: (node["status"], node["reason"]) for node in json.loads(out)["nodes"]}
    unschedulable = f"its pod is Pending: Unschedulable: {short['message']}"
    assert told == {
        "n1": ("ok", None),
        "n2": (
            "no-answer",
            "its pod is Pending: ImagePullBackOff: cannot pull https://****@r.example/x",
        ),
        "n3": ("cut-short", "its pod is Failed: OOMKilled: exit code 137"),
        "n4": ("no-answer", unschedulable),
        "n6": ("no-answer", "its pod is Running; the last that it printed: Killed by a wrapper"),
        "pod p5": ("no-answer", unschedulable),
    }
    (tmp_path / "pods").write_text('{"kind": "List", "items": []}')
    with pytest.raises(UsageError, match="holds no pod"):
        main(["verify", *words])


def test_a_profile_here_is_compared_with_nodes_that_saw_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torchpin.toml").write_text(
        '[fleet.v100]\ngpus = ["Tesla V100"]\ndriver = "550.54.15"\nplatform = "linux-x86_64"\n'
        '[fleet.t4]\ngpus = ["T4"]\nplatform = "linux-x86_64"\n'
    )
    lines = [*answer("n1", group=None), *answer("n2", group=None, driver="535.104.05")]
    (tmp_path / "log").write_text("\n".join(lines))
    words = [f"--config={tmp_path}/torchpin.toml", f"--from={tmp_path}/log"]
    assert main(["verify", *words]) == FINDINGS
    told = capsys.readouterr().out
    assert told.startswith("v100\n  1 node   ok      n1:")
    assert "differs: driver: 535.104.05 here, 550.54.15 in the profile" in told
    with pytest.raises(UsageError, match="no such group"):
        main(["verify", *words, "--group=a100"])


def test_files_of_powershell_and_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    path.write_bytes("\r\n".join(answer("n1")).encode("utf-16"))
    assert main(["verify", f"--from={path}", "--isolated"]) == CLEAN
    assert "1 node: 1 ok" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"no result\n", b"\0\xff" * 1000, b'{"version": 1}'])
def test_input_without_any_result_is_wrong_usage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="no line of"):
        main(["verify", f"--from={path}", "--isolated"])


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        main(["verify", f"--from={tmp_path}/none", "--isolated"])
    with pytest.raises(UsageError, match="is a folder"):
        main(["verify", f"--from={tmp_path}", "--isolated"])


def test_a_line_without_end_is_passed_over() -> None:
    collector = Collector()
    collector.feed('{"version":' * 200_000)
    for line in answer("n1"):
        collector.feed(line)
    assert statuses(collector) == {"n1": "ok"}


@given(st.lists(st.text(), max_size=6), st.integers(0, 400))
def test_any_text_between_and_any_cut(noise: list[str], cut: int) -> None:
    lines = answer("n1", work("n1"))
    whole = "\n".join([*noise, *lines])
    collector = Collector()
    for line in whole[: max(0, len(whole) - cut)].split("\n"):
        collector.feed(line)
    found = {one.node: one for one in collector.answers()}
    if not cut:
        assert found["n1"].status == "ok"
    assert all(one.status in ("ok", "cut-short", "no-answer") for one in found.values())
    text(collector)


def test_numbers_in_names_are_ordered_as_numbers() -> None:
    names = ["n10", "n2", "a", "n1-3", "n1"]
    assert sorted(names, key=natural_order) == ["a", "n1", "n1-3", "n2", "n10"]


def test_kubernetes_nodes_without_gpu_are_expected_only_where_none_has_one() -> None:
    def nodes(*gpus: str) -> bytes:
        items = [
            {
                "kind": "Node",
                "metadata": {"name": f"n{at}"},
                "status": {"capacity": {"nvidia.com/gpu": number}},
            }
            for at, number in enumerate(gpus)
        ]
        return json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": items}).encode()

    assert [one.name for one in read_expected(nodes("0", "4"), "f")] == ["n1"]
    assert [one.name for one in read_expected(nodes("0", "0"), "f")] == ["n0", "n1"]


@pytest.mark.parametrize(
    "text",
    [
        "NAME   STATUS   ROLES    AGE\nn1   Ready   <none>   1d\n",
        "apiVersion: v1\nusers:\n- name: me\n  user: {token: hunter2}\n",
        "n1\nhttps://me:hunter2@n2/\n",
    ],
)
def test_what_is_no_list_of_nodes_is_not_taken_for_one(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_expected(text.encode(), "nodes.txt")
    assert caught.value.message == "holds a word that is no name of a node"
    assert "hunter2" not in caught.value.hint
