"""From what the libraries of a wheel hold to the kernel lists of a build (pure).

The one place for the rule: the scripts that make the shipped data, a refresh and a verification
all ask it, so that the same wheel always gives the same lists.

* torch: what it states itself (``torch.cuda.get_arch_list()``), and libtorch_cuda_linalg.so: the
  targets that most of its fatbins hold. In most releases each holds the same; torch 2.15.0 has
  sm_75 in 1 of 33, which serves nobody; torch 1.13 leaves sm_70 out of 3 of 190, which few miss.
* Other packages: a target counts for a library if any of its fatbins holds it, so that what is said
  to be lacking is not there at all. The list that most libraries have stands for the build; those
  that differ are named. Where one library of several is loaded, or none, all of them are named.
* NVIDIA's libraries that a wheel brings along do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from torchpin.catalog.model import Kernels
from torchpin.patterns import regex

Counts = tuple[int, Mapping[str, int], Mapping[str, int]]
"""Number of fatbins; SASS target → in how many of them; PTX target → likewise."""
Stated = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""SASS, PTX and gfx that torch states."""

LINALG = "libtorch_cuda_linalg.so"
SEVERAL = ("bitsandbytes", "torchao")
"""Packages with a library for each CUDA or GPU, of which one is loaded or none."""
MAIN = {"xformers": "xformers/_C.so"}
"""Libraries that stand for a package whatever most of its libraries hold."""
_BUNDLED = regex(r"\.libs/|/(?:lib)?(?:cu(?:dart|blas|fft|rand|solver|sparse)|nvjpeg|npp)[^/]*$")


def counts(parts: Iterable[tuple[Iterable[str], Iterable[str], int]], others: int) -> Counts:
    """Return in how many fatbins each target is.

    Args:
        parts: SASS, PTX, and how many fatbins hold just these.
        others: how many hold nothing for a GPU.
    """
    total = others
    sass: dict[str, int] = {}
    ptx: dict[str, int] = {}
    for held, compiled, number in parts:
        total += number
        for targets, count in ((held, sass), (compiled, ptx)):
            for target in set(targets):
                count[target] = count.get(target, 0) + number
    return total, sass, ptx


def sorted_targets(targets: Iterable[str]) -> tuple[str, ...]:
    """Return targets by their number."""
    return tuple(sorted(targets, key=lambda text: (int(text.rstrip("af")), text)))


def is_own(path: str) -> bool:
    """Return whether a library, a path in the wheel, is the package's own."""
    return not _BUNDLED.search(path)


def kernel_lists(
    package: str,
    stated: Stated | None,
    libraries: Mapping[str, Counts],
    proof: str,
    evidence: str,
    library: str = "torch/lib/libtorch_python.so",
) -> tuple[Kernels | None, tuple[tuple[str, Kernels], ...]]:
    """Return the list that stands for a build, and the libraries that hold another one.

    Args:
        package: canonical name.
        stated: what torch states; None: nothing is found.
        libraries: path in the wheel → what it holds; for torch, those that were read.
        proof: names the wheel and its digest.
        evidence: of the lists.
        library: of torch, that states them.
    """
    if package == "torch":
        main = None
        if stated is not None and any(stated):
            main = Kernels(*stated, evidence, f"{proof} ({library})")
        return main, _linear_algebra(libraries, proof, evidence)
    lists = {
        path: (sorted_targets(sass), sorted_targets(ptx))
        for path, (_, sass, ptx) in sorted(libraries.items())
        if is_own(path) and (sass or ptx)
    }
    if not lists:
        return None, ()
    several = package in SEVERAL
    common = Counter(lists.values()).most_common(1)[0][0]
    common = lists.get(MAIN.get(package, ""), common)
    main = None if several else Kernels(*common, (), evidence, f"{proof} (.nv_fatbin)")
    names = Counter(path.rpartition("/")[2] for path in lists)
    return main, tuple(
        (_short(path, names), Kernels(*found, (), evidence, f"{proof} (.nv_fatbin of {path})"))
        for path, found in lists.items()
        if several or found != common
    )


def _short(path: str, names: Mapping[str, int]) -> str:
    """Return the file name of a library, with its folder where another one has the same."""
    name = path.rpartition("/")[2]
    return name if names[name] == 1 else path.partition("/")[2]


def _linear_algebra(
    libraries: Mapping[str, Counts], proof: str, evidence: str
) -> tuple[tuple[str, Kernels], ...]:
    path = next((path for path in libraries if path.rpartition("/")[2] == LINALG), None)
    if path is None:
        return ()
    total, sass, ptx = libraries[path]
    partial = [f"sm_{arch} in {number}" for arch, number in sass.items() if number != total]
    told = f"{total} fatbins" if total else "no device code"
    if partial:
        told += f", {', '.join(partial)} of them only"
    lists = Kernels(
        sorted_targets(arch for arch, number in sass.items() if 2 * number >= total),
        sorted_targets(arch for arch, number in ptx.items() if 2 * number >= total),
        (),
        evidence,
        f"{proof} (.nv_fatbin of {LINALG}: {told})",
    )
    return ((LINALG, lists),)
