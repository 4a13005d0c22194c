"""Proof of a planned or fixed requirements file: real pip and uv arrive at exactly its versions.

The stub serves here what lock files and the index prove *and* everything else that the shipped
catalog holds to exist. So the proof is not about existence (``test_oracle.py`` compares that), but
about what a client makes of the file where the catalog is right: nothing floats past the plan.
"""

from __future__ import annotations

import atexit
import itertools
import re
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from tests.clients.runners import Pip, Result, Uv, Where
from tests.clients.stub_facts import FAMILY, PYPI, Wheel, known, lean_requires, load
from tests.clients.stub_server import Stub

from torchpin.catalog.model import Build
from torchpin.catalog.store import load_catalog
from torchpin.fleet.model import Target

ROOT = "requirements.txt"
SERVED = (*FAMILY, "torchcodec", "torchao", "xformers", "bitsandbytes")
"""Packages with the wheels that they really have; all others fit everywhere and need nothing."""
_PYTORCH = re.compile(r"https?://download(-r2)?\.pytorch\.org(?=/whl)")
_PYPI = re.compile(r"https?://(?:[a-z0-9-]+\.)*pypi\.[a-z]+/simple")
_counter = itertools.count(1)


def wheels_of(build: Build) -> list[Wheel]:
    """Return the files that a build of the catalog stands for, one a Python tag."""
    out = []
    system, machine = build.platform.split("-")
    if system == "linux":
        floor = build.glibc.replace(".", "_") if build.glibc else ""
        place = f"manylinux_{floor}_{machine}" if floor else f"linux_{machine}"
    elif system == "windows":
        place = "win_amd64" if machine == "x86_64" else "win_arm64"
    else:
        place = f"macosx_{(build.macos or '11.0').replace('.', '_')}_{machine}"
    home = PYPI if build.home == PYPI else build.channel
    for tag in dict.fromkeys((*build.pythons, *build.pythons_inferred)):
        python, abi = tag, tag
        if tag.startswith("py"):
            abi = "none"
        elif tag.endswith("-abi3"):
            python, abi = tag.removesuffix("-abi3"), "abi3"
        elif tag.endswith("t"):
            python = tag[:-1]
        filename = f"{build.package}-{build.full_version}-{python}-{abi}-{place}.whl"
        metadata = known().of(build.package, filename)
        own = (f"torch{build.requires_torch}",) if build.requires_torch else ()
        requires = lean_requires(metadata.requires) if metadata else own
        if home != PYPI and any("+" in text for text in requires):
            requires = own
        out.append(
            Wheel(
                home=home,
                package=build.package,
                version=build.full_version,
                filename=filename,
                requires_python=build.requires_python,
                requires=requires,
                extras=(),
                uploaded=None,
                yanked=build.yanked,
            )
        )
    return out


def catalog_wheels() -> list[Wheel]:
    """Return the recorded wheels and those that only the shipped catalog knows."""
    wheels = [w for w in load(True) if w.package in SERVED]

    def key(wheel: Wheel) -> tuple[str, ...]:
        *_, python, abi, place = wheel.filename.removesuffix(".whl").split("-")
        machine = re.sub(r"^.*?(x86_64|aarch64|amd64|arm64)$", r"\1", place)
        system = place[:3].replace("man", "lin")
        abi = "none" if system == "mac" else abi
        return wheel.home, wheel.package, wheel.version, python, abi, system, machine

    seen = {key(wheel) for wheel in wheels}
    catalog = load_catalog()
    for name in SERVED:
        for build in catalog.builds(name):
            wheels += [wheel for wheel in wheels_of(build) if key(wheel) not in seen]
    return wheels


class _Shared(NamedTuple):
    stub: Stub
    pip: Pip
    uv: Uv


@lru_cache
def shared() -> _Shared:
    """Return the stub and the clients that all proofs of a session use."""
    stub, pip, uv = Stub(wheels=catalog_wheels()), Pip(), Uv()
    stub.__enter__()
    for closing in (stub, pip, uv):
        atexit.register(closing.__exit__, None, None, None)
    return _Shared(stub, pip, uv)


def plain_wheel(name: str, version: str = "1.0") -> Wheel:
    """Return a wheel of PyPI that fits everywhere and needs nothing."""
    filename = f"{canonicalize_name(name).replace('-', '_')}-{version}-py3-none-any.whl"
    return Wheel(PYPI, canonicalize_name(name), version, filename, None, (), (), None, False)


def others_in(texts: Mapping[str, str]) -> list[Wheel]:
    """Return a plain wheel for every package outside ``SERVED`` that the files ask for."""
    out = []
    for line in itertools.chain.from_iterable(text.splitlines() for text in texts.values()):
        text = re.split(r"\s#|\s--hash|\s*\\$", line)[0].strip()
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        name = canonicalize_name(requirement.name)
        if name in SERVED or requirement.url:
            continue
        wanted = [
            s.version.removesuffix(".*") for s in requirement.specifier if s.operator[0] != "<"
        ]
        try:
            version = max([Version(text) for text in wanted] or [Version("1.0")])
        except InvalidVersion:
            continue
        out.append(plain_wheel(name, str(version)))
    return out


def where_of(target: Target | Where) -> Where:
    """Return where a target of torchpin installs; what it leaves open gets the usual value."""
    if isinstance(target, Where):
        return target
    group, python = target.group, target.python
    assert python is None or not python.free_threaded, "pip's --python-version has no 3.14t"
    name = "3.11" if python is None else f"{python.major}.{python.minor}"
    where = Where(name, group.platform)
    if group.glibc:
        where = where._replace(glibc=group.glibc)
    if group.macos:
        where = where._replace(macos=group.macos if "." in group.macos else f"{group.macos}.0")
    return where


def install(
    files: str | Mapping[str, str], target: Target | Where, client: str, root: str = ROOT
) -> Result:
    """Resolve requirements files with the real client against the stub.

    Args:
        files: the text of the root, or file name → text; the addresses of PyTorch and of PyPI in
            it become those of the stub.
        target: what to install on.
        client: ``pip`` or ``uv``.
        root: name of the root in ``files``.
    """
    stub, pip, uv = shared()
    texts = {root: files} if isinstance(files, str) else dict(files)
    others = others_in(texts)
    if others:
        stub.content.add(others)
    base = f"{stub.base}/case-{next(_counter)}" if others else stub.base
    with tempfile.TemporaryDirectory(prefix="install-") as folder:
        for name, text in texts.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            rewritten = _PYPI.sub(f"{base}/pypi/simple", _PYTORCH.sub(base, text))
            path.write_bytes(rewritten.encode())
        runner = pip if client == "pip" else uv
        return runner.run(Path(folder) / root, where_of(target), stub.at(base))


def assert_installs(
    files: str | Mapping[str, str],
    target: Target | Where,
    expected: Mapping[str, str],
    client: str,
    root: str = ROOT,
) -> None:
    """Assert that the real client resolves the files to exactly ``expected``.

    ``expected`` maps each family package that is installed, and any other of ``SERVED``, to its
    version with its label; other packages of the files must resolve too, to whatever version.
    """
    result = install(files, target, client, root)
    said = {name: p.version for name, p in result.packages.items() if name in (*FAMILY, *expected)}
    where = where_of(target)
    assert result.ok, f"{client} on {where} stops:\n{result.log}\n{files}"
    assert said == dict(expected), f"{client} on {where} installs {said}\n{files}"
