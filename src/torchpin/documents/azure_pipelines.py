"""Azure Pipelines: what the steps of jobs install.

Source of the format: https://learn.microsoft.com/azure/devops/pipelines/yaml-schema/. Values come
as text; ``$(name)`` is replaced before a script runs, and variables are in its environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from torchpin.documents.atoms import Word, text_of
from torchpin.documents.base import Document
from torchpin.documents.ci_expressions import Scope, holds, substituted
from torchpin.documents.ci_matrix import Cell, named, title
from torchpin.documents.image_part import OWN_TORCH
from torchpin.documents.parts import Image, Part
from torchpin.documents.scripts import INSTALLS
from torchpin.documents.yaml_scripts import (
    MOST_CELLS,
    MOST_PARTS,
    Job,
    Place,
    bounded,
    entry,
    hosted,
    opened,
    pairs,
    replaced,
    text_in,
    word_of,
)
from torchpin.documents.yaml_spans import Node
from torchpin.patterns import regex

KIND = "azure-pipelines"
_MACRO = regex(r"\$\(([A-Za-z_][\w.-]*)\)")
_SCRIPTS = {
    "script": "",
    "bash": "bash",
    "pwsh": "pwsh",
    "powershell": "powershell",
}
_TASKS = {
    "bash": "bash",
    "cmdline": "",
    "powershell": "powershell",
    "batchscript": "cmd",
    "shellscript": "bash",
}
_DEEPEST = 12
_MANY = 20_000
"""Steps and jobs that are followed in one file."""
_VIA = regex(r"\$\{\{\s*(if|elseif|else|each|insert)\b(.*)\}\}", re.DOTALL)


def read_azure_pipelines(path: str, data: bytes) -> Document:
    """Return the document of a pipeline or a template of one; never raises.

    Text that is no YAML gives a problem of the code ``yaml``.
    """
    file, roots = opened(path, data, KIND)
    if not roots or roots[0].kind != "mapping":
        return file
    return file._replace(parts=bounded(_Pipeline(file, roots[0]).read()))


class _Pipeline:
    """Follows one file."""

    def __init__(self, file: Document, root: Node) -> None:
        self.file = file
        self.text = file.text
        self.root = root
        self.parts: list[Part] = []
        self.names: dict[str, Word] = {}
        self.jobs = 0
        self.followed = 0
        self.parameters(entry(root, "parameters"))
        self.containers: dict[str, Node] = {}
        listed = entry(root, "resources", "containers")
        for item in listed.items if listed is not None else ():
            image = entry(item, "image")
            if image is not None:
                self.containers[text_in(entry(item, "container"))] = image

    def parameters(self, node: Node | None) -> None:
        """Take in the defaults of parameters: a list of names, or a mapping."""
        if node is None:
            return
        for item in node.items:
            default = entry(item, "default")
            if default is not None and default.kind == "scalar":
                key = f"parameters.{text_in(entry(item, 'name'))}".lower()
                self.names[key] = word_of(self.text, default)
        for name, value in pairs(node):
            if value.kind == "scalar":
                self.names[f"parameters.{name}".lower()] = word_of(self.text, value)

    def read(self) -> list[Part]:
        """Return the parts of all jobs."""
        self.level(self.root, {}, self.root, None, 0)
        return self.parts

    def level(
        self,
        node: Node,
        variables: Mapping[str, Word],
        pool: Node,
        uncertain: str | None,
        depth: int,
    ) -> None:
        """Take in what holds stages, jobs or steps."""
        if depth > _DEEPEST or len(self.parts) > MOST_PARTS:
            return
        known = {**variables, **self.variables(entry(node, "variables"))}
        pool = node if entry(node, "pool") is not None else pool
        steps = entry(node, "steps")
        if steps is not None and steps.items:
            self.job(node, steps, known, pool, uncertain)
        for key in ("stages", "jobs"):
            below = entry(node, key)
            for one, why in self.flat(below, uncertain, 0):
                self.level(one, known, pool, why, depth + 1)
        deploy = entry(node, "strategy", "runOnce", "deploy")
        if deploy is not None:
            self.level(deploy, known, pool, uncertain, depth + 1)

    def flat(
        self, node: Node | None, uncertain: str | None, depth: int
    ) -> Iterator[tuple[Node, str | None]]:
        """Yield the items of a list, those that a ``${{ if }}`` puts in as well."""
        if node is None or depth > _DEEPEST:
            return
        for item in node.items:
            self.followed += 1
            if self.followed > _MANY:
                return
            conditional = False
            for key, key_node, value in item.pairs() if item.kind == "mapping" else ():
                match = _VIA.match(key.strip())
                if match is None:
                    continue
                conditional = True
                why: str | None = uncertain or f"it is put in by {' '.join(key.split())[:80]}"
                if match[1] == "if":
                    answer = self.condition(match[2], key_node)
                    if answer is False:
                        continue
                    why = uncertain if answer else why
                yield from self.flat(value, why, depth + 1)
            if not conditional:
                yield item, uncertain

    def condition(self, text: str, node: Node) -> bool | None:
        """Return whether an inserted condition holds; None: not known."""
        from torchpin.documents.atoms import Atom

        return holds((Atom(text.strip(), node.start, node.end, False),), Scope(self.names))

    def variables(self, node: Node | None) -> dict[str, Word]:
        """Return variables: a mapping, or a list of names and values."""
        found: dict[str, Word] = {}
        if node is None:
            return found
        for item in node.items:
            value = entry(item, "value")
            name = text_in(entry(item, "name"))
            if name and value is not None:
                found[name] = self.value(value)
        for name, value in pairs(node):
            if value.kind == "scalar":
                found[name] = self.value(value)
        return found

    def value(self, node: Node) -> Word:
        """Return a scalar with the expressions that are replaced when the file is read."""
        return substituted(word_of(self.text, node), Scope(self.names))

    def job(
        self,
        job: Node,
        steps: Node,
        variables: Mapping[str, Word],
        pool: Node,
        uncertain: str | None,
    ) -> None:
        """Take in one job, cell by cell."""
        flat = list(self.flat(steps, uncertain, 0))
        if INSTALLS.search(self.text, steps.start, steps.end) is None and (
            entry(job, "container") is None or OWN_TORCH.search(self.text) is None
        ):
            return
        self.jobs += 1
        name = text_in(entry(job, "job")) or text_in(entry(job, "deployment")) or f"{self.jobs}"
        for number, cell in enumerate(self.cells(entry(job, "strategy", "matrix"))):
            if len(self.parts) > MOST_PARTS:
                return
            known = {**variables, **cell}
            label = f"job {name}{title(cell)}"
            environment = f"job {self.jobs} {number}" if number else f"job {self.jobs}"
            made = Job(self.file, label, environment, self.place(job, pool, known), named(cell))
            for step, why in flat:
                if step.kind == "mapping":
                    self.step(made, step, known, why)
            self.parts += made.parts

    def cells(self, matrix: Node | None) -> list[Cell]:
        """Return the cells of ``strategy.matrix``: each has a name."""
        found: list[Cell] = []
        for _, value in pairs(matrix):
            if value.kind == "mapping" and len(found) < MOST_CELLS:
                found.append(
                    {key: self.value(one) for key, one in pairs(value) if one.kind == "scalar"}
                )
        return found or [{}]

    def step(
        self, made: Job, step: Node, variables: Mapping[str, Word], uncertain: str | None
    ) -> None:
        """Take in one step."""
        task = text_in(entry(step, "task")).partition("@")[0].lower()
        inputs = entry(step, "inputs")
        if task == "usepythonversion":
            node = entry(inputs, "versionSpec")
            made.python(text_of(self.full(node, variables)) if node is not None else "3")
            return
        shell: str | None = None
        script: Node | None = None
        for key, kind in _SCRIPTS.items():
            if script is None and entry(step, key) is not None:
                script, shell = entry(step, key), kind
        if script is None and task in _TASKS:
            script, shell = entry(inputs, "script"), _TASKS[task]
        if script is None or shell is None or INSTALLS.search(script.value) is None:
            return
        windows = (made.place.platform or "").startswith("windows")
        condition = entry(step, "condition")
        plain = ("", "always()", "succeeded()", "succeededOrFailed()")
        if condition is not None and condition.value.strip() not in plain:
            uncertain = (
                uncertain or f"its step runs only if {' '.join(condition.value.split())[:80]}"
            )
        environ = {
            re.sub(r"[^A-Za-z0-9]", "_", name).upper(): word for name, word in variables.items()
        }
        for name, value in pairs(entry(step, "env")):
            if value.kind == "scalar":
                environ[name] = self.full(value, variables)
        at = entry(step, "workingDirectory") or entry(inputs, "workingDirectory")
        folder = text_of(self.full(at, variables)) if at is not None else ""
        made.script(
            self.full(script, variables),
            environ,
            shell=shell or ("cmd" if windows else "bash"),
            folder=folder if re.match(r"[\w.-]+(?:/|$)", folder) else "",
            uncertain=uncertain,
        )

    def full(self, node: Node | None, variables: Mapping[str, Word], depth: int = 0) -> Word:
        """Return a scalar with parameters and variables replaced; unknown macros stay."""
        if node is None:
            return ()
        names = {key.lower(): word for key, word in variables.items()}
        found = self.value(node)
        for _ in range(4):
            text = text_of(found)
            if "$(" not in text:
                break

            def value(name: str, at: int) -> Word | None:
                return names.get(name.lower())

            known = re.compile(
                "|".join(
                    rf"\$\(({re.escape(one[1])})\)"
                    for one in _MACRO.finditer(text)
                    if one[1].lower() in names
                )
                or r"(?!)"
            )
            new = replaced(found, known, value)
            if text_of(new) == text:
                break
            found = new
        return found

    def place(self, job: Node, pool: Node, variables: Mapping[str, Word]) -> Place:
        """Return the machine of a job."""
        node = entry(pool if entry(job, "pool") is None else job, "pool")
        image = entry(node, "vmImage") if node is not None and node.kind == "mapping" else None
        found = Place()
        if image is not None:
            found = hosted(text_of(self.full(image, variables)), image.inner)
        container = entry(job, "container")
        named = entry(container, "image") if container is not None else None
        named = named or container
        if named is not None and named.kind == "scalar":
            named = self.containers.get(text_of(self.full(named, variables)), named)
        if named is not None and named.kind == "scalar" and re.search(r"[/:]", named.value):
            word = self.full(named, variables)
            if "$" not in text_of(word):
                return Place(
                    found.platform or "linux", found.runner, Image(text_of(word), named.inner)
                )
        return found
