"""Commands to what they install: argument vectors of pip, uv and pipx as parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from posixpath import normpath

from torchpin.documents.atoms import Atom, Source, Word, cut, span_of, text_of
from torchpin.documents.base import (
    Document,
    Include,
    IndexLine,
    OptionText,
    Problem,
    Span,
    line_starts,
    position,
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
from torchpin.documents.parts import Image, Part, part_of, pieces
from torchpin.documents.shell import Command, Text, Written, read_script
from torchpin.named import NamedTuple
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
_PYTHON_IN_WORD = regex(r"(?:cpython@?-?|python@?-?)?(\d+\.\d+t?)(?:\.\d+)?(?:-.*)?")
_ASSIGNMENT = regex(r"[A-Za-z_]\w*=")
_UPGRADES = frozenset(
    (
        *("--upgrade", "-U", "--force-reinstall", "--ignore-installed", "-I"),
        *("--reinstall", "--exact", "--upgrade-package"),
    )
)
_GLOB = regex(r"[*?].*\.(?:whl|zip|gz)\Z|[*?].*/|/.*[*?]")
"""A pattern of file names, which the shell replaces."""
_LIST = regex(r",(?=[A-Za-z])")
"""Where one requirement of ``--with`` ends: no version begins with a letter."""


class Option(NamedTuple):
    """An option of a command."""

    name: str
    """Long form."""
    value: Word | None
    span: Span


class Parsed(NamedTuple):
    """What a program makes of its words."""

    options: list[Option]
    arguments: list[Text]
    rest: int
    """Index of the word at which the program's own options end."""


class Setting(NamedTuple):
    """Where a command stands: what the file around it has chosen."""

    file: Document
    syntax: str = "shell"
    prefix: str = ""
    """Before ``line 12`` in the names of parts."""
    environment: str = "script"
    python: str | None = None
    platform: str | None = None
    image: Image | None = None
    uncertain: str | None = None
    folder: str = ""
    """Working folder, below that of the file."""


def parse(words: Sequence[Text], grammar: Grammar, start: int = 0) -> Parsed:
    """Return the options and other words from ``words[start]`` on."""
    options: list[Option] = []
    arguments: list[Text] = []
    at = start
    while at < len(words):
        word = words[at]
        value = word.value
        if value == "--":
            at += 1
            if grammar.stops:
                return Parsed(options, arguments, at)
            arguments += words[at:]
            break
        if value.startswith("--"):
            at = _long(words, at, grammar, options)
        elif value.startswith("-") and len(value) > 1:
            at = _short(words, at, grammar, options)
        elif grammar.stops:
            return Parsed(options, arguments, at)
        else:
            arguments.append(word)
            at += 1
    return Parsed(options, arguments, len(words))


def _long(words: Sequence[Text], at: int, grammar: Grammar, options: list[Option]) -> int:
    word = words[at]
    name, equals, _ = word.value.partition("=")
    known = grammar.values | grammar.flags
    if grammar.flags and name not in known:
        near = [one for one in known if one.startswith(name)]
        name = near[0] if len(near) == 1 else name
    if equals:
        options.append(Option(name, cut(word.atoms, word.value.index("=") + 1), word.span))
        return at + 1
    if name in grammar.values and at + 1 < len(words):
        following = words[at + 1]
        span = Span(word.span.start, max(following.span.end, word.span.end))
        options.append(Option(name, following.atoms, span))
        return at + 2
    options.append(Option(name, None, word.span))
    return at + 1


def _short(words: Sequence[Text], at: int, grammar: Grammar, options: list[Option]) -> int:
    word = words[at]
    value = word.value
    for index in range(1, len(value)):
        name = grammar.short.get(value[index])
        if name is None:
            options.append(Option(f"-{value[index]}", None, word.span))
            continue
        if index + 1 < len(value):
            begin = index + 2 if value[index + 1] == "=" else index + 1
            options.append(Option(name, cut(word.atoms, begin), word.span))
        elif at + 1 < len(words):
            following = words[at + 1]
            span = Span(word.span.start, max(following.span.end, word.span.end))
            options.append(Option(name, following.atoms, span))
            return at + 2
        return at + 1
    return at + 1


