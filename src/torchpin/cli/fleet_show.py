"""``torchpin fleet show``: the declared fleet as torchpin understands it."""

from __future__ import annotations

import os

from torchpin.cli.common import declared_fleet
from torchpin.cli.parser import Parser, add_fleet, add_output
from torchpin.cli.terminal import out, style
from torchpin.errors import ConfigError
from torchpin.fleet.model import Fleet, NodeGroup
from torchpin.report.style import Style, clean


def parser() -> Parser:
    """Return the parser of ``fleet show``."""
    made = Parser("fleet show", "Show the declared fleet: groups, GPUs, drivers, Pythons.")
    add_fleet(made)
    add_output(made, ("text", "json"))
    return made


def main(argv: list[str]) -> int:
    """Run ``fleet show`` and return 0.

    Raises:
        ConfigError: there is no profile, or it is wrong.
    """
    args = parser().parse(argv)
    fleet = declared_fleet(args) or _profile(args.config, isolated=args.isolated)
    if args.output_format == "json":
        import json

        out(json.dumps(_json(fleet), indent=2) + "\n")
    else:
        out(_text(fleet, style(no_color=args.no_color)))
    return 0


def _profile(config: str | None, *, isolated: bool) -> Fleet:
    from torchpin.fleet.profile import find_profile, load_profile

    path = config or (None if isolated else find_profile(os.getcwd()))
    if path is None:
        raise ConfigError("no fleet is declared here", hint=_hint())
    fleet = load_profile(path)
    if not fleet.groups:
        prefix = "tool.torchpin." if os.path.basename(path) == "pyproject.toml" else ""
        raise ConfigError("declares no fleet", path=path, hint=f"write in it:\n{_example(prefix)}")
    return fleet


def _hint() -> str:
    return (
        "write torchpin.toml by `torchpin init`, `torchpin fleet import`,\n"
        "  `torchpin fleet detect` or by hand:\n" + _example()
    )


def _example(prefix: str = "") -> str:
    return "\n".join(
        f"    {line}"
        for line in (f"[{prefix}fleet.main]", 'gpus = ["V100"]', 'driver = "550.54.15"')
    )


def _text(fleet: Fleet, paint: Style) -> str:
    lines = [f"declared in {clean(fleet.path)}"] if fleet.path else []
    for group in fleet.groups:
        pythons = ", ".join(str(python) for python in group.pythons) or "not declared"
        lines += (
            "",
            paint.paint("bold", clean(group.name)),
            f"  platform: {group.platform}" + (f", glibc {group.glibc}" if group.glibc else ""),
            f"  python:   {pythons}",
            f"  driver:   {group.driver or 'not declared'}",
        )
        if not group.gpus:
            lines.append("  gpus:     none (CPU only)")
        for gpu in group.gpus:
            written = f" (written {clean(gpu.written)})" if gpu.written != gpu.name else ""
            lines.append(f"  gpu:      {clean(gpu.name)}: {gpu.arch or gpu.vendor}{written}")
        lines += [f"  {key}: {value}" for key, value in _more(group).items()]
    return "\n".join(lines).lstrip("\n") + "\n"


def _more(group: NodeGroup) -> dict[str, str]:
    """Return the settings that most groups do not have."""
    return {
        key: clean(value if isinstance(value, str) else ", ".join(value))
        for key, value in (
            ("cuda-compat", group.cuda_compat),
            ("macos", group.macos),
            ("wsl", "yes" if group.wsl else ""),
            ("musl", "yes" if group.musl else ""),
            ("jetpack", group.jetpack),
            ("rocm", group.rocm),
            ("client", group.client),
            ("files", group.files),
            ("extras", group.extras),
            ("groups", group.dependency_groups),
            ("indexes", group.indexes),
        )
        if value
    }


def _json(fleet: Fleet) -> dict[str, object]:
    return {
        "version": 1,
        "profile": fleet.path,
        "groups": [
            {
                "name": group.name,
                "platform": group.platform,
                "gpus": [
                    {
                        "written": gpu.written,
                        "name": gpu.name,
                        "vendor": gpu.vendor,
                        "arch": gpu.arch or None,
                    }
                    for gpu in group.gpus
                ],
                "driver": group.driver,
                "python": [str(python) for python in group.pythons],
                "glibc": group.glibc,
                **_more(group),
            }
            for group in fleet.groups
        ],
    }
