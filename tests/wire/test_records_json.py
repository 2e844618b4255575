"""The JSON of record batches: what is written, what is refused, and its bounds."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.wire import records_json
from kraft_wire.wire.json_form import InvalidJson
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.corruption import CorruptRecordBatch, InvalidRecord
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records_json import records_from_json, records_to_json
from tests.wire.odd_batches import old_message
from tests.wire.plain_batches import plain_batches

BATCH = bytes(
    build_batch(
        [Record(b"k", None, timestamp=5, headers=[("h", None), ("i", b"x")]), Record(None, b"v")],
        is_transactional=True,
        is_control=True,
        delete_horizon_ms=4,
    )
)


def changed(**fields: object) -> Any:
    json: Any = records_to_json(BATCH)
    json["batches"][0].update(fields)
    return json


def test_batches_that_apache_wrote_come_back_byte_for_byte() -> None:
    for batch in plain_batches():
        if not batch.is_log_append_time:
            assert records_from_json(records_to_json(batch.view)) == bytes(batch.view)


def test_several_batches_and_a_cut_one_are_counted() -> None:
    json = records_to_json(BATCH + BATCH + BATCH[:30])
    assert json["trailingBytes"] == 30
    assert records_from_json(json) == BATCH + BATCH


def test_old_formats_have_fewer_keys() -> None:
    json: Any = records_to_json(old_message(7, 0, 0, b"k", None))
    [batch] = json["batches"]
    assert batch["timestampType"] == "NoTimestampType"
    assert batch["records"] == [{"offset": 7, "timestamp": -1, "key": "aw==", "value": None}]
    assert "crc" not in batch


def test_wrong_checksum_is_refused_with_its_position() -> None:
    with pytest.raises(CorruptRecordBatch, match=r"checksum .* is wrong") as raised:
        records_to_json(BATCH + BATCH[:-1] + b"?")
    assert raised.value.position == len(BATCH)


def test_more_records_than_one_answer_may_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_json, "RECORDS_MAX", 3)
    assert records_to_json(BATCH)
    with pytest.raises(InvalidRecord, match="more than 3 records"):
        records_to_json(BATCH + BATCH)


def record(**fields: object) -> Any:
    return changed(records=[{"offset": 0, "timestamp": 0, "key": None, "value": None} | fields])


def test_headers_may_be_missing() -> None:
    assert records_to_json(records_from_json(record()))["trailingBytes"] == 0


@pytest.mark.parametrize(
    ("json", "path"),
    [
        (None, "records"),
        ({}, "batches"),
        ({"batches": [None]}, r"batches\[0\]"),
        (changed(magic=1), r"batches\[0\].magic"),
        (changed(compression="gzip"), r"batches\[0\].compression"),
        (changed(timestampType="LogAppendTime"), r"batches\[0\].timestampType"),
        (changed(baseOffset=None), r"batches\[0\].baseOffset"),
        (changed(producerEpoch=1 << 15), r"batches\[0\].producerEpoch"),
        (changed(records=None), r"batches\[0\].records"),
        (changed(records=[5]), r"batches\[0\].records\[0\]"),
        (record(offset="0"), r"records\[0\].offset"),
        (record(key=5), r"records\[0\].key"),
        (record(headers=5), r"records\[0\].headers"),
        (record(headers=[5]), r"records\[0\].headers"),
        (record(headers=[{"key": None, "value": None}]), r"records\[0\].headers.key"),
        (record(headers=[{"key": "k", "value": "?"}]), r"records\[0\].headers.value"),
    ],
)
def test_json_that_says_no_batch_is_refused_with_its_path(json: Any, path: str) -> None:
    with pytest.raises(InvalidJson, match=path):
        records_from_json(json)