class Reader:
    """Follows commands, and makes a part of each that installs."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.base = setting.environment
        self.activated = ""
        """The virtual or conda environment that was activated last."""
        self.pythons: dict[str, str] = {}
        """Environment → Python, as commands have made it."""
        self.folder: str | None = setting.folder
        self.names: dict[str, int] = {}
        self.parts: list[Part] = []
        self.files: dict[str, tuple[tuple[Text, ...], str | None]] = {}
        """Files that the script writes itself: their lines, and why these may be others."""

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
            program = _base(words[at])
            if program in _WRAPPERS:
                at = parse(words, _WRAPPERS[program], at + 1).rest
                while at < len(words) and _ASSIGNMENT.match(words[at].value):
                    name, _, _ = words[at].value.partition("=")
                    environ[name] = cut(words[at].atoms, len(name) + 1)
                    at += 1
                if program == "timeout":
                    at += 1
            elif program in _CONDAS and _value(words, at + 1) == "run":
                parsed = parse(words, RUN, at + 2)
                names = [o.value for o in parsed.options if o.name in ("--name", "--prefix")]
                if names and names[-1] is not None:
                    environment = f"conda {text_of(names[-1])}"
                at = parsed.rest
            elif program in _RUNNERS and _value(words, at + 1) == "run":
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
        program = _base(words[0])
        if program in _SHELLS:
            self.nested(command, depth)
        elif program == "eval":
            self.evaluated(command, depth)
        elif program in ("cd", "pushd"):
            self.change_folder(words)
        elif program in ("source", "."):
            path = _value(words, 1)
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
            self.pip(command, 1, environment, _digits(program, "pip"))
        elif _PYTHON.fullmatch(program) or self.runs_module(words):
            self.python(command, environment)
        elif not words[0].known and _value(words, 1) == "install" and self.says_pip(words[0]):
            self.pip(command, 1, environment, None)

    def says_pip(self, word: Text) -> bool:
        """True for ``$(which pip)`` and ``$PIP``."""
        return "pip" in self.setting.file.text[word.span.start : word.span.end].lower()

    def runs_module(self, words: Sequence[Text]) -> bool:
        """True for ``$PYTHON -m pip``."""
        return not words[0].known and _value(words, 1) == "-m" and _value(words, 2) in ("pip", "uv")

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
        action = _value(words, 1)
        if action == "activate":
            self.activated = f"conda {_value(words, 2)}"
        elif action in ("create", "install") or (action == "env" and _value(words, 2) == "create"):
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
        at = _module_at(words)
        if at < 0:
            return
        name = words[at - 1].value.removeprefix("-m") if at else ""
        match = _PYTHON.fullmatch(_base(words[0]))
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
        if _value(words, before.rest) != "install":
            return
        parsed = parse(words, PIP, before.rest + 1)
        parsed = parsed._replace(options=[*before.options, *parsed.options])
        self.add(command, parsed, "pip", environment=environment, python=python)

    def uv(self, command: Command, at: int, environment: str) -> None:
        """Take in the words behind ``uv``."""
        words = command.words
        before = parse(words, UV._replace(stops=True), at)
        at = before.rest
        action = _value(words, at)
        second = _value(words, at + 1)
        if action == "pip" and second in ("install", "sync"):
            parsed = parse(words, UV, at + 2)
            if second == "sync":  # its words are files
                files = [Option("--requirements", one.atoms, one.span) for one in parsed.arguments]
                parsed = parsed._replace(options=[*parsed.options, *files], arguments=[])
            parsed = parsed._replace(options=[*before.options, *parsed.options])
            self.add(command, parsed, "uv", environment=environment)
        elif action == "add":
            parsed = parse(words, UV_ADD, at + 1)
            why = "uv add follows the indexes and sources of the project file, too"
            if any(option.name == "--script" for option in parsed.options):
                why = "uv add follows the indexes of the script's own block, too"
            self.add(command, parsed, "uv", environment="+", why=why)
        elif action == "tool" and second == "install":
            parsed = parse(words, UV_TOOL, at + 2)
            self.add(command, _with(parsed), "uv", environment="+")
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
        own = _with(parsed)
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
        action = _value(words, 1)
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
        environment = f"pipx {_value(words, 2)}" if action == "inject" else "+"
        options = list(parsed.options)
        for option in parsed.options:
            if option.name == "--pip-args" and option.value is not None:
                for inner in read_script(Source((_word_atom("pip "), *option.value))):
                    options += parse(inner.words, PIP, 1).options
        parsed = parsed._replace(options=options)
        self.add(command, parsed, "pip", environment=environment, options_at=-1)

    def add(
        self,
        command: Command,
        parsed: Parsed,
        client: str,
        *,
        environment: str = "",
        python: str | None = None,
        why: str | None = None,
        options_at: int | None = None,
    ) -> None:
        """Make a part of what a command installs."""
        setting = self.setting
        writer = _Writer(setting.file, command, client, self.folder)
        for option in parsed.options:
            writer.option(option)
        writer.environment(command.environ)
        lines = [(word, pieces(_places(word.atoms), word.span)) for word in parsed.arguments]
        usable = [line for word, line in lines if _requirement(word)]
        made = [
            one
            for one in writer.includes
            if not one.constraint and normpath(one.path) in self.files
        ]
        for include in made:
            own, doubt = self.files[normpath(include.path)]
            own_lines = [(one, pieces(_places(one.atoms), one.span)) for one in own]
            usable += [line for _, line in own_lines]
            lines += own_lines
            why = why or doubt
        writer.includes = [one for one in writer.includes if one not in made]
        odd = [word.value for word in parsed.arguments if not word.known and not _requirement(word)]
        line = position(line_starts(setting.file.text), command.span.start).line
        name = f"{setting.prefix}line {line}"
        self.names[name] = self.names.get(name, 0) + 1
        if self.names[name] > 1:
            name = f"{name} ({self.names[name]})"
        where = self.base
        if environment == "+":
            where = f"{self.base}#{name}"
        else:
            active = environment or self.activated
            if not active and client == "uv" and not _system(command.environ, parsed):
                active = ".venv"  # what uv pip looks for unless told of the system
            where = f"{self.base}#{active.replace('/', ':')}" if active else self.base
            if command.branch:
                where = f"{where}/{command.branch}"
        active = environment or self.activated
        chosen = python or writer.python or self.pythons.get(active) or setting.python
        unsure = setting.uncertain or command.unsure or why
        if odd and unsure is None:
            unsure = f"it also installs what {odd[0][:40]} holds, which is not known"
        span = Span(command.span.start, command.span.end)
        part = part_of(
            setting.file, usable, name=name, span=span, syntax=setting.syntax, client=client
        )
        broken = {line.line_span for word, line in lines if _in_pieces(word.atoms)}
        document = part.document._replace(
            declarations=tuple(
                one._replace(from_variable=True) if one.line_span in broken else one
                for one in part.document.declarations
            ),
            indexes=(*writer.indexes(), *part.document.indexes),
            includes=(*writer.includes, *part.document.includes),
            options=(*writer.options, *part.document.options),
        )
        end = max(word.span.end for word in command.words)
        at: int | None = end if options_at is None else options_at
        if at is not None and at < 0:
            at = None
        self.parts.append(
            part._replace(
                document=document,
                options_at=at,
                python=chosen,
                platform=writer.platform or setting.platform,
                image=setting.image,
                torch_backend=writer.torch_backend,
                backend=writer.backend,
                uncertain=unsure,
                command=True,
                environment=where,
                upgrade=writer.upgrade,
                words=(
                    *((line.line_span, word.atoms) for word, line in lines),
                    *writer.words,
                ),
                slips=tuple(
                    Problem(
                        f"the shell takes {slip.text!r} for a redirection to a file: "
                        f"{slip.before.value} comes in any version; quote the requirement",
                        Span(slip.before.span.start, slip.span.end),
                        "redirect",
                    )
                    for slip in command.slips
                ),
            )
        )


class _Writer:
    """Turns the options of one command into index lines, includes and settings."""

    def __init__(self, file: Document, command: Command, client: str, folder: str | None) -> None:
        self.file = file
        self.command = command
        self.client = client
        self.folder = folder
        self.lines: list[tuple[int, IndexLine]] = []
        self.includes: list[Include] = []
        self.options: list[OptionText] = []
        self.words: list[tuple[Span, Word]] = []
        self.python: str | None = None
        self.platform: str | None = None
        self.torch_backend: str | None = None
        self.backend: Word = ()
        self.upgrade = False
        self.given: set[str] = set()

    def indexes(self) -> tuple[IndexLine, ...]:
        """Return the index lines, in the client's order of priority."""
        return tuple(line for _, line in sorted(self.lines, key=lambda one: one[0]))

    def option(self, option: Option) -> None:
        """Take in an option."""
        name, value = option.name, option.value
        text = text_of(value) if value is not None else ""
        if name in _UPGRADES:
            self.upgrade = True
        elif name == "--no-index":
            self.index("--no-index", (), option.span, 0)
        elif name == "--pre" or (name == "--prerelease" and text == "allow"):
            self.options.append(OptionText("--pre", None, option.span, None))
        elif value is None:
            return
        elif name in ("--index-url", "--pypi-url", "--default-index"):
            self.index("--index-url", value, option.span, 1)
        elif name == "--index":
            for one in _split(value, " "):
                self.index("--extra-index-url", one, option.span, 1)
        elif name == "--extra-index-url":
            for one in _split(value, " "):
                self.index("--extra-index-url", one, option.span, 2)
        elif name == "--find-links":
            for one in _split(value, " ," if self.client == "uv" else " "):
                self.index("--find-links", one, option.span, 3)
        elif name in ("--requirement", "--requirements", "--with-requirements"):
            for one in _split(value, "," if self.client == "uv" else ""):
                self.include(one, option.span, constraint=False)
        elif name in ("--constraint", "--constraints"):
            for one in _split(value, " " if self.client == "uv" else ""):
                self.include(one, option.span, constraint=True)
        elif name in ("--no-binary", "--only-binary"):
            self.options.append(OptionText(name, text, option.span, span_of(value)))
        elif name == "--torch-backend":
            self.torch_backend, self.backend = text, value
        elif name in ("--python", "--python-version"):
            self.python = python_in(text) or self.python
        elif name in ("--platform", "--python-platform"):
            self.platform = platform_in(text) or self.platform
        self.given.add(name)

    def environment(self, environ: Mapping[str, Word]) -> None:
        """Take in variables of the environment; options win over them."""
        given = self.given
        if self.client == "pip":
            if not {"--index-url", "--pypi-url"} & given:
                self.variable(environ, "PIP_INDEX_URL", "--index-url", 0)
            # pip adds the options to what the variable holds
            self.variable(environ, "PIP_EXTRA_INDEX_URL", "--extra-index-url", 1)
            self.variable(environ, "PIP_FIND_LINKS", "--find-links", 1)
            self.constraint(environ, "PIP_CONSTRAINT")
            if _true(environ.get("PIP_PRE")):
                at = span_of(environ["PIP_PRE"])
                self.options.append(OptionText("--pre", None, at, None))
            if _true(environ.get("PIP_NO_INDEX")):
                self.index("--no-index", (), span_of(environ["PIP_NO_INDEX"]), 0)
            return
        if not {"--index-url", "--default-index"} & given:
            default = "UV_DEFAULT_INDEX" if environ.get("UV_DEFAULT_INDEX") else "UV_INDEX_URL"
            self.variable(environ, default, "--index-url", 1)
        if "--index" not in given:
            self.variable(environ, "UV_INDEX", "--extra-index-url", 1)
        if "--extra-index-url" not in given:
            self.variable(environ, "UV_EXTRA_INDEX_URL", "--extra-index-url", 2)
        if "--find-links" not in given:
            self.variable(environ, "UV_FIND_LINKS", "--find-links", 3)
        if not {"--constraint", "--constraints"} & given:
            self.constraint(environ, "UV_CONSTRAINT")
        if self.torch_backend is None and environ.get("UV_TORCH_BACKEND"):
            self.backend = environ["UV_TORCH_BACKEND"]
            self.torch_backend = text_of(self.backend)
        if self.python is None and environ.get("UV_PYTHON"):
            self.python = python_in(text_of(environ["UV_PYTHON"]))
        if text_of(environ.get("UV_PRERELEASE", ())) == "allow":
            at = span_of(environ["UV_PRERELEASE"])
            self.options.append(OptionText("--pre", None, at, None))

    def variable(self, environ: Mapping[str, Word], name: str, option: str, rank: int) -> None:
        """Take in the URLs that a variable holds."""
        for one in _split(environ.get(name, ()), " "):
            if text_of(one):
                self.index(option, one, None, rank)

    def constraint(self, environ: Mapping[str, Word], name: str) -> None:
        """Take in the files that a variable names as constraints."""
        for one in _split(environ.get(name, ()), " "):
            if text_of(one):
                self.include(one, span_of(one), constraint=True)

    def index(self, option: str, url: Word, span: Span | None, rank: int) -> None:
        """Take in an index; without a span its URL stands in a variable, at its literal."""
        if self.client == "uv" and re.match(r"[A-Za-z0-9_-]+=https?:", text_of(url)):
            url = cut(url, text_of(url).index("=") + 1)
        place = span_of(url) if url else (span or Span(0, 0))
        whole = span if span is not None else place
        self.words.append((whole, url))
        line = IndexLine(
            option,
            text_of(url),
            whole,
            place,
            whole,
            any(not atom.plain for atom in url) or _in_pieces(url),
        )
        self.lines.append((rank, line))

    def include(self, path: Word, span: Span, *, constraint: bool) -> None:
        """Take in a requirements file; one whose path is not known is a stand-in."""
        text = text_of(path)
        if self.folder and text and not text.startswith(("/", "~")) and "://" not in text:
            text = f"{self.folder}/{text}"
        self.includes.append(Include(text, constraint, span, span.start))


