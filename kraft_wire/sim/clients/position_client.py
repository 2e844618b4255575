"""A client that reads partitions of a group from positions, and commits those as a member.

Each committed offset has a unique note as its metadata, by which it is found again. Now and then an
unknown member, or one with a later epoch, commits an offset that must be refused.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from kraft_wire.model import FileSlice
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.coordinated_client import CoordinatedClient
from kraft_wire.sim.judge.group_epochs import Place
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["PositionClient"]

_NEVER_COMMITTED: Final = 1 << 40
_BYTES_MAX: Final = 1_000


class PositionClient(CoordinatedClient):
    """The positions of one member of a group with member epochs (KIP-848, KIP-1071)."""

    kind = ""
    """Of the group, in the names of what is counted."""

    def __init__(self, context: ClientContext, number: int, topic: str, group: str) -> None:
        super().__init__(context, number, topic, group)
        self.member_id = self.new_member_id()
        self.epoch = 0
        """0 while it has no place in the group."""
        self.positions: dict[Place, int] = {}
        self._notes = 0

    @abstractmethod
    def refused(self, code: int) -> bool:
        """Handle an error of the coordinator; false without an error."""

    def count(self, what: str) -> None:
        """Count what a member has done."""
        self.context.history.counts[f"{self.kind} {what}"] += 1

    def read_from(self, place: Place) -> None:
        """Fetch from the position, without a session."""
        leader = self.leaders.get(place[1])
        truth = self.context.truth.partitions[place]
        if leader is None or place[0] != self.topic_id:
            self.again()
            return
        position, epoch = self.positions[place], leader[1]
        partition = FetchPartition(
            partition=place[1],
            current_leader_epoch=epoch,
            fetch_offset=position,
            partition_max_bytes=_BYTES_MAX,
        )
        topic = FetchTopic(topic_id=place[0], partitions=[partition])
        request = FetchRequest(
            max_wait_ms=50, min_bytes=1, max_bytes=_BYTES_MAX, session_epoch=-1, topics=[topic]
        )

        def fetched(response: Message | None) -> None:
            data = None
            if isinstance(response, FetchResponse) and response.responses:
                data = response.responses[0].partitions[0]
            if data is None or data.error_code:
                self.again()
                return
            assert not isinstance(data.records, FileSlice), "an answer that was sent is bytes"
            if data.records and place in self.positions:
                history = self.context.history
                self.positions[place] = history.read(
                    leader[0], truth, position, data.records, epoch
                )
                self.count("member read")
            self.later(self.think_us)

        self.ask(leader[0], request, fetched)

    def _offsets_request(
        self, place: Place, offset: int, note: str, member_id: str, epoch: int
    ) -> OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(
            partition_index=place[1], committed_offset=offset, committed_metadata=note
        )
        return OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(topic_id=place[0], partitions=[partition])],
        )

    def commit(self, place: Place) -> None:
        """Commit the position under a new note."""
        self._notes += 1
        offset, note = self.positions[place], f"{self.number}-{self._notes}"

        def committed(node_id: int, response: Message | None) -> None:
            if not isinstance(response, OffsetCommitResponse):
                self.again()
                return
            if self.refused(response.topics[0].partitions[0].error_code):
                return
            history = self.context.history
            self.count("member committed")
            history.offset_committed(node_id, (self.group, self.topic, place[1]), offset, note)
            self.later(self.think_us)

        request = self._offsets_request(place, offset, note, self.member_id, self.epoch)
        self.ask_coordinator(request, committed)

    def commit_as_stranger(self) -> None:
        """S67: an unknown member, or one with a later epoch than it has, commits nothing."""
        place = (self.topic_id, self.random.choice(list(self.leaders)))
        assert place[0] is not None, self.topic
        is_unknown = self.random.random() < 0.5
        member_id = "unknown-member" if is_unknown else self.member_id
        epoch = self.epoch if is_unknown else self.epoch + 1

        def answered(node_id: int, response: Message | None) -> None:
            if isinstance(response, OffsetCommitResponse):
                error = ErrorCode(response.topics[0].partitions[0].error_code)
                self.context.history.counts[f"stray commit {error.name}"] += 1
                if error is ErrorCode.NONE:
                    facts = (member_id, epoch, "of", self.epoch)
                    raise Violation("S67 OnlyMembersCommit", node_id, *facts)
            self.later(self.think_us)

        place_of = (place[0], place[1])
        self.ask_coordinator(
            self._offsets_request(place_of, _NEVER_COMMITTED, "", member_id, epoch), answered
        )

    def read_positions(self, places: list[Place]) -> None:
        """Ask for the committed offsets of new partitions, as a member with an epoch."""
        numbers = [number for _, number in places]
        topics = [OffsetFetchRequestTopics(topic_id=places[0][0], partition_indexes=numbers)]
        group = OffsetFetchRequestGroup(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, topics=topics
        )
        history = self.context.history
        owed = {n: history.offsets_owed((self.group, self.topic, n)) for n in numbers}

        def read(node_id: int, response: Message | None) -> None:
            if not isinstance(response, OffsetFetchResponse):
                self.again()
                return
            found = response.groups[0]
            if self.refused(found.error_code):
                return
            for each in found.topics[0].partitions:
                if self.refused(each.error_code):
                    return
                place = (self.group, self.topic, each.partition_index)
                note = each.metadata or ""
                history.offset_shown(
                    node_id, place, each.committed_offset, note, owed[each.partition_index]
                )
                at = (places[0][0], each.partition_index)
                self.positions[at] = max(each.committed_offset, 0)
            self.later(self.think_us)

        self.ask_coordinator(OffsetFetchRequest(groups=[group]), read)
