"""What clients see of every partition of a node, in a form that both makes can be compared in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from kraft_wire.wire.generated.describe_log_dirs import DescribeLogDirsRequest
from kraft_wire.wire.generated.describe_producers import DescribeProducersRequest, TopicRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.odd_directories.pair import ask
from tests.server.wire_client import WireClient
from tests.waiting import until

__all__ = ["Seen", "await_served", "await_stable", "committed_offsets", "end_of", "look"]

Seen = dict[str, Any]
"""What was seen of one partition, by the name of the question."""

_UNSERVED = {E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.LEADER_NOT_AVAILABLE}
_LOADING = {E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE}
_LATEST, _EARLIEST, _LARGEST = -1, -2, -3
_ISOLATIONS = {"uncommitted": 0, "committed": 1}
_QUIET_S = 3.0


def await_served(client: WireClient, topics: Mapping[str, int]) -> None:
    """Wait until every partition is served, or no further one is for some seconds."""
    _await_none(
        lambda: sum(
            each["error"] in _UNSERVED
            for topic, count in topics.items()
            for each in _offsets(client, topic, range(count), _LATEST).values()
        )
    )


def await_stable(client: WireClient, topic: str, numbers: Iterable[int]) -> None:
    """Wait until no partition has an open transaction, or none ends for some seconds."""
    listed = list(numbers)

    def unstable() -> int:
        ends = _offsets(client, topic, listed, _LATEST)
        return sum(
            each != ends[n] for n, each in _offsets(client, topic, listed, _LATEST, 1).items()
        )

    _await_none(unstable)


def _await_none(count: Callable[[], int]) -> None:
    deadline, before = time.monotonic() + _QUIET_S, -1
    while (waiting := count()) and time.monotonic() < deadline:
        if waiting != before:
            deadline, before = time.monotonic() + _QUIET_S, waiting
        time.sleep(0.05)


def look(client: WireClient, topics: Mapping[str, int], times: Iterable[int]) -> dict[str, Seen]:
    """Return what is seen of each partition, by its name."""
    seen: dict[str, Seen] = {}
    for topic, count in topics.items():
        numbers = range(count)
        answers: dict[str, dict[int, Any]] = {
            "start": _offsets(client, topic, numbers, _EARLIEST),
            "end": _offsets(client, topic, numbers, _LATEST),
            "stable end": _offsets(client, topic, numbers, _LATEST, 1),
            "largest time": _offsets(client, topic, numbers, _LARGEST),
            "producers": _producers(client, topic, numbers),
        }
        for at in times:
            answers[f"offset at {at}"] = _offsets(client, topic, numbers, at)
        for number in numbers:
            own = {name: answer[number] for name, answer in answers.items()}
            for name, isolation in _ISOLATIONS.items():
                own[name] = _read(client, topic, number, isolation)
            seen[f"{topic}-{number}"] = own
    for directory, partitions in _places(client).items():
        for partition in partitions:
            if partition in seen:
                seen[partition].setdefault("directories", []).append(directory)
    return seen


def end_of(client: WireClient, topic: str, number: int) -> Any:
    """Return the stable end of a partition."""
    return _offsets(client, topic, [number], _LATEST, 1)[number]


def _offsets(
    client: WireClient, topic: str, numbers: Iterable[int], at: int, isolation: int = 0
) -> dict[int, Any]:
    asked = [ListOffsetsPartition(partition_index=n, timestamp=at) for n in numbers]
    request = ListOffsetsRequest(
        isolation_level=isolation, topics=[ListOffsetsTopic(name=topic, partitions=asked)]
    )
    (answer,) = ask(client, request, 7).topics
    return {
        each.partition_index: {
            "error": each.error_code,
            "offset": each.offset,
            "epoch": each.leader_epoch,
            "time": each.timestamp,
        }
        for each in answer.partitions
    }


def _producers(client: WireClient, topic: str, numbers: Iterable[int]) -> dict[int, Any]:
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=list(numbers))]
    )
    (answer,) = ask(client, request, 0).topics
    return {
        each.partition_index: (
            each.error_code,
            sorted(
                (
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.last_sequence,
                    producer.current_txn_start_offset,
                )
                for producer in each.active_producers
            ),
        )
        for each in answer.partitions
    }


def _read(client: WireClient, topic: str, number: int, isolation: int) -> Seen:
    """Read a partition from its start to its end, or to the first batch that cannot be read."""
    batches: list[tuple[int, int, int]] = []
    aborted: list[tuple[int, int]] = []
    at = _offsets(client, topic, [number], _EARLIEST)[number]["offset"]
    while True:
        wanted = FetchPartition(partition=number, fetch_offset=at, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 24,
            isolation_level=isolation,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        data = ask(client, request, 11).responses[0].partitions[0]
        found = [] if data.error_code else _batches(memoryview(data.records or b""))
        if not found or found[-1][1] < at:
            break
        batches += found
        aborted += [
            (each.producer_id, each.first_offset) for each in data.aborted_transactions or []
        ]
        at = found[-1][1] + 1
    return {
        "error": data.error_code,
        "batches": batches,
        "aborted": aborted,
        "high watermark": data.high_watermark,
        "last stable offset": data.last_stable_offset,
        "log start": data.log_start_offset,
    }


def _batches(data: memoryview) -> list[tuple[int, int, int]]:
    """Return offsets and epoch of the batches before the first one that cannot be read."""
    found = []
    with suppress(CorruptRecordBatch):
        while data:
            (batch,) = parse_batches(data[: 12 + int.from_bytes(data[8:12])])
            found.append((batch.base_offset, batch.last_offset, batch.partition_leader_epoch))
            data = data[batch.size_bytes :]
    return found


def _places(client: WireClient) -> dict[str, list[str]]:
    """Return the partitions of each log directory, by the last part of its path."""
    answer = ask(client, DescribeLogDirsRequest(topics=None), 4)
    return {
        each.log_dir.rpartition("/")[2]: [
            f"{topic.name}-{p.partition_index}" for topic in each.topics for p in topic.partitions
        ]
        for each in answer.results
    }


def committed_offsets(client: WireClient, group: str) -> Any:
    """Return the committed offsets of a group, once its coordinator has loaded, or an error."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    answers: list[Any] = []

    def is_loaded() -> bool:
        answers[:] = ask(client, request, 8).groups
        return answers[0].error_code not in _LOADING

    until(is_loaded, lambda: answers)
    return answers[0].error_code, sorted(
        (topic.name, each.partition_index, each.committed_offset)
        for topic in answers[0].topics
        for each in topic.partitions
    )
