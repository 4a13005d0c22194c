"""CircleCI: what the steps of jobs install.

Source of the format: https://circleci.com/docs/configuration-reference/. Commands, executors and
parameters are followed inside the file; orbs are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product

from torchpin.documents.atoms import Word, text_of
from torchpin.documents.base import Document
from torchpin.documents.ci_matrix import named, title
from torchpin.documents.parts import Image, Part
from torchpin.documents.scripts import INSTALLS
from torchpin.documents.yaml_scripts import (
    MOST_CELLS,
    MOST_PARTS,
    Job,
    Place,
    bounded,
    entry,
    number_of,
    opened,
    pairs,
    replaced,
    text_in,
    word_of,
)
from torchpin.documents.yaml_spans import Node
from torchpin.patterns import regex

KIND = "circleci"
_PARAMETER = regex(r"<<\s*((?:pipeline\.)?parameters\.[\w-]+)\s*>>")
_IMAGE_PYTHON = regex(r"(?:cimg|circleci)/python:(\d+\.\d+)")
_DEEPEST = 6
_GPU = "it runs on a GPU that CircleCI lends, not on one of the fleet"
Values = Mapping[str, Word]


def read_circleci(path: str, data: bytes) -> Document:
    """Return the document of a CircleCI configuration; never raises.

    Text that is no YAML gives a problem of the code ``yaml``.
    """
    file, roots = opened(path, data, KIND)
    if not roots:
        return file
    return file._replace(parts=bounded(list(_Config(file, roots[0]).parts())))


class _Config:
    """Follows one file."""

    def __init__(self, file: Document, root: Node) -> None:
        self.file = file
        self.text = file.text
        self.root = root
        self.commands = dict(pairs(entry(root, "commands")))
        self.executors = dict(pairs(entry(root, "executors")))
        self.pipeline = self.defaults(root, "pipeline.parameters")
        self.followed = 0

    def parts(self) -> Iterator[Part]:
        """Yield the parts of all jobs."""
        uses = self.uses()
        count = 0
        for name, job in pairs(entry(self.root, "jobs")):
            if job.kind != "mapping":
                continue
            given = uses.get(name) or [{}]
            done: set[tuple[tuple[str, str], ...]] = set()
            number = 0
            for values in given:
                key = tuple(sorted((one, text_of(word)) for one, word in values.items()))
                if key in done or count > MOST_PARTS:
                    continue
                done.add(key)
                for part in self.job(name, number, job, values):
                    count += 1
                    yield part
                number += 1

    def uses(self) -> dict[str, list[Values]]:
        """Return the parameters that workflows give to jobs: one set a cell."""
        found: dict[str, list[Values]] = {}
        for _, workflow in pairs(entry(self.root, "workflows")):
            listed = entry(workflow, "jobs")
            for item in listed.items if listed is not None else ():
                for name, given in pairs(item):
                    found.setdefault(name, []).extend(self.cells(given))
        return found

    def cells(self, given: Node) -> list[Values]:
        """Return what one use of a job gives to its parameters."""
        plain = self.given(given, "")
        matrix = entry(given, "matrix", "parameters")
        names: list[str] = []
        lists: list[list[Word]] = []
        for key, value in pairs(matrix):
            names.append(key)
            lists.append([self.plain(one) for one in value.scalars()] or [()])
        excluded = entry(given, "matrix", "exclude")
        without = [
            {key: text_in(value) for key, value in pairs(one)}
            for one in (excluded.items if excluded is not None else ())
        ]
        found: list[Values] = []
        for combination in product(*lists):
            if len(found) >= MOST_CELLS:
                break
            cell = dict(zip(names, combination, strict=True))
            if {key: text_of(word) for key, word in cell.items()} not in without:
                found.append({**plain, **cell})
        return found

    def plain(self, node: Node) -> Word:
        """Return a scalar with its place."""
        return number_of(node, word_of(self.text, node))

    def given(self, node: Node | None, _: str) -> dict[str, Word]:
        """Return the scalars of a mapping."""
        return {key: self.full(value, {}) for key, value in pairs(node) if value.kind == "scalar"}

    def defaults(self, node: Node, prefix: str = "parameters") -> dict[str, Word]:
        """Return the defaults of the parameters of a job, command or executor."""
        found: dict[str, Word] = {}
        for name, value in pairs(entry(node, "parameters")):
            default = entry(value, "default")
            if default is not None and default.kind == "scalar":
                found[f"{prefix}.{name}"] = self.plain(default)
        return found

    def full(self, node: Node, values: Values) -> Word:
        """Return a scalar with parameters replaced."""
        word = self.plain(node)
        if "<<" not in text_of(word):
            return word
        known = getattr(self, "pipeline", {})

        def value(name: str, at: int) -> Word | None:
            found = values.get(name)
            return found if found is not None else known.get(name)

        return replaced(word, _PARAMETER, value)

    def job(self, name: str, number: int, job: Node, given: Values) -> list[Part]:
        """Return the parts of a job with one set of parameters."""
        values = self.defaults(job)
        used = frozenset(re.findall(r"parameters\.([\w-]+)", self.text[job.start : job.end]))
        values.update((f"parameters.{key}", word) for key, word in given.items())
        executor, inner = self.executor(job, values)
        environ = self.environ(executor, inner, {})
        environ = self.environ(job, values, environ)
        shown = {key: word for key, word in given.items() if key in used}
        place = self.place(job, values) or self.place(executor, inner) or Place()
        where = f"job {name} {number}" if number else f"job {name}"
        made = Job(self.file, f"job {name}{title(shown)}", where, place, named(shown))
        if place.image is not None:
            match = _IMAGE_PYTHON.match(place.image.reference)
            if match is not None:
                made.python(match[1])
        self.steps(made, entry(job, "steps"), values, environ, None, 0)
        return made.parts

    def executor(self, job: Node, values: Values) -> tuple[Node | None, Values]:
        """Return the executor that a job names, and its parameters."""
        named = entry(job, "executor")
        if named is None:
            return None, {}
        label = named if named.kind == "scalar" else entry(named, "name")
        found = self.executors.get(text_of(self.full(label, values))) if label is not None else None
        if found is None:
            return None, {}
        inner = self.defaults(found)
        for key, value in pairs(named if named.kind == "mapping" else None):
            if value.kind == "scalar" and key != "name":
                inner[f"parameters.{key}"] = self.full(value, values)
        return found, inner

    def environ(
        self, node: Node | None, values: Values, known: Mapping[str, Word]
    ) -> dict[str, Word]:
        """Return the environment with what a node adds."""
        found = dict(known)
        for name, value in pairs(entry(node, "environment")):
            if value.kind == "scalar":
                found[name] = self.full(value, values)
        return found

    def place(self, node: Node | None, values: Values) -> Place | None:
        """Return the machine that a job or executor runs on; None if it says nothing."""
        if node is None:
            return None
        kind = entry(node, "resource_class")
        label = text_of(self.full(kind, values)) if kind is not None else ""
        gpu = "gpu" in label or "/" in label
        arm = label.startswith("arm.")
        docker = entry(node, "docker")
        machine = entry(node, "machine")
        linux = "linux-aarch64" if arm else "linux-x86_64"
        if docker is not None and docker.items:
            image = entry(docker.items[0], "image")
            word = self.full(image, values) if image is not None else ()
            span = image.inner if image is not None else docker.span
            known = bool(word) and all(atom.known for atom in word)
            return Place(
                linux,
                None if gpu else Image("CircleCI docker", span),
                Image(text_of(word), span) if known else None,
                _GPU,
            )
        if entry(node, "macos") is not None:
            system = "macos-x86_64" if "x86" in label else "macos-arm64"
            return Place(system, Image("CircleCI macos", node.span))
        if machine is None:
            return None
        if label.startswith("windows"):
            runner = None if gpu else Image("CircleCI windows", machine.span)
            return Place("windows-x86_64", runner, None, _GPU)
        runner = None if gpu else Image("CircleCI machine", machine.span)
        return Place(linux, runner, None, _GPU)

    def steps(
        self,
        made: Job,
        steps: Node | None,
        values: Values,
        environ: Mapping[str, Word],
        uncertain: str | None,
        depth: int,
    ) -> None:
        """Take in steps, and the commands that they name."""
        for step in steps.items if steps is not None and depth < _DEEPEST else ():
            self.followed += 1
            if len(made.parts) > MOST_PARTS or self.followed > 20_000:
                return
            if step.kind == "scalar":
                self.command(made, step.value, None, values, environ, uncertain, depth)
                continue
            for name, given in pairs(step):
                if name == "run":
                    self.run(made, given, values, environ, uncertain)
                elif name in ("when", "unless"):
                    why = uncertain or f"its step stands under {name}"
                    self.steps(made, entry(given, "steps"), values, environ, why, depth + 1)
                else:
                    self.command(made, name, given, values, environ, uncertain, depth)

    def command(
        self,
        made: Job,
        name: str,
        given: Node | None,
        values: Values,
        environ: Mapping[str, Word],
        uncertain: str | None,
        depth: int,
    ) -> None:
        """Take in a command of the file by its name."""
        found = self.commands.get(name)
        if found is None:
            return
        inner = self.defaults(found)
        for key, value in pairs(given):
            if value.kind == "scalar":
                inner[f"parameters.{key}"] = self.full(value, values)
        self.steps(made, entry(found, "steps"), inner, environ, uncertain, depth + 1)

    def run(
        self,
        made: Job,
        node: Node,
        values: Values,
        environ: Mapping[str, Word],
        uncertain: str | None,
    ) -> None:
        """Take in one ``run`` step."""
        command = node if node.kind == "scalar" else entry(node, "command")
        if command is None or INSTALLS.search(command.value) is None:
            return
        own = self.environ(node, values, environ) if node.kind == "mapping" else dict(environ)
        shell = text_in(entry(node, "shell")) or "bash"
        if (made.place.platform or "").startswith("windows") and shell == "bash":
            shell = "powershell"
        at = entry(node, "working_directory")
        folder = text_of(self.full(at, values)) if at is not None else ""
        made.script(
            self.full(command, values),
            own,
            shell=shell,
            folder=folder if re.match(r"[\w.-]+(?:/|$)", folder) else "",
            uncertain=uncertain,
        )
