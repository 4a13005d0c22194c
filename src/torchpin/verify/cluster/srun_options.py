"""What the options for ``srun`` say of nodes; all else is passed on as it is.

``srun`` reads its options by ``getopt_long``: ``-wa001``, ``-w a001``, ``--nodelist=a001`` and
``--nodel a001`` are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.errors import UsageError
from torchpin.named import NamedTuple

_TAKEN = {
    "nodelist": "w",
    "nodefile": "F",
    "nodes": "N",
    "ntasks": "n",
    "ntasks-per-node": "",
}
_READ = {"partition": "p", "exclude": "x"}
_REFUSED = {
    "output": "o",
    "error": "e",
    "input": "i",
    "help": "h",
    "version": "V",
    "multi-prog": "",
    "pty": "",
    "test-only": "",
    "usage": "",
    "jobid": "",
}
_GPUS = ("gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "tres-per-task")


class SrunOptions(NamedTuple):
    """Options for ``srun``, those that choose nodes taken out."""

    rest: tuple[str, ...] = ()
    nodelist: str = ""
    """``a[001-004],v1``"""
    nodefile: str = ""
    number: str = ""
    """Of ``--nodes``: how many."""
    tasks: str = ""
    partition: str = ""
    exclude: str = ""
    asks_gpus: bool = False
    """They ask for GPUs (or for none) themselves."""
    reservation: bool = False


def read(words: Sequence[str]) -> SrunOptions:
    """Return what the words say.

    Raises:
        UsageError: an option that takes srun's output or input away, or a command.
    """
    told: dict[str, str] = {}
    rest: list[str] = []
    asks = reservation = may_be_value = False
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, value = _split(word)
        if not name and not may_be_value:
            raise UsageError(
                f"{word!r} is no option of srun",
                hint="what srun runs is torchpin itself: give options only",
            )
        may_be_value = bool(name) and value is None
        if name in _REFUSED:
            raise UsageError(
                f"srun's option {word.partition('=')[0]} cannot be used here",
                hint="torchpin reads what srun prints: leave it out",
            )
        asks = asks or name in _GPUS or name == "G"
        reservation = reservation or name == "reservation"
        if name not in _TAKEN and name not in _READ:
            rest.append(word)
            continue
        if value is None:
            if at == len(words):
                raise UsageError(f"srun's option {word} needs a value")
            value = words[at]
            at += 1
            may_be_value = False
        told[name] = value
        if name in _READ:
            rest.append(f"--{name}={value}")
    return SrunOptions(
        tuple(rest),
        told.get("nodelist", ""),
        told.get("nodefile", ""),
        told.get("nodes", ""),
        told.get("ntasks", ""),
        told.get("partition", ""),
        told.get("exclude", ""),
        asks,
        reservation,
    )


def _split(word: str) -> tuple[str, str | None]:
    """Return the long name of an option that is known here, and its value if it is in the word."""
    known = {**_TAKEN, **_READ, **_REFUSED}
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        exact = (*known, *_GPUS, "reservation")
        if name not in exact:
            begun = [one for one in exact if one.startswith(name)]
            # srun takes a beginning that is no other's; --exclu may be --exclusive.
            if len(begun) == 1 and len(name) >= (6 if begun[0] == "exclude" else 4):
                name = begun[0]
        return name, value if equals else None
    if word.startswith("-") and len(word) > 1:
        for name, letter in known.items():
            if letter and word[1] == letter:
                return name, word[2:] or None
        return word[1], word[2:] or None
    return "", None
