"""The build that an installer would pick for each package, all packages together."""

from __future__ import annotations

from torchpin.catalog.model import Build
from torchpin.evidence import PUBLISHED
from torchpin.fleet.model import Target
from torchpin.patterns import regex
from torchpin.select import pip, uv
from torchpin.select.asks import Ask, gather, implied, name_of, watched
from torchpin.select.channels import index_kind
from torchpin.select.environments import marker_holds, tag_admits
from torchpin.select.facts import Facts
from torchpin.select.joint import Accepts, Choice, Demand, choose
from torchpin.select.misses import Unclear, why_none
from torchpin.select.model import (
    Install,
    Miss,
    Placed,
    PlacedIndex,
    SelectedSet,
    Selection,
)
from torchpin.select.pools import (
    Candidate,
    Pool,
    fitting,
    index_text,
    matching,
    requires_of,
    version_of,
    without_yanked,
)
from torchpin.select.wheels import wheel_name

_REQUIRES_PYTHON = (
    "https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python"
)
_DIGEST = regex(r"#(?:.*&)?sha256=([0-9a-fA-F]+)")
_TRITON = ("triton", "pytorch-triton")
"""Packages that torch pins in its own METADATA."""


class _Options:
    """What one package can be on the target: candidates, a miss, or a reason not to know."""

    __slots__ = ("candidates", "miss", "note", "unclear")

    def __init__(
        self,
        candidates: list[Candidate] | None = None,
        *,
        miss: Miss | None = None,
        unclear: str = "",
        note: str = "",
    ) -> None:
        self.candidates = candidates or []
        self.miss = miss
        self.unclear = unclear
        self.note = note


def select(install: Install, target: Target, catalog: Facts) -> SelectedSet:
    """Return what the client of ``install`` would pick on ``target`` for every watched package.

    Packages that the install declares come in the order of declaration, torch last if only
    another package needs it. A lock beats its manifest.
    """
    if install.lock is not None:
        from torchpin.select.locked import select_locked

        return select_locked(install, target, catalog, private=dict(install.private))
    if install.root.kind == "pyproject" and install.client == "uv":
        from torchpin.select.uv_project import select_uv_project

        return select_uv_project(install, target, catalog)
    if install.root.kind == "script" and install.client == "uv":
        from torchpin.select.script import select_script

        return select_script(install, target, catalog)
    if install.root.kind == "pyproject" and install.client == "poetry":
        from torchpin.select.poetry_project import select_poetry_project

        return select_poetry_project(install, target, catalog)
    if install.root.kind == "pyproject" and install.client == "pdm":
        from torchpin.select.pdm_project import select_pdm_project

        return select_pdm_project(install, target, catalog)
    asks = gather(install, target, catalog)
    outside = _outside(install, target)
    options = {
        name: _options(ask, install, target, catalog)
        if outside is None or _of_a_group(ask)
        else _Options(miss=outside)
        for name, ask in asks.items()
        if not ask.skipped
    }
    demands = _demands(install, target, catalog)
    torch = asks.get("torch")
    if torch is None or torch.skipped:
        by = _needs_torch(options, demands)
        if by:
            torch = implied("torch", by, install, target)
            asks = {**{k: v for k, v in asks.items() if k != "torch"}, "torch": torch}
            options["torch"] = _options(torch, install, target, catalog)
            if options["torch"].miss is not None:
                _without_torch(asks, options, demands)
    lists = {name: found.candidates for name, found in options.items() if found.candidates}
    accepts = Accepts(catalog)
    choice = choose(lists, asks, accepts, demands, install.client)
    if not demands and "torch" in asks and asks["torch"].implied_by:
        companions = [c for name, c in choice.chosen.items() if name != "torch"]
        if choice.conflict is None and not any(c.requires for c in companions):
            del asks["torch"]
    selections = tuple(
        _selection(ask, options.get(name), choice, accepts, install, target)
        for name, ask in asks.items()
    )
    return SelectedSet(install, target, selections, choice.conflict)


