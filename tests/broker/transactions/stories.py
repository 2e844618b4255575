"""Stories of transactional requests, told to any broker: what each request is answered.

A story is a generator over a door; what it yields must be the same on every broker. Producer ids
are numbered in the order in which they appear.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.transactions.coordinating import Producer

Story: TypeAlias = Callable[[Any, str], Iterator[Any]]

ATTEMPTS = 200


def done(answer: Callable[[], Any]) -> Any:
    """Ask until the markers of the transaction before are written."""
    for _ in range(ATTEMPTS):
        found = answer()
        if found not in (E.CONCURRENT_TRANSACTIONS, [E.CONCURRENT_TRANSACTIONS]):
            return found
        time.sleep(0.02)
    raise AssertionError("the transaction before is never complete")


def epochs_of_producers(door: Any, name: str) -> Iterator[Any]:
    producer = Producer(door, name)
    for expected in (-1, 0, 0, 1, 5):
        former = (producer.id, expected) if expected >= 0 else (-1, -1)
        yield producer.init(former), producer.epoch
    yield producer.init((producer.id + 1, producer.epoch)), producer.epoch
    yield producer.init(), producer.epoch
    yield producer.init((producer.id, producer.epoch - 1))
    for timeout_ms in (0, -1, 900_001):
        yield producer.init(timeout_ms=timeout_ms)
    for half in ((producer.id, -1), (-1, producer.epoch)):
        yield producer.init(half)
    yield Producer(door, "").init()


def commits_and_aborts_of_version_5(door: Any, name: str) -> Iterator[Any]:
    producer = Producer(door, name)
    yield producer.init()
    yield producer.commit(), producer.abort(), producer.epoch
    for commit in (True, False):
        yield done(lambda: producer.implicit(0))
        former = (producer.id, producer.epoch)
        yield producer.end(commit=commit), producer.epoch
        yield done(lambda: producer.end(commit=commit, identity=former)), producer.epoch  # noqa: B023  # asked at once
        yield done(lambda: producer.end(commit=not commit, identity=former)), producer.epoch  # noqa: B023  # asked at once
        yield done(producer.commit), producer.epoch
        later = (producer.id, producer.epoch + 1)
        yield done(lambda: producer.end(identity=later))  # noqa: B023  # asked at once
    yield done(producer.abort), producer.epoch
    yield done(lambda: producer.end(identity=(producer.id + 1, producer.epoch)))


def commits_and_aborts_of_older_versions(door: Any, name: str) -> Iterator[Any]:
    producer = Producer(door, name)
    yield producer.init()
    for version in range(5):
        yield done(lambda: producer.commit(version)), done(lambda: producer.abort(version))  # noqa: B023  # asked at once
        yield done(lambda: producer.add(version % 4, version=min(version, 3)))  # noqa: B023  # asked at once
        yield producer.abort(version), producer.epoch
        yield done(lambda: producer.abort(version)), done(lambda: producer.commit(version))  # noqa: B023  # asked at once
        behind = (producer.id, producer.epoch - 1)
        yield done(lambda: producer.end(version=version, identity=behind))  # noqa: B023  # asked at once
        yield Producer(door, name + "-absent").commit(version), Producer(door, "").commit(version)


def fenced(door: Any, name: str) -> Iterator[Any]:
    old, new = Producer(door, name), Producer(door, name)
    yield old.init(), old.add(0)
    yield new.init()
    yield done(new.init), new.epoch
    yield old.add(1), old.implicit(1), old.add_offsets("g"), old.commit(4), old.commit(5)
    yield old.add(1, version=1), old.add_offsets("g", 1), old.commit(1)
    yield new.implicit(0), Producer(door, name).init()
    retry = Producer(door, name)
    yield done(lambda: retry.init((new.id, new.epoch))), retry.epoch


def partitions_added(door: Any, name: str) -> Iterator[Any]:
    producer = Producer(door, name)
    yield producer.init()
    yield producer.implicit(0, verify_only=True), producer.implicit(1, 0, verify_only=True)
    for version in range(4):
        yield producer.add(0, 9, version=version)
        yield producer.add(0, topic="__consumer_offsets", version=version)
    yield producer.add(version=3)
    yield producer.add(0, 1), sorted(producer.implicit(1, 2, verify_only=True))
    yield producer.implicit(3), producer.implicit(0, 9)
    yield producer.implicit(0, 3, verify_only=True, version=4)
    yield Producer(door, name + "-absent").implicit(0), Producer(door, "").implicit(0)
    producer.epoch += 1
    yield producer.implicit(0), producer.add(0), producer.add(0, version=1)
    producer.id += 1
    yield producer.implicit(0), producer.add(0)


STORIES: tuple[Story, ...] = (
    epochs_of_producers,
    commits_and_aborts_of_version_5,
    commits_and_aborts_of_older_versions,
    fenced,
    partitions_added,
)
