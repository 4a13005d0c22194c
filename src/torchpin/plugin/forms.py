"""A plan in the forms that installers read: constraints, ``[tool.uv]``, environment lines."""

from __future__ import annotations

from torchpin.errors import UsageError
from torchpin.patterns import regex
from torchpin.plugin.plan import Places
from torchpin.report.lines import platform_marker, requirement_lines, unique
from torchpin.report.style import clean
from torchpin.report.wrap import comment
from torchpin.resolve.model import Plan

WHOLE_CHANNELS = ("rocm", "xpu")
"""Channels of which torch needs more than the family: the Triton of its build."""
_PLAIN = regex(r"[\w@%+=:,./~-]+\Z")
"""What no shell, no ``docker run --env-file`` and no ``$GITHUB_ENV`` reads in another way."""


def pins(plan: Plan) -> tuple[str, ...]:
    """Return the pins of a plan, with markers where platforms differ.

    A version has its label where its index serves labelled files (PyTorch's channels), and none
    where it does not (PyPI, macOS).
    """
    return tuple(line for line in requirement_lines(plan) if not line.startswith("--"))


def channels(plan: Plan) -> tuple[str, ...]:
    """Return the channels that builds of a plan lie on; none for a plan of PyPI alone."""
    return tuple(unique(build.channel for _, _, build in plan.builds if build.home != "pypi"))


def extra_indexes(plan: Plan, places: Places) -> tuple[str, ...]:
    """Return the index URLs of a plan's channels."""
    return tuple(unique(places.of(channel) for channel in channels(plan)))


def link_pages(plan: Plan, places: Places) -> tuple[str, ...]:
    """Return one link page a package: nothing but the family comes from a channel then.

    Builds for ROCm and XPU need the Triton that lies on the channel alone; see ``whole``.
    """
    return tuple(
        unique(
            f"{places.of(build.channel)}/{package}/"
            for _, package, build in plan.builds
            if build.home != "pypi" and not build.channel.startswith(WHOLE_CHANNELS)
        )
    )


def whole(plan: Plan, places: Places) -> tuple[str, ...]:
    """Return the index URLs of channels that link pages of the family do not serve."""
    return tuple(
        unique(
            places.of(channel) for channel in channels(plan) if channel.startswith(WHOLE_CHANNELS)
        )
    )


def header(plan: Plan, catalog_date: str) -> list[str]:
    """Return comment lines: for whom, as of when, and why these versions."""
    targets = unique(clean(target.text) for target in plan.targets)
    lines = [f"PyTorch for {'; '.join(targets)}. By torchpin, catalog of {catalog_date}."]
    lines += unique(f"{clean(text)} [{evidence}]" for text, evidence, _ in plan.because)
    return [one for line in lines for one in comment(line, hang=2)]


def requirements_text(plan: Plan, places: Places, catalog_date: str) -> str:
    """Return a constraints file: pip takes the index from it as well, uv does not."""
    lines = header(plan, catalog_date)
    indexes = extra_indexes(plan, places)
    if indexes:
        pages = [f"--find-links {page}" for page in link_pages(plan, places)]
        pages += [f"--index {url}" for url in whole(plan, places)]
        lines += [
            "# pip takes the index from this file: pip install -c FILE torch",
            "# uv takes none from such a file; give it beside: uv pip install -c FILE \\",
            *(f"#   {page} \\" for page in pages),
            "#   torch",
            *(f"--extra-index-url {url}" for url in indexes),
        ]
    return "\n".join([*lines, *pins(plan), ""])


