"""The judge's memory: committed batches, leaders, votes and settings.

Nothing is ever taken back. The first node that rightly calls an offset committed fixes its batch
permanently. Its records are replayed here into a small state of settings and producer ids that
shares no code with `metadata.replay`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from kraft_wire.metadata.records import decode_message
from kraft_wire.model import Uuid
from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message

__all__ = ["Ledger", "Register", "RegisterChange", "changes_of", "register_of_config"]

Register = tuple[str, ...]
"""A register that can be written: ("config", type, name, key) or ("quota", entity, key)."""

PRODUCER_IDS: Register = ("producer-ids",)


@dataclass(slots=True)
class Transaction:
    """A metadata transaction (KIP-868)."""

    begin_offset: int
    end_offset: int | None = None
    """The offset after the record that ends or aborts it; None while it is open."""
    is_aborted: bool = False
    records: list[Message] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RegisterChange:
    """A committed change of one register."""

    offset: int
    register: Register
    value: str | None


def register_of_config(resource_type: int, resource_name: str, key: str) -> Register:
    """Return the register that a setting is."""
    return ("config", str(resource_type), resource_name, key)


def register_of_quota(entity: dict[str, str | None], key: str) -> Register:
    """Return the register that a client quota is."""
    parts = [f"{kind}={name}" for kind, name in sorted(entity.items())]
    return ("quota", ",".join(parts), key)


def change_of(message: Message) -> tuple[Register, str | None] | None:
    """Return the register that a metadata record sets, None if the judge does not follow it."""
    if isinstance(message, ConfigRecord):
        register = register_of_config(message.resource_type, message.resource_name, message.name)
        return register, message.value
    if isinstance(message, ClientQuotaRecord):
        entity = {each.entity_type: each.entity_name for each in message.entity}
        value = None if message.remove else f"{message.value:g}"
        return register_of_quota(entity, message.key), value
    if isinstance(message, ProducerIdsRecord):
        return PRODUCER_IDS, str(message.next_producer_id)
    return None


def changes_of(batch: SeenBatch) -> list[RegisterChange]:
    """Return the changes of registers in a batch of the log."""
    found = []
    for at, value in enumerate(batch.values()):
        change = change_of(decode_message(value))
        if change is not None:
            found.append(RegisterChange(batch.base_offset + at, *change))
    return found


@dataclass(slots=True)
class Ledger:
    """The facts that never change."""

    batches: list[SeenBatch] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    """For each batch the epoch whose leader committed it."""
    entries: list[RegisterChange] = field(default_factory=list)
    """Committed changes of registers, in the order of the log."""
    offsets: dict[tuple[Register, str | None], list[int]] = field(default_factory=dict)
    """Where a value was written."""
    placed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(epoch, base offset) -> (CRC, epoch before): the batch of every log there."""
    leaders: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """Epoch -> its leader: node id and directory id."""
    named: dict[int, int] = field(default_factory=dict)
    """Epoch -> the leader that a replica named first."""
    votes: dict[tuple[int, int, bytes], tuple[int, str]] = field(default_factory=dict)
    """(epoch, voter, its directory) -> the candidate that got the vote."""
    granted: dict[tuple[int, int, bytes], tuple[int, str]] = field(default_factory=dict)
    """(epoch, voter, its directory) -> the candidate that an answer granted the vote."""
    images: dict[int, str] = field(default_factory=dict)
    """Committed offset -> digest of the image there."""
    transactions: list[Transaction] = field(default_factory=list)
    """Metadata transactions (KIP-868), in the order of the log."""
    _topics: dict[Uuid, str] = field(default_factory=dict)
    _replayed: dict[Register, str] = field(default_factory=dict)
    """The result of a replay up to the last requested offset."""
    _replayed_count: int = 0
    _replayed_to: int = 0

    @property
    def committed_end(self) -> int:
        """The end of the committed records."""
        return self.ends[-1] if self.ends else 0

    def batch_before(self, offset: int) -> SeenBatch | None:
        """Return the committed batch with the record before an offset."""
        at = bisect_right(self.ends, offset - 1)
        return self.batches[at] if at < len(self.batches) else None

    def end_before(self, epoch: int) -> int:
        """Return the end of the records that leaders of earlier epochs have committed."""
        at = bisect_left(self.epochs, epoch)
        return self.ends[at - 1] if at else 0

    def commit(self, batch: SeenBatch, epoch: int) -> None:
        """Take a batch as committed by the leader of an epoch."""
        assert batch.base_offset == self.committed_end, (batch.base_offset, self.committed_end)
        self.batches.append(batch)
        self.ends.append(batch.end_offset)
        self.epochs.append(max(epoch, self.epochs[-1] if self.epochs else 0))
        for at, value in enumerate(batch.values()):
            self._take(decode_message(value), batch.base_offset + at)

    def _take(self, record: Message, offset: int) -> None:
        """Replay a record; records of a transaction count at its end, or not at all."""
        current = self.transactions[-1] if self.transactions else None
        if current is not None and current.end_offset is not None:
            current = None
        if isinstance(record, BeginTransactionRecord):
            assert current is None, offset
            self.transactions.append(Transaction(offset))
        elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            assert current is not None, offset
            current.end_offset = offset + 1
            current.is_aborted = isinstance(record, AbortTransactionRecord)
            if isinstance(record, EndTransactionRecord):
                for each in current.records:
                    self._replay(each, offset)
        elif current is not None:
            current.records.append(record)
        else:
            self._replay(record, offset)

    def is_inside_transaction(self, end_offset: int) -> bool:
        """Return whether an offset of the committed log is inside a transaction."""
        for each in reversed(self.transactions):
            if each.begin_offset < end_offset:
                return each.end_offset is None or end_offset < each.end_offset
        return False

    def _replay(self, record: Message, offset: int) -> None:
        change = change_of(record)
        if change is not None:
            self._change(RegisterChange(offset, *change))
        elif isinstance(record, TopicRecord):
            self._topics[record.topic_id] = record.name
        elif isinstance(record, RemoveTopicRecord):
            self._forget_topic(self._topics.pop(record.topic_id), offset)

    def _change(self, entry: RegisterChange) -> None:
        self.entries.append(entry)
        self.offsets.setdefault((entry.register, entry.value), []).append(entry.offset)

    def _forget_topic(self, name: str, offset: int) -> None:
        """A topic that is deleted takes its settings with it."""
        own = {e.register: None for e in self.entries if e.register[:3] == ("config", "2", name)}
        for register in own:
            self._change(RegisterChange(offset, register, None))

    def registers_at(self, end_offset: int) -> dict[Register, str]:
        """Return the result of a replay of the committed log up to an offset."""
        if end_offset < self._replayed_to:
            self._replayed, self._replayed_count = {}, 0
        self._replayed_to = end_offset
        values = self._replayed
        for at in range(self._replayed_count, len(self.entries)):
            entry = self.entries[at]
            if entry.offset >= end_offset:
                break
            self._replayed_count = at + 1
            if entry.value is None:
                values.pop(entry.register, None)
            else:
                values[entry.register] = entry.value
        return dict(values)
