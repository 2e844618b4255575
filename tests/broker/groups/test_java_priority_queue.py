"""A queue in Java's order: the least comes first, equal ones along the heap's paths."""

from __future__ import annotations

import random

from kraft_wire.broker.groups.java_priority_queue import JavaPriorityQueue


def test_elements_come_in_order_of_their_keys() -> None:
    numbers = random.Random(1).choices(range(20), k=200)
    queue = JavaPriorityQueue(numbers, key=float)
    assert [queue.poll() for _ in range(len(queue))] == sorted(numbers)
    assert queue.poll() is None


def test_equal_elements_come_as_java_gives_them() -> None:
    """Polling moves the last element to the root, where it is not less than its children."""
    queue = JavaPriorityQueue("abcdefg", key=lambda _: 0)
    assert [queue.poll() for _ in range(len(queue))] == list("agfedcb")