def uv_text(plan: Plan, places: Places, catalog_date: str) -> str:
    """Return the tables of a ``pyproject.toml`` that hold uv to a plan.

    Each package of the family comes from its channel on the platforms where it lies there; the
    index is explicit, so that nothing else does.
    """
    lines = [*header(plan, catalog_date), "[tool.uv]", "constraint-dependencies = ["]
    # uv routes what the project names, also in constraints with a version, and nothing else.
    bounds = [f"{package}>=0" for package in beside(plan)]
    lines += [f"    {quoted(pin)}," for pin in (*pins(plan), *bounds)]
    lines += ["]", ""]
    for channel in channels(plan):
        lines += [
            "[[tool.uv.index]]",
            f"name = {quoted(index_name(channel))}",
            f"url = {quoted(places.of(channel))}",
            "explicit = true",
            "",
        ]
    routes = sources(plan)
    if routes:
        lines += ["[tool.uv.sources]"]
        lines += [f"{package} = {route}" for package, route in routes]
        lines.append("")
    return "\n".join(lines)


def sources(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return package → value in ``[tool.uv.sources]``."""
    everywhere = tuple(unique(platform for platform, _, _ in plan.builds))
    packages = [*(package for package, _ in plan.versions), *beside(plan)]
    found: list[tuple[str, str]] = []
    for package in packages:
        own = "torch" if package not in dict(plan.versions) else package
        by_channel: dict[str, list[str]] = {}
        for platform, name, build in plan.builds:
            if name == own and build.home != "pypi":
                if own != package and not build.channel.startswith(WHOLE_CHANNELS):
                    continue
                by_channel.setdefault(build.channel, []).append(platform)
        routes: list[str] = []
        for channel, platforms in by_channel.items():
            index = f"index = {quoted(index_name(channel))}"
            if len(platforms) == len(everywhere):
                routes.append(f"{{ {index} }}")
            else:
                marker = literal(platform_marker(platforms, everywhere))
                routes.append(f"{{ {index}, marker = {marker} }}")
        if routes:
            found.append((package, routes[0] if len(routes) == 1 else f"[{', '.join(routes)}]"))
    return tuple(found)


def beside(plan: Plan) -> tuple[str, ...]:
    """Return what torch needs from its channel besides the family."""
    wholes = [channel for channel in channels(plan) if channel.startswith(WHOLE_CHANNELS)]
    return tuple(unique(name for channel in wholes for name in tritons(channel)))


def tritons(channel: str) -> tuple[str, ...]:
    """Return the names that Triton has had on a channel of ROCm or XPU builds."""
    kind = "rocm" if channel.startswith("rocm") else "xpu"
    return (f"triton-{kind}", f"pytorch-triton-{kind}")


def index_name(channel: str) -> str:
    """Return what uv calls the index of a channel: ``pytorch-cu126``."""
    return f"pytorch-{channel.replace('.', '-')}"


def environment_text(plan: Plan, places: Places, path: str) -> str:
    """Return ``NAME=value`` lines that make pip and uv follow the constraints file at ``path``.

    Raises:
        UsageError: a blank, a quote or the like in the path or a URL, which pip, uv or the reader
            of the lines would take for something else.
    """
    lines = [("PIP_CONSTRAINT", path), ("UV_CONSTRAINT", path)]
    pages, indexes = link_pages(plan, places), whole(plan, places)
    # For pip the index stands in the constraints file. uv splits the links at commas, and indexes
    # at blanks.
    if pages:
        lines.append(("UV_FIND_LINKS", ",".join(pages)))
    if indexes:
        lines.append(("UV_INDEX", indexes[0]))
    for name, value in lines:
        if not _PLAIN.match(value):
            raise UsageError(
                f"{name} cannot hold {clean(value)!r}",
                hint="use a path and URLs of letters, digits and @%+=:,./~-_",
            )
    return "".join(f"{name}={value}\n" for name, value in lines)


def quoted(text: str) -> str:
    """Return a TOML string."""
    import json

    return literal(text) if '"' in text and "'" not in text else json.dumps(text)


def literal(text: str) -> str:
    """Return a literal TOML string for text without ``'``; a basic one else."""
    import json

    return f"'{text}'" if '"' in text and "'" not in text else json.dumps(text)
