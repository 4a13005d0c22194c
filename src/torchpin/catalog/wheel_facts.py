"""What the text files of a wheel say: METADATA, WHEEL and ``version.py``."""

from __future__ import annotations

import re

from torchpin.catalog.bounded import InspectError
from torchpin.catalog.labels import cuda_of
from torchpin.catalog.zipread import Wheel
from torchpin.patterns import regex

_MOST_TEXT = 4 * 1024 * 1024
_ASSIGNED = regex(
    r"^(__version__|cuda|hip)\s*(?::[^=\n]{0,60})?=\s*(['\"])([^'\"\n]{0,80})\2", re.MULTILINE
)


def assigned(data: bytes) -> dict[str, str]:
    """Return what a ``version.py`` says: ``__version__``, ``cuda`` and ``hip``, where it does."""
    said: dict[str, str] = {}
    for match in _ASSIGNED.finditer(data[:65_536].decode("utf-8", "replace")):
        said.setdefault(match[1], match[3])
    return said


class NoWheelError(InspectError):
    """A file that is named like a wheel and holds no METADATA, or two."""


class WheelFacts:
    """METADATA, WHEEL and ``version.py`` of a wheel."""

    def __init__(self, wheel: Wheel) -> None:
        self._wheel = wheel
        self.package: str | None = None
        self.version: str | None = None
        self.tags: tuple[str, ...] = ()
        self.requires_python: str | None = None
        self.requires: tuple[str, ...] = ()
        self.said: dict[str, str] = {}
        names = [info.filename for info in wheel.members]
        folders = {
            name.partition("/")[0]
            for name in names
            if name.count("/") == 1 and name.endswith((".dist-info/METADATA", ".dist-info/WHEEL"))
        }
        if len(folders) != 1:
            raise NoWheelError(
                "is not a wheel: it holds no METADATA" if not folders else "holds two METADATA"
            )
        self._folder = folders.pop()
        stem = self._folder.partition("-")[0].replace("-", "_")
        wanted = (
            f"{self._folder}/METADATA",
            f"{self._folder}/WHEEL",
            f"{stem}/version.py",
            f"{stem}/_version.py",
        )
        self.members = [info for info in map(wheel.named, wanted) if info is not None]

    def read(self) -> None:
        """Read the members.

        Raises:
            InspectError: one of them is too big or cannot be parsed.
        """
        from email.parser import BytesHeaderParser

        from packaging.metadata import parse_email

        for info in self.members:
            data = self._wheel.text(info, _MOST_TEXT)
            if info.filename.endswith("/METADATA"):
                try:
                    raw, _ = parse_email(data)
                except (ValueError, TypeError, LookupError) as error:
                    raise InspectError("its METADATA cannot be parsed") from error
                self.package, self.version = raw.get("name"), raw.get("version")
                self.requires_python = raw.get("requires_python")
                self.requires = tuple(raw.get("requires_dist", ()))
            elif info.filename.endswith("/WHEEL"):
                said = BytesHeaderParser().parsebytes(data)
                self.tags = tuple(str(tag) for tag in said.get_all("Tag", ()))
            else:
                self.said = {**assigned(data), **self.said}

    @property
    def cpu_build(self) -> bool:
        """Tell whether ``version.py`` names neither CUDA nor ROCm."""
        return "__version__" in self.said and not {"cuda", "hip"} & set(self.said)

    def label_cuda(self) -> str | None:
        """Return the CUDA that a local label names: ``13.2`` of ``2.15.0+cu132``."""
        for version in (self.said.get("__version__"), self.version):
            cuda = cuda_of((version or "").partition("+")[2])
            if cuda:
                return cuda
        return None

    def notes(self, file: str) -> tuple[str, ...]:
        """Return what the file name and METADATA say differently."""
        from packaging.utils import canonicalize_name, parse_wheel_filename
        from packaging.version import Version

        try:
            name, version, _, tags = parse_wheel_filename(file)
        except ValueError:  # InvalidWheelFilename, InvalidVersion, or too many digits
            return (f"{file} is not the name of a wheel: its tags are those that WHEEL names",)
        out = []
        try:
            same = self.version is not None and Version(self.version) == version
        except ValueError:  # InvalidVersion, or more digits than Python reads
            same = False
        if not same or canonicalize_name(self.package or "") != name:
            out.append(f"the file is named for {name} {version}, its METADATA differs")
        self.tags = tuple(sorted(map(str, tags)))  # what installers go by
        return tuple(out)
