"""Hand-made values for the report tests; nothing here needs the engine or the catalog."""

from __future__ import annotations

from torchpin.catalog.model import Build, Kernels
from torchpin.documents.base import Document, Edit, Span
from torchpin.fleet.model import Gpu, NodeGroup, Python, Target
from torchpin.report.model import CheckView
from torchpin.rules.model import Because, FileEdits, Finding, Fix, Related

TEXT = "numpy\ntorch==2.14.0+cu124  # pinned\n--extra-index-url https://user:s3cret@host.example/whl/cu124\n"


def document(text: str = TEXT, path: str = "requirements.txt") -> Document:
    return Document(path, "requirements", text, "utf-8", b"", "\n", (), (), (), (), (), ())


def finding(
    text: str = TEXT,
    needle: str = "torch==2.14.0+cu124",
    *,
    path: str = "requirements.txt",
    severity: str = "error",
    safety: str | None = "safe",
    message: str = "cu124 stopped at torch 2.6.0",
    doc: Document | None = None,
    code: str = "TP106",
) -> Finding:
    doc = doc or document(text, path)
    start = doc.text.index(needle)
    span = Span(start, start + len(needle))
    fix = None
    if safety is not None:
        edits = (
            () if safety == "display" else (FileEdits(doc, (Edit(span, "torch==2.14.0+cu126"),)),)
        )
        fix = Fix(safety, "use torch 2.14.0 from cu126", edits)
    return Finding(
        code,
        "discontinued-channel",
        severity,
        doc,
        doc.path,
        span,
        message,
        package="torch",
        group="volta",
        python="3.11",
        because=(Because("the last release on cu124 is 2.6.0", "bounded", "release notes"),),
        related=(Related("torchpin.toml", 3, "declared here"),),
        fix=fix,
    )


def view(*findings: Finding, unsafe: bool = False) -> CheckView:
    return CheckView(findings, 1, "2026-11-30", "0123abcd", unsafe)


def target(name: str = "volta", platform: str = "linux-x86_64", minor: int = 11) -> Target:
    gpu = Gpu("V100", "Tesla V100", "nvidia", (7, 0), None)
    python = Python(3, minor)
    return Target(NodeGroup(name, (gpu,), (python,), platform, driver="550.54.15"), python)


def build(
    package: str = "torch",
    version: str = "2.14.1",
    label: str = "cu126",
    platform: str = "linux-x86_64",
    home: str = "channel",
) -> Build:
    kernels = Kernels(("70", "90a"), ("120",), (), "measured", "wheel")
    return Build(
        package=package,
        version=version,
        label=label,
        channel=label or "cpu",
        home=home,
        platform=platform,
        pythons=("cp311",),
        pythons_inferred=("cp312",),
        kernels=kernels,
        libraries=(("libtorch_cuda_linalg.so", kernels._replace(ptx=())),),
        cuda="12.6",
        glibc="2.28",
        macos=None,
        requires_torch=None,
        requires_python=">=3.10",
        yanked=False,
        released="2026-09-01",
        evidence="lockfile",
        source="a lock file",
    )
