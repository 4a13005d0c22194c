"""The fix of the old link page: the index of the labels that the file pins."""

from __future__ import annotations

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY
from torchpin.documents.pins import exact_version
from torchpin.errors import RewriteError
from torchpin.rewrite.draft import Draft, RefusedError
from torchpin.rewrite.request import family_declarations
from torchpin.rewrite.requirement_indexes import written_anew
from torchpin.rewrite.reread import edited
from torchpin.rules.context import Context, Way
from torchpin.rules.model import SAFE, UNSAFE, FileEdits, Fix
from torchpin.select.channels import channel_url
from torchpin.select.selection import select


def link_page_fix(way: Way, context: Context) -> Fix | None:
    """Return the fix that names the channel of the labels instead of ``torch_stable.html``.

    The pins stay as they are: what lies on the page is not known, so no other build is nearer to
    them. None where the labels do not agree, or their channel is known not to hold the pins.
    Unsafe where it is not known whether it does.
    """
    declarations = family_declarations(way)
    pins = [exact_version(placed.declaration.specifier) for placed in declarations]
    labels = {pin[1] for pin in pins if pin is not None and pin[1]}
    label = labels.pop() if len(labels) == 1 else ""
    if kind_of_label(label) is None or label not in context.catalog.channels():
        return None  # no index of that name is known: the link page may be all there is
    url = channel_url(label)
    options = [f"--extra-index-url {url}"]
    if way.install.client == "uv":  # an index would shadow other packages
        names = dict.fromkeys(placed.declaration.name for placed in declarations)
        options = [f"-f {url}/{name}/" for name in names]
    try:
        edits = tuple(
            FileEdits(index.document, (written_anew(way, index, options),))
            for index in way.install.indexes
            if index.kind.kind == "legacy" and index.document is not None and index.line is not None
        )
        if len(edits) != 1:
            return None
        install = edited(way, Draft(edits, pinned=False))
    except (RefusedError, RewriteError):
        return None
    chosen = [select(install, judged_set.target, context.catalog) for judged_set in way.sets]
    states = {one.status for some in chosen for one in some.selections if one.package in FAMILY}
    if "none" in states or any(some.conflict for some in chosen):
        return None
    safety = UNSAFE if "unknown" in states or not context.declared else SAFE
    return Fix(safety, " ".join(options), edits)
