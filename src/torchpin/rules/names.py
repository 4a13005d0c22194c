"""TP1: a package that is not what its name says."""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.documents.base import Declaration, Document
from torchpin.evidence import INFERRED, MEASURED
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, ERROR, INFO, WARNING, Because, Finding, Fix
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
        "its one release holds the folder torchvision of version 0.1.6.dev0",
        "PyPI: torch-vision-0.1.6.dev0.tar.gz "
        "sha256:c3f682bc21ef59da0543aeba8191c6a1bbe95ccf18747b636769078ab3fe86d1 (setup.py)",
    ),
}
"""Name on PyPI → the package that is meant, what comes of the name, what it does, how that is
known."""


MEANT = ("torch", "torchvision", "torchaudio")
TAKEN = frozenset(
    (
        *("orch", "torc", "torchh", "torrch", "trch", "troch", "ttorch"),
        "torchvisoin",
    )
)
"""Packages of PyPI whose names are typing errors of those of ``MEANT``, or look so."""

_slips: dict[str, str] = {}


def slips() -> dict[str, str]:
    """Return each slip of a finger → the name that was meant: two letters swapped, one left out,
    one typed twice; without the names of real packages."""
    if not _slips:
        for name in MEANT:
            for at in range(len(name)):
                rest = name[at + 1 :]
                swapped = name[:at] + rest[:1] + name[at] + rest[1:]
                for made in (swapped, name[:at] + rest, name[: at + 1] + name[at:]):
                    if made not in MEANT and made not in TAKEN:
                        _slips.setdefault(made, name)
    return _slips


class WrongName(Rule):
    """A package whose name is not that of the package that is meant.

    What it does: reports ``pytorch``, the name of the project and of its conda package, and
    ``torch-vision``. A slip of a finger in a file that does not name the package otherwise
    (``torhc``) is told as information.

    Why it is bad: PyPI's ``pytorch`` holds no library: its installation always fails. PyPI's
    ``torch-vision`` is a torchvision from before torch 1.0, and writes into its folder.

    Example: ``pytorch>=2.0`` in a requirements file.

    Fix: ask for ``torch``, or ``torchvision``.

    Evidence: the ``setup.py`` of the package. On an index of one's own the name may be real: there
    it is a warning. A slip rests on its spelling alone.
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
        named = {declaration.name for declaration in document.declarations}
        for declaration in document.declarations:
            right = slips().get(declaration.name)
            if right is not None and right not in named and declaration.url is None:
                yield self._slip(document, declaration, right)
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

    def _slip(self, document: Document, declaration: Declaration, right: str) -> Finding:
        name = declaration.name
        text = f"torchpin knows no package {name}, and it is a slip of a finger from {right}"
        finding = self.finding(
            document,
            declaration.span,
            f"{name}: is {right} meant?",
            severity=INFO,
            package=right,
            because=(Because(text, INFERRED, "spelling"),),
        )
        line = f"{right}{declaration.specifier}"
        return finding._replace(fix=Fix(DISPLAY, f"write {line}, if that is meant"))


RULES = (WrongName,)
