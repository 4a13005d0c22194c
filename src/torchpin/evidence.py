"""How a fact is known (the words of the rule of evidence).

Plain strings, not an enum: they are read from data files and printed as they are.
"""

from __future__ import annotations

MEASURED = "measured"
"""Read from the wheel itself; the source names its SHA-256."""
LOCKFILE = "lockfile"
"""A digest in a public lock file proves that the file exists."""
PUBLISHED = "published"
"""Build script, release notes, documentation or a statement of the maintainers."""
BOUNDED = "bounded"
"""Lies outside the proved first and last release of its channel."""
INFERRED = "inferred"
"""Follows from a pattern only; never the ground of an error."""

ORDER = (MEASURED, LOCKFILE, PUBLISHED, BOUNDED, INFERRED)
PROOF = frozenset((MEASURED, LOCKFILE, PUBLISHED, BOUNDED))
"""Evidence on which an *error* may rest."""


def weakest(*evidence: str) -> str:
    """Return the weakest of several evidence words: a chain is as strong as its weakest link."""
    return max(evidence, key=ORDER.index)
