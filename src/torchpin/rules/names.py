"""TP1: a package that is not what its name says."""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.documents.base import Document
from torchpin.evidence import MEASURED
from torchpin.rules.context import Context, Way
from torchpin.rules.model import ERROR, WARNING, Because, Finding
from torchpin.rules.registry import Rule

STUBS = {
    "pytorch": (
        "torch",
        "cannot be installed",
        'its setup.py raises: You tried to install "pytorch". The package named for PyTorch is '
        '"torch"',
        "PyPI: pytorch-1.0.2.tar.gz "
        "sha256:a6915d372c085a02eceebf59d16cbcc18a2693ac3487a53e3cc8be31fee65079 (setup.py)",
    ),
    "torch-vision": (
        "torchvision",
        "is torchvision 0.1.6.dev0",
        "its one release holds the folder torchvision of version 0.1.6.dev0, and no METADATA that "
        "name a torch",
        "PyPI: torch-vision-0.1.6.dev0.tar.gz "
        "sha256:c3f682bc21ef59da0543aeba8191c6a1bbe95ccf18747b636769078ab3fe86d1 (setup.py)",
    ),
}
"""Name on PyPI → the package that is meant, what comes of the name, what it does, how that is
known."""


class WrongName(Rule):
    """A package of PyPI whose name is not that of the package that is meant.

    What it does: reports ``pytorch``, the name of the project and of its conda package, and
    ``torch-vision``.

    Why it is bad: PyPI's ``pytorch`` holds no library: its installation always fails. PyPI's
    ``torch-vision`` is a torchvision from before torch 1.0, and writes into its folder.

    Example: ``pytorch>=2.0`` in a requirements file.

    Fix: ask for ``torch``, or ``torchvision``.

    Evidence: the ``setup.py`` of the package. On an index of one's own the name may be real: there
    it is a warning.
    """

    code = "TP109"
    name = "wrong-name"
    severity = ERROR

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield nothing: the rule looks at files."""
        yield from ()

    def check_document(self, document: Document, context: Context) -> Iterator[Finding]:
        """Yield declarations of such packages."""
        if document.conda is not None or document.lock is not None:
            return
        for declaration in document.declarations:
            stub = STUBS.get(declaration.name)
            if stub is None or declaration.url is not None:
                continue
            meant, comes, says, source = stub
            yield self.finding(
                document,
                declaration.span,
                f"PyPI's {declaration.name} {comes}; the package is {meant}",
                severity=WARNING if document.indexes else ERROR,
                package=declaration.name,
                because=(Because(says, MEASURED, source),),
            )


RULES = (WrongName,)
