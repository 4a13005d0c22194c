"""Regular expressions that are compiled when they are first used, not when a module is imported.

A check imports a hundred of them and uses some forty: compiling all would take a tenth of its time.
"""

from __future__ import annotations

__all__ = ["regex"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import compile as regex
    from typing import Any
else:
    import re

    class _Late:
        """A pattern that is not compiled yet; it behaves as the ``re.Pattern`` it becomes.

        Functions of ``re`` do not take it: call its methods.
        """

        def __init__(self, pattern: str | bytes, flags: int) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):  # what copy and pickle ask for
                raise AttributeError(name)
            made = self.__dict__.get("_made")
            if made is None:
                made = self._made = re.compile(self.pattern, self._flags)
            value = getattr(made, name)
            setattr(self, name, value)  # asked for once only
            return value

        def __repr__(self) -> str:
            return f"regex({self.pattern!r})"

    def regex(pattern: str | bytes, flags: int = 0) -> _Late:
        """Return what ``re.compile(pattern, flags)`` returns, compiled at the first use.

        Raises:
            re.error: at the first use, if ``pattern`` is none.
        """
        return _Late(pattern, flags)
