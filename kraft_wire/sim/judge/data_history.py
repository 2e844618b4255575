"""Compares the answers of producers, consumers and group members with what is committed.

Each record's value is unique, so that an answer can be found in the log. An acknowledgement of all
in-sync replicas means committed, there and once; a plain producer's records are in the order of
their acknowledgements; a consumer reads what is committed, byte for byte, without gaps, and never
goes back. An acknowledged offset is committed. A fetched offset was committed, and is not older
than those acknowledged before the request. A partition has one owner in a generation.
Acknowledgements of a leader epoch stay valid, but for what an unclean election lost since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kraft_wire.sim.disk.file_nodes import FileNode
from kraft_wire.sim.judge.log_watch import SeenBatch, read_batches
from kraft_wire.sim.judge.partition_truth import GroupPartition, PartitionTruth, Truth
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.delete_records import DeleteRecordsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Buffer

__all__ = ["DataHistory"]

_ACKED: Final = "S10 AckedIsCommitted"
_SHOWN: Final = "S26 CommittedReadOnly"


@dataclass(slots=True)
class DataHistory:
    """The answers of clients of brokers."""

    truth: Truth
    counts: Counter[str] = field(default_factory=Counter)
    """Operations by kind and outcome."""
    _acked: dict[tuple[int, PartitionTruth], tuple[int, int]] = field(default_factory=dict)
    """Client and partition -> the last offset of an answer, and its leader epoch."""
    _owed: dict[GroupPartition, int] = field(default_factory=dict)
    """The number of commits up to the newest acknowledged one."""
    _owners: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """Group, generation, partition -> member."""

    def acknowledged(
        self,
        client: int,
        node_id: int,
        partition: PartitionTruth,
        offset: int,
        values: list[bytes],
        epoch: int,
    ) -> None:
        """All in-sync replicas have these records, from this offset on.

        `epoch`: the leader epoch of the node when it was asked; it answered in that or a later one.
        """
        self.counts["produce acknowledged"] += 1
        last, told_in = self._acked.get((client, partition), (-1, epoch))
        self._acked[client, partition] = (offset, epoch)
        batch = partition.batch_before(offset + 1)
        found = None if batch is None else batch.values()
        if found != values or batch is None or batch.base_offset != offset:
            if offset >= partition.kept_until(epoch) or partition.is_deleted:
                return
            facts = (partition.name, values, "at", offset, "where", found, "of", partition.end)
            raise Violation(_ACKED, node_id, *facts)
        if offset <= last < partition.kept_until(told_in):
            raise Violation("S10 LogOrder", node_id, partition.name, offset, "after", last)

    def read(
        self, node_id: int, partition: PartitionTruth, position: int, records: Buffer, epoch: int
    ) -> int:
        """A consumer was given records from its position on; return the next one.

        `epoch`: the leader epoch that it asked for.
        """
        data = bytes(records)
        batches, end = read_batches(data, 0, FileNode(b""))
        if batches and end < len(data) and not _is_cut_short(data, end):
            raise Violation(_SHOWN, node_id, partition.name, "bytes that are not a batch, at", end)
        for batch in batches:
            self._shown(node_id, partition, position, batch, epoch)
            position = max(position, batch.end_offset)
        self.counts["batches read"] += len(batches)
        return position

    def _shown(
        self,
        node_id: int,
        partition: PartitionTruth,
        position: int,
        batch: SeenBatch,
        epoch: int,
    ) -> None:
        committed = partition.batch_before(batch.end_offset)
        same = partition.is_same(batch, committed)
        if batch.end_offset <= position:
            raise Violation("S26 MonotoneReads", node_id, partition.name, batch.identity, position)
        if batch.base_offset > position and not partition.may_lack(position, batch.base_offset):
            raise Violation("S26 NothingSkipped", node_id, partition.name, batch.identity, position)
        is_kept = batch.end_offset <= partition.kept_until(epoch)
        if not same and is_kept and not partition.is_deleted:
            facts = (batch.identity, "shown, committed", committed and committed.identity)
            raise Violation(_SHOWN, node_id, partition.name, *facts, "to", partition.end)

    def out_of_range(
        self, node_id: int, partition: PartitionTruth, position: int, epoch: int
    ) -> None:
        """A leader lacks a position that a consumer has reached in a leader epoch."""
        self.counts["read out of range"] += 1
        is_cut_off = position < partition.start
        if position <= partition.kept_until(epoch) and not (partition.is_deleted or is_cut_off):
            raise Violation(_ACKED, node_id, partition.name, position, "is out of range")

    def records_deleted(
        self, partition: PartitionTruth, offsets: list[int], response: DeleteRecordsResponse
    ) -> None:
        """An answer of DeleteRecords came: every live replica begins at its offset."""
        offset = offsets[-1]  # of a partition that is named twice the last one counts
        for answer in response.topics[0].partitions:
            self.counts[f"delete records {ErrorCode(answer.error_code).name}"] += 1
            if answer.error_code == ErrorCode.NONE and not partition.is_deleted:
                is_low = not max(0, offset) <= answer.low_watermark <= partition.start
                if is_low or answer.low_watermark > partition.end:
                    facts = (
                        partition.name,
                        offset,
                        "answered",
                        answer.low_watermark,
                        partition.start,
                    )
                    raise Violation("S52 LogStartMonotone", 0, *facts)

    def refused_sequence(
        self, client: int, node_id: int, partition: PartitionTruth, error: str
    ) -> None:
        """A leader lacks acknowledged batches of an idempotent producer, which restarts."""
        self.counts["sequence refused"] += 1
        last, told_in = self._acked.pop((client, partition), (-1, -1))
        if last < partition.kept_until(told_in) and not partition.is_deleted:
            raise Violation("S21 ProducerSequence", node_id, partition.name, error)

    # -- groups ----------------------------------------------------------------------------------

    def assigned(self, group: str, generation: int, member: str, owned: Sequence[int]) -> None:
        """A member was given partitions for a generation."""
        self.counts["generation joined"] += 1
        for number in owned:
            owner = self._owners.setdefault((group, generation, number), member)
            if owner != member:
                facts = (group, "generation", generation, "partition", number, owner, member)
                raise Violation("S22 GroupOwnership", 0, *facts)

    def commits(self, group: str, generation: int, member: str, number: int) -> None:
        """A member is about to commit for a partition: that is for its owner to do."""
        owner = self._owners.get((group, generation, number))
        assert owner == member, (group, generation, number, owner, member)

    def offset_committed(self, node_id: int, place: GroupPartition, offset: int, note: str) -> None:
        """A coordinator acknowledged an offset."""
        self.counts["offset committed"] += 1
        known = self.truth.offsets.get(place, [])
        if (offset, note) not in known:
            raise Violation(_ACKED, node_id, place, (offset, note), "is not in the offsets topic")
        self._owed[place] = max(self.offsets_owed(place), known.index((offset, note)) + 1)

    def offsets_owed(self, place: GroupPartition) -> int:
        """Return how many commits a later request must see."""
        return self._owed.get(place, 0)

    def offset_shown(
        self, node_id: int, place: GroupPartition, offset: int, note: str, owed: int
    ) -> None:
        """A coordinator answers with a committed offset; -1 for none.

        `owed`: the value of `offsets_owed` at the request.
        """
        self.counts["offset read"] += 1
        known = self.truth.offsets.get(place, [])
        shown = max((at + 1 for at, each in enumerate(known) if each == (offset, note)), default=0)
        if offset >= 0 and not shown:
            raise Violation(_SHOWN, node_id, place, (offset, note), "was never committed")
        if shown < owed:
            facts = (place, (offset, note), "is older than", known[owed - 1])
            raise Violation("S22 OffsetsKept", node_id, *facts)

    def offset_at_end(self, node_id: int, place: GroupPartition, offset: int, note: str) -> None:
        """After everything a coordinator shows the last offset that was committed."""
        known = self.truth.offsets.get(place, [])
        wanted = known[-1] if known else (-1, "")
        if (offset, note) != wanted:
            raise Violation("S22 OffsetsKept", node_id, place, (offset, note), "not", wanted)


def _is_cut_short(data: bytes, at: int) -> bool:
    """Return whether the rest is the beginning of a batch, with which a fetch may end."""
    if len(data) - at < 12:
        return True
    return at + 12 + int.from_bytes(data[at + 8 : at + 12], "big") > len(data)
