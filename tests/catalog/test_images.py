"""What the name of an image tells."""

from __future__ import annotations

import pytest

from torchpin.catalog.images import ImageFacts, image_facts


@pytest.mark.parametrize(
    ("reference", "python", "glibc", "musl"),
    [
        ("python:3.11", "3.11", None, False),
        ("python:3.11.9-slim-bookworm", "3.11", "2.36", False),
        ("docker.io/library/python:3.12-bullseye", "3.12", "2.31", False),
        ("python:3.13-alpine3.20", "3.13", None, True),
        ("python:3.14.0rc1-slim", "3.14", None, False),
        ("python:alpine", None, None, True),
        ("python:latest", None, None, False),
        ("python", None, None, False),
        ("alpine:3.20", None, None, True),
        ("ubuntu:18.04", None, "2.27", False),
        ("ubuntu:jammy-20240101", None, "2.35", False),
        ("debian:12-slim", None, "2.36", False),
        ("debian:buster", None, "2.28", False),
        ("rockylinux:9", None, "2.34", False),
        ("nvidia/cuda:11.8.0-cudnn8-devel-ubuntu20.04", None, "2.31", False),
        ("nvcr.io/nvidia/cuda:12.6.3-runtime-ubi8", None, "2.28", False),
        ("registry.example:5000/team/python:3.11", None, None, False),
        ("registry.example:5000/python", None, None, False),
        ("myimage:3.11", None, None, False),
        ("", None, None, False),
        ("@sha256:abc", None, None, False),
    ],
)
def test_python_and_libc(reference: str, python: str | None, glibc: str | None, musl: bool) -> None:
    facts = image_facts(reference)
    assert (facts.python, facts.glibc, facts.musl) == (python, glibc, musl)


@pytest.mark.parametrize(
    ("reference", "torch", "cuda", "compiler"),
    [
        ("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", "2.5.1", "12.4", False),
        ("docker.io/pytorch/pytorch:1.9.0-cuda11.1-cudnn8-devel", "1.9.0", "11.1", True),
        ("pytorch/pytorch:1.4-cuda10.1-cudnn7-devel", "1.4.0", "10.1", True),
        ("pytorch/pytorch:latest", None, None, False),
        ("pytorch/pytorch@sha256:00", None, None, False),
    ],
)
def test_official_images(
    reference: str, torch: str | None, cuda: str | None, compiler: bool
) -> None:
    facts = image_facts(reference)
    assert dict(facts.packages).get("torch") == torch
    assert (facts.cuda, facts.compiler) == (cuda, compiler)


def test_toolkits() -> None:
    facts = image_facts("nvidia/cuda:12.6.3-cudnn-devel-ubuntu22.04")
    assert (facts.cuda, facts.compiler) == ("12.6", True)
    assert not image_facts("nvidia/cuda:12.6.3-base-ubuntu22.04").compiler


def test_a_vendors_build() -> None:
    facts = image_facts("nvcr.io/nvidia/pytorch:25.01-py3")
    assert facts.vendor == "NVIDIA"
    assert ("torch", None) in facts.packages
    assert image_facts("nvcr.io/nvidia/pytorch:custom") == ImageFacts()
