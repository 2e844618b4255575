"""A member of a group with member epochs: it takes what it is told, reads it, and commits.

It sends heartbeats with its epoch and what it owns, gives partitions back a while after it is told
to, reads committed records of the others, and commits its positions with its epoch. Some members
vanish, and return under another id. A kind of group adds the form of its heartbeat.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.coordinated_client import WRONG_NODE
from kraft_wire.sim.clients.position_client import PositionClient
from kraft_wire.sim.judge.group_epochs import GroupEpochs, Owned, Place
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["LEFT", "EpochMember", "Told"]

LEFT: Final = -1
"""The member epoch of a request to leave."""
_LEAVES_SHARE: Final = 0.05
_VANISHES_SHARE: Final = 0.03
_READS_AGAIN_SHARE: Final = 0.1
_GIVES_BACK_SHARE: Final = 0.5
"""Of the heartbeats after which it stops to read what it was told to revoke."""
_STRAYS_SHARE: Final = 0.03
_VANISHED_US: Final = 2_500_000
_RESTS_US: Final = 100_000

Told = tuple[int, int, frozenset[Place] | None]
"""An answer to a heartbeat: error code, member epoch, assignment; None if it is the last one."""


class EpochMember(PositionClient):
    """One member of a group, on one topic."""

    def __init__(
        self, context: ClientContext, epochs: GroupEpochs, number: int, topic: str, group: str
    ) -> None:
        super().__init__(context, number, topic, group)
        self.epochs = epochs
        self.owned: frozenset[Place] = frozenset()
        """What it reads and commits: its assignment, and what it has not given back yet."""
        self._assigned: frozenset[Place] = frozenset()
        self.is_resting = False
        """Whether it only stays in the group."""
        self.must_tell = True
        """Whether the next heartbeat names everything: it is new, or an answer was lost."""
        self._turn = 0
        self.think_us = 8_000
        self.timeout_us = 1_000_000

    @abstractmethod
    def heartbeat_request(self) -> Message:
        """Return the heartbeat of a member that joins or stays."""

    @abstractmethod
    def told(self, response: Message | None) -> Told | None:
        """Return what an answer to a heartbeat says; None if it is none."""

    def in_log(self, places: frozenset[Place]) -> Owned:
        """Return partitions as the records of the group name them."""
        return places

    @abstractmethod
    def leave(self) -> None:
        """Leave the group."""

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
        elif self.epoch == 0 or self.must_tell or self._turn % 2:
            self._heartbeat()
        elif self._unread():
            self.read_positions(self._unread())
        else:
            self._work()

    def _work(self) -> None:
        """Read or commit, and rarely do what makes the group move."""
        draw = self.random.random()
        if not self.is_resting and draw < _LEAVES_SHARE:
            self.leave()
        elif not self.is_resting and draw < _LEAVES_SHARE + _VANISHES_SHARE:
            self._vanish()
        elif draw < _LEAVES_SHARE + _VANISHES_SHARE + _STRAYS_SHARE:
            self.commit_as_stranger()
        elif not self.owned:
            self._heartbeat()
        elif self.random.random() < _READS_AGAIN_SHARE:
            self.read_positions(sorted(self.owned))
        else:
            place = self.random.choice(sorted(self.owned))
            if self.is_resting or self.random.random() < 0.5:
                self.read_from(place)
            else:
                self.commit(place)

    def _unread(self) -> list[Place]:
        return [place for place in sorted(self.owned) if place not in self.positions]

    def refused(self, code: int) -> bool:
        """Handle an error; false without an error."""
        error = ErrorCode(code)
        if error is ErrorCode.NONE:
            return False
        self.count(f"group {error.name}")
        if error in WRONG_NODE:
            self.coordinator = None
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.lose_place()
        elif error is ErrorCode.UNRELEASED_INSTANCE_ID:
            self.lose_place()  # until the session of the former member ends
        self.must_tell = True
        self.again()
        return True

    def lost_answer(self) -> None:
        """Name everything in the next heartbeat: its answer has the whole assignment then."""
        self.must_tell = True

    def lose_place(self) -> None:
        """Own nothing, and join again."""
        self.epochs.dropped(self.group, self.member_id)
        self.epoch, self.positions = 0, {}
        self.owned = self._assigned = frozenset()
        self.must_tell = True

    def _heartbeat(self) -> None:
        if self.owned - self._assigned and self.random.random() < _GIVES_BACK_SHARE:
            self.count("partition revoked")
            self.owned &= self._assigned
            self.epochs.gave_back(self.group, self.member_id, self.in_log(self.owned))
        self.ask_coordinator(self.heartbeat_request(), self._heard)

    def _heard(self, node_id: int, response: Message | None) -> None:
        told = self.told(response)
        if told is None:
            self.lost_answer()
            self.again()
            return
        code, epoch, assigned = told
        if self.refused(code):
            return
        owned = self.owned
        if assigned is not None:
            self.count("assignment told")
            self._assigned, owned = assigned, assigned | owned
        own = self.in_log(owned)
        if not self.epochs.told(node_id, self.group, self.member_id, epoch, own):
            self.lose_place()
            self.later(self.think_us)
            return
        self.must_tell = False
        self.epoch, self.owned = epoch, owned
        self.positions = {at: n for at, n in self.positions.items() if at in owned}
        self.later(self.think_us)

    def depart(self, request: Message) -> None:
        """Send a request to leave, and join again after a while."""

        def left(node_id: int, response: Message | None) -> None:
            self.context.history.counts[f"{self.kind} member left"] += response is not None
            self.later(10 * self.think_us)

        self.ask_coordinator(request, left)

    def _vanish(self) -> None:
        """Go without a word, for longer than a session lasts, and return as another one."""
        self.count("member vanished")
        self.epoch, self.positions = 0, {}
        self.owned = self._assigned = frozenset()
        self.epochs.dropped(self.group, self.member_id)
        self.member_id, self.must_tell = self.new_member_id(), True
        self.later(_VANISHED_US)