def _base(word: Text) -> str:
    return word.value.replace("\\", "/").rsplit("/", 1)[-1]


def _value(words: Sequence[Text], at: int) -> str:
    return words[at].value if 0 <= at < len(words) else ""


def _digits(program: str, name: str) -> str | None:
    version = program.removesuffix(".exe").removeprefix(name).lstrip("-")
    return version if "." in version else None


def _module_at(words: Sequence[Text]) -> int:
    """Return the index behind the module of ``python … -m MODULE``, -1 if there is none."""
    at = 1
    while at < len(words):
        value = words[at].value
        if re.fullmatch(r"-[A-Za-z]*m", value):
            return at + 2 if at + 1 < len(words) else -1
        if value.startswith("-m") and len(value) > 2:
            return at + 1
        if not value.startswith("-") or value == "-c":
            return -1
        at += 2 if value in ("-X", "-W") else 1
    return -1


def _system(environ: Mapping[str, Word], parsed: Parsed) -> bool:
    """True if ``uv pip`` installs into the system's Python."""
    named = any(
        option.name in ("--system", "--break-system-packages", "--python", "--target", "--prefix")
        for option in parsed.options
    )
    return named or _true(environ.get("UV_SYSTEM_PYTHON"))


def _word_atom(text: str) -> Atom:
    return Atom(text, 0, 0, False)


