"""Generates requirements files that ask the family from several indexes in every way.

Texts hold ``$B`` for the address of the stub, so that a case can be kept as a file.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import NamedTuple

from packaging.version import Version
from tests.clients.runners import PLATFORMS, PYTHONS
from tests.clients.stub_facts import FAMILY, PYPI, Wheel, load, platform_of, public
from tests.clients.stub_server import Content

ROOT = "requirements.txt"


class Case(NamedTuple):
    """One question: what does the client install from these files on this target?"""

    files: dict[str, str]
    """File name → text; ``requirements.txt`` is the root."""
    client: str
    python: str
    platform: str


MARKERS = (
    'sys_platform == "linux"',
    'sys_platform != "linux"',
    "sys_platform == 'darwin'",
    'sys_platform == "win32"',
    'platform_system == "Linux" and platform_machine == "x86_64"',
    'platform_machine == "aarch64"',
    'platform_machine != "aarch64" or python_version < "3.12"',
    'python_version >= "3.12"',
    'python_version < "3.12"',
    'python_version in "3.10 3.11"',
    'python_full_version >= "3.13"',
    'implementation_name == "cpython"',
    'os_name == "nt"',
)


@lru_cache
def _wheels() -> dict[tuple[str, str], tuple[Wheel, ...]]:
    """Return (package, home) → wheels, ascending by version."""
    found: dict[tuple[str, str], list[Wheel]] = {}
    for wheel in load(True):
        if wheel.package in FAMILY and platform_of(wheel.filename) in PLATFORMS:
            found.setdefault((wheel.package, wheel.home), []).append(wheel)
    return {k: tuple(sorted(v, key=lambda w: Version(w.version))) for k, v in found.items()}


@lru_cache
def _channels() -> tuple[str, ...]:
    """Return the channels, those with many files more often."""
    counts = {home: len(w) for (package, home), w in _wheels().items() if package == "torch"}
    counts.pop(PYPI)
    return tuple(c for c, n in sorted(counts.items()) for _ in range(1 + min(n, 120) // 20))


@lru_cache
def _versions(package: str, home: str) -> tuple[str, ...]:
    wheels = _wheels().get((package, home), ())
    return tuple(dict.fromkeys(w.version for w in wheels))


@lru_cache
def _installable(package: str, home: str, python: str, platform: str) -> tuple[str, ...]:
    """Return the versions that have a wheel for a target, ascending."""
    tags = (f"-cp{python.replace('.', '')}-", "-py3-")
    return tuple(
        dict.fromkeys(
            w.version
            for w in _wheels().get((package, home), ())
            if platform_of(w.filename) == platform and any(tag in w.filename for tag in tags)
        )
    )


@lru_cache
def _content() -> Content:
    return Content(load(True))


class _Maker:
    """Draws the parts of one case."""

    def __init__(self, rng: random.Random, client: str) -> None:
        self.rng = rng
        self.client = client
        self.python = rng.choice(PYTHONS)
        self.platform = rng.choice((*PLATFORMS, PLATFORMS[0]))
        self.channels = [rng.choice(_channels()) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        self.torch = ""
        self.indexed = self.chance(0.8)
        """Whether the case names channels."""

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def version(self, package: str) -> str:
        """Return a version with its label, most often one that goes with the rest of the case."""
        share = 0.85 if self.client == "uv" and self.indexed else 0.6
        home = self.rng.choice(self.channels) if self.chance(share) else PYPI
        known = _versions(package, home) or _versions(package, PYPI)
        if self.chance(0.8):
            known = _installable(package, home, self.python, self.platform) or known
        if self.torch and package != "torch" and self.chance(0.7):
            fits = [
                w.version
                for w in _wheels().get((package, home), ())
                if w.version in known and any(self.torch in text for text in w.requires)
            ]
            known = tuple(fits) or known
        recent = known[-max(3, len(known) // 2) :]
        version = self.rng.choice(recent if self.chance(0.8) else known)
        if package == "torch":
            self.torch = public(version)
        return version

    def specifier(self, package: str) -> str:
        """Return a specifier."""
        rng = self.rng
        if self.chance(0.25 if package == "torch" else 0.5):
            return ""
        version = self.version(package)
        plain = public(version)
        release = Version(plain).release
        minor = f"{release[0]}.{release[1]}"
        other = public(self.version(package))
        low, high = sorted((plain, other), key=Version)
        label = rng.choice((*self.channels, "cpu", "cu126"))
        return rng.choices(
            (
                f"=={version}",
                f"=={plain}",
                f"=={plain}+{label}",
                f"=={minor}.*",
                f"~={plain}",
                f"~={minor}",
                f">={plain}",
                f"<={plain}",
                f"<{plain}",
                f">{plain}",
                f">={low},<={high}",
                f">={low},<{high}",
                f">={low},!={high}",
                f"!={plain}",
                f"==={version}",
                f"==={plain}",
                f"=={release[0]}.{release[1]}.{release[2] + 7}",
                f">={plain}.dev0",
                f"!={version},>={minor}",
                f">={version}" if version == plain else f"=={version},>={minor}",
                f"=={minor}" if release[2] == 0 else f"=={plain}",
            ),
            (24, 24, 3, 5, 4, 6, 10, 10, 6, 3, 5, 4, 4, 4, 1, 1, 1, 2, 1, 1, 2),
        )[0]

    def index_line(self) -> str:
        rng = self.rng
        channel = rng.choice((*self.channels, self.channels[0]))
        slash = rng.choice(("", "", "/"))
        url = f"$B/whl/{channel}{slash}"
        # A page that does not exist stops uv; whether one exists is not what is asked here.
        pages = [name for name in ("torch", *FAMILY) if (name, channel) in _wheels()]
        page = f"$B/whl/{channel}/{rng.choice(pages)}/"
        return rng.choices(
            (
                f"--extra-index-url {url}",
                f"--extra-index-url={url}",
                f"--index-url {url}",
                f"-i {url}",
                f"--index-url={url}",
                f"-f {page}",
                f"--find-links {page}",
                f"-f $B/whl/{channel}/",
                "-f $B/whl/torch_stable.html",
                f"--extra-index-url $B/pypi/simple{slash}",
                f"-i $B/pypi/simple{slash}",
                f"-i {url} --extra-index-url $B/pypi/simple",
                "--no-index",
                f"--extra-index-url {page}",
            ),
            (30, 8, 12, 6, 4, 8, 4, 2, 1, 5, 4, 2, 1, 1),
        )[0]

    def requirement(self, package: str) -> list[str]:
        """Return one line, or two with markers, that ask for a package."""
        rng = self.rng
        name = package if self.chance(0.9) else rng.choice((package.upper(), package.title()))
        line = name + self.specifier(package)
        if self.chance(0.04):
            line = self.direct_url(package) or line
        if self.chance(0.18):
            marker = rng.choice(MARKERS)
            if self.chance(0.4):
                opposite = f"{name}{self.specifier(package)} ; {_opposite(marker)}"
                return [f"{line} ; {marker}", opposite]
            line = f"{line} ; {marker}"
        elif self.chance(0.05):
            line = f"{line}  # why not"
        return [line]

    def direct_url(self, package: str) -> str:
        home = self.rng.choice(self.channels)
        python = f"cp{self.python.replace('.', '')}"
        tag = f"-{python}-{python}-"
        wheels = [
            w
            for w in _wheels().get((package, home), ())
            if (platform_of(w.filename) == self.platform and tag in w.filename)
            or (self.client == "pip" and self.chance(0.01))  # uv pip compile looks at no tags
        ]
        if not wheels:
            return ""
        wheel = self.rng.choice(wheels)
        if package == "torch":
            self.torch = public(wheel.version)
        return f"{package} @ $B/whl/{home}/{wheel.filename.replace('+', '%2B')}"

    def hashed(self) -> str:
        """Return torch with a hash of one of its wheels that fit, else plain."""
        home = self.rng.choice((PYPI, *self.channels))
        wheels = [
            w
            for w in _wheels().get(("torch", home), ())
            if platform_of(w.filename) == self.platform
        ]
        if not wheels:
            return "torch==2.9.1"
        wheel = self.rng.choice(wheels)
        version = self.rng.choice((wheel.version, public(wheel.version)))
        return f"torch=={version} --hash=sha256:{_content().digest(wheel)}"

    def case(self) -> Case:
        rng = self.rng
        if self.client == "pip" and self.chance(0.04):
            lines = [self.index_line(), self.hashed()]
            rng.shuffle(lines)
            return self.done({ROOT: lines})
        packages = rng.choices(
            (
                ("torch",),
                ("torch", "torchvision"),
                ("torch", "torchaudio"),
                FAMILY,
                ("torchvision",),
                ("torchaudio",),
                ("torchvision", "torchaudio"),
            ),
            (25, 22, 12, 25, 6, 4, 6),
        )[0]
        lines = [line for package in packages for line in self.requirement(package)]
        if self.chance(0.06):
            package = rng.choice(packages)
            lines.append(package + self.specifier(package))
        if self.indexed:
            lines += [self.index_line() for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3)))]
        if self.chance(0.04):
            lines.append("--pre")
        if self.chance(0.5):
            rng.shuffle(lines)
        files = {ROOT: lines}
        if self.chance(0.2):
            some = [line for line in lines if self.chance(0.4)]
            kept = [line for line in lines if line not in some]
            name = rng.choice(("more.txt", "sub/more.txt"))
            files = {ROOT: kept, name: some}
            include = rng.choice((f"-r {name}", f"--requirement {name}", f"-r{name}"))
            kept.insert(rng.randint(0, len(kept)), include)
            if self.chance(0.2):
                some.append(self.index_line())
        if self.chance(0.2):
            limits = []
            for package in rng.sample(FAMILY, rng.choice((1, 1, 2, 3))):
                limit = self.specifier(package) or "<2.14"
                marker = f" ; {rng.choice(MARKERS)}" if self.chance(0.2) else ""
                limits.append(package + limit + marker)
            if self.chance(0.25):
                limits.append(self.index_line())
            files["limits.txt"] = limits
            lines = files[ROOT]
            lines.insert(rng.randint(0, len(lines)), "-c limits.txt")
        return self.done(files)

    def done(self, files: dict[str, list[str]]) -> Case:
        texts = {name: "\n".join(lines) + "\n" for name, lines in files.items()}
        return Case(texts, self.client, self.python, self.platform)


def _opposite(marker: str) -> str:
    swaps = {"==": "!=", "!=": "==", ">=": "<", "<": ">=", " in ": " not in "}
    if " and " in marker or " or " in marker:
        return 'sys_platform == "linux"'
    for old, new in swaps.items():
        if old in marker:
            return marker.replace(old, new)
    return marker


def case_of(seed: int, number: int, client: str) -> Case:
    """Return one case; the same arguments give the same case."""
    return _Maker(random.Random(f"{seed}:{number}:{client}"), client).case()
