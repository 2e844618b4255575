"""Control records: keys, transaction markers, and the quorum's messages."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage, Voter
from kraft_wire.wire.generated.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.wire.records.control_records import (
    ControlRecordType,
    control_key,
    control_record,
    end_txn_marker,
    parse_control_key,
    parse_control_value,
    parse_end_txn_marker,
)
from kraft_wire.wire.records.corruption import InvalidRecord
from tests.wire.plain_batches import plain_batches


def control_records_of_apache() -> list[tuple[bytes, bytes]]:
    records = [each for batch in plain_batches() if batch.is_control for each in batch.records()]
    return [(each.key or b"", each.value or b"") for each in records]


def test_control_records_that_apache_wrote_are_read_and_written_alike() -> None:
    found = control_records_of_apache()
    assert len({key for key, _ in found}) == 7
    for key, value in found:
        kind = parse_control_key(key)
        assert kind is not None
        assert control_key(kind) == key
        if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            assert end_txn_marker(parse_end_txn_marker(value)) == value
        else:
            record = control_record(kind, parse_control_value(kind, value), 5)
            assert (record.key, record.value, record.timestamp) == (key, value, 5)


def test_leader_change_is_key_type_2() -> None:
    message = LeaderChangeMessage(leader_id=1, voters=[Voter(voter_id=1)])
    record = control_record(ControlRecordType.LEADER_CHANGE, message, 0)
    assert record.key == b"\0\0\0\2"
    assert parse_control_value(ControlRecordType.LEADER_CHANGE, record.value) == message


def test_message_of_another_type_is_our_mistake() -> None:
    with pytest.raises(AssertionError):
        control_record(ControlRecordType.LEADER_CHANGE, SnapshotFooterRecord(), 0)


def test_unknown_type_is_none_and_a_bad_key_is_refused() -> None:
    assert parse_control_key(b"\0\0\0\x63") is None
    for key in (None, b"", b"\0\0\0", b"\xff\xff\0\0"):
        with pytest.raises(InvalidRecord):
            parse_control_key(key)


def test_marker_may_be_longer_but_not_shorter() -> None:
    assert parse_end_txn_marker(b"\0\1\0\0\0\7later") == 7
    for value in (None, b"\0\0\0\0\0", b"\xff\xff\0\0\0\0"):
        with pytest.raises(InvalidRecord):
            parse_end_txn_marker(value)


@pytest.mark.parametrize("value", [None, b"", b"\0\0", b"\0\x63\0\0\0\0"])
def test_value_that_is_no_message_is_refused(value: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        parse_control_value(ControlRecordType.LEADER_CHANGE, value)
    with pytest.raises(InvalidRecord):
        parse_control_value(ControlRecordType.COMMIT, value)
