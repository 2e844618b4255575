"""Offsets that are in the log and not committed yet: until then readers get those of before.

Kafka's coordinator answers reads from its last committed state, and KIP-447 has offsets of a
transaction unstable until its marker is committed.
"""

from random import Random

import pytest

from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.offsets.table import CommittedOffset, OffsetKey, OffsetTable
from kraft_wire.broker.groups.offsets.uncommitted import UncommittedOffsets

KEYS = [OffsetKey("g", "t", partition) for partition in range(3)]
PRODUCER = 7


class World:
    """The offsets of a coordinator, and the high watermark of its log."""

    def __init__(self) -> None:
        memory = MemoryUse(lambda: 1 << 20)
        self.high_watermark = 0
        self.table = OffsetTable(memory)
        self.offsets = UncommittedOffsets(self.table, memory, lambda: self.high_watermark)

    def shown(self) -> dict[int, int]:
        """What readers get, by partition."""
        found = self.offsets.of_group("g").get("t", {})
        one_by_one = {key: self.offsets.get(key) for key in KEYS}
        assert found == {key.partition: each for key, each in one_by_one.items() if each}
        return {partition: each.offset for partition, each in found.items()}


def committed(offset: int, record_offset: int = 0) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", 0, None, record_offset=record_offset)


@pytest.mark.parametrize("seed", range(10))
def test_readers_get_the_state_that_is_committed_whatever_is_behind_it(seed: int) -> None:
    """Compared with the whole state behind each record of the log."""
    chance, world = Random(seed), World()
    newest: dict[int, int] = {}
    states = [newest]
    for end in range(1, 40):
        key = chance.choice(KEYS)
        newest = {each: offset for each, offset in newest.items() if each != key.partition}
        if chance.random() < 0.7:
            newest[key.partition] = end
            world.offsets.change(key, committed(end), end)
        else:
            world.offsets.change(key, None, end)
        states.append(newest)
        world.high_watermark = chance.randrange(world.high_watermark, end + 1)
        assert world.shown() == states[world.high_watermark]
        is_all = world.high_watermark == end
        assert world.offsets.safe_at == (None if is_all else end), "of all changes, the last"


@pytest.mark.parametrize("commits", [True, False])
def test_offsets_of_a_transaction_are_unstable_until_its_marker_is_committed(
    commits: bool,
) -> None:
    """Another coordinator may not have the marker, and the transaction may then end otherwise."""
    world = World()
    key, other = KEYS[:2]
    world.offsets.change(key, committed(1), None)
    world.table.put_open(PRODUCER, key, committed(5, record_offset=1))
    assert world.offsets.is_unstable(key)
    world.offsets.end_transaction(PRODUCER, commits=commits, safe_at=3)
    for high_watermark in (0, 2):
        world.high_watermark = high_watermark
        assert [world.offsets.is_unstable(each) for each in (key, other)] == [True, False]
        assert world.shown() == {0: 1}
    world.high_watermark = 3
    assert not world.offsets.is_unstable(key)
    assert world.shown() == {0: 5 if commits else 1}
