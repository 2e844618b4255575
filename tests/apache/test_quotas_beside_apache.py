"""The same load under the same quota, at Apache Kafka 4.3.1 and at our node.

A first burst has the same throttle time to the millisecond. A longer load, sent without pauses, is
held to the same rate within 10 %, by throttle times of the same sizes. Both nodes take their loads
at once: they are throttled, and leave the processors to each other.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import mean, median
from typing import NamedTuple

import pytest

from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kraft_wire.wire.generated.metadata import MetadataResponseTopic
from kraft_wire.wire.generated.produce import ProduceResponse
from tests.apache.node import ApacheNode
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.server_process import ServerProcess
from tests.waiting import until

PRODUCE, FETCH = 9, 12
WINDOWS = {"quota.window.num": "3", "num.partitions": "1"}
LOAD_S = 20.0
BOUND = 100_000
BATCH = one_batch(b"v" * 30_000)


class Measured(NamedTuple):
    """What a load has shown."""

    bytes_per_second: float
    throttle_times_ms: list[int]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with (
        ApacheNode(tmp_path_factory.mktemp("apache"), overrides=WINDOWS) as apache,
        ServerProcess(tmp_path_factory.mktemp("ours"), overrides=WINDOWS) as ours,
    ):
        yield [apache.bootstrap, ours.bootstrap]


def set_quota(bootstrap: str, client_id: str, key: str, value: float) -> None:
    """Set a quota of a client id, and wait until it is there."""
    entity = [EntityData(entity_type="client-id", entity_name=client_id)]
    entry = EntryData(entity=entity, ops=[OpData(key=key, value=value)])
    with WireClient(bootstrap) as client:
        answer = client.call(
            AlterClientQuotasRequest(entries=[entry]), 1, AlterClientQuotasResponse
        )
        assert answer.entries[0].error_code == 0, answer


def new_topic(client: WireClient, name: str, records: bytes | None, count: int) -> None:
    """Fill a new topic before there are quotas for it."""
    topic = client.topic(name)
    for _ in range(count):
        assert produced(client, topic, records).throttle_time_ms == 0


def produced(
    client: WireClient, topic: MetadataResponseTopic, records: bytes | None
) -> ProduceResponse:
    """Produce a batch as soon as the topic has its leader."""

    def done() -> ProduceResponse | None:
        answer = client.call(produce_request(topic, records, acks=1), PRODUCE, ProduceResponse)
        is_done = answer.responses[0].partition_responses[0].error_code == 0
        return answer if is_done else None

    answer = until(done, every_s=0.1)
    assert answer is not None
    return answer


def fetched(client: WireClient, topic: str, max_bytes: int = 1 << 20) -> FetchResponse:
    partition = FetchPartition(partition=0, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    return client.call(request, FETCH, FetchResponse)


def produce_load(bootstrap: str, name: str) -> Measured:
    """Produce without pauses; the node alone holds the rate."""
    with WireClient(bootstrap, client_id=name) as client:
        topic = client.topic(name)
        produced(client, topic, BATCH)
        set_quota(bootstrap, name, "producer_byte_rate", BOUND)
        until(lambda: produced(client, topic, BATCH).throttle_time_ms > 0, every_s=0)
        began, count, times_ms = time.monotonic(), 0, []
        while time.monotonic() < began + LOAD_S:
            times_ms.append(produced(client, topic, BATCH).throttle_time_ms)
            count += len(BATCH)
        return Measured(count / (time.monotonic() - began), times_ms)


def fetch_load(bootstrap: str, name: str) -> Measured:
    """Fetch 30 KB without pauses."""
    with WireClient(bootstrap, client_id=name) as client:
        new_topic(client, name, BATCH, 1)
        set_quota(bootstrap, name, "consumer_byte_rate", BOUND)
        until(lambda: fetched(client, name).throttle_time_ms > 0, every_s=0)
        began, count, times_ms = time.monotonic(), 0, []
        while time.monotonic() < began + LOAD_S:
            answer = fetched(client, name)
            times_ms.append(answer.throttle_time_ms)
            if answer.responses:
                count += len(answer.responses[0].partitions[0].records or b"")
        return Measured(count / (time.monotonic() - began), times_ms)


def compare(apache: Measured, ours: Measured) -> None:
    """Compare rates, the share of throttled answers, and the usual size of a throttle time."""
    print(f"rates {apache.bytes_per_second:.0f} {ours.bytes_per_second:.0f} B/s")
    for each in (apache, ours):
        print(len(each.throttle_times_ms), sorted(each.throttle_times_ms))
    assert ours.bytes_per_second == pytest.approx(apache.bytes_per_second, rel=0.1)
    shares = [mean(time > 0 for time in each.throttle_times_ms) for each in (apache, ours)]
    assert shares[1] == pytest.approx(shares[0], abs=0.15)
    sizes = [median(filter(None, each.throttle_times_ms)) for each in (apache, ours)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.alone
def test_produced_bytes_are_held_to_the_same_rate(servers: list[str]) -> None:
    """SEC-QUOTA-06, SEC-QUOTA-08: 30 KB a request under 100 KB/s."""
    with ThreadPoolExecutor() as both:
        compare(*both.map(partial(produce_load, name="load"), servers))


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.alone
def test_fetched_bytes_are_held_to_the_same_rate(servers: list[str]) -> None:
    """SEC-QUOTA-06, SEC-QUOTA-09: 30 KB an answer under 100 KB/s."""
    with ThreadPoolExecutor() as both:
        compare(*both.map(partial(fetch_load, name="fetches"), servers))


@pytest.mark.java
def test_first_burst_has_the_same_throttle_time_to_the_millisecond(servers: list[str]) -> None:
    """SEC-QUOTA-07: of a Produce by its request, of a Fetch by its answer."""
    times_ms = []
    for bootstrap in servers:
        with WireClient(bootstrap, client_id="burst") as client:
            new_topic(client, "burst", BATCH, 1)
            topic = client.topic("burst")
            set_quota(bootstrap, "burst", "producer_byte_rate", 12_345)
            set_quota(bootstrap, "burst", "consumer_byte_rate", 1_234)
            wait_for_quotas(bootstrap)
            produce_ms = produced(client, topic, BATCH).throttle_time_ms
            answer = fetched(client, "burst")
            assert (answer.responses, answer.session_id) == ([], 0)
            times_ms.append((produce_ms, answer.throttle_time_ms))
    assert times_ms[0] == times_ms[1]
    assert min(times_ms[0]) > 100


def wait_for_quotas(bootstrap: str) -> None:
    """Wait until a later quota has effect: Apache's broker applies them after the answer."""
    set_quota(bootstrap, "probe", "producer_byte_rate", 1)
    with WireClient(bootstrap, client_id="probe") as client:
        topic = client.topic("burst")

        def is_throttled() -> bool:
            return produced(client, topic, one_batch(b"v")).throttle_time_ms > 0

        until(is_throttled, every_s=0.1)


