"""Request and response headers: correlation id, API key and version, client id.

KIP-482 for the tagged fields. Hand-written, although the schemas have headers too, because every
request passes here and the header itself has the version. Three exceptions: the client id keeps its
two-byte length in the flexible header, an ApiVersions response always has header version 0 (the
client does not know our versions), and only the retired ControlledShutdown version 0 has request
header version 0.
"""

from struct import Struct, error

from kraft_wire.frozen import maker, slotted
from kraft_wire.wire.generated.messages import MESSAGES
from kraft_wire.wire.generated.registry import REQUESTS
from kraft_wire.wire.message import Buffer, DecodeLimits, Malformation, MalformedMessage
from kraft_wire.wire.primitives import STRING_BYTES_MAX, decode_unsigned_varint

__all__ = [
    "ANSWERS_FLEXIBLE_FROM",
    "RequestHeader",
    "encode_request_header",
    "encode_response_header",
    "parse_request_header",
    "parse_response_header",
    "request_header_version",
    "response_header_version",
]

API_VERSIONS = MESSAGES["ApiVersionsRequest"].api_key
CONTROLLED_SHUTDOWN = 7
FLEXIBLE_FROM = {key: entry.flexible_from for key, entry in REQUESTS.items()}
NEVER_FLEXIBLE = 32767
ANSWERS_FLEXIBLE_FROM = FLEXIBLE_FROM | {API_VERSIONS: NEVER_FLEXIBLE}
"""Version since which the header of a response has tagged fields."""
EMPTY_TAGS = b"\x00"
_GROWING_FROM = STRING_BYTES_MAX // 3
"""A longer client id may be too long to be written, if its bytes are not UTF-8."""

HEAD = Struct(">hhih")
SHORT_HEAD = Struct(">hhi")
CORRELATION_ID = Struct(">i")


@slotted
class RequestHeader:
    """The header of a request; `client_id` is None if it is null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


new_header = maker(RequestHeader)


def request_header_version(api_key: int, api_version: int) -> int:
    """Return the header version of a request; version 1 for an unknown API."""
    if api_version >= FLEXIBLE_FROM.get(api_key, NEVER_FLEXIBLE):
        return 2
    return 0 if api_key == CONTROLLED_SHUTDOWN and api_version == 0 else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """Return the header version of the response to a request."""
    return 1 if api_version >= ANSWERS_FLEXIBLE_FROM.get(api_key, NEVER_FLEXIBLE) else 0


def parse_request_header(
    frame: Buffer, limits: DecodeLimits | None = None
) -> tuple[RequestHeader, int]:
    """Read the header at the start of a frame; return it and the offset of the body.

    Tagged fields of the header are checked against `limits` and skipped: their count and size are
    bounded although nothing is kept, because millions of them cost time before any authentication.
    Raises MalformedMessage.
    """
    try:
        api_key, api_version, correlation_id, length = HEAD.unpack_from(frame, 0)
    except error:
        return _parse_short_header(frame)
    if api_key == CONTROLLED_SHUTDOWN and api_version == 0:
        return _parse_short_header(frame)
    client_id, end = None, 10
    if length >= 0:
        end = 10 + length
        if end > len(frame):
            left = len(frame) - 10
            reason = f"{length} bytes are declared, {left} remain"
            kind = Malformation.LENGTH
            raise MalformedMessage("client_id", 10, reason, kind, declared=length, allowed=left)
        client_id = str(frame[10:end], "utf-8", "replace")
        if length > _GROWING_FROM and limits is not None:
            _check_client_id(client_id, limits.text_bytes)
    if api_version >= FLEXIBLE_FROM.get(api_key, NEVER_FLEXIBLE):
        if end == len(frame):
            raise _cut_off("tagged_fields", end)
        end = end + 1 if frame[end] == 0 else _skip_tags(frame, end, limits)
    return new_header(api_key, api_version, correlation_id, client_id), end


def _check_client_id(client_id: str, allowed: int) -> None:
    """Refuse a client id that no envelope and no record could have, as `walker` other strings.

    An invalid byte of UTF-8 is read as U+FFFD, which takes three bytes.
    """
    size = len(client_id.encode())
    if size > allowed:
        reason = f"string of {size} bytes, {allowed} are the maximum, as UTF-8"
        kind = Malformation.STRING
        raise MalformedMessage("client_id", 10, reason, kind, declared=size, allowed=allowed)


def _cut_off(field: str, byte: int) -> MalformedMessage:
    return MalformedMessage(field, byte, "the header is truncated", Malformation.CUT_OFF)


def _parse_short_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """Read the header of ControlledShutdown version 0, or refuse a too short one."""
    if len(frame) < SHORT_HEAD.size:
        reason = f"{len(frame)} bytes are not a header"
        raise MalformedMessage("request_header", 0, reason, Malformation.CUT_OFF)
    api_key, api_version, correlation_id = SHORT_HEAD.unpack_from(frame, 0)
    if api_key != CONTROLLED_SHUTDOWN or api_version != 0:
        raise _cut_off("client_id", 8)
    return RequestHeader(api_key, api_version, correlation_id, None), SHORT_HEAD.size


def _skip_tags(frame: Buffer, start: int, limits: DecodeLimits | None) -> int:
    """Skip a tag section; a count above 2**31 is negative in Apache's decoder and means none."""
    count, position = _tag_number(frame, start)
    count = count if count < 1 << 31 else 0
    if limits is not None and count > limits.tagged_fields:
        allowed = limits.tagged_fields
        reason = f"{count} tagged fields, {allowed} are the maximum"
        kind = Malformation.TAG_COUNT
        raise MalformedMessage(
            "tagged_fields", start, reason, kind, declared=count, allowed=allowed
        )
    for _ in range(count):
        _, position = _tag_number(frame, position)
        size, position = _tag_number(frame, position)
        if position + size > len(frame):
            raise _tag_size(start, size, len(frame) - position)
        position += size
    if limits is not None and position - start > limits.tagged_bytes:
        raise _tag_size(start, position - start, limits.tagged_bytes)
    return position


