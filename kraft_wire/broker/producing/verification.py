"""Verification of transactional producers on one partition (KIP-890), as 4.3.1 has it.

A leader appends the first batch of a transaction only after the transaction coordinator has
confirmed, or added, the partition. While that is asked, the producer has a `Verification`, which
the append must present. A batch or a marker that is appended in between removes it, so the answer
to an earlier question cannot let a batch of a later transaction in (an ABA race):
1. A batch of transaction 1 is verified; its request is delayed.
2. The transaction ends by time-out; the marker is appended.
3. The delayed batch must be refused: nothing would end the transaction that it would open.

The table is in memory only: a new leader asks again. Not here: the requests to coordinators
(`transaction_verifier`).
"""

from enum import Enum
from typing import Final, Protocol

from kraft_wire.broker.ports import PartitionLog, ProducerStateView, ProducerVerdict
from kraft_wire.broker.producing.append_validation import AppendOrigin
from kraft_wire.broker.producing.transaction_marker import TransactionMarker
from kraft_wire.frozen import frozen, slotted
from kraft_wire.model import Offset
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.record_batch import TRANSACTIONAL_BIT, RecordBatch

__all__ = [
    "NOT_REQUIRED",
    "FirstBatch",
    "Verification",
    "Verifications",
    "begin_verification",
    "check_transactional",
]

_OFFSET_COMMIT_SEQUENCE: Final = -1
_EPOCH_BUMPED_FROM: Final = 2
"""The first transaction version whose markers have an epoch above the transaction's."""
_EPOCH_MAX: Final = (1 << 15) - 1


class _Verdict(Enum):
    """Verdicts besides those of the producer's sequence; named as error codes."""

    OK = "ok"
    INVALID_PRODUCER_EPOCH = "fenced"
    INVALID_TXN_STATE = "not in an open transaction, and not verified"
    OUT_OF_ORDER_SEQUENCE_NUMBER = "out of order"
    TRANSACTION_COORDINATOR_FENCED = "of an earlier coordinator"
    UNKNOWN_SERVER_ERROR = "of a transaction version that does not exist"


@frozen
class _Check:
    """A `ProducerVerdict` without a first copy."""

    verdict: _Verdict
    base_offset: Offset = Offset(-1)
    timestamp: int = -1


_OK: Final = _Check(_Verdict.OK)
_FENCED: Final = _Check(_Verdict.INVALID_PRODUCER_EPOCH)
_NOT_VERIFIED: Final = _Check(_Verdict.INVALID_TXN_STATE)
_OUT_OF_ORDER: Final = _Check(_Verdict.OUT_OF_ORDER_SEQUENCE_NUMBER)
_NO_VERSION: Final = _Check(_Verdict.UNKNOWN_SERVER_ERROR)
_COORDINATOR_FENCED: Final = _Check(_Verdict.TRANSACTION_COORDINATOR_FENCED)


@frozen
class FirstBatch:
    """The identity of a batch that may begin a transaction on a partition."""

    producer_id: int
    producer_epoch: int
    base_sequence: int = _OFFSET_COMMIT_SEQUENCE
    """-1 for offset commits, which have no sequences."""
    is_version_2: bool = False
    """Whether the request implicitly adds the partition (Produce 12+, TxnOffsetCommit 5+)."""


@slotted(eq=False)
class Verification:
    """A verification that is in progress or was successful; compared by identity."""

    producer_epoch: int
    lowest_sequence: int
    """No batch above it is appended before the batch that has it."""
    is_version_2: bool
    created_ms: int


NOT_REQUIRED: Final = Verification(-1, -1, False, 0)
"""Presented where `transaction.partition.verification.enable` is false."""


class Verifications:
    """The verifications of one partition by producer id, oldest first."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def get(self, producer_id: int) -> Verification | None:
        """Return the verification of a producer."""
        return self._by_producer.get(producer_id)

    def begin(self, first: FirstBatch, now_ms: int, expiration_ms: int) -> Verification:
        """Return the producer's verification, new or brought up to date; drop expired ones."""
        entries = self._by_producer
        for producer_id in list(entries):
            if now_ms - entries[producer_id].created_ms < expiration_ms:
                break
            del entries[producer_id]
        entry = entries.get(first.producer_id)
        if entry is None:
            entry = entries[first.producer_id] = Verification(
                first.producer_epoch, first.base_sequence, first.is_version_2, now_ms
            )
        elif first.producer_epoch > entry.producer_epoch:
            entry.producer_epoch, entry.lowest_sequence = first.producer_epoch, first.base_sequence
        elif first.producer_epoch == entry.producer_epoch:
            entry.lowest_sequence = min(entry.lowest_sequence, first.base_sequence)
        return entry

    def batch_appended(self, producer_id: int) -> None:
        """Remove the verification of a producer whose transaction is open now."""
        self._by_producer.pop(producer_id, None)

    def marker_appended(self, producer_id: int, producer_epoch: int) -> None:
        """Remove the verification of a producer, unless it is for the next transaction.

        A producer of transaction version 2 has the marker's epoch after the transaction, and may
        have begun the next one before the marker arrives.
        """
        entry = self._by_producer.get(producer_id)
        if entry is None or (entry.is_version_2 and entry.producer_epoch == producer_epoch):
            return
        del self._by_producer[producer_id]


