"""What a command of pip or uv asks for, and what would make it install what runs on a group.

The words are read as the commands of scripts are: options, ``-r`` files, variables of the
environment. Nothing is run here, and nothing is written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Document
from torchpin.documents.pins import exact_version
from torchpin.evidence import PROOF
from torchpin.fleet.model import Fleet, Target
from torchpin.named import NamedTuple
from torchpin.resolve.model import Outcome, Plan, Request, Want
from torchpin.select.asks import name_of
from torchpin.select.environments import marker_holds
from torchpin.select.model import Install, Placed

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog
    from torchpin.documents.command_options import Parsed
    from torchpin.documents.shell_words import Text
    from torchpin.plugin.configured import Configured
    from torchpin.plugin.plan import Places

SCRIPT = "<command line>"
VARIABLES = {
    "pip": (
        *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT"),
        *("PIP_PRE", "PIP_NO_INDEX"),
    ),
    "uv": (
        *("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"),
        *("UV_CONSTRAINT", "UV_TORCH_BACKEND", "UV_INDEX_STRATEGY", "UV_PRERELEASE"),
    ),
}
"""What the clients read from the environment, as far as it decides what is installed."""
RUN = ("run",)
UNREAD: Mapping[tuple[str, ...], tuple[str, ...]] = {
    RUN: ("UV_CONSTRAINT", "UV_TORCH_BACKEND"),
    ("add",): ("UV_TORCH_BACKEND",),
}
"""Variables of uv that a command does not read (measured with uv 0.13.9)."""
STEERED = {
    "pip": (("install",),),
    "uv": (
        *(("pip", "install"), ("pip", "sync"), ("add",), ("tool", "install"), ("tool", "run")),
        RUN,
    ),
}
"""Commands that can be held, by constraints and link pages."""
OVERLAYS = ("--with", "--with-requirements", "--with-editable")
"""With these ``uv run`` installs more than the project or the script says."""


class Call(NamedTuple):
    """A command of a client."""

    client: str
    words: tuple[str, ...]
    """Without the program's name."""
    action: tuple[str, ...]
    """``("pip", "install")``; the first words that are no options."""
    at: int
    """Where options of the action may be put in: right behind it."""


class Read(NamedTuple):
    """What a command installs, as far as its words tell."""

    install: Install
    backend: str | None
    """Of ``--torch-backend``."""
    upgrade: bool
    """What is installed already does not count."""
    configured: tuple[str, ...] = ()
    """What a refusal names of the client's own configuration."""


class Asked(NamedTuple):
    """What a command asks of torch."""

    request: Request
    named: bool
    """It asks for a package of the family, or for one that pins torch."""
    note: str = ""
    """Why nothing is steered: one sentence."""


class Steering(NamedTuple):
    """What to do with a command."""

    outcome: Outcome | None
    """None: nothing is to be added."""
    note: str = ""
    instead: Plan | None = None
    """Where nothing serves: what is nearest to it and runs."""

    @property
    def plan(self) -> Plan | None:
        """The one plan that serves; None if nothing is added or nothing serves."""
        if self.outcome is None or len(self.outcome.plans) != 1 or self.outcome.unserved:
            return None
        return self.outcome.plans[0]

    @property
    def refused(self) -> bool:
        """True if what is asked cannot run on the group."""
        return self.outcome is not None and self.plan is None


def read_call(client: str, words: Sequence[str]) -> Call:
    """Return which command of the client some words are."""
    from torchpin.documents.command_options import parse
    from torchpin.documents.installers import PIP, UV

    grammar = (PIP if client == "pip" else UV)._replace(stops=True)
    texts = texts_of(words)
    at = parse(texts, grammar).rest
    action = [words[at]] if at < len(words) else []
    at += 1
    if client == "uv" and action in (["pip"], ["tool"]):
        at = parse(texts, grammar, at).rest
        action += words[at : at + 1]
        at += 1
    return Call(client, tuple(words), tuple(action), min(at, len(words)))


def texts_of(words: Sequence[str]) -> list[Text]:
    """Return words as the reader of commands takes them."""
    from torchpin.documents.atoms import Atom
    from torchpin.documents.base import Span
    from torchpin.documents.shell_words import Text

    return [Text((Atom(word, 0, 0, True),), Span(0, 0)) for word in words]


def is_steered(call: Call) -> bool:
    """Tell whether a command installs what can be held."""
    if call.action == RUN and call.client == "uv":
        return any(option.name in OVERLAYS for option in options_of_call(call).options)
    return call.action in STEERED[call.client]


