"""Do the libraries that torch brings (cuDNN, cuBLAS …) hold code for a GPU?

Without device code for the GPU in any file of a library, what torch does through it fails there:
"partly", never "fails", for the rest of torch runs. cuSPARSELt is left to run: it serves sparse
tensor cores, which begin with compute capability 8.0, so that older GPUs lose nothing by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from torchpin.catalog.internals import Internal, Internals, load_internals
from torchpin.catalog.model import Build, Kernels
from torchpin.evidence import INFERRED, weakest
from torchpin.fleet.model import Gpu, NodeGroup
from torchpin.judge.kernels import NONE, UNKNOWN, Match, kernel_match
from torchpin.judge.model import PARTLY, RUNS, Reason
from torchpin.judge.words import list_kernels, name_gpu
from torchpin.named import NamedTuple
from torchpin.patterns import regex

PRODUCTS = {
    "cudnn": ("cuDNN", "convolutions and recurrent layers"),
    "cublas": ("cuBLAS", "matrix products"),
    "nccl": ("NCCL", "communication between GPUs"),
    "cusolver": ("cuSOLVER", "torch.linalg"),
    "cusparse": ("cuSPARSE", "sparse matrices"),
    "cusparselt": ("cuSPARSELt", "semi-structured sparsity"),
}
"""Part of the package's name → name, and what torch uses it for.

cuFFT is left out: since CUDA 12.4 its kernels do not lie in its fatbins."""
BY_DESIGN = ("cusparselt",)
_NAME = regex(r"nvidia-([a-z]+)(?:-cu\d+)?\Z")


class Product(NamedTuple):
    """One of NVIDIA's libraries with all of its files."""

    key: str
    title: str
    """``cuDNN 9.10.2.21``"""
    use: str
    files: tuple[Internal, ...]
    kernels: Kernels
    """What its files hold together."""


def _ascending(codes: set[str]) -> tuple[str, ...]:
    return tuple(sorted(codes, key=lambda code: (int(code.rstrip("af")), code)))


def products(build: Build) -> tuple[Product, ...]:
    """Return the libraries with device code that a torch build brings, in the order of PRODUCTS."""
    if build.package != "torch":
        return ()
    return _products(load_internals(), build.version, build.platform, build.channel)


@lru_cache(maxsize=512)
def _products(
    internals: Internals, version: str, platform: str, channel: str
) -> tuple[Product, ...]:
    files: dict[str, list[Internal]] = {}
    for one in internals.libraries_of(version, platform, channel):
        match = _NAME.match(one.package)
        if match is not None and match[1] in PRODUCTS:
            files.setdefault(match[1], []).append(one)
    return tuple(
        Product(
            key, f"{title} {files[key][0].version}", use, tuple(files[key]), _together(files[key])
        )
        for key, (title, use) in PRODUCTS.items()
        if key in files
    )


def _together(files: Sequence[Internal]) -> Kernels:
    """Return what the files of a library hold together."""
    sass = {code for one in files for code in one.kernels.sass}
    ptx = {code for one in files for code in one.kernels.ptx}
    return files[0].kernels._replace(sass=_ascending(sass), ptx=_ascending(ptx))


def judge_internals(
    build: Build, gpu: Gpu, group: NodeGroup, cuda: str | None
) -> tuple[Reason, ...]:
    """Judge what a torch build brings on a GPU: one reason for all that runs, one a library that
    lacks.

    Nothing is said of what is not known, or is contested (Jetson).
    """
    brought = load_internals().brings(build)
    if brought is None or gpu.capability is None:
        return ()
    who = name_gpu(gpu)
    out: list[Reason] = []
    fine: list[tuple[Product, Match]] = []
    for product in products(build):
        lists = product.kernels
        match = kernel_match(
            lists.sass,
            lists.ptx,
            gpu.capability,
            tegra=gpu.tegra,
            jetpack=group.jetpack,
            cuda=cuda,
        )
        if match.how == UNKNOWN:
            continue
        if match.how != NONE:
            fine.append((product, match))
            continue
        text = (
            f"{who}: {product.title}, which {build.title} brings, holds kernels for "
            f"{list_kernels(lists)} only"
        )
        status = RUNS if product.key in BY_DESIGN else PARTLY
        rest = f"{product.use} is not for this GPU" if status == RUNS else f"{product.use} fail"
        out.append(
            Reason(
                "libraries",
                status,
                f"{text}, so {rest}" if status == PARTLY else f"{text}: {rest}",
                weakest(brought.evidence, lists.evidence),
                f"{brought.source}; {lists.source}",
                gpu,
                product.title,
            )
        )
    if fine:
        names = ", ".join(f"{product.title} ({match.code})" for product, match in fine)
        inferred = any(match.evidence == INFERRED for _, match in fine)
        evidence = INFERRED if inferred else weakest(brought.evidence, fine[0][0].kernels.evidence)
        out.insert(
            0,
            Reason(
                "libraries",
                RUNS,
                f"{who} finds kernels in what {build.title} brings: {names}",
                evidence,
                brought.source,
                gpu,
                ", ".join(product.title for product, _ in fine),
            ),
        )
    return tuple(out)


def not_known(build: Build) -> str:
    """Name NVIDIA's libraries of a CUDA build of torch that nobody looked at; ``""``: none."""
    seen = {product.key for product in products(build)}
    missing = [PRODUCTS[key][0] for key in ("cudnn", "cublas", "nccl") if key not in seen]
    if len(missing) == 3:
        return "cuDNN, cuBLAS and the other NVIDIA libraries"
    return " and ".join(missing)
