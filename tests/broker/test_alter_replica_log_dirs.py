"""AlterReplicaLogDirs: errors in Kafka's order, and what a request asks of the moves."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.apis.registry import APIS, key_of
from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.alter_replica_log_dirs import handle
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import StorageError, TopicPartition
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import context, each_version, image_of, partition_image, small_broker

T = TopicPartition("t", 0)
LONG = "t" * 214
"""`t…t-0.<32 digits>-future` has 256 characters."""


class Moves:
    """The moves and copies of a broker with the directories /a, /b and /c, as the handler asks."""

    def __init__(self) -> None:
        self.copies = self
        self.online = {"/a": True, "/b": True, "/c": True}
        self.moving: dict[TopicPartition, str] = {}
        self.preferred: dict[TopicPartition, str] = {}
        self.refuses = False

    def directories(self) -> dict[str, bool]:
        return self.online

    def directory_of(self, name: TopicPartition) -> str | None:
        return "/a"

    def target_of(self, name: TopicPartition) -> str | None:
        return self.moving.get(name)

    def cancel(self, name: TopicPartition, now_ms: int) -> None:
        self.moving.pop(name, None)

    def begin(self, partition: Any, path: str, now_ms: int, wall_ms: int) -> None:
        if self.refuses:
            raise StorageError("write", path, "input/output error")
        assert partition.topic_partition not in self.moving
        self.moving[partition.topic_partition] = path

    def prefer(self, name: TopicPartition, path: str) -> None:
        self.preferred[name] = path


@pytest.fixture
def broker() -> Broker:
    here, far = partition_image(0), partition_image(0, leader=2, replicas=(2,), isr=(2,))
    made = small_broker(image_of({"t": [here], "far": [far], LONG: [here]}))
    made._moves = Moves()  # type: ignore[assignment]  # as much as is used
    return made


def moves_of(broker: Broker) -> Moves:
    moves: Any = broker.moves
    assert isinstance(moves, Moves)
    return moves


def ask(broker: Broker, path: str, topic: str = "t", version: int = 2) -> ErrorCode:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    response = handle(broker, context(version), request)
    decoded, _ = AlterReplicaLogDirsResponse.decode(response.encode(version), version)
    ((result,),) = [topic.partitions for topic in decoded.results]
    return ErrorCode(result.error_code)


def cordon(broker: Broker, text: str) -> None:
    broker.settings = BrokerSettings.of(NodeSettings({"cordoned.log.dirs": text}))


def test_errors_in_order(broker: Broker) -> None:
    """`ReplicaManager.alterReplicaLogDirs` of release 4.3.1, a fault mended at a time."""
    moves = moves_of(broker)
    moves.online["/b"] = moves.online["/c"] = False
    moves.refuses = True
    cordon(broker, "/b")
    broker.partitions[T].offline = True
    assert ask(broker, "/nowhere", LONG) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert ask(broker, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    assert ask(broker, "/b") == ErrorCode.KAFKA_STORAGE_ERROR
    moves.online["/b"] = True
    assert ask(broker, "/b") == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    cordon(broker, "")
    assert ask(broker, "/b") == ErrorCode.KAFKA_STORAGE_ERROR
    assert moves.preferred == {}
    assert ask(broker, "/b", "gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(broker, "/b", "far") == ErrorCode.REPLICA_NOT_AVAILABLE
    assert moves.preferred == {TopicPartition(each, 0): "/b" for each in ("gone", "far")}
    broker.partitions[T].offline = False
    assert ask(broker, "/b") == ErrorCode.KAFKA_STORAGE_ERROR, "/c may have a copy"
    moves.online["/c"] = True
    assert ask(broker, "/b") == ErrorCode.KAFKA_STORAGE_ERROR, "the disk of /b refuses"
    moves.refuses = False
    assert ask(broker, "/b") == ErrorCode.NONE
    assert moves.moving == {T: "/b"}


def test_all_directories_may_be_cordoned_and_a_name_of_one_character_less_moves(
    broker: Broker,
) -> None:
    assert ask(broker, "/b", LONG[1:]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cordon(broker, "*")
    assert ask(broker, "/b") == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_another_directory_replaces_the_target_and_the_own_one_cancels(broker: Broker) -> None:
    moves = moves_of(broker)
    for path, moving in (("/b", "/b"), ("/b", "/b"), ("/c", "/c"), ("/a", None), ("/a", None)):
        assert ask(broker, path) == ErrorCode.NONE
        assert moves.moving.get(T) == moving


def test_last_directory_of_a_partition_counts_and_topics_are_answered_once(broker: Broker) -> None:
    def directory(path: str, *topics: str) -> AlterReplicaLogDir:
        named = [AlterReplicaLogDirTopic(name=each, partitions=[0]) for each in topics]
        return AlterReplicaLogDir(path=path, topics=named)

    dirs = [directory("/b", "t", "u"), directory("/nowhere", "v"), directory("/c", "t", "t")]
    for version in each_version(APIS[key_of("AlterReplicaLogDirs")].versions):
        response = handle(broker, context(version), AlterReplicaLogDirsRequest(dirs=dirs))
        decoded, _ = AlterReplicaLogDirsResponse.decode(response.encode(version), version)
        found = {
            topic.topic_name: [(each.partition_index, each.error_code) for each in topic.partitions]
            for topic in decoded.results
        }
        assert found == {
            "t": [(0, ErrorCode.NONE)],
            "u": [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
            "v": [(0, ErrorCode.LOG_DIR_NOT_FOUND)],
        }
    assert moves_of(broker).moving == {T: "/c"}
    assert moves_of(broker).preferred == {TopicPartition("u", 0): "/b"}


def test_request_without_partitions_is_answered_without_results(broker: Broker) -> None:
    dirs = [AlterReplicaLogDir(path="/nowhere", topics=[])]
    assert handle(broker, context(2), AlterReplicaLogDirsRequest(dirs=dirs)).results == []
