"""What ``torchpin init`` asks on a terminal, and what it finds out by itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from torchpin.cli.terminal import folded
from torchpin.errors import ConfigError, UsageError
from torchpin.named import NamedTuple
from torchpin.report.style import clean

NONE = ("none", "cpu")
"""What is written where there is no GPU."""


class Value(NamedTuple):
    """One value of a node group."""

    text: str
    where: str = ""
    """Where it comes from; ``""``: a person has said so."""


class Answers(NamedTuple):
    """What is known of a node group; None where nothing is."""

    gpus: Value | None = None
    """Names with commas between, or one of ``NONE``."""
    driver: Value | None = None
    python: Value | None = None
    platform: Value | None = None
    glibc: Value | None = None


def found_out(folder: str) -> Answers:
    """Return what this machine and the files of the project tell; nothing is written.

    The Python is that of the project: ``requires-python`` or ``.python-version``, else the one
    that runs torchpin.
    """
    from torchpin.fleet.detect import detect
    from torchpin.fleet.importers.fold import fold

    (group,) = fold([detect()])
    facts = {key: Value(told.value, told.where) for key, told in group.facts if not told.doubt}
    gpus = None
    if group.gpus is not None:
        names = [gpu.written for gpu in group.gpus if gpu.written]
        if names or not group.gpus:
            gpus = Value(", ".join(names) or NONE[0], group.gpus_where)
    return Answers(
        gpus,
        facts.get("driver"),
        project_python(folder) or facts.get("python"),
        facts.get("platform"),
        facts.get("glibc"),
    )


def project_python(folder: str) -> Value | None:
    """Return the Python that the files of a project name, if it is one that a profile takes."""
    from torchpin.fleet.values import parse_pythons

    for name, read in (("pyproject.toml", _required), (".python-version", _pinned)):
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="utf-8") as file:
                text = read(file.read(1_000_000))
            if text:
                parse_pythons(text)
                return Value(text, name)
        except (OSError, ValueError, ConfigError):  # not there, or nothing to take from it
            continue
    return None


def _required(text: str) -> str:
    """Return ``requires-python``.

    Raises:
        ValueError: it is no TOML.
    """
    parser: Any = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = parser.loads(text).get("project")
    wanted = project.get("requires-python") if isinstance(project, dict) else None
    return wanted if isinstance(wanted, str) else ""


def _pinned(text: str) -> str:
    """Return major and minor of the first version in a ``.python-version``."""
    version = (text.split() or [""])[0]
    return ".".join(version.split(".")[:2])


def asked(given: Answers, found: Answers) -> Answers:
    """Return the answers of the person at the terminal to what the command line leaves open.

    An empty answer takes what stands in brackets, ``-`` leaves a value out; what no profile takes,
    alone or beside the earlier answers, is asked again.

    Raises:
        UsageError: the input ends before the last answer.
    """

    def beside(known: Answers, key: str, check: Callable[[str], None]) -> Callable[[str], None]:
        def checked(text: str) -> None:
            check(text)
            _agree(known._replace(**{key: Value(text)}))

        return checked

    known = given
    gpus = given.gpus or _ask(
        "GPUs, with commas between (V100, RTX 4090, sm_70; none: CPU only)",
        found.gpus,
        beside(known, "gpus", _gpus),
        needed=True,
    )
    known = known._replace(gpus=gpus or Value(NONE[0]))
    cpu = gpus is None or gpus.text.lower() in NONE
    if given.driver is None and not cpu:
        check = beside(known, "driver", _driver)
        known = known._replace(driver=_ask("Driver, as nvidia-smi shows it", found.driver, check))
    if given.python is None:
        question = "Python (3.11; 3.10, 3.12; or >=3.10,<3.13)"
        known = known._replace(python=_ask(question, found.python, _python))
    if given.platform is None:
        check = beside(known, "platform", _platform)
        known = known._replace(platform=_ask("Platform", found.platform, check))
    platform = known.platform
    if given.glibc is None and platform is not None and platform.text.startswith("linux"):
        same = found.platform == platform and cpu == _is_cpu(found)
        known = known._replace(glibc=found.glibc if same else None)
    return known


def further(taken: Sequence[str]) -> str:
    """Return the name of another group that the person at the terminal has; ``""`` for none.

    Args:
        taken: the names that the groups so far have.
    """
    while True:
        try:
            name = input("Another group of machines? Its name (Enter: no): ").strip()
        except EOFError:  # all that is needed is answered
            sys.stdout.write("\n")
            return ""
        if name.lower() in ("", "-", "n", "no"):
            return ""
        if name in taken:
            text = f"there is a group {clean(name)} already\n"
        elif not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            text = f"{clean(name)}: a name has letters, digits, - and _\n"
        else:
            return name
        sys.stderr.write(folded(text, sys.stderr, every=True))


def _agree(known: Answers) -> None:
    """Refuse answers that no machine can satisfy together.

    Raises:
        ConfigError: two contradict each other.
    """
    from torchpin.fleet.checks import contradictions, default_platform
    from torchpin.fleet.gpus import find_gpu
    from torchpin.fleet.model import NodeGroup
    from torchpin.fleet.values import parse_driver, parse_platform

    names = split(known.gpus.text) if known.gpus else []
    gpus = tuple(gpu for name in names for gpu in find_gpu(name))
    platform = parse_platform(known.platform.text) if known.platform else default_platform(gpus)
    driver = parse_driver(known.driver.text) if known.driver else None
    for problem in contradictions(
        NodeGroup("asked", gpus, (), platform, driver, None), lambda key: None
    ):
        raise ConfigError(problem.message.removeprefix("fleet asked: "), hint=problem.hint)


def _is_cpu(found: Answers) -> bool:
    return found.gpus is None or found.gpus.text.lower() in NONE


def _ask(
    question: str,
    default: Value | None,
    check: Callable[[str], object],
    *,
    needed: bool = False,
) -> Value | None:
    while True:
        shown = f" [{clean(default.text)}]" if default is not None else ""
        try:
            answer = input(f"{question}{shown}: ").strip()
        except EOFError:
            sys.stdout.write("\n")
            raise UsageError(
                "the answers ended: nothing is written",
                hint="Enter takes what is in [brackets]; `torchpin init --yes` asks nothing",
            ) from None
        if not answer and needed and default is None:
            continue
        if answer == "-" or (not answer and default is None):
            return None
        value = Value(answer) if answer or default is None else default
        try:
            check(value.text)
        except ConfigError as error:
            text = f"{error.message}\n  {error.hint}\n" if error.hint else f"{error.message}\n"
            sys.stderr.write(folded(text, sys.stderr, every=True))
            continue
        return value


def _gpus(text: str) -> None:
    from torchpin.fleet.gpus import find_gpu

    for name in split(text):
        find_gpu(name)


def split(text: str) -> list[str]:
    """Return the names in a list with commas; none for ``none`` and ``cpu``."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    return [] if [name.lower() for name in names] in ([NONE[0]], [NONE[1]]) else names


def _driver(text: str) -> None:
    from torchpin.fleet.values import parse_driver

    parse_driver(text)


def _python(text: str) -> None:
    from torchpin.fleet.options import versions
    from torchpin.fleet.values import parse_pythons

    parse_pythons(versions(text))


def _platform(text: str) -> None:
    from torchpin.fleet.values import parse_platform

    parse_platform(text)


def complete_names() -> None:
    """Complete the names of GPUs on the tabulator key, where Python has readline."""
    try:
        import readline
    except ImportError:  # Windows
        return
    from torchpin.fleet.tables import gpu_table

    names = sorted(gpu_table().by_name)

    def complete(text: str, state: int) -> str | None:
        begun = text.strip().lower()
        fit = [name for name in names if begun and begun in name.lower()]
        return text[: len(text) - len(text.lstrip())] + fit[state] if state < len(fit) else None

    readline.set_completer_delims(",")
    readline.set_completer(complete)
    libedit = "libedit" in (readline.__doc__ or "")  # macOS
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
