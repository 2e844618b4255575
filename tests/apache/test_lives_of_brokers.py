"""Brokers register, live, stop, fall silent: our controller beside Apache's, told the same story.

Answers are compared one by one, and at the end what both metadata logs say of brokers and
partitions, in the versions that they say it in.
"""

from __future__ import annotations

import time
from pathlib import Path
from shutil import rmtree

import pytest

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.alter_configs import (
    AlterableConfig as ReplacedConfig,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsRequest,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsResource as ReplacedResource,
)
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.broker_registration import Feature
from kraft_wire.wire.generated.elect_leaders import ElectLeadersRequest, TopicPartitions
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraft_wire.wire.generated.unregister_broker import UnregisterBrokerRequest
from kraft_wire.wire.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.apache.broker_only import ApacheBroker
from tests.apache.broker_story import Storyteller, recorded
from tests.apache.java_process import run_java
from tests.apache.mixed_quorum import MixedQuorum
from tests.controller.broker_cluster import directory
from tests.quorum_processes import QuorumProcesses
from tests.waiting import HANG_S

pytestmark = pytest.mark.java

SESSION_S = 3.0
SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
MV = "metadata.version"
ELR = "eligible.leader.replicas.version"
MIN_ISR = "min.insync.replicas"
UNSERVED = ("group", "share", "streams", "transaction")
NEWEST = [
    *("--feature", f"{MV}=30"),
    *(word for name in UNSERVED for word in ("--feature", f"{name}.version=0")),
]
LEVELS = {
    "3.9": ["--release-version", "3.9"],
    "4.3": [*NEWEST, "--feature", f"{ELR}=0"],
    "4.3 with eligible leader replicas": [*NEWEST, "--feature", f"{ELR}=1"],
    "4.3 as it comes": [],
}
"""What a cluster is formatted with."""


def feature(name: str, low: int, high: int) -> Feature:
    return Feature(name=name, min_supported_version=low, max_supported_version=high)


def registrations(story: Storyteller) -> None:
    """Who may be a broker."""
    good = feature(MV, 7, 30)
    story.register(101, cluster_id="another")
    story.register(101, is_migrating_zk_broker=True)
    story.register(101, log_dirs=[])
    story.register(101, log_dirs=[Uuid(bytes(15) + b"\x01")])
    story.register(101, log_dirs=[directory(1), directory(1)])
    story.register(101, features=[])
    story.register(101, features=[feature("some.feature", 0, 3)])
    story.register(101, features=[good, feature("some.feature", 1, 3)])
    story.register(101, features=[feature("some.feature", 1, 3)])
    story.register(101, features=[feature(MV, 7, 20)])
    story.register(101, features=[good, feature("kraft.version", 1, 1)])
    for version in range(5):
        story.register(
            101, 10 + version, version=version, log_dirs=[directory(101)] * (version > 1)
        )
    story.register(101, rack="a", features=[good, feature("some.feature", 0, 3)])
    story.register(101, rack="b")
    story.register(102, rack="b", log_dirs=[directory(102), directory(101)])
    story.register(102, rack="b", log_dirs=[directory(102), directory(102, 1)])
    story.register(103)
    story.register(104)


def beginnings(story: Storyteller) -> None:
    """Fenced until they know their registration."""
    story.heartbeat(999)
    story.heartbeat(101, broker_epoch=story.epochs[101] - 1)
    story.heartbeat(101, -1, want_fence=True)
    story.heartbeat(101, 0)
    for version in range(3):
        story.heartbeat(101, want_fence=True, version=version)
    for broker_id in (101, 102, 103, 104):
        story.heartbeat(broker_id)
    story.heartbeat(104, want_fence=True)
    story.register(101, 2)
    story.register(103, rack="c")


