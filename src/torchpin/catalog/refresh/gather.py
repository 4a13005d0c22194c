"""Read the index pages: PyPI's, the channels', and find channels that nobody named."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from packaging.version import Version

from torchpin.catalog.bounded import InspectError
from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.records import Part, State
from torchpin.catalog.refresh.fetch import Fetcher
from torchpin.catalog.refresh.listing import PYPI, ROOT, Listing, channels_of, listings_of
from torchpin.catalog.refresh.pages import ACCEPT_BOTH, ACCEPT_HTML, Page, PageError, parse
from torchpin.catalog.refresh.settings import CHANNEL_ROOT, PACKAGES, Failed, Settings
from torchpin.evidence import PROOF
from torchpin.named import NamedTuple

SHARE, FEW = 0.2, 5
"""A page that lacks more than this share of the proved builds, and more than so many, is
doubted."""

Tell = Callable[[int, int], None]
"""Called with pages done and pages known so far."""


class Want(NamedTuple):
    """A page to read."""

    channel: str
    """``pypi``, a channel, or ``""`` for the pages from which channels are found."""
    package: str
    """``""`` for the page that lists the packages of a channel."""
    url: str

    @property
    def part(self) -> str:
        """Return what a message calls it."""
        return "/".join(filter(None, (self.channel or "the list of channels", self.package)))


class Gathered:
    """What the pages say."""

    def __init__(self, fetcher: Fetcher, settings: Settings, state: State, tell: Tell) -> None:
        self._fetcher = fetcher
        self._settings = settings
        self._state = state
        self._tell = tell
        self._asked = 0
        self.listings: dict[tuple[str, str], Listing] = {}
        self.pins: dict[str, Listing] = {}
        self.failed: list[Failed] = []
        self.seen: set[str] = set()
        """Channels that were asked."""
        self.answered = 0
        self.unchanged = 0

    def packages(self) -> list[str]:
        """Return the packages to look for."""
        known = {*PACKAGES, *self._state.parts}
        return sorted(known & set(self._settings.packages) if self._settings.packages else known)

    def kept(self, channel: str, package: str) -> str:
        """Return the date of the data that stay if a page cannot be read."""
        parts = [self._state.parts[package]] if package in self._state.parts else []
        if not package:
            parts = list(self._state.parts.values())
        dates = [page[1] for part in parts for page in part.pages if page[0] == channel]
        held = any(
            (b.channel if b.home == "channel" else PYPI) == channel
            for part in parts
            for b in part.builds
        )
        return min(dates) if dates else str(self._state.head["date"]) if held else ""

    def pypi(self, index: str) -> None:
        """Read PyPI's pages of the packages, and of those that pin torch."""
        packages = self.packages()
        wants = [Want(PYPI, name, f"{index}/{name}/") for name in packages]
        pinned = {row[0] for row in self._state.pins} - set(packages)
        if self._settings.packages:
            pinned &= set(self._settings.packages)
        self._read(wants + [Want("pins", name, f"{index}/{name}/") for name in sorted(pinned)])
        for name in packages:
            if (name, PYPI) in self.listings:
                self.pins[name] = self.listings[name, PYPI]

    def channels(self) -> None:
        """Read the channels that are named, else all that are known or found."""
        named = [c for c in self._settings.channels if c != PYPI]
        if self._settings.channels:
            self.of(named)
            return
        root = self._settings.whl
        found = {
            b.channel
            for part in self._state.parts.values()
            for b in part.builds
            if b.home == "channel" and b.channel != ROOT
        }
        pages = self._read(
            [Want("", "", f"{root}/"), *(Want("", n, f"{root}/{n}/") for n in ("torch",))]
        )
        for page in pages.values():
            found |= {name for name, _ in page.links} | channels_of(page)
        self.of(found)

    def of(self, channels: Iterable[str]) -> None:
        """Read the pages of channels, those that were not read before; other names are skipped."""
        new = sorted({c for c in channels if kind_of_label(c)} - self.seen)
        self.seen |= set(new)
        mirrors = dict(self._settings.mirrors)
        base = {c: mirrors.get(c, f"{self._settings.whl}/{c}") for c in new}
        lists = self._read([Want(c, "", f"{base[c]}/") for c in new])
        packages = set(self.packages())
        wants = []
        for want, page in lists.items():
            here = {name.lower().replace("_", "-") for name, _ in page.links} & packages
            here |= {
                name
                for name in packages
                if any(
                    b.channel == want.channel and b.home == "channel" and b.evidence in PROOF
                    for b in self._part(name).builds
                )
            }
            wants += [Want(want.channel, n, f"{base[want.channel]}/{n}/") for n in sorted(here)]
        self._read(wants)

    def _part(self, package: str) -> Part:
        return self._state.parts.get(package) or Part(package, [], [], [], [], [], [], [], None)

    def _read(self, wants: list[Want]) -> dict[Want, Page]:
        """Read pages; what cannot be read is told in ``failed``."""
        out: dict[Want, Page] = {}
        self._asked += len(wants)
        done = self._asked - len(wants)
        for want, answer in self._fetcher.each(self._one, wants):
            done += 1
            self._tell(done, self._asked)
            if isinstance(answer, InspectError):
                self._fail(want, answer.message)
            elif answer is not None:
                out[want] = answer
        return out

    def _one(self, want: Want) -> Page | None:
        """Read one page; None if there is none and none was expected.

        Raises:
            InspectError: there is none that can be used.
        """
        accept = ACCEPT_BOTH if want.channel in (PYPI, "pins") else ACCEPT_HTML
        got = self._fetcher.page(want.url, accept)
        if got.status == "absent":
            named = want.channel in self._settings.channels and not want.package
            if self.kept(want.channel, want.package) or named or not want.channel:
                raise PageError(f"the server answers {got.code}")
            self.answered += 1
            return None
        page = parse(got.body, got.url, got.content_type, complete=got.complete)
        if want.channel and want.package:
            self._take(want, page)
        elif not page.links and not page.files:
            raise PageError("the page lists nothing")
        self._fetcher.keep(want.url, accept, got)
        self.answered += 1
        self.unchanged += got.status == "same"
        return page

    def _take(self, want: Want, page: Page) -> None:
        """Keep what a page lists.

        Raises:
            PageError: it cannot be believed.
        """
        pins = want.channel == "pins"
        mirror = not pins and (
            self._settings.pypi is not None
            if want.channel == PYPI
            else not want.url.startswith(f"{CHANNEL_ROOT}/")
        )
        found = listings_of(
            want.package,
            PYPI if pins else want.channel,
            page,
            self._fetcher.today,
            mirror=mirror,
        )
        if pins:
            self.pins[want.package] = found[0]
            return
        if not self._settings.allow_removal:
            doubt(self._part(want.package), found[0])
        if found[0].wheels or found[0].versions:
            self.listings[want.package, want.channel] = found[0]
        for above in found[1:]:
            known = self.listings.get((want.package, ROOT))
            wheels = {w.file.name: w for w in (known.wheels if known else ())}
            wheels |= {w.file.name: w for w in above.wheels}
            merged = above._replace(wheels=tuple(wheels[name] for name in sorted(wheels)))
            self.listings[want.package, ROOT] = merged

    def _fail(self, want: Want, why: str) -> None:
        kept = self.kept(want.channel, want.package)
        if want.channel == "pins":
            kept = str(self._state.head["date"])
        self.failed.append(Failed(want.part, why, kept))


def doubt(part: Part, listing: Listing) -> None:
    """Refuse a page that lists much less than is proved: it is cut, or of something else.

    Raises:
        PageError: see above.
    """
    place = listing.channel
    known = {
        (str(Version(b.version)), b.platform)
        for b in part.builds
        if (b.channel if b.home == "channel" else PYPI) == place and b.evidence in PROOF
    }
    here = {
        (str(Version(wheel.name.version)), platform)
        for wheel in listing.wheels
        for platform in wheel.name.platforms
    }
    lost = known - here
    if len(lost) > max(FEW, SHARE * len(known)) or (known and not here):
        raise PageError(
            f"the page lacks {len(lost)} of {len(known)} builds that are known: not believed",
            hint="--allow-removal believes it",
        )
