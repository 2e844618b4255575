"""Topics made and removed over the wire, and a wait until every broker serves them."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from kraft_wire.client.connection import BrokerConnection
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

__all__ = ["RequestRefused", "create_topic", "delete_topics"]

CLIENT_ID: Final = "kraft-wire-testing"
_PATIENCE_S: Final = 30.0
_PAUSE_S: Final = 0.005


class RequestRefused(Exception):
    """A broker refused a request; the text names topic and error."""


def create_topic(
    servers: Sequence[str],
    name: str,
    partitions: int,
    replication_factor: int,
    configs: Mapping[str, object],
) -> None:
    """Create a topic, and wait until every broker knows its leaders. Errors: RequestRefused."""
    entries = [CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()]
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=entries,
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(_PATIENCE_S * 1000))
    with BrokerConnection(servers[0], client_id=CLIENT_ID) as connection:
        response = connection.send(request, CreateTopicsResponse)
    for result in response.topics:
        if result.error_code:
            code, message = error_name(result.error_code), result.error_message or ""
            raise RequestRefused(f"topic {name!r} cannot be created: {code} {message}".strip())
    for server in servers:
        _await_leaders(server, name, partitions)


def _await_leaders(server: str, name: str, partitions: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    with BrokerConnection(server, client_id=CLIENT_ID) as connection:
        while True:
            topic = _metadata(connection, [name]).topics[0]
            leaders = [each for each in topic.partitions if not each.error_code]
            if not topic.error_code and (len(leaders) == partitions or partitions < 1):
                return
            if time.monotonic() > deadline:
                raise RequestRefused(f"{server} does not know the leaders of topic {name!r}")
            time.sleep(_PAUSE_S)


def _metadata(connection: BrokerConnection, names: Sequence[str] | None) -> MetadataResponse:
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return connection.send(request, MetadataResponse)


def delete_topics(server: str, prefix: str) -> None:
    """Delete the topics with a prefix. Errors: RequestRefused."""
    with BrokerConnection(server, client_id=CLIENT_ID) as connection:
        found = [each.name or "" for each in _metadata(connection, None).topics]
        states = [DeleteTopicState(name=each) for each in found if each.startswith(prefix)]
        request = DeleteTopicsRequest(topics=states, timeout_ms=int(_PATIENCE_S * 1000))
        response = connection.send(request, DeleteTopicsResponse)
    for result in response.responses:
        if result.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise RequestRefused(
                f"topic {result.name!r} cannot be deleted: {error_name(result.error_code)}"
            )
