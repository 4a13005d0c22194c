"""The arguments of a command; the plain form ``check PATH…`` is read without argparse."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Arguments:
    """Parsed arguments by name, as argparse fills them in."""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return an argument; each command reads those that its parser declares."""

        def __setattr__(self, name: str, value: object) -> None:
            """Set an argument."""


def plain_check(argv: list[str]) -> Arguments | None:
    """Return the arguments of ``check`` if ``argv`` holds only paths, else None.

    Pre-commit runs this form. argparse would cost it a tenth of its time; a test compares the
    two readings.
    """
    if any(word.startswith("-") for word in argv):
        return None
    return Arguments(
        paths=list(argv),
        stdin_filename=None,
        skip_unknown=False,
        no_cache=False,
        jobs=0,
        catalog=None,
        diff=False,
        statistics=False,
        ignored=False,
        unsafe_fixes=False,
        policy=None,
        config=None,
        isolated=False,
        gpu=[],
        driver=None,
        python=[],
        platform=None,
        glibc=None,
        client=None,
        select=[],
        ignore=[],
        per_file_ignores=[],
        severity="warning",
        exit_zero=False,
        baseline=None,
        no_baseline=False,
        changed_since=None,
        evidence=None,
        output_format="text",
        no_color=False,
        quiet=False,
    )
