"""Why an installer finds no build: the first reason that holds, with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from torchpin.catalog.model import Build
from torchpin.evidence import BOUNDED, INFERRED, ORDER, PROOF, PUBLISHED, weakest
from torchpin.fleet.model import Python, Target
from torchpin.select.asks import Ask
from torchpin.select.channels import is_channel
from torchpin.select.environments import wheel_fits
from torchpin.select.facts import Facts
from torchpin.select.model import Install, Miss
from torchpin.select.pools import Candidate, Pool, matching, version_of

if TYPE_CHECKING:
    from datetime import date

NIGHTLY_DAYS = 60
"""How long PyTorch lists a nightly build."""
_NIGHTLY_SOURCE = "pytorch/test-infra: s3_management/manage.py"
_MACOS_SOURCE = "https://pytorch.org/get-started/previous-versions/"
_LABEL_SOURCE = "https://packaging.python.org/en/latest/specifications/version-specifiers/"


class Unclear(str):
    """Why it cannot be known whether a build exists."""

    __slots__ = ()


def why_none(
    ask: Ask, pool: Pool, install: Install, target: Target, facts: Facts
) -> Miss | Unclear:
    """Return why no candidate of ``pool`` serves ``ask`` on ``target``, or why that is unclear."""
    if ask.invalid:
        text = f"{ask.invalid} is not a valid requirement"
        return Miss("specifier", text, PUBLISHED, _LABEL_SOURCE)
    if pool.hidden:
        return Unclear(pool.hidden)
    nightly = _nightly(ask, facts)
    if nightly is not None:
        return nightly
    if ask.pin is not None and ask.pin[1] and not is_channel(ask.pin[1]):
        return Unclear(f"+{ask.pin[1]} is not a label of PyTorch's channels")
    never = _never_published(ask, pool, facts)
    if never is not None:
        return never
    if ask.pin is not None and ask.pin[1] and target.group.platform.startswith("macos"):
        text = f"{ask.package} {ask.pin[0]} for macOS carries no label: +{ask.pin[1]} is not for it"
        return Miss("platform", text, PUBLISHED, _MACOS_SOURCE)
    if not pool.channels and not pool.pypi:
        if pool.nightly:
            return Unclear(f"{pool.nightly} holds development releases")
        return Miss("no-index", f"no index is left to take {ask.package} from", PUBLISHED, "")
    found = matching(ask, pool.candidates, pre=install.pre)
    if not found:
        return _not_served(ask, pool, facts)
    built = [c.build.version for c in found if facts.has_sdist(ask.package, c.build.version)]
    if pool.pypi and built:
        where = f"{ask.package} {built[-1]} has no wheel for this target"
        return Unclear(f"{where}: it would be built from its source archive")
    return _does_not_fit(ask, found, target, facts)


def _nightly(ask: Ask, facts: Facts) -> Miss | Unclear | None:
    if ask.pin is None:
        return None
    version = version_of(ask.pin[0])
    day = _day(version.dev) if version.is_devrelease else None
    if day is None:
        return Unclear(f"{ask.text} is a development release") if version.is_devrelease else None
    from datetime import date

    age = (date.fromisoformat(facts.date[:10]) - day).days
    if age <= NIGHTLY_DAYS:
        return Unclear(f"{ask.text} is a nightly build of the last {NIGHTLY_DAYS} days")
    text = f"{ask.text} is a nightly build of {day}: they are listed for about {NIGHTLY_DAYS} days"
    return Miss("nightly", text, PUBLISHED, _NIGHTLY_SOURCE)


def _day(dev: int | None) -> date | None:
    digits = str(dev or "")
    if len(digits) != 8:
        return None
    from datetime import date

    try:
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return None


def _never_published(ask: Ask, pool: Pool, facts: Facts) -> Miss | Unclear | None:
    package = ask.package
    if ask.pin is not None:
        public = ask.pin[0]
        pinned = public + (f"+{ask.pin[1]}" if ask.pin[1] else "")
        if not ask.specifier.contains(pinned, prereleases=True):
            text = f"{ask.text} excludes every version"
            return Miss("version", text, PUBLISHED, _LABEL_SOURCE)
        existence = facts.existence(package, public)
        told, verb = "was never published", "were"
        if existence.exists is None and pool.pypi and not (pool.channels or pool.broad):
            existence = facts.existence(package, public, home="pypi")
            told, verb = "is not on PyPI", "are"
        if existence.exists is None:
            return Unclear(f"the catalog of {facts.date} does not know {package} {public}")
        if existence.exists:
            return None
        last = _neighbour(package, public, facts, verb)
        text = f"{package} {public} {told}{last}"
        return Miss("version", text, existence.evidence, existence.source)
    versions = facts.versions(package)
    if not versions:
        return Unclear(f"the catalog holds nothing about {package}")
    if any(ask.specifier.contains(version, prereleases=True) for version in versions):
        return None
    if _labelled_ok(ask, facts):
        return None
    newest = Version(versions[-1])
    if any(ask.specifier.contains(version) for version in _later(newest, ask)):
        return Unclear(f"{ask.text} asks for more than {newest}, the newest that is known")
    text = f"no version of {package} was ever published that satisfies {ask.text}"
    return Miss("version", text, PUBLISHED, f"catalog {facts.date}")


def _labelled_ok(ask: Ask, facts: Facts) -> bool:
    """Return whether a labelled build satisfies what no public version does (``!=``, ``===``)."""
    return any(
        ask.specifier.contains(version_of(build.full_version), prereleases=True)
        for build in facts.builds(ask.package)
        if build.label
    )


def _later(newest: Version, ask: Ask) -> list[str]:
    """Return versions above the newest one that the specifier might mean."""
    major, minor, micro = newest.major, newest.minor, newest.micro
    texts = [f"{major}.{minor}.{micro + 1}", f"{major}.{minor + 1}.0", f"{major + 1}.0.0"]
    texts += [f"{major + 97}.0"]
    for one in ask.specifier:
        base = one.version.removesuffix(".*")
        try:
            version = Version(base)
        except ValueError:
            continue
        if version > newest:
            texts += [
                version.public,
                f"{version.base_version}.1",
                f"{version.major}.{version.minor}.99",
            ]
    return texts


def _neighbour(package: str, public: str, facts: Facts, verb: str) -> str:
    wanted = Version(public)
    versions = facts.versions(package)
    below = [text for text in versions if Version(text) < wanted]
    above = [text for text in versions if Version(text) > wanted]
    if not above and below:
        return f" (the last is {below[-1]})"
    near = below[-1:] + above[:1]
    return f" ({' and '.join(near)} {verb})" if len(near) == 2 else ""


def _not_served(ask: Ask, pool: Pool, facts: Facts) -> Miss | Unclear:
    """The version exists somewhere, and no index of the install serves it."""
    package = ask.package
    label = ask.pin[1] if ask.pin is not None else ""
    if pool.broad:
        return Unclear(f"{pool.broad} lists many channels; whether it has {ask.text} is not known")
    if ask.pin is not None and label and label not in pool.channels:
        return _label_elsewhere(package, ask.pin[0], label, pool, facts)
    versions = [ask.pin[0]] if ask.pin is not None else _admitted(ask, facts)
    evidence, source = BOUNDED, ""
    channels = (label,) if label else pool.channels
    for channel in channels:
        for version in versions:
            existence = facts.existence(package, version, channel=channel, home="channel")
            if existence.exists is None:
                return Unclear(f"it is not known whether {channel} holds {package} {version}")
            if existence.exists and ask.pin is not None:
                text = f"{channel} holds {package} {version} under another label, not {ask.text}"
                return Miss("label-not-on-index", text, existence.evidence, existence.source)
            if existence.exists:
                return Unclear(f"{channel} holds {package} {version}, but not for {ask.text}")
            evidence = weakest(evidence, existence.evidence)
            source = source or existence.source
    if pool.pypi and not label:
        for version in versions:
            existence = facts.existence(package, version, home="pypi")
            if existence.exists is not False:
                return Unclear(f"it is not known whether PyPI holds {ask.text}")
            evidence = weakest(evidence, existence.evidence)
            source = source or existence.source
    if not channels:
        return Miss("version", f"PyPI holds no {ask.text}", evidence, source)
    channel = channels[0]
    span = facts.channel_span(package, channel)
    if span is None:
        text = f"{channel} holds no {package}"
    else:
        text = f"{channel} holds {package} {span.first} to {span.last}, not {ask.text}"
    return Miss(
        "not-on-channel",
        text,
        evidence,
        source,
        channel,
        span.first if span else None,
        span.last if span else None,
    )


def _label_elsewhere(package: str, version: str, label: str, pool: Pool, facts: Facts) -> Miss:
    """No index of the install is the channel of a label: does the build lie there at all?"""
    where = " or ".join([*(["PyPI"] if pool.pypi else []), *pool.channels])
    span = facts.channel_span(package, label)
    first, last = (span.first, span.last) if span else (None, None)
    there = facts.existence(package, version, channel=label, home="channel")
    if there.exists is False and there.evidence in PROOF:
        text = f"{label} holds no {package}"
        if span is not None:
            text = f"{label} holds {package} {first} to {last}, not {version}"
        return Miss("not-on-channel", text, there.evidence, there.source, label, first, last)
    text = f"no +{label} build of {package} lies on {where}"
    if there.exists:
        text = f"{package} {version}+{label} lies on {label}, not on {where}"
    return Miss("label-not-on-index", text, PUBLISHED, _LABEL_SOURCE, label, first, last)


def _admitted(ask: Ask, facts: Facts) -> list[str]:
    """Return the published versions that ``ask`` admits, newest first."""
    found = [v for v in facts.versions(ask.package) if ask.specifier.contains(v, prereleases=True)]
    return found[::-1]


def _does_not_fit(ask: Ask, found: list[Candidate], target: Target, facts: Facts) -> Miss | Unclear:
    """Candidates match, and none can be installed on the target."""
    group = target.group
    found = sorted(found, key=lambda c: c.version, reverse=True)
    here = [c for c in found if c.build.platform == group.platform]
    if not here:
        return _no_platform(ask, found, target, facts)
    kinds = [(*wheel_fits(c.build, target), c) for c in here]
    fits = [c for good, _, _, c in kinds if good]
    if fits:
        best = fits[0].build
        if not all(c.build.yanked for c in fits):
            text = f"{best.package} {best.full_version} can be installed here"
            return Unclear(f"{text}: it is not known why it is not taken")
        text = f"{best.package} {best.full_version} was yanked"
        return Miss("yanked", text, PUBLISHED, best.source)
    for wanted in ("glibc", "platform", "python"):
        # The wheels that fail last come nearest.
        misses = [(inferred, c.build) for _, kind, inferred, c in kinds if kind == wanted]
        if misses:
            inferred = any(guess for guess, _ in misses)
            build = misses[0][1]
            if inferred and wanted == "python" and _long_before(build, target, facts):
                inferred = False
            evidence = INFERRED if inferred else _proved(build)
            return Miss(wanted, _fit_text(wanted, ask, build, target), evidence, build.source)
    return Unclear("no reason is known")


def _long_before(build: Build, target: Target, facts: Facts) -> bool:
    """Return whether the first wheels for the target's Python came two minor releases later.

    The known tags of a channel are a lower bound, yet not for a Python that no wheel of the
    package anywhere was made for until long after.
    """
    python = target.python
    if python is None:
        return False
    firsts = [
        version_of(b.version)
        for b in facts.builds(build.package)
        if any(_serves(tag, python) for tag in (*b.pythons, *b.pythons_inferred))
    ]
    if not firsts:
        return True
    first, own = min(firsts), version_of(build.version)
    return (first.major, first.minor) > (own.major, own.minor + 1)


def _serves(tag: str, python: Python) -> bool:
    """Return whether a wheel of a tag is for a Python: its own tag, or an older stable ABI."""
    if tag == python.tag:
        return True
    stem, dash, abi = tag.partition("-")
    stable = dash and abi == "abi3" and stem[:3] == "cp3" and not python.free_threaded
    return bool(stable) and python.major == 3 and python.minor >= int(stem[3:])


def _proved(build: Build) -> str:
    return build.evidence if build.evidence in ORDER else INFERRED


def _fit_text(kind: str, ask: Ask, build: Build, target: Target) -> str:
    group, name = target.group, f"{build.package} {build.full_version}"
    many = "" if ask.pin is not None else f" (the newest for {ask.text})"
    if kind == "glibc":
        if group.musl:
            return f"{name}{many} has no wheel for musl"
        return f"{name}{many} needs glibc {build.glibc}, the group has {group.glibc}"
    if kind == "platform":
        return f"{name}{many} needs macOS {build.macos}, the group has {group.macos}"
    tags = [*build.pythons, *build.pythons_inferred]
    known = f": only for {_tags_text(tags)}" if tags else ""
    return f"{name}{many} has no wheel for Python {target.python}{known}"


def _tags_text(tags: list[str]) -> str:
    """Return ``3.11–3.15`` for CPython tags, else the tags as they are."""
    minors = sorted(int(t[3:]) for t in tags if t.startswith("cp3") and t[3:].isdigit())
    if not minors:
        return ", ".join(tags)
    first, last = minors[0], minors[-1]
    return f"3.{first}" if first == last else f"3.{first}–3.{last}"


def _no_platform(ask: Ask, found: list[Candidate], target: Target, facts: Facts) -> Miss | Unclear:
    platform = target.group.platform
    evidence, source = "", ""
    seen: set[tuple[str, str, str]] = set()
    for candidate in found:
        build = candidate.build
        key = (build.version, build.home, build.channel if build.home == "channel" else "")
        if key in seen:
            continue
        seen.add(key)
        existence = facts.existence(
            build.package,
            build.version,
            channel=build.channel if build.home == "channel" else None,
            home=build.home,
            platform=platform,
        )
        if existence.exists and ask.pin is not None:
            name = f"{build.package} {build.version}"
            text = f"{build.channel} holds {name} for {platform} under another label"
            return Miss("label-not-on-index", text, existence.evidence, existence.source)
        if existence.exists is not False:
            if ask.pin is None and evidence:
                continue
            where = "PyPI" if build.home == "pypi" else build.channel
            name = f"{build.package} {build.version}"
            return Unclear(f"it is not known whether {where} has {name} for {platform}")
        evidence = weakest(evidence, existence.evidence) if evidence else existence.evidence
        source = source or existence.source
    best = found[0].build
    where = "PyPI" if best.home == "pypi" else best.channel
    text = f"{where} has no wheel of {best.package} {best.full_version} for {platform}"
    return Miss("platform", text, evidence, source, best.channel if best.home != "pypi" else None)


def provable(miss: Miss) -> bool:
    """Return whether an error may rest on ``miss``."""
    return miss.evidence in PROOF
