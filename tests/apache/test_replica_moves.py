"""Moves between log directories beside Apache Kafka 4.3.1: its tool, and directories handed over.

`kafka-reassign-partitions` moves a replica on Apache's node, then on ours, under the same
assertions. Then each node is killed in the middle of a move, and the other one continues it: the
copy's name, the checkpoints and the metadata are the same for both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraft_wire.wire.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kraft_wire.wire.generated.produce import ProduceRequest, ProduceResponse
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.node import ApacheNode
from tests.apache.tools import run_tool
from tests.server.connecting import set_of_broker
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.server_process import ServerProcess
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

TOPIC = "moved"
RATE = "replica__alter__log__dirs__io__max__bytes__per__second"
SETTINGS = {"replica.fetch.max.bytes": "1000", "num.partitions": "1"}
BATCHES = 40


class OurNode(ServerProcess):
    """Our server over several directories."""

    def arguments(self) -> list[str]:
        listed = super().arguments()
        listed[listed.index("--data") + 1] = self.overrides["log.dirs"]
        at = listed.index(f"log.dirs={self.overrides['log.dirs']}")
        return listed[: at - 1] + listed[at + 1 :]


def paths(folder: Path) -> list[str]:
    return [str(folder / "data"), str(folder / "more")]


def node(
    name: str, folder: Path, *, is_new: bool = True, more: Mapping[str, str] | None = None
) -> OurNode | ApacheNode:
    """A node of the named kind over the two directories, with `more` settings."""
    settings = {**SETTINGS, "log.dirs": ",".join(paths(folder)), **(more or {})}
    if name == "ours":
        return OurNode(folder, overrides=settings)
    apache = ApacheNode(folder, overrides=settings)
    if is_new:
        apache.format()
    else:
        apache.configure()
    return apache


@contextmanager
def running(name: str, folder: Path, *, is_new: bool = True) -> Iterator[WireClient]:
    """Connect to a running node, and kill it in the end."""
    process = node(name, folder, is_new=is_new)
    process.start()
    try:
        with WireClient(process.bootstrap) as client:
            yield client
    finally:
        process.kill()


def create(client: WireClient) -> None:
    assignment = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    topic = CreatableTopic(
        name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignment
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    answer = client.call(request, 7, CreateTopicsResponse)
    assert answer.topics[0].error_code == 0, answer
    client.topic(TOPIC)


def write(client: WireClient, first: int, count: int) -> None:
    """Write batches of a known value."""
    topic = client.topic(TOPIC)
    for number in range(first, first + count):
        request = produce_request(topic, one_batch(b"%06d" % number * 100))

        def is_written(request: ProduceRequest = request) -> bool:
            answer = client.call(request, 9, ProduceResponse)
            return answer.responses[0].partition_responses[0].error_code == 0

        until(is_written)


def values(client: WireClient) -> list[bytes]:
    """All values of the topic, in order."""
    found: list[bytes] = []
    while True:
        wanted = FetchPartition(partition=0, fetch_offset=len(found), partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 24,
            topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
        )
        data = client.call(request, 11, FetchResponse).responses[0].partitions[0]
        assert data.error_code == 0, data
        if not data.records:
            return found
        assert isinstance(data.records, bytes | bytearray | memoryview)
        for batch in parse_batches(memoryview(data.records)):
            found += [bytes(record.value or b"") for record in batch.iter_records()]


def expected(count: int) -> list[bytes]:
    return [b"%06d" % number * 100 for number in range(count)]


def logs(client: WireClient) -> dict[str, tuple[bool, int]]:
    """Whether the log in a directory is a copy, and its lag, by path."""
    answer = client.call(DescribeLogDirsRequest(topics=None), 1, DescribeLogDirsResponse)
    return {
        directory.log_dir: (each.is_future_key, each.offset_lag)
        for directory in answer.results
        for topic in directory.topics
        if topic.name == TOPIC
        for each in topic.partitions
    }


def other_path(client: WireClient, folder: Path) -> str:
    (current,) = logs(client)
    return next(each for each in paths(folder) if each != current)


def alter(client: WireClient, path: str) -> int:
    topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    answer = client.call(request, 2, AlterReplicaLogDirsResponse)
    return answer.results[0].partitions[0].error_code


@pytest.mark.parametrize("name", ["apache", "ours"])
def test_reassignment_tool_moves_a_replica_and_verifies_it(name: str, tmp_path: Path) -> None:
    with running(name, tmp_path) as client:
        create(client)
        write(client, 0, BATCHES)
        target = other_path(client, tmp_path)
        plan = tmp_path / "plan.json"
        partition = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": [target]}
        plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        bootstrap = ":".join(map(str, client.sock.getpeername()))
        base = ["--bootstrap-server", bootstrap, "--reassignment-json-file", str(plan)]
        done = run_tool(
            "kafka-reassign-partitions",
            [*base, "--execute", "--replica-alter-log-dirs-throttle", "10000000"],
        )
        assert done.exit_code == 0, done.text
        assert f"Successfully started moving log directory to {target}" in done.text, done.text

        def is_verified() -> bool:
            shown = run_tool("kafka-reassign-partitions", [*base, "--verify"])
            assert shown.exit_code == 0, shown.text
            return f"Reassignment of replica {TOPIC}-0-1 completed successfully." in shown.text

        until(is_verified, seconds_max=60)
        assert logs(client) == {target: (False, 0)}
        write(client, BATCHES, 3)
        assert values(client) == expected(BATCHES + 3)
        names = [each.name for each in Path(target).iterdir() if each.name.startswith(TOPIC)]
        assert names == [f"{TOPIC}-0"]


@pytest.mark.parametrize("name", ["apache", "ours"])
def test_answers_to_wrong_directories_and_a_cancelled_move_are_the_same(
    name: str, tmp_path: Path
) -> None:
    with running(name, tmp_path) as client:
        create(client)
        write(client, 0, BATCHES)
        (source,), target = logs(client), other_path(client, tmp_path)
        set_of_broker(client, "1", **{RATE: "1"})
        answers = [alter(client, each) for each in ("/nowhere", source, target, target)]
        assert answers == [57, 0, 0, 0]
        until(lambda: len(logs(client)) == 2)
        assert logs(client)[target][0]
        assert 0 < logs(client)[target][1] <= BATCHES
        assert logs(client)[source] == (False, 0)
        assert alter(client, source) == 0
        until(lambda: logs(client) == {source: (False, 0)})
        assert values(client) == expected(BATCHES)


@pytest.mark.parametrize(("first", "second"), [("apache", "ours"), ("ours", "apache")])
def test_move_is_continued_by_the_other_make(first: str, second: str, tmp_path: Path) -> None:
    with running(first, tmp_path) as client:
        create(client)
        write(client, 0, BATCHES)
        (source,), target = logs(client), other_path(client, tmp_path)
        set_of_broker(client, "1", **{RATE: "1"})
        assert alter(client, target) == 0
        until(lambda: logs(client).get(target, (False, BATCHES))[1] < BATCHES)
        assert logs(client)[target][1] > 0, "it is in the middle"
        write(client, BATCHES, 2)
    (copy,) = [each.name for each in Path(target).iterdir() if each.name.startswith(TOPIC)]
    assert copy.endswith("-future")
    with running(second, tmp_path, is_new=False) as client:
        until(lambda: set(logs(client)) == {source, target})
        assert not logs(client)[source][0]
        assert logs(client)[target][0]
        assert values(client) == expected(BATCHES + 2)
        set_of_broker(client, "1", **{RATE: None})
        until(lambda: logs(client) == {target: (False, 0)})
        write(client, BATCHES + 2, 2)
        assert values(client) == expected(BATCHES + 4)
    with running(first, tmp_path, is_new=False) as client:
        until(lambda: logs(client) == {target: (False, 0)})
        assert values(client) == expected(BATCHES + 4)
