"""Keys of large maps, sorted a slice at a time: the order that `sorted` gives, in short steps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_records import ImageOrder
from kraft_wire.metadata.sliced_order import SlicedOrder
from tests.metadata.snapshot import snapshot_records


def scattered(count: int) -> list[int]:
    return [number * 7_919 % count for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 9_999, 10_000, 10_001, 54_321])
@pytest.mark.parametrize("steps", [0, 2, 1_000])
def test_order_is_that_of_sorted_after_any_number_of_steps(count: int, steps: int) -> None:
    order = SlicedOrder(scattered(count))
    for _ in range(steps):
        order.step()
    assert list(order) == sorted(scattered(count))
    assert not order.step()


def test_steps_end_once_everything_is_dealt_out() -> None:
    order = SlicedOrder(scattered(25_000))
    assert [order.step() for _ in range(5)] == [True, True, True, False, False]


def rank(key: tuple[int, str | None]) -> tuple[int, bool, str]:
    return key[0], key[1] is not None, key[1] or ""


@given(st.lists(st.tuples(st.integers(0, 2), st.none() | st.sampled_from(["", "a"])), unique=True))
def test_keys_that_cannot_be_compared_come_by_their_rank(
    keys: list[tuple[int, str | None]],
) -> None:
    assert list(SlicedOrder(keys, rank)) == sorted(keys, key=rank)


@pytest.mark.parametrize("every", [3, 20_000])
def test_ranks_and_keys_give_one_order_in_whatever_slices_ranks_are_needed(every: int) -> None:
    keys = [(number // 9, None if number % every == 0 else f"{number}") for number in range(54_321)]
    scattered_keys = [keys[number] for number in scattered(len(keys))]
    unique = list(dict.fromkeys(scattered_keys))
    assert list(SlicedOrder(unique, rank)) == sorted(unique, key=rank)


def test_keys_without_order_and_without_rank_are_refused() -> None:
    with pytest.raises(TypeError):
        list(SlicedOrder([(0, None), (0, "")]))


def test_records_of_an_image_come_in_one_order_whether_it_was_made_in_steps_or_not() -> None:
    image = MetadataImage(
        offset=1,
        finalized_features={"metadata.version": 29},
        client_quotas={
            (("client-id", None), ("user", f"{number}")): {"request_percentage": 1.0}
            for number in scattered(25_000)
        },
        configs={(16, f"{number}"): {"interval.ms": "1"} for number in scattered(12_000)},
    )
    order = ImageOrder(image)
    assert len(list(order.steps())) == 5
    made = [each.record for each in snapshot_records(image, order)]
    assert made == [each.record for each in snapshot_records(image)]
    names = [each.resource_name for each in made if each.NAME == "ConfigRecord"]  # type: ignore[attr-defined]  # by its name
    assert all(one < other for one, other in pairwise(names))
