"""The console script as a process: what a user sees, and the exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import torchpin.report

ROOT = Path(__file__).parent.parent.parent
SCHEMAS = Path(torchpin.report.__file__).parent / "schemas"
BROKEN = """\
torch==2.14.0+cu124
torchvision==0.19.0+cu124
torchaudio==2.14.0+cu124
--extra-index-url https://download.pytorch.org/whl/cu124
"""
FIXED = """\
torch==2.14.0+cu126
torchvision==0.29.0+cu126
torchaudio==2.11.0+cu126
--extra-index-url https://download.pytorch.org/whl/cu126
"""
FLEET = ("--gpu", "V100", "--driver", "550.54.15", "--python", "3.11")
Result = subprocess.CompletedProcess[bytes]
Run = Callable[..., Result]


def environment(**changes: str) -> dict[str, str]:
    drop = ("NO_COLOR", "FORCE_COLOR", "TORCHPIN_DEBUG", "COLUMNS")
    kept = {key: value for key, value in os.environ.items() if key not in drop}
    return {**kept, **changes}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*args: str, stdin: bytes = b"", **env: str) -> Result:
        return subprocess.run(
            [sys.executable, "-m", "torchpin", *args],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            env=environment(**env),
            timeout=60,
        )

    return call


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.txt"
    path.write_text(BROKEN)
    return path


def text(result: Result) -> str:
    return result.stdout.decode()


def told(result: Result) -> str:
    return result.stderr.decode()


def test_the_script_is_the_module(run: Run) -> None:
    script = shutil.which("torchpin", path=str(Path(sys.executable).parent))
    assert script is not None
    done = subprocess.run([script, "--version"], capture_output=True, timeout=60)
    assert done.stdout == run("--version").stdout
    assert done.stdout.startswith(b"torchpin ")


@pytest.mark.parametrize("args", [(), ("--help",), ("-h",), ("help",)])
def test_help(run: Run, args: tuple[str, ...]) -> None:
    done = run(*args)
    assert done.returncode == 0
    assert "usage: torchpin COMMAND" in text(done)


@pytest.mark.parametrize(
    "command", ["check", "fix", "show", "resolve", "explain", "fleet", "catalog", "fleet show"]
)
def test_help_of_a_command(run: Run, command: str) -> None:
    done = run(*command.split(), "--help")
    assert (done.returncode, told(done)) == (0, "")
    assert f"usage: torchpin {command.split()[0]}" in text(done)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("chek",), "did you mean `check`?"),
        (("refresh",), "did you mean `torchpin catalog refresh`?"),
        (("verify", "--sample", "20"), "unknown option '--sample'"),
        (("--verson",), "did you mean `--version`?"),
        (("check", "--outputformat", "json"), "did you mean `--output-format`?"),
        (("check", "--output-format", "jsn"), "did you mean `json`?"),
        (("check", "requirement.txt"), "did you mean `requirements.txt`?"),
        (("check", "nowhere/at/all"), "no such file or folder: nowhere/at/all"),
        (("requirements.txt",), "did you mean `torchpin check requirements.txt`?"),
        (("check", "--select", "XX1"), "no rule begins with 'XX1'"),
        (("check", "--per-file-ignores", "TP201"), "is not PATTERN:CODES"),
        (("check", "-", "requirements.txt"), "cannot stand beside other paths"),
        (("check", "--stdin-filename", "a.txt"), "goes with - (standard input) only"),
        (("check", "--gpu", "V1000"), "V100"),
        (("check", "--statistics", "--output-format", "json"), "--statistics is text"),
        (("check", "--config", "absent.toml"), "absent.toml"),
        (("explain", "TP20l"), "did you mean `TP20"),
        (("explain", "TP999"), "run `torchpin explain` for the list"),
        (("explain", "no-kernel-imag"), "did you mean `no-kernel-image`"),
        (("inspect", ""), "The name is empty"),
        (("fleet",), "it is one of show, import, detect"),
        (("fleet", "shwo"), "did you mean `show`?"),
        (("fleet", "show"), "no fleet is declared here"),
        (("fleet", "show"), "torchpin init"),
        (("catalog", "show", "torchvison"), "did you mean `torchvision`?"),
        (("catalog", "show", "torch", "--channel", "cu1266"), "did you mean `cu126`?"),
        (("catalog", "show", "torch", "2.14.7"), "the nearest are 2.14.0, 2.14.1, 2.15.0"),
        (("resolve",), "resolve needs a fleet"),
    ],
)
def test_wrong_usage(run: Run, broken: Path, args: tuple[str, ...], words: str) -> None:
    done = run(*args)
    assert done.returncode == 2, done
    assert words in told(done)
    assert "Traceback" not in told(done)
    assert text(done) == ""


def test_the_hint_of_fleet_show_is_a_profile(run: Run, broken: Path) -> None:
    """What the messages tell to write can be written as it stands, next to settings as well."""
    profile = broken.parent / "torchpin.toml"
    for before in (None, "", 'policy = "newest"\n'):
        if before is not None:
            profile.write_text(before)
        done = run("fleet", "show")
        assert done.returncode == 2
        example = "".join(
            line[4:] + "\n" for line in told(done).splitlines() if line.startswith("    ")
        )
        profile.write_text((before or "") + example)
        shown = run("fleet", "show")
        assert (shown.returncode, told(shown)) == (0, "")
        assert "Tesla V100: sm_70" in text(shown)
        profile.unlink()


def test_a_comment_that_silences_nothing_is_told(run: Run, broken: Path) -> None:
    broken.write_text(
        "torch==2.15.0  # torchpin: ignore[TP201,TP999] why\n"
        "# torchpin: ignore[tp77]\n"
        "torchvision==0.29.2  # torchpin: ignore[TP2, TP3]\n"
    )
    done = run("check", *FLEET)
    notes = [line for line in told(done).splitlines() if "silences nothing" in line]
    assert notes == [
        "note: requirements.txt:1: no rule begins with 'TP999': it silences nothing",
        "note: requirements.txt:2: no rule begins with 'TP77': it silences nothing",
    ]
    assert "silences" not in told(run("check", "--quiet", *FLEET))


STALE = (
    'version = 1\nrevision = 3\nrequires-python = "==3.11.*"\n\n[[package]]\nname = "app"\n'
    'version = "0"\nsource = { virtual = "." }\ndependencies = [\n    { name = "torch" },\n]\n\n'
    '[package.metadata]\nrequires-dist = [{ name = "torch", specifier = ">=2.10" }]\n\n'
    '[[package]]\nname = "torch"\nversion = "2.15.0"\n'
    'source = { registry = "https://pypi.example/simple" }\nwheels = [\n'
    '    { url = "https://files.example/torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl", '
    f'hash = "sha256:{"0" * 64}", size = 1 }},\n]\n'
)


def test_a_mended_project_whose_lock_is_left_says_what_to_run(run: Run, broken: Path) -> None:
    broken.unlink()
    manifest = broken.with_name("pyproject.toml")
    manifest.write_text(
        '[project]\nname = "app"\nversion = "0"\nrequires-python = "==3.11.*"\n'
        'dependencies = ["torch>=2.10"]\n\n[tool.uv]\n'
    )
    broken.with_name("uv.lock").write_text(STALE)
    done = run("fix", "--unsafe-fixes", *FLEET)
    assert done.returncode == 1, done
    assert "cu126" in manifest.read_text()
    assert re.search(
        r"^Wrote \S*pyproject\.toml\. 2 findings will go when the lock is made anew\. "
        r"Now run `uv lock ",
        text(done),
        re.MULTILINE,
    )


def test_check_finds_and_fix_mends(run: Run, broken: Path) -> None:
    found = run("check", *FLEET)
    assert found.returncode == 1
    for code in ("TP106", "TP301", "TP101"):
        assert f"error[{code}]" in text(found)
    assert "`torchpin fix` mends 3." in text(found)

    mended = run("fix", *FLEET)
    assert mended.returncode == 0, mended
    assert broken.read_text() == FIXED
    assert "Mended 3 findings in 1 file" in text(mended)

    stamp = broken.stat().st_mtime_ns
    again = run("fix", *FLEET)
    assert again.returncode == 0
    assert "Nothing to change." in text(again)
    assert (broken.read_text(), broken.stat().st_mtime_ns) == (FIXED, stamp)
    assert run("check", *FLEET).returncode == 0


def test_diff_writes_nothing(run: Run, broken: Path) -> None:
    for command in ("check", "fix"):
        done = run(command, "--diff", *FLEET)
        assert done.returncode == 1
        assert "-torch==2.14.0+cu124\n" in text(done)
        assert "+torch==2.14.0+cu126\n" in text(done)
        assert text(done).startswith("--- a/requirements.txt\n+++ b/requirements.txt\n")
    assert broken.read_text() == BROKEN


def test_the_diff_is_a_patch(run: Run, broken: Path, tmp_path: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    patch = run("check", "--diff", *FLEET).stdout
    done = subprocess.run([git, "apply", "-"], cwd=tmp_path, input=patch, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert broken.read_text() == FIXED


def test_standard_input(run: Run, tmp_path: Path) -> None:
    found = run("check", "-", *FLEET, "--output-format", "concise", stdin=BROKEN.encode())
    assert found.returncode == 1
    assert text(found).startswith("requirements.txt:1:1: error[TP106] [*] ")
    named = run("check", "-", "--stdin-filename", "r/dev.txt", *FLEET, stdin=BROKEN.encode())
    assert " --> r/dev.txt:1:1\n" in text(named)

    fixed = run("fix", "-", *FLEET, stdin=BROKEN.replace("\n", "\r\n").encode())
    assert fixed.stdout == FIXED.replace("\n", "\r\n").encode()
    assert "mends" not in told(fixed)
    assert fixed.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_fixing_standard_input_that_needs_no_fix_gives_it_back(run: Run) -> None:
    for data in (b"", b"numpy", b"\xef\xbb\xbfnumpy\r\n", b"\xff\xfen\x00", b"caf\xe9\x00\x01"):
        done = run("fix", "-", *FLEET, stdin=data)
        assert done.stdout == data, (data, done)
        assert done.returncode in (0, 1), done


def test_without_a_fleet_a_note_says_how_to_declare_one(run: Run, broken: Path) -> None:
    done = run("check")
    assert "no fleet is declared" in told(done)
    assert "--gpu" in told(done)
    assert "note:" not in told(run("check", "--quiet"))


def test_nothing_to_read(run: Run, tmp_path: Path) -> None:
    done = run("check")
    assert done.returncode == 0
    assert "no dependency files found" in told(done)
    assert "requirements*.txt" in told(done)


def test_the_profile_is_found_named_and_ignored(run: Run, broken: Path, tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text('[fleet.old]\ngpus = ["V100"]\npython = "3.11"\n')
    broken.write_text("torch==2.11.0\n")
    codes = "--output-format=concise"
    assert "TP201" in text(run("check", codes))
    assert "TP201" not in text(run("check", codes, "--isolated"))
    (tmp_path / "other.toml").write_text('[fleet.new]\ngpus = ["A100"]\npython = "3.11"\n')
    assert "TP201" not in text(run("check", codes, "--config", "other.toml"))
    assert "TP201" not in text(run("check", codes, "--gpu", "A100", "--python", "3.11"))
    assert "old\n" in text(run("fleet", "show"))
    shown = json.loads(run("fleet", "show", "--output-format", "json").stdout)
    assert shown["groups"][0]["gpus"][0]["arch"] == "sm_70"


def test_a_wrong_profile_is_wrong_usage(run: Run, broken: Path, tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text('[fleet.old]\ngpsu = ["V100"]\n')
    done = run("check")
    assert done.returncode == 2
    assert "torchpin.toml:2" in told(done)
    assert "gpsu" in told(done)


def test_severity_and_exit_zero(run: Run, broken: Path) -> None:
    broken.write_text("torch==2.14.1\n")
    cpu = ("--gpu", "none", "--python", "3.11")
    information = run("check", *cpu, "--output-format", "concise")
    assert information.returncode == 0
    assert "TP206" in text(information)
    assert run("check", *cpu, "--severity", "info").returncode == 1
    assert run("check", *cpu, "--severity", "info", "--exit-zero").returncode == 0


def test_select_ignore_and_suppressions(run: Run, broken: Path) -> None:
    def codes(*args: str) -> set[str]:
        done = run("check", *FLEET, "--output-format", "json", *args)
        return {finding["code"] for finding in json.loads(done.stdout)["findings"]}

    assert codes() == {"TP106", "TP301", "TP101"}
    assert codes("--select", "TP1") == {"TP106", "TP101"}
    assert codes("--ignore", "TP1,TP301") == set()
    assert codes("--ignore", "tp106", "--ignore", "TP3") == {"TP101"}
    assert codes("--per-file-ignores", "req*.txt:TP1") == {"TP301"}
    broken.write_text(
        BROKEN.replace("cu124\ntorchv", "cu124  # torchpin: ignore[TP106] old\ntorchv")
    )
    assert codes() == {"TP301", "TP101"}


def test_statistics(run: Run, broken: Path) -> None:
    done = run("check", *FLEET, "--statistics")
    assert done.returncode == 1
    assert "1  TP101  [*]  no-such-version\n" in text(done)


def test_formats(run: Run, broken: Path) -> None:
    value = json.loads(run("check", *FLEET, "--output-format", "json").stdout)
    _validate("check", value)
    assert value["summary"]["errors"] == 3
    assert run("check", *FLEET, "--output-format", "github").stdout.startswith(
        b"::error file=requirements.txt,line=1,"
    )
    log = json.loads(run("check", *FLEET, "--output-format", "sarif").stdout)
    assert {result["ruleId"] for result in log["runs"][0]["results"]} == {"TP101", "TP106", "TP301"}
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert all(rule["help"]["markdown"] for rule in rules)


def test_json_of_show_resolve_and_catalog(run: Run, broken: Path) -> None:
    broken.write_text("torch==2.10.0\ntorchvision\n")
    shown = json.loads(run("show", *FLEET, "--output-format", "json").stdout)
    _validate("show", shown)
    assert [(s["package"], s["verdict"]) for s in shown["selections"]] == [
        ("torch", "runs"),
        ("torchvision", "runs"),
    ]
    resolved = run("resolve", *FLEET, "--output-format", "json")
    assert resolved.returncode == 0
    _validate("resolve", json.loads(resolved.stdout))
    listed = run("catalog", "show", "torch", "2.10.0", "--output-format", "json")
    _validate("catalog-show", json.loads(listed.stdout))
    absent = run("catalog", "show", "torch", "2.14.1", "--channel", "cu118")
    assert (absent.returncode, "no such build" in text(absent)) == (1, True)


def test_the_whole_catalog_is_valid(run: Run) -> None:
    for package in ("torch", "torchvision", "torchaudio"):
        listed = json.loads(run("catalog", "show", package, "--output-format", "json").stdout)
        _validate("catalog-show", listed)
        assert len(listed["builds"]) > 100


def test_explain(run: Run) -> None:
    listed = text(run("explain")).splitlines()
    assert any(line.startswith("TP201  error ") for line in listed)
    page = text(run("explain", "tp201"))
    assert page == text(run("explain", "no-kernel-image"))
    assert page.startswith("# TP201 no-kernel-image\n")
    assert text(run("explain", "--all")).count("\n# TP") == len(listed) - 1
    assert "\x1b[" in text(run("explain", "TP201", FORCE_COLOR="1"))


def test_colour_follows_the_environment(run: Run, broken: Path) -> None:
    assert "\x1b[" not in text(run("check", *FLEET))
    assert "\x1b[" in text(run("check", *FLEET, FORCE_COLOR="1"))
    assert "\x1b[" not in text(run("check", *FLEET, FORCE_COLOR="1", NO_COLOR="1"))
    assert "\x1b[" not in text(run("check", *FLEET, "--no-color", FORCE_COLOR="1"))


def test_a_closed_pipe_is_no_failure(broken: Path) -> None:
    broken.write_text(BROKEN * 400)
    for command in ("check", "explain --all", "catalog show torch", "--help"):
        args = command.split() + (list(FLEET) if command == "check" else [])
        process = subprocess.Popen(
            [sys.executable, "-m", "torchpin", *args],
            cwd=broken.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read().decode()
        process.stderr.close()
        process.wait(timeout=60)
        assert "Traceback" not in stderr, command
        assert "Broken" not in stderr, command
        assert process.returncode in (0, 1, 141), command


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_told(broken: Path) -> None:
    for command in (["check"], ["explain", "--all"]):
        with open("/dev/full", "wb") as full:  # noqa: PTH123
            done = subprocess.run(
                [sys.executable, "-m", "torchpin", *command],
                cwd=broken.parent,
                stdout=full,
                stderr=subprocess.PIPE,
                env=environment(),
                timeout=60,
            )
        assert done.returncode == 2
        assert b"the output cannot be written: No space left" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_closed_output_is_no_failure(broken: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m torchpin check >&- 2>&-"],
        cwd=broken.parent,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 1


def test_a_terminal_that_knows_ascii_only_ends_no_run(run: Run, broken: Path) -> None:
    broken.write_text("torch==2.11.0  # caf\u00e9 \u6f22\n", "utf-8")
    done = run("check", *FLEET, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 1
    assert b"caf\\xe9" in done.stdout


def test_an_internal_failure_says_how_to_report(run: Run, tmp_path: Path) -> None:
    plant = (
        "import sys, torchpin.engine as engine\n"
        "def broken(*a, **k): raise ValueError('boom https://u:s3cret@h.example')\n"
        "engine.check = broken\n"
        "from torchpin.cli.main import guarded\n"
        "sys.exit(guarded(['check', '.']))\n"
    )

    def call(**env: str) -> Result:
        return subprocess.run(
            [sys.executable, "-c", plant],
            cwd=tmp_path,
            capture_output=True,
            env=environment(**env),
            timeout=60,
        )

    done = call()
    assert done.returncode == 3
    assert "internal failure: ValueError: boom https://****@h.example" in told(done)
    assert "Please report it" in told(done)
    assert "Traceback" not in told(done)
    assert "Traceback" in told(call(TORCHPIN_DEBUG="1"))


def test_the_start_up_path_stays_free_of_costly_modules(broken: Path) -> None:
    broken.write_text("numpy>=2\n")
    probe = (
        "import sys\n"
        "from torchpin.cli.main import guarded\n"
        "guarded(['check', 'requirements.txt'])\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{probe}"],
        cwd=broken.parent,
        capture_output=True,
        env=environment(),
        timeout=60,
    )
    loaded = set(told(done).splitlines()[-1].split())
    costly = {
        *("argparse", "dataclasses", "logging", "importlib.metadata", "importlib.resources"),
        *("pathlib", "rich", "resolvelib", "packaging.markers", "packaging.requirements"),
        *("packaging.tags", "urllib.request", "subprocess", "inspect", "shutil"),
        *("pip_requirements_parser", "difflib"),
    }
    # What packaging itself loads differs by its version and by Python's; it is not ours to leave.
    ground = subprocess.run(
        [
            *(sys.executable, "-S", "-c"),
            f"import sys; sys.path[:0] = {sys.path!r}\n"
            "import packaging.specifiers, packaging.utils, packaging.version\n"
            "print(*sorted(sys.modules))",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "torchpin.engine" in loaded
    assert (loaded - set(ground.stdout.split())) & costly == set()


def _validate(name: str, value: Any) -> None:
    schema = json.loads((SCHEMAS / f"{name}.v1.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(value)
