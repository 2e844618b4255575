"""Decodes frames to requests: header, version, body, with a named reason for each refusal.

An unsupported version is answered only where clients depend on it: ApiVersions in the form of
version 0 (KIP-511), and Produce 0 to 2, which are advertised for old librdkafka and refused
(KAFKA-18659). Any other frame that cannot be decoded closes the connection with one log line.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from struct import Struct
from struct import error as struct_error
from typing import Final, TypeAlias

from kraft_wire.apis.api import Versions
from kraft_wire.apis.registry import APIS, key_of
from kraft_wire.frozen import slotted
from kraft_wire.node.outputs import Rejection
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import REQUESTS, request_class
from kraft_wire.wire.header import RequestHeader, parse_request_header
from kraft_wire.wire.message import (
    Buffer,
    DecodeLimits,
    MalformedMessage,
    Message,
    UnencodableMessage,
)

__all__ = [
    "Answered",
    "Decoded",
    "RequestDecoder",
    "api_name",
    "refused",
    "unencodable",
]

_API_VERSIONS: Final = key_of("ApiVersions")
_PRODUCE: Final = APIS[key_of("Produce")]
_ACCESS_CONTROL: Final = frozenset(map(key_of, ("DescribeAcls", "CreateAcls", "DeleteAcls")))
"""APIs whose requests have codes that may be unknown (`unknown_codes`)."""


Decoded: TypeAlias = tuple[RequestHeader, Message, int]
"""A decoded request, and the number of bytes after its body.

Some clients send such bytes (librdkafka), and they are not an error. A plain tuple is the fastest;
callers recognise it by its type, so neither `Answered` nor `Rejection` may be a tuple.
"""


@slotted
class Answered:
    """A request of another version, with the body that refuses it: no handler or class makes it."""

    header: RequestHeader
    body: bytes


def api_name(api_key: int) -> str:
    """Return Kafka's name of an API, or its number."""
    entry = REQUESTS.get(api_key)
    return str(api_key) if entry is None else entry.name.removesuffix("Request")


class _Decoders(dict[int, Callable[[Buffer, int, int, DecodeLimits], tuple[Message, int]]]):
    """`decode` of the request classes that were used."""

    def __missing__(
        self, api_key: int
    ) -> Callable[[Buffer, int, int, DecodeLimits], tuple[Message, int]]:
        self[api_key] = found = request_class(api_key).decode
        return found


class RequestDecoder:
    """Decodes the requests of served APIs."""

    def __init__(self, versions: Mapping[int, Versions], limits: DecodeLimits) -> None:
        self._versions = versions
        self._limits = limits
        self._decoders = _Decoders()

    def decode(self, frame: bytearray) -> Decoded | Answered | Rejection:
        """Decode one frame; blobs in the request are slices of it."""
        try:
            header, body_at = parse_request_header(frame, self._limits)
        except MalformedMessage as error:
            return _rejection(error, None)
        api_key, version = header.api_key, header.api_version
        versions = self._versions.get(api_key)
        if versions is None:
            return refused(header, "api_not_served")
        if not versions[0] <= version <= versions[1]:
            return _other_version(header, frame, body_at, versions)
        try:
            request, end = self._decoders[api_key](frame, version, body_at, self._limits)
        except MalformedMessage as error:
            return _rejection(error, header)
        if api_key in _ACCESS_CONTROL:
            from kraft_wire.node.requests.unknown_codes import unknown_code  # not needed at a start

            field = unknown_code(request)
            if field is not None:
                return replace(refused(header, "unknown_code"), field=field)
        return header, request, len(frame) - end


