"""Where the pages of the rules are published: what the metadata of the package says."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def pages() -> str:
    """Return the URL below which the pages of the rules lie; ``""`` if none is known.

    It is the ``Documentation`` among the project URLs of the installed package.
    """
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("torchpin").get_all("Project-URL") or []
    except PackageNotFoundError:  # run from a folder
        return ""
    return below(urls)


def below(urls: list[str]) -> str:
    """Return the URL of the pages of the rules, of the fields ``Project-URL``."""
    for line in urls:
        label, _, url = line.partition(",")
        if label.strip().lower() == "documentation":
            return f"{url.strip().rstrip('/')}/reference/rules/"
    return ""
