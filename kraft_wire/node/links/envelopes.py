"""Envelope, API key 58: a client's request on its way through a broker to the active controller.

KIP-590 as 4.3.1 does it in KRaft. An envelope has the client's own header and body, its principal
(DefaultPrincipalData) and its address; its answer has response header and body. The envelope's own
error answers a request that cannot be read, and one that reached a controller that is not active:
the broker then looks for another one.
"""

from ipaddress import ip_address
from struct import Struct as Codec
from typing import Final, NamedTuple

from kraft_wire.apis.registry import FORWARDABLE
from kraft_wire.model import Principal
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.wire.generated.default_principal_data import DefaultPrincipalData
from kraft_wire.wire.generated.envelope import EnvelopeRequest, EnvelopeResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import REQUESTS, response_class
from kraft_wire.wire.header import (
    RequestHeader,
    encode_request_header,
    encode_response_header,
    parse_request_header,
    parse_response_header,
)
from kraft_wire.wire.message import DecodeLimits, MalformedMessage, Message, Struct

__all__ = ["Unpacked", "mentions", "open_answer", "pack", "seal_answer", "unpack"]

_VERSION: Final = Codec(">h")
_ADDRESS_SIZES: Final = (4, 16)


class Unpacked(NamedTuple):
    """The content of an envelope."""

    header: RequestHeader
    request: Message
    client_host: str
    principal: Principal


def pack(
    header: RequestHeader, request: Message, client_host: str, principal: Principal
) -> EnvelopeRequest:
    """Put a client's request into an envelope; raises UnencodableMessage."""
    try:
        address = ip_address(client_host).packed
    except ValueError:  # a host with other names for its clients
        address = bytes(4)
    data = DefaultPrincipalData(
        type=principal.type,
        name=principal.name,
        token_authenticated=principal.token_authenticated,
    )
    return EnvelopeRequest(
        request_data=encode_request_header(header) + request.encode(header.api_version),
        request_principal=_VERSION.pack(0) + data.encode(0),
        client_host_address=address,
    )


def unpack(envelope: EnvelopeRequest, decoder: RequestDecoder) -> Unpacked | EnvelopeResponse:
    """Return the request of an envelope, or the answer that refuses it.

    Errors, first match wins: PRINCIPAL_DESERIALIZATION_FAILURE, INVALID_REQUEST (the address),
    UNSUPPORTED_VERSION (the header), INVALID_REQUEST (an API that is not forwarded),
    UNSUPPORTED_VERSION (version or body).
    """
    principal = _principal(envelope.request_principal)
    if principal is None:
        return EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    address = bytes(envelope.client_host_address)
    if len(address) not in _ADDRESS_SIZES:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        header, _ = parse_request_header(envelope.request_data)
    except MalformedMessage:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if header.api_key in REQUESTS and header.api_key not in FORWARDABLE:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    decoded = decoder.decode(bytearray(envelope.request_data))
    if not isinstance(decoded, tuple):
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return Unpacked(*decoded[:2], str(ip_address(address)), principal)


def seal_answer(header: RequestHeader, response: Message) -> EnvelopeResponse:
    """Put the answer to an envelope's request into an envelope; raises UnencodableMessage."""
    if mentions(response, ErrorCode.NOT_CONTROLLER):
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
    return EnvelopeResponse(response_data=head + response.encode(header.api_version))


def open_answer(
    header: RequestHeader, envelope: EnvelopeResponse, limits: DecodeLimits
) -> Message | ErrorCode:
    """Return the answer for the client, or the error that replaces it.

    UNKNOWN_SERVER_ERROR for an answer that cannot be read, and for other errors of the envelope.
    """
    if envelope.error_code in (ErrorCode.NOT_CONTROLLER, ErrorCode.UNSUPPORTED_VERSION):
        return ErrorCode(envelope.error_code)
    data = envelope.response_data
    if envelope.error_code != ErrorCode.NONE or data is None:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    try:
        _, body_at = parse_response_header(data, header.api_key, header.api_version)
        answer, _ = response_class(header.api_key).decode(data, header.api_version, body_at, limits)
    except MalformedMessage:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return answer


def mentions(part: Struct, error: ErrorCode) -> bool:
    """Return whether any part of an answer has an error."""
    for name in part.field_names:
        value = getattr(part, name)
        if name == "error_code" and value == error:
            return True
        if isinstance(value, list) and any(
            isinstance(each, Struct) and mentions(each, error) for each in value
        ):
            return True
    return False


def _principal(data: bytes | memoryview | None) -> Principal | None:
    """Read the client's principal, None if it cannot be read or has more bytes."""
    if data is None or len(data) < _VERSION.size or _VERSION.unpack_from(data)[0] != 0:
        return None
    try:
        found, end = DefaultPrincipalData.decode(data, 0, _VERSION.size)
    except MalformedMessage:
        return None
    if end != len(data):
        return None
    return Principal(found.type, found.name, found.token_authenticated)
