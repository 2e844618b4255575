"""Members of streams groups (KIP-1071), for the cases about them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from kraft_wire.conformance import expect
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import Mismatch, NotSupported
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.generated.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kraft_wire.wire.message import Message

__all__ = [
    "LEAVE_EPOCH",
    "MEMBER_ID",
    "OTHER_MEMBER_ID",
    "SUBTOPOLOGY",
    "ask_about_streams",
    "assigned",
    "heartbeat",
    "joining",
    "member_epoch",
    "owning",
    "prepared",
    "prepared_until_status",
    "streams_group",
    "tasks_of_members",
    "topology",
]

MEMBER_ID: Final = "the-only-member"
OTHER_MEMBER_ID: Final = "the-other-member"
SUBTOPOLOGY: Final = "0"
"""The only subtopology of most topologies."""
LEAVE_EPOCH: Final = -1
"""With which a member leaves."""
_TIMEOUT_MS: Final = 60_000
_FEATURE: Final = "streams.version"
_AT_ONCE: Final = {
    "streams.initial.rebalance.delay.ms": "0",
    "streams.assignment.interval.ms": "0",
}
_GROUP: Final = 32
_SET, _DELETE = 0, 1

R = TypeVar("R", bound=Message)


def ask_about_streams(broker: Subject, request: Message, version: int, response: type[R]) -> R:
    """Send a request of the case.

    Errors: NotSupported if it is UNSUPPORTED_VERSION and streams groups are switched off.
    """
    answer = broker.ask(request, version, response)
    for each in (answer, *getattr(answer, "groups", ())):
        _needs_streams_groups(broker, getattr(each, "error_code", ErrorCode.NONE))
    return answer


def _needs_streams_groups(broker: Subject, code: int) -> None:
    """Raise NotSupported where a broker without the feature refuses requests about it."""
    if code != ErrorCode.UNSUPPORTED_VERSION:
        return
    greeting = ApiVersionsRequest(client_software_name="conform", client_software_version="1")
    features = broker.prepare(greeting, ApiVersionsResponse).finalized_features
    if not any(each.name == _FEATURE and each.max_version_level > 0 for each in features):
        raise NotSupported(f"streams groups are switched off: {_FEATURE} is 0")


def topology(
    *sources: str,
    changelogs: Sequence[str] = (),
    repartitions: Sequence[str] = (),
    sinks: Sequence[str] = (),
    epoch: int = 0,
) -> Topology:
    """Return a topology of one subtopology with these topics."""
    only = Subtopology(
        subtopology_id=SUBTOPOLOGY,
        source_topics=list(sources),
        state_changelog_topics=[TopicInfo(name=each) for each in changelogs],
        repartition_source_topics=[TopicInfo(name=each) for each in repartitions],
        repartition_sink_topics=list(sinks),
    )
    return Topology(epoch=epoch, subtopologies=[only])


def joining(
    group_id: str, wanted: Topology | None, member_id: str = MEMBER_ID
) -> StreamsGroupHeartbeatRequest:
    """Return the request of a member that joins; each member is a process of its own."""
    return StreamsGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=_TIMEOUT_MS,
        topology=wanted,
        process_id=f"process of {member_id}",
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )


def heartbeat(
    group_id: str, epoch: int, member_id: str = MEMBER_ID
) -> StreamsGroupHeartbeatRequest:
    """Return the request of a member that changes nothing."""
    return StreamsGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)


def owning(
    group_id: str, epoch: int, active: Sequence[int], member_id: str = MEMBER_ID
) -> StreamsGroupHeartbeatRequest:
    """Return the request of a member that has these active tasks, and no others."""
    request = heartbeat(group_id, epoch, member_id)
    owned = TaskIds(subtopology_id=SUBTOPOLOGY, partitions=list(active))
    request.active_tasks = [owned] if active else []
    request.standby_tasks, request.warmup_tasks = [], []
    return request


def prepared(
    broker: Subject, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    """Send a request that only prepares a case, and must succeed."""
    answer = broker.prepare(request, StreamsGroupHeartbeatResponse)
    _needs_streams_groups(broker, answer.error_code)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return answer


def assigned(
    broker: Subject,
    group_id: str,
    wanted: Topology,
    member_id: str = MEMBER_ID,
    *,
    tasks: int = 1,
) -> StreamsGroupHeartbeatResponse:
    """Join, and send heartbeats until the member has this number of active tasks.

    The coordinator may learn of a new topic a little later than the broker that it is part of.
    Returns the response that assigned them.
    """
    answer = prepared(broker, joining(group_id, wanted, member_id))
    for _ in broker.attempts(f"member {member_id} to have {tasks} tasks"):
        if sum(len(each.partitions) for each in answer.active_tasks or ()) == tasks:
            return answer
        answer = prepared(broker, heartbeat(group_id, answer.member_epoch, member_id))
    raise AssertionError("attempts end in an exception")


def member_epoch(
    broker: Subject,
    group_id: str,
    wanted: Topology,
    member_id: str = MEMBER_ID,
    *,
    tasks: int = 1,
) -> int:
    """Join, and return the member's epoch once it has this number of active tasks."""
    return assigned(broker, group_id, wanted, member_id, tasks=tasks).member_epoch


