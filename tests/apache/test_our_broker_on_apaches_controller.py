"""Our broker on an Apache controller: registered, unfenced, served, stopped and killed as Kafka's.

The judges are Apache's controller, its log and its tools, and librdkafka.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, Producer

from kraft_wire.metadata.records import decode_record
from kraft_wire.model import uuid_to_text
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.java_process import run_java
from tests.apache.mixed_quorum import MixedQuorum
from tests.broker_process import BrokerProcess
from tests.quorum_processes import QuorumProcesses
from tests.waiting import HANG_S

pytestmark = pytest.mark.java

BROKER = 101
SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
OF_BROKERS = (0, 17)
"""RegisterBroker, BrokerRegistrationChange."""
THE_FIRST_LIFE = [
    "RegisterBrokerRecord",
    "BrokerRegistrationChangeRecord",
    "BrokerRegistrationChangeRecord",
]
"""Registered, unfenced, no directory cordoned: as Apache's own broker on it."""


def tool(broker: BrokerProcess, name: str, *arguments: str) -> str:
    """What one of Apache's tools says, which must not fail."""
    done = run_java(name, ["--bootstrap-server", broker.bootstrap, *arguments])
    assert done.exit_code == 0, done.text
    return done.stdout


def produced(broker: BrokerProcess, values: range) -> None:
    """Have librdkafka's idempotent producer write to topic t."""
    settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "acks": "all"}
    producer = Producer(settings)
    errors: list[object] = []
    for value in values:
        producer.produce(
            "t", str(value).encode(), partition=0, on_delivery=lambda e, m: errors.append(e)
        )
    assert producer.flush(HANG_S) == 0
    assert errors == [None] * len(values)


