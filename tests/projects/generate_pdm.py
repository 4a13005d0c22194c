"""Random projects of PDM: sources, groups, extras, markers, overrides, strategies and targets."""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.clients.stub_facts import FAMILY

KINDS = (
    "plain",
    "include",
    "sources",
    "order",
    "links",
    "groups",
    "extras",
    "markers",
    "resolution",
    "strategy",
    "targets",
)
PYTHONS = (">=3.10", ">=3.11", ">=3.11,<3.14", ">=3.10,<3.13", ">=3.11,<3.15", "==3.11.*", ">=3.9")
CHANNELS = ("cu126", "cu126", "cpu", "cu130", "cu128", "cu118")
SPECIFIERS = {
    "torch": ("", "", ">=2.10", ">=2.4", "==2.13.0", "<2.12", "~=2.9.0", "==2.11.0", "==2.9.*"),
    "torchvision": ("", "", ">=0.20", "<0.27", "==0.26.0"),
    "torchaudio": ("", "", "<2.11", ">=2.6"),
}
MARKERS = (
    "sys_platform == 'linux'",
    "sys_platform != 'darwin'",
    "sys_platform == 'darwin'",
    "python_version >= '3.12'",
    "python_version < '3.12'",
    "platform_machine == 'x86_64'",
    "python_version < '3.8'",
)


class PdmCase(NamedTuple):
    """A project, and how it is locked."""

    text: str
    """``$B`` stands for the address of the stub."""
    kind: str
    runs: tuple[tuple[str, ...], ...] = ((),)
    """Arguments of ``pdm lock``, one run after the other."""

    @property
    def standard(self) -> bool:
        """Whether it is locked as ``pdm lock`` does on its own."""
        return self.runs == ((),)


def pdm_case(number: int, seed: int) -> PdmCase:
    """Return a project; the kinds take turns."""
    return _Maker(KINDS[number % len(KINDS)], random.Random(f"{seed}/pdm/{number}")).case()


class _Maker:
    def __init__(self, kind: str, rng: random.Random) -> None:
        self.kind = kind
        self.rng = rng

    def chance(self, usual: float, *kinds: str) -> bool:
        return self.kind in kinds or self.rng.random() < usual

    def requirement(self, name: str, label: str = "") -> str:
        rng = self.rng
        specifier = rng.choice(SPECIFIERS[name])
        if label and specifier.startswith("==") and "*" not in specifier and rng.random() < 0.3:
            specifier += f"+{label}"
        marker = ""
        if self.chance(0.08) or (self.kind == "markers" and rng.random() < 0.6):
            marker = f" ; {rng.choice(MARKERS)}"
        return f"{name}{specifier}{marker}"

    def requirements(self, usual: float, label: str) -> list[str]:
        rng = self.rng
        names = [n for n in FAMILY if rng.random() < (usual if n != "torch" else 0.85)]
        out = [self.requirement(name, label) for name in names]
        if self.kind == "markers" and rng.random() < 0.3 and "torch" in names:
            out.append(self.requirement("torch"))
        return out

    def sources(self) -> tuple[str, str]:
        rng = self.rng
        blocks = ['name = "pypi"\nurl = "$B/pypi/simple"\n']
        if rng.random() < 0.2:
            blocks[0] += f'exclude_packages = ["{rng.choice(["torch", "torch*"])}"]\n'
        if not self.chance(0.6, "include", "sources", "order", "links", "strategy"):
            plain = blocks[0].splitlines(keepends=True)[:2]
            return "".join(["[[tool.pdm.source]]\n", *plain]), ""
        channel = rng.choice(CHANNELS)
        links = self.chance(0.05, "links")
        if links:
            kind = rng.choice(["torch", "torch", "torchvision"])
            block = f'name = "links"\ntype = "find_links"\nurl = "$B/whl/{channel}/{kind}/"\n'
        else:
            block = f'name = "{channel}"\nurl = "$B/whl/{channel}"\n'
        if self.chance(0.5, "include"):
            some = rng.choice([["torch"], ["torch*"], list(FAMILY), ["torch", "torchvision"]])
            block += f"include_packages = [{', '.join(map(_quoted, some))}]\n"
            if rng.random() < 0.5:
                block += 'exclude_packages = ["*"]\n'
        elif rng.random() < 0.2:
            block += 'exclude_packages = ["torchvision"]\n'
        blocks.append(block)
        if self.kind == "sources" and rng.random() < 0.5:
            other = rng.choice([c for c in CHANNELS if c != channel])
            blocks.append(f'name = "{other}"\nurl = "$B/whl/{other}"\n')
        rng.shuffle(blocks)
        return "[[tool.pdm.source]]\n".join(["", *blocks]), channel

    def resolution(self) -> str:
        rng, out = self.rng, ""
        if self.chance(0.06, "order"):
            out += "respect-source-order = true\n"
        if self.kind == "resolution" and rng.random() < 0.4:
            out += f'excludes = ["{rng.choice(FAMILY)}"]\n'
        if self.kind == "resolution" and rng.random() < 0.1:
            out += "allow-prereleases = false\n"
        if out:
            out = f"[tool.pdm.resolution]\n{out}"
        if self.kind == "resolution" and rng.random() < 0.7:
            name = rng.choice(["torch", "torch", "torchvision"])
            value = rng.choice([">=2.9", "2.13.0", "==2.11.0", "*", "<2.12"])
            value = value if name == "torch" else rng.choice(["0.26.0", ">=0.20", "==0.27.*"])
            out += f'[tool.pdm.resolution.overrides]\n{name} = "{value}"\n'
        return out

    def runs(self) -> tuple[tuple[str, ...], ...]:
        rng = self.rng
        if self.kind == "strategy":
            flags = ["static_urls", "no_inherit_metadata", "direct_minimal_versions"]
            return (("-S", rng.choice(flags)),)
        if self.kind == "targets":
            one = ("--platform", "linux")
            other = ("--platform", rng.choice(["macos_arm64", "windows_amd64"]), "--append")
            return (one, other) if rng.random() < 0.7 else (one,)
        return ((),)

    def case(self) -> PdmCase:
        rng = self.rng
        sources, label = self.sources()
        lines = ['[project]\nname = "app"\nversion = "0"\n']
        lines.append(f'requires-python = "{rng.choice(PYTHONS)}"\n')
        extras = self.chance(0.15, "extras")
        groups = self.chance(0.15, "groups")
        base = [] if (extras or groups) and rng.random() < 0.3 else self.requirements(0.5, label)
        lines.append(_list("dependencies", base))
        if extras:
            lines.append("[project.optional-dependencies]\n")
            for extra in rng.sample(["gpu", "cpu", "vision"], rng.choice([1, 2])):
                lines.append(_list(extra, self.requirements(0.4, label)))
        if groups:
            legacy = rng.random() < 0.4
            lines.append("[tool.pdm.dev-dependencies]\n" if legacy else "[dependency-groups]\n")
            lines.append(_list("dev", self.requirements(0.4, label)))
            if rng.random() < 0.4:
                text = _list("lint", self.requirements(0.3, label))
                if not legacy and rng.random() < 0.3:
                    text = text.replace("[", '[{ include-group = "dev" }, ', 1)
                lines.append(text)
        lines.append(f"[tool.pdm]\ndistribution = false\n{self.resolution()}{sources}")
        return PdmCase("".join(lines).replace(", ]", "]"), self.kind, self.runs())


def _quoted(text: str) -> str:
    return f'"{text}"'


def _list(key: str, texts: list[str]) -> str:
    return f"{key} = [{', '.join(_quoted(text) for text in texts)}]\n"
