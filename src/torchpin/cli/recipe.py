"""``torchpin recipe``: how to get a torch release to run on GPUs, from source if need be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpin.catalog.model import PLATFORMS
from torchpin.cli.arguments import Arguments
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_catalog, add_platform
from torchpin.cli.terminal import note, out, style, tell
from torchpin.errors import UsageError
from torchpin.fleet.model import Gpu, NodeGroup, Python

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog
    from torchpin.resolve.source_model import Asked, SourceBuild

LINUX = PLATFORMS[:2]
"""Where a build from source is told."""


def parser() -> Parser:
    """Return the parser of ``recipe``."""
    made = Parser(
        "recipe",
        "Say how a torch release gets to run on a GPU: the published build that serves it, or "
        "how to build it from source, with the CUDA toolkit, cuDNN and companions that fit. "
        "Several GPUs are served by one build; without --gpu each group of the fleet is.",
        "exit code: 0 a build serves it, or there is a recipe · 1 neither is known · 2 wrong usage",
    )
    made.add_argument(
        "--gpu",
        action="append",
        default=[],
        metavar="NAME",
        help="the GPU: V100, sm_70, gfx906, 'GTX 1080' (repeat for a build that serves all)",
    )
    made.add_argument("--group", metavar="NAME", help="only this group of the fleet")
    made.add_argument("--config", metavar="FILE", help="the profile (default: the nearest)")
    made.add_argument(
        "--torch",
        metavar="VERSION",
        help="the release: 2.15.0, or 2.15 for its newest patch (default: the newest with a wheel\n"
        "for the GPU, else the newest)",
    )
    made.add_argument("--python", metavar="VERSION", help="the Python to build for: 3.12")
    made.add_argument("--driver", metavar="VERSION", help="the driver: 550.54.15")
    add_platform(made, f"{LINUX[0]} or {LINUX[1]} (default: what the GPU sits in)", LINUX)
    made.add_argument(
        "--format",
        choices=("text", "script", "dockerfile"),
        default="text",
        help="what to print (default: text)",
    )
    made.add_argument(
        "--output-format",
        choices=("text", "json"),
        default="text",
        help="json: all that is known, for programs",
    )
    made.add_argument("--no-color", action="store_true", help="no colours")
    made.add_argument("-q", "--quiet", action="store_true", help="no notes")
    made.add_argument("--isolated", action="store_true", help="use the shipped catalog")
    add_catalog(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``recipe`` and return its exit code."""
    args = parser().parse(argv)
    from torchpin.catalog.store import load_catalog
    from torchpin.resolve.source_model import BUILD, WHEEL

    if args.output_format == "json" and args.format != "text":
        raise UsageError(f"--output-format json has no --format {args.format}")
    catalog = load_catalog()
    torch = release(args.torch, catalog) if args.torch else catalog.newest("torch")
    every = asked_of(args, torch)
    if args.format != "text" and len(every) > 1:
        names = ", ".join(one.group or "" for one in every)
        raise UsageError(
            f"--format {args.format} is for one group", hint=f"use --group, one of {names}"
        )
    found = tuple(answer(one, catalog, named=bool(args.torch)) for one in every)
    if not args.quiet:
        for words in catalog.notes:
            note(words)
    if args.output_format == "json":
        from torchpin.report import recipe_json

        out(recipe_json.render(found, (catalog.date, catalog.digest, False)))
    else:
        _print(found, args, catalog)
    return CLEAN if all(one.status in (WHEEL, BUILD) for one in found) else FINDINGS