def tasks_of_members(
    broker: Subject, group_id: str, epochs: dict[str, int], count: int
) -> dict[str, list[tuple[str, int]]]:
    """Send heartbeats of members in turns until they have `count` active tasks together.

    `epochs` has each member's epoch, and follows the answers. Returns the number of tasks of each
    subtopology, in order, by member.
    """
    seen: dict[str, list[tuple[str, int]]] = {}
    for _ in broker.attempts(f"{count} tasks of {len(epochs)} members"):
        for member_id, epoch in epochs.items():
            answer = prepared(broker, heartbeat(group_id, epoch, member_id))
            epochs[member_id] = answer.member_epoch
            if answer.active_tasks:
                tasks = answer.active_tasks
                seen[member_id] = sorted(
                    (each.subtopology_id, len(each.partitions)) for each in tasks
                )
        if sum(number for tasks in seen.values() for _, number in tasks) == count:
            return seen
    raise AssertionError("attempts end in an exception")


def prepared_until_status(broker: Subject, group_id: str, wanted: Topology, code: int) -> int:
    """Join, and send heartbeats until a status comes; return the member's epoch."""
    answer = prepared(broker, joining(group_id, wanted))
    for _ in broker.attempts(f"status {code} of group {group_id}"):
        if [each.status_code for each in answer.status or ()] == [code]:
            return answer.member_epoch
        answer = prepared(broker, heartbeat(group_id, answer.member_epoch))
    raise AssertionError("attempts end in an exception")


@contextmanager
def streams_group(broker: Subject, settings: dict[str, str] | None = None) -> Iterator[str]:
    """Return the id of a new group; afterwards its members leave, and it is deleted.

    Tasks are assigned without a pause where the broker lets a group say so.
    """
    group_id = broker.group()
    wanted = {**_AT_ONCE, **(settings or {})}
    for name, value in wanted.items():
        with suppress(*(() if name in (settings or {}) else (NotSupported,))):
            _alter(broker, group_id, name, _SET, value)
            _await_setting(broker, group_id, name, value)
    try:
        yield group_id
    finally:
        reported = len(broker.exchanges)
        with suppress(Mismatch, NotSupported, OSError):
            _delete(broker, group_id, wanted)
        del broker.exchanges[reported:]  # A report of a failed row ends with the field at fault.


def _await_setting(broker: Subject, group_id: str, name: str, value: str) -> None:
    """Wait until the broker has a setting that the controller took."""
    resource = DescribeConfigsResource(
        resource_type=_GROUP, resource_name=group_id, configuration_keys=[name]
    )
    for _ in broker.attempts(f"setting {name} of group {group_id}"):
        request = DescribeConfigsRequest(resources=[resource])
        found = broker.prepare(request, DescribeConfigsResponse).results[0].configs
        if [each.value for each in found] == [value]:
            return


def _delete(broker: Subject, group_id: str, settings: dict[str, str]) -> None:
    for each in (MEMBER_ID, OTHER_MEMBER_ID):
        request = heartbeat(group_id, LEAVE_EPOCH, each)
        broker.prepare(request, StreamsGroupHeartbeatResponse)
    broker.prepare(DeleteGroupsRequest(groups_names=[group_id]), DeleteGroupsResponse)
    for name in settings:
        _alter(broker, group_id, name, _DELETE, None)


def _alter(broker: Subject, group_id: str, name: str, operation: int, value: str | None) -> None:
    change = AlterableConfig(name=name, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=_GROUP, resource_name=group_id, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = broker.prepare(request, IncrementalAlterConfigsResponse)
    if answer.responses[0].error_code:
        raise NotSupported(f"setting {name} of a group failed: {answer.responses[0].error_code}")
