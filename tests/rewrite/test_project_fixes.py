"""Fixes of projects in the layouts that people write, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.record_golden import findings, torchpin  # noqa: E402

from torchpin.documents.pyproject import read_pyproject  # noqa: E402
from torchpin.documents.toml_view import read_toml  # noqa: E402
from torchpin.errors import RewriteError  # noqa: E402
from torchpin.rewrite.toml_edit import ShapeError  # noqa: E402
from torchpin.rewrite.uv_project import UvWriter  # noqa: E402
from torchpin.rewrite.uv_references import own_sources  # noqa: E402
from torchpin.rewrite.verify_project import check_project_edit  # noqa: E402

tomllib: Any = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")
V100 = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\npython = "3.11"\n'
MAC = V100 + '[fleet.mac]\ngpus = []\nplatform = "macos-arm64"\npython = "3.11"\n'
WINDOWS = V100 + (
    '[fleet.desk]\ngpus = ["Tesla V100"]\nplatform = "windows-x86_64"\ndriver = "580.88"\n'
    'python = "3.11"\n'
)
HEAD = '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.11"\n'
CHANNELS = "https://download.pytorch.org/whl"
LINUX = "sys_platform == 'linux'"


def fixed(
    tmp_path: Path, text: str | bytes, fleet: str = V100, *, unsafe: bool = True
) -> tuple[bytes, list[dict[str, Any]]]:
    """Return the file after ``fix`` and the findings that are left."""
    (tmp_path / "torchpin.toml").write_text(fleet, "utf-8")
    path = tmp_path / "pyproject.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = torchpin("fix", *(["--unsafe-fixes"] if unsafe else []), str(tmp_path))
    assert done.returncode in (0, 1), done.stderr
    return path.read_bytes(), [
        one for one in findings(tmp_path, []) if one["severity"] in ("error", "warning")
    ]


def sources(data: bytes) -> Any:
    return read_toml(data).data["tool"]["uv"]["sources"]  # TOML 1.1 too


def project(uv: str, dependencies: str = '"torch>=2.11"') -> str:
    return f"{HEAD}dependencies = [{dependencies}]\n{uv}"


INLINE = f'{{ name = "pt", url = "{CHANNELS}/cu130", explicit = true }}'
LAYOUTS = {
    "header": f"""
[tool.uv]
package = false # app

[tool.uv.sources]
torch = {{ index = "pt" }} # gpu

[[tool.uv.index]]
name = "pt"
url = "{CHANNELS}/cu130"
explicit = true
""",
    "dotted": f"""
[tool.uv]
sources.torch = {{ index = 'pt' }}
index = [{{ name = "pt", url = "{CHANNELS}/cu130", explicit = true }}]
""",
    "sub-table": f"""
[tool.uv.sources.torch] # torch
index = "pt"   # this one

[[tool.uv.index]]
explicit = true
url = '{CHANNELS}/cu130'
name = 'pt'
""",
    "list": f"""
[tool.uv.sources]
torch = [
    # for everybody
    {{ index = "pt" }}
]
[[tool.uv.index]]
name = "pt"
url = "{CHANNELS}/cu130"
explicit = true
""",
    "inline": f"""
[tool]
uv = {{ sources = {{ torch = {{ index = "pt" }} }}, index = [{INLINE}] }}
""",
    "out of order": f"""
[[tool.uv.index]]
name = "pt"
url = "{CHANNELS}/cu130"
explicit = true
[tool.ruff]
line-length = 100
[tool.uv.sources]
torch.index = "pt"
""",
    "dotted whole": f"""
[tool]
uv.sources.torch . index = 'pt'   # for all
uv.index = [{INLINE}]
""",
    "array of tables": f"""
[[tool.uv.sources.torch]]
index = "pt" # all

[[tool.uv.index]]
name = "pt"
url = "{CHANNELS}/cu130"
explicit = true
""",
    "lines": f"""
