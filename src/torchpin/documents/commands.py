"""Commands to what they install: follows pip, uv and pipx, and what runs them, in a script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from posixpath import normpath

from torchpin.documents.atoms import Atom, Source, cut, text_of
from torchpin.documents.command_options import Option, parse
from torchpin.documents.command_parts import PartMaker
from torchpin.documents.command_words import (
    digits_of,
    module_at,
    program_of,
    python_in,
    value_at,
    with_requirements,
)
from torchpin.documents.installers import (
    ENV,
    PIP,
    PIPX,
    PIPX_RUN,
    PLAIN,
    RUN,
    SUDO,
    UV,
    UV_ADD,
    UV_RUN,
    UV_TOOL,
    Grammar,
)
from torchpin.documents.parts import Part
from torchpin.documents.shell import read_script
from torchpin.documents.shell_commands import Command, Written
from torchpin.documents.shell_words import Text
from torchpin.patterns import regex

_PIP = regex(r"pip(?:-?\d+(?:\.\d+)?)?(?:\.exe)?")
_PYTHON = regex(r"(?:python|pypy)(\d+(?:\.\d+)?t?)?(?:\.exe)?")
_WRAPPERS: Mapping[str, Grammar] = {
    "sudo": SUDO,
    "doas": SUDO,
    "env": ENV,
    **dict.fromkeys(
        ("time", "nohup", "exec", "command", "builtin", "nice", "ionice", "timeout", "eatmydata"),
        PLAIN,
    ),
}
_RUNNERS = frozenset(("poetry", "pipenv", "pdm", "hatch", "rye"))
_CONDAS = frozenset(("conda", "mamba", "micromamba"))
_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash"))
_DEEPEST = 4
_ENVIRONMENT = regex(r"[^$]*/envs/([^/$]+)|(?:[^$]*/)?\.?v?env|[^$]*venv[^/$]*")
"""Folders of virtual environments and of conda's."""
_ASSIGNMENT = regex(r"[A-Za-z_]\w*=")


