"""Transactions over a change of make: one data directory, with whatever state a node leaves behind.

One make writes committed, aborted and open transactions and stops; the other has to show the same
records, producers and transactional ids, goes on with the open transactions, and is killed between
a Prepare record and its markers; the first one has to end those. Files are read with both tools.

`KRAFT_WIRE_HAND_OVERS=20` does it twenty times on one directory, each way.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from kraft_wire.audit.collector import plan_audit, run_audit
from kraft_wire.cli.transactions.admin import (
    DescribedTransaction,
    active_producers,
    described_transaction,
    listed_transactions,
)
from kraft_wire.client.cluster import ClusterClient, ClusterSettings
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.storage.indexes import TransactionIndex
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.producers.producer_state import ProducerState, ProducerStates
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.node import ApacheNode
from tests.apache.test_drop_in import committed_offsets, read
from tests.apache.tools import run_tool
from tests.raw_transactions import RawProducer
from tests.server_process import ServerProcess
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(3600)]

ROUNDS = int(os.environ.get("KRAFT_WIRE_HAND_OVERS", "1"))
TOPIC, PREPARED = "data", "prepared"
SETTINGS = {
    f"{topic}.{key}": value
    for topic in ("offsets.topic", "transaction.state.log")
    for key, value in (("num.partitions", "4"), ("replication.factor", "1"))
} | {"transaction.state.log.min.isr": "1", "num.partitions": "2"}
FAULTS = re.compile(r"Exception|corrupt|isvalid: false|Mismatches|out of order", re.IGNORECASE)
INDEX_LINE = re.compile(
    r"version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)"
)
PRODUCER_LINE = re.compile(
    r"producerId: (\d+) producerEpoch: (\d+) coordinatorEpoch: (-?\d+) currentTxnFirstOffset: "
    r"OptionalLong(?:\.empty|\[(\d+)\]) lastTimestamp: (-?\d+)"
    r"(?: firstSequence: \d+ lastSequence: (\d+) lastOffset: (\d+))?"
)

Node: TypeAlias = ServerProcess | ApacheNode


@dataclass
class Story:
    """What was written, and how it must be seen."""

    committed: dict[str, list[bytes]] = field(default_factory=lambda: {TOPIC: [], PREPARED: []})
    producers: dict[str, RawProducer] = field(default_factory=dict)
    offset: int = -1

    def write(self, node: Node, number: int) -> None:
        """Commit, abort and leave open; in two partitions and a group each."""
        for name in ("committed", "aborted", "open"):
            producer = self.at(node, name)
            producer.create(TOPIC)
            producer.create(PREPARED)
            producer.init(timeout_ms=600_000)
            values = [b"%s %d" % (name.encode(), number + n) for n in range(4)]
            for partition, value in enumerate(values):
                producer.produce(TOPIC, partition % 2, value)
            if name == "aborted":
                producer.commit_offset("g", TOPIC, 100_000 + number)
            else:
                self.committed[TOPIC] += values
            if name != "open":
                producer.end(commit=name == "committed")

    def at(self, node: Node, name: str) -> RawProducer:
        """The producer of an id, at a node; what it knows of sequences goes along."""
        producer = self.producers.setdefault(name, RawProducer(node.bootstrap, name))
        producer.move_to(node.bootstrap)
        return producer

    def finish_open(self, node: Node, number: int) -> None:
        """Go on with what the other make left open."""
        producer = self.at(node, "open")
        producer.produce(TOPIC, 0, b"went on %d" % number)
        producer.commit_offset("g", TOPIC, number)
        producer.end(commit=True)
        self.committed[TOPIC].append(b"went on %d" % number)
        self.offset = number

    def prepare(self, node: Node, number: int) -> None:
        """End two transactions of a topic of their own."""
        for partition, name in enumerate(("to-commit", "to-abort")):
            producer = self.at(node, name)
            producer.init().produce(PREPARED, partition, b"%s %d" % (name.encode(), number))
            producer.end(commit=name == "to-commit")
            until(lambda name=name: is_complete(node, name), lambda: described(node, name))  # noqa: B023  # called at once
        self.committed[PREPARED].append(b"to-commit %d" % number)


def test_transactions_survive_a_change_of_make_by_apache(tmp_path: Path) -> None:
    first = ApacheNode(tmp_path, overrides=SETTINGS)
    first.format()
    take_turns(first, ServerProcess(tmp_path, overrides=SETTINGS))


def test_transactions_survive_a_change_of_make_by_us(tmp_path: Path) -> None:
    second = ApacheNode(tmp_path, overrides=SETTINGS)
    second.configure()
    take_turns(ServerProcess(tmp_path, overrides=SETTINGS), second)


def take_turns(first: Node, second: Node) -> None:
    story = Story()
    try:
        play(first, second, story)
    finally:
        for producer in story.producers.values():
            producer.close()


def play(first: Node, second: Node, story: Story) -> None:
    """All rounds."""
    dropped = 0
    for number in range(0, 10 * ROUNDS, 10):
        with started(first):
            story.write(first, number)
            until(lambda: is_complete(first, "aborted"), lambda: described(first, "aborted"))
            before = seen(first)
            check_reads(first, story, but=4)
        check_files(first.data)
        with started(second) as stack:
            until(partial(sees, second, before), lambda: seen(second))
            check_reads(second, story, but=4)
            story.finish_open(second, number)
            until(lambda: is_complete(second, "open"), lambda: described(second, "open"))
            check_reads(second, story)
            story.prepare(second, number)
            stack.pop_all()
            second.kill()
        for partition, name in enumerate(("to-commit", "to-abort")):
            cut_last_batch(first.data / f"{PREPARED}-{partition}")
            cut_state(first.data, name)
        with started(first):
            for name, state in (("to-commit", "CompleteCommit"), ("to-abort", "CompleteAbort")):
                until(lambda name=name: is_complete(first, name), lambda: described(first, name))  # noqa: B023  # called at once
                assert described(first, name).transaction_state == state
            dropped += isinstance(first, ApacheNode) and write_dropped_markers(first)
            check_reads(first, story)
        check_files(first.data)
        count = sum(map(len, story.committed.values()))
        print(f"\nround {number // 10 + 1}: {count} records committed, {dropped} markers dropped")


def started(node: Node) -> ExitStack:
    """The node, until the end of the block."""
    stack = ExitStack()
    node.start()
    stack.callback(node.stop)
    return stack


def check_reads(node: Node, story: Story, but: int = 0) -> None:
    """Readers of committed records see those of ended transactions, but for some last ones."""
    found = read(node.bootstrap, story.committed, "read_committed")
    wanted = dict(story.committed)
    wanted[TOPIC] = wanted[TOPIC][: len(wanted[TOPIC]) - but]
    for topic, values in wanted.items():
        assert sorted(each[4] or b"" for each in found[topic]) == sorted(values), topic
    offsets = committed_offsets(node.bootstrap, ["g"])["g"]
    assert offsets.get((TOPIC, 0), (-1, None))[0] == story.offset


def seen(
    node: Node,
) -> tuple[list[DescribedTransaction], dict[TopicPartition, list[tuple[int, ...]]]]:
    """Every transactional id, and the producers of every partition, as an operator sees them."""
    with ClusterClient(ClusterSettings((node.bootstrap,))) as client:
        ids = [each.transactional_id for each in listed_transactions(client)]
        places = [TopicPartition(topic, n) for topic in (TOPIC, PREPARED) for n in range(2)]
        producers = {
            place: sorted(map(astuple, active_producers(client, place))) for place in places
        }
        found = [described_transaction(client, each) for each in ids]
        for each in found:
            each.topic_partitions.sort()
        return found, producers


def sees(node: Node, before: object) -> bool:
    """Whether a node shows what the one before showed: Apache's is no coordinator at once."""
    return seen(node) == before


