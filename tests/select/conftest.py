"""What the tests of selection share: small files in, one selected set out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pytest

from torchpin.catalog.store import load_catalog
from torchpin.documents.base import Document
from torchpin.documents.requirements import read_requirements
from torchpin.errors import TorchpinError
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.select.installs import install_of
from torchpin.select.model import Install, SelectedSet
from torchpin.select.selection import select


def make_target(
    python: str | None = "3.11",
    platform: str = "linux-x86_64",
    *,
    glibc: str | None = "2.35",
    musl: bool = False,
    macos: str | None = None,
) -> Target:
    group = NodeGroup(
        "group",
        (),
        (),
        platform,
        glibc=glibc if platform.startswith("linux") else None,
        musl=musl,
        macos=macos,
    )
    if python is None:
        return Target(group, None)
    major, minor = python.removesuffix("t").split(".")
    return Target(group, Python(int(major), int(minor), python.endswith("t")))


def make_install(
    text: str,
    client: str = "pip",
    files: Mapping[str, str] | None = None,
    *,
    path: str = "requirements.txt",
    private: Mapping[str, str] | None = None,
    extra_indexes: Sequence[str] = (),
) -> Install:
    def load(name: str) -> Document:
        if files is None or name not in files:
            raise TorchpinError("no such file", path=name)
        return read_requirements(name, files[name].encode())

    return install_of(
        read_requirements(path, text.encode()),
        load,
        client=client,
        private=private,
        extra_indexes=extra_indexes,
    )


class Choose(Protocol):
    def __call__(
        self,
        text: str,
        *,
        client: str = "pip",
        python: str | None = "3.11",
        platform: str = "linux-x86_64",
        glibc: str | None = "2.35",
        files: Mapping[str, str] | None = None,
        private: Mapping[str, str] | None = None,
    ) -> SelectedSet: ...


class Installer(Protocol):
    def __call__(
        self,
        text: str,
        client: str = "pip",
        files: Mapping[str, str] | None = None,
        *,
        path: str = "requirements.txt",
        private: Mapping[str, str] | None = None,
        extra_indexes: Sequence[str] = (),
    ) -> Install: ...


class Targets(Protocol):
    def __call__(
        self,
        python: str | None = "3.11",
        platform: str = "linux-x86_64",
        *,
        glibc: str | None = "2.35",
        musl: bool = False,
        macos: str | None = None,
    ) -> Target: ...


@pytest.fixture(scope="session")
def install() -> Installer:
    return make_install


@pytest.fixture(scope="session")
def target() -> Targets:
    return make_target


@pytest.fixture(scope="session")
def choose() -> Choose:
    def run(
        text: str,
        *,
        client: str = "pip",
        python: str | None = "3.11",
        platform: str = "linux-x86_64",
        glibc: str | None = "2.35",
        files: Mapping[str, str] | None = None,
        private: Mapping[str, str] | None = None,
    ) -> SelectedSet:
        made = make_install(text, client, files, private=private)
        return select(made, make_target(python, platform, glibc=glibc), load_catalog())

    return run
