"""The torch that an image brings itself, as a part of the file that names the image."""

from __future__ import annotations

from torchpin.documents.base import Document
from torchpin.documents.parts import IMAGE, Image, Part, part_of
from torchpin.documents.scripts import INSTALLS
from torchpin.patterns import regex

OWN_TORCH = regex(r"\bpytorch/pytorch:")
"""Images of which it is known which build of torch they hold."""
_OTHER_WAYS = regex(
    r"(?:conda|mamba)\b[^\n]*\binstall\b|\buninstall\b|\bpytorch\.git\b|\bbdist_wheel\b"
    r"|\bsetup\.py\s+(?:install|develop)\b",
)
"""What may change the torch of an image without a command that is read."""


def speaks(text: str) -> bool:
    """True if a text may install something, or name an image that brings a torch."""
    return INSTALLS.search(text) is not None or OWN_TORCH.search(text) is not None


def image_part(
    file: Document, image: Image | None, *, name: str, platform: str | None, environment: str
) -> Part | None:
    """Return the part of an image that brings a torch; None: it brings none, or the file may
    change it in ways that are not followed."""
    if image is None or OWN_TORCH.search(image.reference) is None:
        return None
    if _OTHER_WAYS.search(file.text) is not None:
        return None
    part = part_of(file, (), name=name, span=image.span, syntax=IMAGE)
    return part._replace(image=image, platform=platform or "linux", environment=environment)
