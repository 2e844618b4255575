"""A queue that takes equal elements in the order of Java's: Kafka's assignors depend on it.

`heapq` moves elements along other paths, so equal elements would come in another order.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["JavaPriorityQueue"]

_Element = TypeVar("_Element")


class JavaPriorityQueue(Generic[_Element]):
    """`java.util.PriorityQueue` with a comparator by key; keys of elements inside stay equal."""

    __slots__ = ("_heap", "_key")

    def __init__(self, elements: Iterable[_Element], key: Callable[[_Element], float]) -> None:
        """Add elements one by one."""
        self._key = key
        self._heap: list[_Element] = []
        for element in elements:
            self.add(element)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: _Element) -> None:
        """Insert an element below all parents that are not greater."""
        heap, key = self._heap, self._key
        index, value = len(heap), key(element)
        heap.append(element)
        while index > 0:
            parent = (index - 1) // 2
            if value >= key(heap[parent]):
                break
            heap[index] = heap[parent]
            index = parent
        heap[index] = element

    def poll(self) -> _Element | None:
        """Remove the least element and return it; None: the queue is empty."""
        heap = self._heap
        if not heap:
            return None
        least, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return least

    def _sift_down(self, element: _Element) -> None:
        """Put an element in place of the root."""
        heap, key = self._heap, self._key
        index, value, size = 0, key(element), len(heap)
        while index < size // 2:
            child = 2 * index + 1
            if child + 1 < size and key(heap[child]) > key(heap[child + 1]):
                child += 1
            if value <= key(heap[child]):
                break
            heap[index] = heap[child]
            index = child
        heap[index] = element