def _with(parsed: Parsed) -> Parsed:
    """Return a command whose ``--with`` values are requirements, too."""
    more = [
        Text(word, option.span)
        for option in parsed.options
        if option.name in ("--with", "--from") and option.value is not None
        for word in _requirements_of(option.value)
    ]
    return parsed._replace(arguments=[*parsed.arguments, *more])


def _requirements_of(value: Word) -> Iterator[Word]:
    text = text_of(value)
    at = 0
    for match in _LIST.finditer(text):
        if text.count("[", at, match.start()) == text.count("]", at, match.start()):
            yield cut(value, at, match.start())
            at = match.end()
    yield cut(value, at)


def _places(atoms: Word) -> list[tuple[str, int, int, bool]]:
    return [(atom.value, atom.start, atom.end, atom.plain) for atom in atoms]


def _in_pieces(atoms: Word) -> bool:
    """True if quotes or backslashes stand inside a word: its text is not one stretch."""
    return any(one.end != other.start for one, other in pairwise(atoms))


def _requirement(word: Text) -> bool:
    """True for a word that can be read as a requirement: no option, no bare stand-in, no glob."""
    value = word.value
    if _GLOB.search(value) is not None:
        return False
    if not word.known and value.endswith((".whl", ".zip", ".gz")):
        return False
    return bool(re.match(r"[A-Za-z0-9]", value)) and not value.startswith("${")


