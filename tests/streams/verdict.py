"""Judge what a counting application wrote: each count of each key once, and the store the last."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

__all__ = ["counted_again", "lost_counts", "wrong_counts", "wrong_store"]

SHOWN = 5


def wrong_counts(fed: Mapping[str, int], counted: Iterable[tuple[str, int]]) -> list[str]:
    """What is wrong with the counts, in the order of their partitions; nothing where all is right.

    `fed` tells how many records of a key there were.
    """
    by_key: dict[str, list[int]] = defaultdict(list)
    for key, count in counted:
        by_key[key].append(count)
    wrong = [f"{key}: counts of a key that nobody fed" for key in sorted(by_key.keys() - fed)]
    for key, total in sorted(fed.items()):
        wrong += _wrong_sequence(key, by_key[key], total)
    return wrong


def _wrong_sequence(key: str, found: list[int], total: int) -> list[str]:
    if found == list(range(1, total + 1)):
        return []
    times = Counter(found)
    twice = [count for count, number in times.items() if number > 1]
    missing = [count for count in range(1, total + 1) if count not in times]
    above = [count for count in found if count > total]
    if not (twice or missing or above):
        return [f"{key}: counts out of order"]
    return [
        f"{key}: {len(found)} counts of {total}; {len(twice)} twice {twice[:SHOWN]}, "
        f"{len(missing)} missing {missing[:SHOWN]}, {len(above)} too high {above[:SHOWN]}"
    ]


def lost_counts(fed: Mapping[str, int], counted: Iterable[tuple[str, int]]) -> list[str]:
    """What an application that counts at least once has lost."""
    last = _highest_counts(counted)
    return [
        f"{key}: counted {last.get(key, 0)} of {total}"
        for key, total in sorted(fed.items())
        if last.get(key, 0) < total
    ]


def counted_again(fed: Mapping[str, int], counted: Iterable[tuple[str, int]]) -> int:
    """How many records an application that counts at least once has counted again."""
    last = _highest_counts(counted)
    return sum(max(0, last.get(key, 0) - total) for key, total in fed.items())


def _highest_counts(counted: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The highest count of each key."""
    highest: dict[str, int] = {}
    for key, count in counted:
        highest[key] = max(count, highest.get(key, 0))
    return highest


def wrong_store(fed: Mapping[str, int], changes: Iterable[tuple[str, int]]) -> list[str]:
    """What is wrong with the store, whose changes these are."""
    stored = dict(changes)
    keys = sorted(stored.keys() | fed.keys())
    return [
        f"{key}: the store has {stored.get(key)}, not {fed.get(key)}"
        for key in keys
        if stored.get(key) != fed.get(key)
    ]
