"""The data of the page: builds, GPUs, groups of the fleet, and every answer that it may show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import PLATFORMS, Build
from torchpin.evidence import ORDER
from torchpin.fleet.checks import DEFAULT_PLATFORM, default_platform
from torchpin.fleet.gpus import find_gpu, key_of
from torchpin.fleet.model import Fleet, Gpu, NodeGroup, Python
from torchpin.fleet.tables import gpu_table, instance_table
from torchpin.fleet.values import FREE_THREADED_FROM, RELEASED_MINORS
from torchpin.judge.model import BADNESS
from torchpin.judge.words import name_gpu
from torchpin.matrix.companions import companions
from torchpin.matrix.facts import (
    BUILD,
    COMPANION,
    DRIVER,
    GPU,
    LIBC,
    NO_GPU,
    Context,
    Facts,
    Kind,
    kind_of,
)
from torchpin.matrix.judged import existence, offered, releases
from torchpin.matrix.rows import families, family_title
from torchpin.matrix.tables import Numbers, Tables
from torchpin.plugin.forms import WHOLE_CHANNELS, tritons
from torchpin.resolve.policy import key_cost
from torchpin.resolve.space import PYPI
from torchpin.resolve.space import key_of as place_of
from torchpin.select.channels import channel_url

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog

SINCE = "2.0"
"""The first release of the page unless another is asked for."""


def pythons() -> tuple[Python, ...]:
    """Return the Pythons of the page."""
    plain = [Python(3, minor) for minor in RELEASED_MINORS]
    free = [Python(3, minor, True) for minor in RELEASED_MINORS if minor >= FREE_THREADED_FROM]
    return (*plain, *free)


class _Gpus:
    """The GPUs of the page, and the kinds that they are of."""

    def __init__(self) -> None:
        self.kinds: Numbers[Kind] = Numbers()
        self.records: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}

    def add(
        self, gpu: Gpu, context: Context, name: str, hint: str, also: Sequence[str] = ()
    ) -> int:
        """Return the number of a GPU by its name on the page.

        ``also``: how else it may be searched for, as letters and digits.
        """
        number = self._numbers.get(name)
        if number is None:
            kind = self.kinds.of(kind_of(gpu, context))
            self._numbers[name] = number = len(self.records)
            self.records.append(
                {
                    "name": name,
                    "said": name_gpu(gpu),
                    "kind": kind,
                    "hint": hint,
                    "also": " ".join(also),
                    "platform": default_platform([gpu]),
                }
            )
        return number


def page_data(
    catalog: Catalog,
    fleet: Fleet | None,
    *,
    since: str | None = None,
    version: str = "",
    step: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Return the data of the page, ready for JSON.

    Args:
        catalog: what exists.
        fleet: its groups become presets.
        since: the first release.
        version: of torchpin.
        step: told after each build: how many are done, of how many.
    """
    facts, tables, gpus = Facts(catalog), Tables(), _Gpus()
    instances = _known(gpus)
    presets = [_preset(group, gpus) for group in (fleet.groups if fleet is not None else ())]
    kinds = gpus.kinds.values
    told = pythons()
    versions = releases("torch", catalog, since=since or SINCE, every=True)[::-1]
    found = [
        build for release in versions for build in offered(catalog.find("torch", version=release))
    ]
    builds = []
    for done, build in enumerate(found, 1):
        builds.append(_build(build, facts, tables, told, kinds))
        step(done, len(found))
    _rank(builds)
    return {
        "format": 1,
        "torchpin": version,
        "date": catalog.date,
        "digest": catalog.digest,
        "marks": [BUILD, GPU, DRIVER, LIBC, COMPANION],
        "statuses": list(BADNESS),
        "evidence": list(ORDER),
        "platforms": list(PLATFORMS),
        "pythons": [str(python) for python in told],
        "drivers": list(facts.thresholds),
        "releases": list(versions),
        "kinds": [{"arch": one.gpu.arch or "Intel", "vendor": one.gpu.vendor} for one in kinds],
        "gpus": gpus.records,
        "instances": instances,
        "presets": presets,
        "builds": [{k: v for k, v in one.items() if k != "build"} for one in builds],
        "texts": tables.texts.values,
        "reasons": tables.reasons.values,
        "answers": tables.answers.values,
        "steps": tables.steps.values,
        "rows": tables.rows.values,
    }


def _known(gpus: _Gpus) -> list[list[Any]]:
    """Add every GPU of the table, and every code; return the instance types with GPUs."""
    from torchpin.fleet.tables import architecture_table

    architectures = architecture_table()
    keys: dict[str, list[str]] = {}
    for key, product in gpu_table().by_key.items():
        keys.setdefault(product.name, []).append(key)
    for product in gpu_table().by_name.values():
        (gpu,) = find_gpu(product.name)
        own = key_of(product.name)
        also = [key for key in keys.get(product.name, ()) if key not in own]
        gpus.add(gpu, Context(), product.name, gpu.arch or "Intel", also)
    for gpu in families():
        gpus.add(gpu, Context(), gpu.arch, family_title(gpu, architectures).partition(" ")[2])
    return [
        [one.name, [gpus.add(gpu, Context(), gpu.name, "") for gpu in find_gpu(one.name)]]
        for one in instance_table().values()
    ]