def _tag_size(start: int, declared: int, allowed: int) -> MalformedMessage:
    reason = f"tagged fields of {declared} bytes, {allowed} are the maximum"
    return MalformedMessage(
        "tagged_fields", start, reason, Malformation.TAG_SIZE, declared=declared, allowed=allowed
    )


def _tag_number(frame: Buffer, position: int) -> tuple[int, int]:
    """Read a count, a tag or a size of the tag section."""
    try:
        return decode_unsigned_varint(frame, position)
    except IndexError as failure:
        raise _cut_off("tagged_fields", position) from failure
    except ValueError as failure:
        reason = str(failure)
        raise MalformedMessage("tagged_fields", position, reason, Malformation.VARINT) from failure


def encode_request_header(header: RequestHeader) -> bytes:
    """Write a request header in the version of its API version."""
    version = request_header_version(header.api_key, header.api_version)
    head = SHORT_HEAD.pack(header.api_key, header.api_version, header.correlation_id)
    if version == 0:
        return head
    if header.client_id is None:
        client_id = b"\xff\xff"
    else:
        text = header.client_id.encode()
        client_id = len(text).to_bytes(2, "big", signed=True) + text
    return head + client_id + (EMPTY_TAGS if version == 2 else b"")


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Write the header of the response to a request."""
    if response_header_version(api_key, api_version) == 0:
        return CORRELATION_ID.pack(correlation_id)
    return CORRELATION_ID.pack(correlation_id) + EMPTY_TAGS


def parse_response_header(frame: Buffer, api_key: int, api_version: int) -> tuple[int, int]:
    """Read a response header; return the correlation id and the offset of the body.

    Raises MalformedMessage.
    """
    if len(frame) < 4:
        raise MalformedMessage("response_header", 0, f"{len(frame)} bytes are not a header")
    correlation_id: int = CORRELATION_ID.unpack_from(frame, 0)[0]
    if response_header_version(api_key, api_version) == 0:
        return correlation_id, 4
    return correlation_id, _skip_tags(frame, 4, None)
