"""``kraft-wire quorum`` over a quorum that is made up: what each verb prints, and its exit code."""

import io
import json
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from kraft_wire.cli.quorum import command
from kraft_wire.cli.quorum.admin import NewVoter, OutcomeUnknown, QuorumAdmin, QuorumRefused
from kraft_wire.cli.quorum.facts import QuorumFacts, ReplicaFacts, facts_of
from kraft_wire.cli.quorum.views import facts_json, watch_table
from kraft_wire.client import BrokerConnectionError
from kraft_wire.model import ZERO_UUID, uuid_from_text
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
)
from kraft_wire.wire.generated.error_code import ErrorCode

DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAQ"
NOW_MS = 1_700_000_000_000


def state(node_id: int, end: int, fetched_ms: int, caught_up_ms: int, known: bool) -> ReplicaState:
    return ReplicaState(
        replica_id=node_id,
        replica_directory_id=uuid_from_text(DIRECTORY) if known else ZERO_UUID,
        log_end_offset=end,
        last_fetch_timestamp=fetched_ms,
        last_caught_up_timestamp=caught_up_ms,
    )


FACTS = facts_of(
    "a-cluster",
    DescribeQuorumResponse(
        nodes=[Node(node_id=2, listeners=[Listener(name="C", host="h", port=9093)])]
    ),
    ResponsePartitionData(
        leader_id=1,
        leader_epoch=3,
        high_watermark=9,
        current_voters=[
            state(2, 7, NOW_MS - 3_000, NOW_MS - 4_000, True),
            state(1, 10, NOW_MS, NOW_MS, True),
            state(3, -1, -1, -1, False),
        ],
        observers=[state(4, 0, NOW_MS - 3_001, -1, False)],
    ),
)


class Quorum:
    """What is asked of the quorum, and what it says."""

    def __init__(self) -> None:
        self.changes: list[object] = []
        self.problem: Exception | None = None
        self.looks = 0

    def say(self) -> QuorumFacts:
        self.looks += 1
        if self.problem is not None and self.looks % 2:
            raise self.problem
        return FACTS

    def change(self, *what: object) -> None:
        if self.problem is not None:
            raise self.problem
        self.changes.append(what[0] if len(what) == 1 else what)


@pytest.fixture
def quorum(monkeypatch: pytest.MonkeyPatch) -> Quorum:
    found = Quorum()
    monkeypatch.setattr(QuorumAdmin, "describe", lambda _: found.say())
    monkeypatch.setattr(QuorumAdmin, "add_voter", lambda _, voter: found.change(voter))
    monkeypatch.setattr(QuorumAdmin, "remove_voter", lambda _, *voter: found.change(*voter))
    monkeypatch.setattr(command, "wall_ms", lambda: NOW_MS)
    return found


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command.app, [*arguments, "--bootstrap-controller", "h:1"])


def test_facts_of_the_wire_are_none_where_the_leader_does_not_know() -> None:
    assert facts_json(FACTS) == {
        "cluster_id": "a-cluster",
        "leader_id": 1,
        "leader_epoch": 3,
        "high_watermark": 9,
        "max_follower_lag": 11,
        "max_follower_lag_ms": None,
        "voters": [
            {
                "node_id": 2,
                "directory_id": DIRECTORY,
                "endpoints": ["C://h:9093"],
                "log_end_offset": 7,
                "lag": 3,
                "last_fetch_ms": NOW_MS - 3_000,
                "last_caught_up_ms": NOW_MS - 4_000,
                "status": "Follower",
            },
            {
                "node_id": 1,
                "directory_id": DIRECTORY,
                "endpoints": [],
                "log_end_offset": 10,
                "lag": 0,
                "last_fetch_ms": NOW_MS,
                "last_caught_up_ms": NOW_MS,
                "status": "Leader",
            },
            {
                "node_id": 3,
                "directory_id": None,
                "endpoints": [],
                "log_end_offset": None,
                "lag": 11,
                "last_fetch_ms": None,
                "last_caught_up_ms": None,
                "status": "Follower",
            },
        ],
        "observers": [
            {
                "node_id": 4,
                "directory_id": None,
                "endpoints": [],
                "log_end_offset": 0,
                "lag": 10,
                "last_fetch_ms": NOW_MS - 3_001,
                "last_caught_up_ms": None,
                "status": "Observer",
            }
        ],
    }


STATUS = f"""\
ClusterId:              a-cluster
LeaderId:               1
LeaderEpoch:            3
HighWatermark:          9
MaxFollowerLag:         11
MaxFollowerLagTimeMs:   -1
CurrentVoters:          [{{"id": 2, "directoryId": "{DIRECTORY}", "endpoints": ["C://h:9093"]}}, \
{{"id": 1, "directoryId": "{DIRECTORY}"}}, {{"id": 3}}]
CurrentObservers:       [{{"id": 4}}]
"""
"""Line by line as kafka-metadata-quorum has it."""


def test_describe_prints_status_replication_or_both(quorum: Quorum) -> None:
    status, replication = run("describe", "--status"), run("describe", "--replication")
    assert (status.exit_code, status.stdout) == (0, STATUS)
    assert run("describe").stdout == f"{STATUS}\n{replication.stdout}"
    rows = [line.split() for line in replication.stdout.splitlines()]
    assert rows == [
        [
            *("NodeId", "DirectoryId", "LogEndOffset", "Lag"),
            *("LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"),
        ],
        ["1", DIRECTORY, "10", "0", str(NOW_MS), str(NOW_MS), "Leader"],
        ["2", DIRECTORY, "7", "3", str(NOW_MS - 3_000), str(NOW_MS - 4_000), "Follower"],
        ["3", "A" * 22, "-1", "11", "-1", "-1", "Follower"],
        ["4", "A" * 22, "0", "10", str(NOW_MS - 3_001), "-1", "Observer"],
    ]
    ages = run("describe", "--replication", "--human-readable").stdout.splitlines()
    assert "\t3000 ms ago" in ages[2]
    assert "\t4000 ms ago" in ages[2]
    assert json.loads(run("describe", "--json").stdout) == facts_json(FACTS)