def _outside(install: Install, target: Target) -> Miss | None:
    """Return that pip refuses a project on a Python which its ``requires-python`` leaves out."""
    root, project = install.root, install.root.project
    if root.kind != "pyproject" or install.client != "pip" or project is None:
        return None
    if not project.requires_python or target.python is None:
        return None
    from torchpin.select.locked import admits

    if admits(project.requires_python, target.python):
        return None
    text = f"the project requires Python {project.requires_python}, and {target.text} is outside"
    return Miss("python", text, PUBLISHED, _REQUIRES_PYTHON)


def _of_a_group(ask: Ask) -> bool:
    """Return whether a group asks: it may be installed without the project (``--group``)."""
    return ask.placed is not None and ask.placed.declaration.scope.startswith("group:")


def candidates(
    install: Install, package: str, target: Target, catalog: Facts
) -> tuple[tuple[Build, PlacedIndex], ...]:
    """Return the builds that the declarations of ``package`` admit on ``target``, best first.

    Each with the index that offers it. Other packages do not matter here. Empty if nothing
    fits, if the package is not declared there, or if it cannot be known.
    """
    ask = gather(install, target, catalog).get(package)
    if ask is None or ask.skipped:
        return ()
    found = _options(ask, install, target, catalog).candidates
    return tuple((candidate.build, candidate.place) for candidate in found)


def _needs_torch(options: dict[str, _Options], demands: list[Demand]) -> str:
    """Return the package that brings torch in although nothing declares it."""
    for name, found in options.items():
        if found.candidates and found.candidates[0].requires:
            return name
    return demands[0].text.partition("==")[0] if demands else ""


def _without_torch(
    asks: dict[str, Ask], options: dict[str, _Options], demands: list[Demand]
) -> None:
    """Do without torch, which nothing declares and no index can give, if the companions can.

    The resolvers go back to releases that do not require it (torchaudio 2.11.0).
    """
    free = {
        name: [c for c in found.candidates if not c.requires]
        for name, found in options.items()
        if found.candidates
    }
    if demands or not all(free.values()):
        return
    for name, kept in free.items():
        options[name].candidates = kept
    del asks["torch"], options["torch"]


def _demands(install: Install, target: Target, facts: Facts) -> list[Demand]:
    """Return what pinned packages outside the family ask of torch."""
    demands: list[Demand] = []
    for placed in install.requirements:
        declaration = placed.declaration
        name = declaration.name
        if not name or not declaration.specifier.startswith("==") or watched(name, facts):
            continue
        version = declaration.specifier.lstrip("=").strip()
        if "*" in version or "," in version or not marker_holds(declaration.marker, target):
            continue
        specifier = facts.pins(name, version)
        if specifier:
            demands.append(Demand(f"{name}=={version}", specifier))
    return demands


# -- one package


def _pool(ask: Ask, install: Install, facts: Facts) -> Pool:
    if install.client == "uv":
        return uv.pool_of(ask, install, facts)
    return pip.pool_of(ask, install, facts)


def _options(ask: Ask, install: Install, target: Target, facts: Facts) -> _Options:
    if ask.unclear:
        return _Options(unclear=ask.unclear)
    if ask.url is not None:
        return _from_url(ask, ask.url, target, facts)
    if _sources_only(ask.package, install):
        return _Options(unclear=f"--no-binary asks for a source distribution of {ask.package}")
    pool = _pool(ask, install, facts)
    found = matching(ask, pool.candidates, pre=install.pre)
    fits = without_yanked(ask, fitting(found, target))
    if ask.invalid or (not fits and not pool.nightly):
        return _missing(ask, pool, install, target, facts)
    labelled = ask.pin is not None and bool(ask.pin[1])
    if pool.hidden and not (labelled and fits and install.client == "pip"):
        return _Options(unclear=pool.hidden)
    if pool.nightly and (install.pre or ask.specifier.prereleases or not fits):
        missing = _missing(ask, pool, install, target, facts)
        if missing.miss is not None and missing.miss.kind == "nightly":
            return missing
        return _Options(unclear=f"{pool.nightly} holds development releases")
    if ask.hashes and install.client == "pip":
        return _hashed(ask, fits, target, facts)
    return _Options(fits)


