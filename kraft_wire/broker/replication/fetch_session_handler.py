"""The client's side of a fetch session (KIP-227): what a follower's next request contains.

The first request lists every partition; if the leader opens a session, later requests list new,
changed and removed partitions. The epoch counts requests, so that a lost or doubled one is noticed.
The handler starts over with a full request after an error of the session, an answer about
partitions that are not in it, or a broken connection.

Not here: the handling of partitions' answers (`following`), and when to send (`fetcher`).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from kraft_wire.model import Uuid
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)

__all__ = ["FetchPosition", "FetchSessionHandler", "PartitionKey"]

PartitionKey: TypeAlias = tuple[Uuid, int]
"""Topic id and partition: a topic that is deleted and made again is another one."""

_NO_SESSION: Final = 0
_FULL: Final = 0
_FIRST_INCREMENTAL: Final = 1
_EPOCH_MAX: Final = (1 << 31) - 1


class FetchPosition(NamedTuple):
    """The fields of one partition in a request; it is sent again when any of them changes."""

    topic: str
    fetch_offset: int
    log_start_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int
    """Epoch of the record before `fetch_offset`, -1 if the log has none."""
    partition_max_bytes: int


class FetchSessionHandler:
    """One session with one leader, or the wish for one."""

    def __init__(self) -> None:
        self.session_id = _NO_SESSION
        self.epoch = _FULL
        """Of the next request: 0 is a full one, which asks for a session."""
        self.session_partitions: dict[PartitionKey, FetchPosition] = {}
        """The fields last sent to the leader for each partition of the session."""
        self._wanted: dict[PartitionKey, FetchPosition] = {}
        self._changed: dict[PartitionKey, None] = {}
        """Partitions whose fields at the leader are outdated."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to fetch, and no session to update."""
        return not self._wanted and (self.epoch == _FULL or not self.session_partitions)

    def want(self, key: PartitionKey, position: FetchPosition) -> None:
        """Have the next request read a partition from a position."""
        self._wanted[key] = position
        if self.session_partitions.get(key) == position:
            self._changed.pop(key, None)
        else:
            self._changed[key] = None

    def drop(self, key: PartitionKey) -> None:
        """Have the next request leave a partition out."""
        self._wanted.pop(key, None)
        if key in self.session_partitions:
            self._changed[key] = None
        else:
            self._changed.pop(key, None)

    def start_over(self) -> None:
        """Make the next request a full one; it closes the session that it names."""
        self.epoch = _FULL

    def fill(self, request: FetchRequest) -> None:
        """Write session and partitions into a request; its fields count as sent."""
        assert not self.is_idle, "nothing to ask for"
        request.session_id, request.session_epoch = self.session_id, self.epoch
        if self.epoch == _FULL:
            request.topics = _topics(self._wanted.items())
            self.session_partitions = dict(self._wanted)
        else:
            listed = [(key, self._wanted[key]) for key in self._changed if key in self._wanted]
            forgotten = [key for key in self._changed if key not in self._wanted]
            request.topics = _topics(listed)
            request.forgotten_topics_data = _forgotten(
                [(key, self.session_partitions[key]) for key in forgotten]
            )
            self.session_partitions.update(listed)
            for key in forgotten:
                del self.session_partitions[key]
        assert len(self.session_partitions) == len(self._wanted), self.session_id
        self._changed = {}

    def take(self, response: FetchResponse) -> str | None:
        """Check an answer as a whole; None if its partitions are valid, else the reason.

        The order of the checks: an error of the whole, the set of partitions, the session.
        """
        if response.error_code != ErrorCode.NONE:
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = _NO_SESSION
            self.epoch = _FULL
            return error_name(response.error_code)
        problem = self._wrong_set(response)
        known_ids = (self.session_id, _NO_SESSION)
        if self.epoch != _FULL and response.session_id not in known_ids:
            problem = "another_session"
        if problem is not None:
            if self.epoch == _FULL:
                self.session_id = _NO_SESSION
            self.epoch = _FULL
            return problem
        self.session_id = response.session_id
        if response.session_id == _NO_SESSION:
            self.epoch = _FULL
        else:
            self.epoch = self.epoch + 1 if self.epoch < _EPOCH_MAX else _FIRST_INCREMENTAL
        return None

    def _wrong_set(self, response: FetchResponse) -> str | None:
        """Return what is wrong with the partitions of an answer.

        A full answer has each requested partition once; an incremental one only some of the
        session's.
        """
        found: dict[PartitionKey, None] = {}
        for topic in response.responses:
            for data in topic.partitions:
                key = (topic.topic_id, data.partition_index)
                if key not in self.session_partitions or key in found:
                    return "unexpected_partition"
                found[key] = None
        if self.epoch != _FULL or len(found) == len(self.session_partitions):
            return None
        return "throttled" if response.throttle_time_ms > 0 and not found else "missing_partition"


def _topics(positions: Iterable[tuple[PartitionKey, FetchPosition]]) -> list[FetchTopic]:
    """Group partitions by topic, in the order in which the topics first come."""
    topics: dict[Uuid, FetchTopic] = {}
    for (topic_id, partition), position in positions:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = FetchTopic(topic=position.topic, topic_id=topic_id)
        topic.partitions.append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=position.current_leader_epoch,
                fetch_offset=position.fetch_offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=position.partition_max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(positions: Iterable[tuple[PartitionKey, FetchPosition]]) -> list[ForgottenTopic]:
    topics: dict[Uuid, ForgottenTopic] = {}
    for (topic_id, partition), position in positions:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ForgottenTopic(topic=position.topic, topic_id=topic_id)
        topic.partitions.append(partition)
    return list(topics.values())
