"""The ``NamedTuple`` of torchpin is the one of ``typing``, only faster made."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import Any

import pytest

from torchpin import named

_META: Any = type(named.NamedTuple)


class Ours(named.NamedTuple):
    """What a class of a part looks like."""

    name: str
    number: int | None = None
    """A field with a text of its own."""
    more: tuple[str, ...] = ()

    @property
    def doubled(self) -> str:
        return self.name * 2

    @classmethod
    def empty(cls) -> Ours:
        return cls("")

    def __str__(self) -> str:
        return f"<{self.name}>"


class Theirs(typing.NamedTuple):
    """What a class of a part looks like."""

    name: str
    number: int | None = None
    more: tuple[str, ...] = ()


@pytest.mark.parametrize(
    "make",
    [
        lambda kind: kind("a"),
        lambda kind: kind("a", 1),
        lambda kind: kind(more=("x",), name="a"),
        lambda kind: kind("a", 1, ("x",))._replace(number=None),
        lambda kind: kind._make(iter(["a", 2, ()])),
        lambda kind: pickle.loads(pickle.dumps(kind("a", 1, ("x",)))),
        lambda kind: copy.deepcopy(kind("a", 1, ("x",))),
    ],
)
def test_values_are_those_of_a_typing_named_tuple(make: Any) -> None:
    ours, theirs = make(Ours), make(Theirs)
    assert type(ours) is Ours
    assert tuple(ours) == tuple(theirs) and ours == theirs and hash(ours) == hash(theirs)
    assert ours._asdict() == theirs._asdict()
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert (ours.name, ours.number, ours.more) == tuple(theirs)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda kind: kind(),
        lambda kind: kind("a", 1, (), 4),
        lambda kind: kind("a", other=1),
        lambda kind: kind("a", name="b"),
        lambda kind: kind._make(["a"]),
    ],
)
def test_wrong_calls_raise_a_type_error_that_names_the_field(wrong: Any) -> None:
    with pytest.raises(TypeError) as theirs:
        wrong(Theirs)
    with pytest.raises(TypeError) as ours:
        wrong(Ours)
    for text in ("'name'", "'other'", "1 argument", "4 "):
        assert (text in str(ours.value)) == (text in str(theirs.value))


def test_a_copy_with_a_name_that_is_no_field_is_refused() -> None:
    with pytest.raises(TypeError, match="'nmae'"):
        Ours("a")._replace(nmae="b")  # type: ignore[call-arg]


def test_the_class_says_what_a_typing_named_tuple_says() -> None:
    for name in ("_fields", "_field_defaults", "__doc__", "__match_args__"):
        assert getattr(Ours, name) == getattr(Theirs, name), name
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)
    assert Ours.__mro__[-2:] == (tuple, object)
    assert not hasattr(Ours("a"), "__dict__")
    assert Ours.__module__ == __name__ and Ours.__qualname__ == "Ours"
    with pytest.raises(AttributeError):
        Ours("a").name = "b"  # type: ignore[misc]


def test_methods_of_a_class_stay_its_own() -> None:
    assert (str(Ours("a")), Ours("a").doubled, Ours.empty()) == ("<a>", "aa", Ours(""))


def test_a_value_can_be_matched_and_inherited_from() -> None:
    class Heir(Ours):
        __slots__ = ()

    match Heir("a", 3):
        case Ours(name, number):
            assert (name, number) == ("a", 3)
        case _:
            pytest.fail("no match")
    assert type(Heir("a")._replace(number=1)) is Heir


@pytest.mark.parametrize("count", [0, 1, 11, 12, 13, 40])
def test_any_number_of_fields(count: int) -> None:
    fields = [f"field_{index}" for index in range(count)]
    kind: Any = _META(
        "Kind", (named.NamedTuple,), {"__annotations__": dict.fromkeys(fields, "int")}
    )
    values = tuple(range(count))
    assert kind(*values) == kind(**dict(zip(fields, values, strict=True))) == values
    assert [getattr(kind(*values), field) for field in fields] == list(values)


def test_a_late_field_without_a_default_is_refused() -> None:
    with pytest.raises(TypeError, match="without a default"):
        _META("Kind", (named.NamedTuple,), {"__annotations__": {"a": "int", "b": "int"}, "a": 1})
