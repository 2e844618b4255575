"""`/metrics` in a form that Prometheus's own parser reads."""

import asyncio
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kraft_wire.cli.server.metrics_endpoint import serve_metrics
from kraft_wire.node.events.catalogue import EVENTS
from kraft_wire.node.metrics.request_figures import (
    BUCKETS_SECONDS,
    ApiFigures,
    RequestFigures,
)
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.fetch import FetchResponse
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.produce import ProduceResponse
from tests.quorum_processes import QuorumProcesses
from tests.server.test_quirks import fetch_request
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.server_process import ServerProcess
from tests.waiting import HANG_S, until


def test_metrics_are_served_where_they_were_asked_for(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, overrides={"metrics.port": "-1"}) as server:
        with WireClient(server.bootstrap) as client:
            client.topic("measured")
            client.call(MetadataRequest(topics=[]), 12, MetadataResponse)
            client.send_frame(b"\x7f\xff" + bytes(8))
            assert client.is_closed()
        found = re.search(r"address=(http://\S+)", server.log.read_text())
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=HANG_S) as answer:
            text = answer.read().decode()
        for path in ("health", "ready"):
            address = found[1].replace("metrics", path)
            with urllib.request.urlopen(address, timeout=HANG_S) as answer:
                assert (answer.status, answer.read()) == (200, b"ok\n")
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["kafka_network_requestmetrics_requests_total", "Metadata"] >= 2
    assert values["kafka_server_replicamanager_partitioncount",] == 1
    assert values["kraft_wire_rejections_total", "api_not_served"] == 1
    assert values["kafka_server_socketservermetrics_connection_count",] == 0
    assert values["process_resident_memory_bytes",] > 1_000_000


