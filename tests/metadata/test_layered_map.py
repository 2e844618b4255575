"""A large map under its changes: at every moment what a plain dict would be, never far above it."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_draft import ImageDraft
from kraft_wire.metadata.layered_map import LARGE_ENTRIES, LayeredMap, own_copy

CHANGES = st.lists(st.tuples(st.sampled_from(["put", "drop", "fork"]), st.integers(0, 40)))


@given(st.integers(0, 30), CHANGES)
def test_layered_map_is_a_dict_after_any_changes_and_its_forks_are_left_alone(
    size: int, changes: list[tuple[str, int]]
) -> None:
    expected = {key: str(key) for key in range(size)}
    layered = LayeredMap(dict(expected))
    finished: list[tuple[LayeredMap[int, str], dict[int, str]]] = []
    numbers = count()
    for what, key in changes:
        if what == "put":
            expected[key] = layered[key] = f"changed {next(numbers)}"
        elif what == "drop":
            assert layered.pop(key, None) == expected.pop(key, None)
        else:
            finished.append((layered, dict(expected)))
            layered = layered.fork()
        assert len(layered) == len(expected) == len(list(layered))
        assert layered == expected
        assert all((key in layered) == (key in expected) for key in range(-1, 42))
    assert all(before == then for before, then in finished)


def test_changes_of_a_large_map_are_merged_once_they_are_many() -> None:
    layered = LayeredMap(dict.fromkeys(range(10_000), 0))
    deepest = 0
    for key in range(1_000):
        layered[key] = 1
        layered = layered.fork()
        deepest = max(deepest, len(layered._changes))
    assert deepest == 140
    assert sum(layered.values()) == 1_000


def test_filling_in_large_batches_merges_a_few_times_and_not_with_each_batch() -> None:
    layered: LayeredMap[int, int] = LayeredMap(dict.fromkeys(range(LARGE_ENTRIES), 0))
    merges = 0
    for first in range(LARGE_ENTRIES, 100_000, 1_000):
        layered.update(dict.fromkeys(range(first, first + 1_000), 0))
        layered = layered.fork()
        merges += not layered._changes
    assert 1 < merges < 15
    assert len(layered) == len(dict(layered))


def test_small_maps_are_copied_as_they_are() -> None:
    small = dict.fromkeys(range(LARGE_ENTRIES - 1), 0)
    assert type(own_copy(small)) is dict
    assert type(own_copy(small | {-1: 0})) is LayeredMap


def test_image_shares_its_large_map_with_the_next_one() -> None:
    users = [(("user", f"{number}"),) for number in range(LARGE_ENTRIES)]
    base = MetadataImage(client_quotas={user: {"request_percentage": 1.0} for user in users})
    draft = ImageDraft(base)
    draft.client_quotas.put(users[0], {"request_percentage": 2.0})
    draft.client_quotas.drop(users[1])
    image = draft.finish(1, 1)
    assert isinstance(image.client_quotas, LayeredMap)
    assert image.client_quotas._base is base.client_quotas
    assert image.client_quotas[users[0]] == {"request_percentage": 2.0}
    assert users[1] not in image.client_quotas
    assert base.client_quotas[users[0]] == {"request_percentage": 1.0}
    assert len(base.client_quotas) == len(image.client_quotas) + 1


def test_what_is_not_there_is_not_removed() -> None:
    """As by a dict: also what was removed before, in these changes or in the base."""
    layered = LayeredMap({1: "a"})
    layered[2] = "b"
    for key in (1, 2, 3):
        if key != 3:
            del layered[key]
        with pytest.raises(KeyError):
            del layered[key]
    assert (len(layered), dict(layered)) == (0, {})
