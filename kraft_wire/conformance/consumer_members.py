"""Members of consumer groups (KIP-848), for the cases about them."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["LEAVE_EPOCH", "MEMBER_ID", "heartbeat", "joined", "joining", "prepared_member"]

MEMBER_ID: Final = "the-only-member"
LEAVE_EPOCH: Final = -1
"""With which a member leaves."""
_TIMEOUT_MS: Final = 60_000


def joining(group_id: str, topic: str) -> ConsumerGroupHeartbeatRequest:
    """Return the request of a member that joins."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=MEMBER_ID,
        member_epoch=0,
        rebalance_timeout_ms=_TIMEOUT_MS,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )


def heartbeat(
    group_id: str, epoch: int, member_id: str = MEMBER_ID
) -> ConsumerGroupHeartbeatRequest:
    """Return the request of a member that changes nothing."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id, member_id=member_id, member_epoch=epoch, topic_partitions=None
    )


def joined(
    broker: Subject, version: int, group_id: str, topic: Topic
) -> ConsumerGroupHeartbeatResponse:
    """Join a new group as its only member."""
    _await_topic(broker, topic)
    request = joining(group_id, topic.name)
    return broker.ask(request, version, ConsumerGroupHeartbeatResponse)


def prepared_member(broker: Subject, group_id: str, topic: Topic) -> ConsumerGroupHeartbeatResponse:
    """Join a new group as its only member, for a case about something else.

    Errors: NotSupported where the broker refuses all members of consumer groups.
    """
    _await_topic(broker, topic)
    answer = broker.prepare(joining(group_id, topic.name), ConsumerGroupHeartbeatResponse)
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise NotSupported("consumer groups are switched off")
    expect.error(answer, "error_code", ErrorCode.NONE)
    return answer


def _await_topic(broker: Subject, topic: Topic) -> None:
    """Have members of other groups join until one gets the topic's partitions.

    The coordinator may learn of a new topic a little later than the broker that it is part of.
    """
    for _ in broker.attempts(f"the coordinator to know topic {topic.name}"):
        group_id = broker.group()
        answer = broker.prepare(joining(group_id, topic.name), ConsumerGroupHeartbeatResponse)
        if answer.error_code:
            return  # The case reports the error.
        broker.prepare(heartbeat(group_id, LEAVE_EPOCH), ConsumerGroupHeartbeatResponse)
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return
