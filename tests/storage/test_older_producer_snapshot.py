"""A damaged snapshot of producers leaves the one before it, which may know what no batch tells."""

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.storage.producers.snapshots import load_producers, snapshot_path, take_snapshot
from tests.storage.making import DIRECTORY, append, batch_bytes, open_at, parsed

GONE = 9
"""A producer whose batches compaction has taken away."""


def snapshot_at(fs: SimFileSystem, offset: int, *producers: int) -> str:
    states = ProducerStates()
    for producer_id in producers:
        states.update(parsed(batch_bytes(0, producer_id=producer_id, sequence=0)))
    states.map_end_offset = Offset(offset)
    take_snapshot(fs, DIRECTORY, states)
    return snapshot_path(DIRECTORY, Offset(offset))


def damage(fs: SimFileSystem, path: str) -> None:
    replace_file(fs, path, fs.read(path)[:-1], durable=False)


def test_the_newest_intact_snapshot_counts() -> None:
    fs = SimFileSystem()
    log = open_at(fs)
    for at in range(6):
        append(log, batch_bytes(at, producer_id=7, sequence=at))
    end = Offset(6)
    snapshot_at(fs, 2, 7, GONE)
    newer = [snapshot_at(fs, offset, 7) for offset in (3, 4)]
    beyond = snapshot_at(fs, 7, 7, 11)
    assert load_producers(fs, DIRECTORY, log.segments, end).get(GONE) is None
    for high_watermark in range(7):  # no marker is above any of them
        found_for = load_producers(fs, DIRECTORY, log.segments, end, Offset(high_watermark))
        assert found_for.get(GONE) is None
    for path in newer:
        damage(fs, path)
    states = load_producers(fs, DIRECTORY, log.segments, end)
    found = [states.get(producer_id) for producer_id in (7, GONE, 11)]
    assert [each and each.last_offset for each in found] == [5, 0, None]
    assert states.map_end_offset == end
    assert fs.exists(beyond)
    at_its_offset = load_producers(fs, DIRECTORY, log.segments, Offset(2))
    assert at_its_offset.get(GONE) is not None
    assert load_producers(fs, DIRECTORY, log.segments, Offset(1)).get(GONE) is None
