"""Our reading of requirements files against pip's own parser, on a table and on real files."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pip._internal.exceptions import CommandError, InstallationError, PipError
from pip._internal.req import constructors, req_file
from pip._internal.utils.hashes import STRONG_HASHES
from pip._vendor.packaging.requirements import InvalidRequirement

from torchpin.documents import options as our_options
from torchpin.documents.base import Document
from torchpin.documents.requirements import read_requirements

Facts = Counter[tuple[object, ...]]

REFUSING = {"decode", "binary", "syntax", "specifier", "marker", "option"}


def pip_facts(path: str) -> Facts | None:
    """What pip makes of the file; None if it refuses it."""
    facts: Facts = Counter()
    session: Any = None
    parser = req_file.RequirementsFileParser(session, req_file.get_line_parser(None))
    try:
        for line in parser._parse_file(path, False):
            if line.requirement is not None:
                facts[_pip_requirement(line)] += 1
            elif line.opts.requirements:
                facts[("-r", line.opts.requirements[0])] += 1
            elif line.opts.constraints:
                facts[("-c", line.opts.constraints[0])] += 1
            else:
                _pip_options(line.opts, facts)
    except (InstallationError, InvalidRequirement, UnicodeDecodeError, LookupError):
        return None
    return facts


def _pip_requirement(line: req_file.ParsedLine) -> tuple[object, ...]:
    assert line.requirement is not None
    if line.is_editable and not line.args:
        name, url, _ = constructors.parse_editable(line.requirement)
        base = (name or "").partition(";")[0].partition("[")[0].strip()
        return ("editable", _canonical(base), _place(url))
    parts = constructors.parse_req_from_line(line.requirement, None)
    requirement, link = parts.requirement, parts.link
    hashes = tuple(
        sorted(
            f"{a}:{d}" for a, ds in (getattr(line.opts, "hashes", None) or {}).items() for d in ds
        )
    )
    marker = parts.markers or (requirement.marker if requirement is not None else None)
    found: str | None = requirement.url if requirement is not None else None
    if link is not None:
        found = link.url
    return (
        "requirement",
        _canonical(requirement.name if requirement is not None else ""),
        "" if found else _spec(str(requirement.specifier) if requirement is not None else ""),
        tuple(sorted(_canonical(e) for e in (requirement.extras if requirement else parts.extras))),
        str(marker) if marker is not None else "",
        "" if found is None else _place(found),
        hashes,
    )


def _pip_options(opts: Any, facts: Facts) -> None:
    if opts.no_index:
        facts[("--no-index", "")] += 1
    if opts.index_url:
        facts[("--index-url", opts.index_url)] += 1
    for url in opts.extra_index_urls or []:
        facts[("--extra-index-url", url)] += 1
    if opts.find_links:
        facts[("--find-links", opts.find_links[0])] += 1
    for name in ("pre", "prefer_binary", "require_hashes"):
        if getattr(opts, name):
            facts[("--" + name.replace("_", "-"), None)] += 1
    for host in opts.trusted_hosts or []:
        facts[("--trusted-host", host)] += 1


def _place(url: str) -> str:
    """URLs as they are; paths, which pip makes absolute, as one word."""
    return "file" if url.startswith("file:") or "://" not in url else url


def _canonical(name: str) -> str:
    from packaging.utils import canonicalize_name

    return str(canonicalize_name(name))


def _spec(text: str) -> str:
    from packaging.specifiers import SpecifierSet

    return str(SpecifierSet(text))


def our_facts(document: Document) -> Facts | None:
    """The same from our document; None if it says that pip refuses the file."""
    if any(problem.code in REFUSING for problem in document.problems):
        return None
    facts: Facts = Counter()
    for d in document.declarations:
        if not d.valid:
            continue
        if d.editable:
            url = d.url or ""
            facts[("editable", d.name, _place(url))] += 1
            continue
        marker = ""
        if d.marker is not None:
            from packaging.markers import Marker

            marker = str(Marker(d.marker))
        facts[
            (
                "requirement",
                d.name,
                d.specifier if "${" in d.specifier else _spec(d.specifier),
                tuple(sorted(d.extras)),
                marker,
                "" if d.url is None else _place(d.url),
                tuple(sorted(f"{h.algorithm}:{h.digest}" for h in d.hashes)),
            )
        ] += 1
    for include in document.includes:
        facts[("-c" if include.constraint else "-r", include.path)] += 1
    for line in document.indexes:
        if not line.misplaced:
            facts[(line.option, line.url)] += 1
    for option in document.options:
        if option.name in ("--pre", "--prefer-binary", "--require-hashes"):
            facts[(option.name, None)] = 1
        if option.name == "--trusted-host":
            facts[(option.name, option.value)] += 1
    return facts


def agree(path: Path, data: bytes) -> tuple[Facts | None, Facts | None]:
    path.write_bytes(data)
    pip, ours = pip_facts(str(path)), our_facts(read_requirements(str(path), data))
    if pip is not None:
        for name in ("--pre", "--prefer-binary", "--require-hashes"):
            if (name, None) in pip:
                pip[(name, None)] = 1
    return pip, ours


H = "--hash=sha256:" + "a" * 64
CASES = [
    "torch",
    "torch==2.14.1+cu126",
    "torch == 2.14.1+cu126",
    "  torch>=2,<3  ",
    "torch[opt-einsum,  x]>=2 ; python_version < '3.13'",
    "torch (==2.1)",
    "torch(>=2,<3);python_version<'3'",
    "torch===2.1",
    "torch\t==\t2.1",
    "torch~=2.1.0",
    "torch==2.8.*",
    "torch==2.8.0.*",
    "torch>=2.8.*",
    "torch>=2.4+cu121",
    "torch~=2.4+cu121",
    "torch!=2.4+cu121",
    "torch=2.1",
    "torch==2.1,",
    "torch==2.1,,>=1",
    "torch==",
    "torch==v2.1",
    "torch==2.1-post1",
    "torch==2.1RC1",
    "torch==2.1.post1.dev3",
    "torch<3a1",
    "torch>=2;",
    "torch>=2 ; nonsense",
    "torch>=2 ; (python_version<'3' and os_name=='nt') or extra=='x'",
    "torch>=2 ; 'linux' in sys_platform",
    "torch>=2 ; sys_platform not in 'win32 cygwin'",
    "torch>=2 ; python_version<'3' or",
    "torch>=2 ; ((python_version<'3')",
    "'torch==2.1'",
    '"torch==2.1"',
    "torch==2.1#comment",
    "torch==2.1 # comment",
    "torch==2.1 torchvision==0.16",
    "torch torchvision",
    "torch＝＝2.1",
    "“torch==2.1”",
    "torch==2.1，<3",
    "torch-==2",
    "-torch",
    "_torch",
    "torch[",
    "torch[a",
    "torch[a,]",
    "torch[]==2",
    "torch[,a]==2",
    "torch @ https://files.example/torch-2.9.1%2Bcu128-cp311-cp311-linux_x86_64.whl",
    "torch@https://files.example/torch-2.9.1-cp311-cp311-linux_x86_64.whl ; python_version<'3'",
    "torch@https://files.example/torch-2.9.1-cp311-cp311-linux_x86_64.whl;python_version<'3'",
    "https://files.example/torch-2.9.1%2Bcu128-cp311-cp311-linux_x86_64.whl",
    "https://files.example/torch-2.9.1-cp311-cp311-linux_x86_64.whl ; python_version<'3'",
    "https://files.example/torch-2.9.1-cp311-cp311-linux_x86_64.whl#sha256=abc",
    "https://files.example/torch-2.9.1.tar.gz",
    "./x.whl",
    "torch @ https://files.example/x.whl",
    "x.tar.gz",
    "./torch-2.9.1-cp311-cp311-linux_x86_64.whl",
    "wheels/torch-2.9.1-cp311-cp311-linux_x86_64.whl ; sys_platform=='linux'",
    "torch-2.9.1-cp311-cp311-linux_x86_64.whl",
    "file:///srv/torch-2.9.1-cp311-cp311-linux_x86_64.whl",
    "git+https://git.example/pytorch/pytorch@v2#egg=torch",
    "git+https://git.example/pytorch/pytorch@v2#egg=torch&subdirectory=x",
    "git+ssh://git@git.example/pytorch/pytorch",
    "torch @ git+https://git.example/pytorch/pytorch@v2",
    "-e git+https://git.example/pytorch/pytorch@v2#egg=torch",
    "--editable=git+https://git.example/pytorch/pytorch@v2#egg=torch",
    "-e 'torch @ git+https://git.example/pytorch/pytorch@v2'",
    "-e git+https://git.example/pytorch/pytorch@v2",
    "-e https://files.example/torch.zip",
    "-e file:///srv/torch#egg=torch",
    "-r other.txt",
    "-rother.txt",
    "-r=other.txt",
    "--requirement=other.txt",
    "--requirement other.txt # x",
    "-c 'with blank.txt'",
    "--constraint c.txt",
    "-r a.txt -r b.txt",
    "-r a.txt --index-url https://a.example/simple",
    "-i https://a.example/simple",
    "--index-url=https://a.example/simple",
    "--index https://a.example/simple",
    "--pypi-url https://a.example/simple",
    "--index-url https://a.example/simple --extra-index-url https://b.example/simple",
    "--extra-index-url https://b.example/simple --index-url https://a.example/simple",
    "-i https://a.example/simple -i https://b.example/simple",
    "-f https://a.example/x -f https://b.example/x",
    "--extra https://a.example/simple",
    "--find=https://a.example",
    "-fhttps://a.example",
    "--no-index",
    "--no-index=x",
    "--no",
    "--req x",
    "--index-url",
    "--pre --prefer-binary",
    "--pre torch",
    "--no-binary :all:",
    "--only-binary=:all: --trusted-host a.example",
    "--require-hashes",
    "--no-require-hashes",
    "--use-feature fast-deps",
    "--only-final :all:",
    "--unknown",
    "-x",
    "--index-url 'https://a.example",
    '--index-url "https://a.example/simple"',
    "--index-url https://a.example\\",
    f"torch==2.1 {H}",
    f"torch==2.1 \\\n    {H} \\\n    {H}",
    f"torch==2.1 \\\n{H}",
    f"torch==2.1 {H}   {H}\\\n   {H} # x",
    f"torch==2.1 {H}\t{H}",
    f"torch==2.1 {H}{H}",
    f"torch==2.1 {H}a",
    f"torch==2.1 {H} x",
    f"{H}",
    f"torch==2.1\\\n{H}",
    f"torch==2.1 \\\n\t{H}",
    f"torch==2.1 \\\n  # comment\n  {H}",
    f"torch==2.1 # comment \\\n  {H}",
    f"torch==2.1 # comment\\\n{H}\ntorchvision",
    "torch==2.1 --hash sha256:" + "b" * 64,
    "torch==2.1 --hash=md5:" + "b" * 32,
    "torch==2.1 --hash=abc",
    "torch==2.1 -C a=b --config-settings=c=d",
    "torch==2.1 -Ca=b",
    "torch==2.1 -C ab",
    "torch==2.1 --global-option=x",
    "torch==2.1 --index-url https://a.example/simple",
    "torch==2.1 -r other.txt",
    "torch==2.1 -- torchvision",
    "torch==2.1 -",
    "tor\\\nch==2.1",
    "torch\\",
    "torch \\\n\\\n==2.1",
    "\\torch==2.1\\\n",
    "torch==2.1 \\ \nfoo",
    "torch\x0ctorchvision",
    "torch # a\x0ctorchvision",
    "torch # a\u2028torchvision",
    "torch # a\x85torchvision",
    "torch\r\ntorchvision\rtorchaudio\n",
    "torch\xa0==2.1",
    "torch==2.1\xa0# c",
    "#torch",
    "   # torch \\\ntorchvision",
    "torch==${TORCHPIN_NOT_SET}",
    "--index-url https://${TORCHPIN_NOT_SET}@a.example/simple",
    "torch==" + "1" * 30,
    "torch==1!2.1",
    "torch>=1.0,!=1.5,<2;python_version>'3'",
    "torch; extra == 'x'",
    "torch ; python_version in '3.8, 3.9'",
    "torch ; 'a' == 'b'",
    "torch ; os.name == 'nt'",
    "torch ; platform_system == \"Linux\"and python_version < '3'",
    "torch==2.1 ;python_version<'3' --index-url x",
    ".",
    "..",
    "torch/sub",
    "torch >=2 /x",
    "\ufefftorch",
    "",
    "\n\n\n",
]

DISAGREE = {
    "torch @ https://files.example/x.whl": "pip refuses it too, one step after parsing",
    "torch==${TORCHPIN_NOT_SET}": "an unknown variable may hold a valid version where pip runs",
    ".": "pip looks on the disk; the reader does not",
    "torch/sub": "pip looks on the disk; the reader does not",
    "..": "pip looks on the disk; the reader does not",
}


@pytest.mark.parametrize("case", CASES)
def test_same_as_pip(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pip, ours = agree(tmp_path / "requirements.txt", case.encode())
    if case in DISAGREE:
        assert pip != ours, "no longer disagrees: move it to the other cases"
    else:
        assert ours == pip


ENCODED = [
    b"\xef\xbb\xbftorch==2.1\n",
    b"\xff\xfe" + "torch==2.1\r\n# é\n".encode("utf-16-le"),
    b"\xfe\xff" + "torch==2.1".encode("utf-16-be"),
    b"\xff\xfe\0\0" + "torch==2.1".encode("utf-32-le"),
    b"\0\0\xfe\xff" + "torch==2.1".encode("utf-32-be"),
    b"\xff\xfetorch",
    b"# -*- coding: latin-1 -*-\ntorch==2.1 # \xe9\n",
    b"\n# coding=cp1252\ntorch==2.1 # \x80\n",
    b"\n\n# coding=cp1252\ntorch==2.1 # \x80\n",
    b"torch # coding: latin-1 \xe9\n",
    b"# coding: no-such-codec\ntorch\n",
    b"# coding: ascii\ntorch # \xe9\n",
    b"# coding: utf-8-sig\ntorch\n",
    b"torch # \xe9\n",
]


@pytest.mark.parametrize("data", ENCODED)
def test_same_encoding_as_pip(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(req_file, "get_locale_encoding", lambda: "utf-8")
    pip, ours = agree(tmp_path / "requirements.txt", data)
    assert ours == pip
    document = read_requirements("requirements.txt", data)
    if ours is not None:
        assert document.encode(document.text) == data


def test_locale_fallback_as_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"torch==2.1 # caf\xe9\n"
    monkeypatch.setattr(req_file, "get_locale_encoding", lambda: "cp1252")
    (tmp_path / "r.txt").write_bytes(data)
    document = read_requirements("r.txt", data, fallback="cp1252")
    assert our_facts(document) == pip_facts(str(tmp_path / "r.txt"))
    assert [problem.code for problem in document.problems] == ["encoding"]
    assert document.text.endswith("café\n")
    assert document.encode(document.text) == data


def test_variables_as_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (
        b"torch==${V}\n--index-url https://${USER_1}:${lower}@a.example/${EMPTY}/${V}\n"
        b"${NAME} >= 1 # ${V}\n${A}${B}\\\n${V}\n"
    )
    values = {"V": "2.1", "USER_1": "me", "EMPTY": "", "NAME": "foo", "A": "ba", "B": "r=="}
    for name in ("V", "USER_1", "EMPTY", "NAME", "A", "B", "lower"):
        monkeypatch.setenv(name, values.get(name, "never"))
    path = tmp_path / "requirements.txt"
    path.write_bytes(data)
    document = read_requirements(str(path), data, values)
    assert our_facts(document) == pip_facts(str(path))
    assert all(d.from_variable for d in document.declarations)
    assert document.indexes[0].from_variable


def test_option_table_is_pips() -> None:
    """A new pip that knows other options shows up here."""
    known = req_file.build_parser().option_list
    pip_long = {name: bool(option.nargs) for option in known for name in option._long_opts}
    pip_short = {o._short_opts[0][1]: o._long_opts[0] for o in known if o._short_opts}
    assert pip_long == our_options.LONG
    assert pip_short == our_options.SHORT
    assert list(our_options.STRONG_HASHES) == list(STRONG_HASHES)


def _corpus() -> list[Path]:
    root = os.environ.get("TORCHPIN_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus"
    return sorted(Path(root, "requirements").glob("*")) if Path(root).is_dir() else []


def test_real_files_as_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = _corpus()
    if not files:
        pytest.skip("no corpus of real files here")
    monkeypatch.chdir(tmp_path)
    for file in files:
        data = file.read_bytes()
        pip, ours = agree(tmp_path / "requirements.txt", data)
        assert ours == pip, file.name


SCHEME = re.compile(
    r"(?:^\s*(?:--?[a-z-]+=?)?|[ \t@'\"])(?:(?:git|hg|svn|bzr)\+)?(?:https?|ssh|file)$"
)
"""The end of what stands before ``://`` in a URL that is whole."""

