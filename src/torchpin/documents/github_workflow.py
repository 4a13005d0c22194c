"""GitHub Actions: what the steps of workflows and composite actions install.

Source of the format: https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax.
Each cell of a matrix is a job of its own. A hosted runner is a machine without a GPU; what is
known of others is what the fleet says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchpin.documents.atoms import Atom, Word, text_of
from torchpin.documents.base import Document
from torchpin.documents.ci_expressions import Scope, holds, substituted
from torchpin.documents.ci_matrix import Cell, github_cells, named, title, used_keys
from torchpin.documents.image_part import OWN_TORCH
from torchpin.documents.parts import Cell as CellText
from torchpin.documents.parts import Image, Part
from torchpin.documents.scripts import INSTALLS
from torchpin.documents.yaml_scripts import (
    MOST_PARTS,
    Job,
    Place,
    bounded,
    entry,
    hosted,
    number_of,
    opened,
    pairs,
    text_in,
    word_of,
)
from torchpin.documents.yaml_spans import Node
from torchpin.patterns import regex

KIND = "github-workflow"
_SETUP = regex(
    r"(?:actions/setup-python|astral-sh/setup-uv|conda-incubator/setup-miniconda"
    r"|mamba-org/(?:setup-micromamba|provision-with-micromamba)|s-weigand/setup-conda)(?:@.*)?"
)
_CONDA_PYTHON = regex(r"\bpython\s*=+\s*[\"']?(\d+\.\d+)")
_CACHE = regex(r"cache-hit|cached-", re.IGNORECASE)
_OPEN = regex(r"[\w.-]+")


def read_github_workflow(path: str, data: bytes) -> Document:
    """Return the document of a workflow or a composite action; never raises.

    Text that is no YAML gives a problem of the code ``yaml``.
    """
    file, roots = opened(path, data, KIND)
    if not roots:
        return file
    return file._replace(parts=bounded(_Workflow(file, roots[0]).parts()))


class _Workflow:
    """Follows one file."""

    def __init__(self, file: Document, root: Node) -> None:
        self.file = file
        self.text = file.text
        self.root = root
        self.names: dict[str, Word] = {}
        self.inputs()

    def inputs(self) -> None:
        """Take in the defaults of inputs: they are what comes unless somebody says otherwise."""
        on = entry(self.root, "on") or entry(self.root, "true")
        for node in (
            entry(on, "workflow_dispatch", "inputs"),
            entry(on, "workflow_call", "inputs"),
            entry(self.root, "inputs"),
        ):
            for name, value in pairs(node):
                default = entry(value, "default")
                if default is not None and default.kind == "scalar":
                    word = number_of(default, word_of(self.text, default))
                    self.names.setdefault(f"inputs.{name}".lower(), word)
                    self.names.setdefault(f"github.event.inputs.{name}".lower(), word)

    def parts(self) -> list[Part]:
        """Return the parts of all jobs."""
        found: list[Part] = []
        for name, job in pairs(entry(self.root, "jobs")):
            if len(found) > MOST_PARTS:
                break
            if job.kind == "mapping":
                found += self.job(name, job)
        steps = entry(self.root, "runs", "steps")
        if steps is not None:
            found += self.cell("action", "action", self.root, steps, {}, closed=False)
        return found

    def job(self, name: str, job: Node) -> list[Part]:
        """Return the parts of a job, cell by cell."""
        steps = entry(job, "steps")
        if steps is None or not (
            any(INSTALLS.search(text_in(entry(step, "run"))) is not None for step in steps.items)
            or (entry(job, "container") is not None and OWN_TORCH.search(self.text) is not None)
        ):
            return []
        used = used_keys(self.text[job.start : job.end])
        cells = github_cells(self.text, entry(job, "strategy", "matrix"), used)
        closed = cells is not None
        found: list[Part] = []
        for number, cell in enumerate(cells or [{}]):
            environment = f"job {name} {number}" if number else f"job {name}"
            label = f"job {name}{title(cell, used)}"
            told = named(cell, used)
            found += self.cell(label, environment, job, steps, cell, closed=closed, told=told)
            if len(found) > MOST_PARTS:
                break
        return found

    def cell(
        self,
        label: str,
        environment: str,
        job: Node,
        steps: Node,
        cell: Cell,
        *,
        closed: bool,
        told: CellText = (),
    ) -> list[Part]:
        """Return the parts of a job with the values of one cell."""
        names = dict(self.names)
        names.update((f"matrix.{key}".lower(), word) for key, word in cell.items())
        scope = Scope(names, ("matrix.",) if closed else ())
        condition = entry(job, "if")
        if condition is not None and holds(word_of(self.text, condition), scope) is False:
            return []
        place = self.place(job, scope)
        if place.platform is not None:
            system = place.platform.split("-")[0]
            shown = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}[system]
            names["runner.os"] = (Atom(shown, 0, 0, False),)
        environ = self.environ(job, self.environ(self.root, {}, scope), scope)
        made = Job(self.file, label, environment, place, told)
        run = entry(job, "defaults", "run") or entry(self.root, "defaults", "run")
        shell = text_in(entry(run, "shell"))
        folder = text_in(entry(run, "working-directory"))
        windows = place.platform is not None and place.platform.startswith("windows")
        for step in steps.items:
            if step.kind == "mapping" and len(made.parts) <= MOST_PARTS:
                self.step(
                    made, step, environ, scope, shell or ("pwsh" if windows else "bash"), folder
                )
        return made.parts

    def step(
        self,
        made: Job,
        step: Node,
        environ: Mapping[str, Word],
        scope: Scope,
        shell: str,
        folder: str,
    ) -> None:
        """Take in one step."""
        uses = text_in(entry(step, "uses"))
        own = self.environ(step, environ, scope)
        scope = scope._replace(
            names={**scope.names, **{f"env.{name}": word for name, word in own.items()}}
        )
        condition = entry(step, "if")
        uncertain = None
        if condition is not None:
            word = word_of(self.text, condition)
            answer = holds(word, scope)
            if answer is False:
                return
            if answer is None and _CACHE.search(condition.value) is None:
                uncertain = f"its step runs only if {' '.join(condition.value.split())[:80]}"
        if uses:
            self.setup(made, uses, entry(step, "with"), scope)
            return
        run = entry(step, "run")
        if run is None or INSTALLS.search(run.value) is None:
            return
        wanted = text_of(substituted(word_of(self.text, entry(step, "shell") or run), scope))
        chosen = wanted if entry(step, "shell") is not None else shell
        at = entry(step, "working-directory")
        if at is not None:
            folder = text_of(substituted(word_of(self.text, at), scope))
        made.script(
            substituted(word_of(self.text, run), scope),
            own,
            shell=chosen,
            folder=_relative(folder),
            uncertain=uncertain,
        )

    def setup(self, made: Job, uses: str, given: Node | None, scope: Scope) -> None:
        """Take in an action that sets up a Python."""
        if _SETUP.fullmatch(uses) is None:
            return
        node = entry(given, "python-version")
        if node is not None:
            text = text_of(substituted(word_of(self.text, node), scope)).strip()
            made.python("" if "\n" in text else text)
            return
        arguments = text_of(
            substituted(word_of(self.text, entry(given, "create-args") or Node("", 0, 0)), scope)
        )
        match = _CONDA_PYTHON.search(arguments)
        made.python(match[1] if match is not None else "")

    def environ(self, node: Node, known: Mapping[str, Word], scope: Scope) -> dict[str, Word]:
        """Return the environment with what ``env:`` of a node adds."""
        found: dict[str, Word] = {}
        names = {**scope.names, **{f"env.{key}": word for key, word in known.items()}}
        inner = scope._replace(names=names)
        for name, value in pairs(entry(node, "env")):
            if value.kind == "scalar":
                word = number_of(value, word_of(self.text, value))
                found[name] = substituted(word, inner)
        return {**known, **found}

    def place(self, job: Node, scope: Scope) -> Place:
        """Return the machine of a job."""
        node = entry(job, "runs-on")
        labels = entry(node, "labels") if node is not None and node.kind == "mapping" else node
        found = Place()
        if labels is not None and labels.kind == "scalar":
            found = self.label(labels, scope)
        elif labels is not None and len(labels.items) == 1:
            found = self.label(labels.items[0], scope)
        container = entry(job, "container")
        image = entry(container, "image") if container is not None else None
        image = image or container
        if image is not None and image.kind == "scalar" and image.value:
            word = substituted(word_of(self.text, image), scope)
            if word and all(atom.known for atom in word):
                platform = found.platform or "linux"
                return Place(platform, found.runner, Image(text_of(word), image.inner))
        return found

    def label(self, node: Node, scope: Scope) -> Place:
        """Return the machine that one label names."""
        word = substituted(word_of(self.text, node), scope)
        return hosted(text_of(word), node.inner)


def _relative(folder: str) -> str:
    """Return a working folder below that of the file's repository, ``""`` where it is unknown."""
    folder = folder.strip().removeprefix("./").rstrip("/")
    return folder if _OPEN.match(folder) and "$" not in folder else ""