def _preset(group: NodeGroup, gpus: _Gpus) -> dict[str, Any]:
    """Return what the page needs to take a group over."""
    context = Context(group.jetpack, group.cuda_compat, group.wsl)
    extra = [f"cuda-compat {group.cuda_compat}"] if group.cuda_compat else []
    extra += [f"JetPack {group.jetpack}"] if group.jetpack else []
    extra += ["WSL"] if group.wsl else []
    tail = f" with {', '.join(extra)}" if extra else ""
    macos = group.platform.startswith("macos")
    names = []
    for gpu in dict.fromkeys(group.gpus):
        at = gpus.add(gpu, context, f"{gpu.name}{tail}", gpu.arch or "Intel")
        names.append(gpus.records[at]["name"])
    return {
        "name": group.name,
        "gpus": names or [NO_GPU],
        "driver": group.driver or "",
        "pythons": [str(python) for python in group.pythons],
        "platform": group.platform,
        "libc": "musl" if group.musl else (group.macos if macos else group.glibc) or "",
    }


def _build(
    build: Build, facts: Facts, tables: Tables, told: Sequence[Python], kinds: Sequence[Kind]
) -> dict[str, Any]:
    own = sources(build)
    beside = [
        [
            one.package,
            one.full_version,
            one.pair,
            tables.texts.of(one.pythons),
            tables.texts.of(one.kinds),
            one.floor,
            tables.texts.of(one.title),
            [tables.reason(reason, own) for reason in one.reasons],
        ]
        for one in (companions(build, facts, told, kinds) if facts.offered(build) else ())
    ]
    libc, gpus = facts.libc(build), [facts.gpu(build, one) for one in kinds]
    return {
        "build": build,
        "release": build.version,
        "version": build.full_version,
        "title": build.title,
        "channel": build.channel,
        "home": build.home,
        "kind": kind_of_label(build.channel),
        "platform": PLATFORMS.index(build.platform),
        "url": None if build.home == "pypi" else channel_url(build.channel),
        "cuda": build.cuda,
        "released": build.released,
        "evidence": ORDER.index(build.evidence),
        "sources": [tables.texts.of(source) for source in own],
        "proved": facts.offered(build),
        "exists": [
            tables.reason(one._replace(text=one.text.replace(build.title, BUILD)), own)
            for one in existence(build)
        ],
        "pythons": tables.row([tables.answer(facts.python(build, one), own) for one in told]),
        "libc": tables.step(libc, own),
        "musl": tables.answer(facts.musl(build), own)
        if build.platform.startswith("linux")
        else None,
        "idle": tables.answer(facts.idle(build), own),
        "gpus": tables.row([tables.step(one, own, facts.thresholds) for one in gpus]),
        "leaves": list(facts.leaves_out(build, kinds)),
        "needs": list(tritons(build.channel))
        if build.home != "pypi" and build.channel.startswith(WHOLE_CHANNELS)
        else [],
        "beside": beside,
    }


def sources(build: Build) -> tuple[str, ...]:
    """Return where the facts of a build come from; its existence first."""
    lists = [build.kernels] if build.kernels is not None else []
    lists += [kernels for _, kernels in build.libraries]
    return tuple(dict.fromkeys((build.source, *(one.source for one in lists))))


def _rank(builds: list[dict[str, Any]]) -> None:
    """Give the builds of a release and platform the order in which the resolver takes them."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for one in builds:
        groups.setdefault((one["release"], one["platform"]), []).append(one)
    for (release, platform), group in groups.items():
        default = _default(groups, release, platform)
        for name, cpu_only in (("rank", False), ("rank_cpu", True)):
            costs = [
                key_cost(
                    place_of(one["build"]),
                    one["channel"],
                    current=None,
                    default=default,
                    cpu_only=cpu_only,
                )
                for one in group
            ]
            for one, cost in zip(group, costs, strict=True):
                one[name] = sorted(costs).index(cost)


def _default(
    groups: dict[tuple[str, int], list[dict[str, Any]]], release: str, platform: int
) -> str | None:
    """Return what PyPI's own build is where it is one for CUDA: on the platform, else on Linux."""
    for place in (platform, PLATFORMS.index(DEFAULT_PLATFORM)):
        for one in groups.get((release, place), ()):
            build: Build = one["build"]
            if build.home == PYPI and build.cuda:
                return build.channel
    return None
