"""The table `transactions`: states of transactional ids as intervals. No Spark here."""

from pathlib import Path

import pyarrow as pa

from kraft_wire.broker.transactions.states import TransactionState
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.views import topic_logs
from kraft_wire.spark.metadata.metadata_tables import TABLE_SCHEMAS
from kraft_wire.spark.metadata.transaction_rows import transaction_rows
from kraft_wire.storage.os_files import OsFileSystem
from tests.audit.test_transactions import NOW_MS, Directory


def test_states_are_intervals_and_a_tombstone_ends_the_last(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.coordinate("b", 2, TransactionState.EMPTY)
    directory.coordinate("a", 1, TransactionState.ONGOING, NOW_MS - 5)
    directory.coordinate("a", 1, TransactionState.COMPLETE_COMMIT, NOW_MS - 5)
    directory.forget("b")
    directory.audit()
    fs = OsFileSystem()
    options = parse_log_options({"path": str(tmp_path), "view": "metadata"})
    (logs,) = topic_logs(fs, options, "__transaction_state").values()
    rows = list(transaction_rows(fs, logs, None))
    schema = TABLE_SCHEMAS["transactions"]
    assert [{*row, "clusterId"} for row in rows] == [set(schema.names)] * 3
    assert pa.Table.from_pylist(rows, schema=schema).num_rows == 3
    shown = [(r["transactionalId"], r["state"], r["fromOffset"], r["untilOffset"]) for r in rows]
    assert shown == [
        ("a", "Ongoing", 1, 2),
        ("a", "CompleteCommit", 2, None),
        ("b", "Empty", 0, 3),
    ]
    places = [(each["topic"], each["partition"]) for each in rows[0]["partitions"]]
    assert places == [("t", 7), ("t", 0)]
    assert rows[0]["startTimestamp"] == (NOW_MS - 5) * 1000
    assert (rows[0]["producerId"], rows[0]["timeoutMs"]) == (1, 60_000)
    assert list(transaction_rows(fs, logs, NOW_MS - 1)) == []
