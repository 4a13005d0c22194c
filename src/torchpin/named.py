"""``NamedTuple`` as in ``typing``, made many times faster: the start of a run is full of them.

A check defines more than a hundred of them. ``typing.NamedTuple`` compiles each annotation and each
constructor anew in each process, a fifth of the time of a cold check of one file. Here annotations
stay the text that they are, and constructors are copies of compiled ones, which differ in the names
of their arguments alone. For a type checker both are the same class, and so they are for users:
fields, defaults, ``_replace``, ``_asdict``, ``_make``, pickles, ``match``.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself is long to import
if TYPE_CHECKING:
    from typing import Any
    from typing import NamedTuple as NamedTuple
else:
    from types import FunctionType

    try:  # what collections.namedtuple does
        from _collections import _tuplegetter as _getter
    except ImportError:
        from operator import itemgetter

        def _getter(index: int, doc: str) -> property:
            return property(itemgetter(index), doc=doc)

    _new = tuple.__new__
    # By the number of fields. Written out, they are compiled when torchpin is installed.
    _CONSTRUCTORS = [
        lambda s: _new(s, ()),
        lambda s, a: _new(s, (a,)),
        lambda s, a, b: _new(s, (a, b)),
        lambda s, a, b, c: _new(s, (a, b, c)),
        lambda s, a, b, c, d: _new(s, (a, b, c, d)),
        lambda s, a, b, c, d, e: _new(s, (a, b, c, d, e)),
        lambda s, a, b, c, d, e, f: _new(s, (a, b, c, d, e, f)),
        lambda s, a, b, c, d, e, f, g: _new(s, (a, b, c, d, e, f, g)),
        lambda s, a, b, c, d, e, f, g, h: _new(s, (a, b, c, d, e, f, g, h)),
        lambda s, a, b, c, d, e, f, g, h, i: _new(s, (a, b, c, d, e, f, g, h, i)),
        lambda s, a, b, c, d, e, f, g, h, i, j: _new(s, (a, b, c, d, e, f, g, h, i, j)),
        lambda s, a, b, c, d, e, f, g, h, i, j, k: _new(s, (a, b, c, d, e, f, g, h, i, j, k)),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m: _new(s, (a, b, c, d, e, f, g, h, i, j, k, m)),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n)
        ),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n, p: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n, p)
        ),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q)
        ),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r)
        ),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t)
        ),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u)
        ),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u, v: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u, v)
        ),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u, v, w: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u, v, w)
        ),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u, v, w, x: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u, v, w, x)
        ),
        lambda s, a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u, v, w, x, y: _new(
            s, (a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r, t, u, v, w, x, y)
        ),
    ]

    def _constructor(count: int) -> FunctionType:
        """Return a constructor of ``count`` fields; their names do not matter."""
        while count >= len(_CONSTRUCTORS):
            names = "".join(f"a{index}, " for index in range(len(_CONSTRUCTORS)))
            made = eval(f"lambda s, {names}: _new(s, ({names}))", {"_new": _new})
            _CONSTRUCTORS.append(made)
        return _CONSTRUCTORS[count]

    class _Named(tuple):
        """What all named tuples share; as in ``collections.namedtuple``."""

        __slots__ = ()

        @classmethod
        def _make(cls, iterable: Any) -> Any:
            """Make one of the values of ``iterable``; TypeError if their number is wrong."""
            made = _new(cls, iterable)
            if len(made) != len(cls._fields):
                raise TypeError(f"expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes: Any) -> Any:
            """Return a copy with other values; TypeError if a field has no such name."""
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise TypeError(f"got unexpected field names: {[*changes]!r}")
            return made

        def _asdict(self) -> dict[str, Any]:
            """Return name → value."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            values = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({values})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        __replace__ = _replace

    class _Meta(type):
        """Makes a subclass of ``tuple`` of a class body with annotated fields."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            """Return the class of ``body``; TypeError if a field without a default is late."""
            fields = tuple(body.get("__annotations__", ()))
            defaults = {key: body[key] for key in fields if key in body}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: a field without a default follows one with a default")
            model = _constructor(len(fields)).__code__
            code = model.replace(co_varnames=("_cls", *fields), co_name="__new__")
            body["__new__"] = FunctionType(
                code, {"_new": _new}, "__new__", tuple(defaults.values())
            )
            for index, key in enumerate(fields):
                body[key] = _getter(index, key)
            body["__slots__"] = ()
            body["_fields"] = body["__match_args__"] = fields
            body["_field_defaults"] = defaults
            return type(name, (_Named,), body)

    NamedTuple = type.__new__(_Meta, "NamedTuple", (), {"__doc__": "See the module."})