class VerifiedPartition(Protocol):
    """The parts that a verification uses of a `Partition`, its caller."""

    log: PartitionLog
    is_leader: bool
    offline: bool
    verifications: Verifications | None


def begin_verification(
    partition: VerifiedPartition, first: FirstBatch, now_ms: int, expiration_ms: int
) -> Verification | ErrorCode | None:
    """Return the verification that an append needs; None if the transaction is open already.

    Errors in the order of their checks: KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER,
    INVALID_PRODUCER_EPOCH.
    """
    if partition.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    state = partition.log.producer_states.get(first.producer_id)
    if state is not None and first.producer_epoch < state.producer_epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if _is_open(state, first.producer_epoch):
        return None
    if partition.verifications is None:
        partition.verifications = Verifications()
    return partition.verifications.begin(first, now_ms, expiration_ms)


def check_transactional(
    partition: VerifiedPartition,
    batch: RecordBatch,
    origin: AppendOrigin,
    transaction: Verification | TransactionMarker | None,
) -> ProducerVerdict:
    """Judge a transactional batch, a marker, or a plain batch beside verifications.

    Effects: an accepted batch ends the producer's verification. If the append then fails, the
    producer only needs another verification.
    """
    if isinstance(transaction, TransactionMarker):
        return _check_marker(partition, transaction)
    verifications = partition.verifications
    state = partition.log.producer_states.get(batch.producer_id)
    entry = None if verifications is None else verifications.get(batch.producer_id)
    is_client = origin is AppendOrigin.CLIENT
    check = partition.log.producer_states.check(batch) if is_client else _OK
    if check.verdict.name == "DUPLICATE":
        return check
    if state is not None and batch.producer_epoch < state.producer_epoch:
        return _FENCED
    is_verified = transaction is NOT_REQUIRED or (transaction is not None and transaction is entry)
    is_plain = not batch.attributes & TRANSACTIONAL_BIT
    if not is_plain and not is_verified and not _is_open(state, batch.producer_epoch):
        return _NOT_VERIFIED
    if is_client and entry is not None and _overtakes(batch, state, entry):
        return _OUT_OF_ORDER
    if not is_plain and verifications is not None and check.verdict.name == "OK":
        verifications.batch_appended(batch.producer_id)
    return check


def _overtakes(batch: RecordBatch, state: ProducerStateView | None, entry: Verification) -> bool:
    """Whether a batch would overtake an earlier one whose verification failed."""
    if batch.base_sequence > entry.lowest_sequence:
        return True
    has_batches = state is not None and state.last_sequence >= 0
    return entry.is_version_2 and batch.base_sequence != 0 and not has_batches


def _check_marker(partition: VerifiedPartition, marker: TransactionMarker) -> ProducerVerdict:
    """Judge a marker: its epoch by its transaction version, then its coordinator's epoch.

    Markers of version 2 have an epoch above the transaction's. A retried one has the epoch of the
    first copy, which left no transaction open. The largest epoch could not be raised (KAFKA-20090).
    """
    state = partition.log.producer_states.get(marker.producer_id)
    if state is not None:
        is_fenced = marker.producer_epoch < state.producer_epoch
        if marker.producer_epoch == state.producer_epoch < _EPOCH_MAX:
            is_open = state.transaction_first_offset is not None
            is_fenced = marker.transaction_version >= _EPOCH_BUMPED_FROM and is_open
        if is_fenced:
            return _FENCED
    if marker.transaction_version < 0:
        return _NO_VERSION
    if state is not None and marker.coordinator_epoch < state.coordinator_epoch:
        return _COORDINATOR_FENCED
    if partition.verifications is not None:
        partition.verifications.marker_appended(marker.producer_id, marker.producer_epoch)
    return _OK


def _is_open(state: ProducerStateView | None, producer_epoch: int) -> bool:
    """Whether a transaction of this epoch is open on the partition."""
    return (
        state is not None
        and state.producer_epoch == producer_epoch
        and state.transaction_first_offset is not None
    )
