"""What a topology in a heartbeat may not contain, and the record that it becomes."""

from __future__ import annotations

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.streams.topology.request_checks import (
    check_changelogs,
    check_regexes,
    check_topic_names,
    named_topics,
)
from kraft_wire.broker.groups.streams.topology.topology_value import topology_value
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    Subtopology,
    TopicInfo,
    Topology,
)
from kraft_wire.wire.json_form import message_to_json

TOPOLOGY = Topology(
    epoch=3,
    subtopologies=[
        Subtopology(
            subtopology_id="0",
            source_topics=["b", "a"],
            repartition_sink_topics=["r"],
            state_changelog_topics=[
                TopicInfo(name="c", topic_configs=[KeyValue(key="k", value="v")])
            ],
        ),
        Subtopology(
            subtopology_id="1",
            source_topics=["a"],
            repartition_source_topics=[TopicInfo(name="r", partitions=4, replication_factor=2)],
            copartition_groups=[CopartitionGroup(source_topics=[0], repartition_source_topics=[0])],
        ),
    ],
)


def test_each_topic_is_named_once_in_order() -> None:
    assert named_topics(TOPOLOGY) == ["b", "a", "r", "c"]


def test_internal_topics_are_refused_before_malformed_names() -> None:
    refusal = check_topic_names(["a/b", "__consumer_offsets", "a", "__share_group_state"])
    assert refusal == Refusal(
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        "Use of Kafka internal topics __consumer_offsets,__share_group_state "
        "in a Kafka Streams topology is prohibited.",
    )


def test_malformed_names_are_refused() -> None:
    refusal = check_topic_names(["a/b", "a", ".."])
    assert refusal == Refusal(
        ErrorCode.STREAMS_INVALID_TOPOLOGY, "Topic names a/b,.. are not valid topic names."
    )
    assert check_topic_names(["a", "b"]) is None


def test_patterns_of_source_topics_are_refused() -> None:
    assert check_regexes(TOPOLOGY) is None
    refusal = check_regexes(Topology(subtopologies=[Subtopology(source_topic_regex=["a.*"])]))
    assert refusal is not None
    assert refusal.error == ErrorCode.INVALID_REQUEST


def test_a_changelog_with_a_partition_count_is_refused() -> None:
    assert check_changelogs(TOPOLOGY) is None
    changelog = TopicInfo(name="c", partitions=-2)
    refusal = check_changelogs(
        Topology(subtopologies=[Subtopology(state_changelog_topics=[changelog])])
    )
    assert refusal == Refusal(
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        "Changelog topic c must have an undefined partition count, but it is set to -2.",
    )


def test_the_record_has_what_the_request_has() -> None:
    value = message_to_json(topology_value(TOPOLOGY), 0)
    first, second = value["subtopologies"]
    assert value["epoch"] == 3
    assert first["sourceTopics"] == ["b", "a"]
    assert first["stateChangelogTopics"] == [
        {
            "name": "c",
            "partitions": 0,
            "replicationFactor": 0,
            "topicConfigs": [{"key": "k", "value": "v"}],
        }
    ]
    assert second["repartitionSourceTopics"][0]["partitions"] == 4
    assert second["copartitionGroups"] == [
        {"sourceTopics": [0], "sourceTopicRegex": [], "repartitionSourceTopics": [0]}
    ]
