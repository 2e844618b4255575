"""Frames and request headers: what holds for every API, shown with ApiVersions."""

import struct
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.header import RequestHeader, encode_request_header

_PROTOCOL: Final = "Kafka protocol guide, Network"
_TAGS: Final = "KIP-482, Tagged Fields"

_FLEXIBLE: Final = 3
_FAR_TOO_LARGE: Final = 0x7FFFFFFF
_CLOSED_WITHIN_S: Final = 0.5
_DEAD_WITHIN_S: Final = 0.2
"""A process that fails by a request can close that connection before it ends."""


def _question(connection: Connection, version: int) -> tuple[bytes, RequestHeader]:
    header = connection.header(ApiVersionsRequest.API_KEY, version)
    request = ApiVersionsRequest(client_software_name="conform", client_software_version="1")
    return encode_request_header(header) + request.encode(version), header


def _closes(broker: Subject, data: bytes) -> None:
    """Send bytes that close their connection; another connection must outlive them."""
    steady, broken = broker.connect(), broker.connect()
    payload, header = _question(steady, 0)
    steady.ask_bytes(payload, header, ApiVersionsResponse)
    broken.send(data)
    expect.closed(broken)
    is_open = steady.is_silent(_DEAD_WITHIN_S)
    expect.true(is_open, "another connection that stays open", "it was closed")
    payload, header = _question(steady, 0)
    steady.ask_bytes(payload, header, ApiVersionsResponse)


@case("ApiVersions", _PROTOCOL)
def split_frame(broker: Subject, version: int) -> None:
    """A frame that arrives byte by byte gets a response like a whole one.

    Send ApiVersions one byte at a time.
    """
    connection = broker.connect()
    payload, header = _question(connection, version)
    for each in frame_prefix(len(payload)) + payload:
        connection.send(bytes([each]))
    answer = connection.response(payload, header, ApiVersionsResponse)
    expect.equal(answer, "error_code", 0)


@case("ApiVersions", _PROTOCOL)
def joined_frames(broker: Subject, version: int) -> None:
    """Requests that arrive together get their responses in order.

    Send three ApiVersions requests in one write.
    """
    connection = broker.connect()
    questions = [_question(connection, version) for _ in range(3)]
    connection.send(b"".join(frame_prefix(len(each)) + each for each, _ in questions))
    for payload, header in questions:
        answer = connection.response(payload, header, ApiVersionsResponse)
        expect.equal(answer, "error_code", 0)


@case("ApiVersions", _PROTOCOL)
def frame_and_a_half(broker: Subject, version: int) -> None:
    """A request gets its response while the next one is incomplete.

    Send one and a half ApiVersions requests, read a response, send the rest, read the other.
    """
    connection = broker.connect()
    first, first_header = _question(connection, version)
    second, second_header = _question(connection, version)
    late = frame_prefix(len(second)) + second
    connection.send(frame_prefix(len(first)) + first + late[:7])
    connection.response(first, first_header, ApiVersionsResponse)
    connection.send(late[7:])
    connection.response(second, second_header, ApiVersionsResponse)


@case("ApiVersions", "org.apache.kafka.common.network.NetworkReceive", until=0)
def negative_size(broker: Subject, version: int) -> None:
    """A frame of negative size closes its connection, and no other.

    Send the size -1.
    """
    _closes(broker, struct.pack(">i", -1))


@case("ApiVersions", "broker configuration socket.request.max.bytes", until=0)
def oversized_frame(broker: Subject, version: int) -> None:
    """A frame above socket.request.max.bytes closes the connection before its bytes arrive.

    Announce a frame of 2 GiB, and send nothing of it.
    """
    _closes(broker, struct.pack(">i", _FAR_TOO_LARGE))


@case("ApiVersions", _PROTOCOL, until=0)
def frame_without_header(broker: Subject, version: int) -> None:
    """A frame that is too short for a request header closes the connection.

    Send a frame of two bytes.
    """
    _closes(broker, frame_prefix(2) + b"\x00\x12")


@case("ApiVersions", _PROTOCOL, until=0)
def unknown_api_key(broker: Subject, version: int) -> None:
    """A request with an unknown API key closes its connection, and no other.

    Send a header with API key 9999, version 0.
    """
    header = struct.pack(">hhih", 9999, version, 1, -1)
    _closes(broker, frame_prefix(len(header)) + header)