def consumed(broker: BrokerProcess, group: str, count: int) -> list[int]:
    """What a group reads of topic t from its committed offset on."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["t"])
    found: list[int] = []
    deadline = time.monotonic() + HANG_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(int(message.value() or b""))
    if found:
        consumer.commit(asynchronous=False)
    consumer.close()
    return found


def changes(quorum: QuorumProcesses, broker_id: int) -> list[dict[str, object]]:
    """What the log of controller 1 says of one broker, record by record."""
    told = []
    for batch in parse_batches(quorum.metadata_log(1)):  # type: ignore[attr-defined]  # of a mixed one
        for value in [] if batch.is_control else batch.values():
            record, version = decode_record(value or b"")
            if record.RECORD_TYPE in OF_BROKERS:
                form = message_to_json(record, version)
                assert isinstance(form, dict)
                if form["brokerId"] == broker_id:
                    told.append({"is": record.NAME, "version": version, **form})
    return told


def until(condition: Callable[[], bool], why: Callable[[], object]) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, why()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedQuorum]:
    quorum = MixedQuorum(tmp_path_factory.mktemp("apache"), [1], 1)
    quorum.overrides.update(SESSIONS)
    with quorum:
        yield quorum
        errors = [line for line in quorum.log(1).splitlines() if " ERROR " in line]
        assert errors == []


def test_our_broker_lives_on_apaches_controller(apache: MixedQuorum, tmp_path: Path) -> None:
    """It runs, has topics and settings made through it, stops in order, is killed, and is back."""
    voters = f"1@{apache.controller(1)}"
    broker = BrokerProcess(
        tmp_path / "ours", BROKER, cluster_id=apache.cluster_id, voters=voters, overrides=SESSIONS
    )
    with broker:
        admin = "org.apache.kafka.tools.TopicCommand"
        tool(broker, admin, "--create", "--topic", "t", "--partitions", "2")
        settings = ["--entity-type", "topics", "--entity-name", "t"]
        tool(
            broker,
            "kafka.admin.ConfigCommand",
            "--alter",
            *settings,
            "--add-config",
            "retention.ms=77",
        )
        assert "retention.ms=77" in tool(
            broker, "kafka.admin.ConfigCommand", "--describe", *settings
        )
        produced(broker, range(1_000))
        assert consumed(broker, "g", 1_000) == list(range(1_000))
        before = changes(apache, BROKER)
        assert [each["is"] for each in before] == THE_FIRST_LIFE

        assert broker.stop() == 0
        stop = changes(apache, BROKER)[len(before) :]
        assert [(each.get("inControlledShutdown", 0), each.get("fenced", 0)) for each in stop] == [
            (1, 0),
            (0, 1),
        ]
        broker.start()
        former = before[0]["brokerEpoch"]  # which a session that ends fences once more
        again = [each for each in changes(apache, BROKER) if each["brokerEpoch"] != former]
        assert [each["is"] for each in again] == THE_FIRST_LIFE
        produced(broker, range(1_000, 1_100))
        assert consumed(broker, "g", 100) == list(range(1_000, 1_100))
        described = tool(broker, admin, "--describe", "--topic", "t")
        assert described.count("Leader: 101") == 2, described

        broker.kill()
        broker.start()
        produced(broker, range(1_100, 1_200))
        assert consumed(broker, "g", 100) == list(range(1_100, 1_200))


def test_apaches_controller_places_nothing_on_our_cordoned_broker(
    apache: MixedQuorum, tmp_path: Path
) -> None:
    """KIP-1066: the list of the file, then a change through the broker, which checks its paths."""
    config = ["--entity-type", "brokers", "--entity-name", str(BROKER + 3), "--alter"]
    broker = BrokerProcess(
        tmp_path / "cordoned",
        BROKER + 3,
        cluster_id=apache.cluster_id,
        voters=f"1@{apache.controller(1)}",
        overrides={**SESSIONS, "cordoned.log.dirs": "*"},
    )

    def told() -> object:
        return changes(apache, BROKER + 3)[-1].get("cordonedLogDirs")

    with broker:
        lines = (broker.data / "meta.properties").read_text().splitlines()
        directory_id = next(each for each in lines if each.startswith("directory.id="))
        until(lambda: told() == [directory_id.partition("=")[2]], told)
        create = ["--bootstrap-server", broker.bootstrap, "--create", "--topic", "c"]
        refused = run_java("org.apache.kafka.tools.TopicCommand", create)
        assert "have all their log directories cordoned" in refused.text, refused.text
        added = [*config, "--add-config", "cordoned.log.dirs=/nowhere"]
        at = ["--bootstrap-server", broker.bootstrap]
        refused = run_java("kafka.admin.ConfigCommand", [*at, *added])
        assert "Missing entries : /nowhere" in refused.text, refused.text
        tool(broker, "kafka.admin.ConfigCommand", *config, "--add-config", "cordoned.log.dirs=")
        until(lambda: told() == [], told)
        tool(broker, "org.apache.kafka.tools.TopicCommand", *create[2:])
        assert broker.stop() == 0


def directories_told(quorum: QuorumProcesses, node_id: int) -> dict[int, str]:
    """Where the controller's log says that the partitions of topic d lie, by partition."""
    told: dict[int, str] = {}
    for batch in parse_batches(quorum.metadata_log(node_id)):  # type: ignore[attr-defined]  # of a mixed one
        for value in [] if batch.is_control else batch.values():
            record, _ = decode_record(value or b"")
            if isinstance(record, PartitionRecord | PartitionChangeRecord) and record.directories:
                told[record.partition_id] = uuid_to_text(record.directories[0])
    return told


def directories_had(*paths: Path) -> dict[int, str]:
    """The same, as the directories themselves say it."""
    had = {}
    for path in paths:
        lines = (path / "meta.properties").read_text().splitlines()
        directory_id = next(each for each in lines if each.startswith("directory.id="))
        for log in path.glob("d-*"):
            had[int(log.name.removeprefix("d-"))] = directory_id.partition("=")[2]
    return had


