"""The words of a verified cluster: what each node answered, or why it did not."""

from __future__ import annotations

from torchpin.named import NamedTuple
from torchpin.verify.model import FAILED, OK, Host, Summary, Work

CUT, SILENT = "cut-short", "no-answer"
STATUSES = (OK, FAILED, "incomplete", CUT, SILENT)
"""Of a node: those of its summary; ``cut-short``: its answer has no end; ``no-answer``: none."""


class Answer(NamedTuple):
    """What one node answered."""

    node: str
    host: Host | None = None
    works: tuple[Work, ...] = ()
    summary: Summary | None = None
    reason: str = ""
    """Why there is no answer, or half of one; in Slurm's or Kubernetes' own words where they have
    any."""

    @property
    def status(self) -> str:
        """One of ``STATUSES``; what failed is not outvoted by the node's own summary."""
        if self.host is None and not self.works and self.summary is None:
            return SILENT
        if self.summary is None:
            return CUT
        differs = self.host is not None and bool(self.host.differences)
        if differs or any(work.status == FAILED for work in self.works):
            return FAILED
        return self.summary.status

    @property
    def group(self) -> str | None:
        """The node group of the profile, where it is known."""
        if self.host is not None and self.host.group is not None:
            return self.host.group
        return self.summary.group if self.summary is not None else None


class Expected(NamedTuple):
    """A node that should answer."""

    name: str
    reason: str = ""
    """Why it cannot be expected to: ``drained: fan broken``; ``""``: it can."""
    gpus: int = 0
    hostname: str = ""
    """Its label ``kubernetes.io/hostname``, where it is not its name."""
