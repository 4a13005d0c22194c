"""Makes generated cases odd: how people write what ``generate`` writes in one way only.

A case of ``generate`` gets one to three twists: another spelling of an address, of an option, a
name, a specifier or a marker, files included twice, options that say the same or the opposite.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.clients.generate import MARKERS, ROOT, Case, case_of
from tests.clients.stub_facts import FAMILY

Files = dict[str, list[str]]
_URL = re.compile(r"\$B/(?:whl|pypi)\S*")
_INDEX = re.compile(r"^(-i|--index-url|--extra-index-url)[ =](\S+)$")
_NAMED = re.compile(r"^(torch|torchvision|torchaudio)(?![\w-])", re.IGNORECASE)


class _Twister:
    """Changes the lines of one case."""

    def __init__(self, rng: random.Random, case: Case) -> None:
        self.rng = rng
        self.case = case
        self.files: Files = {name: text.splitlines() for name, text in case.files.items()}

    # -- where to put it

    def place(self, found: Callable[[str], object]) -> tuple[str, int] | None:
        """Return file and number of one line for which ``found`` is true."""
        places = [
            (name, at)
            for name, lines in self.files.items()
            for at, line in enumerate(lines)
            if found(line)
        ]
        return self.rng.choice(places) if places else None

    def add(self, line: str, name: str | None = None) -> None:
        """Put a line somewhere in a file."""
        lines = self.files[name or self.rng.choice(sorted(self.files))]
        lines.insert(self.rng.randint(0, len(lines)), line)

    def change(self, found: Callable[[str], object], new: Callable[[str], str]) -> bool:
        """Replace one line."""
        place = self.place(found)
        if place is None:
            return False
        name, at = place
        self.files[name][at] = new(self.files[name][at])
        return True

    def change_requirement(self, new: Callable[[str, str], str]) -> bool:
        """Replace one requirement without URL or hash: ``new`` gets its name and the rest."""

        def plain(line: str) -> bool:
            return _NAMED.match(line) is not None and " @ " not in line and "--hash" not in line

        def changed(line: str) -> str:
            match = _NAMED.match(line)
            assert match is not None
            return new(match[0], line[match.end() :])

        return self.change(plain, changed)

    # -- addresses

    def spelled_url(self) -> None:
        def new(line: str) -> str:
            return _URL.sub(lambda m: self.other_url(m[0]), line, count=1)

        self.change(_INDEX.match, new)

    def other_url(self, url: str) -> str:
        plain = url.rstrip("/")
        last = plain.rpartition("/")[2]
        return self.rng.choice(
            (
                f"{plain}/",
                f"{plain}//",
                f"{plain}?x=1",
                f"{plain}/?x=1",
                f"{plain}#x",
                f"{plain}/.",
                plain.replace("$B", "$B/."),
                plain.replace("/whl/", "//whl/").replace("/pypi/", "//pypi/"),
                plain.replace("/whl/", "/whl//"),
                plain.removesuffix(last) + last.upper(),
                plain.replace("$B", "$U"),
                plain.replace("$B", "$C"),
                plain.replace("$B", "$H"),
                f'"{plain}"',
                f"'{plain}'",
                f"{plain} # {last}",
                f"{plain}#{last}",
                f"{plain}  ",
                plain + "/torch/",
                plain.replace("/whl/", "/whl/nightly/"),
                plain.replace("/whl/", "/whl/test/"),
                "$B/whl/${CHANNEL}",
                "$B/whl/$CHANNEL",
            )
        )

    def given_twice(self) -> None:
        place = self.place(_INDEX.match)
        if place is None:
            return
        line = self.files[place[0]][place[1]]
        found = _INDEX.match(line)
        assert found is not None
        option, url = found.groups()
        if self.rng.random() < 0.3:
            option = self.rng.choice(("--extra-index-url", "--index-url", "-i"))
        if self.rng.random() < 0.5:
            url = self.rng.choice(
                (f"{url.rstrip('/')}/", url.rstrip("/"), self.other_url(url), f"{url}//")
            )
        self.add(f"{option} {url}")

    def option_form(self) -> None:
        def new(line: str) -> str:
            match = _INDEX.match(line)
            assert match is not None
            option, url = match.groups()
            long = option if option != "-i" else "--index-url"
            return self.rng.choice(
                (
                    f"{long}  {url}",
                    f"{long}\t{url}",
                    f"  {long} {url}",
                    f"{long} \\\n  {url}",
                    f"{long} = {url}",
                    f"{long[:-1]} {url}",
                    f"{long[:-2]}={url}",
                    f"{long}={url}  # {url}",
                    f"{long} '{url}'",
                    f'{long}="{url}"',
                    f"{long.upper()} {url}",
                    f"{long}",
                    f"-i{url}",
                    f"-i={url}",
                    f"--pypi-url {url}",
                    f"--index {url}",
                    f"--default-index {url}",
                )
            )

        self.change(_INDEX.match, new)

    def more_indexes(self) -> None:
        self.add(
            self.rng.choice(
                (
                    "--extra-index-url $B/pypi/simple",
                    "--extra-index-url $B/pypi/simple/",
                    "--index-url $B/pypi/simple",
                    "--index-url $B/pypi/simple/",
                    "--no-index",
                    "--find-links $B/whl/torch_stable.html",
                    "--find-links $B/whl/cu126/torch/",
                    "--find-links $B/whl/cu126/torch",
                    "--find-links $B/whl/cpu/torchvision/",
                    "--find-links $B/pypi/simple/torch/",
                    "--find-links $B/pypi/simple",
                    "--find-links ./wheels",
                    "--find-links .",
                    "--find-links ./wheels/",
                    "-f$B/whl/cpu/torch/",
                    "-f=$B/whl/cpu/torch/",
                    "--extra-index-url $B/whl/cpu --extra-index-url $B/whl/cu126",
                    "--find-links $B/whl/cpu/torch/ --find-links $B/whl/cu126/torch/",
                    "--extra-index-url $B/nothing/here",
                    "--extra-index-url $B/whl/cu999",
                    "--extra-index-url",
                    "--extra-index-url $B/whl",
                    "--no-index --find-links $B/whl/cpu/torch/",
                )
            )
        )

    # -- names

    def name_form(self) -> None:
        forms = {
            "torch": ("Torch", "TORCH", "torch ", "torch[opt-einsum]", "torch [x]", "torch[x,y]"),
            "torchvision": (
                "TorchVision", "TORCHVISION", "torchVision ", "torchvision[scipy]",
            ),
            "torchaudio": ("TorchAudio", "torchaudio ", "torchaudio[x] "),
        }  # fmt: skip
        self.change_requirement(lambda n, rest: self.rng.choice(forms[n.lower()]) + rest)

    # -- specifiers

    def specifier_form(self) -> None:
        self.change_requirement(lambda name, rest: name + odd_specifier(self.rng, rest))

    # -- markers

    def marker_form(self) -> None:
        marker = odd_marker(self.rng, 2)
        form = self.rng.choice((" ; {}", ";{}", " ;{}", " ; {} # x", "; ({})", " ; {} "))
        self.change_requirement(lambda n, rest: n + rest.partition(" ;")[0] + form.format(marker))

    # -- the tree

    def included_again(self) -> None:
        others = [name for name in self.files if name != ROOT]
        if not others:
            self.split()
            others = [name for name in self.files if name != ROOT]
        name = self.rng.choice(others)
        option = self.rng.choice(("-r", "-c", "--requirement=", "--constraint "))
        blank = "" if option[-1] in "= " else " "
        where = self.rng.choice((ROOT, ROOT, *others))
        target = name if "/" not in where else f"../{name}"
        if self.rng.random() < 0.3:
            target = self.rng.choice((f"./{target}", f"{target}#x", f"'{target}'"))
        self.add(f"{option}{blank}{target}", where)

    def split(self) -> None:
        lines = self.files[ROOT]
        some = [line for line in lines if self.rng.random() < 0.5]
        lines[:] = [line for line in lines if line not in some]
        inner = self.rng.choice(("inner.txt", "deep/inner.txt"))
        self.files[inner] = some
        self.add(f"{self.rng.choice(('-r', '-r', '-c'))} {inner}", ROOT)
        if self.rng.random() < 0.5:
            self.files["outer.txt"] = [self.files[ROOT].pop()] if self.files[ROOT] else []
            self.add("-r outer.txt", ROOT)

    def index_below(self) -> None:
        others = [name for name in self.files if name != ROOT]
        if not others:
            return self.split()
        place = self.place(_INDEX.match)
        if place is not None:
            self.add(self.files[place[0]][place[1]], self.rng.choice(others))
        return None

    # -- requirements

    def asked_twice(self) -> None:
        place = self.place(_NAMED.match)
        if place is None:
            return
        line = self.files[place[0]][place[1]]
        if self.rng.random() < 0.6:
            self.add(line)
        else:
            match = _NAMED.match(line)
            assert match is not None
            self.add(match[0] + odd_specifier(self.rng, line[match.end() :]).partition("--hash")[0])

    def url_form(self) -> None:
        def new(line: str) -> str:
            name, _, rest = line.partition(" @ ")
            url, _, tail = rest.partition(" ")
            tail = f" {tail}" if tail else ""
            return self.rng.choice(
                (
                    f"{name}@{url}{tail}",
                    f"{url}",
                    f"{name} @ {url.replace('%2B', '+')}{tail}",
                    f"{name} @ {url}#egg={name}{tail}",
                    f"{name} @ {url}#sha256={'0' * 64}{tail}",
                    f"{name} @ {url}?x=1{tail}",
                    f"{url}#egg={name}",
                    f"{name} @ {url} ; {self.rng.choice(MARKERS)}",
                    f"{name} @ {url};{self.rng.choice(MARKERS)}",
                    f"{name}[x] @ {url}{tail}",
                    f"{name.upper()} @ {url}{tail}",
                    f"torch @ {url}{tail}",
                    f"{name} @ {url.replace('/whl/', '/whl//')}{tail}",
                )
            )

        if not self.change(lambda line: " @ $B" in line, new):
            self.name_form()

    def options(self) -> None:
        package = self.rng.choice(FAMILY)
        self.add(
            self.rng.choice(
                (
                    "--pre",
                    "--pre",
                    f"--only-binary {package}",
                    f"--only-binary={package},numpy",
                    "--only-binary :all:",
                    "--only-binary=:none:",
                    f"--no-binary {package}",
                    f"--no-binary=numpy,{package}",
                    "--no-binary :none:",
                    "--no-binary numpy",
                    f"--only-binary {package} --no-binary {package}",
                    "--prefer-binary",
                    "--trusted-host 127.0.0.1",
                    "--use-feature fast-deps",
                    "--use-feature truststore",
                    "--no-deps",
                    "--upgrade",
                    "-U",
                    "--prerelease allow",
                    "--index-strategy unsafe-best-match",
                    "--torch-backend cpu",
                    "--timeout 5",
                    "--quiet",
                    "--no-cache-dir",
                    "--process-dependency-links",
                    "--always-unzip",
                    "-Z",
                    "--use-wheel",
                    "--no-use-wheel",
                    "--allow-external torch",
                    "--unstable",
                )
            )
        )

    def behind(self) -> None:
        tails = (
            " --pre",
            " --no-deps",
            " --extra-index-url $B/whl/cpu",
            " -i $B/whl/cpu",
            ' --config-settings "a=b"',
            ' --global-option="x"',
            " \\",
            " #",
            " # torch==1.0",
            "#x",
            "\t# x",
            " torchaudio",
            ", torchaudio",
        )
        self.change(_NAMED.match, lambda line: line + self.rng.choice(tails))

    def layout(self) -> None:
        name = self.rng.choice(sorted(self.files))
        lines = self.files[name]
        match self.rng.randrange(7 if self.case.client == "pip" else 6):
            case 0:
                lines[:] = [f"{line}\r" for line in lines]
            case 1 if lines:
                lines[0] = "\ufeff" + lines[0]
            case 2:
                lines[:] = [f"  {line}\t" for line in lines]
            case 3:
                lines[:] = [x for line in lines for x in (line, "", "# no")]
            case 4:
                self.change_requirement(lambda n, rest: f"{n}\\\n{rest}")
            case 5:
                self.change_requirement(lambda n, rest: f"{n} \\\n  {rest} \\\n")
            case _:
                self.change_requirement(lambda n, rest: f"{n}{rest}\f")

    def case_(self) -> Case:
        texts = {name: "\n".join(lines) + "\n" for name, lines in self.files.items()}
        texts["wheels/none.txt"] = ""  # a folder for --find-links, without wheels
        return self.case._replace(files=texts)


def odd_specifier(rng: random.Random, rest: str) -> str:
    """Return another specifier near the one of ``rest``, which may end in a marker."""
    text, mark, tail = rest.partition(" ;")
    found = re.search(r"\d+(?:\.\d+)+", text)
    version = found[0] if found else rng.choice(("2.9.1", "2.10.0", "0.24.0", "2.11.0"))
    minor = ".".join(version.split(".")[:2])
    label = rng.choice(("cpu", "cu126", "cu130", "CU126", "cu_126", "cu.126"))
    new = rng.choice(
        (
            f"==={version}+{label}",
            f"=== {version}",
            f"===v{version}",
            f"==={minor}",
            f"=={minor}.*",
            f"!={minor}.*",
            f"!={minor}.*,>={minor}",
            f"=={minor[:-1]}*",
            f"==v{version}",
            f"==0!{version}",
            f"==1!{version}",
            f">=0!{version}",
            "<1!0",
            f"=={version}.0",
            f"=={version}.post1",
            f">{version}.post1",
            f">={version}.post1",
            f"<{version}.post1",
            f"<={version}.post0",
            f">={version}rc1",
            f">={version}a0",
            f"<{version}rc1",
            f"<{version}.dev1",
            f"<={version}rc1",
            f"=={version}rc1",
            f"!={version}rc1",
            f">{version}rc1",
            f"~={version}rc1",
            f"~={version}.0",
            f"~={minor}",
            f"~={minor.split('.')[0]}",
            f"=={version}+{label}",
            f"!={version}+{label}",
            f"!={version}+{label},!={version}",
            f"!={version}+{label},=={version}",
            f"=={version}+{label},=={version}",
            f"=={version}+{label},>={minor}",
            f"=={version}+{label},<={version}",
            f"=={version}+{label},<{version}",
            f"=={version}+{label},!={version}",
            f"=={version}+{label},~={version}",
            f"=={version}+{label},=={minor}.*",
            f">={version}+{label}",
            f"<={version}+{label}",
            f">{version}+{label}",
            f"~={version}+{label}",
            f"=={version}.*+{label}",
            f">={minor}.*",
            f"<{minor}.*",
            f"~={minor}.*",
            "==*",
            f">={version},",
            f",>={version}",
            f">={version} ,<  99",
            f" (>={minor})",
            f" (=={version})",
            f"(~={version}) ",
            f">={version}<99",
            f">={version} <99",
            f"={version}",
            f"=>{version}",
            f"=={version},=={version}",
            f"=={version},=={minor}",
            f"=={version},==={version}",
            f">{minor},>{version}",
            f" == {version} ",
            f"\t=={version}",
            f" {version}",
            f"=={version}-1",
            f"=={version}-{label}",
            f"=={version}_1",
            f">={version},!={version}.*",
            f"<={minor}",
            f"<{minor}",
            f">{minor}",
            f">={minor},<{minor}.99",
            f"=={minor}",
            f"==0{version}",
            f"=={version.replace('.', '.0', 1)}",
            "",
        )
    )
    return new + mark + tail


def odd_marker(rng: random.Random, depth: int) -> str:
    """Return a marker as people write them, right and wrong."""
    if depth and rng.random() < 0.5:
        one, other = odd_marker(rng, depth - 1), odd_marker(rng, depth - 1)
        word = rng.choice((" and ", " or ", "  and ", ") or (", " or not "))
        if word == " or not ":
            word = " or "
        if word.startswith(")"):
            return f"({one}{word}{other})"
        text = f"{one}{word}{other}"
        return f"({text})" if rng.random() < 0.5 else text
    return rng.choice(
        (
            *MARKERS,
            "sys_platform in 'linux darwin'",
            "sys_platform not in 'linux darwin'",
            "'linux' == sys_platform",
            "'lin' in sys_platform",
            "'win' not in sys_platform",
            "sys_platform == 'linux2'",
            "sys_platform >= 'linux'",
            "sys_platform in 'win32'",
            "sys_platform in 'win'",
            "sys_platform == ''",
            "platform_system == 'linux'",
            "platform_system in 'Linux,Darwin'",
            "platform_machine in 'x86_64 amd64 AMD64'",
            "platform_machine == 'arm64'",
            "platform_machine == 'AMD64' or platform_machine == 'x86_64'",
            "platform_python_implementation == 'CPython'",
            "platform_python_implementation != 'PyPy'",
            "python_implementation == 'CPython'",
            "implementation_name == 'pypy'",
            "implementation_name in 'cpython pypy'",
            "implementation_version >= '3.12'",
            "os_name == 'posix'",
            "os.name == 'posix'",
            "sys.platform == 'linux'",
            "platform.machine == 'x86_64'",
            "python_version == '3.11'",
            "python_version == '3.11.*'",
            "python_version == '3.1*'",
            "python_version != '3.10'",
            "python_version >= '3.9.1'",
            "python_version > '3.10'",
            "python_version > '3.10.5'",
            "python_version <= '3.11.0'",
            "python_version ~= '3.10'",
            "python_version === '3.11'",
            "python_version < '4'",
            "python_version < '3.9'",
            "python_version >= '3'",
            "python_version < 3.12",
            "'3.11' <= python_version",
            "'3.12' > python_version",
            "python_version in '3.11'",
            "python_version not in '3.10, 3.11'",
            "python_version in '3.1'",
            "python_version == '3.12' or python_version == '3.13'",
            "python_full_version >= '3.11.0'",
            "python_full_version < '3.12.0'",
            "python_full_version <= '3.12'",
            "python_full_version > '3.12'",
            "python_full_version == '3.11.*'",
            "python_full_version != '3.11.*'",
            "python_full_version >= '3.11.4'",
            "python_full_version < '3.13.0a1'",
            "platform_release >= '5'",
            "'tegra' in platform_release",
            "'tegra' not in platform_release",
            "platform_version == 'x'",
            "extra == 'gpu'",
            "extra != 'gpu'",
            "extra == ''",
            "'gpu' in extra",
            "sys_platform == 'linux' and extra == 'gpu'",
            "sys_platform == 'linux' or extra == 'gpu'",
            "sys_platform == os_name",
            "foo == 'x'",
            "sys_platform = 'linux'",
            "sys_platform",
            "",
            "sys_platform == 'linux' and",
            "sys_platform == \"linux'",
            "not sys_platform == 'linux'",
            "true",
        )
    )


TWISTS: tuple[str, ...] = (
    "spelled_url", "spelled_url", "given_twice", "given_twice", "option_form", "more_indexes",
    "more_indexes", "name_form", "specifier_form", "specifier_form", "specifier_form",
    "marker_form", "marker_form", "marker_form", "included_again", "included_again", "index_below",
    "asked_twice", "url_form", "options", "behind", "layout",
)  # fmt: skip


def odd_case_of(seed: int, number: int, client: str) -> tuple[Case, tuple[str, ...]]:
    """Return one case and its twists; the same arguments give the same case."""
    rng = random.Random(f"odd:{seed}:{number}:{client}")
    twister = _Twister(rng, case_of(seed, number, client))
    names = rng.sample(TWISTS, rng.choice((1, 1, 1, 2, 3)))
    for name in names:
        getattr(twister, name)()
    return twister.case_(), tuple(names)
