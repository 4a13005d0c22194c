"""From the fatbins of a wheel to the kernel lists of a build."""

from __future__ import annotations

from torchpin.catalog.kernel_lists import Counts, counts, is_own, kernel_lists

LINALG = "torch/lib/libtorch_cuda_linalg.so"


def lists(package: str, **held: str) -> tuple[str | None, dict[str, str]]:
    """Return the main list and those of libraries; ``a_so="80 90"`` is ``a.so`` in one fatbin."""
    libraries: dict[str, Counts] = {
        f"{package}/{name.replace('_so', '.so')}": counts([(text.split(), (), 1)], 0)
        for name, text in held.items()
    }
    main, beside = kernel_lists(package, None, libraries, "wheel", "measured")
    return (
        " ".join(main.sass) if main else None,
        {name: " ".join(found.sass) for name, found in beside},
    )


def test_counts() -> None:
    parts = [(("80", "90"), ("90",), 3), (("80",), (), 2)]
    assert counts(parts, 1) == (6, {"80": 5, "90": 3}, {"90": 3})


def test_what_most_libraries_hold_stands_for_the_build() -> None:
    held = {"a_so": "80 90", "b_so": "80 90", "c_so": "75 80 90"}
    assert lists("torchvision", **held) == ("80 90", {"c.so": "75 80 90"})


def test_where_one_of_several_is_loaded_all_are_named() -> None:
    held = {"cuda118_so": "50 80", "cuda130_so": "75 80"}
    main, beside = lists("bitsandbytes", **held)
    assert main is None
    assert beside == {"cuda118.so": "50 80", "cuda130.so": "75 80"}


def test_a_target_of_any_fatbin_counts_for_a_companion() -> None:
    library = counts([(("80",), (), 9), (("80", "90"), (), 1)], 0)
    main, _ = kernel_lists("torchaudio", None, {"torchaudio/x.so": library}, "w", "measured")
    assert main is not None
    assert main.sass == ("80", "90")


def test_libraries_of_nvidia_do_not_count() -> None:
    assert not is_own("torchvision.libs/libnvjpeg.36e1.so.13")
    assert not is_own("torchvision/nvjpeg64_12.dll")
    assert is_own("torchvision/_C.so")
    foreign = counts([(("50",), (), 1)], 0)
    assert kernel_lists("torchvision", None, {"x.libs/a.so": foreign}, "w", "measured") == (
        None,
        (),
    )


def test_torch_is_what_it_states_and_linalg_what_most_fatbins_hold() -> None:
    stated = (("75", "80"), (), ())
    linalg = counts([(("80",), (), 32), (("75", "80"), (), 1)], 0)
    main, beside = kernel_lists("torch", stated, {LINALG: linalg}, "w", "measured")
    assert main is not None
    assert main.sass == ("75", "80")
    ((name, found),) = beside
    assert (name, found.sass) == ("libtorch_cuda_linalg.so", ("80",))
    assert found.source.endswith("33 fatbins, sm_75 in 1 of them only)")
    ((_, empty),) = kernel_lists("torch", stated, {LINALG: counts([], 0)}, "w", "measured")[1]
    assert (empty.sass, empty.source) == (
        (),
        "w (.nv_fatbin of libtorch_cuda_linalg.so: no device code)",
    )
    assert kernel_lists("torch", None, {}, "w", "measured") == (None, ())
