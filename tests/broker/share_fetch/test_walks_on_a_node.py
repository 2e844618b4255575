"""Random members of a share group on a whole node: no accepted record is delivered again.

Members fetch, accept, release, reject, crash and fall silent; the share partition is dropped as by
an election, and read again from the share coordinator. The history is judged by what the members
were told.
"""

import random

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.share_fetch.sharing_node import SharingDoor, ranges

MEMBERS = ("a", "b", "c")
LIMIT = 5
LOCK_MS = 30_000
ACCEPT, RELEASE, REJECT = 1, 2, 3


class Walk:
    """One history, with what it shows so far."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.node = SharingDoor()
        self.produced = 0
        self.final: dict[int, None] = {}
        """Offsets that were accepted or rejected, with an answer."""
        self.counts: dict[int, int] = {}
        """The delivery count that an offset had last."""
        self.held: dict[str, dict[int, int]] = {member: {} for member in MEMBERS}
        """Offsets of each member, with the time at which its lock ends."""
        self.epochs = dict.fromkeys(MEMBERS, 0)
        self.connections = dict(zip(MEMBERS, (11, 12, 13), strict=True))

    def step(self) -> None:
        """Do one thing."""
        drawn, member = self.chance.random(), self.chance.choice(MEMBERS)
        if drawn < 0.25:
            self.produce()
        elif drawn < 0.6:
            self.fetch(member)
        elif drawn < 0.85:
            self.acknowledge(member, (ACCEPT, ACCEPT, RELEASE, REJECT))
        elif drawn < 0.9:
            self.crash(member)
        elif drawn < 0.95:
            self.elect()
        else:
            self.node.advance(self.chance.choice((1_000, 10_000, LOCK_MS)))

    def produce(self) -> None:
        for _ in range(self.chance.randrange(1, 6)):
            self.node.produce(10)
            self.produced += 1

    def fetch(self, member: str) -> int:
        """Fetch, and judge what was acquired; return how many records that were."""
        epoch, connection = self.epochs[member], self.connections[member]
        reply = self.node.share_fetch(member, epoch, connection=connection, max_wait_ms=200)
        self.node.advance(400)
        acquired = ranges(reply)
        self.epochs[member] = epoch + 1
        now_ms = self.node.now_ms
        for first, last, count in acquired:
            for offset in range(first, last + 1):
                self._delivered(member, offset, count, now_ms)
        return len(acquired)

    def _delivered(self, member: str, offset: int, count: int, now_ms: int) -> None:
        assert offset not in self.final, (offset, "was accepted or rejected")
        assert count <= LIMIT, (offset, count)
        holders = [
            other
            for other, offsets in self.held.items()
            if other != member and offsets.get(offset, 0) > now_ms
        ]
        assert not holders, (offset, member, holders)
        self.counts[offset] = count
        for offsets in self.held.values():
            offsets.pop(offset, None)
        self.held[member][offset] = now_ms - 400 + LOCK_MS

    def acknowledge(self, member: str, kinds: tuple[int, ...]) -> None:
        """Acknowledge some of what a member has; the answer says whether it counts."""
        now_ms = self.node.now_ms
        mine = sorted(at for at, end_ms in self.held[member].items() if end_ms > now_ms + 400)
        if not mine or not self.epochs[member]:
            return
        asked = [(at, at, self.chance.choice(kinds)) for at in mine if self.chance.random() < 0.8]
        if not asked:
            return
        epoch, connection = self.epochs[member], self.connections[member]
        reply = self.node.acknowledge(member, epoch, asked, connection=connection)
        self.node.advance(200)
        self.epochs[member] = epoch + 1
        error = reply.response.responses[0].partitions[0].error_code
        assert error == ErrorCode.NONE, (member, asked, error)
        for offset, _, kind in asked:
            del self.held[member][offset]
            if kind != RELEASE:
                self.final[offset] = None

    def crash(self, member: str) -> None:
        """Lose the connection; its records are released."""
        if self.epochs[member]:
            self.node.close(self.connections[member])
            self.connections[member] += 10
            self.node.advance(200)
            self.epochs[member] = 0
            self.held[member].clear()

    def elect(self) -> None:
        """Begin another life of the share partition: locks are lost, final records are not."""
        shares = self.node.node.broker.share_partitions
        if shares is not None:
            shares.drop(self.node.key)
            for offsets in self.held.values():
                offsets.clear()

    def end(self) -> None:
        """Accept everything that is left; the start is at the end of the log then."""
        self.node.advance(LOCK_MS + 1_000)
        for offsets in self.held.values():
            offsets.clear()
        for _ in range(200):
            if not self.fetch("a") and self.start_offset() >= self.produced:
                break
            self.acknowledge("a", (ACCEPT,))
        assert self.start_offset() == self.produced
        lost = [at for at in range(self.produced) if at not in self.final]
        assert all(self.counts.get(at, 0) >= LIMIT for at in lost), "given up at the limit only"

    def start_offset(self) -> int:
        shares = self.node.node.broker.share_partitions
        found = None if shares is None else shares.get(self.node.key)
        return -1 if found is None else found.start_offset


@pytest.mark.parametrize("seed", range(6))
def test_no_accepted_record_is_delivered_again(seed: int) -> None:
    """932-REC-02, 932-REC-04, 932-REC-14, 932-ACK-06: across crashes, lock ends and elections."""
    walk = Walk(seed)
    for _ in range(60):
        walk.step()
    walk.end()


def test_walks_deliver_again_give_up_and_finish() -> None:
    walks = [Walk(seed) for seed in range(3)]
    for walk in walks:
        for _ in range(60):
            walk.step()
        walk.end()
    counts = [count for walk in walks for count in walk.counts.values()]
    assert len(counts) > 60
    assert sum(count > 1 for count in counts) > 20
    assert sum(len(walk.final) for walk in walks) > 50
