"""Which C library a Linux distribution has.

Source: the table of the PEP 600 compliance project, which reads the symbols of each distribution's
libraries (https://github.com/mayeut/pep600_compliance, README, "Distro compatibility"). What is not
there is unknown: Flatcar, Container-Optimized OS and Bottlerocket change it within one release.
"""

from __future__ import annotations

import re

from torchpin.patterns import regex

_GLIBC = {
    "ubuntu": {
        "14.04": "2.19",
        "16.04": "2.23",
        "18.04": "2.27",
        "20.04": "2.31",
        "20.10": "2.32",
        "21.04": "2.33",
        "21.10": "2.34",
        "22.04": "2.35",
        "22.10": "2.36",
        "23.04": "2.37",
        "23.10": "2.38",
        "24.04": "2.39",
        "24.10": "2.40",
        "25.04": "2.41",
        "25.10": "2.42",
    },
    "debian": {"8": "2.19", "9": "2.24", "10": "2.28", "11": "2.31", "12": "2.36", "13": "2.41"},
    "rhel": {"7": "2.17", "8": "2.28", "9": "2.34", "10": "2.39"},
    "amazon": {"1": "2.17", "2": "2.26", "2023": "2.34"},
    "fedora": {
        "34": "2.33",
        "35": "2.34",
        "36": "2.35",
        "37": "2.36",
        "38": "2.37",
        "39": "2.38",
        "40": "2.39",
        "41": "2.40",
        "42": "2.41",
        "43": "2.42",
    },
    "opensuse": {"15.3": "2.31", "15.4": "2.31", "15.5": "2.31", "15.6": "2.38"},
}
_FAMILIES = (
    (r"ubuntu", "ubuntu"),
    (r"debian", "debian"),
    (r"red ?hat|rhel|centos|rocky|alma ?linux|oracle ?linux", "rhel"),
    (r"amazon", "amazon"),
    (r"fedora(?! coreos)", "fedora"),
    (r"opensuse leap", "opensuse"),
)
_ROLLING = regex(r"\b(?:core ?os|sid|rawhide)\b", re.I)


def glibc_of(system: str) -> str:
    """Return the glibc of ``Ubuntu 22.04.5 LTS``, ``Amazon Linux 2023.6.20241010`` …; or ``""``."""
    low = system[:200].lower()
    if _ROLLING.search(low):
        return ""
    family = next((name for pattern, name in _FAMILIES if re.match(pattern, low)), "")
    version = re.search(r"\b([0-9]+)(?:\.([0-9]+))?", low)
    if not family or version is None:
        return ""
    table = _GLIBC[family]
    both = f"{version[1]}.{version[2]}"
    if family in ("ubuntu", "opensuse"):
        return table.get(both, "")
    return table.get(version[1], "")


def is_musl(system: str) -> bool:
    """Tell whether the distribution has musl in place of glibc."""
    return system.lower().startswith(("alpine", "postmarketos", "chimera"))
