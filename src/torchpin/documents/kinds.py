"""Which kind of dependency file a path names, and who reads it."""

from __future__ import annotations

import os

from torchpin.named import NamedTuple
from torchpin.patterns import regex


class Form(NamedTuple):
    """A kind of file that holds installs as parts: commands or sections (``Document.parts``)."""

    kind: str
    pattern: str
    """Of the file's name, or of the end of its path, without anchors and capturing groups."""
    reader: str
    """``module:function`` below ``torchpin.documents``, called as ``function(path, data)``."""


FORMS: tuple[Form, ...] = (
    Form(
        "github-workflow",
        r"\.github/workflows/[^/]+\.ya?ml|(?:\.github/(?:[^/]+/)+)?action\.ya?ml",
        "github_workflow:read_github_workflow",
    ),
    Form(
        "gitlab-ci",
        r"[^/]*\.gitlab-ci\.ya?ml|\.gitlab/(?:[^/]+/)*[^/]+\.ya?ml",
        "gitlab_ci:read_gitlab_ci",
    ),
    Form("circleci", r"\.circleci/[^/]+\.ya?ml", "circleci:read_circleci"),
    Form(
        "azure-pipelines",
        r"[^/]*azure-pipelines?[^/]*\.ya?ml|\.(?:azure[-_]pipelines|azure|azuredevops)/(?:[^/]+/)*"
        r"[^/]+\.ya?ml|azure-pipelines/(?:[^/]+/)*[^/]+\.ya?ml",
        "azure_pipelines:read_azure_pipelines",
    ),
    Form(
        "compose",
        r"(?:[^/]*[._-])?(?:docker-)?compose(?:[._-][^/]*)?\.ya?ml",
        "compose:read_compose",
    ),
    Form(
        "dockerfile",
        r"(?:[^/]*[._-])?(?:[Dd]ocker|[Cc]ontainer)file"
        r"(?![^/]*\.(?:dockerignore|md|rst|py|sh|js|ts|go|json|ya?ml|toml|html|j2|tmpl|bak|orig)$)"
        r"[^/]*",
        "dockerfile:read_dockerfile",
    ),
    Form("shell", r"[^/]+\.(?:sh|bash|zsh|ksh)", "scripts:read_shell"),
    Form(
        "makefile", r"(?:GNU)?[Mm]akefile(?:\.[^/]+)?|[^/]+\.(?:mk|mak)", "makefile:read_makefile"
    ),
    Form("justfile", r"\.?[Jj]ustfile|[^/]+\.just", "justfile:read_justfile"),
    Form("Pipfile", "Pipfile", "pipfile:read_pipfile"),
    Form("Pipfile.lock", r"Pipfile\.lock", "pipfile_lock:read_pipfile_lock"),
    Form("pixi.toml", r"pixi\.toml", "pixi_toml:read_pixi_toml"),
    Form("pixi.lock", r"pixi\.lock", "pixi_lock:read_pixi_lock"),
    Form("tox.toml", r"tox\.toml", "tox_toml:read_tox_toml"),
    Form("tox.ini", r"tox\.ini", "tox_ini:read_tox_ini"),
    Form("noxfile.py", r"noxfile\.py", "noxfile:read_noxfile"),
    Form("pre-commit", r"\.pre-commit-config\.ya?ml", "precommit_config:read_precommit_config"),
    Form(
        "environment.yml",
        r"(?:[^/]*[-_.])?(?:environment|env|conda)(?:[-_.\d][^/]*)?\.ya?ml"
        r"|(?:[^/]*[-_.])?(?:environments|envs|conda(?:[-_.][^/]*)?)/[^/]+\.ya?ml",
        "environment_yml:read_environment_yml",
    ),
)
"""In this order; the first whose pattern fits wins."""

