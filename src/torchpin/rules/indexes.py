"""TP4: what is wrong with one index line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.patterns import regex
from torchpin.rules.context import Context, Way
from torchpin.rules.model import WARNING, Because, Finding
from torchpin.rules.registry import Rule
from torchpin.select.channels import holds_token, index_kind, redact
from torchpin.select.model import PlacedIndex

PIP_TRUST = "https://pip.pypa.io/en/stable/cli/pip/#cmdoption-trusted-host"
LOCAL = regex(r"^http://(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)


def written(way: Way) -> Iterator[PlacedIndex]:
    """Yield the index lines of a way that stand in a document, each once."""
    seen = set()
    for index in (*way.install.indexes, *way.install.discarded, *project_lines(way)):
        if index.document is None or index.line is None:
            continue
        key = (index.document.path, index.line.span)
        if key not in seen:
            seen.add(key)
            yield index


def project_lines(way: Way) -> Iterator[PlacedIndex]:
    """Yield the indexes of a project's files that only sources, or ``uv pip``, use."""
    for document in way.install.documents:
        if document.project is None:
            continue
        from torchpin.documents.manifest import index_line

        for index in document.project.indexes:
            line = index_line(document.text, index)
            kind = index_kind(index.url, dict(way.private), option=index.option)
            yield PlacedIndex(document, line, index.option, index.url, kind)


class LegacyFindLinks(Rule):
    """The old link page of PyTorch.

    What it does: reports ``-f https://download.pytorch.org/whl/torch_stable.html``.

    Why it is bad: the page is one list of all channels of old releases and is not kept up; newer
    builds are not on it.

    Example: ``-f https://download.pytorch.org/whl/torch_stable.html``

    Fix: ``--extra-index-url`` with the channel of the label.

    Evidence: PyTorch's install instructions since 1.13.
    """

    code = "TP402"
    name = "legacy-find-links"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield legacy link pages."""
        unknown = dict.fromkeys(
            one.selection.package
            for _, one in context.pairs(way)
            if one.selection.status == "unknown"
        )
        untold = f", and whether it holds {', '.join(unknown)} is not known" if unknown else ""
        for index in written(way):
            if index.kind.kind == "legacy" and index.document and index.line:
                yield self.finding(
                    index.document,
                    index.line.url_span,
                    f"this link page is not kept up{untold}: name the channel's index instead",
                    because=(
                        Because(
                            "current install commands name an index of one channel",
                            PUBLISHED,
                            "https://pytorch.org/get-started/previous-versions/",
                        ),
                    ),
                )


class InsecureIndex(Rule):
    """Packages over an unprotected connection.

    What it does: reports ``http://`` indexes and ``--trusted-host``.

    Why it is bad: whoever sits between can replace a wheel, and wheels run code.

    Example: ``--index-url http://mirror.example/simple``

    Fix: ``https://``, and the mirror's certificate in the trust store.

    Evidence: the URL.
    """

    code = "TP403"
    name = "insecure-index"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield http indexes and trusted hosts."""
        for index in written(way):
            url = index.url.lower()
            if url.startswith("http://") and not LOCAL.match(url) and index.document:
                assert index.line is not None
                yield self.finding(
                    index.document,
                    index.line.url_span,
                    f"packages come over plain http from {redact(index.url)}",
                    because=(Because("http has no protection", PUBLISHED, PIP_TRUST),),
                )
        for document in way.install.documents:
            for option in document.options:
                if option.name == "--trusted-host":
                    yield self.finding(
                        document,
                        option.span,
                        f"certificates of {option.value} are not checked",
                        because=(
                            Because("--trusted-host turns the check off", PUBLISHED, PIP_TRUST),
                        ),
                    )


class CredentialsInIndex(Rule):
    """A password or token in an index URL.

    What it does: reports user information in index URLs, and tokens in their path or query; they
    are never printed.

    Why it is bad: the file is in version control, and so is the secret.

    Example: ``--index-url https://user:secret@wheels.corp.example/simple``

    Fix: ``${VARIABLE}`` in the URL, a keyring or a netrc file.

    Evidence: the URL.
    """

    code = "TP404"
    name = "credentials-in-index"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield URLs with user information that is not a variable, or with a token."""
        for index in written(way):
            if index.document is None or index.line is None:
                continue
            raw = index.document.text[index.line.url_span.start : index.line.url_span.end]
            match = re.match(r"[a-z+]+://([^/@\s]+)@", raw, re.IGNORECASE)
            named = match and not re.fullmatch(r"(\$\{[A-Z0-9_]+\}:?)+", match.group(1))
            if named or ("${" not in raw and holds_token(raw)):
                yield self.finding(
                    index.document,
                    index.line.url_span,
                    f"credentials stand in the URL of {redact(index.url)}",
                    because=(
                        Because(
                            "pip and uv take them from variables, netrc and keyrings too",
                            PUBLISHED,
                            "https://pip.pypa.io/en/stable/topics/authentication/",
                        ),
                    ),
                )


class FindLinksOnIndex(Rule):
    """The root of a channel given to ``--find-links``.

    What it does: reports ``-f https://download.pytorch.org/whl/cu118``.

    Why it is bad: the root of a channel is an index, not a page of links: nothing is found on it,
    and PyPI's own build is installed without a word. (A channel's project page works:
    ``-f …/cu118/torch/``.)

    Example: ``-f https://download.pytorch.org/whl/cu118``

    Fix: ``--extra-index-url`` instead of ``-f``.

    Evidence: pip and uv tried on such a page.
    """

    code = "TP412"
    name = "find-links-on-index"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield find-links that point to a channel's root."""
        for index in written(way):
            if index.line is None or index.document is None:
                continue
            if (
                index.line.option == "--find-links"
                and index.kind.kind in ("channel", "root", "nightly", "test")
                and index.kind.project is None
            ):
                yield self.finding(
                    index.document,
                    index.line.span,
                    "this is an index, not a page of links: nothing is found on it, "
                    "and PyPI's build comes instead",
                    because=(
                        Because(
                            "neither pip nor uv finds a file there",
                            MEASURED,
                            "pip 26.3 and uv 0.13.9",
                        ),
                    ),
                )


RULES = (LegacyFindLinks, InsecureIndex, CredentialsInIndex, FindLinksOnIndex)
