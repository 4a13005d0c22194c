"""Whether a version was published, and how that is known.

A row of the facts may deny a build itself (``measured`` or ``published``: an index page that was
read, an official notice). Else absence is *bounded* by the first and the last release of the
package on the channel, both proved (measured, lockfile or published), where the end is proved too:

* **closed** (nothing after the last release), if one of these holds:

  1. a published or measured row denies a later release on the whole channel (cu121, cu126, cu128);
  2. a reading of the channel page names this release as the last (cu118, cu124);
  3. at least two later release *lines* (2.8, 2.9 …) were published without the CUDA channel: one
     line may be late, as cu129 was, so a release matrix alone does not bind;
  4. for torch before 2.1, PyTorch's page of previous versions names the CUDA channel for no
     release of at least two later lines (cu101 to cu116).

  Never, if a later release is known or thought to be there, if one is told to be unknown, or if the
  channel once skipped a release and came back (cu129 holds 2.11.0, 2.12.1 and 2.13.0).

* **begun** (nothing before the first release), if the release just before it is denied on the whole
  channel, or, for torch before 2.1, rule 4 holds backwards and the first release opens a line.

So cpu, xpu, cu129, cu130, cu132 and all ROCm channels are open at the end. The spans are derived
when the data are built, from these rules alone.

PyPI's file list is complete as of the date of the catalog: a version or platform that it lacks, and
that is not newer than its newest, is not there (``measured``). A version of torch, torchvision or
torchaudio that PyPI lacks between its oldest and its newest was published nowhere: every release
seen on a channel is on PyPI too, but for the few in ``elsewhere`` (the long-term release 1.8.2).
Others take releases off PyPI that a channel keeps (xformers 0.0.22.post4:
https://github.com/ChiSu001/SAT-HMR/issues/3 lists cu121): of them nothing follows. Pre-releases are
not followed.

A channel page that ``catalog refresh`` read whole denies what it does not list, of releases
up to the newest that was known then (``published``). What a page listed once and lists no more is
*withdrawn*: a row tells since when.

macOS wheels lie on ``cpu`` and PyPI alone (https://pytorch.org/get-started/locally/).

Everything else is unknown (``exists`` None), or ``inferred`` where a row only says so by a pattern.
"""

from __future__ import annotations

from packaging.version import Version

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY, Existence
from torchpin.catalog.package import Package
from torchpin.evidence import BOUNDED, INFERRED, MEASURED, ORDER, PROOF, PUBLISHED

NO_MACOS = "https://pytorch.org/get-started/locally/ (macOS: one build, no CUDA, ROCm or XPU)"
CHANNELS = "https://download.pytorch.org/whl"
LTS = "https://pytorch.org/get-started/previous-versions/ (LTS 1.8.2)"


def existence(
    package: Package,
    date: str,
    version: str,
    channel: str | None,
    home: str | None,
    platform: str | None,
) -> Existence:
    """Return whether a version was published; the arguments are those of ``Catalog.existence``."""
    try:
        parsed = Version(version)
    except ValueError:  # InvalidVersion, or more digits than Python reads
        return _unknown(f"{version} is no version")
    if channel == "pypi":
        channel, home = None, "pypi"
    if parsed.local is not None:
        if kind_of_label(parsed.local) is None:
            return _unknown(f"the label +{parsed.local} is not PyTorch's own")
        if home == "pypi":
            return Existence(False, MEASURED, f"{file_list(date)}: no file carries a label")
        if channel is not None and channel != parsed.local:
            return _unknown(f"a {parsed.local} build is not looked for on {channel}")
        channel, version = parsed.local, parsed.public
        parsed = Version(version)
    if home == "pypi":
        return _on_pypi(package, date, parsed, channel, platform)
    if channel is not None:
        return _on_channel(package, date, parsed, channel, platform)
    return _anywhere(package, date, parsed, home, platform)


def file_list(date: str) -> str:
    """Return the name of PyPI's file list as a source."""
    return f"PyPI file list of {date}"


def absence(package: str) -> str:
    """Return what may be said of a version of a package that the catalog does not list."""
    return "was never published" if package in FAMILY else "is not among its releases"


def _unknown(why: str) -> Existence:
    return Existence(None, INFERRED, why)


def _on_pypi(
    package: Package, date: str, parsed: Version, channel: str | None, platform: str | None
) -> Existence:
    read = package.pages.get("pypi")
    date = read.date if read else date
    name = package.name_of(str(parsed))
    if name is not None and name in package.pypi:
        if platform is None and channel is None:
            return Existence(True, MEASURED, file_list(date))
        builds = package.find(name, channel, platform, "pypi")
        if builds:
            return Existence(True, MEASURED, builds[0].source)
        gone = _withdrawn(package, parsed, platform)
        return gone or Existence(False, MEASURED, f"{file_list(date)}: no such file of {name}")
    if not package.pypi:
        return _unknown(f"nothing of {package.name} is known on PyPI")
    if parsed > Version(package.pypi[-1]):
        return _denied_everywhere(package, parsed) or _unknown(f"newer than the catalog of {date}")
    gone = _withdrawn(package, parsed, platform)
    return gone or Existence(False, MEASURED, f"{file_list(date)}: no version {parsed}")


