"""Coverage-guided fuzzing of every reader: ``nox -s fuzz [-- SECONDS]``. Not collected by pytest.

Any bytes must give a document whose spans lie inside its text and that encodes back to the same
bytes where it decoded; a traceback stops the run and leaves the input beside.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["torchpin"]):
    from torchpin.documents.azure_pipelines import read_azure_pipelines
    from torchpin.documents.base import Document
    from torchpin.documents.circleci import read_circleci
    from torchpin.documents.compose import read_compose
    from torchpin.documents.dockerfile import read_dockerfile
    from torchpin.documents.github_workflow import read_github_workflow
    from torchpin.documents.gitlab_ci import read_gitlab_ci
    from torchpin.documents.justfile import read_justfile
    from torchpin.documents.makefile import read_makefile
    from torchpin.documents.pdm_lock import read_pdm_lock
    from torchpin.documents.poetry_lock import read_poetry_lock
    from torchpin.documents.pylock import read_pylock
    from torchpin.documents.pyproject import read_pyproject, read_uv_toml
    from torchpin.documents.requirements import read_requirements
    from torchpin.documents.scripts import read_shell
    from torchpin.documents.suppressions import suppressions
    from torchpin.documents.uv_lock import read_uv_lock

READERS: dict[str, Callable[[str, bytes], Document]] = {
    "requirements.txt": read_requirements,
    "pyproject.toml": read_pyproject,
    "uv.toml": read_uv_toml,
    "uv.lock": read_uv_lock,
    "poetry.lock": read_poetry_lock,
    "pdm.lock": read_pdm_lock,
    "pylock.toml": read_pylock,
    "Dockerfile": read_dockerfile,
    "Makefile": read_makefile,
    "justfile": read_justfile,
    "install.sh": read_shell,
    ".github/workflows/ci.yml": read_github_workflow,
    ".gitlab-ci.yml": read_gitlab_ci,
    ".circleci/config.yml": read_circleci,
    "azure-pipelines.yml": read_azure_pipelines,
    "compose.yaml": read_compose,
}
NAMES = sorted(READERS)


def one(data: bytes) -> None:
    """Read one input with the reader that its first byte chooses."""
    if not data:
        return
    name = NAMES[data[0] % len(NAMES)]
    document = READERS[name](name, data[1:])
    size = len(document.text)
    inner = [part.document for part in document.parts]
    for declaration in (one for each in (document, *inner) for one in each.declarations):
        assert 0 <= declaration.span.start <= declaration.span.end <= size, name
        if declaration.specifier_span is not None:
            assert declaration.specifier_span.end <= size, name
    for problem in document.problems:
        assert 0 <= problem.span.start <= problem.span.end <= size, name
    if not any(one.code in ("decode", "binary", "toml", "yaml") for one in document.problems):
        assert document.encode(document.text) == data[1:], name
    suppressions(document)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
