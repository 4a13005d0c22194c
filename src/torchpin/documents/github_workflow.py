"""GitHub Actions: what the steps of workflows and composite actions install.

Source of the format: https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax.
Each cell of a matrix is a job of its own. A hosted runner is a machine without a GPU; what is
known of others is what the fleet says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from torchpin.documents.atoms import Atom, Word, cut, text_of
from torchpin.documents.base import Document
from torchpin.documents.called import Call, moved, outside
from torchpin.documents.ci_expressions import Scope, evaluate, holds, substituted
from torchpin.documents.ci_matrix import Cell, github_cells, named, title, used_keys
from torchpin.documents.image_part import OWN_TORCH
from torchpin.documents.json_nodes import json_node
from torchpin.documents.parts import Cell as CellText
from torchpin.documents.parts import Image, Part
from torchpin.documents.scripts import INSTALLS, notes_in
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
from torchpin.documents.yaml_spans import Node, scan_yaml
from torchpin.errors import TorchpinError
from torchpin.patterns import regex

KIND = "github-workflow"
_SETUP = regex(
    r"(?:actions/setup-python|astral-sh/setup-uv|conda-incubator/setup-miniconda"
    r"|mamba-org/(?:setup-micromamba|provision-with-micromamba)|s-weigand/setup-conda)(?:@.*)?"
)
_CONDA_PYTHON = regex(r"\bpython\s*=+\s*[\"']?(\d+\.\d+)")
_FROM_JSON = regex(r"\s*\$\{\{\s*fromJSON\((.*)\)\s*\}\}\s*", re.IGNORECASE | re.DOTALL)
_LOCAL = regex(r"\./[\w./-]+")
_CACHE = regex(r"cache-hit|cached-", re.IGNORECASE)
_OPEN = regex(r"[\w.-]+")


Load = Callable[[str], bytes]


def read_github_workflow(path: str, data: bytes, load: Load | None = None) -> Document:
    """Return the document of a workflow or a composite action; never raises.

    Text that is no YAML gives a problem of the code ``yaml``. ``load`` gives the bytes of the
    workflows and actions of the repository that it calls; what cannot be read is passed over.
    """
    file, roots = opened(path, data, KIND)
    if not roots and load is not None and not file.problems and "uses: ./" in file.text:
        read = scan_yaml(file.text)
        roots = read.roots if read.problem is None else ()
        file = file._replace(comments=notes_in(file.text))
    if not roots:
        return file
    return file._replace(parts=bounded(_Workflow(file, roots[0], load=load).parts()))


class _Workflow:
    """Follows one file."""

    def __init__(
        self,
        file: Document,
        root: Node,
        given: Mapping[str, Word] | None = None,
        load: Load | None = None,
    ) -> None:
        self.file = file
        self.text = file.text
        self.root = root
        self.load = load
        self.names: dict[str, Word] = {
            f"inputs.{name}".lower(): word for name, word in (given or {}).items()
        }
        self.called: dict[str, _Workflow | None] = {}
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
        if steps is None and entry(job, "uses") is None:
            return []
        if steps is not None and not (
            any(
                INSTALLS.search(text_in(entry(step, "run"))) is not None
                or (self.load is not None and text_in(entry(step, "uses")).startswith("./"))
                for step in steps.items
            )
            or (entry(job, "container") is not None and OWN_TORCH.search(self.text) is not None)
        ):
            return []
        used = used_keys(self.text[job.start : job.end])
        matrix = entry(job, "strategy", "matrix")
        cells = github_cells(self.text, matrix, used, self.computed)
        closed = cells is not None
        found: list[Part] = []
        for number, cell in enumerate(cells or [{}]):
            environment = f"job {name} {number}" if number else f"job {name}"
            label = f"job {name}{title(cell, used)}"
            told = named(cell, used)
            if steps is None:
                found += self.reused(label, job, cell, closed=closed, told=told)
                continue
            found += self.cell(label, environment, job, steps, cell, closed=closed, told=told)
            if len(found) > MOST_PARTS:
                break
        return found

    def computed(self, node: Node) -> Node:
        """Return what ``${{ fromJSON(…) }}`` makes of text that the file gives; else the node."""
        match = _FROM_JSON.fullmatch(node.value) if node.kind == "scalar" else None
        if match is None:
            return node
        word = evaluate(cut(word_of(self.text, node), *match.span(1)), Scope(self.names))
        return (json_node(word) if word is not None else None) or node

    def other(self, uses: str, given: Mapping[str, Word]) -> _Workflow | None:
        """Return a workflow or action of the repository with its inputs; None: it is not there."""
        if self.load is None or _LOCAL.fullmatch(uses) is None or ".." in uses:
            return None
        path = self.file.path.replace(os.sep, "/")
        top, found, _ = f"/{path}".rpartition("/.github/")
        top = top[1:] if found else os.path.dirname(path)
        target = os.path.normpath(os.path.join(top, uses))
        names = [target] if target.endswith((".yml", ".yaml")) else []
        names = names or [os.path.join(target, f"action.{end}") for end in ("yml", "yaml")]
        for name in names:
            try:
                data = self.load(name)
            except TorchpinError:
                continue
            file, roots = opened(name, data, KIND)
            return _Workflow(file, roots[0], outside(given)) if roots else None
        return None

    def given(self, node: Node | None, scope: Scope) -> dict[str, Word]:
        """Return the values of ``with:``."""
        return {
            name: substituted(number_of(value, word_of(self.text, value)), scope)
            for name, value in pairs(node)
            if value.kind == "scalar"
        }

    def reused(
        self, label: str, job: Node, cell: Cell, *, closed: bool, told: CellText
    ) -> list[Part]:
        """Return what a workflow installs that a job calls, where the job's inputs decide it."""
        names = dict(self.names)
        names.update((f"matrix.{key}".lower(), word) for key, word in cell.items())
        scope = Scope(names, ("matrix.",) if closed else ())
        uses = entry(job, "uses")
        condition = entry(job, "if")
        if condition is not None and holds(word_of(self.text, condition), scope) is False:
            return []
        other = self.other(text_in(uses), self.given(entry(job, "with"), scope))
        if other is None or uses is None:
            return []
        call = Call(uses.span, label, os.path.basename(other.file.path))
        parts = [moved(part, self.file, call) for part in other.parts()]
        return [part._replace(cell=(*told, *part.cell)) for part in parts if part is not None]

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
        if uses.startswith("./") and self.load is not None:
            self.action(made, step, scope, uncertain)
            return
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

    def action(self, made: Job, step: Node, scope: Scope, uncertain: str | None) -> None:
        """Take in what an action of the repository installs, where the step's inputs decide it."""
        uses = entry(step, "uses")
        other = self.other(text_in(uses), self.given(entry(step, "with"), scope))
        steps = entry(other.root, "runs", "steps") if other is not None else None
        if other is None or uses is None or steps is None:
            return
        inner = Job(other.file, "action", "", made.place, made.cell)
        inner.reader.setting = inner.reader.setting._replace(
            python=made.reader.setting.python, image=None
        )
        names = {
            key: word for key, word in scope.names.items() if key.startswith(("runner.", "env."))
        }
        inside = Scope({**names, **other.names}, ("inputs.",))
        environ = {key[4:]: word for key, word in names.items() if key.startswith("env.")}
        for one in steps.items:
            if one.kind == "mapping" and len(made.parts) <= MOST_PARTS:
                other.step(inner, one, environ, inside, "bash", "")
        made.python_of(inner)
        call = Call(uses.span, made.label, os.path.basename(other.file.path))
        for part in inner.reader.parts:
            here = moved(part, self.file, call)
            if here is not None:
                environment = f"{made.reader.base}{part.environment}"
                made.reader.parts.append(
                    here._replace(
                        image=made.place.image,
                        runner=made.place.runner,
                        environment=environment,
                        uncertain=here.uncertain or uncertain,
                    )
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
