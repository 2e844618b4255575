"""What requests about share groups must say, whatever the group: in Kafka's order and words."""

from typing import Final

from kraft_wire.broker.groups.java_collections import java_order
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.share_switch import serves_share_groups
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_heartbeat import ShareGroupHeartbeatRequest

__all__ = ["JOIN", "LEAVE", "check_offsets_request", "check_request", "is_member_id"]

JOIN: Final = 0
LEAVE: Final = -1
"""Member epochs of a request to join and to leave."""

_MEMBER_ID_LENGTH_MAX: Final = 36


def is_member_id(text: str | None) -> bool:
    """Whether a client may have made the text as a member id; its length is in UTF-16 units."""
    return text is not None and 0 < len(java_order(text)) // 2 <= _MEMBER_ID_LENGTH_MAX


def check_request(request: ShareGroupHeartbeatRequest) -> Refusal | None:
    """Return why a request is refused. Error: INVALID_REQUEST."""
    if not is_member_id(request.member_id):
        return Refusal(ErrorCode.INVALID_REQUEST)
    message = _ids(request) or _epoch(request)
    return None if message is None else Refusal(ErrorCode.INVALID_REQUEST, message)


def check_offsets_request(image: MetadataImage, group_id: str) -> Refusal | None:
    """Return why start offsets of a group cannot be changed, whatever the group.

    Errors, first match wins: UNSUPPORTED_VERSION (share groups are switched off), INVALID_GROUP_ID.
    """
    if not serves_share_groups(image):
        return Refusal.of(ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return Refusal.of(ErrorCode.INVALID_GROUP_ID)
    return None


def _ids(request: ShareGroupHeartbeatRequest) -> str | None:
    named = (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    )
    for name, value in named:
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    return None


def _epoch(request: ShareGroupHeartbeatRequest) -> str | None:
    if request.member_epoch == JOIN and not request.subscribed_topic_names:
        return "SubscribedTopicNames must be set in first request."
    return "MemberEpoch is invalid." if request.member_epoch < LEAVE else None
