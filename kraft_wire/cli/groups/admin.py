"""The requests of the `groups` verbs to a cluster, as plain values.

ListGroups goes to every broker, everything else to a group's coordinator. How a group is described
is in `describing`.
"""

from collections.abc import Mapping, Sequence

from kraft_wire.cli.groups.facts import GroupFacts, ListedGroup, OffsetRow
from kraft_wire.cli.topics.admin import topics
from kraft_wire.client.cluster import LATEST_TIMESTAMP, ClusterClient, the_only
from kraft_wire.client.coordinator import ELSEWHERE, GroupCoordinator
from kraft_wire.client.group_offsets import commit_offsets, committed_offsets, delete_offsets
from kraft_wire.client.refused import AdminRefused
from kraft_wire.client.share_group_offsets import (
    alter_share_offsets,
    delete_share_offsets,
    share_offsets,
)
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse

__all__ = [
    "delete_group",
    "delete_known_offsets",
    "known_offsets",
    "listed_groups",
    "offset_rows",
    "set_offsets",
]


def listed_groups(cluster: ClusterClient) -> list[ListedGroup]:
    """Return the groups of all brokers, in the order of their names. Errors: ClusterRefused."""
    found: dict[str, ListedGroup] = {}
    for broker_id in cluster.broker_ids():
        answer = cluster.broker(broker_id).send(ListGroupsRequest(), ListGroupsResponse)
        if answer.error_code and answer.error_code not in ELSEWHERE:
            raise AdminRefused(f"broker {broker_id}", answer.error_code, None)
        for each in answer.groups:
            found[each.group_id] = ListedGroup(
                group=each.group_id,
                state=each.group_state or None,
                type=each.group_type or None,
                protocol_type=each.protocol_type,
            )
    return [found[name] for name in sorted(found)]


def offset_rows(
    cluster: ClusterClient, coordinator: GroupCoordinator, facts: GroupFacts
) -> list[OffsetRow]:
    """Return a row for each partition that has an offset or a member, in their order."""
    if facts.kind == "share":
        return _share_rows(cluster, coordinator)
    committed = committed_offsets(coordinator, None)
    owners = {key: member for member in facts.members for key in member.partitions}
    ends = _ends(cluster, [*committed, *owners])
    rows = []
    for key in sorted({*committed, *owners}):
        offset, end = committed.get(key), ends.get(key)
        lag = None if offset is None or end is None else max(0, end - offset)
        row = OffsetRow(key.topic, key.partition, offset, end, lag, owners.get(key))
        rows.append(row)
    return rows


def _share_rows(cluster: ClusterClient, coordinator: GroupCoordinator) -> list[OffsetRow]:
    """Return the rows of a share group; its lag leaves out final records behind the start."""
    found = share_offsets(coordinator)
    ends = _ends(cluster, [*found])
    return [
        OffsetRow(key.topic, key.partition, each.start_offset, ends.get(key), each.lag, None)
        for key, each in sorted(found.items())
    ]


def _ends(cluster: ClusterClient, keys: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Return the log end offsets of existing partitions, none for a deleted topic."""
    counts = {each.name: each.partitions_count for each in topics(cluster.any_broker())}
    there = [key for key in keys if key.partition < counts.get(key.topic, 0)]
    return cluster.offsets_at(dict.fromkeys(there, LATEST_TIMESTAMP)) if there else {}


def known_offsets(
    coordinator: GroupCoordinator, facts: GroupFacts | None
) -> dict[TopicPartition, int]:
    """Return the offsets that a group would read on from; `facts` is None for a new group."""
    if facts is None or facts.kind != "share":
        return committed_offsets(coordinator, None)
    found = share_offsets(coordinator)
    return {key: each.start_offset for key, each in found.items() if each.start_offset is not None}


def set_offsets(
    coordinator: GroupCoordinator,
    facts: GroupFacts | None,
    offsets: Mapping[TopicPartition, int],
) -> None:
    """Have a group without members read on from other offsets. Errors: AdminRefused."""
    if facts is not None and facts.kind == "share":
        alter_share_offsets(coordinator, offsets)
        return
    code = commit_offsets(coordinator, offsets)
    if code:
        raise AdminRefused(f"group {coordinator.group}: not committed", code, None)


def delete_known_offsets(
    coordinator: GroupCoordinator, facts: GroupFacts, keys: Sequence[TopicPartition]
) -> None:
    """Delete offsets; a share group loses those of whole topics. Errors: AdminRefused."""
    if facts.kind != "share":
        delete_offsets(coordinator, keys)
        return
    for topic in dict.fromkeys(key.topic for key in keys):
        delete_share_offsets(coordinator, topic)


def delete_group(coordinator: GroupCoordinator) -> None:
    """Delete a group without members. Errors: AdminRefused."""
    answer = coordinator.send(
        DeleteGroupsRequest(groups_names=[coordinator.group]),
        DeleteGroupsResponse,
        lambda each: the_only(each.results, "groups").error_code,
    )
    code = the_only(answer.results, "groups").error_code
    if code:
        raise AdminRefused(f"group {coordinator.group}", code, None)
