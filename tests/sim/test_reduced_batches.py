"""What compaction may make of a batch, as the judge understands it."""

from kraft_wire.sim.disk.file_nodes import FileNode
from kraft_wire.sim.judge.log_watch import SeenBatch, read_batches
from kraft_wire.sim.judge.reduced_batches import difference
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record


def batch(*times: int, first: int = 0, max_timestamp: int | None = None) -> SeenBatch:
    """A batch of two offsets with records of these times, the first of them at an offset."""
    records = [
        Record(key=b"k", value=b"v", timestamp=each, offset=first + at)
        for at, each in enumerate(times)
    ]
    data = build_batch(records, base_offset=0, last_offset=1, max_timestamp=max_timestamp)
    (seen,), _ = read_batches(bytes(data), 0, FileNode(b""))
    return seen


def test_batch_that_is_emptied_in_two_passes_keeps_the_time_of_the_first() -> None:
    """Of two records the newer one went first: seed 292 of clusters with upkeep."""
    original = batch(9, 5)
    assert difference(original, batch(5, first=1)) is None
    assert difference(original, batch(max_timestamp=5)) is None
    assert difference(original, batch(max_timestamp=9)) is None


def test_batch_that_is_emptied_has_no_time_of_its_own() -> None:
    assert difference(batch(9, 5), batch(max_timestamp=7)) is not None
