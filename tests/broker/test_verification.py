"""Verifications of one partition, rule by rule, over producer states that the test gives."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.producing.append_validation import AppendOrigin
from kraft_wire.broker.producing.transaction_marker import TransactionMarker
from kraft_wire.broker.producing.verification import (
    NOT_REQUIRED,
    FirstBatch,
    Verification,
    Verifications,
    begin_verification,
    check_transactional,
)
from kraft_wire.model import LeaderEpoch
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches
from tests.broker.replication.leading import batch
from tests.storage.making import TOPIC_ID, open_at

PRODUCER, OTHER = 7, 8
EXPIRATION_MS = 100
EPOCH_MAX = 32_767


def of(epoch: int, sequence: int, *, producer: int = PRODUCER, newer: bool = False) -> FirstBatch:
    return FirstBatch(producer, epoch, sequence, newer)


def fields(entry: Verification) -> tuple[int, int, bool, int]:
    return entry.producer_epoch, entry.lowest_sequence, entry.is_version_2, entry.created_ms


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (of(3, 4, newer=True), (3, 4, False, 5)),
        (of(3, 9), (3, 5, False, 5)),
        (of(3, 5), (3, 5, False, 5)),
        (of(4, 9, newer=True), (4, 9, False, 5)),
        (of(4, 2), (4, 2, False, 5)),
        (of(2, 1), (3, 5, False, 5)),
    ],
)
def test_one_verification_of_a_producer_is_brought_up_to_date(
    second: FirstBatch, expected: tuple[int, int, bool, int]
) -> None:
    """`VerificationStateEntry` of 4.3.1: the lowest sequence of the newest epoch counts."""
    verifications = Verifications()
    first = verifications.begin(of(3, 5), 5, EXPIRATION_MS)
    assert fields(first) == (3, 5, False, 5)
    assert verifications.begin(second, 6, EXPIRATION_MS) is first
    assert fields(first) == expected
    other = verifications.begin(of(3, 0, producer=OTHER, newer=True), 7, EXPIRATION_MS)
    assert fields(other) == (3, 0, True, 7)
    assert (len(verifications), verifications.get(PRODUCER)) == (2, first)


def test_verifications_expire_oldest_first() -> None:
    verifications = Verifications()
    entries = [
        verifications.begin(of(0, 0, producer=number), 10 * number, EXPIRATION_MS)
        for number in range(3)
    ]
    verifications.begin(of(0, 0, producer=9), EXPIRATION_MS - 1, EXPIRATION_MS)
    assert [verifications.get(number) for number in range(3)] == entries
    verifications.begin(of(0, 0, producer=9), EXPIRATION_MS + 10, EXPIRATION_MS)
    assert [verifications.get(number) for number in range(3)] == [None, None, entries[2]]
    again = verifications.begin(of(0, 0, producer=0), EXPIRATION_MS + 10, EXPIRATION_MS)
    assert fields(again) == (0, 0, False, EXPIRATION_MS + 10)


@pytest.mark.parametrize(
    ("newer", "epoch", "is_kept"), [(False, 3, False), (True, 3, True), (True, 4, False)]
)
def test_marker_ends_all_but_the_verification_of_the_next_transaction(
    newer: bool, epoch: int, is_kept: bool
) -> None:
    verifications = Verifications()
    verifications.begin(of(3, 0, newer=newer), 0, EXPIRATION_MS)
    verifications.marker_appended(OTHER, 3)
    assert len(verifications) == 1
    verifications.marker_appended(PRODUCER, epoch)
    assert (len(verifications) == 1) is is_kept
    verifications.batch_appended(PRODUCER)
    verifications.batch_appended(PRODUCER)
    assert len(verifications) == 0


class Judged:
    """A partition of which a producer has written, through the real log."""

    def __init__(self) -> None:
        log = open_at(SimFileSystem())
        self.partition = Partition("t", TOPIC_ID, 0, log, LeaderEpoch(0))

    def write(self, epoch: int, sequence: int, *, is_open: bool) -> None:
        """Append a batch, as a part of a transaction or not."""
        self.append(bytes(self.batch(epoch, sequence, is_open=is_open).view))

    def end(self, epoch: int, coordinator_epoch: int = 0) -> None:
        self.append(self.marker(epoch, 0, coordinator_epoch).batch(1))

    def append(self, data: bytes | bytearray) -> None:
        (parsed,) = parse_batches(bytearray(data))
        parsed.assign(self.partition.log.log_end_offset, LeaderEpoch(0))
        self.partition.log.append(parsed.view, [parsed], 0, 0)

    def batch(self, epoch: int, sequence: int, *, is_open: bool = True) -> RecordBatch:
        (parsed,) = parse_batches(
            batch(
                producer_id=PRODUCER,
                producer_epoch=epoch,
                base_sequence=sequence,
                is_transactional=is_open,
            )
        )
        return parsed

    def marker(self, epoch: int, version: int, coordinator_epoch: int = 0) -> TransactionMarker:
        return TransactionMarker(PRODUCER, epoch, True, coordinator_epoch, version)

    def begin(self, epoch: int, sequence: int = 0, *, newer: bool = False) -> Any:
        first = of(epoch, sequence, newer=newer)
        return begin_verification(self.partition, first, 0, EXPIRATION_MS)

    def check(
        self,
        epoch: int,
        sequence: int,
        transaction: Verification | None = None,
        *,
        is_open: bool = True,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> str:
        data = self.batch(epoch, sequence, is_open=is_open)
        return check_transactional(self.partition, data, origin, transaction).verdict.name

    def mark(self, epoch: int, version: int, coordinator_epoch: int = 0) -> str:
        marker = self.marker(epoch, version, coordinator_epoch)
        data = RecordBatch(memoryview(marker.batch(1)))
        verdict = check_transactional(self.partition, data, AppendOrigin.COORDINATOR, marker)
        return verdict.verdict.name


def test_errors_of_beginning_in_order() -> None:
    judged = Judged()
    judged.write(3, 0, is_open=True)
    assert judged.begin(3) is None, "its transaction is open"
    assert judged.begin(2) is E.INVALID_PRODUCER_EPOCH
    assert isinstance(judged.begin(4), Verification)
    judged.partition.is_leader = False
    assert judged.begin(2) is E.NOT_LEADER_OR_FOLLOWER
    judged.partition.offline = True
    assert judged.begin(2) is E.KAFKA_STORAGE_ERROR


def test_first_batch_needs_its_own_verification_and_ends_it() -> None:
    judged = Judged()
    assert judged.check(3, 0) == "INVALID_TXN_STATE"
    begun = judged.begin(3)
    foreign = Verification(3, 0, False, 0)
    assert [judged.check(3, 0, each) for each in (None, foreign)] == ["INVALID_TXN_STATE"] * 2
    assert judged.check(3, 0, begun) == "OK"
    assert judged.check(3, 0, begun) == "INVALID_TXN_STATE", "it was for one batch"
    assert judged.check(3, 0, NOT_REQUIRED) == "OK"


def test_batches_of_an_open_transaction_need_none() -> None:
    judged = Judged()
    judged.write(3, 0, is_open=True)
    assert judged.check(3, 1) == "OK"
    assert judged.check(3, 0) == "DUPLICATE"
    assert judged.check(2, 0) == "INVALID_PRODUCER_EPOCH"
    assert judged.check(4, 0) == "INVALID_TXN_STATE", "a newer epoch has no transaction yet"
    assert judged.check(3, 5) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    judged.end(3)
    assert judged.check(3, 1) == "INVALID_TXN_STATE"


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    ("sequence", "newer", "verdict"),
    [(5, False, "OK"), (6, False, "OUT"), (4, False, "OK"), (4, True, "OUT"), (0, True, "OK")],
)
def test_no_batch_overtakes_one_that_is_being_verified(
    is_open: bool, sequence: int, newer: bool, verdict: str
) -> None:
    """Of an unknown producer; one of version 2 begins at sequence 0."""
    judged = Judged()
    begun = judged.begin(3, 5, newer=newer)
    found = judged.check(3, sequence, begun, is_open=is_open)
    assert found == {"OK": "OK", "OUT": "OUT_OF_ORDER_SEQUENCE_NUMBER"}[verdict]
    entry = judged.partition.verifications
    assert entry is not None
    assert (entry.get(PRODUCER) is None) == (is_open and verdict == "OK")


def test_known_producer_of_version_2_goes_on_at_any_sequence() -> None:
    judged = Judged()
    judged.write(3, 0, is_open=True)
    judged.end(3)
    begun = judged.begin(3, 1, newer=True)
    assert judged.check(3, 1, begun) == "OK"


def test_coordinator_writes_without_sequences_and_with_a_verification() -> None:
    judged = Judged()
    origin = AppendOrigin.COORDINATOR
    begun = judged.begin(3, -1)
    assert judged.check(3, -1, origin=origin) == "INVALID_TXN_STATE"
    assert judged.check(3, -1, begun, origin=origin) == "OK"
    judged.write(4, 0, is_open=False)
    assert judged.check(3, -1, NOT_REQUIRED, origin=origin) == "INVALID_PRODUCER_EPOCH"


@pytest.mark.parametrize(
    ("epoch", "version", "is_open", "verdict"),
    [
        (2, 0, True, "INVALID_PRODUCER_EPOCH"),
        (2, -1, True, "INVALID_PRODUCER_EPOCH"),
        (3, 0, True, "OK"),
        (3, 1, True, "OK"),
        (3, 2, True, "INVALID_PRODUCER_EPOCH"),
        (3, 2, False, "OK"),
        (4, 2, True, "OK"),
        (4, -1, True, "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_epoch_of_a_marker_is_judged_by_its_transaction_version(
    epoch: int, version: int, is_open: bool, verdict: str
) -> None:
    judged = Judged()
    judged.write(3, 0, is_open=is_open)
    assert judged.mark(epoch, version) == verdict


def test_largest_epoch_of_a_marker_may_be_that_of_the_transaction() -> None:
    judged = Judged()
    judged.write(EPOCH_MAX, 0, is_open=True)
    assert judged.mark(EPOCH_MAX, 2) == "OK"
    assert judged.mark(EPOCH_MAX - 1, 2) == "INVALID_PRODUCER_EPOCH"


def test_marker_of_an_earlier_coordinator_is_fenced_and_ends_no_verification() -> None:
    judged = Judged()
    judged.write(3, 0, is_open=True)
    judged.end(3, coordinator_epoch=5)
    judged.begin(3, 1)
    verifications = judged.partition.verifications
    assert verifications is not None
    assert judged.mark(3, 0, coordinator_epoch=4) == "TRANSACTION_COORDINATOR_FENCED"
    assert judged.mark(3, -1, coordinator_epoch=4) == "UNKNOWN_SERVER_ERROR"
    assert len(verifications) == 1
    assert judged.mark(3, 0, coordinator_epoch=5) == "OK"
    assert len(verifications) == 0


def test_marker_of_an_unknown_producer_is_written() -> None:
    assert [Judged().mark(3, version) for version in (0, 2)] == ["OK", "OK"]
