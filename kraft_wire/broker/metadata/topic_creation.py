"""Creates topics on first use by a client (KIP-361, KIP-590).

The broker sends the controller its own CreateTopics. The client gets UNKNOWN_TOPIC_OR_PARTITION,
and retries until the metadata has the topic. Until the controller has answered, the broker does not
request a name again: clients retry ten times a second, and all of that would wait for a controller
that cannot be reached.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Final

from kraft_wire.broker.metadata.metadata_cache import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_TOPIC,
)
from kraft_wire.broker.ports import AskController
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["TopicCreation", "creatable_topic"]

_TIMEOUT_MS: Final = 30_000
_ANSWER_WITHIN_MS: Final = 60_000
"""As long as the sender of the request retries; an answer may also never arrive."""
_IN_FLIGHT_MAX: Final = 10_000
"""Names that are asked for at the same time; others are unknown until there is room."""
_BY_DEFAULT: Final = -1
_EXPECTED: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class TopicCreation:
    """Asks the controller for topics that clients name, each once at a time."""

    __slots__ = ("_ask_controller", "_in_flight")

    def __init__(self, ask_controller: AskController) -> None:
        """`ask_controller` sends a request and calls back with the response, or never."""
        self._ask_controller = ask_controller
        self._in_flight: dict[str, int] = {}
        """Topic -> when its request counts as unanswered, by that time."""

    def request(
        self, names: Sequence[str], settings: BrokerSettings, now_ms: int
    ) -> dict[str, int]:
        """Request topics with the broker's defaults; return the errors, once they are known.

        A controller of a later release may have codes that this one does not know.
        """
        errors: dict[str, int] = {}
        in_flight, until_ms = self._in_flight, now_ms + _ANSWER_WITHIN_MS
        _forget_unanswered(in_flight, now_ms)
        room = _IN_FLIGHT_MAX - len(in_flight)
        wanted = [name for name in names if name not in in_flight][:room]
        in_flight.update(dict.fromkeys(wanted, until_ms))

        def answered(response: Message, now_ms: int) -> None:
            assert isinstance(response, CreateTopicsResponse), response
            for name in wanted:
                if in_flight.get(name) == until_ms:
                    del in_flight[name]
            for topic in response.topics:
                if topic.name is not None and topic.error_code not in _EXPECTED:
                    errors[topic.name] = topic.error_code

        if wanted:
            topics = [creatable_topic(settings, name) for name in wanted]
            request = CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)
            self._ask_controller(request, answered)
        return errors


def creatable_topic(settings: BrokerSettings, name: str) -> CreatableTopic:
    """Return a topic with its coordinator's settings, or with those of the broker's own file.

    The controller chooses the settings that the file does not have.
    """
    of_kafka = _OF_KAFKA.get(name)
    if of_kafka is not None:
        return of_kafka(settings)
    file = settings.source.file_values
    return CreatableTopic(
        name=name,
        num_partitions=settings.num_partitions if "num.partitions" in file else _BY_DEFAULT,
        replication_factor=settings.default_replication_factor
        if "default.replication.factor" in file
        else _BY_DEFAULT,
    )


def _forget_unanswered(in_flight: dict[str, int], now_ms: int) -> None:
    """Allow new requests for names whose answer is overdue, the oldest first."""
    for name, _ in list(takewhile(lambda each: each[1] <= now_ms, in_flight.items())):
        del in_flight[name]


def _offsets_topic(settings: BrokerSettings) -> CreatableTopic:
    configs: Mapping[str, str | int] = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": settings.offsets_topic_segment_bytes,
    }
    partitions = settings.offsets_topic_num_partitions
    replicas = settings.offsets_topic_replication_factor
    return _topic(OFFSETS_TOPIC, partitions, replicas, configs)


def _transaction_topic(settings: BrokerSettings) -> CreatableTopic:
    integer = settings.source.integer
    configs: Mapping[str, str | int] = {
        "unclean.leader.election.enable": "false",
        "compression.type": "uncompressed",
        "cleanup.policy": "compact",
        "min.insync.replicas": integer("transaction.state.log.min.isr"),
        "segment.bytes": integer("transaction.state.log.segment.bytes"),
    }
    partitions = settings.transaction_state_log_num_partitions
    replicas = integer("transaction.state.log.replication.factor")
    return _topic(TRANSACTION_TOPIC, partitions, replicas, configs)


def _share_state_topic(settings: BrokerSettings) -> CreatableTopic:
    """Return the topic of the states of share partitions (KIP-932)."""
    integer = settings.source.integer
    configs: Mapping[str, str | int] = {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "segment.bytes": integer("share.coordinator.state.topic.segment.bytes"),
        "min.insync.replicas": integer("share.coordinator.state.topic.min.isr"),
        "retention.ms": "-1",
    }
    partitions = integer("share.coordinator.state.topic.num.partitions")
    replicas = integer("share.coordinator.state.topic.replication.factor")
    return _topic(SHARE_STATE_TOPIC, partitions, replicas, configs)


def _topic(
    name: str, partitions: int, replicas: int, configs: Mapping[str, str | int]
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=str(each)) for key, each in configs.items()],
    )


_OF_KAFKA: Final[dict[str, Callable[[BrokerSettings], CreatableTopic]]] = {
    OFFSETS_TOPIC: _offsets_topic,
    TRANSACTION_TOPIC: _transaction_topic,
    SHARE_STATE_TOPIC: _share_state_topic,
}
