"""Committed offsets and those of open transactions: which there are, whose, and their memory."""

from __future__ import annotations

import pytest

from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.offsets.table import CommittedOffset, OffsetKey, OffsetTable
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue

ONE, TWO = (Uuid(bytes([each]) * 16) for each in (1, 2))
FIRST, SECOND, OTHER = (
    OffsetKey("g", "t", 0),
    OffsetKey("g", "t", 1),
    OffsetKey("h", "t", 0),
)
OFFSET_BYTES = 768


def committed(
    metadata: str = "", topic_id: Uuid = ZERO_UUID, record_offset: int = 5
) -> CommittedOffset:
    return CommittedOffset(1, -1, metadata, 9, None, topic_id, record_offset)


def table() -> tuple[OffsetTable, MemoryUse]:
    memory = MemoryUse(lambda: 1 << 30)
    return OffsetTable(memory), memory


def test_offset_is_read_back_from_its_record() -> None:
    value = OffsetCommitValue(
        offset=4,
        leader_epoch=3,
        metadata="m",
        commit_timestamp=8,
        expire_timestamp=-1,
        topic_id=ONE,
    )
    expected = CommittedOffset(4, 3, "m", 8, None, ONE, 77)
    assert CommittedOffset.from_record(value, 77) == expected
    for expires in (0, 9):
        value.expire_timestamp = expires
        assert CommittedOffset.from_record(value, 77).expire_timestamp_ms == expires


@pytest.mark.parametrize(
    ("own", "asked", "belongs"),
    [
        (ONE, ONE, True),
        (ONE, TWO, False),
        (ZERO_UUID, ONE, True),
        (ONE, ZERO_UUID, True),
        (ZERO_UUID, ZERO_UUID, True),
    ],
)
def test_offset_belongs_to_its_topic_or_to_one_without_an_id(
    own: Uuid, asked: Uuid, belongs: bool
) -> None:
    assert committed(topic_id=own).belongs_to(asked) is belongs


def test_offsets_are_found_by_key_and_group() -> None:
    offsets, memory = table()
    a, b, c, d = (committed(each) for each in ("", "bb", "ccc", "dddd"))
    offsets.put(FIRST, a)
    offsets.put(OTHER, c)
    offsets.put(SECOND, b)
    assert len(offsets) == 3
    assert (offsets.get(FIRST), offsets.get(OffsetKey("g", "u", 0))) == (a, None)
    assert offsets.of_group("g") == {"t": {0: a, 1: b}}
    assert offsets.keys_of("g") == [FIRST, SECOND]
    assert memory.total_bytes == 3 * OFFSET_BYTES + 5
    offsets.put(FIRST, d)
    assert (len(offsets), memory.total_bytes) == (3, 3 * OFFSET_BYTES + 9)
    assert list(offsets) == [(FIRST, d, None), (SECOND, b, None), (OTHER, c, None)]
    for key in (FIRST, FIRST, OffsetKey("x", "t", 0)):
        offsets.remove(key)
    assert (len(offsets), memory.total_bytes) == (2, 2 * OFFSET_BYTES + 5)
    offsets.remove(SECOND)
    assert (offsets.of_group("g"), offsets.keys_of("g")) == ({}, [])
    offsets.release()
    assert memory.total_bytes == 0


def test_offsets_of_open_transactions_are_apart() -> None:
    offsets, memory = table()
    a, b, c = (committed(each) for each in ("", "bb", "ccc"))
    offsets.put(FIRST, a)
    offsets.put_open(7, FIRST, b)
    offsets.put_open(7, OTHER, c)
    offsets.put_open(8, SECOND, c)
    offsets.put_open(8, SECOND, b)
    assert memory.total_bytes == 4 * OFFSET_BYTES + 7
    assert list(offsets) == [(FIRST, a, None), (FIRST, b, 7), (OTHER, c, 7), (SECOND, b, 8)]
    assert (len(offsets), offsets.get(SECOND)) == (1, None)
    assert [offsets.has_open_transaction(each) for each in "ghx"] == [True, True, False]
    assert [offsets.is_unstable(each) for each in (FIRST, SECOND, OTHER)] == [True] * 3
    assert offsets.keys_of("g") == [FIRST, SECOND]
    assert offsets.take_open(8) == {SECOND: b}
    assert offsets.take_open(8) == {}
    assert not offsets.is_unstable(SECOND)
    assert memory.total_bytes == 3 * OFFSET_BYTES + 5
    offsets.remove(FIRST)
    assert (len(offsets), memory.total_bytes) == (0, OFFSET_BYTES + 3)
    assert offsets.take_open(7) == {OTHER: c}
    assert memory.total_bytes == 0
    offsets.put_open(9, FIRST, b)
    offsets.release()
    assert memory.total_bytes == 0


def test_deleted_topic_has_the_offsets_of_every_group_for_it() -> None:
    """Neither those for another topic of its name, nor those for other names."""
    offsets, _ = table()
    third = OffsetKey("g", "t", 2)
    offsets.put(FIRST, committed(topic_id=ONE))
    offsets.put(SECOND, committed(topic_id=TWO))
    offsets.put(OTHER, committed())
    offsets.put(OffsetKey("g", "u", 0), committed(topic_id=ONE))
    offsets.put_open(7, FIRST, committed(topic_id=ONE))
    offsets.put_open(7, third, committed())
    offsets.put_open(7, OffsetKey("g", "u", 3), committed())
    offsets.put_open(8, OffsetKey("g", "t", 4), committed(topic_id=TWO))
    assert offsets.keys_of_topic("t", ONE) == [FIRST, OTHER, third]
    assert offsets.keys_of_topic("gone", ONE) == []


def test_offset_of_a_transaction_is_older_than_one_whose_record_came_later() -> None:
    offsets, _ = table()
    assert not offsets.is_older(FIRST, committed(record_offset=0))
    offsets.put(FIRST, committed(record_offset=5))
    found = [offsets.is_older(FIRST, committed(record_offset=each)) for each in (4, 5, 6)]
    assert found == [True, False, False]
