"""Topics that come to be because a client asked for them (KIP-361, KIP-590).

The broker sends the controller a CreateTopics of its own. Where the controller is this process the
topic is there when `create_topics` returns; elsewhere the client is told that it is unknown and
asks again.
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.metadata_cache import OFFSETS_TOPIC
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["create_topics"]

_TIMEOUT_MS: Final = 30_000
_DEFAULT_REPLICATION: Final = -1
_EXPECTED: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def create_topics(broker: Broker, names: Sequence[str]) -> dict[str, ErrorCode]:
    """Ask for topics with the broker's defaults; return the errors that are known by now."""
    errors: dict[str, ErrorCode] = {}

    def answered(response: Message) -> None:
        assert isinstance(response, CreateTopicsResponse), response
        for topic in response.topics:
            error = ErrorCode(topic.error_code)
            if topic.name is not None and error not in _EXPECTED:
                errors[topic.name] = error

    if names:
        topics = [_creatable(broker, name) for name in names]
        broker.ask_controller(CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS), answered)
    return errors


def _creatable(broker: Broker, name: str) -> CreatableTopic:
    settings = broker.settings
    if name == OFFSETS_TOPIC:
        return CreatableTopic(
            name=name,
            num_partitions=settings.offsets_topic_num_partitions,
            replication_factor=settings.offsets_topic_replication_factor,
            configs=[
                CreatableTopicConfig(name="cleanup.policy", value="compact"),
                CreatableTopicConfig(name="compression.type", value="producer"),
                CreatableTopicConfig(
                    name="segment.bytes", value=str(settings.offsets_topic_segment_bytes)
                ),
            ],
        )
    return CreatableTopic(
        name=name,
        num_partitions=settings.num_partitions,
        replication_factor=_DEFAULT_REPLICATION,
    )
