"""A build of torch from source as text, as a shell script and as a Dockerfile."""

from __future__ import annotations

from shlex import quote

from torchpin.named import NamedTuple
from torchpin.report.style import Style, clean
from torchpin.report.wrap import comment
from torchpin.resolve.source_facts import BUILD_REQUIREMENTS, IMAGES, SHIM, built_by_pip
from torchpin.resolve.source_model import BUILD, IMPOSSIBLE, WHEEL, Note, SourceBuild
from torchpin.select.channels import channel_url

GUIDE = "https://github.com/pytorch/pytorch#from-source"
NEEDS = {"torchvision": ("python -m pip install numpy pillow",)}
"""What a companion requires beside torch (its METADATA)."""


class Step(NamedTuple):
    """Commands that belong together, and why they are there."""

    why: str
    commands: tuple[str, ...]


def install_command(found: SourceBuild) -> str:
    """Return the pip command that installs the published build that serves."""
    build = found.wheel
    assert build is not None
    command = " ".join((f"python -m pip install torch=={build.full_version}", *found.beside))
    return command if build.home == "pypi" else f"{command} {_index(build.channel)}"


def _index(channel: str) -> str:
    return f"--extra-index-url {channel_url(channel)}"


def steps(found: SourceBuild) -> tuple[Step, ...]:
    """Return the commands of a build, in a virtual environment and an empty folder."""
    asked = found.asked
    torch = asked.torch
    out = [
        Step(
            f"the sources of torch {torch} with their submodules",
            (
                f"git clone --recursive --branch v{torch} https://github.com/pytorch/pytorch",
                "cd pytorch",
            ),
        ),
        Step(
            "what the build needs; a build backend too, because nothing is isolated\n"
            f"({BUILD_REQUIREMENTS})",
            (
                "python -m pip install --upgrade pip setuptools wheel ninja",
                "python -m pip install -r requirements.txt",
                "if [ -f requirements-build.txt ]; then",
                "  python -m pip install -r requirements-build.txt",
                "fi",
            ),
        ),
    ]
    alone = "for these GPUs alone" if asked.more else "for this GPU alone"
    if asked.gpu.gfx is not None:
        out.append(Step("turn the CUDA sources into HIP", ("python tools/amd_build/build_amd.py",)))
        out.append(Step(alone, (f"export PYTORCH_ROCM_ARCH={quote(found.arch)}",)))
    else:
        out.append(_cudnn(found))
        out.append(Step(alone, (f'export TORCH_CUDA_ARCH_LIST="{found.arch}"',)))
    out += [
        Step(
            "the version that companions ask for; without it the build is called 0a0+git",
            (f"export PYTORCH_BUILD_VERSION={torch} PYTORCH_BUILD_NUMBER=1",),
        ),
        _build(torch),
    ]
    force = "FORCE_CUDA=1 USE_ROCM=1" if asked.gpu.gfx else "FORCE_CUDA=1 USE_CUDA=1"
    for one in found.companions:
        folder = one.repository.rsplit("/", 1)[1]
        out.append(
            Step(
                f"{one.package} against that torch; --no-deps keeps pip from replacing it",
                (
                    *NEEDS.get(one.package, ()),
                    f"git clone --recursive --branch v{one.version} {one.repository}",
                    f"(cd {folder} && {force} BUILD_VERSION={one.version} \\",
                    "  python -m pip install . -v --no-build-isolation --no-deps)",
                ),
            )
        )
    if not asked.gpu.gfx:
        have = "torch._C._cuda_getArchFlags().split()"
        check = " and ".join(f"'{code}' in {have}" for code in asked.codes)
        command = f'python -c "import torch; assert {check}"'
        out.append(Step("the build holds code for the GPU", (command,)))
    return tuple(out)


def _cudnn(found: SourceBuild) -> Step:
    if found.asked.gpu.tegra:
        return Step("cuDNN is the one of the JetPack", ())
    them = "these GPUs" if found.asked.more else "this GPU"
    if found.cudnn is None:
        why = (
            f"no cuDNN is known to hold kernels for {them}: convolutions use torch's own; "
            "leave this line out to build with a cuDNN that does"
        )
        return Step(why, ("export USE_CUDNN=0",))
    package, version = found.cudnn
    where = "import nvidia.cudnn; print(nvidia.cudnn.__path__[0])"
    library = f"libcudnn.so.{version.split('.')[0]}"
    return Step(
        f"cuDNN {version} holds kernels for {them}; at run time torch must find it as well",
        (
            f"python -m pip install --no-deps {package}=={version}",
            f'CUDNN="$(python -c "{where}")"',
            f'ln -sf {library} "$CUDNN/lib/libcudnn.so"',
            'export CUDNN_INCLUDE_DIR="$CUDNN/include" CUDNN_LIBRARY="$CUDNN/lib"',
            'export LD_LIBRARY_PATH="$CUDNN/lib:${LD_LIBRARY_PATH:-}"',
        ),
    )


