"""Our streams groups behind the steps that Apache's take (`apache_groups`), without a broker."""

from __future__ import annotations

from typing import Any

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.streams.describe import described_streams_group
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.heartbeat import StreamsClient, streams_heartbeat
from kraft_wire.broker.groups.streams.offset_checks import (
    check_streams_commit,
    check_streams_fetch,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from tests.broker.groups.consumer.apache_groups import Answer, Step
from tests.broker.groups.consumer.our_groups import OurGroups, as_json


class OurStreamsGroups(OurGroups):
    """One shard under virtual time."""

    def _taken(self, step: Step) -> Answer:
        if not step["step"].startswith("streams "):
            return super()._taken(step)
        name = step["step"].removeprefix("streams ")
        answer: Answer = getattr(self, f"_streams_{name}")(step)
        return answer

    def _streams_heartbeat(self, step: Step) -> Answer:
        before = self._log_end
        client = StreamsClient(step["client"], "/127.0.0.1")
        outcome = streams_heartbeat(self.shard, request_of(step["request"]), client, self._at)
        if isinstance(outcome, Refusal):
            assert self._log_end == before
            return {"error": int(outcome.error), "message": outcome.message}
        answer = {"response": as_json(outcome.response), "writes": self._writes_since(before)}
        missing = outcome.topics_to_create
        topics = [[name, missing[name].num_partitions] for name in sorted(missing)]
        return answer | {"topics": topics} if topics else answer

    def _streams_describe(self, step: Step) -> Answer:
        return {"groups": [self._described_streams(each) for each in step["groups"]]}

    def _described_streams(self, group_id: str) -> dict[str, Any]:
        group = self.shard.other_groups.get(group_id)
        if not isinstance(group, StreamsGroup):
            return {"errorCode": 69}
        described: dict[str, Any] = as_json(described_streams_group(group))
        return described

    def _streams_commit(self, step: Step) -> Answer:
        group = self.shard.other_groups.get(step["group"])
        if not isinstance(group, StreamsGroup):
            return {"error": int(ErrorCode.GROUP_ID_NOT_FOUND)}
        request = OffsetCommitRequest(
            group_id=step["group"],
            generation_id_or_member_epoch=step["epoch"],
            member_id=step["member"],
        )
        partition = OffsetCommitRequestPartition(partition_index=step["partition"])
        topics = [OffsetCommitRequestTopic(name=step["topic"], partitions=[partition])]
        error = check_streams_commit(group, request, topics, 9, is_transactional=False)
        return {"error": int(error)} if error else {}

    def _streams_fetch(self, step: Step) -> Answer:
        group = self.shard.other_groups.get(step["group"])
        if not isinstance(group, StreamsGroup):
            return {"error": int(ErrorCode.GROUP_ID_NOT_FOUND)}
        error = check_streams_fetch(group, step["member"], step["epoch"])
        return {"error": int(error)} if error else {}


def request_of(fields: dict[str, Any]) -> StreamsGroupHeartbeatRequest:
    """Return the request that Apache's converter reads from the same JSON."""
    endpoint, tags, topology = (fields[each] for each in ("userEndpoint", "clientTags", "topology"))
    return StreamsGroupHeartbeatRequest(
        group_id=fields["groupId"],
        member_id=fields["memberId"],
        member_epoch=fields["memberEpoch"],
        endpoint_information_epoch=fields["endpointInformationEpoch"],
        instance_id=fields["instanceId"],
        rack_id=fields["rackId"],
        rebalance_timeout_ms=fields["rebalanceTimeoutMs"],
        topology=None if topology is None else _topology(topology),
        active_tasks=_tasks(fields["activeTasks"]),
        standby_tasks=_tasks(fields["standbyTasks"]),
        warmup_tasks=_tasks(fields["warmupTasks"]),
        process_id=fields["processId"],
        user_endpoint=None
        if endpoint is None
        else Endpoint(host=endpoint["host"], port=endpoint["port"]),
        client_tags=None
        if tags is None
        else [KeyValue(key=each["key"], value=each["value"]) for each in tags],
        shutdown_application=fields["shutdownApplication"],
    )


def _tasks(listed: list[dict[str, Any]] | None) -> list[TaskIds] | None:
    if listed is None:
        return None
    return [
        TaskIds(subtopology_id=each["subtopologyId"], partitions=each["partitions"])
        for each in listed
    ]


def _topology(fields: dict[str, Any]) -> Topology:
    return Topology(
        epoch=fields["epoch"],
        subtopologies=[
            Subtopology(
                subtopology_id=each["subtopologyId"],
                source_topics=each["sourceTopics"],
                source_topic_regex=each["sourceTopicRegex"],
                state_changelog_topics=[_topic(topic) for topic in each["stateChangelogTopics"]],
                repartition_sink_topics=each["repartitionSinkTopics"],
                repartition_source_topics=[
                    _topic(topic) for topic in each["repartitionSourceTopics"]
                ],
                copartition_groups=[
                    CopartitionGroup(
                        source_topics=group["sourceTopics"],
                        source_topic_regex=group["sourceTopicRegex"],
                        repartition_source_topics=group["repartitionSourceTopics"],
                    )
                    for group in each["copartitionGroups"]
                ],
            )
            for each in fields["subtopologies"]
        ],
    )


def _topic(fields: dict[str, Any]) -> TopicInfo:
    return TopicInfo(
        name=fields["name"],
        partitions=fields["partitions"],
        replication_factor=fields["replicationFactor"],
        topic_configs=[
            KeyValue(key=each["key"], value=each["value"]) for each in fields["topicConfigs"]
        ],
    )
