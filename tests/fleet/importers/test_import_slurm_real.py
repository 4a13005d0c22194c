"""A real Slurm: a controller and several slurmd on this machine; plain files stand for GPUs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fleet.importers.inputs import arches, written

from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import read_profile

pytestmark = pytest.mark.slurm
NODES = {
    "a001": "gpu:a100:2",
    "a002": "gpu:a100:2",
    "m001": "gpu:nvidia_a100_3g.20gb:1",
    "v1": "gpu:tesla_v100-pcie-16gb:1",
    "u1": "gpu:1",
    "c001": "",
}
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
_SECONDS = 60

Run = Callable[..., str]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tool(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: slurm-wlm)")
    return found


def config(folder: Path, host: str, user: str) -> str:
    lines = [
        "ClusterName=test",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={free_port()}",
        f"SlurmUser={user}",
        f"SlurmdUser={user}",
        "AuthType=auth/munge",
        "CryptoType=crypto/munge",
        f"AuthInfo=socket={folder}/munge.sock",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        f"SlurmctldLogFile={folder}/slurmctld.log",
        f"SlurmdLogFile={folder}/slurmd-%n.log",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "GresTypes=gpu",
        "ReturnToService=2",
        "MailProg=/bin/true",
        "MpiDefault=none",
        "SlurmdParameters=config_overrides",
    ]
    for name, gres in NODES.items():
        lines.append(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=1 "
            f"RealMemory=100" + (f" Gres={gres}" if gres else "")
        )
    lines.append(f"PartitionName=main Nodes={','.join(NODES)} Default=YES State=UP")
    lines.append("PartitionName=long Nodes=a001,a002 State=UP")
    return "\n".join(lines) + "\n"


def gres(folder: Path) -> str:
    lines = []
    for name, kind in NODES.items():
        parts = kind.split(":")
        if kind:
            files = f"File={folder}/gpu[0-1]" if parts[-1] == "2" else f"File={folder}/gpu0"
            named = f" Type={parts[1]}" if len(parts) == 3 else ""
            lines.append(f"NodeName={name} Name=gpu{named} {files}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def slurm() -> Iterator[Run]:
    """Start a cluster; yields a function that runs one of its commands."""
    import pwd

    daemons = {name: tool(name) for name in ("munged", "slurmctld", "slurmd")}
    for name in ("scontrol", "sinfo"):
        tool(name)
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # short: a socket's path has 107 bytes
    folder.chmod(0o755)
    environ = {**os.environ, "PATH": _PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    host = socket.gethostname().partition(".")[0]
    user = pwd.getpwuid(os.getuid()).pw_name
    for name in ("gpu0", "gpu1"):
        (folder / name).touch()
    (folder / "state").mkdir()
    (folder / "slurm.conf").write_text(config(folder, host, user))
    (folder / "gres.conf").write_text(gres(folder))
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)

    def start(*command: str) -> None:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode:
            logs = "".join(path.read_text()[-2000:] for path in folder.glob("*.log"))
            pytest.skip(f"{command[0]} does not start here: {done.stderr}{logs}")

    def run(*command: str) -> str:
        return subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=_SECONDS, check=True
        ).stdout

    try:
        start(
            daemons["munged"],
            "--force",
            f"--key-file={folder}/munge.key",
            f"--socket={folder}/munge.sock",
            f"--pid-file={folder}/munge.pid",
            f"--log-file={folder}/munge.log",
            f"--seed-file={folder}/munge.seed",
        )
        start(daemons["slurmctld"], "-f", str(folder / "slurm.conf"))
        for name in NODES:
            start(daemons["slurmd"], "-f", str(folder / "slurm.conf"), "-N", name)
        wait_for(lambda: run("sinfo", "-h", "-N", "-p", "main", "-o", "%t").split(), len(NODES))
        yield run
    finally:
        for path in sorted(folder.glob("slurm*.pid")) + sorted(folder.glob("munge.pid")):
            stop(path)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(states: Callable[[], list[str]], count: int) -> None:
    for _ in range(_SECONDS * 2):
        if states() == ["idle"] * count:
            return
        time.sleep(0.5)
    pytest.skip(f"the nodes do not come up here: {states()}")


def kinds(fleet: Fleet) -> list[list[str]]:
    return sorted(sorted(set(arches(group))) for group in fleet.groups)


def stop(pid_file: Path) -> None:
    """End the daemon that wrote its number, and wait for it."""
    number = int(pid_file.read_text())
    try:
        os.kill(number, signal.SIGTERM)
        for _ in range(100):
            os.kill(number, 0)
            time.sleep(0.1)
    except ProcessLookupError:
        return


@pytest.mark.parametrize(
    "command",
    [
        ("scontrol", "show", "nodes"),
        ("scontrol", "show", "nodes", "--oneliner"),
        ("sinfo", "-o", "%N %G"),
        ("sinfo", "-h", "-N", "-o", "%N|%G|%f"),
        ("sinfo", "-O", "nodelist:40,gres:40"),
        ("sinfo", "--json"),
        ("scontrol", "show", "nodes", "--json"),
    ],
    ids=" ".join,
)
def test_every_output_tells_the_same_fleet(slurm: Run, command: tuple[str, ...]) -> None:
    try:
        text = slurm(*command)
    except subprocess.CalledProcessError as error:
        if "--json" in command:  # Debian 12's scontrol (22.05) does not know it
            pytest.skip(f"this Slurm does not: {error.stderr.strip()}")
        raise
    result = written(("slurm.txt", text))
    fleet = read_profile(result.text, "torchpin.toml")
    assert kinds(fleet) == [[], ["sm_70"], ["sm_80"]]
    assert (result.declared, result.open) == (3, 1)  # u1 has a GPU without a type
    assert "# 3 machines" in result.text  # a001, a002 and the slice of m001
    assert "a[001-002] m001" in result.text
    if "scontrol" in command or "--json" in command:
        machine = os.uname().machine
        assert f'platform = "linux-{machine}"' in result.text


def test_the_command_itself(slurm: Run, tmp_path: Path) -> None:
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "fleet", "import", "-", "--gpu", "T4"],
        input=slurm("scontrol", "show", "nodes"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    fleet = read_profile(done.stdout, "torchpin.toml")
    assert kinds(fleet) == [[], ["sm_70"], ["sm_75"], ["sm_80"]]