def written(broker: BrokerProcess, partition: int, *, timeout_ms: int) -> list[object]:
    """Have three records, which need two segments, written to topic d; what became of each."""
    settings = {"bootstrap.servers": broker.bootstrap, "message.timeout.ms": timeout_ms}
    producer = Producer(settings)
    errors: list[object] = []
    for number in range(3):
        value = Random(number).randbytes(600_000)
        producer.produce(
            "d", value, partition=partition, on_delivery=lambda error, _: errors.append(error)
        )
        producer.flush(HANG_S)
    return errors


def test_apaches_controller_learns_of_our_log_directories_and_of_one_that_fails(
    apache: MixedQuorum, tmp_path: Path
) -> None:
    """KIP-858. A directory fails because somebody removes it: its next segment cannot be made."""
    paths = [tmp_path / "first", tmp_path / "second"]
    broker = BrokerProcess(
        tmp_path / "ours",
        103,
        cluster_id=apache.cluster_id,
        voters=f"1@{apache.controller(1)}",
        overrides={**SESSIONS, "log.dirs": ",".join(map(str, paths))},
    )
    with broker:
        admin = "org.apache.kafka.tools.TopicCommand"
        assignment = ["--replica-assignment", "103,103,103,103"]
        segments = ["--config", f"segment.bytes={1 << 20}"]
        tool(broker, admin, "--create", "--topic", "d", *assignment, *segments)
        until(
            lambda: directories_told(apache, 1) == directories_had(*paths),
            lambda: (directories_told(apache, 1), directories_had(*paths)),
        )
        had = directories_had(*paths)
        kept, lost = (min(directories_had(each)) for each in paths)
        assert sorted(had.values()) == sorted([had[kept], had[lost]] * 2)

        shutil.rmtree(paths[1])
        assert written(broker, kept, timeout_ms=30_000) == [None] * 3
        assert written(broker, lost, timeout_ms=5_000)[-1] is not None
        until(
            lambda: [had[kept]] in [each.get("logDirs") for each in changes(apache, 103)],
            lambda: changes(apache, 103),
        )
        described = tool(broker, admin, "--describe", "--topic", "d")
        assert described.count("Leader: 103") == 2, described
        assert broker.stop() == 0


def test_our_broker_is_refused_by_another_cluster_in_time_and_in_one_line(
    apache: MixedQuorum, tmp_path: Path
) -> None:
    broker = BrokerProcess(
        tmp_path / "lost",
        102,
        cluster_id="AAAAAAAAAAAAAAAAAAAAAQ",
        voters=f"1@{apache.controller(1)}",
        overrides={"initial.broker.registration.timeout.ms": "1500"},
    )
    broker.format()
    broker.begin()
    assert broker.wait() != 0
    assert "initial.broker.registration.timeout.ms" in broker.text.splitlines()[-1]


def test_our_broker_outlives_the_active_one_of_three_controllers_of_ours(tmp_path: Path) -> None:
    with QuorumProcesses(tmp_path, 3, overrides=SESSIONS) as quorum:
        voters = ",".join(f"{each}@{quorum.controller(each)}" for each in quorum.node_ids)
        broker = BrokerProcess(
            tmp_path / "broker",
            BROKER,
            cluster_id=quorum.cluster_id,
            voters=voters,
            overrides=SESSIONS,
        )
        with broker:
            produced(broker, range(100))
            leader = quorum.leader()
            quorum.kill(leader)
            admin = "org.apache.kafka.tools.TopicCommand"
            tool(broker, admin, "--create", "--topic", "after", "--partitions", "2")
            produced(broker, range(100, 200))
            quorum.start(leader)
            assert broker.stop() == 0
            broker.start()
            assert consumed(broker, "g", 200) == list(range(200))
            broker.kill()
            broker.start()
            produced(broker, range(200, 300))
            assert consumed(broker, "g", 100) == list(range(200, 300))
