"""Our share groups behind the steps that Apache's take (`apache_groups`), without a broker."""

from __future__ import annotations

from typing import Any

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.share.alter_offsets import StartOffsets, alter_offsets
from kraft_wire.broker.groups.share.checks import check_empty, find_group
from kraft_wire.broker.groups.share.delete_offsets import (
    delete_offsets,
    delete_state_of_group,
    finish_deletion,
)
from kraft_wire.broker.groups.share.deleted_topics import forget_topics
from kraft_wire.broker.groups.share.describe import described_share_group
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.heartbeat import ShareClient, share_heartbeat
from kraft_wire.broker.groups.share.initialization import finish_beginning
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionKey
from kraft_wire.model import uuid_from_text, uuid_to_text
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.broker.groups.consumer.apache_groups import Answer, Step
from tests.broker.groups.consumer.our_groups import OurGroups, as_json
from tests.broker.groups.share.recording_persister import RecordingPersister


class OurShareGroups(OurGroups):
    """One shard under virtual time, and a record of what it asks the share coordinators."""

    def __init__(self) -> None:
        super().__init__()
        self.persister = RecordingPersister()

    def _start(self, step: Step) -> None:
        super()._start(step)
        self.harness.share_persister = self.persister

    def _taken(self, step: Step) -> Answer:
        if step["step"] == "topic":
            self._topic(step)
            return {}
        name = step["step"].removeprefix("share ").replace(" ", "_")
        if not step["step"].startswith("share "):
            return super()._taken(step)
        answer: Answer = getattr(self, f"_share_{name}")(step)
        asked = self._asked()
        return answer | {"asked": asked} if asked else answer

    def _share_heartbeat(self, step: Step) -> Answer:
        before = self._log_end
        request = ShareGroupHeartbeatRequest(
            group_id=step["request"]["groupId"],
            member_id=step["request"]["memberId"],
            member_epoch=step["request"]["memberEpoch"],
            rack_id=step["request"]["rackId"],
            subscribed_topic_names=step["request"]["subscribedTopicNames"],
        )
        client = ShareClient(step["client"], "/127.0.0.1")
        outcome = share_heartbeat(self.shard, request, client, self._at)
        if isinstance(outcome, Refusal):
            assert self._log_end == before
            return {"error": int(outcome.error), "message": outcome.message}
        return {"response": as_json(outcome.response), "writes": self._writes_since(before)}

    def _share_begun(self, step: Step) -> Answer:
        error = ErrorCode.NONE if step["ok"] else ErrorCode.NOT_COORDINATOR
        results = {
            SharePartitionKey(step["group"], uuid_from_text(text), number): PersisterResult(error)
            for text, numbers in step["topics"]
            for number in numbers
        }
        return self._written(lambda: finish_beginning(self.shard, step["group"], results, self._at))

    def _share_alter(self, step: Step) -> Answer:
        asked = [
            StartOffsets(
                topic["topicName"],
                {each["partitionIndex"]: each["startOffset"] for each in topic["partitions"]},
            )
            for topic in step["request"]["topics"]
        ]
        outcomes: list[Any] = []
        group_id = step["request"]["groupId"]
        answer = self._written(
            lambda: alter_offsets(self.shard, group_id, asked, self._at, outcomes.append)
        )
        return _refused(outcomes) or answer

    def _share_delete_offsets(self, step: Step) -> Answer:
        names = [topic["topicName"] for topic in step["request"]["topics"]]
        outcomes: list[Any] = []
        group_id = step["request"]["groupId"]
        answer = self._written(
            lambda: delete_offsets(self.shard, group_id, names, self._at, outcomes.append)
        )
        return _refused(outcomes) or answer

    def _share_deleted_offsets(self, step: Step) -> Answer:
        topic_ids = [uuid_from_text(text) for text, _ in step["topics"]]
        return self._written(
            lambda: finish_deletion(self.shard, step["group"], topic_ids, self._at) and None
        )

    def _share_delete(self, step: Step) -> Answer:
        group = find_group(self.shard, step["group"], f"Group {step['group']} not found.")
        refused = group if isinstance(group, Refusal) else check_empty(group)
        if refused is not None:
            return _refused([refused])
        assert isinstance(group, ShareGroup)
        return self._written(
            lambda: delete_state_of_group(self.shard, group, self._at, lambda *_: None)
        )

    def _share_clean_up(self, step: Step) -> Answer:
        topic_ids = [uuid_from_text(step["id"])]
        return self._written(lambda: forget_topics(self.shard, topic_ids, self._at))

    def _share_describe(self, step: Step) -> Answer:
        return {"groups": [self._described_share(each) for each in step["groups"]]}

    def _described_share(self, group_id: str) -> dict[str, Any]:
        group = self.shard.other_groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return {"errorCode": 69}
        described: dict[str, Any] = as_json(described_share_group(group, self.harness.image))
        return described

    def _asked(self) -> list[list[Any]]:
        calls, self.persister.calls = self.persister.calls, []
        return sorted(
            [uuid_to_text(key.topic_id), key.partition, *(value or ())]
            for call in calls
            for key, value in call.partitions.items()
        )


def _refused(outcomes: list[Any]) -> Answer:
    """Return the error of a whole request, if there is one."""
    for each in outcomes:
        if isinstance(each, Refusal):
            return {"error": int(each.error), "message": each.message}
    return {}
