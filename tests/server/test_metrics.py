"""`/metrics` in a form that Prometheus's own parser reads."""

import re
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
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
