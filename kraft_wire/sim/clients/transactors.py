"""Producers in transactions, of both generations of the protocol, some of them in a loop.

Up to `transaction.version` 1 a producer adds partitions itself and keeps its epoch; from 2 on the
leaders add them, and each end raises the epoch (KIP-890). A loop reads offsets of a group, writes
one record for each that it takes, and commits the offsets in the same transaction. Producers stall
beyond their timeout, abort, and vanish in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kraft_wire.model import Uuid
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.transactional_client import ABORTABLE, RETRIABLE, TransactionalClient
from kraft_wire.sim.judge.partition_truth import GroupPartition
from kraft_wire.sim.judge.transactions.client_transactions import (
    ClientTransaction,
    Value,
    value_to_bytes,
)
from kraft_wire.sim.judge.transactions.history import TransactionHistory
from kraft_wire.sim.scheduler import EPOCH_MS
from kraft_wire.sim.workload import AGED_ID
from kraft_wire.wire.generated.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kraft_wire.wire.generated.end_txn import EndTxnRequest, EndTxnResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

__all__ = ["AgedTransactor", "Transactor"]

_TIMEOUT_MS: Final = 800
_LOOKS_US: Final = 1_000_000
_AGED_TRANSACTIONS: Final = 4
_EARLIER_MS: Final = 12 * 3_600_000
"""Wall clocks jump by hours: a record is not from the future, and no producer expires at once."""
_BATCHES_MAX: Final = 4
_RECORDS_MAX: Final = 3
_COMMITS_SHARE: Final = 0.75
_STALLS_SHARE: Final = 0.06
_LONG_STALL_US: Final = 9_000_000
_VANISHES_SHARE: Final = 0.04
_ABORTS_NOTHING_SHARE: Final = 0.05
_LEGACY_SHARE: Final = 0.35


@dataclass(slots=True)
class _Batch:
    topic_id: Uuid
    partition: int
    values: list[Value]
    sequence: int


class Transactor(TransactionalClient):
    """One producer with a transactional id."""

    def __init__(
        self,
        context: ClientContext,
        history: TransactionHistory,
        number: int,
        topics: tuple[str, str],
        transactional_id: str,
        *,
        is_looping: bool,
        keys: int = 0,
    ) -> None:
        """`topics`: one that stays, and one that may be deleted and created again.

        A client that uses topic names would continue in the new topic without noticing. `keys`: how
        many different ones the records have, 0 for none.
        """
        super().__init__(context, history, number, topics[0], transactional_id)
        version = self.stage.setup.data.transaction_version
        self.is_legacy = version < 2 or self.random.random() < _LEGACY_SHARE
        self._produce_version = 11 if self.is_legacy else self.random.choice((12, 13))
        if self._produce_version == 13 and not is_looping:
            self.topic = topics[1]
        self._keys = keys
        self.group = f"loop {transactional_id}" if is_looping else ""
        self._position: int | None = None
        """The loop's position, None while it is unknown."""
        self._notes = 0
        self._values = 0
        self._transactions = 0
        self._transaction: ClientTransaction | None = None
        self._steps: list[Callable[[], None]] = []
        self._batch: _Batch | None = None
        self._added: dict[object, None] = {}
        """Partitions and groups that were added."""
        self._is_ending = False
        self._has_doubt = False
        """Whether an EndTxn of this transaction got no answer."""
        self._sequences: dict[tuple[Uuid, int], int] = {}
        self._has_begun = False
        self._has_parted = False
        """Whether it has restarted for the last time, which ends its open transaction."""

    @property
    def place(self) -> GroupPartition:
        """The partition that the loop commits offsets of."""
        return (self.group, self.topic, 0)

    @property
    def is_resting(self) -> bool:
        """Whether it begins nothing new."""
        return self.is_done

    @property
    def is_over(self) -> bool:
        """Whether nothing is in progress and nothing will be."""
        is_idle = self._transaction is None and not self.is_busy
        return self.is_resting and is_idle and (self._has_parted or not self._has_begun)

    def _go_on(self) -> None:
        if not self.is_over and self.topic_id is None and not self.is_busy:
            self._learn()  # complete the open transaction
        else:
            super()._go_on()

    def topic_is_gone(self) -> None:
        super().topic_is_gone()
        if self.topic not in self.context.truth.topic_ids and self._transaction is not None:
            self.must_abort()

    def step(self) -> None:
        if self.is_over or self.is_busy:
            return
        if self.is_resting and self._transaction is None:
            self.producer = None
        if self.producer is None or (self.wants_epoch and self._transaction is None):
            self._has_begun = True
            self.initialize()
        elif self._transaction is None:
            self._begin()
        elif self._batch is not None:
            self._send(self._batch)
        elif self._steps:
            self._steps[0]()
        else:
            self._end(self._transaction)

    def has_new_epoch(self) -> None:
        self._sequences, self._position = {}, None
        self._has_parted = self.is_resting

    def lose(self) -> None:
        self._close()
        self._position = None

    def _close(self) -> None:
        """The transaction is over for this client, with any result."""
        self._transaction, self._batch, self._steps = None, None, []
        self._added, self._is_ending, self._has_doubt = {}, False, False

    # -- a transaction ---------------------------------------------------------------------------

    def _begin(self) -> None:
        """Draw the steps of the next transaction."""
        if self.is_resting:
            return
        if self.group and self._position is None:
            self._read_position()
            return
        assert self.producer is not None, self.number
        self._transactions += 1
        self._transaction = self.transactions.begun(
            ClientTransaction(
                self.number,
                self._transactions,
                self.transactional_id,
                self.producer,
                self.is_legacy,
            )
        )
        draw = self.random.random()
        if not self.is_legacy and draw < _ABORTS_NOTHING_SHARE:
            self._transaction.asked = False
        else:
            self._steps = [
                self._next_batch for _ in range(self.random.randrange(1, _BATCHES_MAX + 1))
            ]
            if self.group:
                self._steps.append(self._commit_offsets)
        draw = self.random.random()
        at = self.random.randrange(len(self._steps) + 1)
        if draw < _STALLS_SHARE:
            self._steps.insert(at, self._stall)
        elif draw < _STALLS_SHARE + _VANISHES_SHARE:
            self._steps.insert(at, self._vanish)
        self._values = 0
        self.step()

    def _stall(self) -> None:
        """Do nothing for longer than the transaction may last."""
        self._steps.pop(0)
        self.stage.marks["transactor stalled"] += 1
        timeout_us = 1_000 * self.stage.setup.data.transaction_timeout_ms
        pause_us = timeout_us + self.random.choice((timeout_us // 2, _LONG_STALL_US))
        self.stage.scheduler.after(pause_us, self._go_on)

    def _vanish(self) -> None:
        self.stage.marks["transactor vanished"] += 1
        self.restart()

    def must_abort(self) -> None:
        """Do nothing more in the transaction but end it."""
        transaction = self._transaction
        if transaction is None or self._is_ending:
            return
        if self._batch is not None:
            transaction.has_unknown = True
        self._batch, self._steps = None, []
        transaction.asked = False
        if self.is_legacy:
            self.wants_epoch = True  # sequences are not certain, nor whether anything was added

    def _end(self, transaction: ClientTransaction) -> None:
        """Ask for the verdict."""
        assert self.producer is not None, self.number
        if transaction.asked is None:
            transaction.asked = self.random.random() < _COMMITS_SHARE and bool(
                transaction.acked or transaction.offsets
            )
        if self.is_legacy and not transaction.asked and self.wants_epoch:
            self._close()  # the raised epoch aborts the open transaction
            self._position = None
            self.step()
            return
        self._is_ending = True
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            committed=transaction.asked,
        )
        self.ask_coordinator(
            request,
            4 if self.is_legacy else 5,
            lambda node_id, response: self._ended(node_id, transaction, response),
        )

    def unanswered_request(self, request: Message) -> None:
        if isinstance(request, EndTxnRequest):
            self._has_doubt = True

    def _ended(self, node_id: int, transaction: ClientTransaction, response: Message) -> None:
        assert isinstance(response, EndTxnResponse), response
        if self.refused(node_id, response.error_code, "EndTxn"):
            return
        if not self.is_legacy:
            self.producer = (response.producer_id, response.producer_epoch)
            self.identity_told(node_id)
            self._sequences = {}
        transaction.told = transaction.asked
        self.transactions.ended(node_id, transaction)
        if transaction.told and self.group:
            self._position = transaction.offsets[-1][1]
        else:
            self._position = None
        # A late EndTxn of the older protocol ends the next transaction (KAFKA-17754).
        self.wants_epoch |= self.is_legacy and self._has_doubt
        self._close()
        self.later(self.think_us)

    # -- records ---------------------------------------------------------------------------------

    def _next_batch(self) -> None:
        """Draw a batch, and have its partition added first if the client must do so."""
        assert self.topic_id is not None, self.topic
        if not self.leaders:
            self.again()
            return
        number = self.random.choice(list(self.leaders))
        values = [self._value() for _ in range(self._records_count())]
        sequence = self._sequences.get((self.topic_id, number), 0)
        self._steps.pop(0)
        self._batch = _Batch(self.topic_id, number, values, sequence)
        self._send(self._batch)

    def _records_count(self) -> int:
        return 1 if self.group else self.random.randrange(1, _RECORDS_MAX + 1)

    def _value(self) -> Value:
        source = None
        if self.group:
            assert self._position is not None, self.number
            source = self._position + self._values
        self._values += 1
        return Value(self.number, self._transactions, self._values, source)

    def _send(self, batch: _Batch) -> None:
        transaction = self._transaction
        assert transaction is not None, self.number
        if self.topic_id != batch.topic_id:
            self.must_abort()  # the topic is another one now
            self.step()
            return
        leader = self.leaders.get(batch.partition)
        if leader is None:
            self.again()
            return
        if self.is_legacy and batch.partition not in self._added:
            self._add_partition(batch.partition)
            return
        truth = self.context.truth.partitions[batch.topic_id, batch.partition]
        transaction.sent.update(dict.fromkeys([each.number for each in batch.values], truth))
        data = PartitionProduceData(index=batch.partition, records=self._records(batch))
        topic = TopicProduceData(name=self.topic, topic_id=batch.topic_id, partition_data=[data])
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=_TIMEOUT_MS,
            topic_data=[topic],
        )
        node_id = leader[0]
        epoch = self.context.judge.epoch_of(node_id, truth)
        self.ask(
            node_id,
            request,
            lambda response: self._sent(node_id, epoch, batch, response),
            version=self._produce_version,
        )

    def _records(self, batch: _Batch) -> bytearray:
        assert self.producer is not None, self.number
        now_ms = EPOCH_MS - _EARLIER_MS + self.stage.now_us // 1_000
        return build_batch(
            [
                Record(self._key(each), value_to_bytes(each), timestamp=now_ms)
                for each in batch.values
            ],
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=batch.sequence,
            is_transactional=True,
        )

    def _key(self, value: Value) -> bytes | None:
        return b"k%d" % (value.number % self._keys) if self._keys else None

    def _sent(self, node_id: int, epoch: int, batch: _Batch, response: Message | None) -> None:
        """Take an answer; `epoch`: the leader epoch that the node had when it was asked."""
        counts = self.context.history.counts
        if not isinstance(response, ProduceResponse):
            counts["transactional produce no answer"] += 1
            self.again()
            return
        answer = response.responses[0].partition_responses[0]
        error = ErrorCode(answer.error_code)
        counts[f"transactional produce {error.name}"] += 1
        if error is ErrorCode.NONE:
            self._acknowledged(node_id, epoch, batch, answer.base_offset)
        elif error in ABORTABLE:
            self.must_abort()
            self.later(self.think_us)
        elif error in RETRIABLE:
            self.again()
        else:
            self.transactions.unexpected(node_id, "Produce", error)

    def _acknowledged(self, node_id: int, epoch: int, batch: _Batch, offset: int) -> None:
        transaction = self._transaction
        assert transaction is not None, self.number
        self._batch = None
        self._sequences[batch.topic_id, batch.partition] = batch.sequence + len(batch.values)
        for at, value in enumerate(batch.values):
            transaction.acked[value.number] = offset + at
        truth = self.context.truth.partitions[batch.topic_id, batch.partition]
        values = [value_to_bytes(each) for each in batch.values]
        history = self.context.history
        history.acknowledged(self.number, node_id, truth, offset, values, epoch)
        self.later(self.think_us)

    def _add_partition(self, number: int) -> None:
        assert self.producer is not None, self.number
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer[0],
            v3_and_below_producer_epoch=self.producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=[number])],
        )

        def added(node_id: int, response: Message) -> None:
            assert isinstance(response, AddPartitionsToTxnResponse), response
            code = response.results_by_topic_v3_and_below[0].results_by_partition[0]
            if not self.refused(node_id, code.partition_error_code, "AddPartitionsToTxn"):
                self._added[number] = None
                self.step()

        self.ask_coordinator(request, 3, added)

    # -- offsets ---------------------------------------------------------------------------------

    def _read_position(self) -> None:
        """Ask for the loop's position, which is withheld while a transaction has offsets of it."""
        assert self.topic_id is not None, self.topic
        topics = [OffsetFetchRequestTopics(topic_id=self.topic_id, partition_indexes=[0])]
        group = OffsetFetchRequestGroup(group_id=self.group, topics=topics)
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        owed = self.transactions.offsets_owed(self.place)
        leader = self.transactions.offsets_leader()

        def read(node_id: int, response: Message) -> None:
            assert isinstance(response, OffsetFetchResponse), response
            answer = response.groups[0]
            if self.refused(node_id, answer.error_code, "OffsetFetch"):
                return
            if node_id != leader:
                self.again()  # a replaced coordinator returns its old state
                return
            place = answer.topics[0].partitions[0]
            if self.refused(node_id, place.error_code, "OffsetFetch"):
                return
            shown = (place.committed_offset, place.metadata or "")
            self.transactions.stable_offset_shown(node_id, self.place, shown, owed)
            self._position = max(place.committed_offset, 0)
            self.step()

        self.ask_group_coordinator(self.group, request, OffsetFetchRequest.MAX_VERSION, read)

    def _commit_offsets(self) -> None:
        """Commit the offsets of the transaction's input records."""
        assert self.producer is not None, self.number
        if self.is_legacy and self.group not in self._added:
            self._add_offsets()
            return
        transaction = self._transaction
        assert self._position is not None, self.number
        assert transaction is not None, self.number
        self._notes += 1
        offset, note = self._position + self._values, f"{self.number}-{self._notes}"
        place = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=note
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.group,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=[place])],
        )

        def committed(node_id: int, response: Message) -> None:
            assert isinstance(response, TxnOffsetCommitResponse), response
            code = response.topics[0].partitions[0].error_code
            if self.refused(node_id, code, "TxnOffsetCommit"):
                return
            self._steps.pop(0)
            transaction.offsets.append((self.place, offset, note))
            self.later(self.think_us)

        self.ask_group_coordinator(self.group, request, 4 if self.is_legacy else 5, committed)

    def _add_offsets(self) -> None:
        assert self.producer is not None, self.number
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            group_id=self.group,
        )

        def added(node_id: int, response: Message) -> None:
            assert isinstance(response, AddOffsetsToTxnResponse), response
            if not self.refused(node_id, response.error_code, "AddOffsetsToTxn"):
                self._added[self.group] = None
                self.step()

        self.ask_coordinator(request, 4, added)


class AgedTransactor(Transactor):
    """Uses an id whose producer's epochs are almost used up; idle without such an id."""

    def __init__(
        self, context: ClientContext, history: TransactionHistory, number: int, topic: str
    ) -> None:
        super().__init__(context, history, number, (topic, topic), AGED_ID, is_looping=True)

    @property
    def is_resting(self) -> bool:
        """Whether it has used them up, or never can."""
        is_known = self._has_begun or self.transactions.is_known(AGED_ID)
        return self.is_done and not (is_known and self._transactions < _AGED_TRANSACTIONS)

    def step(self) -> None:
        if self._has_begun or self.transactions.is_known(AGED_ID):
            super().step()
        elif self.context.settled_us is None:
            self.later(_LOOKS_US)
