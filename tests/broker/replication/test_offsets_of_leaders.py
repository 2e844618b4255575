"""ListOffsets and DeleteRecords where others have replicas: KIP-207, KIP-107."""

from collections.abc import Iterable

import pytest

from kraft_wire.model import Offset, StorageError
from kraft_wire.storage.cleaning.retention import apply_retention
from kraft_wire.storage.log import Log
from kraft_wire.wire.generated.delete_records import DeleteRecordsPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.replication.leading import Leading
from tests.broker.small_broker import broker_image, partition_image

TWO = partition_image(0, replicas=(1, 2))
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4


def grown(count: int = 4, **more: object) -> Leading:
    """Four records of which two are committed."""
    leading = Leading(TWO, **more)  # type: ignore[arg-type]  # settings of the test
    for _ in range(count):
        leading.produce(acks=1)
    leading.fetch(2)
    return leading


def test_clients_are_told_what_is_committed_and_replicas_the_end() -> None:
    leading = grown()
    assert leading.list_offset(LATEST).offset == 2
    assert leading.list_offset(LATEST, replica=2).offset == 4
    assert leading.list_offset(LATEST, replica=-2).offset == 4
    assert leading.list_offset(EARLIEST, replica=2).offset == 0


def test_the_newest_record_is_nothing_to_clients_until_it_is_committed() -> None:
    """As 4.3.1: not the newest of what is committed."""
    leading = grown()
    leading.produce(acks=1, time_ms=9)
    assert leading.list_offset(MAX_TIMESTAMP).offset == -1
    assert leading.list_offset(MAX_TIMESTAMP, replica=2).offset == 4
    leading.fetch(5)
    assert leading.list_offset(MAX_TIMESTAMP).offset == 4


@pytest.mark.parametrize(
    ("version", "error"), [(4, E.LEADER_NOT_AVAILABLE), (5, E.OFFSET_NOT_AVAILABLE)]
)
def test_a_new_leader_says_that_it_does_not_know_yet(version: int, error: E) -> None:
    """Its predecessor may have committed, and clients read, all that was there (KIP-207)."""
    leading = grown()
    leading.change(leader_epoch=1)
    assert leading.list_offset(LATEST, version=version).error_code == error
    assert leading.list_offset(1 << 60, version=version).error_code == error
    assert leading.list_offset(0, version=version).offset == 0
    assert leading.list_offset(EARLIEST, version=version).offset == 0
    assert leading.list_offset(LATEST, version=version, replica=2).offset == 4
    leading.fetch(4)
    assert leading.list_offset(LATEST, version=version).offset == 4
    assert leading.list_offset(1 << 60, version=version).offset == -1


def test_only_the_leader_answers_but_for_those_who_look_for_mistakes() -> None:
    leading = grown()
    leading.change(leader=2, leader_epoch=1)
    assert leading.list_offset(LATEST).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert leading.list_offset(LATEST, replica=3).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert leading.list_offset(LATEST, replica=-2).offset == 4


def test_deleting_waits_until_every_replica_that_is_alive_has_followed() -> None:
    leading = grown()
    waiting = leading.delete_records(2)
    assert waiting.is_parked
    assert leading.partition().log_start_offset == 2
    leading.fetch(2, log_start_offset=1)
    assert waiting.is_parked
    leading.fetch(2, log_start_offset=2)
    assert (waiting.deleted.error_code, waiting.deleted.low_watermark) == (E.NONE, 2)
    assert leading.delete_records(1).deleted.low_watermark == 2


@pytest.mark.parametrize("offsets", [(1, 2), (2, 1), (2, 2), (2, 9), (9, 2), (0, -1), (9, 1, 2)])
@pytest.mark.parametrize("follows_to", [0, 1, 2])
def test_a_partition_that_is_named_twice_is_answered_once_for_its_last_offset(
    offsets: tuple[int, ...], follows_to: int
) -> None:
    """As in 4.3.1, whose tables have each partition once."""
    answers = []
    for asked in (offsets, offsets[-1:]):
        leading = grown()
        wanted = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in asked]
        waiting = leading.delete_all(wanted, timeout_ms=700)
        leading.fetch(2, log_start_offset=follows_to)
        leading.pass_time(700)
        found = [(each.error_code, each.low_watermark) for each in waiting.all_deleted]
        answers.append((found, leading.partition().log_start_offset))
    assert answers[0] == answers[1]


