"""What producers, consumers and group members were told, held against what is committed.

Each record's value is unique, so that an answer can be found in the log. An acknowledgement of all
in-sync replicas means committed, there and once; a plain producer's records stand in the order of
their acknowledgements; a consumer sees what is committed, byte for byte, and never goes back; an
offset that was acknowledged is committed, and no offset is shown that never was; a partition has
one owner in a generation. What an unclean election took away is no longer owed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kraft_wire.sim.disk_nodes import FileNode
from kraft_wire.sim.judge import Violation
from kraft_wire.sim.log_watch import SeenBatch, read_batches
from kraft_wire.sim.partition_truth import GroupPartition, PartitionTruth, Truth
from kraft_wire.wire.message import Buffer

__all__ = ["DataHistory"]

_ACKED: Final = "S10 AckedIsCommitted"
_SHOWN: Final = "S26 CommittedReadOnly"


@dataclass(slots=True)
class DataHistory:
    """What clients of brokers know."""

    truth: Truth
    counts: Counter[str] = field(default_factory=Counter)
    """Operations by kind and outcome."""
    _acked: dict[tuple[int, PartitionTruth], int] = field(default_factory=dict)
    """Client and partition -> the last offset that it was told."""
    _owners: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """Group, generation, partition -> member."""

    def acknowledged(
        self, client: int, node_id: int, partition: PartitionTruth, offset: int, values: list[bytes]
    ) -> None:
        """All in-sync replicas have these records, from this offset on."""
        self.counts["produce acknowledged"] += 1
        batch = partition.batch_before(offset + 1)
        found = None if batch is None else batch.values()
        if found != values or batch is None or batch.base_offset != offset:
            if partition.unclean_epoch >= 0 or partition.is_deleted:
                return
            facts = (partition.name, values, "at", offset, "where", found, "of", partition.end)
            raise Violation(_ACKED, node_id, *facts)
        last = self._acked.get((client, partition), -1)
        if offset <= last and partition.unclean_epoch < 0:
            raise Violation("S10 LogOrder", node_id, partition.name, offset, "after", last)
        self._acked[client, partition] = offset

    def read(self, node_id: int, partition: PartitionTruth, position: int, records: Buffer) -> int:
        """A consumer was given records from its position on; return the next one."""
        data = bytes(records)
        batches, end = read_batches(data, 0, FileNode(b""))
        if batches and end < len(data) and not _is_cut_short(data, end):
            raise Violation(_SHOWN, node_id, partition.name, "bytes that are no batch, at", end)
        for batch in batches:
            self._shown(node_id, partition, position, batch)
            position = max(position, batch.end_offset)
        self.counts["batches read"] += len(batches)
        return position

    def _shown(
        self, node_id: int, partition: PartitionTruth, position: int, batch: SeenBatch
    ) -> None:
        committed = partition.batch_before(batch.end_offset)
        same = committed is not None and committed.identity == batch.identity
        if same and batch.end_offset <= position:
            raise Violation("S26 MonotoneReads", node_id, partition.name, batch.identity, position)
        if not same and partition.unclean_epoch < 0 and not partition.is_deleted:
            facts = (batch.identity, "shown, committed", committed and committed.identity)
            raise Violation(_SHOWN, node_id, partition.name, *facts, "to", partition.end)

    def out_of_range(self, node_id: int, partition: PartitionTruth, position: int) -> None:
        """A leader does not know a position that a consumer has read up to."""
        self.counts["read out of range"] += 1
        if partition.unclean_epoch < 0 and not partition.is_deleted:
            raise Violation(_ACKED, node_id, partition.name, position, "is out of range")

    def refused_sequence(self, node_id: int, partition: PartitionTruth, error: str) -> None:
        """A leader lacks what an idempotent producer wrote before."""
        self.counts["sequence refused"] += 1
        if partition.unclean_epoch < 0 and not partition.is_deleted:
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

    def offset_committed(self, node_id: int, place: GroupPartition, offset: int, note: str) -> None:
        """A coordinator acknowledged an offset."""
        self.counts["offset committed"] += 1
        if (offset, note) not in self.truth.offsets.get(place, []):
            raise Violation(_ACKED, node_id, place, (offset, note), "is not in the offsets topic")

    def offset_shown(self, node_id: int, place: GroupPartition, offset: int, note: str) -> None:
        """A coordinator says which offset is committed; -1 for none."""
        self.counts["offset read"] += 1
        if offset >= 0 and (offset, note) not in self.truth.offsets.get(place, []):
            raise Violation(_SHOWN, node_id, place, (offset, note), "was never committed")

    def offset_at_end(self, node_id: int, place: GroupPartition, offset: int, note: str) -> None:
        """After everything a coordinator shows the last offset that was committed."""
        known = self.truth.offsets.get(place, [])
        wanted = known[-1] if known else (-1, "")
        if (offset, note) != wanted:
            raise Violation("S22 OffsetsKept", node_id, place, (offset, note), "not", wanted)


def _is_cut_short(data: bytes, at: int) -> bool:
    """Tell whether what is left is the beginning of a batch, as a fetch may end with."""
    if len(data) - at < 12:
        return True
    return at + 12 + int.from_bytes(data[at + 8 : at + 12], "big") > len(data)
