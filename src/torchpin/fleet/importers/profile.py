"""Node groups as the text of a ``torchpin.toml``, with a comment beside every value."""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.errors import ConfigError
from torchpin.fleet.importers.fold import Group, Named
from torchpin.fleet.importers.hosts import compress
from torchpin.fleet.importers.model import KEYS, Told, printable
from torchpin.fleet.profile import read_profile
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_WIDTH = 100
_MOST_RANGES = 300
_SLUG = regex(r"[^a-z0-9]+")


class Written(NamedTuple):
    """A profile."""

    text: str
    declared: int
    """Node groups that it declares."""
    open: int
    """Groups, GPUs and values that stand there as comments, for a person to fill in."""


def profile_text(groups: Sequence[Group], title: str, name: str = "") -> Written:
    """Return the profile of ``groups``; ``load_profile`` reads it without an error.

    Args:
        groups: the node groups.
        title: the first line, after ``# ``.
        name: name of the groups, numbered from the second; ``""``: by their GPUs.
    """
    lines = [f"# {printable(title, 300)}", "# Look at each value, then: torchpin fleet show"]
    taken: set[str] = set()
    declared = left_open = 0
    for group in groups:
        table = _table_name(group, taken, name)
        text, active, missing = _group(group, table)
        declared += active
        left_open += missing
        lines += ("", *text)
    return Written("\n".join(lines) + "\n", declared, left_open)


def _group(group: Group, table: str) -> tuple[list[str], bool, int]:
    """Return the lines of a group, whether it is declared, and how much is left open."""
    head = _about(group)
    known = [gpu for gpu in group.gpus or () if gpu.written]
    unknown = [gpu for gpu in group.gpus or () if not gpu.written]
    body = _body(group, table, known, unknown)
    if group.gpus is None or (group.gpus and not known):
        reason = (
            f"Which GPUs? {group.gpus_where}."
            if group.gpus is None
            else "Which GPUs? " + "; ".join(gpu.note for gpu in unknown) + "."
        )
        return [*head, f"# {printable(reason, 300)}", *_off(body)], False, 1
    body, refused, without = _accepted(body)
    if refused:
        return [*head, f"# Left out: {refused}.", *_off(body)], False, 1
    facts = dict(group.facts)
    jetpack = facts.get("jetpack")
    if jetpack is not None:
        without += bool(jetpack.doubt)
    elif "driver" in facts and _is_jetson(known):
        without += 1  # its JetPack is to be declared in place of the driver
    return [*head, *body], True, len(unknown) + without


def _body(group: Group, table: str, known: list[Named], unknown: list[Named]) -> list[str]:
    """Return the table of the group."""
    lines = [f"[fleet.{table}]"]
    if group.gpus is None or (unknown and not known):
        lines.append('gpus = ["…"]')
    else:
        lines += _gpus(known, group.gpus_where)
        lines += (f"# not among them: {printable(gpu.note, 300)}" for gpu in unknown)
    facts = [(key, _fact(key, _doubted(key, told, known))) for key, told in group.facts]
    facts += _not_told(dict(group.facts))
    return lines + [line for _, line in sorted(facts, key=lambda fact: KEYS.index(fact[0]))]


def _not_told(facts: dict[str, Told]) -> list[tuple[str, str]]:
    """Return a comment for each value that most groups have and no input told."""
    missing: dict[str, str] = {}
    if "python" not in facts:
        missing["python"] = "the Python of your environments"
    if "platform" not in facts:
        missing["platform"] = "torchpin takes what its GPUs sit in, else linux-x86_64"
    system = facts["platform"].value if "platform" in facts else "linux"
    if system.startswith("linux") and not {"glibc", "libc"} & set(facts):
        missing["glibc"] = "as `ldd --version` prints it where torch runs"
    return [(key, f'# {key} = "…"  # not told; {what}') for key, what in missing.items()]


def _gpus(known: list[Named], where: str) -> list[str]:
    where = printable(where)
    if len(known) < 2 and not any(gpu.note for gpu in known):
        return [f"gpus = [{', '.join(quoted(gpu.written) for gpu in known)}]  # {where}"]
    lines = [f"gpus = [  # {where}"]
    for gpu in known:
        note = f"  # {printable(gpu.note, 200)}" if gpu.note else ""
        lines.append(f"    {quoted(gpu.written)},{note}")
    return [*lines, "]"]


def _fact(key: str, told: Told) -> str:
    value = "true" if key == "wsl" else quoted(told.value)
    if told.doubt:
        return f"# {key} = {value}  # {told.where}; {told.doubt}"
    return f"{key} = {value}  # {told.where}"


def _doubted(key: str, told: Told, known: list[Named]) -> Told:
    """Return the driver of a Jetson as a comment: L4T has numbers of its own."""
    if key == "driver" and _is_jetson(known):
        return told._replace(doubt="a Jetson's driver comes with its JetPack: declare jetpack")
    return told


def _is_jetson(known: list[Named]) -> bool:
    return bool(known) and all(gpu.tegra for gpu in known)


def _about(group: Group) -> list[str]:
    """Return the comment that names the machines."""
    what = " and ".join(group.what)
    count = f"{group.size} machine{'' if group.size == 1 else 's'}"
    lines = [f"# {count}, told by {what}" + (":" if group.names else "")]
    ranges = compress(group.names)
    more = len(ranges) - _MOST_RANGES
    line = "#  "
    for piece in ranges[:_MOST_RANGES]:
        if len(line) + len(piece) > _WIDTH - 2 and line != "#  ":
            lines.append(line)
            line = "#  "
        line += f" {piece}"
    if line != "#  ":
        lines.append(line)
    if more > 0:
        lines.append(f"#   and {more} more")
    return lines


def _accepted(body: list[str]) -> tuple[list[str], str, int]:
    """Return the body with what no profile accepts as a comment; why that fails; how many are so.

    An input may hold a driver that does not know the GPU beside it, or a system that torchpin does
    not know. One wrong value is left out; without the platform nothing else would be true.
    """
    reason = _refusal(body)
    if not reason:
        return body, "", 0
    for number, line in enumerate(body):
        key = line.partition(" = ")[0]
        if line.startswith("#") or key in ("gpus", "platform") or " = " not in line:
            continue
        without = [*body[:number], f"# {line}; left out: {reason}", *body[number + 1 :]]
        if not _refusal(without):
            return without, "", 1
    return body, reason, 0


def _refusal(body: list[str]) -> str:
    try:
        read_profile("\n".join(body) + "\n", "torchpin.toml")
    except ConfigError as error:
        return printable(error.message, 200)
    return ""


def _off(body: list[str]) -> list[str]:
    return [line if line.startswith("#") else f"# {line}" for line in body]


def _table_name(group: Group, taken: set[str], wanted: str) -> str:
    known = [gpu.key for gpu in group.gpus or ()]
    if wanted:
        base = wanted
    elif group.gpus == ():
        base = "cpu"
    else:
        slugs = [_SLUG.sub("-", key.lower()).strip("-") for key in known]
        base = "-".join(dict.fromkeys(slug for slug in slugs if slug))[:40].strip("-") or "unknown"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def quoted(text: str) -> str:
    """Return a printable string as TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
