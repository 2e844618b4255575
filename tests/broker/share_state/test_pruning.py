"""Which records of share state a load needs, against a plain list of what is alive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.broker.share_state.environment import ShareStateEnvironment
from kraft_wire.broker.share_state.pruning import NeededOffsets
from kraft_wire.broker.share_state.shard import ShareStateShard
from kraft_wire.model import Uuid
from kraft_wire.settings.node_settings import NodeSettings
from tests.broker.share_state.list_log import ListLog

WRITES = st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(1, 5)), max_size=30)
"""Each: the share partition, whether its state ends, and how far the log has grown."""


def key(partition: int) -> SharePartitionKey:
    return SharePartitionKey("g", Uuid(b"0123456789abcdef"), partition)


def test_nothing_can_go_before_anything_is_written() -> None:
    assert NeededOffsets().first_needed() is None


@given(WRITES)
def test_the_oldest_newest_snapshot_of_what_is_alive_stays(
    writes: list[tuple[int, bool, int]],
) -> None:
    """KIP-932. A tombstone stays until the next record, which then is the log's newest."""
    needed, alive, offset = NeededOffsets(), dict[int, int](), 0
    for partition, is_end, grown in writes:
        offset += grown
        needed.written(key(partition), offset, is_end=is_end)
        alive[partition] = offset
        assert needed.first_needed() == min(alive.values())
        if is_end:
            del alive[partition]


def test_records_that_are_removed_are_not_removed_again() -> None:
    """The shard asks for a deletion only when the first needed offset has moved."""
    removed: list[tuple[int, int]] = []
    interval = {"share.coordinator.state.topic.prune.interval.ms": "100"}
    environment = ShareStateEnvironment(
        settings=lambda: BrokerSettings.of(NodeSettings(interval)),
        has_partition=lambda key: True,
        delete_records=lambda partition, offset: removed.append((partition, offset)),
    )
    shard = ShareStateShard(ListLog(), environment)  # type: ignore[arg-type]  # the same methods
    shard.loaded(ClockReading(0, 0))
    for now_ms, first in ((100, 4), (200, 4), (300, 6), (400, 6)):
        shard.table.needed.written(key(0), first, is_end=False)
        shard.tick(ClockReading(now_ms, now_ms))
    assert removed == [(0, 4), (0, 6)]
