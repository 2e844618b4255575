"""`/metrics` in a form that Prometheus's own parser reads."""

import re
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

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
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["kafka_network_requestmetrics_requests_total", "Metadata"] >= 2
    assert values["kafka_server_replicamanager_partitioncount",] == 1
    assert values["kraft_wire_rejections_total", "api_not_served"] == 1
    assert values["kafka_server_socketservermetrics_connection_count",] == 0


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