def test_watch_looks_as_often_as_is_asked_and_shows_what_went_wrong(quorum: Quorum) -> None:
    quorum.problem = QuorumRefused("no", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    done = run("watch", "--count", "3", "--interval", "0.05", "--json")
    assert done.exit_code == 0
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    problem = {"error": "no: CLUSTER_AUTHORIZATION_FAILED"}
    assert lines == [problem, facts_json(FACTS), problem]
    shown = run("watch", "--count", "2", "--interval", "0.05").stdout
    assert "cluster a-cluster   leader 1   epoch 3   high watermark 9" in shown
    assert "no: CLUSTER_AUTHORIZATION_FAILED" in shown


def test_table_for_people_marks_what_is_late() -> None:
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(watch_table(FACTS, NOW_MS))
    plain = [line.split("  ") for line in console.export_text(clear=False).splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in plain]
    assert cells[1:] == [
        [
            *("node", "log end", "lag", "last fetch", "caught up", "status"),
            *("directory", "endpoints"),
        ],
        ["1", "10", "0", "0.0 s ago", "0.0 s ago", "Leader", DIRECTORY, "-"],
        ["2", "7", "3", "3.0 s ago", "4.0 s ago", "Follower", DIRECTORY, "C://h:9093"],
        ["3", "-1", "11", "never", "never", "Follower", "-", "-"],
        ["4", "0", "10", "3.0 s ago", "never", "Observer", "-", "-"],
    ]
    html = console.export_html(inline_styles=True)
    red = re.findall("color: #800000;[^>]*>([^<]+)<", html)
    assert [text.strip() for text in red] == ["4.0 s ago", "never", "never", "3.0 s ago", "never"]


def test_voter_is_added_or_only_said_to_be(quorum: Quorum) -> None:
    arguments = ["add-voter", "--voter", f"5@h:9093:{DIRECTORY}", "--listener", "C"]
    words = f"controller 5 with directory id {DIRECTORY} and endpoints: C://h:9093\n"
    dry = run(*arguments, "--dry-run")
    assert (dry.exit_code, dry.stdout, quorum.changes) == (0, f"DRY RUN of adding {words}", [])
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (0, f"Added {words}")
    assert quorum.changes == [NewVoter(5, uuid_from_text(DIRECTORY), (("C", "h", 9093),))]
    assert [
        json.loads(run(*arguments, "--json", *more).stdout) for more in ((), ("--dry-run",))
    ] == [
        {"added": added, "node_id": 5, "directory_id": DIRECTORY, "endpoints": ["C://h:9093"]}
        for added in (True, False)
    ]


@pytest.mark.parametrize("given", [("-d", DIRECTORY), ()])
def test_voter_is_removed_or_only_said_to_be(quorum: Quorum, given: tuple[str, ...]) -> None:
    """Without a directory it is the one that the quorum knows."""
    arguments = ["remove-voter", "-i", "2", *given]
    words = f"KRaft controller 2 with directory id {DIRECTORY}\n"
    dry = run(*arguments, "--dry-run")
    assert (dry.exit_code, dry.stdout, quorum.changes) == (0, f"DRY RUN of removing {words}", [])
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (0, f"Removed {words}")
    assert quorum.changes == [(2, uuid_from_text(DIRECTORY))]
    assert [
        json.loads(run(*arguments, "--json", *more).stdout) for more in ((), ("--dry-run",))
    ] == [
        {"removed": removed, "node_id": 2, "directory_id": DIRECTORY} for removed in (True, False)
    ]


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (QuorumRefused("no", ErrorCode.DUPLICATE_VOTER, "it votes"), 1),
        (OutcomeUnknown("lost"), 1),
        (BrokerConnectionError("nobody"), 2),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("describe",),
        ("add-voter", "--voter", f"5@h:9093:{DIRECTORY}"),
        ("remove-voter", "-i", "2", "-d", DIRECTORY),
    ],
)
def test_problem_is_one_line_with_the_exit_code_of_its_kind(
    quorum: Quorum, arguments: tuple[str, ...], problem: Exception, code: int
) -> None:
    quorum.problem = problem
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr == f"kraft-wire quorum: {problem}\n"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (None, "no: DUPLICATE_VOTER"),
        ("DUPLICATE_VOTER", "no: DUPLICATE_VOTER"),
        ("a", "no: DUPLICATE_VOTER: a"),
    ],
)
def test_refusal_says_a_message_that_says_more(message: str | None, shown: str) -> None:
    assert str(QuorumRefused("no", ErrorCode.DUPLICATE_VOTER, message)) == shown


def replicas(*ends: int | None) -> QuorumFacts:
    voters = tuple(
        ReplicaFacts(number, None, end, 100 - number, 200 - number, ())
        for number, end in enumerate(ends, 1)
    )
    return QuorumFacts("c", 1, 1, 1, voters, ())


@pytest.mark.parametrize(
    ("facts", "lag", "lag_ms"),
    [
        (replicas(5, 3, 4), 2, 1),
        (replicas(5, 5), 0, 0),
        (replicas(5), 0, 0),
        (replicas(0, None), 1, 1),
        (replicas(), None, None),
    ],
)
def test_lag_is_that_of_the_slowest(
    facts: QuorumFacts, lag: int | None, lag_ms: int | None
) -> None:
    assert (facts.max_follower_lag, facts.max_follower_lag_ms) == (lag, lag_ms)
