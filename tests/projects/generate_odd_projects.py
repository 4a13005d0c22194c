"""Makes generated uv projects odd: what ``generate_projects`` never writes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.clients.generate_odd import odd_marker, odd_specifier
from tests.projects.generate_projects import CHANNELS, OTHER, PYTHONS, ProjectCase, case_of

_ASKED = re.compile(r'"(torch|torchvision|torchaudio)(?![\w-])([^"]*)"')
_SOURCE = re.compile(r"^(torch|torchvision|torchaudio) = (?=[{\[])", re.MULTILINE)
_ODD_PYTHONS = (
    ">=3.10,!=3.11.*",
    ">=3.10.4",
    ">3.10",
    ">=3.10,<4",
    "~=3.11.0",
    ">=3.11.0rc1",
    "==3.11.7",
    ">=3.10,<=3.13",
    ">=3.10,<3.13.2",
    ">=3",
    "<3.14,>=3.10",
    ">=3.10, <3.14",
    ">=3.11,>=3.10",
    "!=3.12.*,>=3.10",
    ">=3.11.4,<3.13",
    "^3.11",
    ">=3.x",
)


class _Twister:
    """Changes the text of one project."""

    def __init__(self, rng: random.Random, case: ProjectCase) -> None:
        self.rng = rng
        self.case = case
        self.text = case.text

    def change(self, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str]) -> None:
        """Replace one match of a pattern."""
        found = [
            match
            for match in pattern.finditer(self.text)
            if not self.text[: match.start()].rpartition("\n")[2].startswith("exclude-")
        ]
        if found:
            one = self.rng.choice(found)
            self.text = self.text[: one.start()] + new(one) + self.text[one.end() :]

    def setting(self, line: str) -> None:
        """Put a line at the head of ``[tool.uv]``, unless the key is there."""
        key = line.partition(" = ")[0]
        if not re.search(rf"^{re.escape(key)} = ", self.text, re.MULTILINE):
            self.text = self.text.replace("[tool.uv]\n", f"[tool.uv]\n{line}\n", 1)

    def requirement(self) -> None:
        def new(match: re.Match[str]) -> str:
            rest = odd_specifier(self.rng, match[2]).strip("\t ").replace("\t", " ")
            rest = f" {rest}" if rest[:1].isdigit() else rest
            return f'"{match[1]}{rest}"'

        self.change(_ASKED, new)

    def marker(self) -> None:
        def new(match: re.Match[str]) -> str:
            marker = odd_marker(self.rng, 2).replace('"', "'") or "os_name == 'nt'"
            return f'"{match[1]}{match[2].partition(" ;")[0]} ; {marker}"'

        self.change(_ASKED, new)

    def name(self) -> None:
        forms = {
            "torch": ("Torch", "TORCH", "torch[opt-einsum]", "torch [x,y] ", "torch "),
            "torchvision": ("TorchVision", "torchvision[scipy]", "torchvision "),
            "torchaudio": ("TorchAudio", "torchaudio[x]", "torchaudio "),
        }
        if self.rng.random() < 0.3:
            self.change(_SOURCE, lambda m: f"{self.rng.choice((m[1].title(), m[1].upper()))} = ")
        else:
            self.change(_ASKED, lambda m: f'"{self.rng.choice(forms[m[1]])}{m[2]}"')

    def twice(self) -> None:
        def new(match: re.Match[str]) -> str:
            again = match[0] if self.rng.random() < 0.4 else f'"{match[1]}"'
            if self.rng.random() < 0.4:
                again = f'"{match[1]} {odd_specifier(self.rng, "").strip()}"'
            return f"{match[0]}, {again}"

        self.change(_ASKED, new)

    def python(self) -> None:
        text = self.rng.choice(_ODD_PYTHONS)
        self.change(
            re.compile(r'^requires-python = ".*"', re.M), lambda m: f'requires-python = "{text}"'
        )

    def source(self) -> None:
        rng = self.rng
        names = re.findall(r'^name = "(\w[\w.]*)"\nurl', self.text, re.M) or ["cpu"]

        def one() -> str:
            parts = [f'index = "{rng.choice((*names, *names, "missing", names[0].upper()))}"']
            if rng.random() < 0.6:
                parts.append(
                    f'marker = "{odd_marker(rng, 1)}"'.replace('""', '"').replace(' "', " '")
                )
            if rng.random() < 0.3:
                parts.append(
                    rng.choice(('extra = "cpu"', 'extra = "gpu"', 'group = "dev"', 'group = "gpu"'))
                )
            marker = next((p for p in parts if p.startswith("marker")), "")
            if marker:
                body = marker[len("marker = ") :].strip("\"'").replace('"', "'")
                parts[parts.index(marker)] = f'marker = "{body}"'
            return "{ " + ", ".join(parts) + " }"

        def new(match: re.Match[str]) -> str:
            items = [one() for _ in range(rng.choice((1, 1, 2, 3)))]
            return f"{match[1]} = [{', '.join(items)}]\n"

        pattern = re.compile(r"^(torch|torchvision|torchaudio) = [{\[].*\n", re.M)
        if not pattern.search(self.text):
            return
        self.change(pattern, new)

    def url_source(self) -> None:
        name = self.rng.choice(
            (
                "whl/cpu/torch-2.9.1%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl",
                "whl/cu126/torch-2.9.1%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl",
                "whl/cu130/torch-2.13.0%2Bcu130-cp312-cp312-manylinux_2_28_x86_64.whl",
            )
        )
        if self.rng.random() < 0.5:
            self.change(
                re.compile(r"^torch = [{\[].*\n", re.M),
                lambda m: f'torch = {{ url = "$B/{name}" }}\n',
            )
        else:
            self.change(re.compile(r'"torch(?![\w-])[^"]*"'), lambda m: f'"torch @ $B/{name}"')

    def index(self) -> None:
        rng = self.rng
        if any(OTHER in text for _, text in self.case.files):
            return

        def url(match: re.Match[str]) -> str:
            plain = match[1]
            new = rng.choice(
                (
                    f"{plain}/",
                    f"{plain}//",
                    plain.replace("$B", "$U"),
                    f"{plain}/?x=1",
                    plain.upper().replace("$B/WHL", "$B/whl"),
                    f"{plain}#x",
                    "$B/pypi/simple",
                    "$B/pypi/simple/",
                    f"{plain}/torch",
                    "$B/whl/nightly/cpu",
                    "$B/nothing",
                    "whl",
                    "",
                    "$B/whl/cpu",
                    "$B/whl/cu126",
                    "$B/whl",
                )
            )
            return f'url = "{new}"'

        def table(match: re.Match[str]) -> str:
            lines = rng.choice(
                (
                    "explicit = true\n",
                    "default = true\n",
                    "explicit = true\ndefault = true\n",
                    "explicit = false\n",
                    'format = "flat"\n',
                    'format = "simple"\n',
                    'authenticate = "never"\n',
                    "ignore-error-codes = [404]\n",
                    'cache-control = { api = "max-age=1" }\n',
                    'publish-url = "$B/x"\n',
                    "odd = 1\n",
                    "",
                )
            )
            return match[0] + lines

        match rng.randrange(6):
            case 0:
                self.change(re.compile(r'^url = "(.*)"', re.M), url)
            case 1:
                self.text = re.sub(r"^(explicit|default) = true\n", "", self.text, flags=re.M)
                self.change(re.compile(r'^url = ".*"\n', re.M), table)
            case 2:
                name = rng.choice(CHANNELS)
                again = re.search(r'\[\[tool\.uv\.index\]\]\nname = "(.*)"', self.text)
                label = again[1] if again and rng.random() < 0.3 else f"{name}-more"
                self.text += f'[[tool.uv.index]]\nname = "{label}"\nurl = "$B/whl/{name}"\n'
                self.text += rng.choice(("", "explicit = true\n", "default = true\n"))
            case 3:
                self.text += '[[tool.uv.index]]\nurl = "$B/pypi/simple"\n'
                self.text += rng.choice(("", "default = true\n"))
            case 4:
                self.change(re.compile(r'^name = "(.*)"\nurl', re.M), lambda m: "url")
            case _:
                self.change(
                    re.compile(r'^name = "([a-z].*)"\nurl', re.M),
                    lambda m: f'name = "{m[1].upper()}"\nurl',
                )

    def old_index(self) -> None:
        if any(OTHER in text for _, text in self.case.files):
            return  # it is on the usual index only
        channel = self.rng.choice(CHANNELS)
        self.setting(
            self.rng.choice(
                (
                    f'index-url = "$B/whl/{channel}"',
                    f'extra-index-url = ["$B/whl/{channel}"]',
                    'index-url = "$B/pypi/simple"',
                    f'find-links = ["$B/whl/{channel}/torch/"]',
                    f'extra-index-url = "$B/whl/{channel}"',
                    f'extra-index-url = ["$B/whl/{channel}", "$B/whl/cpu"]',
                )
            )
        )

    def limits(self) -> None:
        rng = self.rng
        key = rng.choice(("constraint-dependencies", "override-dependencies"))
        name = rng.choice(("torch", "torch", "torchvision", "torchaudio"))
        texts = [f"{name} {odd_specifier(rng, '').strip()}".replace("\t", " ")]
        if rng.random() < 0.4:
            texts.append(f"torch<2.14 ; {odd_marker(rng, 1)}".replace('"', "'"))
        if rng.random() < 0.2:
            texts.append(f"{name}[x]>=0.1")
        self.setting(f"{key} = [{', '.join(chr(34) + t + chr(34) for t in texts)}]")

    def settings(self) -> None:
        rng = self.rng
        self.setting(
            rng.choice(
                (
                    "package = false",
                    "package = true",
                    "managed = false",
                    "managed = true",
                    'required-version = ">=0.1"',
                    "preview = true",
                    "compile-bytecode = true",
                    'link-mode = "copy"',
                    "upgrade = true",
                    'upgrade-package = ["torch"]',
                    "no-cache = false",
                    "offline = false",
                    'python-preference = "system"',
                    'dev-dependencies = ["torch<2.13"]',
                    'dev-dependencies = ["torchvision"]',
                    'default-groups = "all"',
                    "default-groups = []",
                    'exclude-newer = "2026-04-10T00:00:00Z"',
                    'exclude-newer = "1 week"',
                    'exclude-newer = "P30D"',
                    'exclude-newer = "2026-04-31"',
                    "exclude-newer = false",
                    "exclude-newer-package = { torch = false }",
                    'exclude-newer-package = { torchvision = "2026-01-01" }',
                    'resolution = "highest"',
                    'resolution = "newest"',
                    'prerelease = "if-necessary"',
                    'prerelease = "if-necessary-or-explicit"',
                    'fork-strategy = "requires-python"',
                    'fork-strategy = "fewest"',
                    'keyring-provider = "disabled"',
                    "concurrent-builds = 1",
                    "no-sources = true",
                    'no-sources-package = ["torchvision"]',
                    "no-binary = true",
                    'no-binary-package = ["torchvision"]',
                    "no-build = true",
                    'no-build-package = ["torch", "torchvision"]',
                    "no-build-isolation = true",
                    'index-strategy = "first-index"',
                    'index-strategy = "unsafe-best-match"',
                    'build-constraint-dependencies = ["setuptools<60"]',
                    "sources = {}",
                    "environments = \"sys_platform == 'linux'\"",
                    "environments = []",
                    "environments = [\"sys_platform == 'linux' and python_version >= '3.12'\"]",
                    "environments = [\"python_version >= '3.11'\", \"sys_platform == 'linux'\"]",
                    "environments = [\"implementation_name == 'cpython'\"]",
                    "required-environments = [\"sys_platform == 'linux'\", "
                    "\"sys_platform == 'darwin' and platform_machine == 'x86_64'\"]",
                    "required-environments = [\"sys_platform == 'linux'\"]",
                    'conflicts = [[{ package = "app", extra = "cpu" }, '
                    '{ package = "app", extra = "gpu" }]]',
                    'conflicts = [[{ extra = "cpu" }]]',
                    'conflicts = [[{ group = "dev" }, { extra = "gpu" }]]',
                    "conflicts = []",
                    'torch-backend = "cpu"',
                    'exclude-dependencies = ["torch"]',
                    "override-dependencies = []",
                    f'constraint-dependencies = ["{OTHER}<99"]',
                )
            )
        )

    def pip_table(self) -> None:
        rng = self.rng
        keys = rng.choice(
            (
                'torch-backend = "cu126"\n',
                'resolution = "lowest"\n',
                'extra-index-url = ["$B/whl/cpu"]\n',
                "no-sources = true\n",
                'extra = ["cpu"]\n',
                'python-version = "3.12"\n',
                'python-platform = "linux"\n',
                "universal = true\n",
                'prerelease = "allow"\n',
                "no-build = true\n",
                'index-strategy = "unsafe-best-match"\n',
            )
        )
        if "[tool.uv.pip]" not in self.text:
            self.text += f"[tool.uv.pip]\n{keys}"

    def groups(self) -> None:
        rng = self.rng
        pattern = re.compile(r"^\[dependency-groups\]\n(\w+) = ", re.M)
        found = pattern.search(self.text)
        if not found:
            self.text += (
                f'[dependency-groups]\nextra-tools = ["torch {odd_specifier(rng, "").strip()}"]\n'
            )
            if rng.random() < 0.5:
                self.text += 'more = [{ include-group = "extra-tools" }, "torchvision"]\n'
            if rng.random() < 0.2:
                self.text += 'dev = [{ include-group = "More" }]\n'
            return
        line = rng.choice(
            (
                f'more = [{{ include-group = "{found[1]}" }}]\n',
                f'More_Tools = [{{ include-group = "{found[1].upper()}" }}, "torch"]\n',
                'more = [{ include-group = "missing" }]\n',
                'more = [{ include-group = "more" }]\n',
                f'two = [{{ include-group = "{found[1]}" }}, {{ include-group = "{found[1]}" }}]\n',
                "more = []\n",
            )
        )
        self.text = self.text.replace("[dependency-groups]\n", f"[dependency-groups]\n{line}", 1)

    def done(self) -> ProjectCase:
        return self.case._replace(text=self.text)


TWISTS = (
    "requirement",
    "requirement",
    "marker",
    "marker",
    "name",
    "twice",
    "python",
    "source",
    "source",
    "url_source",
    "index",
    "index",
    "old_index",
    "limits",
    "settings",
    "settings",
    "pip_table",
    "groups",
)


def odd_case_of(
    seed: int, number: int, pythons: tuple[str, ...] = PYTHONS
) -> tuple[ProjectCase, tuple[str, ...]]:
    """Return one project and its twists; the same arguments give the same project."""
    rng = random.Random(f"odd:{seed}/{number}")
    twister = _Twister(rng, case_of(seed, number, pythons))
    names = rng.sample(TWISTS, rng.choice((1, 1, 1, 2)))
    for name in names:
        getattr(twister, name)()
    return twister.done(), tuple(names)
