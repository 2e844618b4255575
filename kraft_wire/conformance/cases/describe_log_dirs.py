"""DescribeLogDirs, API key 35: directories, and the size of the partitions in them (KIP-113)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import batch, written
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_VOLUME_SINCE: Final = 4
_CORDONED_SINCE: Final = 5
_ERROR_SINCE: Final = 3


def _describe(
    broker: Subject, version: int, topic: str, *partitions: int
) -> DescribeLogDirsResponse:
    topics = [DescribableLogDirTopic(topic=topic, partitions=list(partitions))]
    request = DescribeLogDirsRequest(topics=topics)
    answer = broker.ask(request, version, DescribeLogDirsResponse)
    if version >= _ERROR_SINCE:
        expect.error(answer, "error_code", ErrorCode.NONE)
    return answer


def _found(answer: DescribeLogDirsResponse, topic: str) -> dict[int, DescribeLogDirsPartition]:
    return {
        one.partition_index: one
        for directory in answer.results
        for each in directory.topics
        if each.name == topic
        for one in each.partitions
    }


@case("DescribeLogDirs", "KIP-113, DescribeLogDirs")
def partitions_that_are_asked_for(broker: Subject, version: int) -> None:
    """Only the requested partitions are described.

    Write a batch to one of three partitions, ask for two of them.
    """
    topic = broker.topic(partitions=3)
    records = batch(b"a")
    written(broker, topic, records, partition=1)
    found = _found(_describe(broker, version, topic.name, 0, 1), topic.name)
    sizes = {index: each.partition_size for index, each in found.items()}
    wanted = {0: 0, 1: len(records)}
    expect.true(sizes == wanted, str(wanted), sizes, "results")
    states = {(each.offset_lag, each.is_future_key) for each in found.values()}
    expect.true(states == {(0, False)}, "no lag, and no future replica", states, "results")


@case("DescribeLogDirs", "KIP-113, DescribeLogDirs")
def unknown_partitions(broker: Subject, version: int) -> None:
    """Partitions that do not exist are left out.

    Ask for a partition that a topic does not have, and one of a topic that does not exist.
    """
    for name, partition in ((broker.topic().name, 4), (broker.name(), 0)):
        found = _found(_describe(broker, version, name, partition), name)
        expect.true(found == {}, "no partition", found, "results")


@case("DescribeLogDirs", "KIP-113, DescribeLogDirs")
def all_partitions(broker: Subject, version: int) -> None:
    """A null list requests all partitions.

    Ask for all, and look for a topic's two.
    """
    topic = broker.topic(partitions=2)
    answer = broker.ask(DescribeLogDirsRequest(topics=None), version, DescribeLogDirsResponse)
    found = set(_found(answer, topic.name))
    expect.true(found == {0, 1}, "partitions 0 and 1", found, "results")


@case("DescribeLogDirs", "KIP-827", since=_VOLUME_SINCE)
def size_of_the_volume(broker: Subject, version: int) -> None:
    """A directory has the size and the free bytes of its volume.

    Ask for one partition.
    """
    answer = _describe(broker, version, broker.topic().name, 0)
    for index, each in enumerate(answer.results):
        path = f"results[{index}]"
        expect.error(answer, f"{path}.error_code", ErrorCode.NONE)
        expect.true(
            0 <= each.usable_bytes <= each.total_bytes,
            "no more free than there is",
            (each.usable_bytes, each.total_bytes),
            f"{path}.usable_bytes",
        )
        expect.true(each.log_dir.startswith("/"), "a path", each.log_dir, f"{path}.log_dir")


@case("DescribeLogDirs", "KIP-1066", since=_CORDONED_SINCE)
def directories_are_not_cordoned(broker: Subject, version: int) -> None:
    """A directory is not cordoned unless the broker's settings say so.

    Ask for one partition.
    """
    answer = _describe(broker, version, broker.topic().name, 0)
    found = {each.is_cordoned for each in answer.results}
    expect.true(found == {False}, "none is cordoned", found, "results")


@case("DescribeLogDirs", "KIP-113, DescribeLogDirs")
def no_partitions(broker: Subject, version: int) -> None:
    """An empty list requests no partitions: the directories are described without any.

    Create a topic, ask for no partition.
    """
    broker.topic()
    answer = broker.ask(DescribeLogDirsRequest(topics=[]), version, DescribeLogDirsResponse)
    found = [each.topics for each in answer.results]
    expect.true(len(found) > 0 and not any(found), "directories alone", found, "results")
