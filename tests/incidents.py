"""`python -m tests.incidents`: the three incidents of docs/OPERATING.md, run with real processes.

Each returns the log of the nodes that an operator would read, and samples of their metrics. The
test beside it compares the page's lines with what is returned.
"""

import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.produce import ProduceResponse
from tests.quorum_processes import QuorumProcesses
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.server_process import ServerProcess
from tests.small_disk import small_disk
from tests.waiting import HANG_S, until

__all__ = ["INCIDENTS", "Samples", "exposition", "slow_follower"]

TOPIC = "orders"
QUICK = {
    "metrics.port": "-1",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
}
Samples = dict[str, float]
"""Samples of metrics by name, labels in braces."""


def leader_killed(directory: Path) -> tuple[str, Samples]:
    """Kill the node that leads the quorum and the only partition; return a survivor's log."""
    settings = {**QUICK, "broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500"}
    quorum = QuorumProcesses(directory, is_combined=True, overrides=settings)
    with quorum:
        leader = quorum.leader()
        survivor = next(each for each in quorum.node_ids if each != leader)
        create(quorum.client(survivor), replicas=[leader, *others(quorum, leader)])
        until(lambda: isr_size(quorum.client(survivor)) == 3)
        quorum.kill(leader)
        moved = f"partition_leader_changed partition={TOPIC}-0"
        until(lambda: moved in quorum.log(survivor), lambda: quorum.log(survivor))
        next_leader = quorum.leader(other_than=leader)
        until(lambda: "broker_fenced" in quorum.log(next_leader))
        return quorum.log(next_leader), metrics(quorum.log(next_leader))


def disk_full(directory: Path) -> tuple[str, Samples]:
    """Fill a node's disk, then make room; return its log."""
    with small_disk(directory / "disk", mebibytes=96) as disk:
        server = ServerProcess(directory, overrides={"metrics.port": "-1"})
        server.data = disk / "data"
        with server:
            with WireClient(server.bootstrap) as client:
                topic = client.topic(TOPIC)
                batch = one_batch(bytes(900_000))

                def is_refused() -> bool:
                    answer = client.call(produce_request(topic, batch), 9, ProduceResponse)
                    return answer.responses[0].partition_responses[0].error_code != 0

                until(is_refused)
                until(is_refused)
            samples = metrics(server.text)
            until(lambda: "log_directory_full" in server.text)
            # The administrator makes room: here by a larger disk.
            remount(disk, mebibytes=256)
            until(lambda: "log_directory_has_room" in server.text, lambda: server.text)
            return server.text, samples


def slow_follower(
    directory: Path, *, during: Callable[[str], object] = lambda log: None
) -> tuple[str, Samples]:
    """Stop a follower's process for some seconds; return the log of the partition's leader.

    `during` is called with that log while the follower is out of the ISR.
    """
    settings = {
        **QUICK,
        "replica.lag.time.max.ms": "2000",
        "broker.session.timeout.ms": "60000",
        "slow.operation.ms": "500",
    }
    quorum = QuorumProcesses(directory, is_combined=True, overrides=settings)
    with quorum:
        leader = quorum.leader()
        follower = others(quorum, leader)[0]
        create(quorum.client(leader), replicas=[leader, *others(quorum, leader)])
        until(lambda: isr_size(quorum.client(leader)) == 3)
        quorum.nodes[follower].pause()
        with WireClient(quorum.client(leader)) as client:
            topic = client.topic(TOPIC)
            client.call(produce_request(topic, one_batch(b"x")), 9, ProduceResponse)
        until(lambda: "isr_shrunk" in quorum.log(leader), lambda: quorum.log(leader))
        samples = metrics(quorum.log(leader))
        during(quorum.log(leader))
        quorum.nodes[follower].resume()
        until(lambda: "isr_expanded" in quorum.log(leader), lambda: quorum.log(leader))
        return quorum.log(leader), samples


INCIDENTS: Mapping[str, Callable[[Path], tuple[str, Samples]]] = {
    "A leader is killed": leader_killed,
    "A disk is full": disk_full,
    "A follower is slow": slow_follower,
}
"""By the headings of the page."""


def others(quorum: QuorumProcesses, node_id: int) -> list[int]:
    return [each for each in quorum.node_ids if each != node_id]


def create(bootstrap: str, replicas: list[int]) -> None:
    """Create a topic of one partition, whose first replica leads; again until all are there."""
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
    topic = CreatableTopic(
        name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=[assignment]
    )

    def is_created() -> bool:
        with WireClient(bootstrap) as client:
            request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
            answer = client.call(request, 7, CreateTopicsResponse)
        return answer.topics[0].error_code in (0, 36)

    until(is_created)


def isr_size(bootstrap: str) -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    with WireClient(bootstrap) as client:
        topic = client.call(request, 12, MetadataResponse).topics[0]
    return len(topic.partitions[0].isr_nodes) if topic.partitions else 0


def exposition(log: str) -> str:
    """Scrape the node that wrote a log."""
    found = re.findall(r"server metrics address=(http://\S+)", log)
    with urllib.request.urlopen(found[-1], timeout=HANG_S) as answer:
        return str(answer.read().decode())


def metrics(log: str) -> Samples:
    """Return the samples of the node that wrote a log."""
    text = exposition(log)
    return {
        sample.name + _labels(sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _labels(labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return "{" + shown + "}" if shown else ""


def remount(place: Path, *, mebibytes: int) -> None:
    """Make a small disk larger."""
    options = f"remount,size={mebibytes}M"
    subprocess.run(["mount", "-o", options, str(place)], check=True)


def main() -> int:
    """Run each incident, and print its log from the first unusual line on, and gauges not 0."""
    for title, incident in INCIDENTS.items():
        with tempfile.TemporaryDirectory() as directory:
            log, samples = incident(Path(directory))
        print(f"## {title}\n")
        print("\n".join(each for each in log.splitlines() if not each.startswith("kraft-wire")))
        print("\n".join(f"{name} {value:g}" for name, value in samples.items() if value))
    return 0


if __name__ == "__main__":
    sys.exit(main())