def described(node: Node, name: str) -> DescribedTransaction:
    with ClusterClient(ClusterSettings((node.bootstrap,))) as client:
        return described_transaction(client, name)


def is_complete(node: Node, name: str) -> bool:
    return described(node, name).transaction_state.startswith("Complete")


def write_dropped_markers(node: Node) -> int:
    """Write the markers that 4.3.1 has dropped, as the coordinator had decided; return how many.

    At a start it takes a partition whose leader is not elected yet for a deleted one, and completes
    the transaction without it (KAFKA-20734). Ours waits.
    """
    dropped = 0
    with ClusterClient(ClusterSettings((node.bootstrap,))) as client:
        for partition, is_commit in enumerate((True, False)):
            place = TopicPartition(PREPARED, partition)
            for each in active_producers(client, place):
                if each.current_transaction_start_offset is None:
                    continue
                topic = WritableTxnMarkerTopic(name=PREPARED, partition_indexes=[partition])
                marker = WritableTxnMarker(
                    producer_id=each.producer_id,
                    producer_epoch=each.producer_epoch,
                    transaction_result=is_commit,
                    topics=[topic],
                    coordinator_epoch=max(each.latest_coordinator_epoch, 0),
                )
                request = WriteTxnMarkersRequest(markers=[marker])
                answer = client.leader_of(place).send(request, WriteTxnMarkersResponse)
                assert not answer.markers[0].topics[0].partitions[0].error_code, answer
                dropped += 1
    return dropped


