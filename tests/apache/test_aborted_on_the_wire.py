"""Which aborted transactions a read_committed consumer is told of: Apache's answers over its log.

A log may have more of them than an answer can hold, so each answer names those of its records, as
far as the index tells.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.apache.node import ApacheNode
from tests.server.wire_client import WireClient
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC, TRANSACTIONS, SECONDS = "transactional", 100, 60
SETTINGS = {"segment.bytes": str(1 << 20), "index.interval.bytes": "4096"}
SIZES = (1, 9_000, 12_000, 40_000, 1 << 21)
NEAR_THE_END = 4 * TRANSACTIONS - 2
"""From here partition 0 has a batch of 8 kB and a marker, which leave a little room."""


def aborted_on(bootstrap: str) -> None:
    """Abort transactions of 40 kB, so that the log has three segments; commit some."""
    topic = NewTopic(TOPIC, 2, 1, config=SETTINGS)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([topic])[TOPIC].result(SECONDS)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t", "linger.ms": 0})
    producer.init_transactions(SECONDS)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for part in range(5):
            producer.produce(TOPIC, bytes(8_000), b"%d" % part, part % 2)
            assert producer.flush(SECONDS) == 0
        if number % 4 == 3:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)


def answers(bootstrap: str) -> Iterator[tuple[tuple[int, ...], int, list[int] | None]]:
    """Return what is told of aborted transactions at many places and sizes, of two partitions."""
    with WireClient(bootstrap) as client:
        client.topic(TOPIC)
        for offset in (*range(0, 300, 7), NEAR_THE_END):
            for size in SIZES:
                parts = [
                    FetchPartition(partition=number, fetch_offset=at, partition_max_bytes=size)
                    for number, at in enumerate((offset, offset % NEAR_THE_END))
                ]
                request = FetchRequest(
                    max_wait_ms=0,
                    min_bytes=0,
                    max_bytes=size,
                    isolation_level=1,
                    session_epoch=-1,
                    topics=[FetchTopic(topic=TOPIC, partitions=parts)],
                )
                (topic,) = client.call(request, 12, FetchResponse).responses
                for data in topic.partitions:
                    named = data.aborted_transactions
                    yield (
                        (offset, size, data.partition_index, data.error_code),
                        len(bytes(data.records or b"")),
                        None if named is None else [each.first_offset for each in named],
                    )


def test_each_answer_names_the_aborted_transactions_that_apache_s_does(tmp_path: Path) -> None:
    apache = ApacheNode(tmp_path)
    apache.format()
    apache.start()
    try:
        aborted_on(apache.bootstrap)
        theirs = list(answers(apache.bootstrap))
    finally:
        apache.stop()
    assert len({len(each[2] or ()) for each in theirs}) > 5, "of all sizes"
    assert any(each[2] is None for each in theirs), "where a batch has too little room"
    assert len(list((tmp_path / "data" / f"{TOPIC}-0").glob("*.log"))) > 1
    with ServerProcess(tmp_path) as server:
        assert list(answers(server.bootstrap)) == theirs
