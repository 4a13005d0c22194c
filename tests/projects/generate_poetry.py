"""Random projects of Poetry: sources, priorities, groups, extras, markers, both forms."""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.clients.stub_facts import FAMILY

KINDS = (
    "sources",
    "priorities",
    "markers",
    "lists",
    "groups",
    "extras",
    "project",
    "enriched",
    "exclusive",
    "platform",
)
PYTHONS = (">=3.10", ">=3.11", ">=3.10,<3.14", ">=3.11,<3.12", ">=3.11,<3.15", ">=3.11,<4.0")
CHANNELS = ("cu126", "cu126", "cpu", "cu130", "cu128")
SPECIFIERS = {
    "torch": ("*", "*", ">=2.10", "^2.10", "2.13.0", "<2.12", "~2.9.0", "2.11.0"),
    "torchvision": ("*", "*", ">=0.20", "<0.27", "0.26.0"),
    "torchaudio": ("*", "*", "<2.11"),
}
MARKERS = (
    "sys_platform == 'linux'",
    "sys_platform != 'darwin'",
    "sys_platform == 'darwin'",
    "python_version >= '3.12'",
    "platform_machine == 'x86_64'",
)
PAIRS = (
    ("sys_platform == 'linux'", "sys_platform != 'linux'"),
    ("sys_platform == 'darwin'", "sys_platform != 'darwin'"),
    ("sys_platform == 'linux'", "sys_platform == 'darwin'"),
    ("python_version < '3.12'", "python_version >= '3.12'"),
    ("sys_platform == 'linux'", "platform_machine == 'x86_64'"),
)


class PoetryCase(NamedTuple):
    """A project; ``$B`` stands for the address of the stub."""

    text: str
    kind: str


def poetry_case(number: int, seed: int) -> PoetryCase:
    """Return a project; the kinds take turns."""
    return _Maker(KINDS[number % len(KINDS)], random.Random(f"{seed}/poetry/{number}")).case()