def cut_last_batch(directory: Path) -> None:
    """Leave what a kill before the last append would have left: the log ends a batch earlier."""
    newest = max(path for path in directory.glob("*.log"))
    data = newest.read_bytes()
    batches = parse_batches(data)
    os.truncate(newest, len(data) - batches[-1].size_bytes)


def cut_state(data: Path, name: str) -> None:
    """Take the Complete record of an id from the end of its partition of `__transaction_state`."""
    for directory in data.glob("__transaction_state-*"):
        newest = max(path for path in directory.glob("*.log"))
        batches = parse_batches(newest.read_bytes())
        keys = [record.key for record in batches[-1].records()] if batches else []
        if any(key is not None and key.endswith(name.encode()) for key in keys):
            cut_last_batch(directory)
            return
    raise AssertionError(f"no partition ends with a record of {name}")


def check_files(data: Path) -> None:
    """Apache's tool and our reader find the same in every transaction index and snapshot.

    And the audit, which holds both to the bytes of the logs, finds nothing.
    """
    audited = run_audit(plan_audit([str(data)]), processes=1)
    assert [each for each in audited.findings if each.severity != "info"] == []
    fs = OsFileSystem()
    logs = [path for path in data.glob(f"{TOPIC}-[01]/*.log")]
    states = list(data.glob("__transaction_state-*/*.log"))
    for files, decoder in ((logs, ()), (states, ("--transaction-log-decoder",))):
        names = ",".join(map(str, files))
        done = run_tool("kafka-dump-log", ["--files", names, "--deep-iteration", *decoder])
        assert done.exit_code == 0, done.text
        assert not FAULTS.search(done.text), done.text
    indexes = sorted(data.glob("*/*.txnindex"))
    for path, shown in zip(indexes, dumped(indexes), strict=True):
        index = TransactionIndex(str(path))
        index.load(fs)
        ours = [tuple(map(int, each)) for each in index.entries]
        assert [tuple(map(int, each)) for each in INDEX_LINE.findall(shown)] == ours, shown
    snapshots = sorted(data.glob(f"{TOPIC}-[01]/*.snapshot"))
    for path, shown in zip(snapshots, dumped(snapshots), strict=True):
        table = ProducerStates()
        table.load_snapshot(path.read_bytes(), Offset(int(path.stem)))
        theirs = [
            tuple(int(each or -1) for each in numbers) for numbers in PRODUCER_LINE.findall(shown)
        ]
        assert theirs == [numbers_of(each) for each in table.active_producers()], shown


def dumped(files: list[Path]) -> list[str]:
    """What Apache's tool prints of each file."""
    if not files:
        return []
    done = run_tool("kafka-dump-log", ["--files", ",".join(map(str, files))])
    assert done.exit_code == 0, done.text
    shown: list[str] = done.stdout.split("Dumping ")
    return shown[1:]


def numbers_of(each: ProducerState) -> tuple[int, ...]:
    """An entry as PRODUCER_LINE has it, -1 where there is nothing."""
    first = each.transaction_first_offset
    return (
        *(each.producer_id, each.producer_epoch, each.coordinator_epoch),
        *(-1 if first is None else first, each.last_timestamp),
        *(each.last_sequence, each.last_offset),
    )
