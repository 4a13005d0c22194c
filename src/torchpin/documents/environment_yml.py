"""Environment files of conda: ``environment.yml``.

``conda env create`` installs what stands under ``dependencies``, then writes the ``pip:`` lists
into a requirements file beside the environment file and runs ``pip install -U -r`` on it (source:
``conda/env/installers/pip.py``). So each such list is a part with its own index lines. What conda
itself installs is kept in ``Document.conda``.
"""

from __future__ import annotations

from torchpin.documents.base import Document, Span
from torchpin.documents.conda import Conda, CondaSpec, channel_name, parse_spec, python_of
from torchpin.documents.parts import Part, file_of, part_of, quoted
from torchpin.documents.yaml_spans import Node, scan_yaml

KIND = "environment.yml"


def read_environment_yml(path: str, data: bytes) -> Document:
    """Return the document of an environment file; never raises.

    A YAML file without a list of ``dependencies`` is no environment: it has no parts. Text with
    such a list that is no YAML gives a problem of the code ``yaml``.
    """
    file = file_of(path, data, KIND)
    if file.problems:
        return file
    read = scan_yaml(file.text)
    file = file._replace(comments=read.comments)
    if read.problem is not None:
        named = "\ndependencies:" in f"\n{file.text}"
        return file._replace(problems=(read.problem,) if named else ())
    root = read.root
    dependencies = root.get("dependencies") if root is not None else None
    if root is None or dependencies is None or dependencies.kind != "sequence":
        return file
    conda = Conda(_channels(root), tuple(_specs(dependencies)))
    file = file._replace(conda=conda)
    return file._replace(parts=tuple(_parts(file, dependencies, conda)))


def _channels(root: Node) -> tuple[tuple[str, Span], ...]:
    listed = root.get("channels")
    if listed is None:
        return ()
    return tuple((channel_name(one.value), one.inner) for one in listed.scalars())


def _specs(dependencies: Node) -> list[CondaSpec]:
    found = []
    for item in dependencies.items:
        if item.kind == "scalar":
            spec = parse_spec(item.value, item.inner)
            if spec is not None:
                found.append(spec)
    return found


def _parts(file: Document, dependencies: Node, conda: Conda) -> list[Part]:
    found: list[Part] = []
    for item in dependencies.items:
        listed = item.get("pip") if item.kind == "mapping" else None
        if listed is None or not (listed.items or listed.kind == "scalar"):
            continue
        items = list(listed.scalars())
        lines = [quoted(one.value, file.text, *one.inner) for one in items]
        part = part_of(
            file,
            lines,
            name="pip" if not found else f"pip {len(found) + 1}",
            span=listed.span,
            syntax="yaml",
        )
        found.append(
            part._replace(
                options_at=options_at(file.text, listed),
                python=python_of(conda),
                environment="conda",
                upgrade=True,
            )
        )
    return found


def options_at(text: str, listed: Node) -> int | None:
    """Return where a line ``- --option`` may be inserted: before the first item of a block list.

    The offset is that of the first item's dash; None for a list in brackets.
    """
    if listed.kind != "sequence" or listed.style != "block" or not listed.items:
        return None
    return listed.start if text[listed.start : listed.start + 1] == "-" else None
