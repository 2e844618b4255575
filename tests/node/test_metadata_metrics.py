"""What a node shows of its metadata, and that Apache's classes have a metric of every such name."""

import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace

import pytest

from kraft_wire.node.metrics.node_metrics import node_metrics
from kraft_wire.node.quorum.committed import CommittedMetadata
from tests.apache.jars import jar_directory
from tests.broker.small_broker import broker_image, image_of, partition_image
from tests.node.quorum import NodeQuorum
from tests.node.test_three_controllers import committed

CONTROLLER = "kafka_controller_kafkacontroller_"
LOADER = "kafka_server_metadataloader_"
EMITTER = "kafka_server_snapshotemitter_"
BROKER = "kafka_server_broker_metadata_metrics_"
RAFT = "kafka_server_raft_metrics_"
CLASSES = {
    CONTROLLER: (
        "org/apache/kafka/controller/metrics/QuorumControllerMetrics",
        "org/apache/kafka/controller/metrics/ControllerMetadataMetrics",
    ),
    LOADER: ("org/apache/kafka/image/loader/metrics/MetadataLoaderMetrics",),
    EMITTER: ("org/apache/kafka/image/publisher/metrics/SnapshotEmitterMetrics",),
    BROKER: ("org/apache/kafka/server/metrics/BrokerServerMetrics",),
    RAFT: ("org/apache/kafka/raft/internals/KafkaRaftMetrics",),
}


def shown(quorum: NodeQuorum, node_id: int) -> dict[str, Mapping[str, float]]:
    running = quorum.members[node_id].running
    wall_ms = quorum.clocks[1]
    return {family.name: family.values for family in node_metrics(running, wall_ms)}


def numbers(quorum: NodeQuorum, node_id: int, *names: str) -> list[float]:
    found = shown(quorum, node_id)
    return [found[name][""] for name in names]


def test_one_controller_is_active_and_all_know_which() -> None:
    quorum = NodeQuorum()
    leader = quorum.elect()
    quorum.level()
    for node_id in quorum.voters:
        active, known = numbers(
            quorum, node_id, f"{CONTROLLER}activecontrollercount", f"{LOADER}currentcontrollerid"
        )
        assert (active, known) == (node_id == leader, leader)


def test_leaders_are_counted_once_each() -> None:
    quorum = NodeQuorum()
    first = quorum.elect()
    name = f"{CONTROLLER}newactivecontrollerscount"
    before = {node_id: numbers(quorum, node_id, name) for node_id in quorum.voters}
    assert set(map(tuple, before.values())) == {(1,)}
    quorum.kill(first)
    second = quorum.elect()
    quorum.advance(3_000)
    assert numbers(quorum, second, name) == [2]


def test_what_is_replayed_is_told_with_its_age_where_another_made_it() -> None:
    quorum = NodeQuorum()
    committed(quorum, 5)
    quorum.level()
    leader = quorum.elect()
    follower = next(node_id for node_id in quorum.voters if node_id != leader)
    names = [f"{CONTROLLER}lastappliedrecord{each}" for each in ("offset", "lagms")]
    offset, lag_ms = numbers(quorum, leader, *names)
    assert offset == quorum.members[leader].running.raft.committed.next_offset - 1
    assert lag_ms == 0
    quorum.kill(leader)
    quorum.kill(next(node_id for node_id in quorum.voters if node_id not in (leader, follower)))
    quorum.advance(4_000)
    offset, lag_ms = numbers(quorum, follower, *names)
    assert lag_ms >= 3_000, "nothing new came"
    assert numbers(quorum, follower, f"{CONTROLLER}lastcommittedrecordoffset") == [offset]


def test_brokers_topics_and_partitions_are_counted_by_their_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quorum = NodeQuorum()
    quorum.level()
    leader = quorum.elect()
    brokers = [
        broker_image(1),
        broker_image(2, fenced=True),
        broker_image(3, fenced=True),
        replace(broker_image(4), in_controlled_shutdown=True),
    ]
    partitions = [
        partition_image(0, leader=1, replicas=(1, 2)),
        partition_image(1, leader=2, replicas=(1, 2)),
        partition_image(2, leader=-1, replicas=(1, 2)),
        partition_image(3, leader=2, replicas=(2, 1)),
    ]
    image = image_of({"t": partitions[:3], "u": partitions[3:]}, brokers)
    monkeypatch.setattr(CommittedMetadata, "image", image)
    names = (
        *("activebrokercount", "fencedbrokercount", "controlledshutdownbrokercount"),
        *("globaltopiccount", "globalpartitioncount", "offlinepartitionscount"),
        "preferredreplicaimbalancecount",
    )
    found = numbers(quorum, leader, *(f"{CONTROLLER}{name}" for name in names))
    assert found == [2, 2, 1, 2, 4, 1, 2]


def test_quorum_metrics_of_apache_are_no_counters() -> None:
    """Each is a gauge or an average, and may fall."""
    quorum = NodeQuorum()
    families = node_metrics(quorum.members[quorum.elect()].running, 0)
    counters = {each.name: each.is_counter for each in families if each.name.startswith(RAFT)}
    assert len(counters) > 5
    assert not any(counters.values())


def test_levels_are_told_by_feature() -> None:
    quorum = NodeQuorum()
    leader = quorum.elect()
    image = quorum.members[leader].running.raft.committed.image
    found = shown(quorum, leader)
    assert found[f"{LOADER}finalizedlevel"] == dict(image.finalized_features)
    assert found[f"{LOADER}currentmetadataversion"] == {"": image.metadata_version}


def test_configured_voters_are_ignored_once_they_stand_in_the_log() -> None:
    configured = {"controller.quorum.voters": "1@127.0.0.1:9001"}
    for is_dynamic, settings, ignored in (
        (False, {}, 0),
        (True, {}, 0),
        (True, configured, 1),
    ):
        quorum = NodeQuorum((1,), settings, is_dynamic=is_dynamic)
        quorum.elect()
        assert numbers(quorum, 1, f"{CONTROLLER}ignoredstaticvoters") == [ignored]


def test_broker_shows_its_group_and_a_controller_does_not() -> None:
    combined = NodeQuorum((1,), {"process.roles": "broker,controller"})
    combined.elect()
    assert numbers(combined, 1, f"{BROKER}last_applied_record_offset")[0] > 0
    assert numbers(combined, 1, f"{BROKER}metadata_apply_error_count") == [0]
    alone = NodeQuorum((1,))
    alone.elect()
    assert not [name for name in shown(alone, 1) if name.startswith(BROKER)]


@pytest.mark.java
@pytest.mark.parametrize("group", CLASSES)
def test_every_name_stands_in_apaches_class_of_the_group(group: str) -> None:
    quorum = NodeQuorum((1,), {"process.roles": "broker,controller"})
    quorum.elect()
    ours = {name.removeprefix(group) for name in shown(quorum, 1) if name.startswith(group)}
    assert ours
    theirs = {word for path in CLASSES[group] for word in constants(path)}
    # Averages and maxima are made of a name at run time.
    made = {f"{word}_{kind}" for word in theirs for kind in ("avg", "max", "rate")}
    assert ours - theirs - made == set()


def constants(path: str) -> set[str]:
    """Words of a class file's constants, spelled as a metric's name is here."""
    for jar in sorted(jar_directory().glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as opened:
            if f"{path}.class" in opened.namelist():
                data = opened.read(f"{path}.class").decode("latin-1")
                words = re.findall(r"[A-Za-z][A-Za-z-]+", data)
                return {word.lower().replace("-", "_") for word in words}
    raise AssertionError(f"no jar has {path}")
