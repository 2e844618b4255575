"""Our consumer groups behind the steps that Apache's take (`apache_groups`), without a broker."""

from __future__ import annotations

from typing import Any

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.admin import delete_group
from kraft_wire.broker.groups.consumer.describe import described_group
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.heartbeat import Client, heartbeat
from kraft_wire.broker.groups.consumer.refusal import Refusal
from kraft_wire.broker.groups.partition import GroupPartition
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import (
    BrokerImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from kraft_wire.model import Uuid, uuid_from_text, uuid_to_text
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Struct
from tests.broker.groups.consumer.apache_groups import Answer, Step
from tests.broker.groups.harness import Harness


class OurGroups:
    """One shard under virtual time; the log is read after each step."""

    def __init__(self) -> None:
        self.harness: Harness
        self.shard: GroupShard
        self._now_ms = 0

    def ask(self, step: Step) -> Answer:
        """Take one step, and answer as Apache's does."""
        match step["step"]:
            case "start":
                self._start(step)
            case "broker":
                self._broker(step["id"], step["rack"])
            case "topic":
                self._topic(step)
            case "delete topic":
                self._delete_topic(uuid_from_text(step["id"]))
            case "heartbeat":
                return self._heartbeat(step)
            case "advance":
                return self._written(lambda: self._advance(step["ms"]))
            case "tasks":
                return self._written(self._tick)
            case "delete":
                return self._delete(step["group"])
            case "describe":
                return {"groups": [self._described(each) for each in step["groups"]]}
        return {}

    def _start(self, step: Step) -> None:
        interval_ms = int(step["settings"]["group.consumer.assignment.interval.ms"])
        self.harness = Harness(group_consumer_assignment_interval_ms=interval_ms)
        shard = self.harness.groups.shard_at(0)
        assert isinstance(shard, GroupShard)
        self.shard = shard
        self._now_ms = step["nowMs"]
        self.harness.image = MetadataImage()

    # --- Metadata, each change one version later ----------------------------------------------

    def _broker(self, number: int, rack: str | None) -> None:
        broker = BrokerImage(number, 1, Uuid(bytes(16)), {}, {}, rack=rack, fenced=False)
        self._publish(brokers={**self.harness.image.brokers, number: broker})

    def _topic(self, step: Step) -> None:
        partitions = {
            number: PartitionImage(number, (replica,), (replica,), replica, 0, 0)
            for number, replica in enumerate(step["replicas"])
        }
        topic = TopicImage(step["name"], uuid_from_text(step["id"]), partitions)
        self._publish(topics={**self.harness.image.topics_by_name, topic.name: topic})

    def _delete_topic(self, topic_id: Uuid) -> None:
        topics = self.harness.image.topics_by_name
        self._publish(
            topics={name: each for name, each in topics.items() if each.topic_id != topic_id}
        )

    def _publish(self, *, brokers: Any = None, topics: Any = None) -> None:
        before = self.harness.image
        if topics is None:
            topics = before.topics_by_name
        self.harness.image = MetadataImage(
            offset=before.offset + 1,
            brokers=before.brokers if brokers is None else brokers,
            topics_by_name=topics,
            topic_names={each.topic_id: name for name, each in topics.items()},
        )
        delta = MetadataDelta.between(before, self.harness.image)
        self.shard.env.topic_versions.published(delta)

    # --- Members and time ---------------------------------------------------------------------

    @property
    def _at(self) -> ClockReading:
        return ClockReading(self._now_ms, self._now_ms)

    def _heartbeat(self, step: Step) -> Answer:
        before = self._log_end
        request = _request(step["request"])
        outcome = heartbeat(self.shard, request, Client(step["client"], "/127.0.0.1"), self._at)
        if isinstance(outcome, Refusal):
            assert self._log_end == before
            return {"error": int(outcome.error), "message": outcome.message}
        return {"response": _response(outcome.response), "writes": self._writes_since(before)}

    def _delete(self, group_id: str) -> Answer:
        before = self._log_end
        error = delete_group(self.shard, group_id, self._at).error
        if error is not ErrorCode.NONE:
            return {"error": int(error)}
        return {"writes": self._writes_since(before)}

    def _described(self, group_id: str) -> dict[str, Any]:
        group = self.shard.other_groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return {"errorCode": 69}
        return as_json(described_group(group, self.harness.image, "uniform"))

    def _advance(self, ms: int) -> None:
        end_ms = self._now_ms + ms
        while True:
            deadline_ms = self.shard.timers.deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                break
            self._now_ms = max(self._now_ms, deadline_ms)
            self._tick()
        self._now_ms = end_ms

    def _tick(self) -> None:
        partition = self.harness.groups.runtime.shard_at(0)
        assert isinstance(partition, GroupPartition)
        partition.tick(self._at)

    @property
    def _log_end(self) -> int:
        return len(self.harness.store.logs.get(0, []))

    def _written(self, act: Any) -> Answer:
        before = self._log_end
        act()
        return {"writes": self._writes_since(before)}

    def _writes_since(self, before: int) -> list[Any]:
        return [
            [[_hex(record.key), _hex(record.value)] for record in batch.records()]
            for batch in self.harness.store.batches(0)[before:]
        ]


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _request(fields: dict[str, Any]) -> ConsumerGroupHeartbeatRequest:
    topics = fields["topicPartitions"]
    return ConsumerGroupHeartbeatRequest(
        group_id=fields["groupId"],
        member_id=fields["memberId"],
        member_epoch=fields["memberEpoch"],
        instance_id=fields["instanceId"],
        rack_id=fields["rackId"],
        rebalance_timeout_ms=fields["rebalanceTimeoutMs"],
        subscribed_topic_names=fields["subscribedTopicNames"],
        subscribed_topic_regex=fields["subscribedTopicRegex"],
        server_assignor=fields["serverAssignor"],
        topic_partitions=None
        if topics is None
        else [
            TopicPartitions(topic_id=uuid_from_text(each["topicId"]), partitions=each["partitions"])
            for each in topics
        ],
    )


def as_json(struct: Any) -> Any:
    """Return a struct as Apache's converters write it; the order of names has no meaning."""
    if isinstance(struct, list):
        return [as_json(each) for each in struct]
    if isinstance(struct, Struct):
        fields = [each for each in struct.__slots__ if each != "unknown_tagged_fields"]
        return {_camel(each): as_json(getattr(struct, each)) for each in fields}
    return uuid_to_text(Uuid(struct)) if isinstance(struct, bytes) else struct


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _response(response: ConsumerGroupHeartbeatResponse) -> dict[str, Any]:
    assignment = response.assignment
    return {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "errorMessage": None,
        "memberId": response.member_id,
        "memberEpoch": response.member_epoch,
        "heartbeatIntervalMs": response.heartbeat_interval_ms,
        "assignment": None
        if assignment is None
        else {
            "topicPartitions": [
                {"topicId": uuid_to_text(each.topic_id), "partitions": each.partitions}
                for each in assignment.topic_partitions
            ]
        },
    }
