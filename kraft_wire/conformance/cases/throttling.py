"""Clients beyond their limits: Produce, Fetch and changes of topics (KIP-124, KIP-219, KIP-599).

Limits are of client ids that no other client has. By default a broker measures bytes over ten
seconds at least, so a client may send ten times its limit at once.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.requests import batch, fetch, produce, produce_partition, written
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.wire.generated import alter_client_quotas as alter
from kraft_wire.wire.generated import describe_client_quotas as describe
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse
from kraft_wire.wire.generated.produce import ProduceResponse

_BYTES: Final = "KIP-124"
_MUTED: Final = "KIP-219"
_CHANGES: Final = "KIP-599"
_SENT, _RECEIVED, _CHANGED = "producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate"
_CLIENT, _USER = "client-id", "user"
_ANONYMOUS: Final = "ANONYMOUS"
_LIMIT: Final = 10_000.0
_OVER_BYTES: Final = 105_000
"""Five hundredths more than a client may send or receive at once: 500 ms to wait."""
_AT_ONCE_BYTES: Final = 100_000
_PART_BYTES: Final = 40_000
_WAITS_MS: Final = (450, 650)
_SILENT_S: Final = 0.2
_SETTLES_S: Final = 0.2
"""Between what a broker describes and what it does."""
_TIME: Final = "throttle_time_ms"
_TIMEOUT_MS: Final = 10_000
_BY_STATE: Final = 6
"""The first version of DeleteTopics that names topics in elements of their own."""


# -- limits ----------------------------------------------------------------------------------------


def _alter(
    broker: Subject, entity: dict[str, str], key: str, value: float, *, is_removed: bool
) -> None:
    """Set or remove a limit, and wait until the broker describes it so."""
    named = [alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    change = alter.OpData(key=key, value=value, remove=is_removed)
    request = alter.AlterClientQuotasRequest(entries=[alter.EntryData(entity=named, ops=[change])])
    answer = broker.prepare(request, alter.AlterClientQuotasResponse)
    expect.error(answer, "entries[0].error_code", ErrorCode.NONE)
    components = [
        describe.ComponentData(entity_type=kind, match_type=0, match=name)
        for kind, name in entity.items()
    ]
    asked = describe.DescribeClientQuotasRequest(components=components, strict=True)
    for _ in broker.attempts("the limit to be described"):
        found = broker.prepare(asked, describe.DescribeClientQuotasResponse)
        if bool(found.entries) is not is_removed:
            break
    time.sleep(_SETTLES_S)


@contextmanager
def _limited(
    broker: Subject, key: str, value: float, entity: dict[str, str] | None = None
) -> Iterator[str]:
    """Limit a client, by default by its id alone, while the block runs; yield its id."""
    client = (entity or {}).get(_CLIENT) or broker.name("client")
    limited = entity or {_CLIENT: client}
    _alter(broker, limited, key, value, is_removed=False)
    try:
        yield client
    finally:
        _alter(broker, limited, key, value, is_removed=True)


def _records(size_bytes: int = _OVER_BYTES) -> bytes:
    return batch(b"v" * size_bytes)


def _send(line: Connection, topic: Topic, version: int, client: str | None) -> ProduceResponse:
    request = produce(topic, version, _records())
    return line.ask_as(client, request, version, ProduceResponse)


def _waits(answer: ProduceResponse | FetchResponse) -> None:
    """State that the client has to wait for half a second."""
    seen = answer.throttle_time_ms
    expect.true(seen > 0, "a time to wait", seen, _TIME)
    lowest, highest = _WAITS_MS
    expect.as_release(lowest <= seen <= highest, f"{lowest} to {highest}", seen, _TIME)


# -- bytes -----------------------------------------------------------------------------------------


@case("Produce", _BYTES)
def records_beyond_the_limit(broker: Subject, version: int) -> None:
    """Records beyond a client's limit are written, and the response says how long it has to wait.

    Allow a client 10,000 bytes a second; send 105,000 at once as this client, then as another.
    """
    topic, line = broker.topic(), broker.connect()
    with _limited(broker, _SENT, _LIMIT) as client:
        answer = _send(line, topic, version, client)
        expect.error(answer, produce_partition("error_code"), ErrorCode.NONE)
        expect.equal(answer, produce_partition("base_offset"), 0)
        _waits(answer)
        other = _send(broker.connect(), topic, version, f"{client}-other")
        expect.equal(other, _TIME, 0)
        expect.equal(other, produce_partition("base_offset"), 1)


@case("Produce", _MUTED, since=9)
def connection_that_has_to_wait(broker: Subject, version: int) -> None:
    """A connection is not served while its client has to wait; others of that client are.

    Send too much, then ApiVersions on the same connection and on another.
    """
    topic, line = broker.topic(), broker.connect()
    with _limited(broker, _SENT, _LIMIT) as client:
        _waits(_send(line, topic, version, client))
        request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
        payload, header = line.encoded(request, 0)
        line.send_frame(payload)
        expect.true(line.is_silent(_SILENT_S), "silence", "a response")
        beside = broker.connect().ask_as(client, request, 0, ApiVersionsResponse)
        expect.error(beside, "error_code", ErrorCode.NONE)
        late = line.response(payload, header, ApiVersionsResponse)
        expect.error(late, "error_code", ErrorCode.NONE)


@case("Produce", _BYTES, since=12)
def limit_of_a_user_and_a_client(broker: Subject, version: int) -> None:
    """A limit of a user's client comes before that of the client.

    Allow the client much, and as this user little.
    """
    topic, line = broker.topic(), broker.connect()
    credentials = broker.target.security.credentials
    user = _ANONYMOUS if credentials is None else credentials.username
    with _limited(broker, _SENT, 1000 * _LIMIT) as client:
        entity = {_USER: user, _CLIENT: client}
        with _limited(broker, _SENT, _LIMIT, entity):
            _waits(_send(line, topic, version, client))


@case("Produce", _BYTES, since=12)
def limit_that_is_removed(broker: Subject, version: int) -> None:
    """Without its limit a client waits no more.

    Set a limit, remove it, and send more than it allowed.
    """
    topic, line = broker.topic(), broker.connect()
    with _limited(broker, _SENT, _LIMIT) as client:
        pass
    answer = _send(line, topic, version, client)
    expect.error(answer, produce_partition("error_code"), ErrorCode.NONE)
    expect.equal(answer, _TIME, 0)


def _fetched(
    line: Connection, topic: Topic, version: int, client: str
) -> tuple[FetchResponse, int]:
    """Fetch what there is; return the response, and how many bytes of records it has."""
    answer = line.ask_as(client, fetch(topic, version), version, FetchResponse)
    partitions = [each for topic in answer.responses for each in topic.partitions]
    records = [bytes(each.records or b"") for each in partitions]  # type: ignore[arg-type]  # decoded frames hold bytes
    return answer, sum(map(len, records))


@case("Fetch", _BYTES)
def fetch_beyond_the_limit(broker: Subject, version: int) -> None:
    """A response beyond the limit is replaced by an empty one, which says how long to wait.

    Allow a client 10,000 bytes a second; fetch a batch of 105,000 as this client, then as another.
    """
    topic = broker.topic()
    written(broker, topic, _records())
    with _limited(broker, _RECEIVED, _LIMIT) as client:
        answer, size_bytes = _fetched(broker.connect(), topic, version, client)
        expect.equal(answer, "responses", [])
        _waits(answer)
        other, size_bytes = _fetched(broker.connect(), topic, version, f"{client}-other")
        expect.true(size_bytes > _OVER_BYTES, "the batch", size_bytes, "responses")
        expect.equal(other, _TIME, 0)


@case("Fetch", _BYTES, since=12)
def fetch_that_is_cut_to_the_limit(broker: Subject, version: int) -> None:
    """A fetch reads no more than its client may receive at once, and the header is beyond that.

    Allow a client 10,000 bytes a second; fetch three batches of 40,000 bytes until some come.
    """
    topic = broker.topic()
    written(broker, topic, *[_records(_PART_BYTES)] * 3)
    with _limited(broker, _RECEIVED, _LIMIT) as client:
        line = broker.connect()
        answer, size_bytes = _fetched(line, topic, version, client)
        expect.equal(answer, "responses", [])
        expect.true(answer.throttle_time_ms > 0, "a time to wait", answer.throttle_time_ms, _TIME)
        for _ in broker.attempts("records within the limit"):
            answer, size_bytes = _fetched(line, topic, version, client)
            if size_bytes:
                break
        expect.true(size_bytes == _AT_ONCE_BYTES, f"{_AT_ONCE_BYTES}", size_bytes, "responses")


# -- changes of topics -----------------------------------------------------------------------------

_SLOW: Final = 1.0
"""Partitions a second; eleven at once."""
_MANY: Final = 13


def _is_refused(
    answer: CreateTopicsResponse | CreatePartitionsResponse | DeleteTopicsResponse, path: str
) -> None:
    """State that a change is refused, and that the client has to wait."""
    expect.error(answer, path, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    expect.true(answer.throttle_time_ms > 0, "a time to wait", answer.throttle_time_ms, _TIME)


def _create(line: Connection, name: str, version: int, client: str) -> CreateTopicsResponse:
    topic = CreatableTopic(name=name, num_partitions=_MANY, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
    return line.ask_as(client, request, version, CreateTopicsResponse)


def _new_topic(broker: Subject) -> str:
    name = broker.name()
    broker.made_topics.append(name)
    return name


@case("CreateTopics", _CHANGES, since=6)
def topics_beyond_the_limit(broker: Subject, version: int) -> None:
    """Topics beyond a client's limit of changes are THROTTLING_QUOTA_EXCEEDED, and not created.

    Allow a client a partition a second, create two topics of 13 partitions.
    """
    with _limited(broker, _CHANGED, _SLOW) as client:
        line = broker.connect()
        first = _create(line, _new_topic(broker), version, client)
        expect.error(first, "topics[0].error_code", ErrorCode.NONE)
        name = _new_topic(broker)
        second = _create(broker.connect(), name, version, client)
        _is_refused(second, "topics[0].error_code")
        other = _create(broker.connect(), name, version, f"{client}-other")
        expect.error(other, "topics[0].error_code", ErrorCode.NONE)


@case("CreateTopics", _CHANGES, until=5)
def topics_beyond_the_limit_of_old_clients(broker: Subject, version: int) -> None:
    """Topics of older clients are created beyond the limit, and the response says how long to wait.

    Allow a client a partition a second, create two topics of 13 partitions.
    """
    with _limited(broker, _CHANGED, _SLOW) as client:
        for _ in range(2):
            answer = _create(broker.connect(), _new_topic(broker), version, client)
            expect.error(answer, "topics[0].error_code", ErrorCode.NONE)
        expect.true(answer.throttle_time_ms > 0, "a time to wait", answer.throttle_time_ms, _TIME)


def _enlarge(line: Connection, name: str, version: int, client: str) -> CreatePartitionsResponse:
    topic = CreatePartitionsTopic(name=name, count=1 + _MANY, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
    return line.ask_as(client, request, version, CreatePartitionsResponse)


@case("CreatePartitions", _CHANGES, since=3)
def partitions_beyond_the_limit(broker: Subject, version: int) -> None:
    """Partitions beyond a client's limit of changes are THROTTLING_QUOTA_EXCEEDED, and not created.

    Allow a client a partition a second, add 13 to each of two topics.
    """
    names = [broker.topic().name for _ in range(2)]
    with _limited(broker, _CHANGED, _SLOW) as client:
        first = _enlarge(broker.connect(), names[0], version, client)
        expect.error(first, "results[0].error_code", ErrorCode.NONE)
        second = _enlarge(broker.connect(), names[1], version, client)
        _is_refused(second, "results[0].error_code")


def _delete(line: Connection, name: str, version: int, client: str) -> DeleteTopicsResponse:
    if version >= _BY_STATE:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=_TIMEOUT_MS)
    else:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=_TIMEOUT_MS)
    return line.ask_as(client, request, version, DeleteTopicsResponse)


@case("DeleteTopics", _CHANGES, since=5)
def deletions_beyond_the_limit(broker: Subject, version: int) -> None:
    """Deletions beyond a client's limit of changes are THROTTLING_QUOTA_EXCEEDED, and not done.

    Allow a client a partition a second, delete two topics of 13 partitions.
    """
    names = [broker.topic(_MANY).name for _ in range(2)]
    with _limited(broker, _CHANGED, _SLOW) as client:
        first = _delete(broker.connect(), names[0], version, client)
        expect.error(first, "responses[0].error_code", ErrorCode.NONE)
        second = _delete(broker.connect(), names[1], version, client)
        _is_refused(second, "responses[0].error_code")
        other = _delete(broker.connect(), names[1], version, f"{client}-other")
        expect.error(other, "responses[0].error_code", ErrorCode.NONE)