def options_of_call(call: Call) -> Parsed:
    """Return the options of a command, those before its name too, and where its own words end."""
    from torchpin.documents.command_options import parse
    from torchpin.documents.installers import PIP, UV, UV_RUN, UV_TOOL

    texts = texts_of(call.words)
    if call.client == "pip":
        own, grammar = PIP, PIP
    elif call.action[:1] == ("pip",):
        own, grammar = UV, UV
    else:
        own, grammar = UV, UV_RUN if call.action in (RUN, ("tool", "run")) else UV_TOOL
    before = parse(texts, own._replace(stops=True))
    after = parse(texts, grammar, call.at)
    return after._replace(options=[*before.options, *after.options])


def value_of(parsed: Parsed, *names: str) -> str:
    """Return the value of an option, the last one where it is given again; ``""`` without one."""
    from torchpin.documents.atoms import text_of

    found = [one.value for one in parsed.options if one.name in names and one.value is not None]
    return text_of(found[-1]) if found else ""


def script(call: Call, environ: Mapping[str, str], configured: Configured) -> str:
    """Return the command as a line of a shell, with what else counts.

    Of what another program is run with nothing is said.
    """
    words = call.words
    if call.action in (RUN, ("tool", "run")):
        words = words[: options_of_call(call).rest + (call.action != RUN)]
    names = () if configured.told else VARIABLES[call.client]
    settings = [
        f"{name}={shlex.quote(environ[name])}"
        for name in names
        if environ.get(name) and name not in UNREAD.get(call.action, ())
    ]
    words = (*words[: call.at], *configured.words, *words[call.at :])
    return " ".join([*settings, call.client, *map(shlex.quote, words)])


def install_of_call(
    call: Call,
    environ: Mapping[str, str],
    load: Callable[[str], Document],
    private: Mapping[str, str],
    configured: Configured,
) -> Read | None:
    """Return what a command installs; None if that cannot be read."""
    from torchpin.documents.loader import read_as
    from torchpin.select.parts import part_installs

    text = script(call, environ, configured)
    file = read_as("shell", SCRIPT, text.encode("utf-8", "surrogateescape"))
    parts = tuple(
        part._replace(
            settings=configured.settings, torch_backend=part.torch_backend or configured.backend
        )
        for part in file.parts
    )
    file = file._replace(parts=parts)
    found = list(part_installs(file, load, client=call.client, private=private))
    if len(found) != 1:
        return None
    part, install = found[0].part, found[0].install
    overrides = (*configured.overrides, *_overrides(call, environ, load))
    replaced = {one.declaration.name: one for one in overrides}
    # An override stands in the place of what anything asks of the package.
    install = install._replace(
        requirements=tuple(replaced.get(name_of(one), one) for one in install.requirements),
        constraints=(
            *(one for one in install.constraints if name_of(one) not in replaced),
            *(one for one in configured.constraints if name_of(one) not in replaced),
            *overrides,
        ),
        no_index=install.no_index or configured.no_index,
    )
    return Read(install, part.torch_backend, part.upgrade, _decisive(configured, private))