def release(text: str, catalog: Catalog) -> str:
    """Return the release that ``--torch`` means: ``2.15`` its newest patch, ``torch==2.15`` 2.15.0.

    Raises:
        UsageError: it is no release that the catalog knows, or a range of them.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    from torchpin.resolve.policy import exact_version
    from torchpin.resolve.upgrade import goal_of

    written = text.strip()
    bare = written.removeprefix("torch").strip()
    known = catalog.versions("torch")
    if bare[:1] in ("=", ">", "<", "~", "!"):
        public = bare.partition("+")[0]
        pin = exact_version(public, known)
        if pin in known:
            return pin
        try:
            fit = [one for one in known if SpecifierSet(public).contains(one)]
        except InvalidSpecifier:
            fit = []
        if pin is None and fit:
            raise UsageError(
                f"--torch {written}: a recipe is for one release",
                hint=f"did you mean `--torch {max(fit, key=Version)}`?",
            )
    else:
        goal = goal_of(bare.removeprefix("v").partition("+")[0], catalog)
        if goal is not None and goal.version in known:
            return goal.version
    raise UsageError(
        f"torch {bare or written} is not in the catalog of {catalog.date}",
        hint="write --torch 2.15.0; `torchpin catalog show torch` lists the releases",
    )


def answer(asked: Asked, catalog: Catalog, *, named: bool) -> SourceBuild:
    """Return the recipe; ``named``: the release was asked for, no other will do."""
    from torchpin.resolve.source_build import newest_wheel, source_build

    if named:
        return source_build(asked, catalog)
    found = newest_wheel(asked, catalog)
    return found._replace(beside=_beside(found, catalog))


def _print(found: tuple[SourceBuild, ...], args: Arguments, catalog: Catalog) -> None:
    from torchpin.report import recipe
    from torchpin.resolve.source_model import BUILD, WHEEL

    paint = style(no_color=args.no_color)
    if args.format == "text":
        parts = []
        for one in found:
            title = (
                paint.paint("bold", f"Group {one.asked.group}:") + "\n" if len(found) > 1 else ""
            )
            parts.append(title + recipe.text(one, paint))
        tell("\n".join(parts))
        return
    one = found[0]
    if one.status not in (WHEEL, BUILD):  # what is redirected to a file is a script or nothing
        note(recipe.text(one, paint))
    elif args.format == "script":
        out(recipe.script(one, catalog.date))
    else:
        out(recipe.dockerfile(one, catalog.date))


def _beside(found: SourceBuild, catalog: Catalog) -> tuple[str, ...]:
    """Return the pins of what is installed beside a wheel, as ``resolve`` chooses them."""
    if found.wheel is None:
        return ()
    from torchpin.fleet.model import Settings
    from torchpin.plugin.forms import pins
    from torchpin.plugin.plan import fleet_outcome
    from torchpin.resolve.source_build import target_of

    target = target_of(found.asked, found.asked.gpus)
    outcome = fleet_outcome((target,), Settings(), catalog, f"=={found.wheel.version}")
    for plan in outcome.plans:
        if any(build == found.wheel for _, _, build in plan.builds):
            return tuple(pin for pin in pins(plan) if not pin.startswith("torch=="))
    return ()


# -- what is asked for


def asked_of(args: Arguments, torch: str) -> tuple[Asked, ...]:
    """Return what to tell: of the GPUs that are named, else of each group of the fleet.

    Raises:
        UsageError: neither a GPU nor a fleet, GPUs that no one build can serve, no such group.
        ConfigError: the profile or the driver is wrong.
    """
    from torchpin.resolve.source_model import Asked

    python = _python(args.python)
    if args.driver:
        from torchpin.fleet.values import parse_driver

        args.driver = parse_driver(args.driver)
    if args.gpu:
        if args.group:
            raise UsageError("--group is of the fleet: it does not go with --gpu")
        gpus = _gpus(args.gpu)
        hosts = dict.fromkeys(gpu.host or "x86_64" for gpu in gpus)
        if len(hosts) > 1 and not args.platform:
            raise UsageError(f"these GPUs sit in {' and '.join(hosts)}", hint="use --platform")
        platform = args.platform or f"linux-{next(iter(hosts))}"
        return (Asked(gpus[0], torch, python, platform, gpus[1:], args.driver),)
    found = []
    for group in _groups(args):
        gpus = together(tuple(dict.fromkeys(group.gpus)), group.name)
        at = python or max(group.pythons, default=None)
        driver = args.driver or group.driver
        platform = args.platform or group.platform
        found.append(Asked(gpus[0], torch, at, platform, gpus[1:], driver, group.name))
    return tuple(found)


def _groups(args: Arguments) -> tuple[NodeGroup, ...]:
    """Return the groups of the profile that have GPUs and run Linux.

    Raises:
        UsageError: there is none, or none of the name.
    """
    from torchpin.engine import Options, find_fleet

    fleet = find_fleet(Options((".",), profile=args.config, isolated=args.isolated))
    if fleet is None or not fleet.groups:
        raise UsageError(
            "name a GPU: --gpu V100", hint="or declare a fleet: `torchpin init` writes one"
        )
    names = [group.name for group in fleet.groups]
    if args.group and args.group not in names:
        raise UsageError(f"no group {args.group!r}", hint=f"known: {', '.join(names)}")
    found = tuple(
        group
        for group in fleet.groups
        if group.gpus and group.platform in LINUX and args.group in (None, group.name)
    )
    if not found:
        raise UsageError("no group with GPUs runs Linux: recipes are for these")
    return found


def _gpus(values: list[str]) -> tuple[Gpu, ...]:
    from torchpin.fleet.gpus import find_gpu
    from torchpin.fleet.options import NO_GPU

    names = [one.strip() for value in values for one in value.split(",") if one.strip()]
    if any(name.lower() in NO_GPU for name in names):
        hint = "`torchpin resolve --gpu none` finds the versions for the CPU"
        raise UsageError("recipes are for GPUs: there is none for --gpu none", hint=hint)
    gpus = tuple(dict.fromkeys(gpu for name in names for gpu in find_gpu(name)))
    if not gpus:
        raise UsageError("--gpu names no GPU")
    return together(gpus, "--gpu")


def together(gpus: tuple[Gpu, ...], what: str) -> tuple[Gpu, ...]:
    """Return the GPUs, if one build can be made for all of them.

    Raises:
        UsageError: they are of several vendors, or only some are Jetsons.
    """
    vendors = dict.fromkeys(gpu.vendor for gpu in gpus)
    names = ", ".join(gpu.name for gpu in gpus)
    if len(vendors) > 1:
        hint = "run it once for each vendor"
        raise UsageError(f"{what}: no build serves {' and '.join(vendors)}: {names}", hint=hint)
    if len({gpu.tegra for gpu in gpus}) > 1:
        hint = "run it once for the Jetsons and once for the others"
        raise UsageError(f"{what}: a Jetson builds for itself: {names}", hint=hint)
    return gpus


def _python(word: str | None) -> Python | None:
    if word is None:
        return None
    import re

    match = re.fullmatch(r"3\.(\d{1,2})(t?)", word)
    if match is None:
        raise UsageError(f"--python {word}: not a Python version", hint="write it like 3.12")
    return Python(3, int(match[1]), bool(match[2]))