_LISTS = (
    r"[^/]*(?:requirements|requirments|constraints)[^/]*\.(?:txt|in)"
    r"|[^/]*requirements[^/]*\.lock"
    r"|(?:requirements|constraints)/[^/]+\.(?:txt|in)"
    r"|(?:pyproject|uv|pylock|pylock\.[^./]+)\.toml"
    r"|(?:uv|poetry|pdm)\.lock|[^/]+\.py\.lock"
    r"|setup\.(?:cfg|py)"
)
FILES_PATTERN = regex(f"(?:^|/)(?:{'|'.join((f'({_LISTS})', *(form.pattern for form in FORMS)))})$")
"""Paths, with ``/``, that are dependency files by their name (``requirments`` is a common slip).
The pre-commit hooks use the same pattern. Its one group is empty for files that hold parts."""
_FORMS = tuple((form.kind, regex(f"(?:^|/)(?:{form.pattern})$")) for form in FORMS)
REQUIREMENTS = "requirements"
PART = "part"
"""The kind of ``Part.document``: no file has it."""
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock")
PART_KINDS = frozenset(form.kind for form in FORMS)
LONE = frozenset(("setup.cfg", "setup.py", "script"))
"""Kinds that declare what a project does, each for itself: no project file beside them counts."""
CI = frozenset(("github-workflow", "gitlab-ci", "circleci", "azure-pipelines"))
CHECKS = frozenset(("tox.ini", "tox.toml", "noxfile.py", "pre-commit", *CI))
"""Kinds of files whose parts are environments that only check a project."""
KINDS = frozenset((REQUIREMENTS, "pyproject", "uv.toml", *LONE, *LOCKS, *PART_KINDS))
_BY_NAME = {
    "pyproject.toml": "pyproject",
    "uv.toml": "uv.toml",
    "uv.lock": "uv.lock",
    "poetry.lock": "poetry.lock",
    "pdm.lock": "pdm.lock",
    "setup.cfg": "setup.cfg",
    "setup.py": "setup.py",
}
_OTHERS = (
    *(".py", ".md", ".rst", ".png", ".jpg", ".svg", ".gif", ".json", ".js", ".ts", ".tsx", ".css"),
    *(".html", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".go", ".rs", ".java", ".pyi"),
    *(".ipynb", ".csv", ".npy", ".pt", ".so", ".pyc", ".xml", ".log"),
)
"""Most files of a folder: told from all others at a glance."""
_ODD = regex(
    r"(?:^|/)(?:setup\.py|noxfile\.py|(?:GNU)?[Mm]akefile\.[^/]+|[^/]*(?:ocker|ontainer)file[^/]*)$"
)
"""Of these names those that the pattern may know all the same."""
_CI_FOLDERS = regex(r"/\.(?:github|gitlab|circleci|azure)")
_PYLOCK = regex(r"pylock(?:\.[^./]+)?\.toml")


def kind_of(path: str) -> str | None:
    """Return the kind of a file by its path, None if the name says nothing.

    Of a CI file the folder tells: where the path does not name it, it is the working folder's.
    Any other Python file is a ``script``, which may hold a block of metadata.
    """
    name = path.replace(os.sep, "/")
    base = name[name.rfind("/") + 1 :]
    if base in _BY_NAME:  # as FILES_PATTERN says, too; it is long to compile
        return _BY_NAME[base]
    if base.endswith((".txt", ".in")) and ("requirements" in base or "constraints" in base):
        return REQUIREMENTS
    if base.endswith(_OTHERS) and _ODD.search(name) is None:
        return "script" if base.endswith(".py") else None
    match = FILES_PATTERN.search(name)
    if match is None and base.endswith((".yml", ".yaml")) and not os.path.isabs(path):
        here = os.getcwd().replace(os.sep, "/")
        if _CI_FOLDERS.search(here) is not None:  # `torchpin check ci.yml` in .github/workflows
            name = f"{here}/{name}"
            match = FILES_PATTERN.search(name)
    if match is None:
        return "script" if name.endswith(".py") else None
    if match[1] is None:
        return next(kind for kind, pattern in _FORMS if pattern.search(name) is not None)
    if base.endswith(".py.lock"):  # uv lock --script
        return "uv.lock"
    return "pylock" if _PYLOCK.fullmatch(base) is not None else REQUIREMENTS


def reader_of(kind: str) -> str | None:
    """Return ``module:function`` of the reader of a kind whose files hold parts, else None."""
    return next((form.reader for form in FORMS if form.kind == kind), None)
