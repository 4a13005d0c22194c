"""The torch that a container image brings itself, judged as the channel's build that it is.

PyTorch's images are made by ``pip install torch`` from the channel that their tag names
(https://github.com/pytorch/pytorch/blob/main/Dockerfile), for x86_64 since 2.6; before, they held
builds of conda, whose kernels are others. What is built into an image is there already: neither
Python nor glibc of the fleet decide about it.
"""

from __future__ import annotations

from collections.abc import Iterable

from torchpin.catalog.images import image_facts
from torchpin.documents.base import Declaration, Document
from torchpin.documents.parts import IMAGE, Part
from torchpin.fleet.model import Target
from torchpin.select.channels import channel_url
from torchpin.select.model import IndexKind, Install, Placed, PlacedIndex
from torchpin.select.pools import version_of

FIRST = "2.6.0"
"""The first release whose images surely hold the channel's build."""


def image_install(part: Part) -> Install | None:
    """Return the torch of a part's image as an install; None: it is not known which build it is."""
    if part.syntax != IMAGE or part.image is None:
        return None
    facts = image_facts(part.image.reference)
    version = dict(facts.packages).get("torch")
    if version is None or facts.cuda is None or facts.vendor:
        return None
    if version_of(version) < version_of(FIRST):
        return None
    channel = f"cu{facts.cuda.replace('.', '')}"
    span = part.image.span
    declaration = Declaration(
        name="torch",
        specifier=f"=={version}+{channel}",
        extras=(),
        url=None,
        marker=None,
        scope="",
        span=span,
        line_span=span,
        name_span=span,
        specifier_span=None,
        marker_span=None,
        url_span=None,
        from_variable=True,
    )
    document: Document = part.document
    url = channel_url(channel)
    index = PlacedIndex(None, None, "--index-url", url, IndexKind("channel", channel))
    return Install(
        root=document,
        name=part.name,
        client="pip",
        documents=(document,),
        requirements=(Placed(document, declaration),),
        constraints=(),
        indexes=(index,),
        discarded=(),
    )


def image_targets(targets: Iterable[Target]) -> tuple[Target, ...]:
    """Return the machines that would run an image as it is: those with Linux on x86_64."""
    return tuple(
        dict.fromkeys(
            Target(one.group._replace(glibc=None, musl=False), None)
            for one in targets
            if one.group.platform == "linux-x86_64"
        )
    )
