"""`__consumer_offsets`: which partition a group belongs to, and how the topic comes to be.

The topic is created when the first client looks for a coordinator. Until it exists clients are told
COORDINATOR_NOT_AVAILABLE and ask again.
"""

from collections.abc import Callable
from struct import iter_unpack
from typing import Final

from kraft_wire.broker.groups.store import OFFSETS_TOPIC
from kraft_wire.broker.metadata.topic_creation import creatable_topic
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.wire.generated.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["OffsetsTopicCreation", "group_partition", "java_string_hash"]

_CREATION_TIMEOUT_MS: Final = 30_000
"""Kafka's `request.timeout.ms`; a request without an answer for so long is sent again."""


def java_string_hash(text: str) -> int:
    """Return what Java's `String.hashCode` returns: over UTF-16 units, as a signed int32."""
    value = 0
    for (unit,) in iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def group_partition(group_id: str, partition_count: int) -> int:
    """Return the partition of `__consumer_offsets` that a group's records are in."""
    assert partition_count > 0, partition_count
    value = java_string_hash(group_id)
    # The one number without a positive counterpart in int32 counts as zero, as in Kafka.
    return (0 if value == -(1 << 31) else abs(value)) % partition_count


class OffsetsTopicCreation:
    """Asks the controller for the topic, once at a time."""

    __slots__ = ("_ask", "_asked_until_ms", "failure")

    def __init__(self, ask: Callable[[Message, Callable[[Message], None]], None]) -> None:
        """Take what sends a request to the controller and calls back with the answer."""
        self._ask = ask
        self._asked_until_ms: int | None = None
        self.failure: str | None = None
        """Why the controller refused last, in its words; None when it did not."""

    def request(self, settings: BrokerSettings, now_ms: int) -> None:
        """Have the topic created, unless that is under way."""
        if self._asked_until_ms is not None and now_ms < self._asked_until_ms:
            return
        self._asked_until_ms = now_ms + _CREATION_TIMEOUT_MS
        topic = creatable_topic(settings, OFFSETS_TOPIC)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_CREATION_TIMEOUT_MS)
        self._ask(request, self._answered)

    def _answered(self, response: Message) -> None:
        """Allow the next request; created or not is seen in the metadata."""
        assert isinstance(response, CreateTopicsResponse), response
        self._asked_until_ms = None
        self.failure = None
        for topic in response.topics:
            if topic.error_code != ErrorCode.NONE:
                self.failure = topic.error_message
