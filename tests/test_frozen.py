"""`@frozen` beside the dataclass that it stands for: the same answers to the same questions."""

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from kraft_wire.frozen import frozen


@dataclass(frozen=True, slots=True)
class Judge:
    """What dataclasses make."""

    offset: int
    epoch: int = 3
    name: str | None = None

    def end(self) -> int:
        return self.offset + 1


@frozen
class Ours:
    """What we make."""

    offset: int
    epoch: int = 3
    name: str | None = None

    def end(self) -> int:
        return self.offset + 1


@frozen
class Other:
    offset: int
    epoch: int = 3
    name: str | None = None


@frozen
class Empty:
    """No field at all."""


@frozen
class Alone:
    """One field, which is a tuple itself."""

    ends: tuple[int, ...]


ARGUMENTS: list[Any] = [
    ((1,), {}),
    ((1, 2), {}),
    ((), {"offset": 7, "name": "a"}),
    ((1, 2, "b"), {}),
]


@pytest.mark.parametrize(("args", "more"), ARGUMENTS)
def test_fields_and_text_are_those_of_the_dataclass(args: Any, more: Any) -> None:
    ours, judge = Ours(*args, **more), Judge(*args, **more)
    assert [ours.offset, ours.epoch, ours.name] == [judge.offset, judge.epoch, judge.name]
    assert repr(ours) == repr(judge).replace("Judge", "Ours")
    assert ours.end() == judge.end()
    assert Ours.__match_args__ == Judge.__match_args__
    assert Ours.__doc__ == "What we make."


@pytest.mark.parametrize(("args", "more"), [((), {}), ((1, 2, "b", 4), {}), ((1,), {"x": 2})])
def test_wrong_arguments_are_refused_as_by_the_dataclass(args: Any, more: Any) -> None:
    for made in (Ours, Judge):
        with pytest.raises(TypeError):
            made(*args, **more)


def test_equal_fields_of_one_class_are_equal_and_hash_equal() -> None:
    assert Ours(1) == Ours(1, 3)
    assert hash(Ours(1)) == hash(Ours(1, 3))
    assert Ours(1) != Ours(2)
    strangers: list[object] = [Other(1), (1, 3, None), ()]
    assert all(Ours(1) != each for each in strangers)
    assert Empty() == Empty()
    assert all(Empty() != each for each in strangers)
    assert Alone((1, 2)) == Alone((1, 2))
    assert Alone((1, 2)) != Alone((2, 1))


def test_values_with_an_unhashable_field_are_refused_by_hash() -> None:
    with pytest.raises(TypeError):
        hash(Alone([1]))  # type: ignore[arg-type]  # on purpose


def test_nothing_can_be_changed_added_or_removed() -> None:
    ours = Ours(1)
    for name in ("offset", "more"):
        with pytest.raises(AttributeError, match="is frozen"):
            setattr(ours, name, 2)
    with pytest.raises(AttributeError, match="is frozen"):
        del ours.offset
    assert not hasattr(ours, "__dict__")


def test_copies_and_pickles_are_equal() -> None:
    ours = Ours(1, name="a")
    assert copy.deepcopy(ours) == ours
    assert pickle.loads(pickle.dumps(ours)) == ours


def test_match_takes_fields_by_place_and_by_name() -> None:
    match Ours(5, 6):
        case Ours(offset, epoch=epoch):
            assert (offset, epoch) == (5, 6)
        case _:
            pytest.fail("a class pattern did not match")