def test_deleting_does_not_wait_for_a_partition_that_a_later_one_took_offline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both are in the directory whose disk fails at the second one."""
    leading = Leading(TWO, partition_image(1, replicas=(1, 2)))
    leading.produce(acks=1)
    leading.fetch(1)
    leading.logs.failed_with = [leading.partition(at).topic_partition for at in (0, 1)]
    second = leading.partition(1).log
    whole = Log.advance_log_start_offset

    def refused(log: Log, offset: Offset) -> bool:
        if log is second:
            raise StorageError("write", "t-1", "input/output error")
        return whole(log, offset)

    monkeypatch.setattr(Log, "advance_log_start_offset", refused)
    asked = {0: 1, 1: 0}
    waiting = leading.delete_all(
        [DeleteRecordsPartition(partition_index=at, offset=to) for at, to in asked.items()]
    )
    assert [(each.error_code, each.low_watermark) for each in waiting.all_deleted] == [
        (E.KAFKA_STORAGE_ERROR, -1)
    ] * 2


def test_deleting_does_not_wait_for_a_replica_that_is_fenced() -> None:
    leading = grown()
    leading.brokers[2] = broker_image(2, fenced=True)
    leading.publish()
    assert leading.delete_records(2).deleted.low_watermark == 2


def test_deleting_times_out_with_the_low_watermark_from_before() -> None:
    leading = grown()
    waiting = leading.delete_records(2, timeout_ms=700)
    leading.pass_time(699)
    assert waiting.is_parked
    leading.pass_time(1)
    assert (waiting.deleted.error_code, waiting.deleted.low_watermark) == (E.REQUEST_TIMED_OUT, 0)


def test_deleting_ends_with_the_leadership_and_with_the_topic() -> None:
    leading = grown()
    waiting = leading.delete_records(2)
    leading.change(leader=2, leader_epoch=1)
    assert waiting.deleted.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert waiting.deleted.low_watermark == -1
    leading = grown()
    waiting = leading.delete_records(2)
    leading.partitions.clear()
    leading.publish()
    assert waiting.deleted.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert waiting.deleted.low_watermark == -1


def test_nothing_above_the_high_watermark_is_deleted() -> None:
    leading = grown()
    assert leading.delete_records(3).deleted.error_code == E.OFFSET_OUT_OF_RANGE
    assert leading.partition().log_start_offset == 0


@pytest.mark.parametrize("log_starts", [range(8), [3], [0, 5], [2, 6], [7]])
def test_every_offset_is_named_with_the_epoch_of_its_record(log_starts: Iterable[int]) -> None:
    """KIP-320: a consumer sends the epoch back with the offset, and is fenced by a wrong one."""
    leading = Leading(partition_image(0))
    epochs = []
    for epoch, count in ((0, 2), (3, 1), (4, 3), (7, 1)):
        if epoch:
            leading.change(leader_epoch=epoch)
        for _ in range(count):
            leading.produce(acks=1, time_ms=len(epochs))
            epochs.append(epoch)
    leading.change(leader_epoch=9)
    log = leading.partition().log
    assert isinstance(log, Log)
    for start in log_starts:
        leading.delete_records(start)
        earliest = (start, [*epochs, 9][start])
        for named in (EARLIEST, EARLIEST_LOCAL):
            found = leading.list_offset(named)
            assert (found.offset, found.leader_epoch) == earliest
        assert leading.list_offset(LATEST).leader_epoch == 9
        for time in range(len(epochs)):
            found = leading.list_offset(time)
            wanted = max(time, start)
            at = (wanted, epochs[wanted]) if wanted < len(epochs) else (-1, -1)
            assert (found.offset, found.leader_epoch) == at
        newest = leading.list_offset(MAX_TIMESTAMP)
        at = (6, epochs[6]) if start < len(epochs) else (-1, -1)
        assert (newest.offset, newest.leader_epoch) == at
        log.roll(1)
        apply_retention(log, 1)
        assert leading.list_offset(EARLIEST).leader_epoch == earliest[1], "with its segments gone"
