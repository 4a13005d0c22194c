"""What to steer an installer to: the family's versions for some targets, and where they lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.errors import UsageError
from torchpin.fleet.model import Fleet, Settings, Target
from torchpin.named import NamedTuple
from torchpin.resolve.model import Origin, Outcome, Plan, Request, Want
from torchpin.resolve.solve import solve
from torchpin.select.channels import channel_url

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog

COMMAND_LINE = "<command line>"
ADDED = ("torchvision", "torchaudio")
"""What a plan pins beside torch, in this order, where that does not move torch."""
NO_FLEET = "write torchpin.toml (torchpin init), or use --gpu, --driver and --python"


class Places(NamedTuple):
    """Where the channels lie."""

    indexes: tuple[tuple[str, str], ...] = ()
    """``Settings.indexes``: private URL → channel."""
    mirror: str | None = None
    """``https://mirror.example/whl``, in the place of PyTorch's own."""

    def of(self, channel: str) -> str:
        """Return the index URL of a channel, without a slash at its end."""
        if self.mirror is not None:
            return f"{self.mirror.rstrip('/')}/{channel}"
        for url, name in self.indexes:
            if name == channel:
                return url.rstrip("/")
        return channel_url(channel)


def places_of(indexes: tuple[tuple[str, str], ...], mirror: str | None) -> Places:
    """Return where the channels lie, from the profile and ``--mirror``.

    Raises:
        UsageError: the mirror is no URL of a folder.
    """
    from urllib.parse import urlsplit

    if mirror is not None:
        try:
            parts = urlsplit(mirror)
            _ = parts.port
        except ValueError:
            parts = urlsplit("")
        if (
            parts.scheme not in ("http", "https", "file")
            or (not parts.hostname and parts.scheme != "file")
            or parts.query
            or parts.fragment
            or any(char.isspace() or not char.isprintable() for char in mirror)
        ):
            raise UsageError(
                "--mirror is no http(s) URL of a folder",
                hint="write the folder of the channels: https://mirror.example/whl",
            )
    return Places(indexes, mirror)


def without_logins(places: Places) -> tuple[Places, bool]:
    """Return places without user and password, for texts that others read; were there any?"""
    from torchpin.plugin.sources import without_login

    bare = Places(
        tuple((without_login(url), channel) for url, channel in places.indexes),
        None if places.mirror is None else without_login(places.mirror),
    )
    return bare, bare != places


NO_LOGIN = (
    "the login in the URL is left out: give it to pip and uv in ~/.netrc, to a project of uv as "
    "UV_INDEX_<NAME>_USERNAME and _PASSWORD"
)
"""What is told where a login was dropped."""


def targets_of(fleet: Fleet | None, group: str | None, *, one: bool = False) -> tuple[Target, ...]:
    """Return the targets of a node group; of the whole fleet without a name.

    Args:
        fleet: the fleet.
        group: the name of a group.
        one: a fleet of several groups needs the name.

    Raises:
        UsageError: there is no fleet, no such group, or more than one and none is named.
    """
    if fleet is None or not fleet.groups:
        raise UsageError("no fleet is declared", hint=NO_FLEET)
    names = list(dict.fromkeys(one.name for one in fleet.groups))
    if group is None:
        if one and len(names) > 1:
            raise UsageError(
                f"the fleet has {len(names)} groups", hint=f"use --group: {', '.join(names)}"
            )
        return fleet.targets()
    if group not in names:
        raise UsageError(f"no group {group!r} in the fleet", hint=f"known: {', '.join(names)}")
    return tuple(target for target in fleet.targets() if target.group.name == group)


def torch_specifier(text: str | None) -> str:
    """Return what ``--torch`` asks for as a public specifier: ``2.11`` is ``==2.11``.

    Raises:
        UsageError: it is neither a version nor a specifier.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from torchpin.rewrite.request import public_specifier

    if not text:
        return ""
    written = text.removeprefix("torch").strip()
    if written[:1].isdigit():
        written = f"=={written}"
    public = public_specifier(written)
    try:
        SpecifierSet(public)
    except InvalidSpecifier:
        raise UsageError(
            f"--torch: {text!r} is neither a version nor a specifier",
            hint="write 2.11.0, '==2.11.*' or '>=2.10,<2.12'",
        ) from None
    return public


def family_wants(specifier: str = "") -> tuple[Want, ...]:
    """Return the wants of a bare ``torch``, or of one that ``--torch`` limits."""
    text = f"--torch {specifier}" if specifier else "torch"
    return (Want("torch", specifier, Origin(COMMAND_LINE, 0, text)),)


def whole_family(request: Request, catalog: Catalog) -> Outcome:
    """Return the outcome of a request, with the companions beside what it asks for.

    ``torch torchvision`` is what users install: torchvision may move torch, as long as no target
    loses its set by that. torchaudio is added where torch stays what it is.

    Raises:
        UsageError: a want has a specifier that is not one.
    """
    found = solve(request, catalog)
    asked = {want.package for want in request.wants}
    for package in ADDED:
        if package in asked or not found.plans:
            continue
        origin = Origin(COMMAND_LINE, 0, package)
        wider = request._replace(wants=(*request.wants, Want(package, "", origin)))
        other = solve(wider, catalog)
        leads = package == "torchvision" and len(other.plans) == len(found.plans)
        if (leads or same_torch(found.plans, other.plans)) and not _lost(found, other):
            request, found = wider, other
    return found


def same_torch(before: Iterable[Plan], after: Iterable[Plan]) -> bool:
    """Tell whether two answers give every target the same build of torch."""

    def builds(plans: Iterable[Plan]) -> set[tuple[Target, str, str, str]]:
        return {
            (target, dict(plan.versions)["torch"], plan.channel, plan.home)
            for plan in plans
            for target in plan.targets
        }

    return builds(before) == builds(after)


def _lost(before: Outcome, after: Outcome) -> bool:
    return len(after.unserved) > len(before.unserved)


def fleet_outcome(
    targets: tuple[Target, ...], settings: Settings, catalog: Catalog, specifier: str = ""
) -> Outcome:
    """Return the family's plan for some targets.

    Raises:
        UsageError: the specifier is not one.
    """
    request = Request(family_wants(specifier), targets, settings.policy)
    return whole_family(request, catalog)
