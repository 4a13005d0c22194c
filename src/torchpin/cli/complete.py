"""What a shell offers behind the words that are written; see ``cli/completion.py``.

argcomplete asks with the line in the environment (``_ARGCOMPLETE``, ``COMP_LINE``), and takes the
answer from argparse parsers. Only that of the command on the line is made.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import NoReturn

from torchpin.cli.main import COMMANDS
from torchpin.cli.parser import Parser

Offers = Callable[..., Iterable[str]]


def answer() -> NoReturn:
    """Write what completes the line, and leave."""
    import argcomplete
    from argcomplete.completers import FilesCompleter

    words = os.environ.get("COMP_LINE", "").split()
    tree = parser_for(words)
    for parser in parsers_of(tree):
        for action in parser._actions:
            found = offers_of(action)
            if found is not None:
                action.completer = found  # type: ignore[attr-defined]
            elif action.metavar in ("PATH", "FILE", "WHEEL", "OLD", "NEW"):
                action.completer = FilesCompleter()  # type: ignore[attr-defined]
            elif action.metavar == "DIR":
                action.completer = FilesCompleter(directories=True)  # type: ignore[attr-defined]
            elif action.choices is None:
                action.completer = nothing  # type: ignore[attr-defined]
    argcomplete.autocomplete(tree, always_complete_options=False)
    os._exit(1)


def parser_for(words: list[str]) -> argparse.ArgumentParser:
    """Return the parser of all commands; only the one that ``words`` name has its arguments."""
    tree = argparse.ArgumentParser(prog="torchpin")
    tree.add_argument("-V", "--version", action="store_true", help="print the version")
    named = words[1] if len(words) > 1 else ""
    _fill(tree, COMMANDS, named, "torchpin.cli.", words[2:])
    return tree


def _fill(
    tree: argparse.ArgumentParser,
    commands: Mapping[str, str],
    named: str,
    prefix: str,
    rest: list[str],
) -> None:
    below = tree.add_subparsers(metavar="COMMAND")
    for name, text in commands.items():
        stub = below.add_parser(name, help=text.replace("%", "%%"), add_help=True)
        if name != named:
            continue
        module = import_module(prefix + name)
        parts: Mapping[str, str] | None = getattr(module, "COMMANDS", None)
        if parts is not None and not hasattr(module, "parser"):
            _fill(stub, parts, rest[0] if rest else "", f"{prefix}{name}_", [])
        else:
            asked = [one for one in getattr(module, "TOPICS", ()) if f"--{one}" in rest]
            below.choices[name] = module.parser(*asked[:1])


def parsers_of(tree: argparse.ArgumentParser) -> Iterable[Parser]:
    """Yield the parsers of torchpin below ``tree``."""
    if isinstance(tree, Parser):
        yield tree
    for action in tree._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers_of(below)


def offers_of(action: argparse.Action) -> Offers | None:
    """Return what is offered for an argument; None: its choices, files, or nothing."""
    for name in action.option_strings or (action.metavar,):
        if isinstance(name, str) and name in OFFERS:
            return OFFERS[name]
    return None


def nothing(**_: object) -> Iterable[str]:
    """Return nothing: no file names where a version is wanted."""
    return ()


def gpu_names(**_: object) -> Iterable[str]:
    """Return the GPUs by name, and the compute capabilities."""
    from torchpin.fleet.tables import architecture_table, gpu_table

    table = gpu_table()
    names: dict[str, None] = {}
    for name in table.by_name:
        short = name.removeprefix("Tesla ").removeprefix("GeForce ")
        alone = "".join(char for char in short.lower() if char.isalnum()) in table.by_key
        names[(short if alone else name).replace(" ", "-")] = None
    known = (f"sm_{major}{minor}" for major, minor in architecture_table())
    return ("none", *names, *known)


def rule_codes(**_: object) -> Mapping[str, str]:
    """Return the codes of the rules, with their names."""
    from torchpin.rules.registry import all_rules

    return {rule.code: rule.name for rule in all_rules()}


def releases(**_: object) -> Iterable[str]:
    """Return the versions of torch, the newest first."""
    from torchpin.catalog.store import load_catalog

    return tuple(reversed(load_catalog().versions("torch")))


def channels(**_: object) -> Iterable[str]:
    """Return the channels that ever held torch, and ``pypi``."""
    from torchpin.catalog.store import load_catalog

    return (*load_catalog().channels(), "pypi")


def packages(**_: object) -> Iterable[str]:
    """Return the packages of the family."""
    from torchpin.catalog.model import WATCHED

    return tuple(WATCHED)


def pythons(**_: object) -> Iterable[str]:
    """Return versions of Python that have wheels."""
    return ("3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t")


def groups(**_: object) -> Iterable[str]:
    """Return the node groups of the profile that holds here."""
    from torchpin.errors import TorchpinError
    from torchpin.fleet.profile import find_profile, load_profile

    try:
        path = find_profile(".")
        return () if path is None else tuple(one.name for one in load_profile(path).groups)
    except TorchpinError:  # a wrong profile: the command itself will tell
        return ()


OFFERS: dict[str, Offers] = {
    "--gpu": gpu_names,
    "--select": rule_codes,
    "--ignore": rule_codes,
    "CODE": rule_codes,
    "VERSION": releases,
    "--to": releases,
    "--since": releases,
    "--torch": releases,
    "--channel": channels,
    "--package": packages,
    "PACKAGE": packages,
    "--python": pythons,
    "--group": groups,
}
"""Option, or metavar of an argument that is none → what is offered."""
