"""An install command as a part of its file: requirements, options, and the environment it fills."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import normpath

from torchpin.documents.atoms import Word
from torchpin.documents.base import Document, Problem, Span, line_starts, position
from torchpin.documents.command_choices import Choices
from torchpin.documents.command_options import Parsed
from torchpin.documents.command_words import in_pieces, is_requirement, is_true, places
from torchpin.documents.parts import Image, Part, part_of, pieces
from torchpin.documents.shell_commands import Command
from torchpin.documents.shell_words import Text
from torchpin.named import NamedTuple

_VENV = ".venv/bin/activate"


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


class PartMaker:
    """Makes a part of each install command, and knows what the commands before it have done."""

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
        self.taken: list[tuple[str, str, PartMaker]] = []
        """Folders that come from elsewhere: path there, path here, and who has filled them."""

    def held_in(self, active: str) -> str:
        """Return the name of what a virtual environment, by its ``activate``, holds."""
        for source, target, other in reversed(self.taken):
            if active.startswith(f"{target}/"):
                there = other.held_in(f"{source}{active[len(target) :]}")
                return f"{there}/{self.setting.environment.replace('/', ':')}"
        return f"{self.base}#{active.replace('/', ':')}"

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
        writer = Choices(setting.file, command, client, self.folder)
        for option in parsed.options:
            writer.option(option)
        writer.environment(command.environ)
        lines = [(word, pieces(places(word.atoms), word.span)) for word in parsed.arguments]
        usable = [line for word, line in lines if is_requirement(word)]
        made = [
            one
            for one in writer.includes
            if not one.constraint and normpath(one.path) in self.files
        ]
        for include in made:
            own, doubt = self.files[normpath(include.path)]
            own_lines = [(one, pieces(places(one.atoms), one.span)) for one in own]
            usable += [line for _, line in own_lines]
            lines += own_lines
            why = why or doubt
        writer.includes = [one for one in writer.includes if one not in made]
        odd = [
            word.value for word in parsed.arguments if not word.known and not is_requirement(word)
        ]
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
                active = _VENV  # what uv pip looks for unless told of the system
            where = self.held_in(active) if active else self.base
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
        broken = {line.line_span for word, line in lines if in_pieces(word.atoms)}
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
                best_match=writer.best_match,
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


def _system(environ: Mapping[str, Word], parsed: Parsed) -> bool:
    """True if ``uv pip`` installs into the system's Python."""
    named = any(
        option.name in ("--system", "--break-system-packages", "--python", "--target", "--prefix")
        for option in parsed.options
    )
    return named or is_true(environ.get("UV_SYSTEM_PYTHON"))
