"""Members of a consumer group (KIP-848): they take what they are told, read it, and commit.

A member sends heartbeats with its epoch and what it owns, gives partitions back a while after it is
told to, reads committed records of the others, and commits its positions with its epoch. Some are
static, and leave for a while; some vanish, and return under another id. Each committed offset
has a unique note as its metadata, by which it is found again.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.model import FileSlice
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.coordinated_client import WRONG_NODE, CoordinatedClient
from kraft_wire.sim.judge.group_epochs import GroupEpochs, Place
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
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

__all__ = ["CONSUMER_GROUP", "ConsumerMember"]

CONSUMER_GROUP: Final = "c"
_REBALANCE_MS: Final = 1_500
_LEFT, _LEFT_FOR_A_WHILE = -1, -2
_LEAVES_SHARE: Final = 0.05
_VANISHES_SHARE: Final = 0.03
_READS_AGAIN_SHARE: Final = 0.1
_GIVES_BACK_SHARE: Final = 0.5
"""Of the heartbeats after which it stops to read what it was told to revoke."""
_STRAYS_SHARE: Final = 0.03
_VANISHED_US: Final = 2_500_000
_NEVER_COMMITTED: Final = 1 << 40
_RESTS_US: Final = 100_000
_BYTES_MAX: Final = 1_000


class ConsumerMember(CoordinatedClient):
    """One member of the group `CONSUMER_GROUP` on one topic."""

    def __init__(
        self,
        context: ClientContext,
        epochs: GroupEpochs,
        number: int,
        topic: str,
        *,
        is_static: bool,
    ) -> None:
        super().__init__(context, number, topic, CONSUMER_GROUP)
        self.epochs = epochs
        self.member_id = self.new_member_id()
        self.instance_id = f"instance-{number}" if is_static else None
        self.epoch = 0
        """0 while it has no place in the group."""
        self.owned: frozenset[Place] = frozenset()
        """What it reads and commits: its assignment, and what it has not given back yet."""
        self._assigned: frozenset[Place] = frozenset()
        self.is_resting = False
        """Whether it only stays in the group."""
        self._positions: dict[Place, int] = {}
        self._must_tell = True
        """Whether the next heartbeat names everything: it is new, or an answer was lost."""
        self._notes = 0
        self._turn = 0
        self.think_us = 8_000
        self.timeout_us = 1_000_000

    def rest(self) -> None:
        """Only stay in the group, and read."""
        self.is_resting = True
        self.think_us = _RESTS_US

    def step(self) -> None:
        """Every second request is a heartbeat."""
        if self.is_done:
            return
        self._turn += 1
        if self.coordinator is None:
            self.find_coordinator()
        elif self.epoch == 0 or self._must_tell or self._turn % 2:
            self._heartbeat()
        elif self._unread():
            self._read_positions(self._unread())
        else:
            self._work()

    def _work(self) -> None:
        """Read or commit, and rarely do what makes the group move."""
        draw = self.random.random()
        if not self.is_resting and draw < _LEAVES_SHARE:
            self._leave(_LEFT if self.instance_id is None else _LEFT_FOR_A_WHILE)
        elif not self.is_resting and draw < _LEAVES_SHARE + _VANISHES_SHARE:
            self._vanish()
        elif draw < _LEAVES_SHARE + _VANISHES_SHARE + _STRAYS_SHARE:
            self._commit_as_stranger()
        elif not self.owned:
            self._heartbeat()
        elif self.random.random() < _READS_AGAIN_SHARE:
            self._read_positions(sorted(self.owned))
        else:
            place = self.random.choice(sorted(self.owned))
            if self.is_resting or self.random.random() < 0.5:
                self._read(place)
            else:
                self._commit(place)

    def _unread(self) -> list[Place]:
        return [place for place in sorted(self.owned) if place not in self._positions]

    # -- its place -------------------------------------------------------------------------------

    def _refused(self, code: int) -> bool:
        """Handle an error; false without an error."""
        error = ErrorCode(code)
        if error is ErrorCode.NONE:
            return False
        self.context.history.counts[f"consumer group {error.name}"] += 1
        if error in WRONG_NODE:
            self.coordinator = None
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self._lose_place()
        elif error is ErrorCode.UNRELEASED_INSTANCE_ID:
            self._lose_place()  # until the session of the former member ends
        self._must_tell = True
        self.again()
        return True

    def _lose_place(self) -> None:
        self.epochs.dropped(self.group, self.member_id)
        self.epoch, self._positions = 0, {}
        self.owned = self._assigned = frozenset()
        self._must_tell = True

    def _heartbeat(self) -> None:
        if self.owned - self._assigned and self.random.random() < _GIVES_BACK_SHARE:
            self.context.history.counts["consumer partition revoked"] += 1
            self.owned &= self._assigned
            self.epochs.gave_back(self.group, self.member_id, self.owned)
        is_full = self.epoch == 0 or self._must_tell
        topics: dict[bytes, TopicPartitions] = {}
        for topic_id, number in sorted(self.owned):
            topic = topics.setdefault(topic_id, TopicPartitions(topic_id=topic_id, partitions=[]))
            topic.partitions.append(number)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id if is_full else None,
            rebalance_timeout_ms=_REBALANCE_MS if is_full else -1,
            subscribed_topic_names=[self.topic] if is_full else None,
            topic_partitions=list(topics.values()),
        )
        if not is_full and self.instance_id is not None:
            request.instance_id = self.instance_id
        self.ask_coordinator(request, self._heard)

    def _heard(self, node_id: int, response: Message | None) -> None:
        if not isinstance(response, ConsumerGroupHeartbeatResponse):
            self._must_tell = True
            self.again()
            return
        if self._refused(response.error_code):
            return
        owned = self.owned
        if response.assignment is not None:
            owned = frozenset(
                (each.topic_id, number)
                for each in response.assignment.topic_partitions
                for number in each.partitions
            )
            self.context.history.counts["consumer assignment told"] += 1
            self._assigned = owned
            owned |= self.owned
        if not self.epochs.told(node_id, self.group, self.member_id, response.member_epoch, owned):
            self._lose_place()
            self.later(self.think_us)
            return
        self._must_tell = False
        self.epoch, self.owned = response.member_epoch, owned
        self._positions = {at: n for at, n in self._positions.items() if at in owned}
        self.later(self.think_us)

    def _leave(self, epoch: int) -> None:
        """Leave; a static member only for a while, and it returns under another id."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=-1,
        )
        self._lose_place()
        if epoch == _LEFT_FOR_A_WHILE:
            self.member_id = self.new_member_id()

        def left(node_id: int, response: Message | None) -> None:
            self.context.history.counts["consumer member left"] += response is not None
            self.later(10 * self.think_us)

        self.ask_coordinator(request, left)

    def _vanish(self) -> None:
        """Go without a word, for longer than a session lasts, and return as another one."""
        self.context.history.counts["consumer member vanished"] += 1
        self.epoch, self._positions = 0, {}
        self.owned = self._assigned = frozenset()
        self.epochs.dropped(self.group, self.member_id)
        self.member_id, self._must_tell = self.new_member_id(), True
        self.later(_VANISHED_US)

    # -- records and offsets ---------------------------------------------------------------------

    def _read(self, place: Place) -> None:
        """Fetch from the position, without a session."""
        leader = self.leaders.get(place[1])
        truth = self.context.truth.partitions[place]
        if leader is None or place[0] != self.topic_id:
            self.again()
            return
        position, epoch = self._positions[place], leader[1]
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
            if data.records and place in self._positions:
                history = self.context.history
                self._positions[place] = history.read(
                    leader[0], truth, position, data.records, epoch
                )
                history.counts["consumer member read"] += 1
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

    def _commit(self, place: Place) -> None:
        self._notes += 1
        offset, note = self._positions[place], f"{self.number}-{self._notes}"

        def committed(node_id: int, response: Message | None) -> None:
            if not isinstance(response, OffsetCommitResponse):
                self.again()
                return
            if self._refused(response.topics[0].partitions[0].error_code):
                return
            history = self.context.history
            history.counts["consumer member committed"] += 1
            history.offset_committed(node_id, (self.group, self.topic, place[1]), offset, note)
            self.later(self.think_us)

        request = self._offsets_request(place, offset, note, self.member_id, self.epoch)
        self.ask_coordinator(request, committed)

    def _commit_as_stranger(self) -> None:
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

    def _read_positions(self, places: list[Place]) -> None:
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
            if self._refused(found.error_code):
                return
            for each in found.topics[0].partitions:
                if self._refused(each.error_code):
                    return
                place = (self.group, self.topic, each.partition_index)
                note = each.metadata or ""
                history.offset_shown(
                    node_id, place, each.committed_offset, note, owed[each.partition_index]
                )
                at = (places[0][0], each.partition_index)
                self._positions[at] = max(each.committed_offset, 0)
            self.later(self.think_us)

        self.ask_coordinator(OffsetFetchRequest(groups=[group]), read)
