"""Our maps are walked as Java's and Kafka's own are, after each step of a story."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from kraft_wire.broker.groups.java_collections import JavaHashMap, TimelineHashMap
from tests.apache.source_judge import answers_of

Step: TypeAlias = tuple[str, str]
Map: TypeAlias = JavaHashMap[str | int, int] | TimelineHashMap[str | int, int]

JUDGE = Path(__file__).parent / "MapJudge.java"
STORIES = 400
KEYS_MAX = 60
COLLIDING_MAX = 9
"""In one slot of a table of 16, which doubles for them; more make a tree of it in Java."""


def key_of(text: str) -> str | int:
    return int(text[1:]) if text[0] == "i" else text[1:]


def our_walks(story: list[Step]) -> Iterator[str]:
    """Yield the keys after each step."""
    walked: Map = JavaHashMap()
    for verb, value in story:
        match verb:
            case "hash":
                walked = JavaHashMap(int(value))
            case "timeline":
                walked = TimelineHashMap()
            case "put":
                walked[key_of(value)] = 1
            case "absent":
                assert isinstance(walked, JavaHashMap)
                walked.compute_if_absent(key_of(value), 1)
            case "pop":
                walked.pop(key_of(value))
            case "copy":
                walked = walked.copy()
        yield " ".join(f"{'i' if isinstance(each, int) else 's'}{each}" for each in walked)


def drawn_story(seed: int) -> list[Step]:
    """Draw a story of one map: a few keys, many, or some that share a slot."""
    chance = random.Random(seed)
    verbs = ["put", "put", "put", "absent", "pop", "copy"]
    begin: Step = ("hash", str(chance.choice((1, 2, 5, 16, 17, 40))))
    if seed % 3 == 0:
        begin, verbs = ("timeline", ""), ["put", "put", "pop"]
    count = chance.choice((3, 8, 9, 10, 13, KEYS_MAX))
    keys = [f"i{each}" for each in range(count)] + [f"smember-{each}" for each in range(count)]
    if seed % 5 == 0:
        keys = [f"i{256 * each}" for each in range(min(count, COLLIDING_MAX))]
        if begin[0] == "hash":
            begin, verbs = ("hash", "16"), ["put", "put", "absent", "copy"]
    chance.shuffle(keys)
    steps = [(chance.choice(verbs), chance.choice(keys[:count])) for _ in range(3 * count)]
    return [begin, *steps]


@pytest.mark.java
def test_maps_are_walked_in_javas_order() -> None:
    story = [step for seed in range(STORIES) for step in drawn_story(seed)]
    walked = answers_of(JUDGE, (f"{verb} {value}".strip() for verb, value in story)).split("\n")
    assert walked.pop() == ""  # the last line ends, too
    for step, ours, javas in zip(story, our_walks(story), walked, strict=True):
        assert ours == javas, step


def test_keys_of_a_slot_come_as_they_were_put_and_absent_ones_first() -> None:
    story = [("hash", "16"), ("put", "i17"), ("put", "i1"), ("absent", "i33"), ("put", "i0")]
    assert list(our_walks(story))[-1] == "i0 i33 i17 i1"  # as Java's own, by the test above


def test_the_newest_key_of_a_slot_comes_first_in_a_timeline_map() -> None:
    keys = [each for each in range(200) if index_of(each) == index_of(0)][:2]
    story = [("timeline", ""), *(("put", f"i{each}") for each in keys)]
    assert list(our_walks(story))[-1] == " ".join(f"i{each}" for each in reversed(keys))


def index_of(key: int) -> int:
    """Return the slot of a number in a table of two (`spreadHash` of Kafka's TimelineHashMap)."""
    return (key * -7046029254386353131 & (1 << 64) - 1) >> 63


@pytest.mark.parametrize(("count", "is_doubled"), [(7, False), (8, True)])
def test_slot_of_nine_keys_doubles_a_small_map(count: int, is_doubled: bool) -> None:
    """`HashMap.putVal` calls `treeifyBin`, which resizes below 64 slots: 16 leaves slot 0."""
    found: JavaHashMap[int, None] = JavaHashMap()
    found[16] = None
    for number in range(1, count + 1):
        found[64 * number] = None
    found[1] = None
    others = [64 * number for number in range(1, count + 1)]
    assert list(found) == ([*others, 1, 16] if is_doubled else [16, *others, 1])


@pytest.mark.parametrize(("count", "is_doubled"), [(6, False), (7, True)])
def test_slot_of_eight_keys_doubles_a_small_map_that_computes(count: int, is_doubled: bool) -> None:
    """`HashMap.computeIfAbsent` counts the keys before the new one, which comes first."""
    found: JavaHashMap[int, None] = JavaHashMap()
    found[16] = None
    for number in range(1, count + 1):
        found.compute_if_absent(64 * number, None)
    found[1] = None
    others = [64 * number for number in range(count, 0, -1)]
    assert list(found) == ([*others, 1, 16] if is_doubled else [*others, 16, 1])


def test_map_that_computes_doubles_with_the_key_after_the_one_that_fills_it() -> None:
    """`computeIfAbsent` compares the size before it adds a key, `put` after that."""
    orders = []
    for computes in (False, True):
        found: JavaHashMap[int, None] = JavaHashMap()
        for number in (*range(1, 12), 16, 32):
            if computes:
                found.compute_if_absent(number, None)
            else:
                found[number] = None
        orders.append(list(found))
    assert orders[0] == [32, *range(1, 12), 16]
    assert orders[1] == [32, 16, *range(1, 12)]
