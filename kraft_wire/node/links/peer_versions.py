"""Versions for a peer: reads its ApiVersions answer, chooses a common version.

KIP-35, KIP-511. If no common version has a request's fields, an answer with the error
UNSUPPORTED_VERSION is made here, so that the sender needs no other error handling.
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
    """The result of ApiVersions."""

    error_code: int
    versions: PeerVersions
    next_version: int = -1
    """The version for another ApiVersions request, -1 if none is needed."""


def read_node_api_versions(frame: Buffer, version: int, limits: DecodeLimits) -> NodeApiVersions:
    """Read the answer to ApiVersions of `version`; raises MalformedMessage.

    A peer that does not support the version answers in version 0, with its own versions.
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
    """Return the newest version of a request that both sides support, None without one."""
    low, high = offered.get(request.API_KEY, (0, -1))
    version = min(high, request.MAX_VERSION - request.LATEST_VERSION_UNSTABLE)
    return version if version >= max(low, request.MIN_VERSION) else None


def unsupported(request: Message) -> Message | None:
    """Return UNSUPPORTED_VERSION as the answer to a request, None without a field for it."""
    response = response_class(request.API_KEY)()
    if "error_code" not in response.field_names:
        return None
    setattr(response, "error_code", ErrorCode.UNSUPPORTED_VERSION)  # noqa: B010  # asserted above
    return response