def _decisive(configured: Configured, private: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings that limit where torch comes from, in the client's words."""
    from torchpin.select.channels import index_kind

    return tuple(
        f"{' '.join(filter(None, one[:2]))} ({one.place})"
        for one in configured.shown
        if "://" not in one.value
        or index_kind(one.value, private).kind not in ("pypi", "unknown", "private")
    )


def _overrides(
    call: Call, environ: Mapping[str, str], load: Callable[[str], Document]
) -> tuple[Placed, ...]:
    """Return what the override files of uv say; one that cannot be read is uv's to tell of."""
    from torchpin.documents.atoms import text_of
    from torchpin.errors import TorchpinError

    if call.client != "uv" or call.action == RUN:
        return ()
    given = [
        text_of(option.value)
        for option in options_of_call(call).options
        if option.name in ("--override", "--overrides") and option.value is not None
    ]
    found: list[Placed] = []
    for path in given or environ.get("UV_OVERRIDE", "").split():
        try:
            document = load(path)
        except TorchpinError:
            continue
        found += (Placed(document, one) for one in document.declarations)
    return tuple(found)


def asked_of(read: Read, targets: tuple[Target, ...], fleet: Fleet, catalog: Catalog) -> Asked:
    """Return what an install asks of torch on some targets; here exact pins bind.

    Raises:
        UsageError: a specifier is not one.
    """
    from torchpin.catalog.drivers import load_drivers
    from torchpin.rewrite.request import wants_from
    from torchpin.rules.context import Context

    install, backend = read.install, read.backend
    everything = (*install.requirements, *install.constraints)
    family = [one for one in everything if one.declaration.name in FAMILY and _holds(one, targets)]
    context = Context((), fleet, True, catalog, load_drivers())
    others = [one for one in everything if _holds(one, targets)]
    wants = wants_from(install.root, family, others, context, soften=False)
    wants = tuple(want._replace(soft=False) for want in wants)
    wheels, labels = _wheels(everything)
    wants = (*wants, *wheels)
    required = {one.declaration.name for one in install.requirements}
    named = any(
        want.package in required or want.origin.text != "torch (implied)" for want in wants
    ) or any(one.declaration.name in required for one in family)
    labels |= {
        pin[1]
        for one in family
        if (pin := exact_version(one.declaration.specifier)) and pin[1] and kind_of_label(pin[1])
    }
    channels, pypi, note = _indexes(install, backend, read.configured)
    if labels:
        channels, pypi = tuple(sorted(labels)), False
    current = channels[0] if len(channels) == 1 else None
    request = Request(wants, targets, "nearest", current, channels, pypi)
    return Asked(request, named, note)


def _holds(placed: Placed, targets: Iterable[Target]) -> bool:
    marker = placed.declaration.marker
    return any(marker_holds(marker, target) is not False for target in targets)


def _wheels(everything: Iterable[Placed]) -> tuple[tuple[Want, ...], set[str]]:
    """Return what direct URLs of the family's wheels ask for, and their labels."""
    from urllib.parse import unquote

    from torchpin.catalog.wheel_names import read_name
    from torchpin.rewrite.request import origin_of

    wants: list[Want] = []
    labels: set[str] = set()
    for one in everything:
        url = one.declaration.url
        if url is None:
            continue
        name = read_name(unquote(re.split(r"[?#]", url)[0]).rstrip("/").rsplit("/", 1)[-1])
        if name is not None and name.package in FAMILY:
            wants.append(Want(name.package, f"=={name.version}", origin_of(one)))
            if kind_of_label(name.label):
                labels.add(name.label)
    return tuple(wants), labels


def _indexes(
    install: Install, backend: str | None, configured: Sequence[str]
) -> tuple[tuple[str, ...], bool, str]:
    """Return the channels that an install names, whether PyPI counts, and why nothing is done."""
    from torchpin.report.style import clean
    from torchpin.select.channels import redact

    def by(option: str) -> str:
        said = next((one for one in configured if one.startswith(option)), option)
        return clean(said)

    if install.no_index:
        return (), True, f"with {by('--no-index')} torchpin adds no index, so nothing is held"
    if backend is not None:
        if backend == "auto":
            return (), True, f"uv itself chooses the channel ({by('--torch-backend auto')})"
        return ((backend,), False, "") if kind_of_label(backend) else ((), True, "")
    for index in install.indexes:
        if index.kind.kind in ("nightly", "test", "legacy", "root"):
            shown = clean(redact(index.url))
            return (), True, f"what lies on {shown} is not known build by build: nothing is held"
    channels = dict.fromkeys(
        index.kind.channel for index in install.indexes if index.kind.kind == "channel"
    )
    known = any(index.kind.kind in ("pypi", "unknown") for index in install.indexes)
    return tuple(name for name in channels if name), known or not channels, ""


def steer(asked: Asked, catalog: Catalog, installed: Mapping[str, str]) -> Steering:
    """Return what holds an install to what runs.

    Args:
        asked: what it asks for.
        catalog: what exists.
        installed: family package → version with label that is there already; kept if it runs.
    """
    from torchpin.plugin.plan import whole_family

    if asked.note:
        return Steering(None, asked.note)
    request = asked.request
    outcome = _kept(request, catalog, installed)
    if outcome is None:
        outcome = whole_family(request, catalog)
    if len(outcome.plans) == 1 and not outcome.unserved:
        return Steering(outcome)
    if not asked.named:
        return Steering(None)  # it may not bring torch at all
    newer = unheard_of(request, catalog)
    if newer:
        return Steering(None, f"{newer} is not in the catalog of {catalog.date}: nothing is held")
    if not proved(outcome):
        return Steering(None, "whether what is asked for runs is not known: nothing is held")
    instead = whole_family(softened(request), catalog)
    one = instead.plans[0] if len(instead.plans) == 1 and not instead.unserved else None
    return Steering(outcome, instead=one)


def unheard_of(request: Request, catalog: Catalog) -> str:
    """Return the first want that only a release after the catalog can meet; ``""``: none."""
    from torchpin.resolve.policy import allowed, specifier_of

    for want in request.wants:
        pin = exact_version(want.specifier)
        if pin is not None:
            if catalog.existence(want.package, pin[0]).exists is None:
                return f"{want.package} {pin[0]}"
        elif (
            want.specifier
            and not allowed((want,), want.package, catalog.versions(want.package))
            and specifier_of(want).contains("9999")
        ):
            return f"{want.package}{want.specifier}"
    return ""


def proved(outcome: Outcome) -> bool:
    """Tell whether all reasons against a request are more than guesses."""
    return bool(outcome.explanation) and all(
        conflict.evidence in PROOF for conflict in outcome.explanation
    )


def softened(request: Request) -> Request:
    """Return a request in which pins of the family may move, its ranges fall, and any index counts.

    What other packages need of torch stays.
    """

    def soft(want: Want) -> Want:
        text = want.origin.text
        if not text.startswith(want.package) and "://" not in text:
            return want
        if exact_version(want.specifier) is not None:
            return want._replace(soft=True)
        return want._replace(specifier="")

    wants = tuple(soft(want) for want in request.wants)
    return request._replace(wants=wants, asked_channels=(), pypi=True)


def is_known(plan: Plan) -> bool:
    """Tell whether all builds of a plan are known to run, not only not known to fail."""
    from torchpin.judge.model import UNKNOWN
    from torchpin.judge.verdict import judge

    return all(
        judge(build, target).status != UNKNOWN
        for target in plan.targets
        for platform, _, build in plan.builds
        if platform == target.group.platform
    )


def _kept(request: Request, catalog: Catalog, installed: Mapping[str, str]) -> Outcome | None:
    """Return the plan that keeps the torch that is installed, if it runs and is allowed."""
    from torchpin.plugin.plan import whole_family
    from torchpin.resolve.model import Origin

    version, _, label = installed.get("torch", "").partition("+")
    if not version:
        return None
    keep = Want("torch", f"=={version}", Origin(SCRIPT, 0, f"torch {version} is installed"))
    channels, pypi = request.asked_channels, request.pypi
    if label:
        if channels and label not in channels:
            return None
        channels, pypi = (label,), False
    elif not pypi:
        return None
    wanted = request._replace(
        wants=(*request.wants, keep), asked_channels=channels, pypi=pypi, current_channel=label
    )
    found = whole_family(wanted, catalog)
    if len(found.plans) != 1 or found.unserved:
        return None
    kept = next(b for _, name, b in found.plans[0].builds if name == "torch")
    return found if kept.label == label else None


class Added(NamedTuple):
    """Where a plan's builds lie, as options say it."""

    pages: tuple[str, ...]
    """Link pages, one a package."""
    whole: tuple[str, ...]
    """Indexes of channels of which torch needs more than the family."""
    named: tuple[str, ...]
    """For ``uv add``: every channel as ``NAME=URL``."""


def added_of(plan: Plan, places: Places, read: Read) -> Added:
    """Return what an install needs besides the indexes that it names itself."""
    from torchpin.plugin import forms

    install = read.install
    there = {read.backend} | {
        index.kind.channel for index in install.indexes if index.kind.kind == "channel"
    }
    urls = {places.of(channel) for channel in forms.channels(plan) if channel in there}
    return Added(
        tuple(
            page
            for page in forms.link_pages(plan, places)
            if not any(page.startswith(f"{url}/") for url in urls)
        ),
        tuple(url for url in forms.whole(plan, places) if url not in urls),
        tuple(
            f"{forms.index_name(channel)}={places.of(channel)}"
            for channel in forms.channels(plan)
            if channel not in there
        ),
    )


def with_options(
    call: Call, added: Added, environ: Mapping[str, str], kept: Callable[[str], str], text: str
) -> list[str]:
    """Return the words of a command that is held.

    An option of uv replaces its variable of the environment, so what that one holds is said
    again; pip takes both.

    Args:
        call: the command.
        added: where the builds lie.
        environ: of the process.
        kept: writes a text to a file and returns its path.
        text: the constraints.
    """
    if call.action == RUN:  # it has no constraints, but takes those of a list of requirements
        options = ["--with-requirements", kept(f"-c {kept(text)}\n")]
    else:
        options = ["-c", kept(text)]
    if call.action == ("add",):
        indexes: Sequence[str] = added.named
        pages: Sequence[str] = ()
    else:
        indexes, pages = added.whole, added.pages
    if call.client == "uv":
        given = {option.name for option in options_of_call(call).options}
        for variable, separator, ours, names in (
            ("UV_CONSTRAINT", None, call.action != RUN, ("-c", "--constraints", "--constraint")),
            ("UV_FIND_LINKS", ",", pages, ("-f", "--find-links")),
            ("UV_INDEX", None, indexes, ("--index",)),
        ):
            if ours and given.isdisjoint(names) and environ.get(variable):
                held = environ[variable].split(separator)
                options += [word for one in held if one for word in (names[0], one)]
    index = "--index" if call.client == "uv" else "--extra-index-url"
    options += [word for page in pages for word in ("-f", page)]
    options += [word for url in indexes for word in (index, url)]
    return [*call.words[: call.at], *options, *call.words[call.at :]]
