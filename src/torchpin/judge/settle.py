"""The rule of evidence: what is inferred never says that something fails."""

from __future__ import annotations

from torchpin.evidence import PROOF
from torchpin.judge.model import FAILS, UNKNOWN, Reason


def settle(reason: Reason) -> Reason:
    """Return the reason, with ``fails`` on inferred facts turned into ``unknown``."""
    if reason.status != FAILS or reason.evidence in PROOF:
        return reason
    text = f"{reason.text} (not certain)"
    return reason._replace(status=UNKNOWN, text=text, lacks=True)
