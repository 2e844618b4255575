"""`/metrics` in a form that Prometheus's own parser reads."""

import re
import socket
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
from tests.quorum_processes import QuorumProcesses
from tests.server.wire_client import WireClient
from tests.server_process import ServerProcess


def test_metrics_are_served_where_they_were_asked_for(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, overrides={"metrics.port": "-1"}) as server:
        with WireClient(server.bootstrap) as client:
            client.topic("measured")
            client.call(MetadataRequest(topics=[]), 12, MetadataResponse)
            client.send_frame(b"\x7f\xff" + bytes(8))
            assert client.is_closed()
        found = re.search(r"address=(http://\S+)", server.log.read_text())
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=10) as answer:
            text = answer.read().decode()
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["kafka_network_requestmetrics_requests_total", "Metadata"] >= 2
    assert values["kafka_server_replicamanager_partitioncount",] == 1
    assert values["kraft_wire_rejections_total", "api_not_served"] == 1
    assert values["kafka_server_socketservermetrics_connection_count",] == 0


def test_whoever_asks_for_metrics_without_end_is_closed_and_others_are_answered(
    tmp_path: Path,
) -> None:
    with ServerProcess(tmp_path, overrides={"metrics.port": "-1"}) as server:
        found = re.search(r"address=http://([\d.]+):(\d+)", server.log.read_text())
        assert found is not None
        address = found[1], int(found[2])
        with (
            socket.create_connection(address, timeout=10) as endless,
            socket.create_connection(address, timeout=10) as silent,
            socket.create_connection(address, timeout=10) as patient,
        ):
            with suppress(ConnectionError):
                endless.sendall(bytes(8_193))
                assert endless.recv(1) == b""
            for piece in (b"GET / HT", b"TP/1.1\r\n\r", b"\n"):
                patient.sendall(piece)
                time.sleep(0.01)
            answer = b"".join(iter(lambda: patient.recv(65_536), b""))
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert f"Content-Length: {len(body)}\r\n".encode() in head
            assert b"kraft_wire_rejections" in body
            assert silent.recv(1) == b"", "five seconds without a question"


def test_controller_alone_tells_of_its_quorum(tmp_path: Path) -> None:
    with QuorumProcesses(tmp_path, size=1, overrides={"metrics.port": "-1"}) as quorum:
        assert quorum.leader() == 1
        found = re.search(r"address=(http://\S+)", quorum.log(1))
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=10) as answer:
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
