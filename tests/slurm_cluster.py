"""A real Slurm on this machine: a controller and several slurmd; plain files stand for GPUs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS = 60
"""The longest that a command or the start of the nodes may take."""
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


class Slurm:
    """A running cluster."""

    def __init__(self, folder: Path, nodes: Mapping[str, str]) -> None:
        self.folder = folder
        self.nodes = nodes
        self.environ = {**os.environ, "PATH": _PATH, "SLURM_CONF": str(folder / "slurm.conf")}

    def __call__(self, *command: str) -> str:
        """Return what a command of the cluster prints; CalledProcessError if it fails."""
        return subprocess.run(
            command, env=self.environ, capture_output=True, text=True, timeout=SECONDS, check=True
        ).stdout

    def start(self, *command: str) -> None:
        """Start a daemon, or skip the test."""
        done = subprocess.run(
            command, env=self.environ, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode:
            logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
            pytest.skip(f"{command[0]} does not start here: {done.stderr}{logs}")

    def start_node(self, name: str) -> None:
        self.start(tool("slurmd"), "-f", str(self.folder / "slurm.conf"), "-N", name)

    def stop_node(self, name: str) -> None:
        """End the slurmd of a node; the controller does not know of it at once."""
        _stop(self.folder / f"slurmd-{name}.pid")

    def wait_idle(self, *names: str) -> None:
        """Wait until nodes (default: all) are idle, or skip the test."""
        wanted = names or tuple(self.nodes)
        states: list[str] = []
        for _ in range(SECONDS * 2):
            states = self("sinfo", "-h", "-N", "-n", ",".join(wanted), "-o", "%N %t").split("\n")
            if {*states[:-1]} == {f"{name} idle" for name in wanted}:
                return
            time.sleep(0.5)
        pytest.skip(f"the nodes do not come up here: {states}")


def tool(name: str) -> str:
    """Return the path of a program of Slurm, or skip the test."""
    found = shutil.which(name, path=_PATH)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: slurm-wlm)")
    return found


@contextmanager
def cluster(nodes: Mapping[str, str], more: Sequence[str] = ()) -> Iterator[Slurm]:
    """Run a cluster.

    Args:
        nodes: name → gres: ``gpu:a100:2``, ``gpu:1``, ``""``.
        more: further lines of slurm.conf; all nodes are in the partition ``main``.
    """
    import pwd

    daemons = {name: tool(name) for name in ("munged", "slurmctld", "slurmd")}
    for name in ("scontrol", "sinfo", "srun"):
        tool(name)
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # short: a socket's path has 107 bytes
    folder.chmod(0o755)
    host = socket.gethostname().partition(".")[0]
    user = pwd.getpwuid(os.getuid()).pw_name
    for name in ("gpu0", "gpu1"):
        (folder / name).touch()
    (folder / "state").mkdir()
    (folder / "slurm.conf").write_text(_config(folder, host, user, nodes, more))
    (folder / "gres.conf").write_text(_gres(folder, nodes))
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    running = Slurm(folder, nodes)
    try:
        running.start(
            daemons["munged"],
            "--force",
            f"--key-file={folder}/munge.key",
            f"--socket={folder}/munge.sock",
            f"--pid-file={folder}/munge.pid",
            f"--log-file={folder}/munge.log",
            f"--seed-file={folder}/munge.seed",
        )
        running.start(daemons["slurmctld"], "-f", str(folder / "slurm.conf"))
        for name in nodes:
            running.start_node(name)
        running.wait_idle()
        yield running
    finally:
        daemons_left = [*sorted(folder.glob("slurm*.pid")), *sorted(folder.glob("munge.pid"))]
        for path in daemons_left:
            _end(path)
        for path in daemons_left:
            _stop(path)
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _config(
    folder: Path, host: str, user: str, nodes: Mapping[str, str], more: Sequence[str]
) -> str:
    lines = [
        "ClusterName=test",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={_free_port()}",
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
    for name, gres in nodes.items():
        lines.append(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={_free_port()} CPUs=1 "
            f"RealMemory=100" + (f" Gres={gres}" if gres else "")
        )
    lines.append(f"PartitionName=main Nodes={','.join(nodes)} Default=YES State=UP")
    return "\n".join([*lines, *more]) + "\n"


def _gres(folder: Path, nodes: Mapping[str, str]) -> str:
    lines = []
    for name, kind in nodes.items():
        parts = kind.split(":")
        if kind:
            files = f"File={folder}/gpu[0-1]" if parts[-1] == "2" else f"File={folder}/gpu0"
            named = f" Type={parts[1]}" if len(parts) == 3 else ""
            lines.append(f"NodeName={name} Name=gpu{named} {files}")
    return "\n".join(lines) + "\n"


def _end(pid_file: Path) -> int | None:
    """Tell the daemon that wrote its number to end; return the number, None if it has ended."""
    try:
        number = int(pid_file.read_text())
        os.kill(number, signal.SIGTERM)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return number


def _stop(pid_file: Path) -> None:
    """End the daemon that wrote its number, and wait for it."""
    number = _end(pid_file)
    if number is None:
        return
    try:
        for _ in range(100):
            os.kill(number, 0)
            time.sleep(0.1)
    except ProcessLookupError:
        return
