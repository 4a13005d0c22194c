"""A plan as lines of a requirements file, for ``resolve``."""

from __future__ import annotations

from collections.abc import Iterable

from torchpin.report.style import clean
from torchpin.resolve.model import Plan, Unserved
from torchpin.select.channels import channel_url

_OS = {"linux": "linux", "windows": "win32", "macos": "darwin"}
_MACHINE = {
    "linux-x86_64": "x86_64",
    "linux-aarch64": "aarch64",
    "windows-x86_64": "AMD64",
    "windows-arm64": "ARM64",
    "macos-arm64": "arm64",
    "macos-x86_64": "x86_64",
}


def unique(words: Iterable[str]) -> list[str]:
    """Return ``words`` without repetitions, in order."""
    return list(dict.fromkeys(words))


def full_versions(plan: Plan) -> dict[str, str]:
    """Return package → version with its label, as the plan's first platform has it."""
    platforms = unique(target.group.platform for target in plan.targets)
    out: dict[str, str] = {}
    for package, version in plan.versions:
        found = {
            platform: build.full_version for platform, name, build in plan.builds if name == package
        }
        out[package] = next((found[name] for name in platforms if name in found), version)
    return out


def requirement_lines(plan: Plan, client: str = "pip") -> tuple[str, ...]:
    """Return the requirements of ``plan``: its indexes, then pins with markers where needed.

    For pip the channel is an extra index. uv would take every package that the channel knows
    from there, stale copies too, so for uv it comes as link pages, one a package; except where
    torch itself needs more from the channel (the Triton of ROCm and XPU builds).
    """
    pins: list[str] = []
    shadows = _shadows(plan)
    for package, version in plan.versions:
        found = {
            platform: build.full_version for platform, name, build in plan.builds if name == package
        } or {"": version}
        if len(set(found.values())) == 1:
            full = next(iter(found.values()))
            pins.append(f"{package}=={full}{shadows.get((package, full), '')}")
            continue
        by_version: dict[str, list[str]] = {}
        for platform, full in found.items():
            by_version.setdefault(full, []).append(platform)
        for full, platforms in by_version.items():
            pin = f"{package}=={full}{shadows.get((package, full), '')}"
            pins.append(f"{pin} ; {platform_marker(platforms, tuple(found))}")
    return (*_index_lines(plan, client), *pins)


def _shadows(plan: Plan) -> dict[tuple[str, str], str]:
    """Return what to write behind pins of PyPI's builds where channels are read beside PyPI.

    For an installer ``2.7.1+cu128`` of a channel fits ``==2.7.1``, and is the higher version.
    """
    channels = list(index_urls(plan).values())
    out: dict[tuple[str, str], str] = {}
    for platform, package, build in plan.builds:
        full = build.full_version
        if build.home != "pypi" or "+" in full or platform.startswith("macos"):
            continue
        rivals = [
            one for one in channels if platform == "linux-x86_64" or not one.startswith("rocm")
        ]
        out[package, full] = "".join(f",!={full}+{one}" for one in rivals)
    return out


def _index_lines(plan: Plan, client: str) -> list[str]:
    lines: list[str] = []
    for url, channel in index_urls(plan).items():
        if client == "uv" and not channel.startswith(("rocm", "xpu")):
            lines += [f"--find-links {url}/{package}/" for package in _held(plan, channel)]
        else:
            lines.append(f"--extra-index-url {url}")
    return lines


def index_urls(plan: Plan) -> dict[str, str]:
    """Return the URLs of the channels that builds of ``plan`` come from, and which these are.

    Usually it is one. Where platforms need builds of several (ROCm on Linux, CUDA on Windows),
    each is needed: a channel holds no build of another.
    """
    urls: dict[str, str] = {}
    if plan.index_url is not None:
        urls[plan.index_url.rstrip("/")] = plan.channel
    for _, _, build in plan.builds:
        if build.home != "pypi" and build.label:  # without one PyPI has it too: macOS
            urls.setdefault(channel_url(build.channel), build.channel)
    return urls


def place_of(plan: Plan) -> str:
    """Return where the builds of ``plan`` come from, for people."""
    return " and ".join(index_urls(plan)) or "PyPI"


def _held(plan: Plan, channel: str) -> list[str]:
    """Return the packages that ``plan`` takes from a channel."""
    if channel == plan.channel and plan.index_url is not None:
        return [package for package, _ in plan.versions]
    return unique(
        package
        for _, package, build in plan.builds
        if build.home != "pypi" and build.label and build.channel == channel
    )


def platform_marker(platforms: list[str], others: tuple[str, ...]) -> str:
    """Return the marker of ``platforms`` among ``others`` (all platforms of the plan)."""
    parts: list[str] = []
    for system in unique(platform.split("-")[0] for platform in platforms):
        mine = [platform for platform in platforms if platform.split("-")[0] == system]
        same = [platform for platform in others if platform.split("-")[0] == system]
        if len(mine) == len(same):
            parts.append(f'sys_platform == "{_OS[system]}"')
        else:
            parts += [
                f'sys_platform == "{_OS[system]}" and platform_machine == "{_MACHINE[platform]}"'
                for platform in mine
            ]
    return " or ".join(parts)


def last_wheel(unserved: Unserved) -> str:
    """Return the last release with a wheel for the GPU, whatever else keeps it from running."""
    return f"last release with a wheel for {clean(unserved.gpu or '')}: {unserved.last_release}"
