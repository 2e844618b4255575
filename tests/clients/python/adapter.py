"""What a Python client must be able to do for the scenarios to be written once for all of them."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Header = tuple[str, bytes | None]

OPERATION_SECONDS = float(os.environ.get("OPERATION_SECONDS", "30"))
REPLICAS = int(os.environ.get("REPLICAS", "1"))
"""Of every topic that a scenario creates."""
LEADERS_MOVE = REPLICAS > 1
"""Brokers restart meanwhile. Whoever retries then writes once and in order only as an idempotent
producer, and a member that joins its group again reads again what nobody has committed."""
GROUP_PROTOCOL = os.environ.get("GROUP_PROTOCOL", "classic")
"""Of members: classic, or consumer (KIP-848), whose session time-out is the broker's."""
SESSION_MS = 6_000 if LEADERS_MOVE else 45_000
"""Of a member. A coordinator keeps in memory that one left until the others have joined again. The
next coordinator waits for it one session, from its own beginning, which must be shorter than its
stay."""


class ScenarioFailed(AssertionError):
    """The broker's answer, as the client shows it, is not what Kafka's users rely on."""


@dataclass(slots=True)
class Produced:
    """A record to be produced."""

    value: bytes | None
    key: bytes | None = None
    headers: list[Header] = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(slots=True)
class Consumed:
    """A record as the client handed it out."""

    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None
    headers: list[Header] = field(default_factory=list)


class Member(ABC):
    """One running member of a consumer group, polling on its own."""

    def __init__(self) -> None:
        self.received: list[Consumed] = []

    @abstractmethod
    def assignment(self) -> set[int]:
        """The partitions that the member holds now."""

    @abstractmethod
    def leave(self) -> None:
        """Leave the group and end."""


class Reader(ABC):
    """A consumer of one partition that seeks."""

    @abstractmethod
    def seek_to_beginning(self) -> None:
        """Continue with the first record."""

    @abstractmethod
    def seek_to_end(self) -> None:
        """Continue with the record that is produced next."""

    @abstractmethod
    def next(self) -> Consumed:
        """The next record."""

    @abstractmethod
    def close(self) -> None:
        """End the consumer."""


class Adapter(ABC):
    """One client library over one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def brokers(self) -> list[str]:
        """``host:port`` of every broker that metadata shows."""

    @abstractmethod
    def partitions(self, topic: str) -> int | None:
        """How many partitions the topic has, None if there is no such topic."""

    @abstractmethod
    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        """Create a topic with REPLICAS replicas."""

    @abstractmethod
    def produce(
        self,
        topic: str,
        records: Sequence[Produced],
        *,
        codec: str = "none",
        idempotent: bool = LEADERS_MOVE,
    ) -> None:
        """Produce with acks=all and return when everything is acknowledged."""

    @abstractmethod
    def consume(self, topic: str, partitions: Sequence[int], count: int) -> list[Consumed]:
        """``count`` records from the beginning of the partitions, without a group."""

    @abstractmethod
    def consume_in_group(self, topic: str, group: str, count: int) -> list[Consumed]:
        """``count`` records as the only member of a group; their offsets are committed."""

    @abstractmethod
    def member(self, topic: str, group: str) -> Member:
        """Start one more member of a group."""

    @abstractmethod
    def offset_for_timestamp(self, topic: str, timestamp_ms: int) -> int | None:
        """The first offset of partition 0 at or after a timestamp, None if there is none."""

    @abstractmethod
    def reader(self, topic: str) -> Reader:
        """A seeking consumer of partition 0."""


class AdminAdapter(Adapter):
    """A client library that can also change and delete topics."""

    @abstractmethod
    def add_partitions(self, topic: str, total: int) -> None:
        """Grow the topic to ``total`` partitions."""

    @abstractmethod
    def alter_config(self, topic: str, key: str, value: str) -> None:
        """Set one topic config."""

    @abstractmethod
    def describe_config(self, topic: str, key: str) -> str:
        """The value of one topic config."""

    @abstractmethod
    def delete_topic(self, topic: str) -> None:
        """Delete the topic."""


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Poll a condition until it holds; ``what`` names it when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ScenarioFailed(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.05)


def gather(
    poll: Callable[[], Sequence[Consumed]], count: int, seconds: float = OPERATION_SECONDS
) -> list[Consumed]:
    """Poll until ``count`` records are there."""
    found: list[Consumed] = []
    deadline = time.monotonic() + seconds
    while len(found) < count:
        found.extend(poll())
        if time.monotonic() > deadline:
            raise ScenarioFailed(f"{len(found)} of {count} records within {seconds:.0f} s")
    return found
