"""GitLab CI: what the scripts of jobs install.

Source of the format: https://docs.gitlab.com/ci/yaml/. A job runs ``before_script`` and ``script``
in one shell; ``extends``, ``default``, anchors and ``!reference`` are followed inside the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchpin.documents.atoms import Word, text_of
from torchpin.documents.base import Document
from torchpin.documents.ci_matrix import named, plain_cells, title
from torchpin.documents.parts import Image, Part
from torchpin.documents.scripts import INSTALLS
from torchpin.documents.yaml_scripts import (
    MOST_PARTS,
    Job,
    Place,
    bounded,
    entry,
    expanded,
    number_of,
    opened,
    pairs,
    text_in,
    word_of,
)
from torchpin.documents.yaml_spans import Node

KIND = "gitlab-ci"
_NO_JOBS = frozenset(
    (
        *("default", "variables", "stages", "include", "workflow", "image", "services", "cache"),
        *("before_script", "after_script", "spec", "pages:deploy"),
    )
)
_DEEPEST = 11
"""As GitLab itself: levels of ``extends``."""
_MANY = 20_000
"""Lines of scripts that are followed in one file."""
_MACHINES = {"amd64": "linux-x86_64", "arm64": "linux-aarch64"}


def read_gitlab_ci(path: str, data: bytes) -> Document:
    """Return the document of a pipeline; never raises.

    Text that is no YAML gives a problem of the code ``yaml``.
    """
    file, roots = opened(path, data, KIND)
    root = roots[-1] if roots else None  # a header with inputs may stand before it
    if root is None or root.kind != "mapping":
        return file
    return file._replace(parts=bounded(list(_Pipeline(file, root).parts())))


class _Pipeline:
    """Follows one file."""

    def __init__(self, file: Document, root: Node) -> None:
        self.file = file
        self.text = file.text
        self.root = root
        self.top = dict(pairs(root))
        self.followed = 0

    def parts(self) -> Iterator[Part]:
        """Yield the parts of all jobs."""
        count = 0
        for name, node in self.top.items():
            if name in _NO_JOBS or name.startswith(".") or node.kind != "mapping":
                continue
            job = self.inherited(node, 0)
            cells = list(plain_cells(self.text, entry(job.get("parallel"), "matrix"))) or [{}]
            for number, cell in enumerate(cells):
                if count > MOST_PARTS:
                    return
                label = f"job {name}{title(cell)}"
                for part in self.cell(name, label, number, job, cell):
                    count += 1
                    yield part

    def inherited(self, node: Node, depth: int) -> dict[str, Node]:
        """Return the keys of a job with those of the jobs that it extends.

        Of keys that several of them have, the last one is taken whole, but for variables.
        """
        found: dict[str, Node] = {}
        extends = entry(node, "extends")
        for base in extends.scalars() if extends is not None and depth < _DEEPEST else ():
            above = self.top.get(base.value)
            if above is not None and above is not node and above.kind == "mapping":
                found = self.merged(found, self.inherited(above, depth + 1))
        return self.merged(found, dict(pairs(node)))

    @staticmethod
    def merged(below: Mapping[str, Node], above: Mapping[str, Node]) -> dict[str, Node]:
        """Return two sets of keys as one."""
        found = {**below, **above}
        one, other = below.get("variables"), above.get("variables")
        if one is not None and other is not None and one is not other:
            both = Node("mapping", other.start, other.end)
            both.entries = [*one.entries, *other.entries]
            found["variables"] = both
        return found

    def cell(
        self, name: str, label: str, number: int, job: Mapping[str, Node], cell: Mapping[str, Word]
    ) -> list[Part]:
        """Return the parts of a job with the values of one cell."""
        default = dict(pairs(self.top.get("default")))

        def of(key: str) -> Node | None:
            return job.get(key) or default.get(key) or self.top.get(key)

        variables = self.variables(self.top.get("variables"))
        variables.update(self.variables(job.get("variables")))
        variables.update(cell)
        variables = expanded(variables)
        place = self.place(of("image"), job.get("tags") or default.get("tags"), variables)
        environment = f"job {name} {number}" if number else f"job {name}"
        made = Job(self.file, label, environment, place, named(cell))
        scripts = [
            *self.commands(of("before_script"), 0),
            *self.commands(job.get("script"), 0),
        ]
        if any(INSTALLS.search(text_of(one)) is not None for one in scripts):
            for order, word in enumerate(scripts):
                made.script(word, variables if order == 0 else {}, own=False)
        for word in self.commands(of("after_script"), 0):
            made.script(word, variables)
        return made.parts

    def commands(self, node: Node | None, depth: int) -> Iterator[Word]:
        """Yield the commands of a script: a text, or a list of texts and lists."""
        self.followed += 1
        if node is None or depth > _DEEPEST or self.followed > _MANY:
            return
        if node.kind == "scalar":
            yield word_of(self.text, node)
            return
        if node.kind == "sequence" and self.is_reference(node):
            target: Node | None = self.root
            for key in node.scalars():
                target = entry(target, key.value)
            yield from self.commands(target, depth + 1)
            return
        for item in node.items:
            yield from self.commands(item, depth + 1)

    def is_reference(self, node: Node) -> bool:
        """True for ``!reference [.setup, script]``."""
        around = self.text[max(node.start - 12, 0) : node.start + 12]
        first = text_in(node.items[0]) if node.items else ""
        return "!reference" in around and first in self.top

    def variables(self, node: Node | None) -> dict[str, Word]:
        """Return the variables of a mapping; they may have a description."""
        found: dict[str, Word] = {}
        for name, value in pairs(node):
            inner = entry(value, "value") if value.kind == "mapping" else value
            if inner is not None and inner.kind == "scalar":
                found[name] = number_of(inner, word_of(self.text, inner))
        return found

    def place(self, image: Node | None, tags: Node | None, variables: Mapping[str, Word]) -> Place:
        """Return the machine of a job."""
        named = entry(image, "name") if image is not None and image.kind == "mapping" else image
        found: Image | None = None
        if named is not None and named.kind == "scalar" and named.value:
            word = expanded({**variables, "": word_of(self.text, named)})[""]
            if "$" not in text_of(word):
                found = Image(text_of(word), named.inner)
        platform = "linux" if found is not None else None
        runner: Image | None = None
        for tag in tags.scalars() if tags is not None else ():
            label = tag.value.lower()
            if not label.startswith("saas-") or "gpu" in label:
                continue
            runner = Image(tag.value, tag.inner)
            machine = next((one for key, one in _MACHINES.items() if key in label), None)
            if "macos" in label:
                platform = "macos-arm64"
            elif "windows" in label:
                platform = "windows-x86_64"
            else:
                platform = machine or "linux-x86_64"
        return Place(platform, runner, found)