def _withdrawn(package: Package, parsed: Version, platform: str | None) -> Existence | None:
    """Return that PyPI listed a file once, where that is known."""
    for row in package.rows:
        if row[1] == "pypi" and platform in (None, row[2]) and Version(row[0]) == parsed:
            return Existence(False, row[4], package.sources[row[5]])
    return None


def _on_channel(
    package: Package, date: str, parsed: Version, channel: str, platform: str | None
) -> Existence:
    builds = package.find(str(parsed), channel, platform, "channel")
    if builds:
        best = min(builds, key=lambda b: ORDER.index(b.evidence))
        return Existence(True, best.evidence, best.source)
    rows = [
        r
        for r in package.rows
        if r[1] in (channel, "*") and r[2] in (platform, "*") and Version(r[0]) == parsed
    ]
    rows.sort(key=lambda r: ORDER.index(r[4]))
    for row in rows:
        if row[3] is False and row[4] in PROOF:
            return Existence(False, row[4], package.sources[row[5]])
    if platform and platform.startswith("macos") and kind_of_label(channel) not in ("cpu", None):
        return Existence(False, PUBLISHED, NO_MACOS)
    beyond = _beyond(package, parsed, channel)
    if beyond is not None:
        return beyond
    page = package.pages.get(channel)
    if page is not None and page.newest and not parsed.is_prerelease:
        if parsed <= Version(page.newest):
            where = f"{CHANNELS}/{channel}/{package.name}/ of {page.date}"
            return Existence(False, PUBLISHED, f"{where} does not list it")
        return _unknown(f"newer than the page of {page.date}")
    for row in rows:
        return Existence(row[3], row[4], package.sources[row[5]])
    nowhere = _anywhere(package, date, parsed, None, None)
    if nowhere.exists is False and nowhere.evidence in PROOF:
        return nowhere
    return _unknown(f"nothing is known of {package.name} {parsed} on {channel}")


def _beyond(package: Package, parsed: Version, channel: str) -> Existence | None:
    span = package.span(channel)
    if span is None:
        return None
    if span.closed and parsed > Version(span.last):
        text = f"the last {package.name} on {channel} is {span.last} ({span.source})"
    elif span.begun and parsed < Version(span.first):
        start = package.start_source(channel)
        text = f"the first {package.name} on {channel} is {span.first} ({start})"
    else:
        return None
    return Existence(False, BOUNDED, text)


def borrowed_number(
    package: Package, torch: Package, version: str, partners: tuple[str, ...]
) -> Existence | None:
    """Return that a companion has no release with torch's own number, where that is proved.

    ``torchvision==2.5.1``: torch 2.5.1 is out, its torchvision is 0.20.1, and no torchvision up to
    the newest bears the number; a later one would not be for this torch. Bounded by both lists.
    """
    public = version.partition("+")[0]
    if not package.pypi or not partners or torch.name_of(public) not in torch.pypi:
        return None
    newest = package.pypi[-1]
    if Version(public) <= Version(newest):
        return None
    text = f"torch {public} goes with {package.name} {partners[0]}; the newest is {newest}"
    return Existence(False, BOUNDED, text)


def _denied_everywhere(package: Package, parsed: Version) -> Existence | None:
    for row in package.rows:
        if row[1] == "*" and row[3] is False and Version(row[0]) == parsed:
            return Existence(False, row[4], package.sources[row[5]])
    return None


def _anywhere(
    package: Package, date: str, parsed: Version, home: str | None, platform: str | None
) -> Existence:
    name = package.name_of(str(parsed))
    builds = package.find(str(parsed), None, platform, home)
    if builds:
        best = min(builds, key=lambda b: ORDER.index(b.evidence))
        return Existence(True, best.evidence, best.source)
    if name is not None and platform is None and home is None:
        if name in package.elsewhere:
            return Existence(True, PUBLISHED, LTS)
        return Existence(True, MEASURED, file_list(date))
    denied = _denied_everywhere(package, parsed)
    if denied is not None:
        return denied
    if name is not None:
        where = platform or "the channels"
        return _unknown(f"no build of {package.name} {name} seen for {where}")
    if not package.pypi or parsed < Version(package.pypi[0]):
        return _unknown(f"nothing is known of {package.name} {parsed}")
    if parsed > Version(package.pypi[-1]):
        return _unknown(f"newer than the catalog of {date}")
    if parsed.is_prerelease:
        return _unknown(f"{parsed} is a pre-release: not followed")
    if package.name not in FAMILY:
        return _unknown(f"PyPI lists no {package.name} {parsed}; a channel may hold it")
    return Existence(
        False,
        MEASURED,
        f"{file_list(date)} has no {package.name} {parsed}, nor has any channel seen",
    )
