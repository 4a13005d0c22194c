"""Environments as sets of cells: the markers of a project as operations on integers.

uv computes with markers symbolically. Here a marker is the set of cells of a finite grid (system ×
machine × implementation × Python) in which it holds, as the bits of an integer, so that *disjoint*,
*and* and *not* are operations on integers. The grid has a value for each literal that any marker of
the project names, for everything that wheel tags name, and one more for all the rest; within a
cell no marker of the project changes its answer, so the grid says what the algebra says. Tests with
``in`` are the exception: uv takes each for a fact of its own that may hold anywhere
(``sys_platform in 'linux'`` and ``sys_platform == 'win32'`` are not disjoint for it), and so does
the grid, with an axis for each such test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from torchpin.fleet.model import Target
from torchpin.patterns import regex
from torchpin.select.environments import marker_environment
from torchpin.select.uv_reading import marker_is_unclear

_SYSTEMS = {
    "linux": ("posix", "Linux"),
    "darwin": ("posix", "Darwin"),
    "win32": ("nt", "Windows"),
}
_MACHINES = ("x86_64", "aarch64", "arm64", "AMD64", "ARM64", "x86")
_IMPLEMENTATIONS = {"CPython": "cpython", "PyPy": "pypy"}
_VALUES = {
    "platform_system": ("Linux", "Darwin", "Windows"),
    "os_name": ("posix", "nt"),
    "platform_python_implementation": ("CPython", "PyPy"),
    "python_implementation": ("CPython", "PyPy"),
}
"""What the grid knows; uv takes every other value for one that may be, beside every system. Of
systems and machines it knows every word."""
_NAMED = regex(
    r"\b(os[._]name|sys[._]platform|platform[._](?:machine|system|python_implementation)"
    r"|python_implementation)"
    r"\s*[=!]=\s*(\"[^\"]*\"|'[^']*')"
    r"|(\"[^\"]*\"|'[^']*')\s*[=!]=\s*"
    r"(os[._]name|sys[._]platform|platform[._](?:machine|system|python_implementation)"
    r"|python_implementation)\b"
)
_ALONE = {"implementation_name", "implementation_version"}
"""Variables that uv takes for facts of their own, not for ``platform_python_implementation``
and ``python_version``; nobody writes them, and the grid has no axes for them."""
_OTHER = "other"
_MINORS = (0, *range(6, 20))
"""Minor versions of Python 3 with a cell of their own; 3.0 stands for all that is older."""
_VARIABLES = regex(
    r"\b(?:os[._]name|sys[._]platform|platform[._]machine|platform[._]system|"
    r"platform[._]python_implementation|python_implementation|implementation_name|"
    r"implementation_version|python_version|python_full_version|platform[._]release|"
    r"platform[._]version|extras?|dependency_groups)\b"
)
_STRING = regex(r"\"([^\"]*)\"|'([^']*)'")
_COMPARED = regex(
    r"python_(?:full_)?version\s*(===|==|!=|<=|>=|~=|<|>)\s*[\"']([^\"']*)[\"']"
    r"|[\"']([^\"']*)[\"']\s*(===|==|!=|<=|>=|~=|<|>)\s*python_(?:full_)?version"
)
_IN = regex(
    r"\b(os[._]name|sys[._]platform|platform[._]machine|platform[._]system|implementation_name|"
    r"platform[._]python_implementation|python_implementation)\s+(not\s+in|in)\s+"
    r"(\"[^\"]*\"|'[^']*')"
    r"|(\"[^\"]*\"|'[^']*')\s+(not\s+in|in)\s+(os[._]name|sys[._]platform|"
    r"platform[._]machine|platform[._]system|implementation_name|"
    r"platform[._]python_implementation|python_implementation)\b"
)
_TRUE, _FALSE = 'python_version >= "0"', 'python_version < "0"'
_MOST_IN = 4
"""Tests with ``in`` that a project may have; the grid doubles with each."""
_SPECIFIER = regex(r"(===|==|!=|<=|>=|~=|<|>)\s*(\d[\w.*]*)")


class UnknownMarkerError(Exception):
    """A marker whose answer cannot be known: its text is the argument."""


class Grid:
    """The environments that the markers of a project can tell apart."""

    def __init__(self, markers: Iterable[str], specifiers: Iterable[str] = ()) -> None:
        texts = [*markers]
        systems = dict(_SYSTEMS)
        if any(re.search(r"\d{10}", text) for text in (*texts, *specifiers)):
            raise UnknownMarkerError("a number that no Python has")
        machines = dict.fromkeys(_MACHINES)
        points = {Version(f"3.{minor}") for minor in _MINORS}
        for text in texts:
            plain = _IN.sub("", text)
            literals = [m[1] or m[2] or "" for m in _STRING.finditer(plain)]
            if re.search(r"sys[._]platform", plain):
                known = {lit: (_OTHER, _OTHER) for lit in literals if re.fullmatch(r"\w+", lit)}
                systems = {**known, **systems}
            if re.search(r"platform[._]machine", plain):
                machines.update(dict.fromkeys(lit for lit in literals if lit))
            for match in _COMPARED.finditer(text):
                points |= _points(match[1] or match[4], match[2] or match[3])
        for text in specifiers:
            for match in _SPECIFIER.finditer(text):
                points |= _points(match[1], match[2])
        names = {name for text in texts for name in _VARIABLES.findall(_STRING.sub("", text))}
        for name in sorted(names & _ALONE):
            raise UnknownMarkerError(name)
        for text in texts:
            for match in _NAMED.finditer(text):
                name, literal = match[1] or match[4], (match[2] or match[3])[1:-1]
                values = _VALUES.get(name.replace(".", "_"))
                if not re.fullmatch(r"\w+", literal) if values is None else literal not in values:
                    raise UnknownMarkerError(match[0])
        self._inside = tuple(
            dict.fromkeys(_test(match) for text in texts for match in _IN.finditer(text))
        )
        if len(self._inside) > _MOST_IN:
            raise UnknownMarkerError("too many tests with 'in'")
        self._systems = _combined({**systems, _OTHER: (_OTHER, _OTHER)})
        self._machines = (*machines, _OTHER)
        self.points = tuple(sorted(points))
        sizes = (
            len(self._systems), len(self._machines), 2, len(self.points), *(2 for _ in self._inside)
        )  # fmt: skip
        count = 1
        for size in sizes:
            count *= size
        self.all = (1 << count) - 1
        self._bits = self._make_bits(sizes)
        self._masks: dict[tuple[str, str], int] = {}
        self._minors: dict[int, int] = {}
        self._ranges: dict[str, tuple[int, int]] = {}

    def _make_bits(self, sizes: tuple[int, ...]) -> tuple[list[int], ...]:
        """Return for each variable and value the cells that have it."""
        out: list[list[int]] = []
        for at, size in enumerate(sizes):
            below = 1
            for other in sizes[at + 1 :]:
                below *= other
            block = (1 << below) - 1
            period = below * size
            count = self.all.bit_length() // period
            repeat = sum(1 << (period * n) for n in range(count))
            out.append([(block << (below * value)) * repeat for value in range(size)])
        return tuple(out)

    @property
    def system_names(self) -> tuple[str, ...]:
        """Every ``sys_platform``, in alphabetical order; what stands for the rest comes last."""
        return (*sorted({name for name, _, _ in self._systems if name != _OTHER}), _OTHER)

    @property
    def machine_names(self) -> tuple[str, ...]:
        """Every ``platform_machine``, ordered in the same way."""
        return (*sorted(name for name in self._machines if name != _OTHER), _OTHER)

    def system(self, name: str) -> int:
        """Return the cells of a ``sys_platform``."""
        mask = 0
        for (own, _, _), bits in zip(self._systems, self._bits[0], strict=True):
            mask |= bits if own == name else 0
        return mask

    def machine(self, name: str) -> int:
        """Return the cells of a ``platform_machine``."""
        return self._bits[1][self._machines.index(name)]

    @property
    def cpython(self) -> int:
        """The cells of CPython."""
        return self._bits[2][0]

    def pythons(self, low: int, high: int) -> int:
        """Return the cells of the Pythons from one point to before another."""
        mask = 0
        for bits in self._bits[3][low:high]:
            mask |= bits
        return mask

    def minor(self, minor: int) -> int:
        """Return the cells of Python 3.``minor``."""
        if minor in self._minors:
            return self._minors[minor]
        mask = 0
        for at, point in enumerate(self.points):
            if point.release[1] == minor if len(point.release) > 1 else minor == 0:
                mask |= self._bits[3][at]
        self._minors[minor] = mask
        return mask

    def bounds(self, mask: int) -> tuple[int, int] | None:
        """Return the points between which the Pythons of ``mask`` lie; None if it has no bound."""
        present = [at for at, bits in enumerate(self._bits[3]) if bits & mask]
        if not present:
            return None
        low, high = present[0], present[-1] + 1
        return None if (low, high) == (0, len(self.points)) else (low, high)

    def told(self, mask: int) -> str:
        """Return the systems, machines and Pythons of ``mask`` for people; rare ones left out."""
        parts = []
        systems = [name for name in _SYSTEMS if mask & self.system(name) & self.cpython]
        if systems and len(systems) < len(_SYSTEMS):
            parts.append(" or ".join(f"sys_platform == '{name}'" for name in systems))
        machines = [name for name in _MACHINES if mask & self.machine(name) & self.cpython]
        rest = [name for name in _MACHINES if name not in machines]
        if len(rest) < len(machines):
            parts += [f"platform_machine != '{name}'" for name in rest]
        elif machines:
            parts.append(" or ".join(f"platform_machine == '{name}'" for name in machines))
        low, high = self.bounds(mask) or (0, len(self.points))
        if low:
            parts.append(f"Python >= {self.points[low]}")
        if high < len(self.points):
            parts.append(f"Python < {self.points[high]}")
        return " and ".join(f"({p})" if " or " in p else p for p in parts)

    def bounds_of(self, specifier: str) -> tuple[int, int]:
        """Return the points between which a ``requires-python`` lies.

        Raises:
            UnknownMarkerError: it cannot be parsed, or admits no Python.
        """
        if specifier in self._ranges:
            return self._ranges[specifier]
        try:
            parsed = SpecifierSet(specifier)
        except InvalidSpecifier:
            raise UnknownMarkerError(specifier) from None
        inside = [
            at for at, point in enumerate(self.points) if parsed.contains(point, prereleases=True)
        ]
        if not inside:
            raise UnknownMarkerError(specifier)
        self._ranges[specifier] = inside[0], inside[-1] + 1
        return self._ranges[specifier]

    def mask(self, marker: str | None, extra: str = "") -> int:
        """Return the cells in which ``marker`` holds while ``extra`` is enabled.

        Raises:
            UnknownMarkerError: it cannot be parsed, or depends on more than the grid knows.
        """
        if marker is None or not marker.strip():
            return self.all
        key = (marker, extra)
        if key not in self._masks:
            self._masks[key] = self._evaluate(marker, extra)
        return self._masks[key]

    def _evaluate(self, marker: str, extra: str) -> int:
        """Evaluate a marker for each way in which its tests with ``in`` may come out."""
        tests = list(dict.fromkeys(_test(match) for match in _IN.finditer(marker)))
        mask = 0
        for bits in range(1 << len(tests)):
            cells = self.all
            truth = {test: bool(bits >> n & 1) for n, test in enumerate(tests)}
            for test, true in truth.items():
                cells &= self._bits[4 + self._inside.index(test)][true]

            def decided(match: re.Match[str], truth: dict[str, bool] = truth) -> str:
                negated = "not" in (match[2] or match[5])
                return _TRUE if truth[_test(match)] != negated else _FALSE

            mask |= cells & self._plain(_IN.sub(decided, marker), extra)
        return mask

    def _plain(self, marker: str, extra: str) -> int:
        from packaging.markers import InvalidMarker, Marker

        try:
            parsed = Marker(marker)
        except InvalidMarker:
            raise UnknownMarkerError(marker) from None
        if marker_is_unclear(marker):
            raise UnknownMarkerError(marker)
        used = {name.replace(".", "_") for name in _VARIABLES.findall(_STRING.sub("", marker))}
        if used & {"platform_release", "platform_version", "extras", "dependency_groups"}:
            raise UnknownMarkerError(marker)
        systems = self._systems
        axes = (
            range(len(systems))
            if used & {"os_name", "sys_platform", "platform_system"}
            else range(1),
            range(len(self._machines)) if "platform_machine" in used else range(1),
            range(2) if any("implementation" in name for name in used) else range(1),
            range(len(self.points))
            if used & {"python_version", "python_full_version", "implementation_version"}
            else range(1),
        )
        mask = 0
        for s in axes[0]:
            name, os_name, system = systems[s]
            for m in axes[1]:
                for i in axes[2]:
                    implementation = list(_IMPLEMENTATIONS)[i]
                    for p in axes[3]:
                        values = _values(self.points[p])
                        values |= {
                            "os_name": os_name,
                            "sys_platform": name,
                            "platform_system": system,
                            "platform_machine": self._machines[m],
                            "platform_python_implementation": implementation,
                            "implementation_name": _IMPLEMENTATIONS[implementation],
                            "extra": extra,
                        }
                        if parsed.evaluate(values):
                            mask |= self._cells(axes, (s, m, i, p))
        return mask

    def _cells(self, axes: tuple[range, ...], at: tuple[int, ...]) -> int:
        mask = self.all
        for axis, value, bits in zip(axes, at, self._bits[:4], strict=True):
            if len(axis) > 1:
                mask &= bits[value]
        return mask

    def target(self, target: Target) -> int:
        """Return the cells of a target; of every Python if it declares none."""
        values = marker_environment(target)
        machine = values["platform_machine"]
        own = (values["sys_platform"], values["os_name"], values["platform_system"])
        mask = self._bits[0][self._systems.index(own)] & self.machine(machine) & self.cpython
        if self._inside:
            from packaging.markers import Marker

            for at, test in enumerate(self._inside):
                mask &= self._bits[4 + at][Marker(test).evaluate(values)]
        return mask if target.python is None else mask & self.minor(target.python.minor)


def _combined(systems: dict[str, tuple[str, str]]) -> tuple[tuple[str, str, str], ...]:
    """Return every combination of ``sys_platform`` and ``os_name`` that uv holds to be possible.

    It knows that Linux and macOS are not ``nt`` and Windows is not ``posix``, and no more
    (``exclusions`` of ``uv-pep508/src/marker/algebra.rs``); ``platform_system`` goes with
    ``sys_platform``.
    """
    out: list[tuple[str, str, str]] = []
    for name, (os_name, system) in systems.items():
        names = (os_name, _OTHER) if name in _SYSTEMS else ("nt", "posix", _OTHER)
        out += [(name, one, system) for one in dict.fromkeys(names)]
    return tuple(out)


def _test(match: re.Match[str]) -> str:
    """Return a test with ``in`` in one form, without its ``not``."""
    if match[1]:
        return f"{match[1].replace('.', '_')} in {match[3]}"
    return f"{match[4]} in {match[6].replace('.', '_')}"


def _points(operator: str, text: str) -> set[Version]:
    """Return the Pythons at which a comparison changes its answer."""
    found = re.match(r"3(?:\.(\d+)(?:\.(\d+))?)?", text)
    if found is None or found[1] is None:
        return set()
    minor, patch = int(found[1]), found[2]
    points = {Version(f"3.{minor}"), Version(f"3.{minor + 1}")}
    exact = not text.endswith("*") and operator in (">", "<=", "==", "!=", "===")
    if patch is not None or exact:
        points |= {Version(f"3.{minor}.{n}") for n in (int(patch or 0), int(patch or 0) + 1) if n}
    return points


def _values(point: Version) -> dict[str, str]:
    release = (*point.release, 0, 0)[:3]
    full = ".".join(str(part) for part in release)
    return {
        "python_version": f"{release[0]}.{release[1]}",
        "python_full_version": full,
        "implementation_version": full,
        "platform_release": "",
        "platform_version": "",
    }
