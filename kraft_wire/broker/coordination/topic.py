"""The internal topic of a coordinator: its settings, the partition of a key, and its creation.

The topic is created when the first client looks for a coordinator. Until it exists clients get
COORDINATOR_NOT_AVAILABLE and retry.
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.broker.metadata.topic_creation import creatable_topic
from kraft_wire.broker.ports import AskController
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.frozen import frozen
from kraft_wire.java_hash import text_hash
from kraft_wire.wire.generated.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["CoordinatorTopic", "CoordinatorTopicCreation", "key_partition"]

_CREATION_TIMEOUT_MS: Final = 30_000
"""Kafka's `request.timeout.ms`; a request without an answer for so long is sent again."""


@frozen
class CoordinatorTopic:
    """The topic that one kind of coordinator keeps its state in.

    Settings are read at each use: a dynamic change replaces the broker's settings as a whole.
    """

    name: str
    partition_count: Callable[[], int]
    """How many partitions the topic will be created with."""
    commit_timeout_ms: Callable[[], int]
    """How long an append may wait for the ISR."""
    clean_up_interval_ms: Callable[[], int]
    """How often the shards remove expired state."""


def key_partition(key: str, partition_count: int) -> int:
    """Return the partition that the records of a key are in: a group id, a transactional id."""
    assert partition_count > 0, partition_count
    value = text_hash(key)
    # The one number without a positive counterpart in int32 counts as zero, as in Kafka.
    return (0 if value == -(1 << 31) else abs(value)) % partition_count


class CoordinatorTopicCreation:
    """Asks the controller for the topic, once at a time."""

    __slots__ = ("_ask", "_asked_until_ms", "_topic", "failure")

    def __init__(self, topic: str, ask: AskController) -> None:
        """Take a function that sends a request to the controller and returns by callback."""
        self._topic = topic
        self._ask = ask
        self._asked_until_ms: int | None = None
        self.failure: str | None = None
        """The controller's last error message; None after a success."""

    def request(self, settings: BrokerSettings, now_ms: int) -> None:
        """Have the topic created, unless that is in progress."""
        if self._asked_until_ms is not None and now_ms < self._asked_until_ms:
            return
        self._asked_until_ms = now_ms + _CREATION_TIMEOUT_MS
        topic = creatable_topic(settings, self._topic)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_CREATION_TIMEOUT_MS)
        self._ask(request, self._answered)

    def _answered(self, response: Message, now_ms: int) -> None:
        """Allow the next request; created or not is seen in the metadata."""
        assert isinstance(response, CreateTopicsResponse), response
        self._asked_until_ms = None
        self.failure = None
        for topic in response.topics:
            if topic.error_code != ErrorCode.NONE:
                self.failure = topic.error_message
