"""A tool that keeps the offsets of its own group by hand: commit, read, delete, list, describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.group_tool import GroupTool
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse
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
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["OffsetTool"]

_RETENTION_VERSIONS: Final = range(2, 5)
_BY_TOPIC_ID: Final = 10
_BY_GROUP: Final = 8
_ALL_FROM: Final = 2
"""The first version that can ask for all offsets of a group."""
_RETENTION_MS: Final = 1_500
_ABSENT: Final = (-1, -1, "")
_STATES: Final = ((), (), ("Empty",), ("Stable",), ("empty", "Dead"))
_TYPES: Final = ((), (), ("classic",), ("consumer",), ("Classic", "share"))


class _Held(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int
    note: str
    may_expire: bool

    @property
    def shown(self) -> tuple[int, int, str]:
        """What OffsetFetch shows of it."""
        return (self.offset, self.leader_epoch, self.note)


class OffsetTool(GroupTool):
    """One tool on one topic."""

    def __init__(self, context: ClientContext, number: int, topic: str) -> None:
        self._notes_count = 0
        self._held: dict[int, _Held] = {}
        self._is_deleted = True
        """Whether the group was deleted, or never had anything."""
        super().__init__(context, number, topic)

    def forget(self) -> None:
        self._held, self._is_deleted = {}, True

    def steps(self) -> tuple[Callable[[], None], ...]:
        often = (self._commit, self._commit, self._read, self._read, self._read_all)
        return (*often, self._delete_offset, self._list, self._describe, self.delete_group)

    def state(self) -> object:
        return self._held

    # -- what must be there ------------------------------------------------------------------------

    def must_exist(self) -> bool:
        """Return whether the group has an offset that does not expire."""
        return any(not each.may_expire for each in self._held.values())

    def may_exist(self) -> bool:
        return not self._is_deleted

    # -- offsets -----------------------------------------------------------------------------------

    def _commit(self) -> None:
        version = self.version_of(OffsetCommitRequest)
        number = self.some_partition()
        self._notes_count += 1
        expires = version in _RETENTION_VERSIONS and self.random.random() < 0.5
        held = _Held(
            offset=self.random.randrange(1 << 40),
            leader_epoch=self.random.choice((-1, 0, 3)) if version >= 6 else -1,
            note=f"{self.number}-{self._notes_count}",
            may_expire=expires,
        )
        place = OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=held.offset,
            committed_leader_epoch=held.leader_epoch,
            committed_metadata=held.note,
        )
        topic = OffsetCommitRequestTopic(partitions=[place])
        if version >= _BY_TOPIC_ID:
            assert self.topic_id is not None, self.topic
            topic.topic_id = self.topic_id
        else:
            topic.name = self.topic
        request = OffsetCommitRequest(group_id=self.group, topics=[topic])
        request.generation_id_or_member_epoch = -1
        if expires:
            request.retention_time_ms = _RETENTION_MS

        def done(node_id: int, response: Message) -> bool:
            assert isinstance(response, OffsetCommitResponse), response
            code = response.topics[0].partitions[0].error_code
            if self.is_refused(code):
                return True
            if code == ErrorCode.NONE:
                self._held[number], self._is_deleted = held, False
            return code == ErrorCode.NONE

        self.write(request, version, done)

    def _delete_offset(self) -> None:
        number = self.some_partition()
        place = OffsetDeleteRequestPartition(partition_index=number)
        topic = OffsetDeleteRequestTopic(name=self.topic, partitions=[place])

        def done(node_id: int, response: Message) -> bool:
            assert isinstance(response, OffsetDeleteResponse), response
            code = response.error_code
            if self.is_refused(code):
                return True
            if code == ErrorCode.GROUP_ID_NOT_FOUND:
                self.check(node_id, not self.must_exist(), "is not found")
                self._held = {}
                return True
            if code != ErrorCode.NONE:
                return False
            self.check(node_id, not self._is_deleted, "has offsets to delete")
            code = response.topics[0].partitions[0].error_code
            self.check(node_id, code == ErrorCode.NONE, "partition", number, ErrorCode(code))
            self._held.pop(number, None)
            return True

        self.write(OffsetDeleteRequest(group_id=self.group, topics=[topic]), 0, done)

    def _read(self) -> None:
        """Read some partitions, one of which may not exist."""
        numbers = sorted(self.random.sample(list(self.leaders), 1 + (len(self.leaders) > 1)))
        self._fetch([*numbers, len(self.leaders) + 7])

    def _read_all(self) -> None:
        self._fetch(None)

    def _fetch(self, numbers: list[int] | None) -> None:
        """Read partitions, or with None all of the group."""
        version = self.version_of(OffsetFetchRequest)
        if numbers is None:
            version = max(version, _ALL_FROM)
        request = self._fetch_request(version, numbers)

        def judge(node_id: int, response: Message) -> None:
            assert isinstance(response, OffsetFetchResponse), response
            answer = response.groups[0] if version >= _BY_GROUP else response
            places = [place for topic in answer.topics for place in topic.partitions]
            codes = [answer.error_code, *(place.error_code for place in places)]
            if any(map(self.is_refused, codes)):
                return
            self.check(node_id, not any(codes), "read with errors", codes)
            shown = {
                place.partition_index: (
                    place.committed_offset,
                    place.committed_leader_epoch,
                    place.metadata or "",
                )
                for place in places
            }
            self._judge_offsets(node_id, version, numbers, shown)

        self.question(request, version, judge)

    def _fetch_request(self, version: int, numbers: list[int] | None) -> OffsetFetchRequest:
        request = OffsetFetchRequest(require_stable=version >= 7 and self.random.random() < 0.5)
        if version < _BY_GROUP:
            request.group_id, request.topics = self.group, None
            if numbers is not None:
                named = OffsetFetchRequestTopic(name=self.topic, partition_indexes=numbers)
                request.topics = [named]
            return request
        group = OffsetFetchRequestGroup(group_id=self.group, topics=None)
        if numbers is not None:
            topic = OffsetFetchRequestTopics(partition_indexes=numbers)
            if version >= _BY_TOPIC_ID:
                assert self.topic_id is not None, self.topic
                topic.topic_id = self.topic_id
            else:
                topic.name = self.topic
            group.topics = [topic]
        request.groups = [group]
        return request

    def _judge_offsets(
        self,
        node_id: int,
        version: int,
        numbers: list[int] | None,
        shown: dict[int, tuple[int, int, str]],
    ) -> None:
        asked = list(dict.fromkeys((*self._held, *shown))) if numbers is None else numbers
        for number in asked:
            held = self._held.get(number)
            offset, epoch, note = shown.get(number, _ABSENT)
            wanted = _ABSENT if held is None else held.shown
            if version < 5:  # without leader epochs
                epoch = wanted[1]
            is_right = (offset, epoch, note) == wanted
            is_gone = offset == -1 and held is not None and held.may_expire
            self.check(
                node_id, is_right or is_gone, f"v{version} partition", number, offset, epoch, note
            )
        if numbers is not None:
            self.check(node_id, list(shown) == numbers, "asked", numbers, "shown", list(shown))

    # -- groups ------------------------------------------------------------------------------------

    def _list(self) -> None:
        version = self.version_of(ListGroupsRequest)
        request = ListGroupsRequest()
        if version >= 4:
            request.states_filter = list(self.random.choice(_STATES))
        if version >= 5:
            request.types_filter = list(self.random.choice(_TYPES))
        states = [each.lower() for each in request.states_filter]
        types = [each.lower() for each in request.types_filter]
        is_wanted = (not states or "empty" in states) and (not types or "classic" in types)

        def judge(node_id: int, response: Message) -> None:
            assert isinstance(response, ListGroupsResponse), response
            if self.is_refused(response.error_code):
                return
            found = [each for each in response.groups if each.group_id == self.group]
            facts = ("listed", found, "filters", states, types)
            self.check(node_id, is_wanted or not found, *facts)
            self.check(node_id, not (found and self._is_deleted), *facts)
            self.check(node_id, bool(found) or not (is_wanted and self.must_exist()), *facts)
            for each in found:
                self.check(node_id, each.protocol_type == "", *facts)
                self.check(node_id, version < 4 or each.group_state == "Empty", *facts)
                self.check(node_id, version < 5 or each.group_type == "classic", *facts)

        self.question(request, version, judge)

    def _describe(self) -> None:
        version = self.version_of(DescribeGroupsRequest)

        def judge(node_id: int, response: Message) -> None:
            assert isinstance(response, DescribeGroupsResponse), response
            found = response.groups[0]
            if self.is_refused(found.error_code):
                return
            facts = (f"v{version} described", found)
            self.check(node_id, found.group_state in ("Empty", "Dead"), *facts)
            is_there = found.group_state == "Empty"
            self.check(node_id, is_there or not self.must_exist(), *facts)
            self.check(node_id, not (is_there and self._is_deleted), *facts)
            wanted = ErrorCode.GROUP_ID_NOT_FOUND
            code = ErrorCode.NONE if is_there or version < 6 else wanted
            self.check(node_id, found.error_code == code, *facts)
            self.check(node_id, not found.members, *facts)

        self.question(DescribeGroupsRequest(groups=[self.group]), version, judge)