def _other_version(
    header: RequestHeader, frame: bytearray, body_at: int, versions: tuple[int, int]
) -> Answered | Rejection:
    if header.api_key == _API_VERSIONS:
        return Answered(header, _api_versions_refusal(versions))
    is_produce = header.api_key == _PRODUCE.key
    if is_produce and _PRODUCE.advertised_min <= header.api_version < _PRODUCE.versions[0]:
        body = _produce_refusal(header.api_version, frame, body_at)
        if body is not None:
            return Answered(header, body)
        return refused(header, "truncated")
    return refused(header, "version_not_served")


def refused(header: RequestHeader, reason: str) -> Rejection:
    """Return the rejection of a request for a reason other than its content."""
    return Rejection(
        reason,
        api_name(header.api_key),
        header.api_version,
        header.correlation_id,
        client_id=header.client_id,
    )


def unencodable(header: RequestHeader, problem: UnencodableMessage) -> Rejection:
    """Return the rejection of a request with a string too long for an answer or a record.

    32,767 invalid bytes of UTF-8 become a string of three times as many bytes, because each of them
    is read as U+FFFD; such a name cannot be written again.
    """
    refusal = refused(header, "unencodable")
    return replace(refusal, field=problem.field, details=[("detail", problem.reason)])


def _rejection(error: MalformedMessage, header: RequestHeader | None) -> Rejection:
    numbers = (("declared", error.declared), ("allowed", error.allowed))
    details = [(name, number) for name, number in numbers if number is not None]
    if header is None:
        return Rejection(error.kind.value, field=error.field, byte=error.byte, details=details)
    return Rejection(
        error.kind.value,
        api_name(header.api_key),
        header.api_version,
        header.correlation_id,
        error.field,
        error.byte,
        details,
        header.client_id,
    )


_KEY_RANGE: Final = Struct(">hihhh")
"""ApiVersionsResponse version 0 with one entry: error, count, key, lowest, highest version."""


def _api_versions_refusal(versions: tuple[int, int]) -> bytes:
    """Return the answer that every client can read, in any version of its request."""
    return _KEY_RANGE.pack(ErrorCode.UNSUPPORTED_VERSION, 1, _API_VERSIONS, *versions)


_COUNT: Final = Struct(">i")
_LENGTH: Final = Struct(">h")
_PRODUCE_HEAD: Final = Struct(">hi")
_PARTITION_HEAD: Final = Struct(">ii")
_PARTITION_RESULT: Final = Struct(">ihq")
_NO_TIME: Final = Struct(">q").pack(-1)
_FIRST_TIME_VERSION: Final = 2
"""Version of Produce since which the answer has the time of the append."""


def _produce_refusal(version: int, frame: bytearray, position: int) -> bytes | None:
    """Return a Produce answer of version 0 to 2 that refuses each partition; None for a cut frame.

    These versions have no class: release 4.0 removed their schemas (KIP-896).
    """
    view = memoryview(frame)
    answer = bytearray()
    position += _PRODUCE_HEAD.size  # acks and timeout
    try:
        topics = _read_count(view, position)
        answer += _COUNT.pack(topics)
        position += _COUNT.size
        for _ in range(topics):
            name_end = position + _LENGTH.size + max(0, _LENGTH.unpack_from(view, position)[0])
            answer += view[position:name_end]
            partitions = _read_count(view, name_end)
            answer += _COUNT.pack(partitions)
            position = name_end + _COUNT.size
            for _ in range(partitions):
                index, size = _PARTITION_HEAD.unpack_from(view, position)
                position += _PARTITION_HEAD.size + max(0, size)
                answer += _PARTITION_RESULT.pack(index, ErrorCode.UNSUPPORTED_VERSION, -1)
                answer += _NO_TIME if version >= _FIRST_TIME_VERSION else b""
    except (ValueError, struct_error):
        return None
    if position > len(view):
        return None
    return bytes(answer) + (_COUNT.pack(0) if version else b"")


def _read_count(view: memoryview, position: int) -> int:
    count: int = _COUNT.unpack_from(view, position)[0]
    if not 0 <= count <= len(view) - position:
        raise ValueError(count)
    return count