def _build(torch: str) -> Step:
    if built_by_pip(torch):
        return Step(
            f"setup.py builds no more (a shim from torch 2.14, {SHIM});\n"
            "MAX_JOBS=4 in front if the memory runs out",
            ("python -m pip install . -v --no-build-isolation", "cd .."),
        )
    return Step(
        "MAX_JOBS=4 in front if the memory runs out",
        ("python setup.py bdist_wheel", "python -m pip install dist/torch-*.whl", "cd .."),
    )


def text(found: SourceBuild, style: Style) -> str:
    """Return the answer for people: what serves, or the recipe with all that is to mind."""
    asked = found.asked
    gpu = f"{clean(asked.name)} ({', '.join(asked.codes) or asked.gpu.vendor})"
    python = f", Python {asked.python}" if asked.python else ""
    head = f"torch {asked.torch} on {gpu}, {asked.platform}{python}"
    lines: list[str] = []
    if found.status == WHEEL:
        lines += [style.paint("good", f"{head}: a published build serves it."), ""]
        lines += [f"    {install_command(found)}", ""]
    elif found.status == BUILD:
        lines.append(style.paint("bold", f"{head}: no published build is known to serve it."))
    elif found.status == IMPOSSIBLE:
        lines.append(style.paint("error", f"{head}: it cannot be built either."))
    else:
        lines.append(style.paint("error", f"{head}: no recipe is known."))
    lines += [f"  because: {_told(note)}" for note in found.because]
    if found.newest:
        lines += [
            "",
            f"torch {found.newest}, the newest, has no wheel known to serve it. "
            "Whether and how it can be built:",
            f"    {_source_command(found)}",
        ]
    if found.alone:
        lines += ["", f"Each by itself with torch {asked.torch}:"]
        lines += [
            f"    {clean(gpu.name)}: {build.place if build is not None else 'no wheel'}"
            for gpu, build in found.alone
        ]
    if found.status != WHEEL:
        lines += ["", *_alternative(found)]
    if found.status == BUILD:
        lines += ["", "Build it from source:", ""]
        if found.toolkit is not None:
            lines += _commented("the CUDA toolkit to build with", "    ")
            lines += [f"    export CUDA_HOME=/usr/local/cuda-{found.toolkit}", ""]
        for step in steps(found):
            lines += _commented(step.why, "    ")
            lines += [*(f"    {command}" for command in step.commands), ""]
        lines.append("What to mind:")
        lines += [f"  - {_told(note)}" for note in found.notes]
        sources = dict.fromkeys(n.source for n in (*found.because, *found.notes) if n.source)
        lines += ["", "Sources:", *(f"  {clean(one)}" for one in (*sources, GUIDE))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _source_command(found: SourceBuild) -> str:
    asked = found.asked
    words = ["torchpin", "recipe"]
    for gpu in asked.gpus:
        words += ["--gpu", gpu.written or gpu.name]
    words += ["--torch", found.newest]
    if asked.driver is not None:
        words += ["--driver", asked.driver]
    if asked.python is not None:
        words += ["--python", str(asked.python)]
    if asked.platform != f"linux-{asked.gpu.host or 'x86_64'}":
        words += ["--platform", asked.platform]
    return clean(" ".join(quote(word) for word in words))


def _told(note: Note) -> str:
    return f"{clean(note.text)} [{note.evidence}]"


def _alternative(found: SourceBuild) -> list[str]:
    build = found.last
    if build is None:
        return [
            "No wheel of any release is known to serve "
            + ("all of them." if found.asked.more else "it.")
        ]
    command = install_command(found._replace(wheel=build))
    them = "all of them" if found.asked.more else "it"
    return [f"The newest release with a wheel for {them} is torch {build.place}:", f"    {command}"]


def _commented(words: str, indent: str = "") -> list[str]:
    return [one for line in words.splitlines() for one in comment(line, indent)]


def _heading(found: SourceBuild, catalog_date: str) -> list[str]:
    asked = found.asked
    lines = [
        f"torch {asked.torch} for {asked.name} ({', '.join(asked.codes) or asked.gpu.vendor}), "
        f"{asked.platform}. By torchpin, catalog of {catalog_date}."
    ]
    lines += [f"- {_told(note)}" for note in (*found.because, *found.notes)]
    if found.status == BUILD and found.last is not None:
        lines.append(f"Without a build: torch {found.last.place} is the newest with a wheel.")
    if found.newest:
        lines.append(f"Whether and how torch {found.newest} can be built: {_source_command(found)}")
    return [
        one
        for line in lines
        for one in comment(clean(line), hang=2 if line.startswith("- ") else 0)
    ]


def script(found: SourceBuild, catalog_date: str) -> str:
    """Return a bash script: the build, or the installation of the wheel that serves."""
    lines = ["#!/usr/bin/env bash", *_heading(found, catalog_date), "set -euo pipefail", ""]
    python = f"python{found.asked.python}" if found.asked.python else "python3"
    if found.status == BUILD:
        lines += _toolkit_check(found)
    lines += [
        f'"${{PYTHON:-{python}}}" -m venv "${{VENV:-torch-venv}}"',
        "# shellcheck disable=SC1091",
        '. "${VENV:-torch-venv}/bin/activate"',
        "",
    ]
    if found.status == WHEEL:
        return "\n".join([*lines, install_command(found), ""])
    lines += ['mkdir -p "${WORK:-torch-source}"', 'cd "${WORK:-torch-source}"', ""]
    for step in steps(found):
        lines += [*_commented(step.why), *step.commands, ""]
    return "\n".join(lines)


def _toolkit_check(found: SourceBuild) -> list[str]:
    if found.asked.gpu.gfx is not None:
        return []
    home = f"/usr/local/cuda-{found.toolkit}" if found.toolkit else "/usr/local/cuda"
    return [
        f'export CUDA_HOME="${{CUDA_HOME:-{home}}}"',
        'export PATH="$CUDA_HOME/bin:$PATH"',
        *(line for code in found.asked.codes for line in _code_check(code)),
        "",
    ]


def _code_check(code: str) -> tuple[str, ...]:
    return (
        f"if ! nvcc --list-gpu-code | grep -qx {code}; then",
        f'  echo "the nvcc of $CUDA_HOME does not compile for {code}" >&2',
        "  exit 1",
        "fi",
    )


def dockerfile(found: SourceBuild, catalog_date: str) -> str:
    """Return a Dockerfile: the build, or the installation of the wheel that serves."""
    lines = ["# syntax=docker/dockerfile:1", *_heading(found, catalog_date)]
    python = found.asked.python
    if found.status == WHEEL:
        lines += [f"FROM python:{python or '3.12'}-slim", f"RUN {install_command(found)}", ""]
        return "\n".join(lines)
    lines += _base(found)
    lines += [
        "RUN apt-get update \\",
        " && apt-get install -y --no-install-recommends build-essential ca-certificates git \\",
        "      libopenblas-dev \\",
        " && rm -rf /var/lib/apt/lists/*",
        "COPY --from=ghcr.io/astral-sh/uv:latest /uv /usr/local/bin/uv",
        f"RUN uv venv --seed --python {python or '3.12'} /opt/venv",
        'ENV PATH="/opt/venv/bin:$PATH"',
        'SHELL ["/bin/bash", "-c"]',
    ]
    if found.cudnn is not None:
        at = f"/opt/venv/lib/python{python or '3.12'}/site-packages/nvidia/cudnn/lib"
        lines.append(f'ENV LD_LIBRARY_PATH="{at}:$LD_LIBRARY_PATH"')
    lines += ["WORKDIR /opt/torch-source", "RUN <<'BUILD'", "set -euo pipefail"]
    for step in steps(found):
        lines += [*_commented(step.why), *step.commands]
    return "\n".join([*lines, "rm -rf /opt/torch-source/*", "BUILD", "WORKDIR /", ""])


def _base(found: SourceBuild) -> list[str]:
    release = IMAGES.get(found.toolkit or "")
    if release is not None:
        return [
            f"ARG BASE=nvidia/cuda:{release}-devel-ubuntu22.04",
            "FROM ${BASE}",
        ]
    what = f"CUDA {found.toolkit}" if found.toolkit else "the right CUDA or ROCm"
    return [
        *comment(
            f"Which image holds {what} is not known. Give one with its compiler, of Ubuntu or "
            "Debian: `docker build --build-arg BASE=…`"
        ),
        "ARG BASE",
        "FROM ${BASE}",
    ]