def isrs(story: Storyteller) -> None:
    """Leaders change their ISRs."""
    story.create("t", [101, 102, 103], [102, 103, 101], [103, 101, 102])
    story.create("f", [104, 101])
    story.create("v", [104])
    story.create("u", [101])
    story.create("m", [101, 102, 103], min_isr=2)
    story.alter(101, "none", [101], (0, 0))
    story.alter(101, "t", [101], (0, 0), partition=9)
    story.alter(101, "t", [101], (1, 0))
    story.alter(101, "t", [101], (0, 1))
    story.alter(101, "t", [101], (-1, 0))
    story.alter(102, "t", [102], (0, 0))
    story.alter(101, "t", [101], (0, -1))
    story.alter(101, "t", [], (0, 0))
    story.alter(101, "t", [102, 103], (0, 0))
    story.alter(101, "t", [101, 101], (0, 0))
    story.alter(101, "t", [101, 104], (0, 0))
    story.alter(101, "t", [101, 102], (0, 0), recovery=1)
    story.alter(101, "t", [101], (0, 0), recovery=1)
    story.alter(101, "f", [101, 104], (0, 0))
    story.alter(101, "t", [101, 102], (0, 0), broker_epochs=[-1, 7])
    story.alter(999, "t", [101], (0, 0))
    story.alter(101, "t", [101, 102], (0, 0))
    story.alter(101, "t", [101, 102], (0, 1))
    story.alter(101, "t", [101, 102, 103], (0, 1), version=2)
    story.alter(101, "t", [101, 103, 102], (0, 2), version=2)
    story.alter(101, "m", [101, 103], (0, 0))
    story.alter(101, "m", [101], (0, 1))


def elections(story: Storyteller) -> None:
    """Nobody needs one, but for those who have no leader."""
    for kind in (0, 1, 5):
        for version in (1, 2):
            asked = [TopicPartitions(topic=name, partitions=[0, 7]) for name in ("t", "x", "f")]
            request = ElectLeadersRequest(election_type=kind, topic_partitions=asked)
            story.ask(request, version)
    story.ask(ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0])]), 0)


def directories(story: Storyteller) -> None:
    """A broker of two directories says where its replicas are, and one fails."""
    topic = [
        TopicData(
            topic_id=story.topic_ids["t"],
            partitions=[PartitionData(partition_index=number) for number in (0, 1, 8)],
        ),
        TopicData(topic_id=Uuid(b"?" * 16), partitions=[PartitionData(partition_index=0)]),
        TopicData(topic_id=story.topic_ids["u"], partitions=[PartitionData(partition_index=0)]),
    ]
    for where in (directory(102), directory(102, 1)):
        request = AssignReplicasToDirsRequest(
            broker_id=102,
            broker_epoch=story.epochs[102],
            directories=[DirectoryData(id=where, topics=topic)],
        )
        story.ask(request)
    request.broker_epoch -= 1
    story.ask(request)
    story.heartbeat(102, offline_log_dirs=[directory(102, 1), directory(5)])
    story.heartbeat(102, offline_log_dirs=[directory(102, 1)])
    for cordoned in ([directory(103)], [directory(103)], [], []):
        story.heartbeat(103, cordoned_log_dirs=cordoned)
    request.broker_epoch += 1
    request.directories[0].topics = [topic[0]]
    topic[0].partitions = [PartitionData(partition_index=2)]
    story.ask(request)


def reassignments(story: Storyteller) -> None:
    """Replicas come and go, and some of that is taken back."""

    def reassign(
        replicas: list[int] | None, topic: str = "r", number: int = 0, *, may_change: bool = True
    ) -> None:
        asked = ReassignablePartition(partition_index=number, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=[asked])],
            allow_replication_factor_change=may_change,
        )
        story.ask(request, 1 if not may_change else number % 2)
        for asked_for in (None, ["r", "none"]):
            topics = asked_for and [
                ListPartitionReassignmentsTopics(name=name, partition_indexes=[1, 0, 7])
                for name in asked_for
            ]
            story.ask(ListPartitionReassignmentsRequest(topics=topics))

    story.create("r", [101, 103], [103, 101])
    for replicas in ([], [101, 101], [101, 999], [-1]):
        reassign(replicas)
    reassign([101], "none")
    reassign(None, "r", 9)
    reassign(None)
    reassign([101], may_change=False)
    reassign([101, 102], may_change=False)
    reassign([101, 102, 103], may_change=False)
    reassign([102, 103], may_change=False)
    reassign(None)
    reassign([103, 101])
    reassign([101], number=1)
    reassign([102])
    story.alter(101, "r", [101, 103, 102], (0, 4))
    story.alter(101, "r", [101, 103, 102], (0, 5))
    story.alter(101, "r", [101, 103, 102], (1, 4))
    reassign(None)


