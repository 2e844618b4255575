"""KIP-595 "Tooling": the quorum described by the command line, beside Apache's own tool."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache.tools import run_tool
from tests.quorum_processes import QuorumProcesses


@pytest.fixture(scope="module")
def controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuorumProcesses]:
    with QuorumProcesses(tmp_path_factory.mktemp("controllers")) as quorum:
        yield quorum


def asked_by_tool(*arguments: str) -> str:
    """What Apache's tool prints, once the controllers know their metadata.version.

    Before that a controller refuses to be spoken to directly, as Apache's does.
    """
    deadline = time.monotonic() + 60
    done = run_tool("kafka-metadata-quorum", list(arguments))
    while done.exit_code != 0 and time.monotonic() < deadline:
        done = run_tool("kafka-metadata-quorum", list(arguments))
    assert done.exit_code == 0, done
    return done.stdout


def described(controllers: QuorumProcesses, *options: str, node_id: int = 1) -> str:
    """What `kraft-wire quorum describe` prints."""
    command = Path(sys.executable).with_name("kraft-wire")
    arguments = ["quorum", "describe", "--bootstrap-controller", controllers.controller(node_id)]
    done = subprocess.run(
        [command, *arguments, *options], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done
    return done.stdout


LABELS = [
    *("ClusterId", "LeaderId", "LeaderEpoch", "HighWatermark"),
    *("MaxFollowerLag", "MaxFollowerLagTimeMs", "CurrentVoters", "CurrentObservers"),
]


def test_status_has_the_eight_lines_of_the_tool(controllers: QuorumProcesses) -> None:
    """595-TOOL-01: cluster, leader, epoch, high watermark, lags, voters, observers."""
    leader = controllers.leader()
    lines = described(controllers, "--status").splitlines()
    assert [line.partition(":")[0] for line in lines] == LABELS
    assert all(line[:24].rstrip().endswith(":") for line in lines), "labels are 24 wide"
    values = {line.partition(":")[0]: line[24:] for line in lines}
    assert values["LeaderId"] == str(leader)
    assert int(values["HighWatermark"]) > 0
    assert int(values["MaxFollowerLag"]) >= 0
    assert values["CurrentVoters"].count('"id"') == 3


def test_replication_has_a_row_for_each_replica_the_leader_first(
    controllers: QuorumProcesses,
) -> None:
    """595-TOOL-02: end, lag and times of each replica, and what it is."""
    leader = controllers.leader()
    head, *rows = (
        line.split() for line in described(controllers, "--replication", node_id=2).splitlines()
    )
    assert head == [
        *("NodeId", "DirectoryId", "LogEndOffset", "Lag"),
        *("LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"),
    ]
    assert rows[0][0] == str(leader)
    assert sorted(row[0] for row in rows) == ["1", "2", "3"]
    assert [row[-1] for row in rows] == ["Leader", "Follower", "Follower"]
    assert all(int(row[2]) > 0 and int(row[3]) >= 0 for row in rows)


@pytest.mark.java
def test_both_views_are_those_of_apaches_tool(controllers: QuorumProcesses) -> None:
    """595-TOOL-01, 595-TOOL-02: the same lines, but for what moves between two questions."""
    bootstrap = ["--bootstrap-controller", controllers.controller(1)]

    def still(text: str) -> dict[str, str]:
        moving = ("HighWatermark", "MaxFollowerLag", "MaxFollowerLagTimeMs")
        lines = (line for line in text.splitlines() if line.partition(":")[0] not in moving)
        return {line.partition(":")[0]: line for line in lines}

    theirs = asked_by_tool(*bootstrap, "describe", "--status")
    assert still(described(controllers, "--status")) == still(theirs)
    table = asked_by_tool(*bootstrap, "describe", "--replication")
    ours = described(controllers, "--replication").splitlines()
    assert ours[0].split() == table.splitlines()[0].split()
    columns = [0, 1, -1]
    for mine, other in zip(ours[1:], table.splitlines()[1:], strict=True):
        assert [mine.split()[at] for at in columns] == [other.split()[at] for at in columns]
