"""Metadata records that are well-formed and senseless give tables, or one clear line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from kraft_wire.model import Uuid
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.views import read_view
from kraft_wire.wire.generated.registry import (
    METADATA_RECORDS,
    message_table,
    metadata_record_class,
)
from kraft_wire.wire.message import Message
from tests.spark.metadata_logs import (
    AGAIN,
    BEGAN_MS,
    GONE,
    ORDERS,
    batches,
    write_metadata_log,
)
from tests.spark.test_tables import CLUSTER_ID, tables
from tests.wire.random_messages import random_message

SEEDS = 120
TRANSACTIONS = {23, 24, 25}
TYPES = sorted(set(METADATA_RECORDS) - TRANSACTIONS)
VIEWS = ("metadata", "partitions", "snapshots", "records", "batches", "segments")
TOPICS = (ORDERS, GONE, AGAIN)


def senseless(random_source: Random) -> Message:
    """A record with random fields, mostly about a topic and a partition that are there."""
    kind = metadata_record_class(random_source.choice(TYPES))
    record = random_message(message_table(kind.NAME), kind.MAX_VERSION, random_source)
    for name, values in (("topic_id", TOPICS), ("partition_id", range(5))):
        if hasattr(record, name) and random_source.random() < 0.8:
            value: Uuid | int = random_source.choice(values)
            setattr(record, name, value)
    return record


def log_of_seed(seed: int) -> tuple[list[list[Message]], int]:
    """The begin of the log of the other tests with such records between, and its time."""
    random_source = Random(seed)
    given: list[list[Message]] = []
    for batch in batches()[: random_source.randint(1, len(batches()))]:
        given += [batch, [senseless(random_source) for _ in range(random_source.randint(0, 1))]]
    return [batch for batch in given if batch], random_source.choice([BEGAN_MS, 0, -1, 1 << 61])


def refusal(read: Callable[[], object]) -> str | None:
    """Why something cannot be read, None where it can."""
    try:
        read()
    except PipelineError as error:
        return str(error)
    return None


def test_senseless_records_give_tables_and_views_or_one_clear_line(tmp_path: Path) -> None:
    told: Counter[tuple[str, str]] = Counter()
    for seed in range(SEEDS):
        node = tmp_path / f"node-{seed}"
        given, began_ms = log_of_seed(seed)
        write_metadata_log(node, CLUSTER_ID, given, began_ms=began_ms)
        readers = {"tables": lambda node=node: tables(node)} | {
            view: lambda node=node, view=view: list(read_view({"path": str(node), "view": view}))
            for view in VIEWS
        }
        for name, read in readers.items():
            reason = refusal(read)
            assert reason is None or (reason and "\n" not in reason), seed
            told[name, "read" if reason is None else "refused"] += 1
    for name in ("tables", "partitions"):
        assert min(told[name, "read"], told[name, "refused"]) > SEEDS // 10, told
    for name in set(VIEWS) - {"partitions"}:
        assert told[name, "read"] == SEEDS, told
