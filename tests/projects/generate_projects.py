"""Seeded generator of uv projects: dependencies, extras, groups, sources, indexes, conflicts."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from tests.clients.stub_facts import FAMILY

SPECIFIERS = {
    "torch": (
        "", "", "", "", "", "", ">=2", ">=2", ">=2.4", ">=2.10", ">=2.10", "==2.13.0", "==2.14.1",
        "<2.12", ">=2.9,<2.13", "~=2.10.0", "==2.10.*", "!=2.15.0", "==2.13.0+cu126", ">=2.14",
        "===2.13.0", ">2.12", "==2.11.0", "==2.9.1", "<=2.8.0", "==2.15.0", ">=2.6,<2.10",
        "==2.10.0+cu128", "<2.14", "<2.14", "==9.9",
    ),
    "torchvision": (
        "", "", "", "", "", "", "", "", "", ">=0.20", "==0.28.0", ">=0.25", "<0.27", "==0.25.0",
        "==0.29.0", ">=0.29", "~=0.24.0",
        "!=0.28.0", "==0.24.0+cu126",
    ),
    "torchaudio": (
        "", "", "", "", "", "", "", ">=2", "==2.10.0", "<2.11", ">=2.9", "==2.11.0", "==2.8.0",
        "!=2.11.1",
    ),
}  # fmt: skip
MARKERS = (
    "sys_platform == 'linux'", "sys_platform != 'darwin'", "sys_platform == 'darwin'",
    "sys_platform == 'win32'", "platform_system == 'Linux'", "platform_machine == 'x86_64'",
    "platform_machine != 'aarch64'", "sys_platform == 'linux' and platform_machine == 'x86_64'",
    "sys_platform == 'linux' and platform_machine == 'aarch64'", "python_version >= '3.12'",
    "python_version < '3.12'", "python_full_version >= '3.11.4'",
    "sys_platform == 'linux' or sys_platform == 'win32'", "sys_platform == 'windows'",
    "os_name == 'nt'", "platform_python_implementation == 'CPython'", "python_version > '3.11'",
    "sys_platform == 'darwin' and python_version < '3.13'", "sys_platform not in 'darwin win32'",
)  # fmt: skip
DISJOINT = (
    ("sys_platform == 'linux'", "sys_platform == 'win32'"),
    ("sys_platform == 'linux'", "sys_platform != 'linux'"),
    ("sys_platform == 'darwin'", "sys_platform != 'darwin'"),
    (
        "sys_platform == 'linux' and platform_machine == 'x86_64'",
        "sys_platform == 'linux' and platform_machine == 'aarch64'",
    ),
    ("python_version < '3.12'", "python_version >= '3.12'"),
)
CHANNELS = ("cpu", "cu126", "cu128", "cu130", "cu132", "cu129", "rocm7.2", "cu118")
"""Not ``xpu``: the stub's pages of it tell no Requires-Python, so that uv learns it later."""
PYTHONS = (
    ">=3.10", ">=3.10", ">=3.11", ">=3.10,<3.13", ">=3.11,<3.12", "==3.11.*", ">=3.9",
    ">=3.10,<3.14", ">=3.12", ">=3.13", ">=3.12,<3.13", "~=3.10",
)  # fmt: skip
ENVIRONMENTS = (
    ("sys_platform == 'linux'",),
    ("sys_platform == 'linux'", "sys_platform == 'darwin'"),
    ("sys_platform == 'linux' and platform_machine == 'x86_64'",),
    ("sys_platform == 'win32'", "sys_platform == 'linux'"),
    ("python_version < '3.12'", "python_version >= '3.12'"),
    ("sys_platform == 'darwin' and platform_machine == 'arm64'", "sys_platform == 'linux'"),
)
REQUIRED = (
    "sys_platform == 'linux' and platform_machine == 'x86_64'",
    "sys_platform == 'linux' and platform_machine == 'aarch64'",
    "sys_platform == 'darwin' and platform_machine == 'arm64'",
    "sys_platform == 'win32'",
)
DATES = ("2026-04-10T00:00:00Z", "2026-07-10", "2025-09-15T00:00:00Z", "2026-09-20T12:00:00+02:00")
WRONG_KEY = "no-such-key"
OTHER = "plain-helper"
"""A package outside the family that suits every Python."""
EXTRAS = ("cpu", "cu126", "cu130", "gpu", "vision")
GROUPS = ("dev", "gpu", "test")
KINDS = (
    "sources", "markers", "conflicts", "undeclared", "unscoped", "pythons", "environments",
    "limits", "settings", "beside", "selves", "workspaces",
)  # fmt: skip
"""What a case dwells on; everything else is in it now and then."""


