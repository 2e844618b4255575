"""AlterReplicaLogDirs, API key 34: answers that need one log directory only (KIP-113)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kraft_wire.wire.generated.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_NOWHERE: Final = "/no/such/directory"
_LONGEST_MOVED: Final = 213
"""Characters of a topic whose partition 0 has a copy's name of 255: `-0.`, 32 digits, `-future`."""


def _directory(path: str, *topics: tuple[str, tuple[int, ...]]) -> AlterReplicaLogDir:
    named = [AlterReplicaLogDirTopic(name=name, partitions=list(each)) for name, each in topics]
    return AlterReplicaLogDir(path=path, topics=named)


def _alter(
    broker: Subject, version: int, *directories: AlterReplicaLogDir
) -> dict[tuple[str, int], int]:
    """The error of each partition of a request."""
    request = AlterReplicaLogDirsRequest(dirs=list(directories))
    answer = broker.ask(request, version, AlterReplicaLogDirsResponse)
    return {
        (topic.topic_name, each.partition_index): each.error_code
        for topic in answer.results
        for each in topic.partitions
    }


def _own_directory(broker: Subject, topic: str) -> str:
    """The directory of a topic's partition 0."""
    answer = broker.ask(DescribeLogDirsRequest(topics=None), 1, DescribeLogDirsResponse)
    (path,) = [
        directory.log_dir
        for directory in answer.results
        for each in directory.topics
        if each.name == topic and any(one.partition_index == 0 for one in each.partitions)
    ]
    return path


def _answered(found: dict[tuple[str, int], int], wanted: dict[tuple[str, int], ErrorCode]) -> None:
    expect.true(found == wanted, str(wanted), found, "results")


@case("AlterReplicaLogDirs", "KIP-113, AlterReplicaDirRequest")
def own_directory(broker: Subject, version: int) -> None:
    """A replica that is in the wanted directory already stays there.

    Ask for a partition's own directory.
    """
    topic = broker.topic().name
    path = _own_directory(broker, topic)
    found = _alter(broker, version, _directory(path, (topic, (0,))))
    _answered(found, {(topic, 0): ErrorCode.NONE})


@case("AlterReplicaLogDirs", "KIP-113, AlterReplicaDirRequest")
def unknown_directory(broker: Subject, version: int) -> None:
    """A directory that is not one of log.dirs is LOG_DIR_NOT_FOUND, for any partition.

    Ask for such a directory for a partition that exists, and for one that does not.
    """
    topic, missing = broker.topic().name, broker.name()
    found = _alter(broker, version, _directory(_NOWHERE, (topic, (0,)), (missing, (1,))))
    wanted = dict.fromkeys([(topic, 0), (missing, 1)], ErrorCode.LOG_DIR_NOT_FOUND)
    _answered(found, wanted)


@case("AlterReplicaLogDirs", "KIP-113, AlterReplicaDirRequest")
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION.

    Ask for a directory for a partition that a topic does not have, and for one of no topic.
    """
    topic, missing = broker.topic().name, broker.name()
    path = _own_directory(broker, topic)
    found = _alter(broker, version, _directory(path, (topic, (7,)), (missing, (0,))))
    wanted = dict.fromkeys([(topic, 7), (missing, 0)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    _answered(found, wanted)


@case("AlterReplicaLogDirs", "KIP-113, AlterReplicaDirRequest")
def topic_with_a_long_name(broker: Subject, version: int) -> None:
    """A topic whose copy's directory would have a name of over 255 characters cannot move.

    Ask for two topics that do not exist, in no directory: one with the longest name, one longer.
    """
    name = broker.name()
    longest = name.ljust(_LONGEST_MOVED, "x")
    found = _alter(broker, version, _directory(_NOWHERE, (longest, (0,)), (longest + "x", (0,))))
    wanted = {
        (longest, 0): ErrorCode.LOG_DIR_NOT_FOUND,
        (longest + "x", 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    _answered(found, wanted)


@case("AlterReplicaLogDirs", "KIP-113, AlterReplicaDirRequest")
def partition_named_twice(broker: Subject, version: int) -> None:
    """Of a partition that is named twice the last directory counts.

    Name a partition in its own directory and in one that is not there, in both orders.
    """
    topic = broker.topic().name
    path = _own_directory(broker, topic)
    own, nowhere = (_directory(each, (topic, (0,))) for each in (path, _NOWHERE))
    for directories, error in (
        ((own, nowhere), ErrorCode.LOG_DIR_NOT_FOUND),
        ((nowhere, own), ErrorCode.NONE),
    ):
        _answered(_alter(broker, version, *directories), {(topic, 0): error})


@case("AlterReplicaLogDirs", "KIP-113, AlterReplicaDirRequest")
def no_directories(broker: Subject, version: int) -> None:
    """A request without directories is answered without results.

    Ask for nothing, then for a directory without topics.
    """
    _answered(_alter(broker, version), {})
    _answered(_alter(broker, version, _directory(_NOWHERE)), {})
