"""Apache's console consumers of each kind of group, while one broker after the other restarts.

A producer writes a record every few milliseconds; each tool is in a group of its own. Whatever was
acknowledged is printed by each of them, at least once.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.apache.java_process import java_command
from tests.apache.tools import MAIN_CLASSES, run_tool
from tests.clients.cluster import BROKERS, Cluster
from tests.mixed.controller import OURS

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(600)]

TOPIC = "printed"
RESTART_EVERY_S = 5.0
WRITING_S = 30.0
PAUSE_S = 0.05
IDLE_MS = "20000"
"""Without a record for so long a tool ends."""
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "6",
}
TOOLS = {
    "classic": ("kafka-console-consumer", "--from-beginning"),
    "consumer": (
        *("kafka-console-consumer", "--from-beginning"),
        *("--command-property", "group.protocol=consumer"),
    ),
    "share": ("kafka-console-share-consumer",),
}
"""By the kind of its group, a tool and its options."""


def test_console_consumers_print_every_record_while_brokers_restart(tmp_path: Path) -> None:
    with Cluster(tmp_path, OURS, overrides=SETTINGS) as cluster:
        cluster.create_topic(TOPIC, 6)
        server = ["--bootstrap-server", cluster.bootstrap]
        earliest = ["--alter", "--entity-type", "groups", "--entity-name", "share"]
        earliest += ["--add-config", "share.auto.offset.reset=earliest"]
        assert run_tool("kafka-configs", [*server, *earliest]).exit_code == 0
        with cluster.restarting(RESTART_EVERY_S):
            tools = {kind: started(cluster.bootstrap, kind, tmp_path) for kind in TOOLS}
            try:
                written = write_for_a_while(cluster.bootstrap)
                codes = {kind: tool.wait(timeout=240) for kind, tool in tools.items()}
            finally:
                for tool in tools.values():
                    tool.kill()
        assert cluster.restarts >= len(BROKERS)
    printed = {kind: (tmp_path / kind).read_text().split() for kind in TOOLS}
    missing = {kind: sorted(set(written) - set(lines))[:9] for kind, lines in printed.items()}
    assert missing == {kind: [] for kind in TOOLS}, codes
    assert {kind: set(lines) - set(written) for kind, lines in printed.items()} == {
        kind: set() for kind in TOOLS
    }


def started(bootstrap: str, kind: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start the tool of a kind of group, which prints into a file with the name of the kind."""
    name, *options = TOOLS[kind]
    arguments: Sequence[str] = [
        *("--bootstrap-server", bootstrap, "--topic", TOPIC, "--group", kind),
        *("--timeout-ms", IDLE_MS, *options),
    ]
    command = java_command(MAIN_CLASSES[name], arguments)
    with (folder / kind).open("wb") as out, (folder / f"{kind}.err").open("wb") as err:
        return subprocess.Popen(command, stdout=out, stderr=err)


def write_for_a_while(bootstrap: str) -> list[str]:
    """Write records one after the other, each acknowledged by the ISR; return their values."""
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    written = []
    end_s = time.monotonic() + WRITING_S
    while time.monotonic() < end_s:
        value = f"v{len(written)}"
        producer.produce(
            TOPIC, value, on_delivery=lambda error, _: failed.append(error) if error else None
        )
        producer.poll(0)
        written.append(value)
        time.sleep(PAUSE_S)
    assert producer.flush(60) == 0
    assert not failed, failed
    return written
