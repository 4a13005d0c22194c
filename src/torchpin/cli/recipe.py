"""``torchpin recipe``: how to get a torch release to run on a GPU, from source if need be."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from torchpin.catalog.model import PLATFORMS
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_catalog
from torchpin.cli.terminal import note, out, style, tell
from torchpin.errors import UsageError
from torchpin.fleet.model import Gpu, Python

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog
    from torchpin.resolve.source_build import SourceBuild


def parser() -> Parser:
    """Return the parser of ``recipe``."""
    made = Parser(
        "recipe",
        "Say how a torch release gets to run on a GPU: the published build that serves it, or "
        "how to build it from source, with the CUDA toolkit, cuDNN and companions that fit.",
        "exit code: 0 a build serves it, or there is a recipe · 1 neither is known · 2 wrong usage",
    )
    made.add_argument(
        "--gpu",
        action="append",
        required=True,
        metavar="NAME",
        help="the GPU, one: V100, sm_70, gfx906, 'GTX 1080'",
    )
    made.add_argument(
        "--torch",
        metavar="VERSION",
        help="the release (default: the newest with a wheel for the GPU, else the newest)",
    )
    made.add_argument("--python", metavar="VERSION", help="the Python to build for: 3.12")
    made.add_argument(
        "--platform",
        choices=PLATFORMS[:2],
        metavar="NAME",
        help=f"{PLATFORMS[0]} or {PLATFORMS[1]} (default: what the GPU sits in)",
    )
    made.add_argument(
        "--format",
        choices=("text", "script", "dockerfile"),
        default="text",
        help="what to print (default: text)",
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
    from torchpin.report import recipe
    from torchpin.resolve.source_build import BUILD, WHEEL, Asked, newest_wheel, source_build

    catalog = load_catalog()
    torch = (args.torch or catalog.newest("torch")).removeprefix("v").partition("+")[0]
    if torch not in catalog.versions("torch"):
        raise UsageError(
            f"torch {torch} is not in the catalog of {catalog.date}",
            hint="`torchpin catalog show torch` lists the releases",
        )
    gpu = _gpu(args.gpu)
    platform = args.platform or f"linux-{gpu.host or 'x86_64'}"
    asked = Asked(gpu, torch, _python(args.python), platform)
    if args.torch:
        found = source_build(asked, catalog)
    else:
        found = newest_wheel(asked, catalog)
        found = found._replace(beside=_beside(found, catalog))
    if not args.quiet:
        for words in catalog.notes:
            note(words)
    usable = found.status in (WHEEL, BUILD)
    if args.format == "text" or not usable:
        words = recipe.text(found, style(no_color=args.no_color))
        if args.format == "text":
            tell(words)
        else:  # what is redirected to a file is a script or nothing
            note(words)
    elif args.format == "script":
        out(recipe.script(found, catalog.date))
    else:
        out(recipe.dockerfile(found, catalog.date))
    return CLEAN if usable else FINDINGS


def _beside(found: SourceBuild, catalog: Catalog) -> tuple[str, ...]:
    """Return the pins of what is installed beside a wheel, as ``resolve`` chooses them."""
    if found.wheel is None:
        return ()
    from torchpin.fleet.model import NodeGroup, Settings, Target
    from torchpin.plugin.forms import pins
    from torchpin.plugin.plan import fleet_outcome

    asked = found.asked
    group = NodeGroup(asked.gpu.name, (asked.gpu,), (), asked.platform)
    target = Target(group, asked.python)
    outcome = fleet_outcome((target,), Settings(), catalog, f"=={found.wheel.version}")
    for plan in outcome.plans:
        if any(build == found.wheel for _, _, build in plan.builds):
            return tuple(pin for pin in pins(plan) if not pin.startswith("torch=="))
    return ()


def _gpu(names: list[str]) -> Gpu:
    from torchpin.fleet.gpus import find_gpu

    name = ",".join(names)
    several = [one.strip() for one in name.split(",") if one.strip()]
    if len(several) > 1:
        raise UsageError(
            f"--gpu {name}: recipe takes one GPU",
            hint=f"run it once for each: torchpin recipe --gpu {shlex.quote(several[0])}",
        )
    found = find_gpu(name)
    if len(found) != 1:
        models = ", ".join(gpu.name for gpu in found)
        raise UsageError(f"--gpu {name}: one GPU at a time", hint=f"it has {models}")
    return found[0]


def _python(word: str | None) -> Python | None:
    if word is None:
        return None
    import re

    match = re.fullmatch(r"3\.(\d{1,2})(t?)", word)
    if match is None:
        raise UsageError(f"--python {word}: not a Python version", hint="write it like 3.12")
    return Python(3, int(match[1]), bool(match[2]))