def wait_for_quotas_on_topics(bootstrap: str) -> None:
    """Wait until a later quota on changes of topics has effect."""
    set_quota(bootstrap, "prober", "controller_mutation_rate", 0.001)
    topic = CreatableTopic(name="never", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000, validate_only=True)

    def is_throttled() -> bool:
        with WireClient(bootstrap, client_id="prober") as client:
            return client.call(request, 5, CreateTopicsResponse).throttle_time_ms > 0

    until(is_throttled, every_s=0.1)


@pytest.mark.java
def test_topics_beyond_the_quota_have_the_same_errors(servers: list[str]) -> None:
    """SEC-QUOTA-15, SEC-QUOTA-16: 12 partitions overdraw the bucket; then strict, permissive."""
    rows = []
    for bootstrap in servers:
        set_quota(bootstrap, "admin", "controller_mutation_rate", 0.001)
        wait_for_quotas_on_topics(bootstrap)
        row: list[object] = []
        for version, names in ((6, "ab"), (7, "cd"), (5, "e")):
            wanted = [
                CreatableTopic(name=f"quota-{name}", num_partitions=12, replication_factor=1)
                for name in names
            ]
            with WireClient(bootstrap, client_id="admin") as client:
                answer = client.call(
                    CreateTopicsRequest(topics=wanted, timeout_ms=60_000),
                    version,
                    CreateTopicsResponse,
                )
            by_name = {each.name: (each.error_code, each.error_message) for each in answer.topics}
            row += [by_name, answer.throttle_time_ms > 0]
        rows.append(row)
    assert rows[0] == rows[1]
    assert rows[0][0]["quota-b"] == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)
