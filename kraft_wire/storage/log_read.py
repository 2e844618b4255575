"""The result of a read of a log: a range of one segment, or an offset outside of the log."""

from kraft_wire.frozen import slotted
from kraft_wire.model import FileSlice, Offset
from kraft_wire.storage.segment import Segment
from kraft_wire.storage.segment_indexes import ends_at

__all__ = ["LogRead", "OffsetOutOfRange"]


class OffsetOutOfRange(Exception):
    """The offset is outside of [log start, log end]."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is not in [{log_start_offset}, {log_end_offset}]")
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


@slotted  # never changed; frozen or a tuple it would cost as much as the look-up
class LogRead:
    """A range of one segment that begins with the batch that has the requested offset."""

    records: FileSlice | bytes
    size_bytes: int
    first_offset: Offset  # of the first batch; may be below the requested offset
    first_batch_is_larger: bool = False  # nothing is returned, as the first batch is beyond the max
    is_older: bool = False  # a later segment has more below the upper bound
    segment: Segment | None = None  # the segment that was read
    end_position: int = 0  # the end of the read in it
    segment_end: Offset = Offset(-1)  # after the segment

    @property
    def offset_behind(self) -> Offset:
        """An offset after all read batches.

        As in Kafka not the nearest: that of the next batch in the index, else the segment's end.
        """
        if self.segment is None:
            return self.first_offset
        entry = self.segment.indexes.offsets.entry_from(self.end_position)
        if entry is None or not ends_at(self.segment, *entry):
            return self.segment_end
        return entry[0]
