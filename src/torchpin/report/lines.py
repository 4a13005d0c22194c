"""A plan as lines of a requirements file, for ``resolve``."""

from __future__ import annotations

from collections.abc import Iterable

from torchpin.resolve.model import Plan

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
    """Return the requirements of ``plan``: its index, then pins with markers where needed.

    For pip the channel is an extra index. uv would take every package that the channel knows
    from there, stale copies too, so for uv it comes as link pages, one a package; except where
    torch itself needs more from the channel (the Triton of ROCm and XPU builds).
    """
    pins: list[str] = []
    for package, version in plan.versions:
        found = {
            platform: build.full_version for platform, name, build in plan.builds if name == package
        } or {"": version}
        if len(set(found.values())) == 1:
            pins.append(f"{package}=={next(iter(found.values()))}")
            continue
        by_version: dict[str, list[str]] = {}
        for platform, full in found.items():
            by_version.setdefault(full, []).append(platform)
        pins += [
            f"{package}=={full} ; {platform_marker(platforms, tuple(found))}"
            for full, platforms in by_version.items()
        ]
    return (*_index_lines(plan, client), *pins)


def _index_lines(plan: Plan, client: str) -> list[str]:
    if plan.index_url is None:
        return []
    url = plan.index_url.rstrip("/")
    if client == "uv" and not plan.channel.startswith(("rocm", "xpu")):
        return [f"--find-links {url}/{package}/" for package, _ in plan.versions]
    return [f"--extra-index-url {url}"]


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
