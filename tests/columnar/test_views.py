"""Tables: names and types as promised, pruning, times that do not fit, and the missing extra."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from kraft_wire.columnar import (
    BATCHES,
    RECORDS,
    SEGMENTS,
    MissingExtra,
    batch_columns,
    batches_table,
    read_records,
    records_schema,
    records_table,
    require,
    window_of,
)
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.columnar.by_wire import PLACE
from tests.wire.odd_batches import old_message

DATA = b"".join(
    [
        old_message(0, 0, 0, b"a", None),
        old_message(1, 1, 8, None, b"b", timestamp=55),
        bytes(
            build_batch(
                [
                    Record(b"k", None, 2, 1_000, [("h", b"1"), ("h", None)]),
                    Record(None, b"v", 3, (1 << 63) - 1),
                ],
                base_offset=2,
                partition_leader_epoch=4,
                producer_id=9,
                producer_epoch=1,
                base_sequence=0,
                compression=Compression.ZSTD,
            )
        ),
    ]
)


def table_of(schema: pa.Schema, content: tuple[str, ...] = ("key", "value", "headers")) -> pa.Table:
    window = window_of(DATA)
    columns = batch_columns(window)
    parts = [
        records_table(records, PLACE, schema, columns)
        for records in read_records(window, columns, content=content)
    ]
    return pa.concat_tables(parts)


def test_records_are_rows_of_the_kafka_source() -> None:
    table = table_of(records_schema(headers=True))
    assert table.schema.names == [*RECORDS.names, "headers"]
    rows = table.to_pylist()
    assert [row["key"] for row in rows] == [b"a", None, b"k", None]
    assert [row["value"] for row in rows] == [None, b"b", None, b"v"]
    assert {(row["topic"], row["partition"]) for row in rows} == {("orders", 3)}
    assert [row["offset"] for row in rows] == [0, 1, 2, 3]
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [-1000, 55_000, 1_000_000, None]
    assert [row["timestampType"] for row in rows] == [-1, 1, 0, 0]
    headers = [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]
    assert [row["headers"] for row in rows] == [None, None, headers, None]


def test_schema_of_the_user_prunes_and_orders() -> None:
    schema = pa.schema([RECORDS.field("offset"), RECORDS.field("value")])
    table = table_of(schema, ("value",))
    assert table.to_pydict() == {"offset": [0, 1, 2, 3], "value": [None, b"b", None, b"v"]}


def test_fields_of_the_batch_stand_beside_each_record() -> None:
    table = table_of(records_schema(batch_fields=True))
    assert table["leaderEpoch"].to_pylist() == [-1, -1, 4, 4]
    assert table["magic"].to_pylist() == [0, 1, 2, 2]
    assert table["compression"].to_pylist() == ["none", "none", "zstd", "zstd"]
    assert table["producerId"].to_pylist() == [-1, -1, 9, 9]


def test_batches_have_the_columns_of_the_view() -> None:
    table = batches_table(batch_columns(window_of(DATA)), PLACE)
    assert table.schema.equals(BATCHES)
    rows = table.to_pylist()
    assert [row["count"] for row in rows] == [1, 1, 2]
    assert [row["lastOffset"] for row in rows] == [0, 1, 3]
    assert [row["maxTimestamp"] for row in rows] == [-1, 55, (1 << 63) - 1]
    assert {row["segment"] for row in rows} == {PLACE.segment}
    assert {row["node"] for row in rows} == {"1"}


def test_every_column_is_nullable_and_lists_have_elements() -> None:
    for schema in (BATCHES, SEGMENTS, records_schema(headers=True, batch_fields=True)):
        assert all(field.nullable for field in schema)
    assert records_schema(headers=True).field("headers").type.value_field.name == "element"


def test_missing_extra_is_one_clear_line() -> None:
    with pytest.raises(MissingExtra, match=r"^nowhere not installed: \S+ -m pip install nowhere$"):
        require("x", "sys", "nowhere")
    hidden = "import sys; sys.modules['numpy'] = None; sys.modules['pyarrow'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", hidden + "import kraft_wire.columnar"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr.splitlines()[-1].endswith(
        f"not installed: {sys.executable} -m pip install 'numpy>=2' 'pyarrow>=18'"
    )


def test_node_is_imported_without_the_extra() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None; sys.modules['pyarrow'] = None\n"
        "import kraft_wire.cli.main, kraft_wire.server.host, kraft_wire.node.node"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