def _split(value: Word, separators: str) -> list[Word]:
    if not separators:
        return [value]
    found: list[Word] = []
    at = 0
    text = text_of(value)
    for match in re.finditer(f"[{re.escape(separators)}\\s]+", text):
        found.append(cut(value, at, match.start()))
        at = match.end()
    found.append(cut(value, at))
    return [one for one in found if one]


def _true(word: Word | None) -> bool:
    return word is not None and text_of(word).lower() in ("1", "true", "yes", "on", "y", "t")


def python_in(text: str) -> str | None:
    """Return the version in the name of an interpreter: ``3.11``, ``cpython-3.11``,
    ``/usr/bin/python3.11``; None if there is none."""
    match = _PYTHON_IN_WORD.fullmatch(text.rsplit("/", 1)[-1])
    if match is not None:
        return match[1]
    return (
        text
        if re.fullmatch(r"[<>=!~]=?\s*\d+(\.\d+)*(\s*,\s*[<>=!~]=?\s*\d+(\.\d+)*)*", text)
        else None
    )


def platform_in(text: str) -> str | None:
    """Return the platform that a tag or triple names, in the words of the fleet; else None."""
    text = text.lower()
    machine = next(
        (
            name
            for name, words in (("x86_64", ("x86_64", "amd64")), ("aarch64", ("aarch64", "arm64")))
            if any(w in text for w in words)
        ),
        "",
    )
    if "linux" in text:
        return f"linux-{machine}" if machine else "linux-x86_64"
    if "win" in text and "darwin" not in text:
        return "windows-arm64" if machine == "aarch64" else "windows-x86_64"
    if "macos" in text or "darwin" in text:
        return "macos-x86_64" if machine == "x86_64" else "macos-arm64"
    return None
