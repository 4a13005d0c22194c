"""The options of pip, uv and pipx: which take a value, and what each means to a reader.

Sources: ``pip install --help`` of pip 26.3 and older releases, ``uv … --help`` of uv 0.13,
``pipx … --help`` of pipx 1.8; tests compare the tables with the programs that are installed.
"""

from __future__ import annotations

from torchpin.named import NamedTuple

PIP_VALUES = frozenset(
    (
        *("--requirement", "--constraint", "--build-constraint", "--requirements-from-script"),
        *("--editable", "--target", "--platform", "--python-version", "--implementation", "--abi"),
        *("--root", "--prefix", "--src", "--source", "--source-dir", "--source-directory"),
        *("--upgrade-strategy", "--config-settings", "--config-setting", "--progress-bar"),
        *("--root-user-action", "--report", "--group", "--all-releases", "--only-final"),
        *("--no-binary", "--only-binary", "--index-url", "--pypi-url", "--extra-index-url"),
        *("--refresh-package", "--find-links", "--uploaded-prior-to", "--python", "--log"),
        *("--log-file", "--local-log", "--keyring-provider", "--proxy", "--retries", "--timeout"),
        *("--default-timeout", "--exists-action", "--trusted-host", "--cert", "--client-cert"),
        *("--cache-dir", "--use-feature", "--use-deprecated", "--resume-retries"),
        *("--global-option", "--install-option", "--build-option", "--build", "--build-dir"),
    )
)
PIP_SHORT = {
    "r": "--requirement",
    "c": "--constraint",
    "e": "--editable",
    "t": "--target",
    "i": "--index-url",
    "f": "--find-links",
    "C": "--config-settings",
    "b": "--build",
}
PIP_FLAGS = frozenset(
    (
        *("--no-deps", "--no-dependencies", "--dry-run", "--user", "--no-user", "--upgrade"),
        *("--only-deps", "--only-dependencies", "--force-reinstall", "--ignore-installed"),
        *("--ignore-requires-python", "--no-build-isolation", "--use-pep517", "--no-use-pep517"),
        *("--check-build-dependencies", "--break-system-packages", "--compile", "--no-compile"),
        *("--no-warn-script-location", "--no-warn-conflicts", "--require-hashes", "--no-clean"),
        *("--no-require-hashes", "--pre", "--prefer-binary", "--no-index", "--help", "--debug"),
        *("--isolated", "--require-virtualenv", "--require-venv", "--verbose", "--quiet"),
        *("--no-input", "--no-proxy-env", "--no-cache-dir", "--disable-pip-version-check"),
        *("--no-color", "--no-python-version-warning", "--egg"),
    )
)
UV_VALUES = frozenset(
    (
        *("--requirements", "--requirement", "--editable", "--constraints", "--constraint"),
        *("--no-editable-package", "--overrides", "--override", "--excludes", "--exclude"),
        *("--build-constraints", "--build-constraint", "--extra", "--cert", "--group", "--target"),
        *("--prefix", "--no-binary", "--only-binary", "--python-version", "--python-platform"),
        *("--output-format", "--torch-backend", "--index", "--default-index", "--index-url"),
        *("--extra-index-url", "--find-links", "--index-strategy", "--keyring-provider"),
        *("--upgrade-package", "--upgrade-group", "--resolution", "--prerelease"),
        *("--prerelease-package", "--fork-strategy", "--exclude-newer", "--exclude-newer-package"),
        *("--no-sources-package", "--reinstall-package", "--link-mode", "--config-setting"),
        *("--config-settings", "--config-settings-package", "--no-build-isolation-package"),
        *("--cache-dir", "--refresh-package", "--python", "--color", "--allow-insecure-host"),
        *("--trusted-host", "--directory", "--project", "--config-file", "--marker", "--optional"),
        *("--bounds", "--rev", "--tag", "--branch", "--package", "--script", "--with", "--from"),
        *("--no-install-package", "--no-build-package", "--no-binary-package", "--with-editable"),
        *("--with-requirements", "--with-executables-from", "--env-file", "--no-extra"),
        *("--no-group", "--only-group", "--refresh-package", "--root-user-action", "--w"),
    )
)
UV_SHORT = {
    "r": "--requirements",
    "e": "--editable",
    "c": "--constraints",
    "b": "--build-constraints",
    "t": "--target",
    "i": "--index-url",
    "f": "--find-links",
    "P": "--upgrade-package",
    "C": "--config-setting",
    "p": "--python",
    "w": "--with",
}
UV_PROJECT_VALUES = UV_VALUES - {"--no-binary", "--editable"}
"""Of the commands outside ``uv pip``: they name packages by ``--no-binary-package``."""
UV_PROJECT_SHORT = {letter: name for letter, name in UV_SHORT.items() if letter != "e"}
UV_ADD_SHORT = {**UV_PROJECT_SHORT, "m": "--marker"}
UV_RUN_SHORT = {**UV_PROJECT_SHORT, "m": "--module"}
UV_RUN_VALUES = UV_PROJECT_VALUES - {"--script"}
PIPX_VALUES = frozenset(
    (
        *("--suffix", "--python", "--preinstall", "--index-url", "--pip-args", "--spec"),
        *("--backend", "--requirement", "--with", "--lib", "--fetch-python"),
    )
)
PIPX_SHORT = {"i": "--index-url", "r": "--requirement"}


class Grammar(NamedTuple):
    """How a program reads its words."""

    values: frozenset[str]
    """Long options that take a value."""
    short: dict[str, str]
    """Short options that take a value → their long name."""
    flags: frozenset[str] = frozenset()
    """Long options without a value, where an option may be abbreviated (pip)."""
    stops: bool = False
    """True if the first word that is no option ends the program's own options."""


PIP = Grammar(PIP_VALUES, PIP_SHORT, PIP_FLAGS)
UV = Grammar(UV_VALUES, UV_SHORT)
UV_ADD = Grammar(UV_PROJECT_VALUES, UV_ADD_SHORT)
UV_TOOL = Grammar(UV_PROJECT_VALUES, UV_PROJECT_SHORT)
UV_RUN = Grammar(UV_RUN_VALUES, UV_RUN_SHORT, stops=True)
PIPX = Grammar(PIPX_VALUES, PIPX_SHORT)
PIPX_RUN = Grammar(PIPX_VALUES, PIPX_SHORT, stops=True)
SUDO = Grammar(
    frozenset(("--user", "--group", "--host", "--prompt", "--chdir", "--role", "--type")),
    {letter: f"-{letter}" for letter in "ughpCDRrtTU"},
    stops=True,
)
ENV = Grammar(
    frozenset(("--unset", "--chdir", "--split-string")), {"u": "-u", "C": "-C"}, stops=True
)
RUN = Grammar(
    frozenset(("--name", "--prefix", "--cwd", "--root-prefix", "--log-level", "--env")),
    {"n": "--name", "p": "--prefix", "r": "--root-prefix", "e": "--env"},
    stops=True,
)
"""``conda run``, ``mamba run``, ``micromamba run``."""
PLAIN = Grammar(
    frozenset(("--adjustment", "--signal", "--kill-after")),
    {"n": "-n", "c": "-c", "k": "-k", "s": "-s"},
    stops=True,
)
"""``nice``, ``time``, ``timeout`` …"""