async def test_node_that_does_not_serve_is_healthy_and_not_ready() -> None:
    host: Any = None  # only metrics look at it
    server = await serve_metrics(host, "127.0.0.1", 0, lambda: False)
    port = server.sockets[0].getsockname()[1]

    async def answer(path: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        answered = await reader.read()
        writer.close()
        return answered

    assert (await answer("/ready")).startswith(b"HTTP/1.1 503 ")
    assert (await answer("/health")).startswith(b"HTTP/1.1 200 ")
    server.close()
    await server.wait_closed()


def test_log_as_json_has_an_object_for_each_event(tmp_path: Path) -> None:
    class JsonServer(ServerProcess):
        def arguments(self) -> list[str]:
            return [*super().arguments(), "--log-format", "json"]

    server = JsonServer(tmp_path, overrides={"metrics.port": "-1"})
    with server, WireClient(server.bootstrap) as client:
        client.send_frame(b"\x7f\xff" + bytes(8))
        assert client.is_closed()
    lines = server.log.read_text().splitlines()
    events = [json.loads(line) for line in lines if not line.startswith("kraft-wire: ")]
    assert {"metrics", "rejected", "stopping"} <= {each["event"] for each in events}
    assert all(each["time_ms"] > 1_700_000_000_000 for each in events)
    assert all(each["component"] == EVENTS[each["event"]].component for each in events)
    assert {each["level"] for each in events} == {"INFO", "WARN"}
    (rejected,) = [each for each in events if each["event"] == "rejected"]
    assert (rejected["reason"], rejected["action"]) == ("api_not_served", "close")


def test_controller_alone_tells_of_its_quorum(tmp_path: Path) -> None:
    with QuorumProcesses(tmp_path, size=1, overrides={"metrics.port": "-1"}) as quorum:
        assert quorum.leader() == 1
        found = re.search(r"address=(http://\S+)", quorum.log(1))
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=HANG_S) as answer:
            text = answer.read().decode()
    values = {
        sample.name: (sample.value, *sample.labels.values())
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["kafka_server_raft_metrics_current_state"] == (1, "leader")
    assert values["kafka_server_raft_metrics_current_leader"] == (1,)
    assert values["kafka_controller_kafkacontroller_activecontrollercount"] == (1,)
    assert values["kafka_server_metadataloader_handleloadsnapshotcount"] == (0,)
    assert not [name for name in values if "fetchsession" in name], "it is no broker"


def is_committed(client: WireClient, group_id: str, topic: str, offset: int) -> bool:
    """Commit an offset of partition 0 without membership; false while there is no coordinator."""
    client.call(FindCoordinatorRequest(coordinator_keys=[group_id]), 4, FindCoordinatorResponse)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    named = OffsetCommitRequestTopic(name=topic, partitions=[partition])
    request = OffsetCommitRequest(group_id=group_id, topics=[named])
    done = client.call(request, 8, OffsetCommitResponse)
    return done.topics[0].partitions[0].error_code == 0


def scraped(server: ServerProcess) -> dict[tuple[str, ...], float]:
    """Return each sample of a server by name and label values, ordered by the labels' names."""
    found = re.search(r"address=(http://\S+)", server.log.read_text())
    assert found is not None
    with urllib.request.urlopen(found[1], timeout=HANG_S) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_traffic_latency_logs_and_lag_are_those_of_the_client(tmp_path: Path) -> None:
    batch = one_batch(b"x" * 1_000)
    with ServerProcess(tmp_path, overrides={"metrics.port": "-1"}) as server:
        with WireClient(server.bootstrap) as client:
            topic = client.topic("measured")
            for _ in range(3):
                client.call(produce_request(topic, batch), 9, ProduceResponse)
            for offset in (0, 2):
                fetched = client.call(fetch_request("measured", offset), 12, FetchResponse)
                assert fetched.responses[0].partitions[0].error_code == 0
            until(lambda: is_committed(client, "billing", "measured", 1))
        values = scraped(server)
    produced_bytes = values["kafka_server_brokertopicmetrics_bytesin_total", "measured"]
    assert produced_bytes == values["kafka_log_log_size", "0", "measured"] == 3 * len(batch)
    assert values["kafka_server_brokertopicmetrics_messagesin_total", "measured"] == 3
    assert values["kafka_log_log_logendoffset", "0", "measured"] == 3
    assert values["kafka_server_brokertopicmetrics_bytesout_total",] == 4 * len(batch)
    assert values["kraft_wire_request_bytes_total", "Produce"] > 3 * len(batch)
    assert values["kraft_wire_response_bytes_total", "Fetch"] > 4 * len(batch)
    name = "kraft_wire_request_duration_seconds"
    assert values[f"{name}_count", "Produce"] == values[f"{name}_bucket", "Produce", "+Inf"] == 3
    shorter = [values[f"{name}_bucket", "Produce", str(each)] for each in BUCKETS_SECONDS]
    assert shorter == sorted(shorter), "buckets are cumulative"
    assert 0 < values[f"{name}_sum", "Produce"] < HANG_S
    assert values["kafka_consumergroup_lag", "billing", "0", "measured"] == 2
    assert values["kafka_consumergroup_current_offset", "billing", "0", "measured"] == 1
    assert values["kraft_wire_log_directory_free_bytes", str(server.data)] > 0


def test_rates_of_quotas_are_measured_at_the_time_of_the_scrape(tmp_path: Path) -> None:
    """The meters count by the monotonic clock: by the wall clock every sample would be too old."""
    with ServerProcess(tmp_path, overrides={"metrics.port": "-1"}) as server:
        with WireClient(server.bootstrap) as client:
            topic = client.topic("measured")
            op = OpData(key="producer_byte_rate", value=1.0)
            entity = [EntityData(entity_type="client-id", entity_name=None)]
            request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[op])])
            client.call(request, 1, AlterClientQuotasResponse)
            until(lambda: throttled_ms(client, topic) > 0)
        values = scraped(server)
    rates = {name[0]: value for name, value in values.items() if "byte_rate" in name[0]}
    assert rates["kafka_server_produce_byte_rate"] > 100 / 11
    times = {name[0]: value for name, value in values.items() if "throttle_time" in name[0]}
    assert times["kafka_server_produce_throttle_time"] > 0


def throttled_ms(client: WireClient, topic: MetadataResponseTopic) -> int:
    """Produce a hundred bytes; return the throttle time of the answer."""
    request = produce_request(topic, one_batch(b"x" * 100))
    answer: ProduceResponse = client.call(request, 9, ProduceResponse)
    return answer.throttle_time_ms


@pytest.mark.parametrize(("seconds", "bucket"), [(0.0005, 0), (0.000_501, 1), (30.0, 14), (31, 15)])
def test_bucket_holds_its_upper_bound(seconds: float, bucket: int) -> None:
    figures = ApiFigures("Produce")
    figures.note(seconds, 7)
    assert figures.buckets.index(1) == bucket
    assert sum(figures.buckets) == 1
    assert figures.response_bytes == 7


def test_key_of_no_api_makes_no_entry_of_its_own() -> None:
    figures = RequestFigures()
    for key in (0, 900, 901, 902):
        figures.of_frame(bytearray(key.to_bytes(2, "big")) + b"abc")
    figures.of_frame(bytearray())
    assert [(each.name, each.request_bytes) for each in figures] == [("Produce", 5), ("-", 15)]