def _sources_only(package: str, install: Install) -> bool:
    """Return whether an option of the files forbids wheels of ``package``."""
    return any(
        option.name == "--no-binary" and {":all:", package} & set((option.value or "").split(","))
        for document in install.documents
        for option in document.options
    )


def _missing(ask: Ask, pool: Pool, install: Install, target: Target, facts: Facts) -> _Options:
    reason = why_none(ask, pool, install, target, facts)
    return _Options(unclear=str(reason)) if isinstance(reason, Unclear) else _Options(miss=reason)


def _hashed(ask: Ask, fits: list[Candidate], target: Target, facts: Facts) -> _Options:
    """Keep what the hashes of the file admit; pip prefers builds with an allowed hash."""
    listed: list[Candidate] = []
    open_: list[Candidate] = []
    for candidate in fits:
        build = candidate.build
        known = facts.hashes(build.package, build.full_version, build.platform)
        digests = {
            digest.lower() for file, digest in known if _same_wheel(file, build.label, target)
        }
        if digests & ask.hashes:
            listed.append(candidate)
        elif not digests:
            open_.append(candidate)
    if listed:
        return _Options(listed, note="its hash is one of those in the file")
    best = [c for c in open_ if c.version.public == (open_[0].version.public)] if open_ else []
    if len({c.build.full_version for c in best}) > 1:
        return _Options(unclear="the hashes in the file decide between several builds")
    if best:
        alone = len({c.build.full_version for c in fits}) == 1
        guessed = open_ if alone else [c._replace(inferred=True) for c in open_]
        return _Options(guessed, note="its hash is not known")
    return _Options(unclear=f"no known wheel for {ask.text} has one of the hashes in the file")


def _same_wheel(file: str, label: str, target: Target) -> bool:
    """Return whether a wheel file has this label and can be for the Python of the target."""
    wheel = wheel_name(file)
    return (
        wheel is not None
        and wheel.label == label
        and (target.python is None or any(tag_admits(t, target.python) for t in wheel.pythons))
    )


def _from_url(ask: Ask, url: str, target: Target, facts: Facts) -> _Options:
    """A direct URL: its file name and its folder say which build it is."""
    wheel = wheel_name(url)
    if wheel is None or wheel.project != ask.package or "://" not in url:
        return _Options(unclear="it comes from a URL that says nothing about its build")
    folder = url.split("#", 1)[0].split("?", 1)[0].rpartition("/")[0]
    kind = index_kind(folder)
    if kind.kind == "channel" and kind.project is None:
        home, channel = "channel", kind.channel
    elif kind.kind == "root" and wheel.label:
        home, channel = "channel", wheel.label
    elif "/packages/" in folder and not wheel.label:
        home, channel = "pypi", None
    else:
        return _Options(unclear="the wheel of its URL is not one of PyTorch's")
    index = PlacedIndex(None, None, "url", url, kind)
    if target.group.platform not in wheel.platforms:
        text = f"the wheel of the URL is for {' and '.join(wheel.platforms) or 'another platform'}"
        return _Options(miss=Miss("platform", text, PUBLISHED, "PEP 427: the wheel's file name"))
    builds = [
        build
        for build in facts.find(
            ask.package,
            version=wheel.version,
            channel=channel,
            home=home,
            platform=target.group.platform,
        )
        if build.label == wheel.label
    ]
    if not builds:
        return _Options(unclear="the catalog does not know the wheel of its URL")
    if not ask.specifier.contains(version_of(builds[0].full_version), prereleases=True):
        text = f"the wheel of the URL is {builds[0].full_version}, which {ask.text} excludes"
        return _Options(miss=Miss("version", text, PUBLISHED, "PEP 427: the wheel's file name"))
    if _other_digest(url, builds[0], facts):
        return _Options(unclear="the hash in its URL is none that is known of the wheel")
    build = builds[0]._replace(pythons=wheel.pythons, pythons_inferred=())
    fits = fitting(
        [
            Candidate(
                build,
                index,
                version_of(build.full_version),
                0,
                False,
                requires_of(build, facts),
            )
        ],
        target,
    )
    if not fits:
        text = f"the wheel of the URL is for {', '.join(wheel.pythons)}, not for {target.text}"
        return _Options(miss=Miss("python", text, PUBLISHED, "PEP 427: the wheel's file name"))
    return _Options(fits, note="the URL names it")


