"""What stories about streams groups ask of a node beside the members' own requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.generated.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kraft_wire.wire.generated.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kraft_wire.wire.generated.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kraft_wire.wire.json_form import message_to_json
from tests.apache.streams_members import Member, shown, subtopology, topology
from tests.waiting import until

__all__ = ["PROBE", "Cluster"]

PROBE: Final = "probe-"
"""What the groups begin with that no story is about."""
NOT_YET: Final = (14, 15, 16)
"""A coordinator that loads, is not there, or is another."""
GROUP, TOPIC = 32, 2
SET = 0
BY_NAME = 9
"""The last version of offset requests that has topics by their names."""
SUBSCRIPTION = b"\x00\x00" + b"\x00\x00\x00\x00" + b"\xff\xff\xff\xff"


class Cluster:
    """A node that has all topics and coordinates all groups."""

    def __init__(self, node: BrokerConnection) -> None:
        self._node = node

    def await_coordinators(self) -> None:
        """Wait until the coordinator of any group serves."""
        for number in range(20):
            group = f"{PROBE}{number}"
            member = Member(self._node, group, "unknown-member")
            until(partial(self._serves, group, member), lambda: "no coordinator")

    def _serves(self, group: str, member: Member) -> bool:
        """Whether the coordinator of a group takes a heartbeat."""
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        found = self._node.send(request, FindCoordinatorResponse)
        member.beats(member_epoch=1)
        return found.coordinators[0].error_code == 0 and member.last.error_code not in NOT_YET

    def topic(self, name: str, partitions: int) -> None:
        """Create a topic and wait until coordinators know it."""
        wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)
        answer = self._node.send(request, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer

        group = f"{PROBE}topic-{name}-{answer.topics[0].topic_id}"
        self.assigns_at_once(group)
        member = Member(self._node, group, "one")
        member.joins(topology(subtopology(sources=[name])))
        assert member.last.error_code == 0, member.last.error_message
        until(lambda: (member.beats(), member.active)[1], lambda: f"no tasks of {name}")
        member.leaves()

    def assigns_at_once(self, group: str) -> None:
        """Have a group assign tasks without a pause."""
        for each in ("initial.rebalance.delay.ms", "assignment.interval.ms"):
            answer = self.sets(group, f"streams.{each}", "0")
            assert answer["responses"][0]["errorCode"] == 0, answer

    def keeps_until(self, member: Member, holds: Callable[[], bool]) -> None:
        """Send heartbeats of a member until something holds."""
        until(lambda: holds() or (member.beats(), holds())[1], lambda: member.last, every_s=0.05)

    def grows(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        wanted = CreatePartitionsTopic(name=topic, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=30_000)
        assert self._node.send(request, CreatePartitionsResponse).results[0].error_code == 0

    def removes(self, topic: str) -> None:
        """Delete a topic."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=30_000)
        assert self._node.send(request, DeleteTopicsResponse).responses[0].error_code == 0

    def settled(self, member: Member) -> Any:
        """Send heartbeats until nothing is wrong with the topology any more."""
        until(lambda: (member.beats(), not member.last.status)[1], lambda: member.last.status)
        return shown(member.last)

    def made(self, names: Sequence[str]) -> Any:
        """Wait for topics; return their partitions, replicas and own settings."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )

        def there() -> list[Any]:
            found = self._node.send(request, MetadataResponse).topics
            return [] if any(each.error_code for each in found) else found

        topics = until(there, lambda: f"{names} are not made")
        sizes = {t.name: (len(t.partitions), len(t.partitions[0].replica_nodes)) for t in topics}
        return [(name, sizes[name], self._settings_of(name)) for name in names]

    def is_there(self, topic: str) -> bool:
        """Whether a topic exists, and this connection's user may describe it."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        return self._node.send(request, MetadataResponse).topics[0].error_code == 0

    def _settings_of(self, topic: str) -> list[tuple[str, str | None]]:
        wanted = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic)
        wanted.configuration_keys = None
        answer = self._node.send(
            DescribeConfigsRequest(resources=[wanted]), DescribeConfigsResponse
        )
        own = 1
        found = answer.results[0].configs
        return sorted((each.name, each.value) for each in found if each.config_source == own)

    def sets(self, group: str, name: str, value: str) -> Any:
        """Set a setting of a group, and wait until the node has it."""
        change = AlterableConfig(name=name, config_operation=SET, value=value)
        resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = self._node.send(request, IncrementalAlterConfigsResponse)
        if answer.responses[0].error_code == 0:
            wanted = DescribeConfigsResource(
                resource_type=GROUP, resource_name=group, configuration_keys=[name]
            )
            asked = DescribeConfigsRequest(resources=[wanted])

            def has() -> bool:
                found = self._node.send(asked, DescribeConfigsResponse).results[0].configs
                return [each.value for each in found] == [value]

            until(has, lambda: f"{group} has no {name}")
        return shown(answer)

    def listed(self, group: str) -> Any:
        """Return a group as it is listed, by all and by its type."""
        found = []
        for types in ([], ["Streams"], ["share"]):
            request = ListGroupsRequest(types_filter=types)
            answer = self._node.send(request, ListGroupsResponse)
            found += [
                (each.protocol_type, each.group_state, each.group_type)
                for each in answer.groups
                if each.group_id == group
            ]
        return found

    def deletes(self, group: str) -> Any:
        """Delete a group."""
        request = DeleteGroupsRequest(groups_names=[group])
        return message_to_json(self._node.send(request, DeleteGroupsResponse), 2)

    def commits(
        self, group: str, topic: str, member: str, epoch: int, version: int = BY_NAME
    ) -> Any:
        """Commit offset 0 of both partitions."""
        places = [OffsetCommitRequestPartition(partition_index=each) for each in range(2)]
        request = OffsetCommitRequest(
            group_id=group,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=places)],
        )
        answer = self._node.send(request, OffsetCommitResponse, version=version)
        return [each.error_code for each in answer.topics[0].partitions]

    def fetches(self, group: str, topic: str, member: str | None, epoch: int) -> Any:
        """Fetch the offsets of both partitions."""
        wanted = OffsetFetchRequestGroup(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])],
        )
        request = OffsetFetchRequest(groups=[wanted])
        answer = self._node.send(request, OffsetFetchResponse, version=BY_NAME)
        return message_to_json(answer, BY_NAME)

    def deletes_offsets(self, group: str, topic: str) -> Any:
        """Delete the offset of partition 1."""
        places = [OffsetDeleteRequestPartition(partition_index=1)]
        topics = [OffsetDeleteRequestTopic(name=topic, partitions=places)]
        request = OffsetDeleteRequest(group_id=group, topics=topics)
        return message_to_json(self._node.send(request, OffsetDeleteResponse), 0)

    def joins_as(self, kind: str, group: str, topic: str) -> int:
        """Join a group as a member of another kind, leave if that went well; return the error."""
        if kind == "consumer":
            asked = ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id="other",
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[topic],
                topic_partitions=[],
            )
            return self._joins_and_leaves(asked, ConsumerGroupHeartbeatResponse)
        if kind == "share":
            share = ShareGroupHeartbeatRequest(
                group_id=group, member_id="other", subscribed_topic_names=[topic]
            )
            return self._joins_and_leaves(share, ShareGroupHeartbeatResponse)
        protocol = JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
        classic = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        return self._node.send(classic, JoinGroupResponse, version=3).error_code

    def _joins_and_leaves(self, request: Any, response: Any) -> int:
        code: int = self._node.send(request, response).error_code
        if code == 0 and request.group_id == "kinds":
            request.member_epoch = -1
            with suppress(AttributeError):
                request.topic_partitions = None
            request.subscribed_topic_names = None
            assert self._node.send(request, response).error_code == 0
        return code

    def described_as_others(self, group: str) -> Any:
        """Describe a group by the requests of other kinds; return the errors."""
        consumer = ConsumerGroupDescribeRequest(group_ids=[group])
        share = ShareGroupDescribeRequest(group_ids=[group])
        classic = DescribeGroupsRequest(groups=[group])
        found = self._node.send(classic, DescribeGroupsResponse).groups[0]
        return [
            self._node.send(consumer, ConsumerGroupDescribeResponse).groups[0].error_code,
            self._node.send(share, ShareGroupDescribeResponse).groups[0].error_code,
            (found.error_code, found.group_state),
        ]
