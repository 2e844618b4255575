"""`@frozen` and `@slotted` beside the dataclasses that they stand for: the same answers."""

import copy
import itertools
import pickle
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pytest

from kraft_wire.frozen import frozen, maker, slotted


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedJudge:
    """Fields by name alone, one of them made anew, one neither compared nor printed."""

    limit: int = 1
    offset: int
    ends: list[int] = field(default_factory=list)
    source: str = field(default="here", compare=False, repr=False)


@frozen(kw_only=True)
class Named:
    limit: int = 1
    offset: int
    ends: list[int] = field(default_factory=list)
    source: str = field(default="here", compare=False, repr=False)


@dataclass(slots=True)
class MutableJudge:
    offset: int
    ends: list[int] = field(default_factory=list)
    name: str = "a"


@slotted
class Mutable:
    offset: int
    ends: list[int] = field(default_factory=list)
    name: str = "a"


@slotted(eq=False)
class Itself:
    """Equal to itself alone."""

    offset: int = 0


@dataclass(frozen=True, slots=True, order=True)
class OrderedJudge:
    offset: int
    epoch: int = 0


@frozen(order=True)
class Ordered:
    offset: int
    epoch: int = 0


PAIRS: list[Any] = [
    (Ordered, OrderedJudge),
    (Ours, Judge),
    (Named, NamedJudge),
    (Mutable, MutableJudge),
]


@pytest.mark.parametrize(("ours", "judge"), PAIRS)
def test_the_functions_of_dataclasses_answer_as_for_a_dataclass(ours: Any, judge: Any) -> None:
    mine, theirs = ours(offset=1), judge(offset=1)
    assert all(map(is_dataclass, (mine, ours)))
    assert asdict(mine) == asdict(theirs)
    told = [(f.name, f.type, f.default, f.default_factory, f.kw_only) for f in fields(ours)]
    assert told == [
        (f.name, f.type, f.default, f.default_factory, f.kw_only) for f in fields(judge)
    ]
    assert asdict(replace(mine, offset=2)) == asdict(replace(theirs, offset=2))
    assert replace(mine, offset=2) != mine
    assert replace(mine) == mine
    with pytest.raises(TypeError):
        replace(mine, stranger=2)
    assert ours.__match_args__ == judge.__match_args__
    assert repr(mine) == repr(theirs).replace(judge.__name__, ours.__name__)


@pytest.mark.parametrize("made", [Named, NamedJudge])
def test_fields_by_name_are_refused_by_place(made: Any) -> None:
    with pytest.raises(TypeError):
        made(1, 2)
    with pytest.raises(TypeError):
        made(limit=2)
    assert made(offset=3).limit == 1


@pytest.mark.parametrize("made", [Named, NamedJudge, Mutable, MutableJudge])
def test_a_default_factory_is_called_for_each_value(made: Any) -> None:
    first, second, given = made(offset=1), made(offset=1), [5]
    first.ends.append(4)
    assert (first.ends, second.ends) == ([4], [])
    assert made(offset=1, ends=given).ends is given


@pytest.mark.parametrize("made", [Named, NamedJudge])
def test_a_field_that_is_not_compared_makes_no_difference(made: Any) -> None:
    assert made(offset=1, source="there") == made(offset=1)
    assert made(offset=1, ends=[1]) != made(offset=1)
    values = [made(offset=1, ends=(), source=each) for each in ("here", "there")]
    assert hash(values[0]) == hash(values[1])


@pytest.mark.parametrize("made", [Named, NamedJudge, Mutable, MutableJudge])
def test_copies_and_pickles_keep_every_field(made: Any) -> None:
    value = made(offset=1, ends=[7])
    for copied in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert asdict(copied) == asdict(value)
        assert copied.ends is not value.ends


@pytest.mark.parametrize("made", [Mutable, MutableJudge])
def test_a_slotted_value_changes_and_has_no_hash(made: Any) -> None:
    value = made(1)
    value.offset = 2
    assert value == made(2)
    assert value != made(1)
    with pytest.raises(AttributeError):
        value.more = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)


def test_a_slotted_value_without_equality_is_equal_to_itself_alone() -> None:
    one, other = Itself(), Itself()
    assert one == one
    assert one != other
    assert {one: 1, other: 2}[one] == 1
    assert repr(one) == "Itself(offset=0)"


def test_what_only_a_dataclass_can_do_is_refused() -> None:
    class Checked:
        offset: int

        def __post_init__(self) -> None: ...

    class Later:
        offset: int = field(init=False)

    for cls in (Checked, Later):
        with pytest.raises(AssertionError, match="must be a dataclass"):
            slotted(cls)


@pytest.mark.parametrize("compare", [lt, le, gt, ge, eq, ne])
def test_values_are_ordered_as_those_of_the_dataclass(compare: Any) -> None:
    fields_given = [(1, 1), (1, 2), (2, 1), (2, 2)]
    for first, second in itertools.product(fields_given, repeat=2):
        told = compare(Ordered(*first), Ordered(*second))
        assert told is compare(OrderedJudge(*first), OrderedJudge(*second)), (first, second)


def test_values_of_two_classes_are_not_ordered() -> None:
    for first, second in ((Ordered(1), OrderedJudge(1)), (Ours(1), Ours(2))):
        with pytest.raises(TypeError, match="not supported"):
            lt(first, second)


def test_only_what_is_ordered_is_ordered() -> None:
    """Neither keywords alone nor anything else make values greater and smaller."""

    @frozen(kw_only=True)
    class Named:
        a: int

    @frozen(order=True)
    class Ordered:
        a: int

    with pytest.raises(TypeError):
        assert Named(a=1) < Named(a=2)  # type: ignore[operator]  # as it should be
    assert Ordered(1) < Ordered(2)


@slotted
class Made:
    offset: int
    epoch: int = 3
    name: str | None = None


@pytest.mark.parametrize(("args", "more"), ARGUMENTS)
def test_maker_makes_what_the_class_makes(args: Any, more: Any) -> None:
    made = maker(Made)(*args, **more)
    assert made == Made(*args, **more)
    assert made.__class__ is Made


@pytest.mark.parametrize(("args", "more"), [((), {}), ((1, 2, "b", 4), {}), ((1,), {"x": 2})])
def test_maker_refuses_what_the_class_refuses(args: Any, more: Any) -> None:
    for make in (maker(Made), Made):
        with pytest.raises(TypeError):
            make(*args, **more)
