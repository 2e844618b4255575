"""A streams group as its coordinator's answers have it: what its members read, and their tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from kraft_wire.cli.groups.describing import find_group
from kraft_wire.cli.groups.facts import GroupFacts
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated import describe_groups, metadata, streams_group_describe
from kraft_wire.wire.message import Message

SIZES = {"source": 2, "repartitioned": 4}
ASSIGNMENT = bytes.fromhex("000000000001000174000000020000000100000003ffffffff")
"""Of a consumer: version, topics by name with their partitions, no user data."""


class Coordinator:
    """The coordinator of one streams group, and of no other."""

    group = "g"

    def serves(self, request: Message) -> bool:
        return isinstance(request, streams_group_describe.StreamsGroupDescribeRequest)

    def send(
        self, request: Message, _: object, error_of: Callable[[Any], int], at_most: int = 0
    ) -> Any:
        answer = self._answer(request)
        assert error_of(answer) == 0
        return answer

    def _answer(self, request: Message) -> Message:
        if isinstance(request, describe_groups.DescribeGroupsRequest):
            group = describe_groups.DescribedGroup(group_id="g", group_state="Dead")
            return describe_groups.DescribeGroupsResponse(groups=[group])
        if isinstance(request, metadata.MetadataRequest):
            assert not request.allow_auto_topic_creation
            return metadata.MetadataResponse(
                topics=[
                    metadata.MetadataResponseTopic(
                        name=each.name,
                        partitions=[
                            metadata.MetadataResponsePartition(partition_index=number)
                            for number in range(SIZES.get(each.name or "", 0))
                        ],
                    )
                    for each in request.topics or ()
                ]
            )
        return streams_group_describe.StreamsGroupDescribeResponse(groups=[described()])


def described() -> streams_group_describe.DescribedGroup:
    made = streams_group_describe
    own = made.Assignment(
        active_tasks=[made.TaskIds(subtopology_id="0", partitions=[3, 1])],
        standby_tasks=[made.TaskIds(subtopology_id="0", partitions=[0])],
        warmup_tasks=[],
    )
    wanted = made.Assignment(
        active_tasks=[made.TaskIds(subtopology_id="0", partitions=[2])],
        standby_tasks=[],
        warmup_tasks=[],
    )
    subtopology = made.Subtopology(
        subtopology_id="0",
        source_topics=["source"],
        repartition_sink_topics=["elsewhere"],
        state_changelog_topics=[made.TopicInfo(name="changelog", partitions=4)],
        repartition_source_topics=[made.TopicInfo(name="repartitioned", partitions=4)],
    )
    member = made.Member(
        member_id="m",
        client_id="c",
        client_host="/h",
        process_id="p",
        assignment=own,
        target_assignment=wanted,
    )
    return made.DescribedGroup(
        group_id="g",
        group_state="Stable",
        topology=made.Topology(epoch=1, subtopologies=[subtopology]),
        members=[member],
    )


def test_a_streams_member_reads_what_its_active_tasks_have() -> None:
    """KIP-1071: of a source with fewer partitions than tasks, only those that exist."""
    facts = find_group(cast(GroupCoordinator, Coordinator()))
    assert facts is not None
    assert (facts.kind, facts.state) == ("streams", "Stable")
    (member,) = facts.members
    assert member.partitions == (
        TopicPartition("repartitioned", 1),
        TopicPartition("repartitioned", 3),
        TopicPartition("source", 1),
    )
    assert (member.active_tasks, member.standby_tasks) == (("0_1", "0_3"), ("0_0",))


class ClassicCoordinator(Coordinator):
    """The coordinator of one classic group."""

    def __init__(self, protocol_type: str, assignment: bytes) -> None:
        self.protocol_type = protocol_type
        self.assignment = assignment

    def _answer(self, request: Message) -> Message:
        assert isinstance(request, describe_groups.DescribeGroupsRequest)
        member = describe_groups.DescribedGroupMember(
            member_id="m",
            group_instance_id="i",
            client_id="c",
            client_host="/h",
            member_assignment=self.assignment,
        )
        group = describe_groups.DescribedGroup(
            group_id="g",
            group_state="Stable",
            protocol_type=self.protocol_type,
            protocol_data="range",
            members=[member],
        )
        return describe_groups.DescribeGroupsResponse(groups=[group])


@pytest.mark.parametrize(
    ("protocol_type", "assignment", "partitions"),
    [
        ("consumer", ASSIGNMENT, (TopicPartition("t", 1), TopicPartition("t", 3))),
        ("connect", ASSIGNMENT, ()),
        ("connect", b"\x00\x01\x00", ()),
        ("", b"", ()),
    ],
)
def test_classic_members_of_consumers_alone_have_partitions(
    protocol_type: str, assignment: bytes, partitions: tuple[TopicPartition, ...]
) -> None:
    """Kafka Connect shares its tasks with the same requests, in a form of its own."""
    facts = find_group(cast(GroupCoordinator, ClassicCoordinator(protocol_type, assignment)))
    assert facts is not None
    assert (facts.kind, facts.state, facts.assignor) == ("classic", "Stable", "range")
    (member,) = facts.members
    assert (member.member_id, member.instance_id) == ("m", "i")
    assert (member.client_id, member.host) == ("c", "/h")
    assert member.partitions == partitions


@pytest.mark.parametrize(
    ("state", "is_active"),
    [
        ("Empty", False),
        ("Dead", False),
        ("EMPTY", False),
        ("Stable", True),
        ("PreparingRebalance", True),
        ("CompletingRebalance", True),
        ("Assigning", True),
        ("Reconciling", True),
        ("NotReady", True),
    ],
)
def test_a_group_is_active_unless_it_is_empty_or_dead(state: str, is_active: bool) -> None:
    assert GroupFacts("g", "classic", state, "", ()).is_active is is_active
