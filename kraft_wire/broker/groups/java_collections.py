"""Maps that are walked in the order of Java's, because Kafka's results depend on that order.

A server assignor gives partitions to members in the order in which a HashMap lists them, and the
records of an assignment list topics and partitions so. `JavaHashMap` is `java.util.HashMap`,
`TimelineHashMap` is `org.apache.kafka.timeline.TimelineHashMap`. Keys are hashed by `java_hash`.

Not here: bins that Java turns into trees (nine keys in a slot of a table of 64 slots or more).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, Generic, TypeAlias, TypeVar

from kraft_wire.java_hash import slot_of, text_hash, uuid_hash
from kraft_wire.model import Uuid

__all__ = [
    "JavaHashMap",
    "JavaKey",
    "TimelineHashMap",
    "java_hash",
    "java_hash_set",
    "java_order",
]

JavaKey: TypeAlias = str | int | bytes | tuple[Uuid, int]
"""A text, a partition, a topic id, or a topic id with a partition."""

_Key = TypeVar("_Key", bound=JavaKey)
_Value = TypeVar("_Value")

_INT32_MASK: Final = (1 << 32) - 1
_INT64_MASK: Final = (1 << 64) - 1
_DEFAULT_CAPACITY: Final = 16
_TREE_BIN: Final = 8
_TREE_CAPACITY: Final = 64
_TIMELINE_FACTOR: Final = -7046029254386353131


def java_hash(key: JavaKey) -> int:
    """Return what `hashCode` returns in Java, as an unsigned int32."""
    return key & _INT32_MASK if isinstance(key, int) else _hash_of_object(key)


def java_order(text: str) -> bytes:
    """Return what Java compares texts by: their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


@lru_cache(maxsize=1 << 12)
def _hash_of_object(key: str | bytes | tuple[Uuid, int]) -> int:
    if isinstance(key, str):
        return text_hash(key) & _INT32_MASK
    if isinstance(key, tuple):
        topic_id, partition = key
        return (31 * java_hash(topic_id) + partition) & _INT32_MASK
    return uuid_hash(key)


class _SlottedMap(ABC, Generic[_Key, _Value]):
    """A hash table that doubles; its slots are walked in ascending order."""

    __slots__ = ("_capacity", "_slots", "_values")
    __hash__ = None  # type: ignore[assignment]  # its contents change

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        """The number of slots, a power of two."""
        self._slots: dict[int, list[_Key]] = {}
        """The keys of each slot that was ever used, in order."""
        self._values: dict[_Key, _Value] = {}

    @abstractmethod
    def __setitem__(self, key: _Key, value: _Value) -> None: ...

    @abstractmethod
    def _index(self, key: _Key) -> int: ...

    def __eq__(self, other: object) -> bool:
        """Whether both hold equal values under equal keys, in any order."""
        return isinstance(other, _SlottedMap) and self._values == other._values

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[_Key]:
        for index in sorted(self._slots):
            yield from self._slots[index]

    def __getitem__(self, key: _Key) -> _Value:
        return self._values[key]

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key, None if it is missing."""
        return self._values.get(key)

    def pop(self, key: _Key) -> _Value | None:
        """Remove a key; return its value, None if it is missing."""
        if key not in self._values:
            return None
        self._slot(key).remove(key)
        return self._values.pop(key)

    def items(self) -> Iterator[tuple[_Key, _Value]]:
        """Yield keys and values in order."""
        for key in self:
            yield key, self._values[key]

    def copy(self) -> "JavaHashMap[_Key, _Value]":
        """Return the `HashMap` that is constructed with this map."""
        capacity = int(len(self) / 0.75 + 1) if len(self) else _DEFAULT_CAPACITY
        copied: JavaHashMap[_Key, _Value] = JavaHashMap(capacity)
        for key, value in self.items():
            copied[key] = value
        return copied

    def values(self) -> Iterator[_Value]:
        """Yield values in the order of their keys."""
        for key in self:
            yield self._values[key]

    def _slot(self, key: _Key) -> list[_Key]:
        return self._slots.setdefault(self._index(key), [])


class JavaHashMap(_SlottedMap[_Key, _Value]):
    """A map in the order of Java's `HashMap`: by slot, and in a slot by insertion."""

    __slots__ = ()

    def __init__(self, capacity: int = _DEFAULT_CAPACITY) -> None:
        """Take the capacity that Java's constructor is given."""
        super().__init__(1 << max(capacity - 1, 0).bit_length())

    def __setitem__(self, key: _Key, value: _Value) -> None:
        """Do what `put` does: a new key comes last in its slot."""
        if key not in self._values:
            slot = self._slot(key)
            slot.append(key)
            if len(slot) > _TREE_BIN and self._capacity < _TREE_CAPACITY:
                self._double()
            if len(self._values) + 1 > self._threshold:
                self._double()
        self._values[key] = value

    def add(self: "JavaHashMap[_Key, int]", key: _Key, more: int) -> None:
        """Count up or down, as `compute` does: a count of 0 is removed."""
        count = self.compute_if_absent(key, 0) + more
        if count:
            self[key] = count
        else:
            self.pop(key)

    def compute_if_absent(self, key: _Key, value: _Value) -> _Value:
        """Return a key's value, `value` if it is new: then the key comes first in its slot."""
        if len(self._values) > self._threshold:
            self._double()
        if key in self._values:
            return self._values[key]
        slot = self._slot(key)
        has_tree_size = len(slot) >= _TREE_BIN - 1
        slot.insert(0, key)
        if has_tree_size and self._capacity < _TREE_CAPACITY:
            self._double()
        self._values[key] = value
        return value

    @property
    def _threshold(self) -> int:
        return int(0.75 * self._capacity)

    def _index(self, key: _Key) -> int:
        return slot_of(java_hash(key), self._capacity)

    def _double(self) -> None:
        keys = list(self)
        self._capacity, self._slots = 2 * self._capacity, {}
        for key in keys:
            self._slot(key).append(key)


def java_hash_set(
    keys: Iterable[_Key], capacity: int = _DEFAULT_CAPACITY
) -> JavaHashMap[_Key, None]:
    """Return keys in the order of a `HashSet` to which they are added one by one."""
    added: JavaHashMap[_Key, None] = JavaHashMap(capacity)
    for key in keys:
        added[key] = None
    return added


class TimelineHashMap(_SlottedMap[_Key, _Value]):
    """A map in the order of Kafka's `TimelineHashMap`: by slot, and in a slot the newest first."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(2)

    def __setitem__(self, key: _Key, value: _Value) -> None:
        # Also before a value that replaces another one.
        if 3 * (len(self._values) + 1) > 4 * self._capacity:
            self._double()
        if key not in self._values:
            self._slot(key).insert(0, key)
        self._values[key] = value

    def _index(self, key: _Key) -> int:
        value = java_hash(key)
        signed = value - (value >> 31 << 32)
        bits = self._capacity.bit_length() - 1
        return (signed * _TIMELINE_FACTOR & _INT64_MASK) >> (64 - bits)

    def _double(self) -> None:
        former = [self._slots[index] for index in sorted(self._slots)]
        self._capacity, self._slots = 2 * self._capacity, {}
        for slot in former:
            for key in reversed(slot):
                self._slot(key).insert(0, key)
