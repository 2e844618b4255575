"""Our consumer groups behind the steps that Apache's take (`apache_groups`), without a broker."""

from __future__ import annotations

import uuid
from base64 import b64decode, b64encode
from typing import Any

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.admin import delete_group, list_groups
from kraft_wire.broker.groups.consumer.describe import described_group
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.heartbeat import Client, heartbeat
from kraft_wire.broker.groups.consumer.ticking import consumer_timer_due
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer, ConsumerTimerKind
from kraft_wire.broker.groups.partition import GroupPartition
from kraft_wire.broker.groups.refusal import Refusal
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
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest
from kraft_wire.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kraft_wire.wire.message import Struct
from tests.broker.groups.consumer.apache_groups import Answer, Step
from tests.broker.groups.harness import CountingChance, Harness, Reply


class OurGroups:
    """One shard under virtual time; the log is read after each step."""

    def __init__(self) -> None:
        self.harness: Harness
        self.shard: GroupShard
        self._now_ms = 0
        self._waiting: dict[int, Reply] = {}
        self.drawn_ids: dict[int, str] = {}
        """The member id that Apache drew, by the number of the JoinGroup request."""

    def ask(self, step: Step) -> Answer:
        """Take one step, and answer as Apache's does."""
        answer = self._taken(step)
        completed = self._completed()
        return answer | {"completed": completed} if completed else answer

    def _taken(self, step: Step) -> Answer:
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
                return self._written(self._run_tasks)
            case "delete":
                return self._delete(step["group"])
            case "describe":
                return {"groups": [self._described(each) for each in step["groups"]]}
            case _:
                return self._taken_by_classic_members(step)
        return {}

    def _taken_by_classic_members(self, step: Step) -> Answer:
        match step["step"]:
            case "list":
                return {"listed": self._listed()}
            case "classic join" | "classic sync":
                return self._written(lambda: self._wait_for(step))
            case _:
                return self._written(lambda: self._classic(step))

    def _start(self, step: Step) -> None:
        self.chance = RecordedChance()
        self.harness = Harness(
            random_source=self.chance,
            **{_key(name): _value(text) for name, text in step["settings"].items()},
        )
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

    # --- Members of the classic protocol ------------------------------------------------------

    def _wait_for(self, step: Step) -> None:
        """Send a request whose answer may come with a later step."""
        drawn = self.drawn_ids.get(step["number"])
        self.chance.foreseen = None if drawn is None else drawn_number(drawn)
        self._waiting[step["number"]] = self._sent(step)

    def _classic(self, step: Step) -> Answer:
        reply = self._sent(step)
        assert reply.response is not None, step
        return {"response": as_plain(reply.response)}

    def _sent(self, step: Step) -> Reply:
        self.harness.now_ms = self.harness.wall_ms = self._now_ms
        request = _CLASSIC_REQUESTS[step["step"]](step["request"])
        return self.harness.send(request, step["version"], client_id=step.get("client", "walker"))

    def _completed(self) -> dict[str, Any]:
        done = [each for each, reply in self._waiting.items() if reply.response is not None]
        return {str(each): as_plain(self._waiting.pop(each).response) for each in sorted(done)}

    def loaded(self) -> GroupShard:
        """Return what another coordinator reads from the log."""
        shard = Harness(store=self.harness.store).groups.shard_at(0)
        assert isinstance(shard, GroupShard)
        return shard

    def _listed(self) -> list[list[str]]:
        return [
            [each.group_id, each.group_type, each.group_state, each.protocol_type]
            for each in list_groups(self.shard, (), ())
        ]

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

    def _run_tasks(self) -> None:
        """Evaluate regular expressions, which no time has to pass for."""
        timer = ConsumerTimer(ConsumerTimerKind.REGEX, "group", "")
        while timer in self.shard.timers:
            self.shard.timers.cancel(timer)
            consumer_timer_due(self.shard, timer, self._at)

    def _tick(self) -> None:
        partition = self.harness.groups.runtime.shard_at(0)
        assert isinstance(partition, GroupPartition)
        partition.tick(self._at)

    @property
    def _log_end(self) -> int:
        return len(self.harness.store.logs.get(0, []))

    def _written(self, act: Any) -> Answer:
        before = self._log_end
        answer: Answer = act() or {}
        return answer | {"writes": self._writes_since(before)}

    def _writes_since(self, before: int) -> list[Any]:
        return [
            [[_hex(record.key), _hex(record.value)] for record in batch.records()]
            for batch in self.harness.store.batches(0)[before:]
        ]


class RecordedChance(CountingChance):
    """Chance that draws what Apache drew, where that is known."""

    foreseen: int | None = None

    def below(self, bound: int) -> int:
        foreseen, self.foreseen = self.foreseen, None
        return super().below(bound) if foreseen is None else foreseen


def drawn_number(member_id: str) -> int:
    """Return what a member id was drawn as: a UUID after a dash, or a Uuid in base64."""
    tail = member_id[-36:]
    if tail.count("-") == 4 and tail[8] == "-":
        return uuid.UUID(tail).int
    return int.from_bytes(uuid_from_text(member_id), "big")


def _key(name: str) -> str:
    return name.replace(".", "_")


def _value(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _join_request(fields: dict[str, Any]) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=fields["groupId"],
        session_timeout_ms=fields["sessionTimeoutMs"],
        rebalance_timeout_ms=fields["rebalanceTimeoutMs"],
        member_id=fields["memberId"],
        group_instance_id=fields["groupInstanceId"],
        protocol_type=fields["protocolType"],
        protocols=[
            JoinGroupRequestProtocol(name=each["name"], metadata=b64decode(each["metadata"]))
            for each in fields["protocols"]
        ],
    )


def _sync_request(fields: dict[str, Any]) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=fields["groupId"],
        generation_id=fields["generationId"],
        member_id=fields["memberId"],
        group_instance_id=fields["groupInstanceId"],
        protocol_type=fields["protocolType"],
        protocol_name=fields["protocolName"],
        assignments=[
            SyncGroupRequestAssignment(
                member_id=each["memberId"], assignment=b64decode(each["assignment"])
            )
            for each in fields["assignments"]
        ],
    )


def _heartbeat_request(fields: dict[str, Any]) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=fields["groupId"],
        generation_id=fields["generationId"],
        member_id=fields["memberId"],
        group_instance_id=fields["groupInstanceId"],
    )


def _leave_request(fields: dict[str, Any]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=fields["groupId"],
        members=[
            MemberIdentity(member_id=each["memberId"], group_instance_id=each["groupInstanceId"])
            for each in fields["members"]
        ],
    )


_CLASSIC_REQUESTS: dict[str, Any] = {
    "classic join": _join_request,
    "classic sync": _sync_request,
    "classic heartbeat": _heartbeat_request,
    "classic leave": _leave_request,
}


def as_plain(struct: Any) -> Any:
    """Return a struct as JSON has it: names of fields in camel case, bytes in base64."""
    if isinstance(struct, list):
        return [as_plain(each) for each in struct]
    if isinstance(struct, Struct):
        fields = [each for each in struct.__slots__ if each != "unknown_tagged_fields"]
        return {_camel(each): as_plain(getattr(struct, each)) for each in fields}
    if isinstance(struct, bytes | bytearray | memoryview):
        return b64encode(bytes(struct)).decode()
    return struct


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
