"""Creates topics on first use by a client (KIP-361, KIP-590).

The broker sends the controller its own CreateTopics. The client gets UNKNOWN_TOPIC_OR_PARTITION,
and retries until the metadata has the topic. Until the controller has answered, the broker does not
request a name again: clients retry ten times a second, and all of that would wait for a controller
that cannot be reached.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Final, TypeAlias

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

__all__ = ["ANSWER_WITHIN_MS", "CreationAnswered", "TopicCreation", "creatable_topic"]

CreationAnswered: TypeAlias = Callable[[CreateTopicsResponse, int], None]
"""Called with the controller's response and the monotonic time, or never."""

_TIMEOUT_MS: Final = 30_000
ANSWER_WITHIN_MS: Final = 60_000
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

        def answered(response: CreateTopicsResponse, _: int) -> None:
            for topic in response.topics:
                if topic.name is not None and topic.error_code not in _EXPECTED:
                    errors[topic.name] = topic.error_code

        wanted = self._not_in_flight(names, now_ms)
        self._send([creatable_topic(settings, name) for name in wanted], now_ms, answered)
        return errors

    def send(
        self, topics: Mapping[str, CreatableTopic], now_ms: int, answered: CreationAnswered
    ) -> list[str]:
        """Request topics as they are given; return the names that were not requested already."""
        wanted = self._not_in_flight(topics, now_ms)
        self._send([topics[name] for name in wanted], now_ms, answered)
        return wanted

    def _not_in_flight(self, names: Iterable[str], now_ms: int) -> list[str]:
        """Return names that may be requested, as many as there is room for."""
        _forget_unanswered(self._in_flight, now_ms)
        room = _IN_FLIGHT_MAX - len(self._in_flight)
        return [name for name in names if name not in self._in_flight][:room]

    def _send(self, topics: list[CreatableTopic], now_ms: int, answered: CreationAnswered) -> None:
        in_flight, until_ms = self._in_flight, now_ms + ANSWER_WITHIN_MS
        in_flight.update((topic.name, until_ms) for topic in topics)

        def received(response: Message, now_ms: int) -> None:
            assert isinstance(response, CreateTopicsResponse), response
            for topic in topics:
                if in_flight.get(topic.name) == until_ms:
                    del in_flight[topic.name]
            answered(response, now_ms)

        if topics:
            request = CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)
            self._ask_controller(request, received)


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
