"""Members of classic groups, driven request by request, for the group cases."""

import struct
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kraft_wire.wire.generated.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

__all__ = [
    "ASSIGNMENT",
    "SUBSCRIPTION",
    "join_request",
    "joined",
    "stable_member",
    "subscription",
    "sync_request",
]

ASSIGNMENT: Final = b"assignment of the conformance suite"

SUBSCRIPTION: Final = b"\x00\x00" + b"\x00\x00\x00\x00" + b"\xff\xff\xff\xff"
"""A consumer's subscription in version 0: no topics, no user data.

It must be readable: 4.3.1 never answers a consumer whose subscription is cut off.
"""

_SESSION_TIMEOUT_MS: Final = 10_000
_JOIN_VERSION: Final = 5
_SYNC_VERSION: Final = 3
_PROTOCOL_TYPE: Final = "consumer"
_PROTOCOL_NAMED_SINCE: Final = 5


def subscription(topic: str) -> bytes:
    """Return a consumer's subscription in version 0 to one topic."""
    name = topic.encode()
    return struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)


def join_request(
    group_id: str,
    member_id: str = "",
    *,
    protocol: str = "range",
    protocol_type: str = _PROTOCOL_TYPE,
    session_timeout_ms: int = _SESSION_TIMEOUT_MS,
    group_instance_id: str | None = None,
    metadata: bytes = SUBSCRIPTION,
) -> JoinGroupRequest:
    """Return a JoinGroup of a consumer with one protocol."""
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=_SESSION_TIMEOUT_MS,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=protocol, metadata=metadata)],
    )


def joined(
    connection: Connection,
    version: int,
    group_id: str,
    *,
    group_instance_id: str | None = None,
    metadata: bytes = SUBSCRIPTION,
) -> JoinGroupResponse:
    """Join a group with the member id that the broker demands (KIP-394); return its answer."""
    request = join_request(group_id, group_instance_id=group_instance_id, metadata=metadata)
    answer = connection.ask(request, version, JoinGroupResponse)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        request.member_id = answer.member_id
        answer = connection.ask(request, version, JoinGroupResponse)
    return answer


def sync_request(
    group_id: str, joined_as: JoinGroupResponse, version: int, *, leads: bool = True
) -> SyncGroupRequest:
    """Return the SyncGroup that follows a JoinGroup; a leader assigns to each member."""
    members = [each.member_id for each in joined_as.members] if leads else []
    assignments = [
        SyncGroupRequestAssignment(member_id=each, assignment=ASSIGNMENT) for each in members
    ]
    is_named = version >= _PROTOCOL_NAMED_SINCE
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=joined_as.generation_id,
        member_id=joined_as.member_id,
        protocol_type=_PROTOCOL_TYPE if is_named else None,
        protocol_name=joined_as.protocol_name if is_named else None,
        assignments=assignments,
    )


def stable_member(broker: Subject, group_id: str) -> JoinGroupResponse:
    """Bring a group of one member into the state Stable; return the member's JoinGroup answer."""
    connection = broker.connect()
    answer = joined(connection, _JOIN_VERSION, group_id)
    expect.error(answer, "error_code", ErrorCode.NONE)
    request = sync_request(group_id, answer, _SYNC_VERSION)
    synced = connection.ask(request, _SYNC_VERSION, SyncGroupResponse)
    expect.error(synced, "error_code", ErrorCode.NONE)
    return answer