class Reader(PartMaker):
    """Follows commands, and makes a part of each that installs."""

    def read(self, commands: Iterable[Command]) -> list[Part]:
        """Take in some commands; return the parts so far."""
        branch = ""
        folder = self.folder
        for command in commands:
            if command.branch != branch:  # what a branch or subshell changes ends with it
                branch = command.branch
                self.folder = folder if branch else self.folder
            self.command(command, 0)
            if not branch:
                folder = self.folder
        return self.parts

    def fresh(self) -> None:
        """Begin a shell of its own: the folder and the activated environment are forgotten."""
        self.folder = self.setting.folder
        self.activated = ""

    # -- which program

    def command(self, command: Command, depth: int) -> None:
        """Take in one command."""
        if command.written is not None:
            self.write_file(command, command.written)
        words = command.words
        environment = ""
        environ = dict(command.environ)
        at = 0
        while at < len(words):
            program = program_of(words[at])
            if program in _WRAPPERS:
                at = parse(words, _WRAPPERS[program], at + 1).rest
                while at < len(words) and _ASSIGNMENT.match(words[at].value):
                    name, _, _ = words[at].value.partition("=")
                    environ[name] = cut(words[at].atoms, len(name) + 1)
                    at += 1
                if program == "timeout":
                    at += 1
            elif program in _CONDAS and value_at(words, at + 1) == "run":
                parsed = parse(words, RUN, at + 2)
                names = [o.value for o in parsed.options if o.name in ("--name", "--prefix")]
                if names and names[-1] is not None:
                    environment = f"conda {text_of(names[-1])}"
                at = parsed.rest
            elif program in _RUNNERS and value_at(words, at + 1) == "run":
                at += 2
            else:
                break
        if at >= len(words):
            return
        command = command._replace(words=words[at:], environ=environ)
        self.program(command, environment, depth)

    def write_file(self, command: Command, written: Written) -> None:
        """Take in ``cat > requirements.txt <<EOF``."""
        if not written.path.known or self.folder is None:
            return
        path = normpath(f"{self.folder or '.'}/{written.path.value}")
        unsure = command.unsure
        lines = written.lines
        if not written.literal and any(set("$`\\") & set(one.value) for one in lines):
            lines = tuple(one for one in lines if not set("$`\\") & set(one.value))
            unsure = f"lines of {written.path.value[:40]} hold variables"
        if written.more:
            if path not in self.files:
                return
            lines, unsure = (*self.files[path][0], *lines), self.files[path][1] or unsure
        self.files[path] = (lines, unsure)

    def program(self, command: Command, environment: str, depth: int) -> None:
        """Take in a command without what stands in front of its program."""
        words = command.words
        program = program_of(words[0])
        environment = environment or _own_environment(words[0].value)
        if program in _SHELLS:
            self.nested(command, depth)
        elif program == "eval":
            self.evaluated(command, depth)
        elif program in ("cd", "pushd"):
            self.change_folder(words)
        elif program in ("source", "."):
            path = value_at(words, 1)
            if path.endswith(("/activate", "\\activate")):
                self.activated = path
        elif program in _CONDAS:
            self.conda(words)
        elif program == "uv":
            self.uv(command, 1, environment)
        elif program == "uvx":
            self.uv_run(command, 1, tool=True)
        elif program == "pipx":
            self.pipx(command)
        elif _PIP.fullmatch(program):
            self.pip(command, 1, environment, digits_of(program, "pip"))
        elif _PYTHON.fullmatch(program) or self.runs_module(words):
            self.python(command, environment)
        elif not words[0].known and value_at(words, 1) == "install" and self.says_pip(words[0]):
            self.pip(command, 1, environment, None)

    def says_pip(self, word: Text) -> bool:
        """True for ``$(which pip)`` and ``$PIP``."""
        return "pip" in self.setting.file.text[word.span.start : word.span.end].lower()

    def runs_module(self, words: Sequence[Text]) -> bool:
        """True for ``$PYTHON -m pip``."""
        return (
            not words[0].known
            and value_at(words, 1) == "-m"
            and value_at(words, 2) in ("pip", "uv")
        )

    def nested(self, command: Command, depth: int) -> None:
        """Take in ``bash -c 'commands'``."""
        words = command.words
        for number, word in enumerate(words[1:], 1):
            value = word.value
            if re.fullmatch(r"-[a-z]*c", value) and number + 1 < len(words) and depth < _DEEPEST:
                inside = Source(words[number + 1].atoms)
                for one in read_script(inside, command.environ):
                    self.command(
                        one._replace(
                            branch=command.branch or one.branch,
                            unsure=command.unsure or one.unsure,
                        ),
                        depth + 1,
                    )
                return
            if not value.startswith("-"):
                return

    def evaluated(self, command: Command, depth: int) -> None:
        """Take in ``eval "$COMMANDS"``: its words, one behind the other, are a script."""
        if depth >= _DEEPEST:
            return
        atoms: list[Atom] = []
        for word in command.words[1:]:
            atoms += (*word.atoms, Atom(" ", word.span.end, word.span.end, False))
        for one in read_script(Source(atoms), command.environ):
            unsure = command.unsure or one.unsure
            self.command(
                one._replace(branch=command.branch or one.branch, unsure=unsure), depth + 1
            )

    def change_folder(self, words: Sequence[Text]) -> None:
        """Take in ``cd``."""
        if len(words) != 2 or not words[1].known or self.folder is None:
            self.folder = None if len(words) > 1 else self.folder
            return
        path = words[1].value
        if path.startswith(("/", "~", "-")):
            self.folder = None
        else:
            self.folder = f"{self.folder}/{path}" if self.folder else path

    def conda(self, words: Sequence[Text]) -> None:
        """Take in ``conda create`` and ``conda activate``."""
        action = value_at(words, 1)
        if action == "activate":
            self.activated = f"conda {value_at(words, 2)}"
        elif action in ("create", "install") or (
            action == "env" and value_at(words, 2) == "create"
        ):
            name = ""
            python = None
            rest = list(words[2:])
            for number, word in enumerate(rest):
                value = word.value
                if value in ("-n", "--name", "-p", "--prefix") and number + 1 < len(rest):
                    name = f"conda {rest[number + 1].value}"
                match = re.fullmatch(r"python=+(\d+\.\d+)(?:\.\d+|\.?\*)?(?:=.*)?", value)
                python = match[1] if match is not None else python
            if python is not None:
                self.pythons[name or self.activated] = python

    def python(self, command: Command, environment: str) -> None:
        """Take in ``python -m pip`` and ``python -m venv``."""
        words = command.words
        at = module_at(words)
        if at < 0:
            return
        name = words[at - 1].value.removeprefix("-m") if at else ""
        match = _PYTHON.fullmatch(program_of(words[0]))
        version = match[1] if match is not None and match[1] and "." in match[1] else None
        if name == "pip":
            self.pip(command, at, environment, version)
        elif name == "uv":
            self.uv(command, at, environment)
        elif name == "pipx":
            self.pipx(command._replace(words=words[at - 1 :]))
        elif name in ("venv", "virtualenv") and version is not None:
            arguments = parse(words, PLAIN, at)
            if arguments.rest < len(words):
                self.pythons[f"{words[arguments.rest].value}/bin/activate"] = version

    # -- what it installs

    def pip(self, command: Command, at: int, environment: str, python: str | None) -> None:
        """Take in the words behind ``pip``."""
        words = command.words
        before = parse(words, PIP._replace(stops=True), at)
        if value_at(words, before.rest) != "install":
            return
        parsed = parse(words, PIP, before.rest + 1)
        parsed = parsed._replace(options=[*before.options, *parsed.options])
        environment = _named_environment(parsed.options) or environment
        self.add(command, parsed, "pip", environment=environment, python=python)

    def uv(self, command: Command, at: int, environment: str) -> None:
        """Take in the words behind ``uv``."""
        words = command.words
        before = parse(words, UV._replace(stops=True), at)
        at = before.rest
        action = value_at(words, at)
        second = value_at(words, at + 1)
        if action == "pip" and second in ("install", "sync"):
            parsed = parse(words, UV, at + 2)
            if second == "sync":  # its words are files
                files = [Option("--requirements", one.atoms, one.span) for one in parsed.arguments]
                parsed = parsed._replace(options=[*parsed.options, *files], arguments=[])
            parsed = parsed._replace(options=[*before.options, *parsed.options])
            environment = _named_environment(parsed.options) or environment
            self.add(command, parsed, "uv", environment=environment)
        elif action == "add":
            parsed = parse(words, UV_ADD, at + 1)
            why = "uv add follows the indexes and sources of the project file, too"
            if any(option.name == "--script" for option in parsed.options):
                why = "uv add follows the indexes of the script's own block, too"
            self.add(command, parsed, "uv", environment="+", why=why)
        elif action == "tool" and second == "install":
            parsed = parse(words, UV_TOOL, at + 2)
            self.add(command, with_requirements(parsed), "uv", environment="+")
        elif action == "tool" and second == "run":
            self.uv_run(command, at + 2, tool=True)
        elif action == "run":
            self.uv_run(command, at + 1, tool=False)
        elif action == "venv":
            parsed = parse(words, UV, at + 1)
            for option in parsed.options:
                if option.name == "--python" and option.value is not None:
                    python = python_in(text_of(option.value))
                    if python is not None:
                        self.pythons[""] = python
                        name = parsed.arguments[0].value if parsed.arguments else ".venv"
                        self.pythons[f"{name}/bin/activate"] = python

    def uv_run(self, command: Command, at: int, *, tool: bool) -> None:
        """Take in ``uv run --with``, ``uvx --with`` and what they run."""
        words = command.words
        parsed = parse(words, UV_RUN, at)
        tail = max((option.span.end for option in parsed.options), default=-1)
        own = with_requirements(parsed)
        if tool and not any(option.name == "--from" for option in parsed.options):
            own.arguments.extend(words[parsed.rest : parsed.rest + 1])
        if own.arguments or any(option.name == "--with-requirements" for option in own.options):
            why = None if tool else "uv run may add the project's own dependencies"
            self.add(command, own, "uv", environment="+", why=why, options_at=tail)
        if not tool and parsed.rest < len(words):
            rest = command._replace(words=words[parsed.rest :])
            self.command(rest, _DEEPEST)

    def pipx(self, command: Command) -> None:
        """Take in the words behind ``pipx``."""
        words = command.words
        action = value_at(words, 1)
        if action == "install":
            parsed = parse(words, PIPX, 2)
        elif action == "inject":
            parsed = parse(words, PIPX, 2)
            parsed = parsed._replace(arguments=parsed.arguments[1:])
        elif action == "run":
            parsed = parse(words, PIPX_RUN, 2)
            spec = [o for o in parsed.options if o.name in ("--spec", "--with")]
            parsed = parsed._replace(
                arguments=[Text(one.value, one.span) for one in spec if one.value is not None]
            )
        else:
            return
        environment = f"pipx {value_at(words, 2)}" if action == "inject" else "+"
        options = list(parsed.options)
        for option in parsed.options:
            if option.name == "--pip-args" and option.value is not None:
                for inner in read_script(Source((_word_atom("pip "), *option.value))):
                    options += parse(inner.words, PIP, 1).options
        parsed = parsed._replace(options=options)
        self.add(command, parsed, "pip", environment=environment, options_at=-1)


def _own_environment(path: str) -> str:
    """Return the environment that a program is called in by its path: a virtual one by its
    ``activate``, as ``/opt/venv/bin/pip``; one of conda by its name.

    A Python elsewhere may be the one of the system.
    """
    folder = path.rpartition("/bin/")[0]
    match = _ENVIRONMENT.fullmatch(folder)
    if match is None:
        return ""
    return f"conda {match[1]}" if match[1] else f"{folder}/bin/activate"


def _named_environment(options: Iterable[Option]) -> str:
    """Return the environment that ``--python`` names: its folder, or the Python in it."""
    for option in options:
        if option.name == "--python" and option.value:
            text = text_of(option.value)
            return _own_environment(text if "/bin/" in text else f"{text}/bin/")
    return ""


def _word_atom(text: str) -> Atom:
    return Atom(text, 0, 0, False)
