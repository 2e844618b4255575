"""`/metrics` in a form that Prometheus's own parser reads."""

import asyncio
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from kraft_wire.cli.server.metrics_endpoint import serve_metrics
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
from tests.quorum_processes import QuorumProcesses
from tests.server.wire_client import WireClient
from tests.server_process import ServerProcess
from tests.waiting import HANG_S


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
