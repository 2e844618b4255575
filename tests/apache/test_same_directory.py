"""One data directory under both: what we wrote is served by Apache Kafka 4.3.1, and the reverse.

The first of the two promises that shape every file format decision (docs/ARCHITECTURE.md).
"""

from pathlib import Path

import pytest

from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kraft_wire.wire.generated.metadata import MetadataResponseTopic
from kraft_wire.wire.generated.produce import ProduceResponse
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.java_process import run_java
from tests.apache.node import CLUSTER_ID, ApacheNode
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

CODECS = tuple(Compression)


def write(client: WireClient, topic: MetadataResponseTopic, words: list[bytes]) -> None:
    """One batch per word, each in another codec; retried until the partition is led."""
    for number, word in enumerate(words):
        records = one_batch(word, codec=CODECS[number % len(CODECS)])
        for _ in range(200):
            response = client.call(produce_request(topic, records), 8, ProduceResponse)
            if response.responses[0].partition_responses[0].error_code == 0:
                break
        else:
            raise AssertionError(response)


def read(client: WireClient, topic: str) -> list[bytes | None]:
    """Every value of partition 0."""
    for _ in range(200):
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )
        data = client.call(request, 11, FetchResponse).responses[0].partitions[0]
        if data.error_code == 0 and data.high_watermark >= 0 and data.records:
            break
    else:
        raise AssertionError(data)
    assert isinstance(data.records, memoryview)
    return [record.value for batch in parse_batches(data.records) for record in batch.records()]


def test_apache_goes_on_where_we_stopped_and_we_where_apache_stopped(tmp_path: Path) -> None:
    first, second, third = ([b"%s-%d" % (who, n) for n in range(7)] for who in (b"a", b"b", b"c"))
    with ServerProcess(tmp_path) as server, WireClient(server.bootstrap) as client:
        ours = client.topic("shared")
        write(client, ours, first)
    with_apache = ApacheNode(tmp_path)  # the same `data` beneath
    lines = [f"{key}={value}\n" for key, value in with_apache.properties().items()]
    with_apache.properties_file.write_text("".join(lines))
    with_apache.start()
    try:
        with WireClient(with_apache.bootstrap) as client:
            theirs = client.topic("shared")
            assert theirs.topic_id == ours.topic_id
            assert read(client, "shared") == first
            write(client, theirs, second)
    finally:
        with_apache.stop()
    with ServerProcess(tmp_path) as server, WireClient(server.bootstrap) as client:
        again = client.topic("shared")
        assert again.topic_id == ours.topic_id
        assert read(client, "shared") == first + second
        write(client, again, third)
        assert read(client, "shared") == first + second + third


def test_we_go_on_where_apache_was_killed(tmp_path: Path) -> None:
    apache = ApacheNode(tmp_path)
    apache.format()
    apache.start()
    try:
        with WireClient(apache.bootstrap) as client:
            theirs = client.topic("begun")
            write(client, theirs, [b"%d" % number for number in range(12)])
    finally:
        apache.kill()
    with ServerProcess(tmp_path) as server, WireClient(server.bootstrap) as client:
        ours = client.topic("begun")
        assert ours.topic_id == theirs.topic_id
        assert read(client, "begun") == [b"%d" % number for number in range(12)]
        write(client, ours, [b"more"])


def test_a_dynamic_quorum_of_one_goes_from_apache_to_us_and_back(tmp_path: Path) -> None:
    """KIP-853: kraft.version 1, its voters in the formatted checkpoint and then in the log."""
    apache = ApacheNode(tmp_path)
    properties = apache.properties()
    _, _, address = properties.pop("controller.quorum.voters").partition("@")
    properties["controller.quorum.bootstrap.servers"] = address
    lines = [f"{key}={value}\n" for key, value in properties.items()]
    apache.properties_file.write_text("".join(lines))
    arguments = ["format", "--standalone", "-t", CLUSTER_ID, "-c", str(apache.properties_file)]
    assert run_java("kafka.tools.StorageTool", arguments).exit_code == 0
    apache.start()
    try:
        with WireClient(apache.bootstrap) as client:
            write(client, client.topic("dynamic"), [b"a"])
    finally:
        apache.stop()
    with ServerProcess(tmp_path) as server, WireClient(server.bootstrap) as client:
        write(client, client.topic("dynamic"), [b"b"])
        write(client, client.topic("of-ours"), [b"c"])
    apache.start()
    try:
        with WireClient(apache.bootstrap) as client:
            assert read(client, "dynamic") == [b"a", b"b"]
            assert read(client, "of-ours") == [b"c"]
    finally:
        apache.stop()