def _other_digest(url: str, build: Build, facts: Facts) -> bool:
    """Return whether a URL names a digest, and the wheel is known to have another one."""
    given = _DIGEST.search(url)
    if given is None:
        return False
    known = {
        digest.lower()
        for _, digest in facts.hashes(build.package, build.full_version, build.platform)
    }
    return bool(known) and given[1].lower() not in known


# -- the answer


def _selection(
    ask: Ask,
    options: _Options | None,
    choice: Choice,
    accepts: Accepts,
    install: Install,
    target: Target,
) -> Selection:
    placed: Placed | None = ask.placed
    if options is None or ask.skipped:
        first = next((p for p in install.requirements if name_of(p) == ask.package), None)
        text = f"no declaration of {ask.package} applies to {target.text}"
        return Selection(
            ask.package, first, None, target, "skipped", None, None, None, text, exact=ask.exact
        )
    unclear = options.unclear or _left_to_torch(ask, options, choice)
    if unclear:
        return Selection(
            ask.package,
            placed,
            ask.implied_by,
            target,
            "unknown",
            None,
            None,
            None,
            unclear,
            exact=ask.exact,
        )
    if options.miss is not None:
        miss = options.miss
        return Selection(
            ask.package,
            placed,
            ask.implied_by,
            target,
            "none",
            None,
            None,
            miss,
            miss.message,
            exact=ask.exact,
        )
    chosen, torch = choice.chosen[ask.package], choice.chosen.get("torch")
    return Selection(
        ask.package,
        placed,
        ask.implied_by,
        target,
        "selected",
        chosen.build,
        chosen.place,
        None,
        _because(ask, options, chosen, choice, install),
        exact=ask.exact,
        inferred=chosen.inferred or (torch is not None and accepts.guesses(chosen, torch)),
    )


def _left_to_torch(ask: Ask, options: _Options, choice: Choice) -> str:
    """Return why the choice cannot be known because torch, or a source distribution, decides."""
    if "torch" not in choice.chosen or not options.candidates:
        return ""
    torch = choice.chosen["torch"].build.full_version
    if ask.package in choice.unclear:
        return (
            f"no wheel of {ask.package} that is known goes with torch {torch}, "
            "an older one or a source distribution may"
        )
    if ask.package.startswith(_TRITON) and not ask.exact:
        return f"torch {torch} itself requires one version of {ask.package}"
    return ""


def _because(
    ask: Ask, options: _Options, chosen: Candidate, choice: Choice, install: Install
) -> str:
    build = chosen.build
    if choice.conflict is not None:
        return f"{install.client} stops: {choice.conflict}"
    if options.note and ask.url is not None:
        return options.note
    place = index_text(chosen.place)
    if chosen is not options.candidates[0] and "torch" in choice.chosen:
        torch = choice.chosen["torch"].build.full_version
        other = (
            f"the newest that goes with torch {torch}"
            if ask.package != "torch"
            else "the newest that its companions accept"
        )
        text = f"{build.full_version} from {place} is {other}"
    elif install.client == "uv":
        text = (
            f"{place} is the first index that knows {ask.package}; {build.full_version} is its best"
        )
    else:
        text = f"{build.full_version} from {place} is the highest version of all indexes"
    return f"{text} ({options.note})" if options.note else text
