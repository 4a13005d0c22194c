"""The single settings of ``[tool.uv]`` and ``uv.toml``: which keys uv knows, and what they say.

uv reads ``[tool.uv]`` twice. Once for what belongs to the project (sources and the indexes that
they name, conflicts, environments, constraints, overrides …): a mistake there stops it. And once
for its *settings* (indexes, ``resolution``, ``exclude-newer`` …): a key that it does not know, or a
wrong value, makes it pass over all of these with a warning; in a ``uv.toml`` it stops. Measured
with uv 0.13.9, which lists the keys that it knows in that warning.
"""

from __future__ import annotations

from torchpin.documents.manifest import Manifest, setting_text
from torchpin.documents.requirement import canonical
from torchpin.documents.toml_view import View

SETTINGS = (
    "torch-backend", "index-strategy", "fork-strategy", "prerelease", "resolution", "no-sources",
    "no-sources-package", "package", "managed", "no-index", "exclude-newer", "required-version",
    "python-preference", "no-build", "no-build-package", "no-binary", "no-binary-package",
    "upgrade", "upgrade-package", "minimum-libc-version", "prerelease-package",
)  # fmt: skip
PROJECT_ONLY = (
    "conflicts", "default-groups", "dependency-groups", "dev-dependencies", "environments",
    "managed", "package", "required-environments", "sources", "workspace",
)  # fmt: skip
"""Keys that uv (0.13.9) refuses in a ``uv.toml``."""
KNOWN = frozenset((
    *SETTINGS, *PROJECT_ONLY,
    "system-certs", "native-tls", "offline", "no-cache", "cache-dir", "preview",
    "preview-features", "python-downloads", "concurrent-downloads", "concurrent-builds",
    "concurrent-installs", "index", "index-url", "extra-index-url", "find-links",
    "keyring-provider", "http-proxy", "https-proxy", "no-proxy", "allow-insecure-host",
    "dependency-metadata", "config-settings", "config-settings-package", "no-build-isolation",
    "require-build-hashes", "no-build-isolation-package", "extra-build-dependencies",
    "extra-build-variables", "exclude-newer-package", "link-mode", "compile-bytecode",
    "reinstall", "reinstall-package", "python-install-mirror", "pypy-install-mirror",
    "graalpy-install-mirror", "pyodide-install-mirror", "python-downloads-json-url",
    "publish-url", "trusted-publishing", "check-url", "add-bounds", "audit", "pip", "cache-keys",
    "override-dependencies", "exclude-dependencies", "constraint-dependencies",
    "build-constraint-dependencies", "build-backend",
))  # fmt: skip
"""Every key of uv 0.13.9."""
PIP_KNOWN = frozenset((
    "python", "system", "break-system-packages", "target", "prefix", "index-url",
    "extra-index-url", "no-index", "find-links", "index-strategy", "keyring-provider", "no-build",
    "no-binary", "only-binary", "no-build-isolation", "require-build-hashes",
    "no-build-isolation-package", "extra-build-dependencies", "extra-build-variables", "strict",
    "extra", "all-extras", "no-extra", "no-deps", "group", "allow-empty-requirements",
    "resolution", "prerelease", "fork-strategy", "dependency-metadata", "output-file",
    "no-strip-extras", "no-strip-markers", "no-annotate", "no-header", "custom-compile-command",
    "generate-hashes", "config-settings", "config-settings-package", "python-version",
    "python-platform", "universal", "exclude-newer", "exclude-newer-package", "no-emit-package",
    "emit-index-url", "emit-find-links", "emit-build-options", "emit-marker-expression",
    "emit-index-annotation", "annotation-style", "link-mode", "compile-bytecode",
    "require-hashes", "verify-hashes", "no-sources", "no-sources-package", "upgrade",
    "upgrade-package", "reinstall", "reinstall-package", "torch-backend",
))  # fmt: skip
"""Every key of ``[tool.uv.pip]``."""
SOURCE_KNOWN = frozenset((
    "git", "subdirectory", "rev", "tag", "branch", "lfs", "url", "path", "editable", "package",
    "index", "workspace", "marker", "extra", "group",
))  # fmt: skip
"""Every key of a source; uv stops at any other."""
CHOICES = {
    "index-strategy": (
        "first-index", "unsafe-any-match", "unsafe-first-match", "unsafe-best-match",
    ),
    "resolution": ("highest", "lowest", "lowest-direct"),
    "prerelease": (
        "disallow", "allow", "if-necessary", "explicit", "if-necessary-or-explicit",
    ),
    "fork-strategy": ("fewest", "requires-python"),
}  # fmt: skip
"""Settings with a few values; any other is a mistake."""
_FLAGS = ("no-index", "no-sources", "no-build", "no-binary", "upgrade")
_LISTS = ("no-build-package", "no-binary-package", "no-sources-package", "upgrade-package")


