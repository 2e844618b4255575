"""The transactions of a log by a scan of all its bytes: a twin of what the log remembers."""

from dataclasses import dataclass, field

from kraft_wire.storage.log import Log
from tests.storage.making import contents, parsed


@dataclass
class Scan:
    """What the batches of a log say of transactions."""

    open: dict[int, int] = field(default_factory=dict)
    """Producer id to the first offset of its open transaction."""
    ended: list[tuple[int, int]] = field(default_factory=list)
    """First offset and marker of each transaction that has ended."""
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)
    """The entries that `.txnindex` has to have."""
    producers: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Producer id to epoch, last sequence, and coordinator epoch."""

    def last_stable_offset(self, high_watermark: int) -> int:
        """The LSO"""
        first = [*self.open.values(), *(at for at, end in self.ended if end >= high_watermark)]
        return min([*first, high_watermark])


def scan(log: Log) -> Scan:
    """Fold every batch of a log, none of which was deleted."""
    found = Scan()
    for data in contents(log):
        batch = parsed(data)
        producer_id = batch.producer_id
        if producer_id < 0:
            continue
        _, _, coordinator_epoch = found.producers.get(producer_id, (0, 0, -1))
        if not batch.is_control:
            found.producers[producer_id] = (
                batch.producer_epoch,
                batch.last_sequence,
                coordinator_epoch,
            )
            if batch.is_transactional:
                found.open.setdefault(producer_id, batch.base_offset)
            continue
        (record,) = batch.records()
        assert record.key is not None
        assert record.value is not None
        epoch, sequence, _ = found.producers.get(producer_id, (-1, -1, -1))
        found.producers[producer_id] = (
            batch.producer_epoch,
            sequence if epoch == batch.producer_epoch else -1,
            int.from_bytes(record.value[2:6], "big"),
        )
        first = found.open.pop(producer_id, None)
        if first is None:
            continue
        marker = batch.base_offset
        found.ended.append((first, marker))
        if record.key[3] == 0:
            stable = min(found.open.values(), default=marker + 1)
            found.aborted.append((producer_id, first, marker, stable))
    return found