@case("Metadata", _PROTOCOL, until=0)
def unknown_version(broker: Subject, version: int) -> None:
    """A version that the broker does not serve closes the connection, unless it is ApiVersions.

    Send Metadata in version 99.
    """
    request = struct.pack(">hhih", 3, 99, 1, -1) + b"\x00\x00\x00"
    _closes(broker, frame_prefix(len(request)) + request)


@case("ApiVersions", _PROTOCOL)
def null_client_id(broker: Subject, version: int) -> None:
    """The client id may be null.

    Send ApiVersions with a null client id.
    """
    connection = broker.connect()
    header = connection.header(ApiVersionsRequest.API_KEY, version, client_id=None)
    request = ApiVersionsRequest(client_software_name="conform", client_software_version="1")
    payload = encode_request_header(header) + request.encode(version)
    expect.equal(connection.ask_bytes(payload, header, ApiVersionsResponse), "error_code", 0)


@case("ApiVersions", _PROTOCOL)
def empty_client_id(broker: Subject, version: int) -> None:
    """The client id may be empty.

    Send ApiVersions with an empty client id.
    """
    connection = broker.connect()
    header = connection.header(ApiVersionsRequest.API_KEY, version, client_id="")
    request = ApiVersionsRequest(client_software_name="conform", client_software_version="1")
    payload = encode_request_header(header) + request.encode(version)
    expect.equal(connection.ask_bytes(payload, header, ApiVersionsResponse), "error_code", 0)


@case("ApiVersions", _PROTOCOL, until=0)
def client_id_cut_off(broker: Subject, version: int) -> None:
    """A client id that is longer than its frame closes the connection.

    Announce a client id of 100 bytes and send three.
    """
    header = struct.pack(">hhih", 18, version, 1, 100) + b"abc"
    _closes(broker, frame_prefix(len(header)) + header)


@case("ApiVersions", _PROTOCOL)
def correlation_id_of_any_value(broker: Subject, version: int) -> None:
    """The response has the correlation id of the request, for any value.

    Send ApiVersions with correlation ids -1, the smallest and the largest.
    """
    connection = broker.connect()
    request = ApiVersionsRequest(client_software_name="conform", client_software_version="1")
    for correlation_id in (-1, -(1 << 31), (1 << 31) - 1):
        header = RequestHeader(ApiVersionsRequest.API_KEY, version, correlation_id, "conform")
        payload = encode_request_header(header) + request.encode(version)
        connection.ask_bytes(payload, header, ApiVersionsResponse)


@case("ApiVersions", _TAGS, since=_FLEXIBLE)
def unknown_tagged_fields_of_the_header(broker: Subject, version: int) -> None:
    """Unknown tagged fields of a request header are skipped.

    Send two unknown tagged fields in the header.
    """
    connection = broker.connect()
    payload, header = _question(connection, version)
    at = len(encode_request_header(header)) - 1
    tags = bytes([2, 100, 3]) + b"abc" + bytes([101, 0])
    payload = payload[:at] + tags + payload[at + 1 :]
    expect.equal(connection.ask_bytes(payload, header, ApiVersionsResponse), "error_code", 0)


@case("ApiVersions", _TAGS, since=_FLEXIBLE)
def unknown_tagged_fields_of_the_body(broker: Subject, version: int) -> None:
    """Unknown tagged fields of a request body are skipped.

    Send one unknown tagged field after the body's fields.
    """
    connection = broker.connect()
    payload, header = _question(connection, version)
    payload = payload[:-1] + bytes([1, 100, 2]) + b"ab"
    expect.equal(connection.ask_bytes(payload, header, ApiVersionsResponse), "error_code", 0)


@case("ApiVersions", _PROTOCOL, until=2)
def connection_survives_other_connections(broker: Subject, version: int) -> None:
    """Closing a connection does not close other connections.

    Open two connections, break one with a negative size, ask on the other.
    """
    steady, broken = broker.connect(), broker.connect()
    broken.send(struct.pack(">i", -5))
    broken.is_silent(_CLOSED_WITHIN_S)
    payload, header = _question(steady, version)
    expect.equal(steady.ask_bytes(payload, header, ApiVersionsResponse), "error_code", 0)
