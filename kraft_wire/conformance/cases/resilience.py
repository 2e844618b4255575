"""Requests of hostile and broken clients, in small numbers: each is refused, and alone.

A broker closes a connection that it cannot trust any more; other connections notice nothing.
"""

import struct
from collections.abc import Sequence
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.requests import (
    batch,
    checksummed,
    fetch,
    fetch_partition,
    produce,
    produce_partition,
    written,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse, ReplicaState
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
from kraft_wire.wire.generated.produce import ProduceRequest, ProduceResponse
from kraft_wire.wire.header import RequestHeader, encode_request_header

_SOURCE: Final = "org.apache.kafka.common.network.Selector"
_DECODING: Final = "org.apache.kafka.common.requests.AbstractRequest, parseRequest"
_VALIDATION: Final = "org.apache.kafka.storage.internals.log.LogValidator"

_FLEXIBLE_METADATA: Final = 9
_CLASSIC_METADATA: Final = 8
_CLASSIC_PRODUCE: Final = 8
_REPLICA_STATE_SINCE: Final = 15
_NO_BROKER: Final = 9_999_999
_BURST: Final = 200
_CONNECTIONS: Final = 50

_LAST_OFFSET_DELTA_AT: Final = 23
_COUNT_AT: Final = 57
_LENGTH_AT: Final = 8


def _greeting(connection: Connection) -> tuple[bytes, RequestHeader]:
    header = connection.header(ApiVersionsRequest.API_KEY, 0)
    return encode_request_header(header) + ApiVersionsRequest().encode(0), header


def _serves(broker: Subject) -> None:
    """State that another connection is answered."""
    connection = broker.connect()
    payload, header = _greeting(connection)
    answer = connection.ask_bytes(payload, header, ApiVersionsResponse)
    expect.equal(answer, "error_code", 0)


def _closes(broker: Subject, sent: bytes) -> None:
    """State that bytes close their connection, and no other."""
    connection = broker.connect()
    connection.send(sent)
    expect.closed(connection)
    _serves(broker)


def _closes_body(broker: Subject, api_key: int, version: int, body: bytes) -> None:
    header = encode_request_header(RequestHeader(api_key, version, 1, "conform"))
    _closes(broker, struct.pack(">i", len(header) + len(body)) + header + body)


# -- frames ----------------------------------------------------------------------------------


@case("ApiVersions", _SOURCE, until=0)
def empty_frame(broker: Subject, version: int) -> None:
    """A frame of no bytes closes the connection.

    Send the size 0.
    """
    _closes(broker, struct.pack(">i", 0))


@case("ApiVersions", _SOURCE, until=0)
def http_request(broker: Subject, version: int) -> None:
    """An HTTP request closes the connection.

    Send a GET request of HTTP/1.1.
    """
    _closes(broker, b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n")


@case("ApiVersions", _SOURCE, until=0)
def tls_greeting(broker: Subject, version: int) -> None:
    """A TLS handshake on a plain listener closes the connection.

    Send the head of a ClientHello.
    """
    _closes(broker, bytes.fromhex("16030100c8010000c40303") + bytes(32))


@case("ApiVersions", _SOURCE)
def stalled_frame(broker: Subject, version: int) -> None:
    """An incomplete frame delays no other connection, and gets a response once it is whole.

    Send half a request, ask on another connection, send the other half.
    """
    connection = broker.connect()
    header = connection.header(ApiVersionsRequest.API_KEY, version)
    request = ApiVersionsRequest(client_software_name="conform", client_software_version="1")
    payload = encode_request_header(header) + request.encode(version)
    frame = struct.pack(">i", len(payload)) + payload
    connection.send(frame[:9])
    _serves(broker)
    connection.send(frame[9:])
    connection.response(payload, header, ApiVersionsResponse)


# -- bodies ----------------------------------------------------------------------------------


@case("Metadata", _DECODING, until=0)
def huge_array(broker: Subject, version: int) -> None:
    """An array with more elements than the frame has bytes closes the connection.

    Send Metadata version 8 with 2^31-1 topics in a few bytes.
    """
    _closes_body(broker, MetadataRequest.API_KEY, 8, struct.pack(">i", 0x7FFFFFFF) + bytes(8))


@case("Metadata", _DECODING, until=0)
def negative_length(broker: Subject, version: int) -> None:
    """A string of negative length that may not be null closes the connection.

    Send Metadata version 8 with a topic name of length -2.
    """
    _closes_body(broker, MetadataRequest.API_KEY, 8, struct.pack(">ih", 1, -2) + bytes(3))


@case("Metadata", _DECODING, until=0)
def null_name(broker: Subject, version: int) -> None:
    """A null in a field that is not nullable closes the connection.

    Send Metadata version 8 with a null topic name.
    """
    _closes_body(broker, MetadataRequest.API_KEY, 8, struct.pack(">ih", 1, -1) + bytes(3))


@case("Metadata", _DECODING, until=0)
def empty_body(broker: Subject, version: int) -> None:
    """A request without its body closes the connection.

    Send only the header of Metadata version 8.
    """
    _closes_body(broker, MetadataRequest.API_KEY, _CLASSIC_METADATA, b"")


@case("Metadata", "KIP-482, Tagged Fields", until=0)
def tagged_field_beyond_the_frame(broker: Subject, version: int) -> None:
    """A tagged field that claims more bytes than its frame has closes the connection.

    Send Metadata version 9 with a tagged field of 1 MiB, and ten bytes of it.
    """
    body = b"\x01\x01\x00\x00" + b"\x01\x64\x80\x80\x40" + bytes(10)
    _closes_body(broker, MetadataRequest.API_KEY, _FLEXIBLE_METADATA, body)


@case("Metadata", "KIP-482, Unsigned Varints", until=0)
def endless_varint(broker: Subject, version: int) -> None:
    """A varint of more than five bytes closes the connection.

    Send Metadata version 9 with a count of eleven bytes.
    """
    _closes_body(broker, MetadataRequest.API_KEY, _FLEXIBLE_METADATA, b"\xff" * 10 + b"\x01")


@case("Produce", _DECODING, since=3, until=3)
def body_cut_off(broker: Subject, version: int) -> None:
    """A request whose last byte is missing closes the connection, and nothing is written.

    Produce without the last byte; the next record gets offset 0.
    """
    topic = broker.topic()
    body = produce(topic, _CLASSIC_PRODUCE, batch(b"a")).encode(_CLASSIC_PRODUCE)
    _closes_body(broker, ProduceRequest.API_KEY, _CLASSIC_PRODUCE, body[:-1])
    offsets = written(broker, topic, batch(b"b"))
    expect.true(offsets == [0], "offset 0", offsets)


# -- batches ---------------------------------------------------------------------------------


def _lying(at: int, value: int) -> bytes:
    """Return a batch with another number in its header, and the checksum of that."""
    records = bytearray(batch(b"a" * 50))
    struct.pack_into(">i", records, at, value)
    return checksummed(records)


def _refused(broker: Subject, version: int, records: bytes, *codes: ErrorCode) -> None:
    """Check that a batch is refused, that nothing of it is kept and that the broker continues."""
    topic = broker.topic()
    answer = broker.ask(produce(topic, version, records), version, ProduceResponse)
    expect.one_of(answer, produce_partition("error_code"), *map(int, codes))
    offsets = written(broker, topic, batch(b"b"))
    expect.true(offsets == [0], "offset 0", offsets)


@case("Produce", _VALIDATION, since=3)
def count_above_the_records(broker: Subject, version: int) -> None:
    """A batch that claims more records than it has is refused with INVALID_RECORD.

    Produce a batch of one record that claims nine.
    """
    _refused(broker, version, _lying(_COUNT_AT, 9), ErrorCode.INVALID_RECORD)


@case("Produce", _VALIDATION, since=3)
def huge_count(broker: Subject, version: int) -> None:
    """A batch that claims 2^31-1 records is refused with INVALID_RECORD.

    Produce a batch of one record that claims 2^31-1.
    """
    _refused(broker, version, _lying(_COUNT_AT, 0x7FFFFFFF), ErrorCode.INVALID_RECORD)


@case("Produce", _VALIDATION, since=3)
def negative_count(broker: Subject, version: int) -> None:
    """A batch that claims a negative number of records is refused with INVALID_RECORD.

    Produce a batch of one record that claims -1.
    """
    _refused(broker, version, _lying(_COUNT_AT, -1), ErrorCode.INVALID_RECORD)


@case("Produce", _VALIDATION, since=3)
def other_last_offset(broker: Subject, version: int) -> None:
    """A batch whose last offset does not follow from its records is refused with INVALID_RECORD.

    Produce a batch of one record whose last offset delta is 77.
    """
    _refused(broker, version, _lying(_LAST_OFFSET_DELTA_AT, 77), ErrorCode.INVALID_RECORD)


@case("Produce", _VALIDATION, since=3)
def endless_record_length(broker: Subject, version: int) -> None:
    """A record whose length is not a varint is refused, and the broker keeps running.

    Produce a batch whose record begins with eleven bytes of continuation: INVALID_RECORD, or
    UNKNOWN_SERVER_ERROR from 4.3.1, which fails internally.
    """
    records = bytearray(batch(b"a" * 50))
    records[_COUNT_AT + 4 : _COUNT_AT + 15] = b"\xff" * 11
    codes = ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR
    _refused(broker, version, checksummed(records), *codes)


@case("Produce", _VALIDATION, since=3)
def batch_beyond_its_records(broker: Subject, version: int) -> None:
    """A batch that claims more bytes than were sent is refused with CORRUPT_MESSAGE.

    Produce a batch whose length is 1,000 too large.
    """
    records = bytearray(batch(b"a" * 50))
    (length,) = struct.unpack_from(">i", records, _LENGTH_AT)
    struct.pack_into(">i", records, _LENGTH_AT, length + 1000)
    _refused(broker, version, bytes(records), ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)


@case("Produce", _VALIDATION, since=3)
def batch_shorter_than_its_header(broker: Subject, version: int) -> None:
    """A batch that claims fewer bytes than a header has is refused with CORRUPT_MESSAGE.

    Produce a batch whose length is 4.
    """
    records = bytearray(batch(b"a" * 50))
    struct.pack_into(">i", records, _LENGTH_AT, 4)
    _refused(broker, version, bytes(records), ErrorCode.CORRUPT_MESSAGE)


@case("Fetch", "org.apache.kafka.common.requests.FetchRequest, replicaId")
def unknown_replica(broker: Subject, version: int) -> None:
    """A client with the id of a broker without a replica gets no records.

    Fetch as broker 9,999,999: NOT_LEADER_OR_FOLLOWER.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"))
    request = fetch(topic, version)
    if version >= _REPLICA_STATE_SINCE:
        request.replica_state = ReplicaState(replica_id=_NO_BROKER)
    else:
        request.replica_id = _NO_BROKER
    answer = broker.ask(request, version, FetchResponse)
    expect.error(answer, fetch_partition("error_code"), ErrorCode.NOT_LEADER_OR_FOLLOWER)


# -- numbers ---------------------------------------------------------------------------------


def _answered(connection: Connection, sent: Sequence[tuple[bytes, RequestHeader]]) -> None:
    for payload, header in sent:
        answer = connection.response(payload, header, ApiVersionsResponse)
        expect.equal(answer, "error_code", 0)


@case("ApiVersions", _SOURCE, until=0)
def burst_of_requests(broker: Subject, version: int) -> None:
    """A burst of requests gets its responses in order, and delays no other connection.

    Send 200 requests at once, ask on another connection, then read.
    """
    connection = broker.connect()
    sent = [_greeting(connection) for _ in range(_BURST)]
    connection.send(b"".join(struct.pack(">i", len(each)) + each for each, _ in sent))
    _serves(broker)
    _answered(connection, sent)


@case("ApiVersions", _SOURCE, until=0)
def many_connections(broker: Subject, version: int) -> None:
    """Connections that open at once are all served.

    Open 50 connections, then ask on each.
    """
    connections = [broker.connect() for _ in range(_CONNECTIONS)]
    for each in connections:
        payload, header = _greeting(each)
        each.ask_bytes(payload, header, ApiVersionsResponse)


@case("Fetch", "KIP-227, Fetch Session Caching", since=7, until=7)
def many_sessions(broker: Subject, version: int) -> None:
    """Every fetch session has a unique id, or there is no session.

    Begin 50 sessions on one connection: ids other than 0 differ.
    """
    topic = broker.topic()
    request = fetch(topic, version, session=(0, 0))
    answers = [broker.ask(request, version, FetchResponse) for _ in range(_CONNECTIONS)]
    ids = [each.session_id for each in answers if each.session_id]
    expect.true(len(set(ids)) == len(ids), "different ids", ids, "session_id")


@case("Fetch", "org.apache.kafka.server.purgatory.DelayedOperationPurgatory", since=4, until=4)
def many_waiting_fetches(broker: Subject, version: int) -> None:
    """One record completes all waiting fetches, which delay no other connection.

    Have 50 connections wait for a record, ask on another one, then write the record.
    """
    topic = broker.topic()
    request = fetch(topic, version, max_wait_ms=30_000)
    waiting = []
    for _ in range(_CONNECTIONS):
        connection = broker.connect()
        payload, header = connection.encoded(request, version)
        connection.send_frame(payload)
        waiting.append((connection, payload, header))
    _serves(broker)
    written(broker, topic, batch(b"a"))
    for connection, payload, header in waiting:
        answer = connection.response(payload, header, FetchResponse)
        expect.true(bool(answer.responses[0].partitions[0].records), "a record", answer)


@case("Metadata", _SOURCE, until=0)
def client_that_leaves(broker: Subject, version: int) -> None:
    """A client that closes its connection after a request does not affect other connections.

    Send Metadata on ten connections, close each at once, ask on another.
    """
    for _ in range(10):
        connection = broker.connect()
        payload, _ = connection.encoded(MetadataRequest(topics=[]), version)
        connection.send_frame(payload)
        connection.close()
    broker.ask(MetadataRequest(topics=[]), version, MetadataResponse)
    _serves(broker)


@case("Fetch", _SOURCE, until=4)
def client_that_leaves_with_a_waiting_fetch(broker: Subject, version: int) -> None:
    """The record that a closed connection waited for affects no other connection.

    Have ten connections wait for a record, close them, write the record, ask on another one.
    """
    topic = broker.topic()
    request = fetch(topic, version, max_wait_ms=30_000)
    for _ in range(10):
        connection = broker.connect()
        payload, _ = connection.encoded(request, version)
        connection.send_frame(payload)
        connection.close()
    written(broker, topic, batch(b"a"))
    answer = broker.ask(fetch(topic, version), version, FetchResponse)
    expect.true(bool(answer.responses[0].partitions[0].records), "a record", answer)
    _serves(broker)
