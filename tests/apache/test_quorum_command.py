"""``kraft-wire quorum`` beside ``kafka-metadata-quorum``: the same quorum, the same words.

Both make of controllers are asked by both commands. What moves by itself between two questions, the
times, is masked; the log stands still because no idle records are written.
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.cli.cluster.files import ClusterFiles
from tests.apache.jars import jar_directory
from tests.apache.java_process import Outcome
from tests.apache.tools import run_tool
from tests.cluster_command import ClusterCommand, kraft_wire
from tests.quorum_processes import QuorumProcesses

pytestmark = [pytest.mark.java, pytest.mark.slow]

STILL = ["--override", "metadata.max.idle.interval.ms=0"]
STRANGER = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture(scope="module", params=[0, 2, 3], ids=["ours", "mixed", "apache"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterCommand]:
    """Three controllers, of which none, two or all are Apache's; nothing is written any more."""
    jars = {"KRAFT_WIRE_APACHE_JARS": str(jar_directory())}
    directory = tmp_path_factory.mktemp("home") / "cluster"
    arguments = ["--apache", str(request.param), *STILL]
    with ClusterCommand(directory, *arguments, environment=jars) as running:

        def all_is_fetched() -> bool:
            before, described = running.described(), running.described()
            ends = {each["log_end_offset"] for each in described["voters"]}
            is_still = before["high_watermark"] == described["high_watermark"]
            return is_still and ends == {described["high_watermark"]} and min(ends) > 8

        running.until(all_is_fetched)
        yield running


def theirs(cluster: ClusterCommand, *arguments: str) -> Outcome:
    """What Apache's tool says."""
    bootstrap = ["--bootstrap-controller", cluster.bootstrap]
    return run_tool("kafka-metadata-quorum", [*bootstrap, *arguments])


def masked(text: str) -> str:
    """Times of day, ages and spans made equal, and the padding that depends on them."""
    text = re.sub(r"\d{13}|\d+ ms ago", "<time>", text)
    text = re.sub(r"(MaxFollowerLagTimeMs: +)\d+", r"\1<span>", text)
    return re.sub(r"<time> *\t", "<time>\t", text)


@pytest.mark.parametrize(
    "options", [["--status"], ["--replication"], ["--replication", "--human-readable"]]
)
def test_both_commands_describe_a_quorum_in_the_same_bytes(
    cluster: ClusterCommand, options: list[str]
) -> None:
    ours = cluster.quorum("describe", *options)
    tool = theirs(cluster, "describe", *options)
    assert (ours.returncode, tool.exit_code) == (0, 0), (ours, tool)
    assert masked(ours.stdout) == masked(tool.stdout)


def test_both_commands_refuse_to_remove_a_stranger(cluster: ClusterCommand) -> None:
    ours = cluster.quorum("remove-voter", "-i", "3", "-d", STRANGER)
    tool = theirs(cluster, "remove-controller", "-i", "3", "-d", STRANGER)
    assert (ours.returncode, tool.exit_code) == (1, 1), (ours, tool)
    assert "VOTER_NOT_FOUND" in ours.stderr
    assert "VoterNotFoundException" in tool.stderr


def test_both_commands_say_in_the_same_words_what_they_would_do(cluster: ClusterCommand) -> None:
    identity = ["-i", "3", "-d", STRANGER, "--dry-run"]
    ours = cluster.quorum("remove-voter", *identity)
    tool = theirs(cluster, "remove-controller", *identity)
    assert (ours.stdout.split(), ours.returncode) == (tool.stdout.split(), tool.exit_code), tool
    properties = ClusterFiles(cluster.directory).properties(3)
    ours = cluster.quorum("add-voter", "--config", str(properties), "--dry-run")
    tool = theirs(cluster, "--command-config", str(properties), "add-controller", "--dry-run")
    assert (ours.stdout.split(), ours.returncode) == (tool.stdout.split(), tool.exit_code), tool


def test_voter_that_ours_removed_is_added_by_apaches_tool_and_back(tmp_path: Path) -> None:
    with ClusterCommand(tmp_path / "cluster", *STILL) as running:
        leader = running.described()["leader_id"]
        other = next(node_id for node_id in (3, 2) if node_id != leader)
        properties = str(ClusterFiles(running.directory).properties(other))

        def voters() -> list[int]:
            return sorted(each["node_id"] for each in running.described()["voters"])

        ours = running.quorum("remove-voter", "-i", str(other))
        assert ours.returncode == 0, ours
        assert voters() == sorted({1, 2, 3} - {other})
        tool = theirs(running, "--command-config", properties, "add-controller")
        assert tool.exit_code == 0, tool
        assert voters() == [1, 2, 3]
        (voter,) = (v for v in running.described()["voters"] if v["node_id"] == other)
        removed = theirs(
            running, "remove-controller", "-i", str(other), "-d", voter["directory_id"]
        )
        assert removed.exit_code == 0, removed
        assert removed.stdout.split() == ours.stdout.split(), "the same words"
        added = running.quorum("add-voter", "--config", properties)
        assert (added.stdout.split(), added.returncode) == (tool.stdout.split(), 0)
        assert voters() == [1, 2, 3]


def test_both_commands_describe_a_quorum_through_its_brokers(tmp_path: Path) -> None:
    overrides = {"metadata.max.idle.interval.ms": "0"}
    with QuorumProcesses(tmp_path, is_combined=True, overrides=overrides) as quorum:
        leader = quorum.leader()
        other = next(node_id for node_id in quorum.running if node_id != leader)
        bootstrap = ["--bootstrap-server", quorum.client(other)]

        def ours(*options: str) -> str:
            done = kraft_wire("quorum", "describe", *bootstrap, *options)
            assert done.returncode == 0, done
            return done.stdout

        deadline = time.monotonic() + 60
        while '"max_follower_lag": 0,' not in (before := ours("--json")) or (
            json.loads(before)["high_watermark"] != json.loads(ours("--json"))["high_watermark"]
        ):
            assert time.monotonic() < deadline, before
        for options in (["--status"], ["--replication"]):
            tool = run_tool("kafka-metadata-quorum", [*bootstrap, "describe", *options])
            assert masked(ours(*options)) == masked(tool.stdout), tool
