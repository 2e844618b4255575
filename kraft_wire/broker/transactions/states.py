"""The state machine of a transactional id: states, events, and what each transition does.

`TRANSITIONS` holds every transition; a missing key is a programming error. A transition also has
the changes of producer id and epoch, under the rules of `transaction.version` 0 and 1 and under
those of 2 (KIP-890). `END_ANSWERS` has the EndTxn requests that are retries. KIP-98 describes the
states, KIP-360 how a producer raises its own epoch. `transition.py` computes the values.
"""

from enum import Enum
from typing import Final, NamedTuple

from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "CAN_EXPIRE",
    "LEGACY_END_ANSWERS",
    "PREPARED",
    "TRANSITIONS",
    "V2_RETRIES",
    "EpochRule",
    "Partitions",
    "TransactionEvent",
    "TransactionState",
    "Transition",
]


class TransactionState(Enum):
    """A state, by the name that ListTransactions and DescribeTransactions show."""

    EMPTY = "Empty"
    """A producer has an epoch and has begun nothing."""
    ONGOING = "Ongoing"
    """Partitions belong to the transaction."""
    PREPARE_COMMIT = "PrepareCommit"
    """The commit is decided; markers are being written."""
    PREPARE_ABORT = "PrepareAbort"
    """The abort is decided; markers are being written."""
    COMPLETE_COMMIT = "CompleteCommit"
    """All commit markers are written."""
    COMPLETE_ABORT = "CompleteAbort"
    """All abort markers are written."""
    DEAD = "Dead"
    """The id is being removed; never logged."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """Kafka's pending state while a fence is decided; never logged, and not used here."""

    @property
    def log_id(self) -> int:
        """The number in the transaction log."""
        return _LOG_IDS[self]


class TransactionEvent(Enum):
    """The events that change a transactional id's state."""

    INITIALIZED = "InitProducerId without an open transaction"
    FENCED = "InitProducerId or the timeout, with an open transaction"
    PARTITIONS_ADDED = "partitions are added to the transaction"
    COMMITTED = "EndTxn with commit"
    ABORTED = "EndTxn with abort"
    MARKERS_WRITTEN = "every partition has its marker"


class EpochRule(Enum):
    """The change of producer id and epoch by a transition."""

    SAME = "both stay"
    RAISE = "epoch + 1; from the last epoch on, the next producer id is reserved"
    RAISE_LEGACY = "epoch + 1, and a producer that retries with its old epoch is fenced"
    RENEW = "epoch + 1, or a new producer id with epoch 0 once the epochs are exhausted"
    TAKE_NEXT = "the reserved producer id with epoch 0, if there is one; else both stay"


class Partitions(Enum):
    """The change of the transaction's partitions by a transition."""

    NONE = "no transaction is open"
    ADD = "the new ones are added"
    KEEP = "those of the transaction stay"


class Transition(NamedTuple):
    """One row of the table."""

    to: TransactionState
    legacy_epoch: EpochRule | None
    """Under `transaction.version` 0 and 1; None: refused before."""
    epoch: EpochRule
    """Under `transaction.version` 2."""
    partitions: Partitions


_S = TransactionState
_E = TransactionEvent
_R = EpochRule

_LOG_IDS: Final = {state: number for number, state in enumerate(_S)}

PREPARED: Final = (_S.PREPARE_COMMIT, _S.PREPARE_ABORT)
"""Markers are being written."""

CAN_EXPIRE: Final = (_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT)
"""No open transaction: an id in these states for `transactional.id.expiration.ms` is removed."""

_INITIALIZED: Final = Transition(_S.EMPTY, _R.RENEW, _R.RENEW, Partitions.NONE)
_BEGUN: Final = Transition(_S.ONGOING, _R.SAME, _R.SAME, Partitions.ADD)
_ABORT_OF_NOTHING: Final = Transition(_S.PREPARE_ABORT, None, _R.RAISE, Partitions.NONE)

TRANSITIONS: Final[dict[TransactionState, dict[TransactionEvent, Transition]]] = {
    _S.EMPTY: {
        _E.INITIALIZED: _INITIALIZED,
        _E.PARTITIONS_ADDED: _BEGUN,
        _E.ABORTED: _ABORT_OF_NOTHING,
    },
    _S.ONGOING: {
        _E.FENCED: Transition(_S.PREPARE_ABORT, _R.RAISE_LEGACY, _R.RAISE, Partitions.KEEP),
        _E.PARTITIONS_ADDED: Transition(_S.ONGOING, _R.SAME, _R.SAME, Partitions.ADD),
        _E.COMMITTED: Transition(_S.PREPARE_COMMIT, _R.SAME, _R.RAISE, Partitions.KEEP),
        _E.ABORTED: Transition(_S.PREPARE_ABORT, _R.SAME, _R.RAISE, Partitions.KEEP),
    },
    _S.PREPARE_COMMIT: {
        _E.MARKERS_WRITTEN: Transition(_S.COMPLETE_COMMIT, _R.SAME, _R.TAKE_NEXT, Partitions.NONE),
    },
    _S.PREPARE_ABORT: {
        _E.MARKERS_WRITTEN: Transition(_S.COMPLETE_ABORT, _R.SAME, _R.TAKE_NEXT, Partitions.NONE),
    },
    _S.COMPLETE_COMMIT: {
        _E.INITIALIZED: _INITIALIZED,
        _E.PARTITIONS_ADDED: _BEGUN,
        _E.ABORTED: _ABORT_OF_NOTHING,
    },
    _S.COMPLETE_ABORT: {
        _E.INITIALIZED: _INITIALIZED,
        _E.PARTITIONS_ADDED: _BEGUN,
        _E.ABORTED: _ABORT_OF_NOTHING,
    },
    _S.DEAD: {},
    _S.PREPARE_EPOCH_FENCE: {},
}

LEGACY_END_ANSWERS: Final[dict[tuple[TransactionState, TransactionEvent], ErrorCode]] = {
    (_S.PREPARE_COMMIT, _E.COMMITTED): ErrorCode.CONCURRENT_TRANSACTIONS,
    (_S.PREPARE_ABORT, _E.ABORTED): ErrorCode.CONCURRENT_TRANSACTIONS,
    (_S.COMPLETE_COMMIT, _E.COMMITTED): ErrorCode.NONE,
    (_S.COMPLETE_ABORT, _E.ABORTED): ErrorCode.NONE,
}
"""The answer to an EndTxn up to version 4 when nothing is open; any other: INVALID_TXN_STATE."""

V2_RETRIES: Final = {
    (_S.COMPLETE_COMMIT, _E.COMMITTED),
    (_S.COMPLETE_ABORT, _E.ABORTED),
}
"""An EndTxn of version 5 with the epoch before the present one that is answered again."""
