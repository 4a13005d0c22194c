"""Every answer of the judge that the page may need, worked out once.

The judge's verdict is the worst of answers that do not depend on each other: of the wheel's
Python, of the C library or the macOS version, and of each GPU with its driver. Each is asked of
the judge alone here. What a driver or a glibc changes, changes at a few versions: the page compares
with those and holds no rule of its own. The sentences keep marks for what the page's user chooses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.catalog.drivers import Drivers, load_drivers
from torchpin.catalog.model import Build
from torchpin.fleet.model import Gpu, NodeGroup, Python, Target
from torchpin.judge import kernels
from torchpin.judge.driver import judge_driver
from torchpin.judge.model import Reason, Verdict
from torchpin.judge.verdict import if_there, judge, judge_companion
from torchpin.judge.words import cuda_of
from torchpin.matrix.judged import existence
from torchpin.named import NamedTuple
from torchpin.resolve.space import PYPI, Space

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog

BUILD, GPU, DRIVER, LIBC = "\ue000", "\ue001", "\ue002", "\ue003"
"""Marks of what stands in a sentence of the judge: the build's title, the GPU, the declared driver,
the declared glibc or macOS. Private characters: no sentence holds them otherwise."""
COMPANION = "\ue005"
"""Mark of the title of a companion."""
_PROBE = "\ue004"
NO_GPU = "none"
_HIGH = "2.999"
LOWEST_DRIVER = "300"
"""Profiles and the page take drivers from this branch on."""


class Context(NamedTuple):
    """What a group declares that the page has no field for."""

    jetpack: str | None = None
    cuda_compat: str | None = None
    wsl: bool = False


class Kind(NamedTuple):
    """GPUs that the judge cannot tell apart."""

    gpu: Gpu
    """Its name is a mark."""
    context: Context


class Answer(NamedTuple):
    """What the judge says of one question."""

    reasons: tuple[Reason, ...]
    """With marks in their sentences."""
    level: int
    """How good it is for a plan: ``resolve.space.LEVELS``."""


class Steps(NamedTuple):
    """An answer that depends on a version."""

    unset: Answer
    """Where none is declared."""
    steps: tuple[tuple[str, Answer], ...] = ()
    """(from this version on, answer), ascending; the first holds below its version, too."""


def kind_of(gpu: Gpu, context: Context) -> Kind:
    """Return the kind of a GPU; names matter to the judge for cuda-compat alone."""
    name = _PROBE
    if context.cuda_compat is not None and not gpu.datacenter:
        consumer = any(word in gpu.name.lower() for word in ("geforce", "titan"))
        name += "GeForce" if consumer else ""
    bare = Gpu("", name, gpu.vendor, gpu.capability, gpu.gfx, gpu.tegra)
    if context.cuda_compat is not None:
        bare = bare._replace(datacenter=gpu.datacenter)
    return Kind(bare, context)


class Facts:
    """Asks the judge and the resolver, and remembers."""

    def __init__(self, catalog: Catalog, drivers: Drivers | None = None) -> None:
        self.catalog = catalog
        self.drivers = drivers or load_drivers()
        self.space = Space(catalog, judge_build=self._judge, judge_pair=judge_companion)
        self._last: tuple[Build, Target, Verdict] | None = None
        self.thresholds = (LOWEST_DRIVER, *self.drivers.thresholds())
        self._changes: dict[tuple[str, bool, Kind], tuple[int, ...]] = {}

    def _judge(self, build: Build, target: Target) -> Verdict:
        """Ask the judge; the space asks again what was just asked."""
        last = self._last
        if last is None or last[0] is not build or last[1] is not target:
            last = self._last = (build, target, judge(build, target, self.drivers))
        return last[2]

    def python(self, build: Build, python: Python) -> Answer:
        """Return whether a build runs on a Python."""
        group = NodeGroup("", (), (python,), build.platform)
        return self._answer(build, Target(group, python), ("python",))

    def libc(self, build: Build) -> Steps:
        """Return what the C library, or the version of macOS, says of a build."""
        floor = build.macos if build.platform.startswith("macos") else build.glibc
        nothing = Answer((), 0)
        if floor is None:
            return Steps(nothing)
        key = "macos" if build.platform.startswith("macos") else "glibc"
        low, high = "1.0", ("99.0" if key == "macos" else _HIGH)
        told = []
        for value in (low, high):
            group = NodeGroup("", (), (), build.platform, **{key: value})  # type: ignore[arg-type]
            answer = self._answer(build, Target(group, None), (key,))
            enough = (f"{value} of the nodes", f"{LIBC} of the nodes")
            told.append(_marked(answer, (f"have {value}", f"have {LIBC}"), enough))
        return Steps(nothing, (("0", told[0]), (floor, told[1])))

    def musl(self, build: Build) -> Answer:
        """Return whether a build runs where there is musl in place of glibc."""
        group = NodeGroup("", (), (), build.platform, musl=True)
        return self._answer(build, Target(group, None), ("platform",))

    def idle(self, build: Build) -> Answer:
        """Return what is said of a build on a machine without a GPU."""
        group = NodeGroup("", (), (), build.platform)
        return self._answer(build, Target(group, None), ("cuda-on-cpu",))

    def gpu(self, build: Build, kind: Kind) -> Steps:
        """Return whether a build runs on a GPU, and with which driver."""
        unset = self._gpu(build, kind, None)
        cuda = cuda_of(build)
        if kind.gpu.vendor != "nvidia" or cuda is None:
            return Steps(unset)
        steps: list[tuple[str, Answer]] = []
        changes = set(self._driver_changes(cuda, build.platform, kind))
        for twin in self.space.builds("torch", build.version, build.platform).get(PYPI, ()):
            # Where a channel's libraries are not known, the space looks at PyPI's build.
            if twin.cuda is not None:
                changes.update(self._driver_changes(twin.cuda, build.platform, kind))
        for at in sorted(changes):
            version = self.thresholds[at]
            answer = self._gpu(build, kind, version)
            if not steps or steps[-1][1] != answer:
                steps.append((version, answer))
        if len(steps) == 1 and steps[0][1] == unset:
            return Steps(unset)
        return Steps(unset, tuple(steps))

    def _gpu(self, build: Build, kind: Kind, driver: str | None) -> Answer:
        jetpack, compat, wsl = kind.context
        group = NodeGroup(
            "",
            (kind.gpu,),
            (),
            build.platform,
            driver=_exact(driver),
            cuda_compat=compat,
            wsl=wsl and build.platform == "linux-x86_64",
            jetpack=jetpack,
        )
        answer = self._answer(build, Target(group, None), None)
        return _marked(answer, *_names(kind), (f"river {_exact(driver)}", f"river {DRIVER}"))

    def _driver_changes(self, cuda: str, platform: str, kind: Kind) -> tuple[int, ...]:
        """Return at which thresholds the judge of drivers says something else."""
        windows = platform.startswith("windows")
        key = (cuda, windows, kind)
        found = self._changes.get(key)
        if found is None:
            jetpack, compat, wsl = kind.context
            changes = [0]
            last: object = None
            for at, version in enumerate(self.thresholds):
                driver = _exact(version)
                assert driver is not None
                group = NodeGroup(
                    "", (kind.gpu,), (), platform, driver, None, False, compat, None, wsl, jetpack
                )
                said = [
                    (one.status, one.text.replace(driver, DRIVER), one.evidence)
                    for how in (kernels.SASS, kernels.PTX)
                    for one in judge_driver("", cuda, kind.gpu, how, group, self.drivers)
                ]
                if at and said != last:
                    changes.append(at)
                last = said
            found = self._changes[key] = tuple(changes)
        return found

    def _answer(self, build: Build, target: Target, questions: tuple[str, ...] | None) -> Answer:
        """Return the judge's reasons on a target, all or those of some questions."""
        reasons = self._judge(if_there(build), target).reasons
        told = tuple(r for r in reasons if questions is None or r.question in questions)
        level = 3
        if self.offered(build):
            level = self.space.level(build, self.space.intern(target))
        return _marked(Answer(told, level), (build.title, BUILD))

    def offered(self, build: Build) -> bool:
        """Return whether a plan may hold a build: its existence is proved."""
        return not existence(build)

    def leaves_out(self, build: Build, kinds: Iterable[Kind]) -> tuple[str, ...]:
        """Return what the judge does not look at on a GPU that the build is made for, with driver
        and glibc declared."""
        for kind in kinds:
            group = NodeGroup(
                "", (kind.gpu,), (), build.platform, driver=LOWEST_DRIVER, glibc=_HIGH
            )
            verdict = judge(build, Target(group, None), self.drivers)
            if not any(reason.question == "vendor" for reason in verdict.reasons):
                return verdict.leaves_out
        return ()


def _exact(version: str | None) -> str | None:
    """Return a driver right at a threshold: numbers that no other text holds follow it."""
    if version is None:
        return None
    return ".".join([*version.split("."), "0", "0"][:3]) + ".7777"


def _names(kind: Kind) -> tuple[tuple[str, str], ...]:
    name, arch = kind.gpu.name, kind.gpu.arch
    return ((f"{name} ({arch})", GPU), (name, GPU)) if arch else ((name, GPU),)


def _marked(answer: Answer, *pairs: tuple[str, str]) -> Answer:
    """Return an answer with words of its sentences replaced by marks."""
    reasons = []
    for reason in answer.reasons:
        text = reason.text
        for old, new in pairs:
            text = text.replace(old, new)
        reasons.append(reason._replace(text=text, gpu=None))
    return answer._replace(reasons=tuple(reasons))