class _Maker:
    def __init__(self, kind: str, rng: random.Random) -> None:
        self.kind = kind
        self.rng = rng
        self.used: dict[str, str] = {}

    def chance(self, usual: float, *kinds: str) -> bool:
        return self.kind in kinds or self.rng.random() < usual

    def channel(self) -> str:
        """Return the name of a source; mostly one for all."""
        name = self.rng.choice(CHANNELS)
        if self.used and self.rng.random() < 0.85:
            return next(iter(self.used))
        if name not in self.used:
            rng = self.rng
            usual = ["explicit", "explicit", "explicit", "supplemental", "primary"]
            if self.kind == "priorities":
                usual = ["supplemental", "primary", "explicit", "supplemental"]
            self.used[name] = rng.choice(usual)
        return name

    def entry(self, name: str, routed: bool, marker: str = "", version: str = "") -> str:
        version = version or self.rng.choice(SPECIFIERS[name])
        parts = [f'version = "{version}"']
        if routed:
            parts.append(f'source = "{self.channel()}"')
        if marker:
            parts.append(f'markers = "{marker}"')
        if len(parts) == 1 and self.rng.random() < 0.5:
            return f'"{version}"'
        return f"{{ {', '.join(parts)} }}"

    def value(self, name: str, routed: bool) -> str:
        rng = self.rng
        if self.kind == "platform" and rng.random() < 0.7:
            text = self.entry(name, False, version=rng.choice(SPECIFIERS[name]))
            place = rng.choice(["darwin", "linux"])
            inner = text.strip("{} ") if text.startswith("{") else f"version = {text}"
            one = f'{{ {inner}, platform = "{place}" }}'
            if rng.random() < 0.5:
                return one
            other = self.entry(name, routed, f"sys_platform != '{place}'")
            return f"[{one}, {other}]"
        if self.chance(0.12, "lists") and rng.random() < 0.8:
            one, other = rng.choice(PAIRS)
            same = rng.choice(SPECIFIERS[name]) if rng.random() < 0.6 else ""
            first = self.entry(name, routed, one, same)
            return f"[{first}, {self.entry(name, rng.random() < 0.2, other, same)}]"
        marker = rng.choice(MARKERS) if self.chance(0.1, "markers") and rng.random() < 0.7 else ""
        return self.entry(name, routed, marker)

    def names(self, usual: float = 0.5) -> list[str]:
        return [n for n in FAMILY if self.rng.random() < (0.9 if n == "torch" else usual)]

    def table(self, header: str, usual: float = 0.5) -> str:
        routed = self.chance(0.5, "sources", "priorities", "lists")
        lines = [header]
        for name in self.names(usual):
            lines.append(f"{name} = {self.value(name, routed and self.rng.random() < 0.85)}")
        return "\n".join(lines) + "\n"

    def sources(self) -> str:
        rng = self.rng
        blocks = [("stub", "$B/pypi/simple", "primary")]
        if self.kind == "priorities" and not self.used:
            self.channel()
        blocks += [(name, f"$B/whl/{name}", given) for name, given in self.used.items()]
        if self.kind == "priorities":
            rng.shuffle(blocks)
        return "".join(
            f'[[tool.poetry.source]]\nname = "{name}"\nurl = "{url}"\npriority = "{given}"\n'
            for name, url, given in blocks
        )

    def legacy(self) -> str:
        rng = self.rng
        text = "[tool.poetry]\npackage-mode = false\n[tool.poetry.dependencies]\n"
        text += f'python = "{rng.choice((*PYTHONS, "^3.11"))}"\n'
        body = self.table("")
        if self.chance(0.1, "extras"):
            name = rng.choice(FAMILY)
            lines = [line for line in body.splitlines() if not line.startswith(f"{name} =")]
            version = rng.choice(SPECIFIERS[name])
            lines.append(f'{name} = {{ version = "{version}", optional = true }}')
            body = "\n".join(lines) + "\n"
            body += f'[tool.poetry.extras]\nmore = ["{name}"]\n'
        text += body.lstrip("\n")
        if self.chance(0.15, "groups"):
            optional = rng.random() < 0.5
            if optional:
                text += "[tool.poetry.group.gpu]\noptional = true\n"
            text += self.table("[tool.poetry.group.gpu.dependencies]", 0.4)
            if rng.random() < 0.4:
                text += self.table("[tool.poetry.group.dev.dependencies]", 0.3)
        return text

    def project(self) -> str:
        rng = self.rng
        names = self.names()
        texts = []
        for name in names:
            version = self.pep440(name)
            marker = f" ; {rng.choice(MARKERS)}" if rng.random() < 0.2 else ""
            texts.append(f'"{name}{version}{marker}"')
        text = '[project]\nname = "app"\nversion = "0"\n'
        text += f'requires-python = "{rng.choice(PYTHONS)}"\ndependencies = [{", ".join(texts)}]\n'
        if self.kind == "project" and rng.random() < 0.5:
            inner = ", ".join(f'"{n}{self.pep440(n)}"' for n in self.names(0.3))
            text += f"[project.optional-dependencies]\nmore = [{inner}]\n"
        if rng.random() < 0.3:
            inner = ", ".join(f'"{n}{self.pep440(n)}"' for n in self.names(0.3))
            text += f"[dependency-groups]\ndev = [{inner}]\n"
        text += "[tool.poetry]\npackage-mode = false\n"
        if self.kind == "enriched":
            text += "[tool.poetry.dependencies]\n"
            for name in names:
                if rng.random() < 0.85:
                    source = f'source = "{self.channel()}"'
                    if rng.random() < 0.3:
                        one, other = rng.choice(PAIRS[:2])
                        text += f'{name} = [{{ {source}, markers = "{one}" }}, '
                        text += f'{{ source = "stub", markers = "{other}" }}]\n'
                    else:
                        text += f"{name} = {{ {source} }}\n"
        return text

    def exclusive(self) -> str:
        """Extras that exclude each other, as Poetry's documentation shows it for torch."""
        rng = self.rng
        text = '[project]\nname = "app"\nversion = "0"\n'
        text += f'requires-python = "{rng.choice(PYTHONS)}"\ndependencies = []\n'
        names = self.names(0.4)
        gpu, cpu = rng.choice(["cu126", "cu130", "cu128"]), "cpu"
        self.used = {gpu: "explicit", cpu: "explicit"}
        listed = ", ".join(f'"{name}{self.pep440(name)}"' for name in names)
        text += f"[project.optional-dependencies]\ncpu = [{listed}]\ncuda = [{listed}]\n"
        text += "[tool.poetry]\npackage-mode = false\n[tool.poetry.dependencies]\n"
        for name in names:
            first = f"markers = \"extra == 'cpu' and extra != 'cuda'\", source = \"{cpu}\""
            second = f"markers = \"extra == 'cuda' and extra != 'cpu'\", source = \"{gpu}\""
            text += f"{name} = [{{ {first} }}, {{ {second} }}]\n"
        return text

    def pep440(self, name: str) -> str:
        version = self.rng.choice(SPECIFIERS[name])
        if version[0].isdigit():
            return f"=={version}"
        words = {"*": "", "^2.10": ">=2.10,<3.0", "~2.9.0": "~=2.9.0"}
        return words.get(version, version)

    def case(self) -> PoetryCase:
        if self.kind in ("project", "enriched"):
            text = self.project()
        elif self.kind == "exclusive":
            text = self.exclusive()
        else:
            text = self.legacy()
        return PoetryCase(text + self.sources(), self.kind)