class ProjectCase(NamedTuple):
    """One project."""

    text: str
    """``pyproject.toml``; ``$B`` stands for the address of the stub."""
    kind: str = ""
    beside: str | None = None
    """``uv.toml``."""
    members: tuple[tuple[str, str], ...] = ()
    """Members of the workspace: name and ``pyproject.toml``."""

    @property
    def pythons(self) -> bool:
        """Whether any member says for which Pythons it is."""
        return any(re.search(r"^requires-python", text, re.M) for _, text in self.files)

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """Path and text of every file, the project's own first."""
        beside = () if self.beside is None else (("uv.toml", self.beside),)
        below = ((f"packages/{name}/pyproject.toml", text) for name, text in self.members)
        return (("pyproject.toml", self.text), *beside, *below)


def case_of(seed: int, number: int, pythons: tuple[str, ...] = PYTHONS) -> ProjectCase:
    """Return the case of a seed; ``pythons`` are the ``requires-python`` that can be tried here."""
    return _Writer(random.Random(f"{seed}/{number}"), number, pythons).case()


class _Writer:
    def __init__(self, rng: random.Random, number: int, pythons: tuple[str, ...]) -> None:
        self.rng = rng
        self.name = "app"
        self.python = ""
        self.home = rng.choice(CHANNELS[:4])
        """Where most packages of a workspace come from."""
        self.kind = KINDS[number % len(KINDS)]
        self.pythons = pythons
        self.indexes: dict[str, bool] = {}

    def chance(self, share: float, *kinds: str) -> bool:
        return self.rng.random() < (0.85 if self.kind in kinds else share)

    def pick(self, name: str) -> str:
        """Return a specifier; where several parts meet, most must leave room for the others."""
        text = self.rng.choice(SPECIFIERS[name])
        if self.kind == "workspaces" and self.rng.random() < 0.6:
            return ""
        return text if self.kind in ("markers", "pythons") or self.rng.random() < 0.6 else ""

    def requirement(self, name: str, markers: float = 0.15) -> str:
        text = name + self.pick(name)
        if self.rng.random() < markers:
            text += f" ; {self.rng.choice(MARKERS)}"
        return text

    def requirements(self, chance: float = 0.5) -> list[str]:
        markers = 0.45 if self.kind == "markers" else 0.15
        names = ["torch"] if self.rng.random() < 0.8 else []
        names += [name for name in FAMILY[1:] if self.rng.random() < chance * 0.6]
        out = [self.requirement(name, markers) for name in names]
        if "torch" in names and self.chance(0.08, "markers"):
            one, other = self.rng.choice(DISJOINT)
            out = [text for text in out if not text.startswith("torch") or text[5:6].isalpha()]
            out += [f"torch{self.pick('torch')} ; {one}"]
            out += [f"torch{self.pick('torch')} ; {other}"]
        if self.rng.random() < 0.1:
            out.append(self.rng.choice([f"{OTHER}", f"{OTHER} ; sys_platform == 'linux'"]))
        self.rng.shuffle(out)
        return out

    def channel(self, hint: str = "") -> str:
        names = [hint] if hint in CHANNELS and self.rng.random() < 0.85 else list(CHANNELS)
        if self.kind == "workspaces" and self.rng.random() < 0.8:
            names = [self.home]  # members with different indexes are an error
        weights = [6 if n in ("cpu", "cu126", "cu130") else 1 for n in names]
        name = self.rng.choices(names, weights)[0]
        explicit = self.rng.random() < (0.4 if self.kind == "unscoped" else 0.93)
        self.indexes.setdefault(name, explicit)
        return name

    def source(self, scope: tuple[str, str] | None, marker: str | None) -> str:
        parts = [f'index = "{self.channel(scope[1] if scope else "")}"']
        if scope is not None:
            parts.append(f'{scope[0]} = "{scope[1]}"')
        if marker is not None:
            parts.append(f'marker = "{marker}"')
        return "{ " + ", ".join(parts) + " }"

    def sources(self, parts: dict[tuple[str, str], list[str]]) -> str:
        rng = self.rng
        scopes = list(parts)
        routed = [n for n in FAMILY if rng.random() < (0.9 if n == "torch" else 0.65)]
        if scopes and self.chance(0.5, "conflicts", "undeclared"):
            chosen = scopes if rng.random() < 0.7 else rng.sample(scopes, 1)
            marker = rng.choice(MARKERS[:3]) if self.chance(0.25) else None
            state = rng.getstate()
            lines = []
            for name in routed:
                rng.setstate(state)
                texts = [(s, self.source(s, marker)) for s in chosen]
                kept = [t for s, t in texts if self.holds(parts[s], name) or rng.random() < 0.01]
                if kept:
                    lines.append(f"{name} = [{', '.join(kept)}]")
            rng.random()
        elif self.chance(0.3):
            state, pair = rng.getstate(), rng.choice(DISJOINT)
            if rng.random() < 0.1:
                pair = (rng.choice(MARKERS), rng.choice(MARKERS))
            lines = []
            for name in routed:
                rng.setstate(state)
                lines.append(f"{name} = [{', '.join(self.source(None, m) for m in pair)}]")
            rng.random()
        else:
            marker = rng.choice(MARKERS) if self.chance(0.5, "markers", "sources") else None
            state, same = rng.getstate(), rng.random() < 0.9
            lines = []
            for name in routed:
                if same:
                    rng.setstate(state)
                lines.append(f"{name} = {self.source(None, marker)}")
            rng.random()
        return "[tool.uv.sources]\n" + "\n".join(lines) + "\n" if lines else ""

    @staticmethod
    def holds(texts: list[str], name: str) -> bool:
        """Return whether a list of requirements names a package."""
        return any(re.match(r"[a-z-]+", text)[0] == name for text in texts)  # type: ignore[index]

    def scopes(self) -> tuple[list[str], list[str]]:
        rng = self.rng
        extras: list[str] = []
        groups: list[str] = []
        if self.chance(0.4, "conflicts", "undeclared"):
            extras = rng.sample(EXTRAS, rng.choice([1, 2, 2, 3]))
        if self.chance(0.2):
            groups = rng.sample(GROUPS, rng.choice([1, 2]))
        return extras, groups

    def conflicts(self, extras: list[str], groups: list[str]) -> str:
        rng = self.rng
        items = [f'{{ extra = "{e}" }}' for e in extras] + [f'{{ group = "{g}" }}' for g in groups]
        if len(items) < 2 or self.kind == "undeclared" or not self.chance(0.6, "conflicts"):
            return ""
        sets = [items if rng.random() < 0.7 else rng.sample(items, 2)]
        if len(items) > 2 and rng.random() < 0.25:
            sets.append(rng.sample(items, 2))
        return "conflicts = [" + ", ".join(f"[{', '.join(one)}]" for one in sets) + "]\n"

    def limits(self) -> str:
        rng, out = self.rng, ""
        for key in ("constraint-dependencies", "override-dependencies"):
            if self.chance(0.07, "limits") and rng.random() < 0.7:
                names = rng.sample(FAMILY, rng.choice([1, 1, 2]))
                texts = [self.requirement(name, 0.15) for name in names]
                out += f"{key} = [{', '.join(_quoted(text) for text in texts)}]\n"
        return out

    def settings(self, *, sharp: bool = True) -> str:
        """Return keys of ``uv.toml`` or ``[tool.uv]`` that are settings."""
        rng, out = self.rng, ""
        choice = rng.random()
        if choice < 0.35:
            out += f'resolution = "{rng.choice(["lowest", "lowest-direct", "lowest-direct"])}"\n'
        elif choice < 0.5:
            out += f'exclude-newer = "{rng.choice(DATES)}"\n'
        elif choice < 0.58:
            out += f'exclude-newer-package = {{ torch = "{rng.choice(DATES)}" }}\n'
        elif choice < 0.62:
            out += f'prerelease = "{rng.choice(["allow", "disallow", "explicit"])}"\n'
        elif choice < 0.66:
            out += rng.choice(["no-build = true\n", 'no-build-package = ["torch"]\n'])
        elif choice < 0.68:
            out += rng.choice(["no-index = true\n", 'no-binary-package = ["torch"]\n'])
        elif choice < 0.75:
            out += rng.choice(["no-sources = true\n", 'no-sources-package = ["torch"]\n'])
        elif choice < 0.85:
            out += self.metadata()
        elif choice < 0.9 and sharp:
            out += rng.choice([f"{WRONG_KEY} = 1\n", 'index-strategy = "best"\n'])
        elif choice < 0.95:
            names = ["unsafe-best-match", "unsafe-first-match", "unsafe-any-match", "first-index"]
            out += f'index-strategy = "{rng.choice(names)}"\n'
        return out

    def metadata(self) -> str:
        rng = self.rng
        name = rng.choice(["torchvision", "torchvision", "torchaudio", OTHER])
        version = rng.choice(["", "", ', version = "0.28.0"', ', version = "0.29.0"'])
        version = version if name == "torchvision" else ""
        texts = rng.choice(
            [[], ["torch"], ["torch<2.14"], ["torch>=2.9 ; sys_platform == 'linux'"], [OTHER]]
        )
        requires = ", ".join(_quoted(text) for text in texts if text != name)
        one = f'{{ name = "{name}"{version}, requires-dist = [{requires}] }}'
        return f"dependency-metadata = [{one}]\n"

    def belongings(self, groups: list[str]) -> str:
        """Return keys of ``[tool.uv]`` that belong to the project."""
        rng, out = self.rng, ""
        choice = rng.random()
        if choice < 0.3:
            names = rng.sample(FAMILY, rng.choice([1, 1, 2]))
            out += _list("exclude-dependencies", names)
        elif choice < 0.45:
            scoped = '{ package = { name = "torchvision" }, dependencies = ["torch"] }'
            out += f"exclude-dependencies = [{scoped}]\n"
        elif choice < 0.6:
            text = rng.choice(["torch<2.12", "torch>=2.9", "torch ; sys_platform == 'linux'"])
            scoped = f'{{ package = {{ name = "torchvision" }}, dependencies = ["{text}"] }}'
            out += f"override-dependencies = [{scoped}]\n"
        elif choice < 0.8 and groups:
            python = rng.choice([">=3.11", ">=3.12", ">=3.11,<3.14"])
            out += f'dependency-groups = {{ {groups[-1]} = {{ requires-python = "{python}" }} }}\n'
        elif choice < 0.9:
            out += '[tool.uv.pip]\nresolution = "lowest"\ntorch-backend = "cpu"\n'
        return out

    def selves(self, extras: list[str], groups: list[str]) -> tuple[list[str], list[str]]:
        """Return what an extra and a group ask of the project itself."""
        rng = self.rng
        other = rng.choice(extras)
        marker = rng.choice(["", "", " ; sys_platform == 'linux'"])
        mine = [f"{self.name}[{other}]{marker}"]
        return (mine if rng.random() < 0.7 else []), (mine if groups else [])

    def case(self) -> ProjectCase:
        rng = self.rng
        members: list[tuple[str, str]] = []
        root = ""
        if self.kind == "workspaces":
            for name in ("lib", "tool")[: rng.choice([1, 1, 2])]:
                members.append((name, self.member(name)))
            root = '[tool.uv.workspace]\nmembers = ["packages/*"]\n'
            self.name, self.indexes = "app", {}
        text = self.project(members) + root
        beside = None
        if self.kind == "beside":
            beside = self.settings(sharp=False)
            if rng.random() < 0.7:
                name, explicit = self.channel(), rng.random() < 0.3
                beside += f'[[index]]\nname = "{name}"\nurl = "$B/whl/{name}"\n'
                beside += "explicit = true\n" if explicit else ""
        return ProjectCase(text, self.kind, beside, tuple(members))

    def member(self, name: str) -> str:
        self.name, self.indexes = name, {}
        return self.project([])

    def project(self, members: list[tuple[str, str]]) -> str:
        rng = self.rng
        lines = [f'[project]\nname = "{self.name}"\nversion = "0"\n']
        if rng.random() < 0.95:
            python = rng.choice(self.pythons)
            self.python = self.python or python
            # Members that no Python suits together are an error; a few are enough.
            python = self.python if rng.random() < 0.8 else python
            lines.append(f'requires-python = "{python}"\n')
        extras, groups = self.scopes()
        if self.kind == "selves" and not extras:
            extras = rng.sample(EXTRAS, rng.choice([1, 2, 2]))
        if self.kind == "selves" and not groups and rng.random() < 0.6:
            groups = rng.sample(GROUPS, 1)
        base = self.requirements() if rng.random() < 0.8 or not (extras or groups) else []
        below = ""
        for name, text in members:
            if rng.random() < 0.6:
                names = re.search(r"optional-dependencies\]\n(\w+)", text)
                wanted = f"[{names[1]}]" if names and rng.random() < 0.6 else ""
                base.append(name + wanted)
                below += f"{name} = {{ workspace = true }}\n"
        own, grouped = self.selves(extras, groups) if self.kind == "selves" else ([], [])
        lines.append(_list("dependencies", base))
        parts: dict[tuple[str, str], list[str]] = {}
        if extras:
            lines.append("[project.optional-dependencies]\n")
            for extra in extras:
                texts = parts["extra", extra] = self.requirements(0.4)
                if extra == "vision" and len(extras) > 1 and rng.random() < 0.5:
                    texts = [f"{self.name}[{next(e for e in extras if e != extra)}]"]
                lines.append(_list(extra, texts))
            if own:
                lines.append(_list("all", own))
        if groups:
            lines.append("[dependency-groups]\n")
            for at, group in enumerate(groups):
                parts["group", group] = self.requirements(0.4)
                text = _list(group, [*parts["group", group], *(grouped if at == 0 else [])])
                if at and rng.random() < 0.3:
                    text = text.replace("[", f'[{{ include-group = "{groups[0]}" }}, ', 1)
                lines.append(text)
        sources = self.sources(parts) if self.chance(0.7, "sources", "unscoped") else ""
        if below:
            sources = (sources or "[tool.uv.sources]\n") + below
        if own and rng.random() < 0.2:
            extras = [*extras, "all"]
        uv = self.conflicts(extras, groups) + self.limits()
        if self.chance(0.08, "environments"):
            if rng.random() < 0.55:
                uv += _list("environments", list(rng.choice(ENVIRONMENTS)))
            else:
                uv += _list("required-environments", [rng.choice(REQUIRED)])
        if self.chance(0.05, "pythons") and rng.random() < 0.5:
            uv += 'fork-strategy = "fewest"\n'
        if groups and rng.random() < 0.3:
            uv += _list("default-groups", rng.sample(groups, 1))
        if self.kind == "unscoped" and rng.random() < 0.3:
            uv += f'index-strategy = "{rng.choice(["unsafe-best-match", "unsafe-first-match"])}"\n'
        if self.kind in ("unscoped", "beside") and rng.random() < 0.4:
            self.channel()
        if self.chance(0.03, "settings"):
            more = self.settings()
            uv += "" if more.partition(" = ")[0] in uv else more
        if self.chance(0.02, "settings") and rng.random() < 0.5:
            more = self.belongings(groups)
            uv += "" if more.partition(" = ")[0] in uv else more
        lines.append("[tool.uv]\n" + uv + sources)
        known = "".join([*lines, *(text for _, text in members)])
        default = rng.random() < 0.04 and OTHER not in known
        for at, (name, explicit) in enumerate(self.indexes.items()):
            lines.append(f'[[tool.uv.index]]\nname = "{name}"\nurl = "$B/whl/{name}"\n')
            if default and at == len(self.indexes) - 1:
                lines.append("default = true\n")
            elif explicit:
                lines.append("explicit = true\n")
        return "".join(lines)


def _quoted(text: str) -> str:
    return f'"{text}"'


def _list(key: str, texts: list[str]) -> str:
    return f"{key} = [{', '.join(_quoted(text) for text in texts)}]\n"
