"""What torch's wheels bring from NVIDIA, and for which GPUs that holds kernels.

The data file ``internals.json`` ships with torchpin and is read when it is first asked for. It
holds, one record a line:

* ``torch``: version, platform, channel, number in ``brings``, evidence, number in ``sources``: what
  the wheel of this version requires (as its METADATA says; ``cuda-toolkit`` is taken apart);
* ``brings``: specifiers joined by blanks (``""``: not known), and the version that comes of each;
* ``wheels``: package, version, platform, libraries as [file name, number in ``lists``], number in
  ``sources``: the device code of a wheel of NVIDIA's;
* ``lists``: SASS and PTX targets joined by blanks: every target that any fatbin of it holds;
* ``sources``: the texts that the numbers point to.
"""

from __future__ import annotations

import json
import os

from torchpin.catalog.model import Build, Kernels
from torchpin.errors import CatalogError
from torchpin.evidence import MEASURED
from torchpin.named import NamedTuple
from torchpin.patterns import regex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "internals.json")
_SPEC = regex(r"([A-Za-z0-9][\w.-]*?)(\[[^\]]*\])?([<>=!~].*)?\Z")
_MAJOR = regex(r"(?:-cu\d+)?\Z")


class Brings(NamedTuple):
    """What a torch build requires of triton and NVIDIA."""

    requires: tuple[tuple[str, str], ...]
    """(package, specifier), by name; empty where METADATA was not read."""
    versions: tuple[tuple[str, str], ...]
    """(package, version): the newest that the specifiers admit."""
    evidence: str
    source: str


class Internal(NamedTuple):
    """One library with device code of what torch brings."""

    package: str
    version: str
    name: str
    """File name: ``libcudnn_ops.so.9``."""
    kernels: Kernels


class Internals:
    """Look-ups in the shipped table; unknown builds have nothing."""

    def __init__(self, path: str = PATH) -> None:
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
            self._torch = {tuple(row[:3]): row[3:] for row in data["torch"]}
            self._brings: list[Any] = data["brings"]
            self._wheels = {tuple(row[:3]): row[3:] for row in data["wheels"]}
            self._lists: list[list[str]] = data["lists"]
            self._sources: list[str] = data["sources"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CatalogError(f"catalog data cannot be read: {error}", path=path) from error

    def brings(self, build: Build) -> Brings | None:
        """Return what a torch build requires of triton and NVIDIA; None where it is not known."""
        if build.package != "torch":
            return None
        return self._brings_of(build.version, build.platform, build.channel)

    def _brings_of(self, version: str, platform: str, channel: str) -> Brings | None:
        found = self._torch.get((version, platform, channel))
        if found is None:
            return None
        at, evidence, source = found
        specifiers, versions = self._brings[at]
        requires = []
        for text in specifiers.split():
            match = _SPEC.match(text)
            if match:
                requires.append((match[1], match[3] or ""))
        return Brings(tuple(requires), tuple(versions.items()), evidence, self._sources[source])

    def libraries(self, build: Build) -> tuple[Internal, ...]:
        """Return the libraries with device code that a torch build brings, as far as known."""
        if build.package != "torch":
            return ()
        return self.libraries_of(build.version, build.platform, build.channel)

    def libraries_of(self, version: str, platform: str, channel: str) -> tuple[Internal, ...]:
        """Return the same for the torch of a version, platform and channel."""
        brought = self._brings_of(version, platform, channel)
        out: list[Internal] = []
        for package, number in brought.versions if brought is not None else ():
            found = self._wheels.get((package, number, platform))
            if found is None:
                continue
            libraries, source = found
            for name, at in libraries:
                sass, ptx = self._lists[at]
                kernels = Kernels(
                    tuple(sass.split()), tuple(ptx.split()), (), MEASURED, self._sources[source]
                )
                out.append(Internal(package, number, name, kernels))
        return tuple(out)

    def wheels(self, product: str, platform: str) -> tuple[tuple[str, str, Kernels], ...]:
        """Return (package, version, kernels of all its files) of each measured wheel of a product.

        ``product`` is ``cudnn``, ``cublas``, ``nccl`` …; oldest first.
        """
        out: list[tuple[str, str, Kernels]] = []
        for (package, version, where), (libraries, source) in self._wheels.items():
            if where != platform or not package.startswith(f"nvidia-{product}"):
                continue
            if not _MAJOR.match(package.removeprefix(f"nvidia-{product}")):
                continue  # nvidia-cusparselt is not nvidia-cusparse
            sass = {code for _, at in libraries for code in self._lists[at][0].split()}
            ptx = {code for _, at in libraries for code in self._lists[at][1].split()}
            kernels = Kernels(
                tuple(sorted(sass)), tuple(sorted(ptx)), (), MEASURED, self._sources[source]
            )
            out.append((package, version, kernels))
        out.sort(key=lambda one: tuple(int(part) for part in one[1].split(".")))
        return tuple(out)


_internals: Internals | None = None


def load_internals() -> Internals:
    """Return the shipped table; one instance a process.

    Raises:
        CatalogError: it cannot be read.
    """
    global _internals
    if _internals is None:
        _internals = Internals()
    return _internals
