"""What Poetry takes for the requirements of a release whose wheels disagree.

Poetry asks PyPI what a *release* requires and looks into no wheel; PyPI answers with the METADATA
of one of its files, which need not be the one that is installed. Wheels of old torchvision,
torchaudio and torchtext for aarch64 and Apple silicon ask for any torch where those for x86_64 pin
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.evidence import PROOF
from torchpin.select.pools import Candidate

_TOLD = {
    "torchvision": {
        "0.11.3": ">=0",
        "0.12.0": "==1.11.0",
        "0.13.0": "==1.12.0",
        "0.13.1": "==1.12.1",
        "0.14.0": "==1.13.0",
        "0.14.1": "==1.13.1",
    },
    "torchaudio": {
        "0.10.2": ">=0",
        "0.11.0": "==1.11.0",
        "0.12.0": "==1.12.0",
        "0.12.1": "==1.12.1",
        "0.13.0": "==1.13.0",
        "0.13.1": "==1.13.1",
    },
    "torchtext": {
        "0.11.2": ">=0",
        "0.12.0": "==1.11.0",
        "0.13.0": "==1.12.0",
        "0.13.1": "==1.12.1",
        "0.14.0": "==1.13.0",
        "0.14.1": "==1.13.1",
    },
}
"""Measured: what ``poetry lock -vv`` of Poetry 2.5.1 says that each release depends on."""


def as_told(one: Candidate, wheels: Sequence[Candidate]) -> Candidate:
    """Return a candidate with what Poetry believes that its release requires of torch.

    Args:
        one: the wheel that stands for the release.
        wheels: all wheels of the release at one source.

    Where the wheels on PyPI disagree and Poetry was not watched, the stricter ones are believed,
    and the candidate is inferred.
    """
    if one.build.home != "pypi":
        return one
    said = {c.requires for c in wheels if c.requires is not None and c.build.evidence in PROOF}
    if len(said) < 2:
        return one
    told = _TOLD.get(one.build.package, {}).get(one.build.version)
    if told is not None:
        return one._replace(requires=told)
    strict = next((c.requires for c in wheels if c.requires and c.requires != ">=0"), one.requires)
    return one._replace(requires=strict, inferred=True)
