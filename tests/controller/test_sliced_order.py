"""Keys of large maps, sorted a slice at a time: the order that `sorted` gives, in short steps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.controller.image import MetadataImage
from kraft_wire.controller.image_records import ImageOrder, snapshot_records
from kraft_wire.controller.sliced_order import SlicedOrder


def scattered(count: int) -> list[int]:
    return [number * 7_919 % count for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 9_999, 10_000, 10_001, 54_321])
@pytest.mark.parametrize("steps", [0, 2, 1_000])
def test_order_is_that_of_sorted_after_any_number_of_steps(count: int, steps: int) -> None:
    order = SlicedOrder(scattered(count), lambda key: -key)
    for _ in range(steps):
        order.step()
    assert list(order) == sorted(scattered(count), reverse=True)


def test_steps_end_once_everything_is_dealt_out() -> None:
    order = SlicedOrder(scattered(25_000), str)
    assert [order.step() for _ in range(5)] == [True, True, True, False, False]


@given(st.lists(st.integers(0, 9), max_size=30))
def test_keys_of_equal_rank_keep_their_order(keys: list[int]) -> None:
    order = SlicedOrder(list(enumerate(keys)), lambda each: each[1])
    assert list(order) == sorted(enumerate(keys), key=lambda each: each[1])


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
