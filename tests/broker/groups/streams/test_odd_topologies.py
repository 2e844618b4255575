"""Topologies that contradict themselves or the topics: what is refused, and in which words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.broker.groups.java_collections import java_hash_set
from kraft_wire.broker.groups.streams.assigned_tasks import AssignedTasks
from kraft_wire.broker.groups.streams.endpoint_answers import EndpointAnswers
from kraft_wire.broker.groups.streams.endpoint_partitions import endpoint_partitions
from kraft_wire.broker.groups.streams.member import StreamsMember, UserEndpoint
from kraft_wire.broker.groups.streams.topology.changelog_topics import (
    changelog_counts,
    largest_input_count,
)
from kraft_wire.broker.groups.streams.topology.configured_topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    configure,
)
from kraft_wire.broker.groups.streams.topology.copartitioning import copartitioned_counts
from kraft_wire.broker.groups.streams.topology.failures import TopologyRefused
from kraft_wire.broker.groups.streams.topology.subtopologies import subtopologies_by_id
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import (
    EndpointToPartitions,
    ResponseEndpoint,
    TopicPartition,
)
from kraft_wire.wire.generated.streams_group_topology_value import (
    StreamsGroupTopologyValue,
    Subtopology,
    TopicInfo,
)
from tests.broker.groups.streams.our_answers import topics_image

COUNTS = {"one": 1, "three": 3, "five": 5}
Refused = tuple[ErrorCode, str | None]
SERVER_ERROR: Refused = (ErrorCode.UNKNOWN_SERVER_ERROR, None)


def refused(call: Callable[[], object]) -> Refused:
    with pytest.raises(TopologyRefused) as raised:
        call()
    return raised.value.refusal.error, raised.value.refusal.message


def reading(*sources: str, subtopology_id: str = "0", **topics: list[str]) -> Subtopology:
    """A subtopology of source topics, and internal topics by their field."""
    internal = {field: [TopicInfo(name=name) for name in names] for field, names in topics.items()}
    return Subtopology(subtopology_id=subtopology_id, source_topics=list(sources), **internal)


def topology(*subtopologies: Subtopology, epoch: int = 0) -> StreamsGroupTopologyValue:
    return StreamsGroupTopologyValue(epoch=epoch, subtopologies=list(subtopologies))


def test_topic_without_a_partition_count_is_an_unexpected_error() -> None:
    group = java_hash_set(["one", "gone"])
    assert refused(lambda: copartitioned_counts(group, (), (), {"gone"}, COUNTS.get)) == (
        SERVER_ERROR
    )
    odd = reading("three", "gone")
    assert refused(lambda: largest_input_count(odd, COUNTS.get)) == SERVER_ERROR


def test_changelogs_have_the_largest_count_of_what_is_read() -> None:
    more = {"repartition_source_topics": ["five"], "state_changelog_topics": ["store", "table"]}
    known = subtopologies_by_id(topology(reading("one", "three", **more)))
    assert changelog_counts(known, COUNTS.get) == {"store": 5, "table": 5}
    assert largest_input_count(reading("three", "one"), COUNTS.get) == 3
    assert largest_input_count(reading(), COUNTS.get) is None
    nothing = subtopologies_by_id(topology(reading("one"), reading(subtopology_id="7")))
    assert refused(lambda: changelog_counts(nothing, COUNTS.get)) == (
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        "No source topics found for subtopology 7",
    )


@pytest.mark.parametrize(
    "odd",
    [
        topology(reading("one"), epoch=-1),
        topology(reading("one"), reading("three")),
        topology(reading("one", state_changelog_topics=["store", "store"])),
        topology(reading("empty")),
    ],
    ids=["epoch", "id twice", "changelog twice", "no partitions"],
)
def test_topology_over_which_kafka_stumbles_is_an_unexpected_error(
    odd: StreamsGroupTopologyValue,
) -> None:
    image = topics_image({**COUNTS, "empty": 0})
    assert refused(lambda: configure(odd, 7, image)) == SERVER_ERROR


def configured(**sources: str) -> ConfiguredTopology:
    """A topology whose subtopologies have three tasks and one source topic each."""
    subtopologies = {
        f"{each[1:]}": ConfiguredSubtopology(3, (source,), {}, (), {})
        for each, source in sources.items()
    }
    return ConfiguredTopology(0, 0, subtopologies, {}, None)


def test_partitions_of_tasks_are_cut_to_those_of_the_topic() -> None:
    image = topics_image(COUNTS)
    at = ResponseEndpoint(host="host", port=9)
    known = configured(_0="three", _1="one").subtopologies
    active, standby = {"0": frozenset({2, 0})}, {"1": frozenset({1, 2})}
    assert endpoint_partitions(at, active, standby, known, image) == EndpointToPartitions(
        user_endpoint=at,
        active_partitions=[TopicPartition(topic="three", partitions=[0, 2])],
        standby_partitions=[TopicPartition(topic="one", partitions=[1])],
    )
    for subtopologies, tasks in (
        (None, {}),
        (known, {"2": frozenset({0})}),
        (configured(_0="gone").subtopologies, {"0": frozenset({0})}),
    ):
        assert refused(
            lambda s=subtopologies, t=tasks: endpoint_partitions(at, t, {}, s, image)
        ) == (  # type: ignore[misc]  # defaults bind it
            SERVER_ERROR
        )


def test_endpoints_are_computed_once_for_each_member_that_has_one() -> None:
    image, known = topics_image(COUNTS), configured(_0="three")
    tasks = AssignedTasks({"0": {1: 4}}, {}, {})
    first = StreamsMember("a", user_endpoint=UserEndpoint("host", 1), assigned=tasks)
    members = [first, StreamsMember("b", assigned=tasks)]
    members.append(StreamsMember("c", user_endpoint=UserEndpoint("other", 2)))
    answers = EndpointAnswers()
    found = answers.of(members, known, image)
    assert found == [
        EndpointToPartitions(
            user_endpoint=ResponseEndpoint(host="host", port=1),
            active_partitions=[TopicPartition(topic="three", partitions=[1])],
            standby_partitions=[],
        ),
        EndpointToPartitions(
            user_endpoint=ResponseEndpoint(host="other", port=2),
            active_partitions=[],
            standby_partitions=[],
        ),
    ]
    again = answers.of(members, known, image)
    assert [one is other for one, other in zip(again, found, strict=True)] == [True, True]
    answers.forget("a")
    answers.forget("unknown")
    again = answers.of(members, known, image)
    assert [one is other for one, other in zip(again, found, strict=True)] == [False, True]
    answers.forget_all()
    assert all(each is not found[1] for each in answers.of(members, known, image))
