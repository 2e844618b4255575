"""The answer to a heartbeat of a streams group: tasks, endpoints, and what the group lacks."""

from kraft_wire.broker.groups.java_collections import java_hash_set
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.streams.group_settings import heartbeat_interval_ms
from kraft_wire.broker.groups.streams.member_steps import Walk
from kraft_wire.broker.groups.streams.request_checks import JOIN
from kraft_wire.broker.groups.streams.tasks import Tasks
from kraft_wire.broker.groups.streams.topology.configured_topology import ConfiguredTopology
from kraft_wire.broker.groups.streams.topology.failures import GroupStatus, TopologyRefused
from kraft_wire.wire.generated.streams_group_heartbeat import (
    ResponseTaskIds,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

__all__ = ["heartbeat_answer"]


def heartbeat_answer(
    walk: Walk, request: StreamsGroupHeartbeatRequest, configured: ConfiguredTopology
) -> StreamsGroupHeartbeatResponse | Refusal:
    """Answer with the member's tasks to a join, and if they changed; with endpoints if newer.

    Error: UNKNOWN_SERVER_ERROR (an endpoint, and topics are missing).
    """
    group, member = walk.group, walk.member
    response = StreamsGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(walk.shard.env, group.group_id),
    )
    if request.member_epoch == JOIN or member.assigned != walk.former.assigned:
        tasks = member.assigned.without_epochs
        response.active_tasks = _task_ids(tasks.active)
        response.standby_tasks = _task_ids(tasks.standby)
        response.warmup_tasks = _task_ids(tasks.warmup)
        group.endpoints.forget(member.member_id)
        group.endpoints.epoch += member.user_endpoint is not None
    if group.endpoints.epoch != request.endpoint_information_epoch:
        others = (each for each in group.members.values() if each.member_id != member.member_id)
        image = walk.shard.env.image()
        try:
            endpoints = group.endpoints.of((*others, member), configured, image)
        except TopologyRefused as refused:
            return refused.refusal
        response.partitions_by_user_endpoint = endpoints
    if walk.is_known_group:
        # A new group is made of its records, which do not have this epoch.
        response.endpoint_information_epoch = group.endpoints.epoch
    _tell(walk, configured)
    response.status = walk.statuses
    return response


def _tell(walk: Walk, configured: ConfiguredTopology) -> None:
    failure, requester = configured.failure, walk.group.shutdown_member_id
    if failure is not None:
        walk.add_status(failure.status, failure.message)
    if requester is not None:
        walk.add_status(
            GroupStatus.SHUTDOWN_APPLICATION,
            f"Streams group member {requester} encountered a fatal error and requested a shutdown "
            "for the entire application.",
        )


def _task_ids(tasks: Tasks) -> list[ResponseTaskIds]:
    return [
        ResponseTaskIds(subtopology_id=each, partitions=sorted(tasks[each]))
        for each in java_hash_set(tasks)
    ]