def ends(story: Storyteller) -> None:
    """Controlled shutdown, silence, a new life, and the end of a registration."""
    story.heartbeat(103, offset=3)
    story.heartbeat(101, want_shut_down=True)
    story.heartbeat(101, want_shut_down=True)
    story.heartbeat(102)
    story.heartbeat(103)
    story.heartbeat(101, want_shut_down=True)
    story.register(101, 3, previous_broker_epoch=story.epochs[101])
    story.pass_time(SESSION_S + 1.5, alive=[102, 103])
    story.register(101, 3, previous_broker_epoch=story.epochs[101])
    story.heartbeat(101)
    everything = story.ask(ElectLeadersRequest(election_type=0, topic_partitions=None), 2)
    story.note_in_order(everything.replica_election_results, "topic")
    story.pass_time(SESSION_S + 1.5, alive=[101, 102])
    story.alter(101, "t", [101, 103], (9, 9))
    story.heartbeat(103)
    story.pass_time(SESSION_S + 1.5, alive=[101, 103])
    story.pass_time(SESSION_S + 1.5, alive=[101])
    story.heartbeat(102)
    story.heartbeat(103, want_shut_down=True)
    story.ask(UnregisterBrokerRequest(broker_id=103))
    story.ask(UnregisterBrokerRequest(broker_id=103))
    story.heartbeat(103)
    story.ask(UnregisterBrokerRequest(broker_id=101))
    story.heartbeat(102, want_fence=True, want_shut_down=True)


class FormattedByApache(MixedQuorum):
    """Directories of either side are formatted by Apache's tool, which knows every feature."""

    def format(self) -> None:
        options, self.format_options = self.format_options, []
        super().format()
        self.format_options = options
        for node_id in self.node_ids:
            side = "apache" if node_id in self.apache_ids else "node"
            rmtree(self.directory / f"{side}-{node_id}")
            properties = {
                **self.properties(node_id),
                "log.dirs": str(self.directory / f"{side}-{node_id}"),
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            }
            file = self.directory / f"format-{node_id}.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
            arguments = ["format", "-t", self.cluster_id, *options, "-c", str(file)]
            done = run_java("kafka.tools.StorageTool", arguments)
            assert done.exit_code == 0, done.text


def set_to(story: Storyteller, kind: int, name: str, key: str, value: str | None) -> None:
    """Set one key of a resource, or delete it."""
    operation = 1 if value is None else 0
    asked = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[asked])
    story.ask(IncrementalAlterConfigsRequest(resources=[resource]))


def settings(story: Storyteller) -> None:
    """`min.insync.replicas` at every level, beside a key that nobody depends on."""

    story.create("e", [101, 102, 103], min_isr=2)
    story.alter(101, "e", [101], (0, 0))
    for kind, name in ((4, ""), (4, "101"), (2, "e"), (2, "none")):
        for key, value in (("log.cleaner.threads", "3"), (MIN_ISR, "3"), (MIN_ISR, "3")):
            set_to(story, kind, name, key, value)
        for key in ("log.cleaner.threads", MIN_ISR, MIN_ISR):
            set_to(story, kind, name, key, None)
    for kind, name in ((4, ""), (4, "101"), (2, "e")):
        for configs in ([ReplacedConfig(name=MIN_ISR, value="2")], []):
            replaced = ReplacedResource(resource_type=kind, resource_name=name, configs=configs)
            story.ask(AlterConfigsRequest(resources=[replaced]))


def features(story: Storyteller) -> None:
    """Levels go up and down, as far as everybody supports them."""
    set_to(story, 4, "102", MIN_ISR, "2")
    for name, level in (
        (ELR, 1),
        (ELR, 2),
        (ELR, 0),
        ("group.version", 1),
        ("transaction.version", 2),
        ("transaction.version", 3),
        ("share.version", -1),
        ("some.feature", 0),
        ("some.feature", 1),
        ("no.feature", 0),
    ):
        for kind in (1, 2, 3):
            update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for version in (1, 2):
                request = UpdateFeaturesRequest(feature_updates=[update], timeout_ms=10_000)
                story.ask(request, version)
    settings(story)


CHAPTERS = (
    registrations,
    beginnings,
    isrs,
    settings,
    elections,
    directories,
    reassignments,
    ends,
    features,
)


@pytest.mark.parametrize("level", LEVELS)
def test_same_story_gets_the_same_answers_and_leaves_the_same_records(
    level: str, tmp_path: Path
) -> None:
    told: list[list[str]] = []
    written: list[list[str]] = []
    for name, apache_ids in (("apache", [1]), ("ours", [])):
        (tmp_path / name).mkdir()
        quorum = FormattedByApache(tmp_path / name, apache_ids, 1)
        quorum.format_options = LEVELS[level]
        quorum.overrides.update(SESSIONS)
        with quorum:
            quorum.leader()
            with Storyteller(quorum.controller(1), quorum.cluster_id) as story:
                for chapter in CHAPTERS:
                    chapter(story)
        told.append(story.told())
        written.append(recorded(quorum.metadata_log(1), story.topic_ids))
    assert [pair for pair in zip(*told, strict=True) if pair[0] != pair[1]] == []
    assert written[1] == written[0]
    assert len(written[0]) > 40


