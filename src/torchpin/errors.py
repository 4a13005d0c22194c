"""The errors that a user can meet. Each carries the place and says what to do."""

from __future__ import annotations


class TorchpinError(Exception):
    """Base of all expected errors; ``exit_code`` is what the console script returns.

    Anything that escapes and is not a ``TorchpinError`` is a defect of torchpin (exit code 3).
    """

    exit_code = 2

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.hint = hint

    def __str__(self) -> str:
        place = ""
        if self.path is not None:
            place = f"{self.path}:{self.line}: " if self.line is not None else f"{self.path}: "
        tail = f"\n  {self.hint}" if self.hint else ""
        return f"{place}{self.message}{tail}"


class UsageError(TorchpinError):
    """The command line asks for something impossible."""


class ConfigError(TorchpinError):
    """The fleet profile or the settings are wrong."""


class CatalogError(TorchpinError):
    """Catalog data cannot be read."""


class RewriteError(TorchpinError):
    """An edit cannot be applied without risk; nothing was written."""
