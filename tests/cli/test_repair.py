"""`kraft-wire repair` and the node beside it: what is damaged is offline, the rest is served."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kraft_wire.cli.repair import app
from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.produce import ProduceResponse
from tests.process import DidNotStart
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.server_process import ServerProcess

runner = CliRunner()
FIRST = f"{0:020d}.log"
FETCH_BY_NAME, LIST_OFFSETS, PRODUCE_BY_NAME = 12, 7, 9
IN_A_BATCH = 70


def repair(*arguments: str | Path, exit_code: int = 0) -> str:
    """Run the command; return what it printed."""
    result = runner.invoke(app, [*map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result.output


def repair_json(*arguments: str | Path, exit_code: int = 0) -> dict[str, Any]:
    """Run the command for a program."""
    found: dict[str, Any] = json.loads(repair(*arguments, "--json", exit_code=exit_code))
    return found


def produce(bootstrap: str, topic: str, count: int = 1) -> list[ErrorCode]:
    """Append batches one by one to partition 0."""
    errors = []
    with WireClient(bootstrap) as client:
        known = client.topic(topic)
        for number in range(count):
            request = produce_request(known, one_batch(b"value %d" % number))
            answer = client.call(request, PRODUCE_BY_NAME, ProduceResponse)
            errors.append(ErrorCode(answer.responses[0].partition_responses[0].error_code))
    return errors


def flip(path: Path, position: int) -> None:
    """Change one bit at rest."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def fetch_error(bootstrap: str, topic: str) -> ErrorCode:
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
                ],
            )
        ],
    )
    with WireClient(bootstrap) as client:
        answer = client.call(request, FETCH_BY_NAME, FetchResponse)
    return ErrorCode(answer.responses[0].partitions[0].error_code)


def end_offset(bootstrap: str, topic: str) -> ListOffsetsPartitionResponse:
    """Ask for the latest offset."""
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
    )
    with WireClient(bootstrap) as client:
        answer = client.call(request, LIST_OFFSETS, ListOffsetsResponse)
    return answer.topics[0].partitions[0]


def sizes(bootstrap: str) -> dict[str, int]:
    """What DescribeLogDirs says of each partition."""
    with BrokerConnection(bootstrap) as connection:
        answer = connection.send(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    (directory,) = answer.results
    assert directory.error_code == ErrorCode.NONE
    return {
        f"{topic.name}-{partition.partition_index}": partition.partition_size
        for topic in directory.topics
        for partition in topic.partitions
    }


@pytest.fixture
def filled(tmp_path: Path) -> ServerProcess:
    """A server with two topics, killed and one of them damaged."""
    server = ServerProcess(tmp_path, overrides={"num.partitions": "1"})
    with server:
        assert set(produce(server.bootstrap, "whole")) == {ErrorCode.NONE}
        assert set(produce(server.bootstrap, "damaged", 5)) == {ErrorCode.NONE}
    flip(server.data / "damaged-0" / FIRST, IN_A_BATCH)
    (server.data / ".kafka_cleanshutdown").unlink()
    (server.data / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    return server


def test_a_damaged_log_is_offline_until_it_is_cut_and_the_rest_is_served(
    filled: ServerProcess,
) -> None:
    segment = filled.data / "damaged-0" / FIRST
    size = segment.stat().st_size
    with filled:
        address = filled.bootstrap
        assert fetch_error(address, "whole") is ErrorCode.NONE
        assert fetch_error(address, "damaged") is ErrorCode.KAFKA_STORAGE_ERROR
        assert end_offset(address, "damaged").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(address, "damaged") == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert produce(address, "whole") == [ErrorCode.NONE]
        assert sizes(address)["damaged-0"] == size
        assert "stop the node that is using it" in repair(filled.data, exit_code=2)
    (line,) = [each for each in filled.log.read_text().splitlines() if "log_refused" in each]
    assert f"partition=damaged-0 file={segment} position=0 reason=" in line
    assert 'reason="position 0: the CRC does not match; a valid batch follows at ' in line
    assert f'repair="kraft-wire repair {filled.data} --partition damaged-0"' in line

    for options in ((), ("--dry-run", "--cut")):
        (found,) = repair_json(filled.data, *options, exit_code=1)["damage"]
        assert (found["partition"], found["path"]) == ("damaged-0", str(segment))
        assert (found["first_offset"], found["last_offset"]) == (0, 4)
        assert (found["cut_bytes"], found["readable_batches"]) == (size, 4)
        assert not found["is_cut"]
    shown = repair(filled.data, "--partition", "damaged-0", exit_code=1)
    assert f"offsets 0..4, {size} bytes, 4 readable batches among them" in shown
    assert "repeat with --cut" in shown
    assert "all damage is removed" in repair(filled.data, "--cut")
    assert (filled.data / "damaged-0" / f"{0:020d}.0.cut").stat().st_size == size
    assert "no damage" in repair(filled.data)

    with filled:
        assert fetch_error(filled.bootstrap, "damaged") is ErrorCode.NONE
        assert end_offset(filled.bootstrap, "damaged").offset == 0
        assert produce(filled.bootstrap, "damaged") == [ErrorCode.NONE]


def test_a_damaged_topic_can_be_deleted(filled: ServerProcess) -> None:
    program = str(Path(sys.executable).parent / "kraft-wire")
    with filled:
        command = [program, "topics", "delete", "damaged", "-b", filled.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        assert sizes(filled.bootstrap).keys() == {"whole-0"}


def test_a_damaged_metadata_log_stops_the_start_and_can_be_cut(filled: ServerProcess) -> None:
    metadata = filled.data / "__cluster_metadata-0" / FIRST
    flip(metadata, metadata.stat().st_size - 5)
    flip(metadata, IN_A_BATCH + 200)
    with pytest.raises(DidNotStart) as stopped:
        filled.start()
    *_, line = str(stopped.value).splitlines()
    command = f"kraft-wire repair {filled.data} --partition __cluster_metadata-0"
    assert line.startswith(f"kraft-wire server: the metadata log is refused: verify {metadata}: ")
    assert line.endswith(f"to show the damage, run: {command}")
    arguments = command.split()[2:]
    assert "are renamed to -stray" in repair(*arguments, exit_code=1)
    (found,) = repair_json(*arguments, "--cut")["damage"]
    assert found["is_cut"]
    assert found["kept"]
    with filled:
        assert set(sizes(filled.bootstrap)) <= {"whole-0", "damaged-0"}


def test_what_cannot_be_cut_is_named_and_left(filled: ServerProcess) -> None:
    (filled.data / "__cluster_metadata-0" / "quorum-state").write_text("?")
    (filled.data / "log-start-offset-checkpoint").write_text("?")
    shown = repair(filled.data, "--cut", exit_code=1)
    assert "1 left that cannot be removed" in shown
    assert "restore the file from a copy" in shown
    assert (filled.data / "log-start-offset-checkpoint.0.cut").read_text() == "?"


def test_mistakes_are_one_line_and_change_nothing(tmp_path: Path) -> None:
    assert "is not a directory" in repair(tmp_path / "none", exit_code=2)
    assert "is not a formatted log directory" in repair(tmp_path, exit_code=2)
    home = tmp_path / "node"
    home.mkdir()
    with ServerProcess(home) as server:
        pass
    assert "contains no log of x-0" in repair(server.data, "--partition", "x-0", exit_code=2)
    assert repair_json(server.data) == {
        "directory": str(server.data),
        "logs_checked": 1,
        "damage": [],
    }
    alone = repair_json(server.data, "--partition", "__cluster_metadata-0")
    assert alone["logs_checked"] == 1