[tool.uv.sources]
torch = {{
    index = "pt", # all
}}
[[tool.uv.index]]
name = "pt"
url = "{CHANNELS}/cu130"
explicit = true
""",
}  # fmt: skip


@pytest.mark.parametrize("crlf", [False, True])
@pytest.mark.parametrize("bom", [False, True])
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_swap_in_every_layout(tmp_path: Path, layout: str, crlf: bool, bom: bool) -> None:
    text = project(LAYOUTS[layout])
    raw = (text.replace("\n", "\r\n") if crlf else text).encode()
    raw = b"\xef\xbb\xbf" + raw if bom else raw
    after, left = fixed(tmp_path, raw, MAC)
    assert left == [], left
    assert after.startswith(b"\xef\xbb\xbf") is bom
    body = after.removeprefix(b"\xef\xbb\xbf")
    if crlf:
        assert b"\n" not in body.replace(b"\r\n", b"")
    one = sources(body.replace(b"\r\n", b"\n"))["torch"]
    assert (one[0] if isinstance(one, list) else one) == {"index": "pt", "marker": LINUX}
    old = raw.removeprefix(b"\xef\xbb\xbf").decode()
    new = body.decode()
    for line in old.splitlines():
        if "torch" not in line and "cu130" not in line and "index" not in line:
            assert line in new.splitlines()
    assert [c for c in old if c == "#"] == [c for c in new if c == "#"]


def test_the_name_of_an_index_follows(tmp_path: Path) -> None:
    text = project(LAYOUTS["header"].replace('"pt"', '"torch-cu130"'))
    after, left = fixed(tmp_path, text)
    assert left == []
    assert after.count(b"torch-cu126") == 2
    assert b"cu130" not in after


def test_a_url_keeps_its_host(tmp_path: Path) -> None:
    text = project(LAYOUTS["header"].replace(CHANNELS, "https://mirror.example/pytorch/whl"))
    after, _ = fixed(tmp_path, text)
    assert b'url = "https://mirror.example/pytorch/whl/cu126"' in after


def test_windows_gpus_keep_their_builds(tmp_path: Path) -> None:
    after, left = fixed(tmp_path, project("[tool.uv]\npackage = false\n"), WINDOWS)
    assert left == []
    assert sources(after)["torch"]["marker"] == "sys_platform != 'darwin'"


def test_a_safe_fix_keeps_the_version(tmp_path: Path) -> None:
    text = project(LAYOUTS["header"], '"torch==2.14.1"')
    after, left = fixed(tmp_path, text, unsafe=False)
    assert left == []
    assert b'"torch==2.14.1"' in after
    text = project(LAYOUTS["header"])
    assert fixed(tmp_path, text, unsafe=False)[0] == text.encode()


def test_a_package_in_another_spelling(tmp_path: Path) -> None:
    uv = f'[tool.uv.sources]\nTorch = {{ index = "a" }}\n[[tool.uv.index]]\nname = "a"\nurl = "{CHANNELS}/cu130"\nexplicit = true\n'  # noqa: E501
    after, left = fixed(tmp_path, project(uv, '"Torch>=2.11"'))
    assert left == []
    assert list(sources(after)) == ["Torch"]


def test_a_companion_without_source_is_routed(tmp_path: Path) -> None:
    text = project(LAYOUTS["header"], '"torch>=2.11", "torchvision"')
    after, left = fixed(tmp_path, text)
    assert left == []
    assert set(sources(after)) == {"torch", "torchvision"}


def test_git_sources_are_left(tmp_path: Path) -> None:
    uv = '[tool.uv.sources]\ntorch = { git = "https://git.example/torch" }\n'
    text = project(uv)
    assert fixed(tmp_path, text)[0] == text.encode()


def test_constraints_of_others_stay(tmp_path: Path) -> None:
    uv = '[tool.uv]\nconstraint-dependencies = [\n    "numpy<3", # old\n]\n'
    after, left = fixed(tmp_path, project(uv, '"torchvision>=0.26"'))
    assert left == []
    value = tomllib.loads(after.decode())["tool"]["uv"]["constraint-dependencies"]
    assert value == ["numpy<3", "torch>=2"]
    assert b'    "numpy<3", # old\n    "torch>=2",\n]' in after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"numpy>=2"', '"numpy>=1"'),
        ("version = '0'", "version = '1'"),
        ('"torch"', '"torch'),
        ("line-length = 100", "line-length = 99"),
    ],
)
def test_what_no_fix_may_change(before: str, after: str) -> None:
    from torchpin.documents.base import Edit, Span

    text = (
        "[project]\nname = 'a'\nversion = '0'\ndependencies = [\"numpy>=2\", \"torch\"]\n"
        "[tool.ruff]\nline-length = 100\n"
    )
    document = read_pyproject("pyproject.toml", text.encode())
    at = text.index(before)
    edit = Edit(Span(at, at + len(before)), after)
    with pytest.raises(RewriteError):
        check_project_edit(document, text.replace(before, after, 1), (edit,))


def test_an_explicit_index_gets_a_name(tmp_path: Path) -> None:
    """uv refuses an explicit index without one."""
    text = project(f'[[tool.uv.index]]\nurl = "{CHANNELS}/cu128"\n', '"torch", "numpy"')
    data, left = fixed(tmp_path, text)
    assert left == []
    (index,) = tomllib.loads(data.decode())["tool"]["uv"]["index"]
    assert index == {"name": "pytorch-cu126", "url": f"{CHANNELS}/cu126", "explicit": True}
    assert sources(data)["torch"]["index"] == "pytorch-cu126"


def test_a_list_of_sources_keeps_its_layout_and_comments(tmp_path: Path) -> None:
    listed = (
        "torch = [\n"
        "  # what CI installs\n"
        '  { index = "cpu", extra = "cpu" },   # small\n'
        '  { index = "cu128", extra = "gpu" }\n'
        "]\n"
    )
    indexes = "".join(
        f'[[tool.uv.index]]\nname = "{name}"\nurl = "{CHANNELS}/{name}"\nexplicit = true\n'
        for name in ("cpu", "cu128")
    )
    uv = (
        '[project.optional-dependencies]\ncpu = ["torch==2.11.0"]\ngpu = ["torch==2.11.0"]\n'
        '[tool.uv]\nconflicts = [[{ extra = "cpu" }, { extra = "gpu" }]]\n'
        f"[tool.uv.sources]\n{listed}{indexes}"
    )
    data, _ = fixed(tmp_path, project(uv, ""))
    added = '  { index = "pytorch-cu126", extra = "cu126" },\n]\n'
    assert listed.replace('"gpu" }\n]\n', f'"gpu" }},\n{added}') in data.decode()


REFERENCE = """[project.optional-dependencies]
cpu = ["torch==2.11.0"]
cu126 = ["torch==2.11.0", "torchvision==0.26.0"]
all = [
  "app[cu126]",
  "numpy",  # last
]
[tool.uv]
conflicts = [[{ extra = "cpu" }, { extra = "cu126" }]]
[tool.uv.sources]
torch = [
  { index = "cpu", extra = "cpu" },  # CI
  { index = "cu126", extra = "cu126" },
]
torchvision = { index = "cu126", extra = "cu126" }
""" + "".join(
    f'[[tool.uv.index]]\nname = "{name}"\nurl = "{CHANNELS}/{name}"\nexplicit = true\n'
    for name in ("cpu", "cu126")
)


def test_an_extra_that_names_a_routed_one_gets_sources_of_its_own(tmp_path: Path) -> None:
    data, left = fixed(tmp_path, project(REFERENCE, ""))
    assert [one["code"] for one in left] == []
    text = data.decode()
    assert '  "numpy",  # last\n  "torch==2.11.0",\n  "torchvision==0.26.0",\n]' in text
    assert '{ extra = "cu126" }, { extra = "all" }]]' in text
    assert '"cpu" },  # CI\n' in text
    assert sources(data)["torch"][-1] == {"index": "cu126", "extra": "all", "marker": LINUX}
    assert sources(data)["torchvision"][-1] == {"index": "cu126", "extra": "all", "marker": LINUX}
    again, _ = fixed(tmp_path, data)
    assert again == data


def test_a_reference_to_extras_of_two_indexes_is_only_told() -> None:
    text = project(REFERENCE.replace('"app[cu126]"', '"app[cpu]", "app[cu126]"'), "")
    document = read_pyproject("pyproject.toml", text.encode())
    with pytest.raises(ShapeError, match="several indexes"):
        own_sources(UvWriter(document, ["torch", "torchvision"]))