def test_apache_broker_lives_on_our_controller(tmp_path: Path) -> None:
    """It reaches RUNNING, has topics created, takes and gives records, stops, and comes back."""
    (tmp_path / "ours").mkdir()
    with QuorumProcesses(tmp_path / "ours", 1) as quorum:
        quorum.leader()
        voters = f"1@{quorum.controller(1)}"
        broker = ApacheBroker(tmp_path / "apache", 101, cluster_id=quorum.cluster_id, voters=voters)
        broker.format()
        address = ["--bootstrap-server", broker.bootstrap]
        broker.start()
        try:
            create = ["--create", "--topic", "t", "--partitions", "3", "--replication-factor", "1"]
            assert (
                run_java("org.apache.kafka.tools.TopicCommand", [*address, *create]).exit_code == 0
            )
            load = ["--topic", "t", "--num-records", "1000", "--record-size", "100"]
            load += ["--throughput", "-1", "--command-property", "acks=all"]
            done = run_java("org.apache.kafka.tools.ProducerPerformance", [*address, *load])
            assert "1000 records sent" in done.stdout, done.text
            broker.restart()
            read = ["--topic", "t", "--num-records", "1000", "--timeout", "30000"]
            done = run_java("org.apache.kafka.tools.ConsumerPerformance", [*address, *read])
            assert ", 1000, " in done.stdout, done.text
        finally:
            broker.stop()
        log = broker.log.read_text(errors="replace")
        assert " ERROR " not in log, log


def tool(name: str, brokers: list[ApacheBroker], *arguments: str) -> str:
    """What one of Apache's tools says, which must not fail."""
    address = ",".join(each.bootstrap for each in brokers)
    done = run_java(f"org.apache.kafka.tools.{name}", ["--bootstrap-server", address, *arguments])
    assert done.exit_code == 0, done.text
    return done.stdout


def isrs_of(brokers: list[ApacheBroker], topic: str) -> list[set[str]]:
    """The ISR of each partition."""
    told = tool("TopicCommand", brokers, "--describe", "--topic", topic)
    lines = [line for line in told.splitlines() if "Isr: " in line]
    return [set(line.partition("Isr: ")[2].split("\t")[0].split(",")) for line in lines]


def await_isrs(brokers: list[ApacheBroker], topic: str, members: set[str]) -> None:
    deadline = time.monotonic() + HANG_S
    while (found := isrs_of(brokers, topic)) != [members] * len(found):
        assert time.monotonic() < deadline, found


def test_two_apache_brokers_outlive_our_active_controller_and_each_other(tmp_path: Path) -> None:
    """On three controllers of ours: the active one is killed, then a broker; nothing is lost."""
    (tmp_path / "ours").mkdir()
    with QuorumProcesses(tmp_path / "ours", 3) as quorum:
        quorum.leader()
        voters = ",".join(f"{each}@{quorum.controller(each)}" for each in quorum.node_ids)
        brokers = [
            ApacheBroker(
                tmp_path / str(node_id),
                node_id,
                cluster_id=quorum.cluster_id,
                voters=voters,
                overrides={"offsets.topic.replication.factor": "2"},
            )
            for node_id in (101, 102)
        ]
        load = ["--topic", "t", "--num-records", "1000", "--record-size", "100"]
        load += ["--throughput", "-1", "--command-property", "acks=all"]
        create = ["--create", "--partitions", "4", "--replication-factor", "2", "--topic"]
        try:
            for each in brokers:
                each.format()
                each.start()
            tool("TopicCommand", brokers, *create, "t")
            assert "1000 records sent" in tool("ProducerPerformance", brokers, *load)
            quorum.kill(quorum.leader())
            tool("TopicCommand", brokers, *create, "u")
            brokers[1].kill()
            await_isrs(brokers[:1], "t", {"101"})
            assert "1000 records sent" in tool("ProducerPerformance", brokers, *load)
            brokers[1].start()
            await_isrs(brokers, "t", {"101", "102"})
            read = ["--topic", "t", "--num-records", "2000", "--timeout", "30000"]
            assert ", 2000, " in tool("ConsumerPerformance", brokers, *read)
        finally:
            for each in brokers:
                each.stop()
        for each in brokers:
            assert " ERROR " not in each.log.read_text(errors="replace"), each.node_id