MUTANTS = [
    " ", "\\\n", "\n", "#", " #", ";", "'", '"', "-", " -", "--", "=", "==", ",", "[", "]", "(",
    ")", "@", " @ ", "\t", "\r", "\x0c", "/", ":", "${X}", "+", "*", "é", " -e ", " -i ",
    ".whl", "and", "--hash=sha256:aa", "<", "!", "~",
]  # fmt: skip


@pytest.mark.parametrize(
    "line", ["torch[a] torchvision", "torch[a]  b", "torch [a] b[c] d", "-r x.txt torch[a] b"]
)
def test_names_behind_extras_are_not_lost(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pip, ours = agree(tmp_path / "requirements.txt", line.encode())
    assert ours == pip


@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines_as_pip(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines with small accidents: pip refuses what we refuse, and reads the rest alike."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)
    lines = [case for case in CASES if case not in DISAGREE]
    for file in _corpus():
        text = file.read_bytes().decode("utf-8", "replace")
        lines += [line for line in text.splitlines() if line.strip() and len(line) < 200]
    for _ in range(400):
        line = rng.choice(lines)
        for _ in range(rng.randint(1, 2)):
            at = rng.randint(0, len(line))
            line = line[:at] + rng.choice(MUTANTS) + line[at + rng.randint(0, 1) :]
        if known_disagreement(line):
            continue
        try:
            pip, ours = agree(tmp_path / "requirements.txt", line.encode())
        except (ValueError, CommandError, PipError):  # pip stops elsewhere than it reads lines
            continue
        assert ours == pip, line


def known_disagreement(line: str) -> bool:
    """What depends on the disk, the environment or the release of pip, and what pip gets wrong."""
    joined = line.replace("\\\n", "")
    if "${X}" in joined or "--u" in joined:  # --use-feature and what is short for it
        return True
    if "://" in joined and not all(map(SCHEME.search, joined.split("://")[:-1])):
        return True  # of a damaged URL pip makes a path, or stops when it wants to fetch it
    if re.search(r"-e.*://\S*;", joined, re.DOTALL) or re.search(r"!.*\.whl|====", joined):
        return True  # a marker without a blank before it; a wheel name, a version of odd letters
    document = read_requirements("requirements.txt", line.encode())
    if any(
        # pip takes blanks for a part of a bare URL, and then cannot fetch it; wheel names behind
        # ``NAME @`` it looks at one step after parsing
        "behind the URL" in problem.message or "wheel file name" in problem.message
        for problem in document.problems
    ):
        return True
    return any(d.url is not None and "://" not in d.url for d in document.declarations)
