"""A tool that sets where its own share group begins, and reads and deletes that (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kraft_wire.broker.metadata.metadata_cache import SHARE_STATE_TOPIC
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.group_tool import GroupTool
from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from kraft_wire.wire.message import Message

__all__ = ["ShareOffsetTool"]

_ABSENT: Final = -1


class ShareOffsetTool(GroupTool):
    """One tool on one topic."""

    def __init__(self, context: ClientContext, number: int, topic: str) -> None:
        self._starts: dict[int, int] = {}
        """Partition to start offset."""
        self._exists = False
        super().__init__(context, number, topic)
        self.think_us = 20_000

    def forget(self) -> None:
        self._starts, self._exists = {}, False

    def must_exist(self) -> bool:
        return self._exists

    def may_exist(self) -> bool:
        return self._exists

    def steps(self) -> tuple[Callable[[], None], ...]:
        often = (self._alter, self._alter, self._read, self._read, self._read)
        return (*often, self._delete_offsets, self._list, self.delete_group)

    def state(self) -> object:
        return self._starts

    def _state_leader(self) -> int | None:
        """Return who has the states of share partitions, and knows it; None: not certain."""
        judge, states = self.context.judge, self.context.truth.of_topic(SHARE_STATE_TOPIC)
        leaders = {each.leader for each in states}
        if len(leaders) != 1 or min(leaders) < 0:
            return None
        if not all(judge.leads(each.leader, each) for each in states):
            return None
        return leaders.pop()

    def _alter(self) -> None:
        numbers = self.random.sample(list(self.leaders), 1 + (len(self.leaders) > 1))
        starts = {number: self.random.randrange(1 << 40) for number in numbers}
        places = [
            AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=start)
            for number, start in starts.items()
        ]
        topic = AlterShareGroupOffsetsRequestTopic(topic_name=self.topic, partitions=places)

        def done(node_id: int, response: Message) -> bool:
            assert isinstance(response, AlterShareGroupOffsetsResponse), response
            if self.is_refused(response.error_code):
                return True
            places = [each for topic in response.responses for each in topic.partitions]
            if response.error_code or any(each.error_code for each in places):
                return False
            self.check(node_id, {each.partition_index for each in places} == set(starts), places)
            self._starts |= starts
            self._exists = True
            return True

        request = AlterShareGroupOffsetsRequest(group_id=self.group, topics=[topic])
        self.write(request, 0, done)

    def _read(self) -> None:
        numbers = sorted(self.leaders)
        topic = DescribeShareGroupOffsetsRequestTopic(topic_name=self.topic, partitions=numbers)
        is_for_all = self.random.random() < 0.5
        group = DescribeShareGroupOffsetsRequestGroup(
            group_id=self.group, topics=None if is_for_all else [topic]
        )
        leader = self._state_leader()

        def judge(node_id: int, response: Message) -> None:
            assert isinstance(response, DescribeShareGroupOffsetsResponse), response
            answer = response.groups[0]
            if self.is_refused(answer.error_code):
                return
            self.check(node_id, not answer.error_code, answer)
            places = [each for topic in answer.topics for each in topic.partitions]
            shown = {each.partition_index: each.start_offset for each in places}
            asked = sorted(self._starts) if is_for_all else numbers
            self.check(node_id, sorted(shown) == asked, "shown", shown, "asked", asked)
            if leader is None or leader != self._state_leader():
                return  # the leader of the share states was not known, or has changed
            for each in places:
                wanted = self._starts.get(each.partition_index, _ABSENT)
                is_known = each.start_offset == wanted or each.error_code
                self.check(node_id, bool(is_known), "shown", each, "of", answer)

        request = DescribeShareGroupOffsetsRequest(groups=[group])
        self.question(request, self.version_of(DescribeShareGroupOffsetsRequest), judge)

    def _delete_offsets(self) -> None:
        def done(node_id: int, response: Message) -> bool:
            assert isinstance(response, DeleteShareGroupOffsetsResponse), response
            code = response.error_code
            if self.is_refused(code):
                return True
            if code == ErrorCode.GROUP_ID_NOT_FOUND:
                self.check(node_id, not self._exists, "is not found")
                return True
            if code != ErrorCode.NONE:
                return False
            codes = [each.error_code for each in response.responses]
            if codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]:
                self.check(node_id, not self._starts, "has nothing to delete")
            elif codes != [ErrorCode.NONE]:
                return not codes and not self._starts
            self._starts = {}
            return True

        topic = DeleteShareGroupOffsetsRequestTopic(topic_name=self.topic)
        request = DeleteShareGroupOffsetsRequest(group_id=self.group, topics=[topic])
        self.write(request, 0, done)

    def _list(self) -> None:
        request = ListGroupsRequest(types_filter=["share"])

        def judge(node_id: int, response: Message) -> None:
            assert isinstance(response, ListGroupsResponse), response
            if self.is_refused(response.error_code):
                return
            found = [each for each in response.groups if each.group_id == self.group]
            facts = ("listed", found)
            self.check(node_id, len(found) == self._exists, *facts)
            for each in found:
                kind = (each.group_type, each.protocol_type, each.group_state)
                self.check(node_id, kind == ("share", "share", "Empty"), *facts)

        self.question(request, ListGroupsRequest.MAX_VERSION, judge)