def read_settings(manifest: Manifest, uv: View) -> None:
    """Take in the single settings, and note why uv would pass over them."""
    for key in SETTINGS:
        view = uv.get(key)
        if view is not None:
            manifest.setting(f"uv.{key}", view)
    _read_excluded(manifest, uv)
    _read_overrides(manifest, uv)
    _read_metadata(manifest, uv)
    dates = uv.get("exclude-newer-package")
    if dates is not None and isinstance(dates.value, dict):
        for name, view in dates.entries():
            manifest.setting(f"uv.exclude-newer-package.{canonical(name)}", view)
    groups = uv.get("dependency-groups")
    if groups is not None and isinstance(groups.value, dict):
        for group, view in groups.entries():
            python = view.get("requires-python") if view.is_table() else None
            if python is not None:
                key = f"uv.dependency-groups.{canonical(group)}.requires-python"
                manifest.setting(key, python)
    index = uv.get("index")
    if index is not None and isinstance(index.value, list):
        for item in index.items():
            date = item.get("exclude-newer") if item.is_table() else None
            if date is not None:
                manifest.setting("uv.index.exclude-newer", date)
    _check(manifest, uv)


def _check(manifest: Manifest, uv: View) -> None:
    """Note keys that uv does not know and values that it refuses."""
    whole = not uv.path  # a uv.toml
    pip = uv.get("pip")
    below = pip.entries() if pip is not None and pip.is_table() else ()
    for key, view in (*uv.entries(), *((f"pip.{key}", view) for key, view in below)):
        text = ""
        if key not in KNOWN and not (key[:4] == "pip." and key[4:] in PIP_KNOWN):
            text = f"uv 0.13.9 knows no key {key[:60]!r}"
        elif key in CHOICES and view.value not in CHOICES[key]:
            text = f"{key} must be one of {', '.join(CHOICES[key])}"
        elif key in _FLAGS and not isinstance(view.value, bool):
            text = f"{key} must be true or false"
        elif key in _LISTS and not isinstance(view.value, list):
            text = f"{key} must be an array of strings"
        if not text:
            continue
        if whole:
            manifest.problem(f"{text}: uv stops at this file", view.key, "option")
            continue
        manifest.ignored = manifest.ignored or text
        manifest.problem(
            f"{text}, and passes over all settings of [tool.uv]: indexes hold for sources alone",
            view.key,
            "misplaced",
        )


def _read_excluded(manifest: Manifest, uv: View) -> None:
    """Take in ``exclude-dependencies``: names, and names below one package."""
    found = uv.get("exclude-dependencies")
    if found is None or not isinstance(found.value, list):
        return
    for item in found.items():
        if isinstance(item.value, str):
            manifest.put(f"uv.exclude-dependencies.{canonical(item.value)}", "", item)
        elif isinstance(item.value, dict) and "package" in item.value:
            parent, below = _scoped(item)
            manifest.put(f"uv.exclude-dependencies-of.{parent}", ", ".join(below), item)


def _read_overrides(manifest: Manifest, uv: View) -> None:
    """Take in the overrides that are for the dependencies of one package."""
    found = uv.get("override-dependencies")
    if found is None or not isinstance(found.value, list):
        return
    for item in found.items():
        if isinstance(item.value, dict) and "package" in item.value:
            parent, below = _scoped(item)
            manifest.put(f"uv.override-dependencies-of.{parent}", "\n".join(below), item)


def _scoped(item: View) -> tuple[str, list[str]]:
    """Return ``NAME`` or ``NAME==VERSION`` of the parent and what it says of its dependencies."""
    package, below = item.value.get("package"), item.value.get("dependencies")
    return _parent(package), [str(one) for one in below] if isinstance(below, list) else []


def _parent(package: object) -> str:
    if not isinstance(package, dict):
        return canonical(str(package))
    name, version = package.get("name"), package.get("version")
    return canonical(str(name)) + (f"=={version}" if version else "")


def _read_metadata(manifest: Manifest, uv: View) -> None:
    """Take in ``dependency-metadata``: what stands in for the METADATA of a package."""
    found = uv.get("dependency-metadata")
    if found is None or not isinstance(found.value, list):
        return
    for item in found.items():
        if not isinstance(item.value, dict):
            continue
        requires = item.value.get("requires-dist", [])
        lines = [str(one) for one in requires] if isinstance(requires, list) else []
        manifest.put(f"uv.dependency-metadata.{_parent(item.value)}", "\n".join(lines), item)
        if "requires-python" in item.value:
            key = f"uv.dependency-metadata-python.{_parent(item.value)}"
            manifest.put(key, setting_text(item.value["requires-python"]), item)
