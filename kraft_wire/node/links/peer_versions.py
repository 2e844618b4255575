"""Which version to speak with a peer: its ApiVersions answer read, a common version chosen.

KIP-35, KIP-511. A request that no common version can carry has an answer of our own making, whose
error is UNSUPPORTED_VERSION, so that its asker needs no other way to hear of it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import parse_response_header
from kraft_wire.wire.message import Buffer, DecodeLimits, Malformation, MalformedMessage, Message

__all__ = [
    "NodeApiVersions",
    "PeerVersions",
    "common_version",
    "read_node_api_versions",
    "unsupported",
]

PeerVersions: TypeAlias = Mapping[int, tuple[int, int]]
"""API key to inclusive versions that a peer serves."""

_ERROR_BYTES: Final = 2


class NodeApiVersions(NamedTuple):
    """What a peer answered to ApiVersions."""

    error_code: int
    versions: PeerVersions
    next_version: int = -1
    """The version to ask in again, -1 where there is nothing to ask."""


def read_node_api_versions(frame: Buffer, version: int, limits: DecodeLimits) -> NodeApiVersions:
    """Read the answer to ApiVersions asked in `version`; raises MalformedMessage.

    A peer that does not know the version answers in version 0, naming the ones that it knows.
    """
    _, body_at = parse_response_header(frame, ApiVersionsRequest.API_KEY, version)
    if len(frame) < body_at + _ERROR_BYTES:
        raise MalformedMessage("error_code", body_at, "cut off", Malformation.CUT_OFF)
    error = int.from_bytes(frame[body_at : body_at + _ERROR_BYTES], "big", signed=True)
    is_refused = error == ErrorCode.UNSUPPORTED_VERSION
    response, _ = ApiVersionsResponse.decode(frame, 0 if is_refused else version, body_at, limits)
    versions = {
        each.api_key: (each.min_version, each.max_version)
        for each in response.api_keys
        if 0 <= each.min_version <= each.max_version
    }
    if not is_refused or version == 0:
        return NodeApiVersions(error, versions)
    _, known = versions.get(ApiVersionsRequest.API_KEY, (0, 0))
    return NodeApiVersions(error, versions, min(known, version - 1))


def common_version(request: Message, offered: PeerVersions) -> int | None:
    """Return the newest version of a request that both sides have, None where there is none."""
    low, high = offered.get(request.API_KEY, (0, -1))
    version = min(high, request.MAX_VERSION - request.LATEST_VERSION_UNSTABLE)
    return version if version >= max(low, request.MIN_VERSION) else None


def unsupported(request: Message) -> Message | None:
    """Return the answer to a request that cannot be asked, None where it could not say so."""
    response = response_class(request.API_KEY)()
    if "error_code" not in response.field_names:
        return None
    setattr(response, "error_code", ErrorCode.UNSUPPORTED_VERSION)  # noqa: B010  # asserted above
    return response
