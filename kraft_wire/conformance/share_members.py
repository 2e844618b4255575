"""Members of share groups (KIP-932), for the cases about them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from kraft_wire.conformance import expect
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.conformance.verdict import Mismatch, NotSupported
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.generated.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kraft_wire.wire.message import Message

__all__ = [
    "LEAVE_EPOCH",
    "MEMBER_ID",
    "OTHER_MEMBER_ID",
    "ask_about_shares",
    "assigned",
    "heartbeat",
    "joining",
    "member_epoch",
    "share_group",
]

MEMBER_ID: Final = "the-only-member"
OTHER_MEMBER_ID: Final = "the-other-member"
LEAVE_EPOCH: Final = -1
"""With which a member leaves."""
_FEATURE: Final = "share.version"
_INTERVAL: Final = "share.assignment.interval.ms"
_GROUP: Final = 32
_SET, _DELETE = 0, 1


R = TypeVar("R", bound=Message)


def ask_about_shares(broker: Subject, request: Message, version: int, response: type[R]) -> R:
    """Send a request of the case.

    Errors: NotSupported if it is UNSUPPORTED_VERSION and share groups are switched off.
    """
    answer = broker.ask(request, version, response)
    for each in (answer, *getattr(answer, "groups", ())):
        _needs_share_groups(broker, getattr(each, "error_code", ErrorCode.NONE))
    return answer


def _needs_share_groups(broker: Subject, code: int) -> None:
    """Raise NotSupported where a broker without the feature refuses requests about it."""
    if code != ErrorCode.UNSUPPORTED_VERSION:
        return
    greeting = ApiVersionsRequest(client_software_name="conform", client_software_version="1")
    features = broker.prepare(greeting, ApiVersionsResponse).finalized_features
    if not any(each.name == _FEATURE and each.max_version_level > 0 for each in features):
        raise NotSupported(f"share groups are switched off: {_FEATURE} is 0")


def joining(group_id: str, *topics: str, member_id: str = MEMBER_ID) -> ShareGroupHeartbeatRequest:
    """Return the request of a member that joins."""
    return ShareGroupHeartbeatRequest(
        group_id=group_id, member_id=member_id, member_epoch=0, subscribed_topic_names=list(topics)
    )


def heartbeat(group_id: str, epoch: int, member_id: str = MEMBER_ID) -> ShareGroupHeartbeatRequest:
    """Return the request of a member that changes nothing."""
    return ShareGroupHeartbeatRequest(
        group_id=group_id, member_id=member_id, member_epoch=epoch, subscribed_topic_names=None
    )


def _prepared(broker: Subject, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    answer = broker.prepare(request, ShareGroupHeartbeatResponse)
    _needs_share_groups(broker, answer.error_code)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return answer


def assigned(
    broker: Subject, group_id: str, topic: Topic, member_id: str = MEMBER_ID, partitions: int = 1
) -> ShareGroupHeartbeatResponse:
    """Join, and send heartbeats until the member has partitions of a topic.

    The group coordinator first has the share coordinators begin the state of the partitions.
    Returns the response that assigned them.
    """
    answer = _prepared(broker, joining(group_id, topic.name, member_id=member_id))
    for _ in broker.attempts(f"member {member_id} to have partitions"):
        found = answer.assignment.topic_partitions if answer.assignment is not None else []
        if any(each.topic_id == topic.topic_id for each in found) and partitions == sum(
            len(each.partitions) for each in found
        ):
            return answer
        answer = _prepared(broker, heartbeat(group_id, answer.member_epoch, member_id))
    raise AssertionError("attempts end in an exception")


def member_epoch(
    broker: Subject, group_id: str, topic: Topic, member_id: str = MEMBER_ID, partitions: int = 1
) -> int:
    """Join, and return the member's epoch once it has the topic's partitions."""
    return assigned(broker, group_id, topic, member_id, partitions).member_epoch


@contextmanager
def share_group(broker: Subject, settings: dict[str, str] | None = None) -> Iterator[str]:
    """Return the id of a new group; afterwards its members leave, and it is deleted.

    Partitions are assigned without a pause where the broker lets a group say so.
    """
    group_id = broker.group()
    with suppress(NotSupported):
        _alter(broker, group_id, _INTERVAL, _SET, "0")
    for name, value in (settings or {}).items():
        _alter(broker, group_id, name, _SET, value)
    try:
        yield group_id
    finally:
        reported = len(broker.exchanges)
        with suppress(Mismatch, NotSupported, OSError):
            _delete(broker, group_id, settings or {})
        del broker.exchanges[reported:]  # A report of a failed row ends with the field at fault.


def _delete(broker: Subject, group_id: str, settings: dict[str, str]) -> None:
    for each in (MEMBER_ID, OTHER_MEMBER_ID):
        request = heartbeat(group_id, LEAVE_EPOCH, each)
        broker.prepare(request, ShareGroupHeartbeatResponse)
    broker.prepare(DeleteGroupsRequest(groups_names=[group_id]), DeleteGroupsResponse)
    for name in (_INTERVAL, *settings):
        _alter(broker, group_id, name, _DELETE, None)


def _alter(broker: Subject, group_id: str, name: str, operation: int, value: str | None) -> None:
    change = AlterableConfig(name=name, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=_GROUP, resource_name=group_id, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = broker.prepare(request, IncrementalAlterConfigsResponse)
    if answer.responses[0].error_code:
        raise NotSupported(f"setting {name} of a group failed: {answer.responses[0].error_code}")
