"""What an index page says of one package, in the words of the catalog (pure)."""

from __future__ import annotations

from urllib.parse import urlsplit

from packaging.utils import canonicalize_name, parse_sdist_filename
from packaging.version import Version

from torchpin.catalog.existence import CHANNELS, file_list
from torchpin.catalog.model import FAMILY
from torchpin.catalog.refresh.pages import File, Page
from torchpin.catalog.wheel_names import WheelName, read_name
from torchpin.named import NamedTuple

PYPI = "pypi"
ROOT = "root"


class Wheel(NamedTuple):
    """A wheel on a page."""

    file: File
    name: WheelName


class Listing(NamedTuple):
    """All that a page lists of a package."""

    package: str
    channel: str
    """``pypi``, a channel, or ``root`` for what lies above the channels."""
    date: str
    """As of when, ISO."""
    wheels: tuple[Wheel, ...]
    versions: tuple[str, ...]
    """All versions that the page names, ascending; wheels or not."""
    sdists: tuple[str, ...]
    mirror: bool = False
    """Read from a mirror."""

    @property
    def source(self) -> str:
        """Return what the page is called as a source; mirrors may be private: they have no name."""
        by = " (by a mirror)" if self.mirror else ""
        if self.channel == PYPI:
            return f"{file_list(self.date)}{by}"
        place = "" if self.channel == ROOT else f"/{self.channel}"
        return f"{CHANNELS}{place}/{self.package}/ of {self.date}{by}"

    @property
    def where(self) -> str:
        """Return the short name of the place: ``PyPI``, ``cu134``."""
        return "PyPI" if self.channel == PYPI else self.channel


def listings_of(
    package: str, channel: str, page: Page, date: str, *, mirror: bool = False
) -> tuple[Listing, ...]:
    """Return what a page lists: of a channel's page, what lies above the channels comes apart.

    Wheels of other projects, of platforms that the catalog does not know, and of labels that are
    not the channel's own are left out; so are pre-releases on channels. PyPI takes no labels: those
    on a page that stands for it are of a mirror that serves channels, too.
    """
    here: list[Wheel] = []
    above: list[Wheel] = []
    sdists: set[Version] = set()
    known: dict[Version, str] = {}
    for text in page.versions:
        try:
            version = Version(text)
        except ValueError:  # InvalidVersion, or more digits than Python reads
            continue
        if version.local is None:
            known[version] = text
    for file in page.files:
        name = read_name(file.name)
        if name is None:
            _add_sdist(sdists, known, package, file.name)
            continue
        if name.package != package:
            continue
        version = Version(name.version)
        if channel == PYPI and name.label:
            continue
        if channel == PYPI:
            known.setdefault(version, name.version)
        elif version.is_prerelease or name.label not in ("", channel):
            continue
        if channel not in (PYPI, "cpu") and file.name.endswith("-any.whl"):
            name = name._replace(  # macOS installs from PyPI and the cpu channel alone
                platforms=tuple(p for p in name.platforms if not p.startswith("macos"))
            )
        if name.platforms:
            at_root = channel != PYPI and _folder(file.url) == "whl"
            (above if at_root else here).append(Wheel(file, name))
    versions = tuple(known[v] for v in sorted(known))
    found = Listing(
        *(package, channel, date, tuple(here), versions),
        tuple(str(v) for v in sorted(sdists)),
        mirror,
    )
    if not above or package in FAMILY:
        return (found,)
    return found, Listing(package, ROOT, date, tuple(above), (), (), mirror)


def _add_sdist(sdists: set[Version], known: dict[Version, str], package: str, name: str) -> None:
    if not name.endswith((".tar.gz", ".zip")):
        return
    try:
        own, version = parse_sdist_filename(name)
    except ValueError:
        return
    if canonicalize_name(own) == package and version.local is None:
        sdists.add(version)
        known.setdefault(version, str(version))


def _folder(url: str) -> str:
    """Return the name of the folder that a file lies in."""
    return urlsplit(url).path.rpartition("/")[0].rpartition("/")[2]


def channels_of(page: Page) -> set[str]:
    """Return the folders below ``/whl/`` that the links of a page of the root lie in."""
    out = set()
    for file in page.files:
        parts = urlsplit(file.url).path.split("/")
        if len(parts) >= 3 and parts[-3] == "whl":
            out.add(parts[-2])
    return out
