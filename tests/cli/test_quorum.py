"""``kraft-wire quorum``: its figures and forms, what it refuses, and how it finds a leader."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.cli.quorum.admin import (
    EntryPoint,
    NewVoter,
    OutcomeUnknown,
    QuorumAdmin,
    QuorumRefused,
    read_entry,
)
from kraft_wire.cli.quorum.command import app
from kraft_wire.cli.quorum.facts import QuorumFacts, ReplicaFacts
from kraft_wire.cli.quorum.views import replication_text, status_text
from kraft_wire.client import BrokerConnectionError
from kraft_wire.model import Uuid
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated import add_raft_voter
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kraft_wire.wire.generated.api_versions import ApiVersion, ApiVersionsResponse
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import request_class
from kraft_wire.wire.header import encode_response_header, parse_request_header
from kraft_wire.wire.message import Message
from tests.waiting import HANG_S

DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAQ"
Answers = Callable[[Message], Message | None]


def replica(node_id: int, end: int | None, caught_up_ms: int | None) -> ReplicaFacts:
    return ReplicaFacts(node_id, None, end, caught_up_ms, caught_up_ms, ())


def quorum(*voters: ReplicaFacts, leader_id: int = 1) -> QuorumFacts:
    return QuorumFacts("a-cluster", leader_id, 3, 10, voters, (replica(9, 4, None),))


# -- figures and forms -----------------------------------------------------------------------------


def test_lag_is_that_of_the_slowest_voter_observers_aside() -> None:
    facts = quorum(replica(1, 10, 5_000), replica(2, 7, 4_000), replica(3, 9, 4_900))
    assert (facts.max_follower_lag, facts.max_follower_lag_ms) == (3, 1_000)
    assert [facts.status(each) for each in facts.replicas] == [
        *("Leader", "Follower", "Follower", "Observer")
    ]


def test_voter_that_never_fetched_is_the_slowest_for_an_unknown_time() -> None:
    facts = quorum(replica(1, 10, 5_000), replica(2, None, None))
    assert (facts.max_follower_lag, facts.max_follower_lag_ms) == (11, None)
    assert "MaxFollowerLagTimeMs:   -1\n" in status_text(facts)


def test_leader_that_removed_itself_leaves_lags_unknown() -> None:
    facts = quorum(replica(2, 7, 4_000), leader_id=1)
    assert facts.leader is None
    assert facts.max_follower_lag is None
    assert "\t-1 \t" in replication_text(facts)


def test_ages_replace_times_where_a_time_of_day_is_given() -> None:
    text = replication_text(quorum(replica(1, 10, 5_000)), 5_250)
    assert "\t250 ms ago" in text.splitlines()[1]
    assert "\t-1 " in text.splitlines()[2], "an observer that never caught up"


@pytest.mark.parametrize(
    ("options", "variables", "entry"),
    [
        ((None, None), {}, (False, "127.0.0.1:9092")),
        ((None, None), {"_SERVER": "a:1,b:2"}, (False, "a:1,b:2")),
        ((None, None), {"": "old:1"}, (False, "old:1")),
        ((None, None), {"_CONTROLLER": "c:1"}, (True, "c:1")),
        ((None, None), {"_CONTROLLER": "c:1", "_SERVER": "a:1"}, (False, "a:1")),
        (("d:1", None), {"_SERVER": "a:1"}, (True, "d:1")),
        ((None, "e:1"), {"_CONTROLLER": "c:1"}, (False, "e:1")),
    ],
)
def test_option_is_taken_before_variable_and_variable_before_default(
    options: tuple[str | None, str | None],
    variables: dict[str, str],
    entry: tuple[bool, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for suffix in ("", "_SERVER", "_CONTROLLER"):
        monkeypatch.delenv(f"KRAFT_WIRE_BOOTSTRAP{suffix}", raising=False)
    for suffix, value in variables.items():
        monkeypatch.setenv(f"KRAFT_WIRE_BOOTSTRAP{suffix}", value)
    found = read_entry(*options)
    assert (found.are_controllers, ",".join(found.addresses)) == entry


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("describe", "-c", "h:1", "-b", "h:2"), "give one of --bootstrap-controller and"),
        (("describe", "-c", ","), "the list of addresses is empty"),
        (("describe", "-c", "localhost:70000"), "localhost:70000 is not an address"),
        (("describe", "-c", "h:1", "--status", "--replication"), "one of --status"),
        (("describe", "-c", "h:1", "--human-readable"), "--human-readable needs --replication"),
        (("describe", "-c", "127.0.0.1:1", "--timeout", "0"), "no leader found: cannot connect"),
        (("add-voter", "-c", "h:1"), "exactly one of --config and --voter"),
        (("add-voter", "-c", "h:1", "--voter", "1@h:1"), "is not of the form id@host:port:dir"),
        (("add-voter", "-c", "h:1", "--config", "/no/such"), "/no/such: No such file"),
        (("remove-voter", "-c", "h:1", "-i", "1", "-d", "short"), "'short' is not a 22-char"),
        (("format-uuid", "zz"), "'zz' is not a 22-character id, nor a hexadecimal one"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(arguments: tuple[str, ...], part: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.splitlines()
    assert line.startswith("kraft-wire quorum: ")
    assert part in line


def test_unformatted_directory_is_named(tmp_path: Path) -> None:
    file = tmp_path / "node.properties"
    lines = [
        "process.roles=controller",
        "node.id=4",
        "listeners=CONTROLLER://127.0.0.1:9093",
        "controller.listener.names=CONTROLLER",
        "controller.quorum.bootstrap.servers=127.0.0.1:9093",
        f"log.dirs={tmp_path}/data",
    ]
    file.write_text("\n".join(lines))
    done = CliRunner().invoke(app, ["add-voter", "-c", "h:1", "--config", str(file)])
    assert done.exit_code == 2
    assert "has no directory.id in meta.properties: format it first" in done.stderr


def test_id_is_printed_in_both_forms() -> None:
    given = "00000000-0000-0000-0000-000000000001"
    for text in (given, given.replace("-", ""), DIRECTORY):
        done = CliRunner().invoke(app, ["format-uuid", text, "--json"])
        assert json.loads(done.stdout) == {"id": DIRECTORY, "uuid": given}
    drawn = CliRunner().invoke(app, ["format-uuid"]).stdout.strip()
    assert len(drawn) == 22


def test_watch_goes_on_while_nobody_leads() -> None:
    arguments = ["watch", "-c", "127.0.0.1:1", "--count", "2", "-n", "0.05", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(looks) == 2
    assert all("cannot connect" in look["error"] for look in looks)


@pytest.mark.parametrize("seconds", ["0", "0.04", "-1", "86401", "1e12", "inf", "nan"])
def test_watch_looks_again_after_a_time_that_a_person_may_wait(seconds: str) -> None:
    arguments = ["watch", "-c", "127.0.0.1:1", "--count", "2", "-n", seconds]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2, done.output
    assert "Invalid value for '--interval'" in done.stderr


# -- finding the leader ----------------------------------------------------------------------------


@contextmanager
def controller(answers: Answers) -> Iterator[str]:
    """Somebody who answers one connection after the other; None closes it. Yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        _serve(connection, answers)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join(HANG_S)


def _serve(connection: socket.socket, answers: Answers) -> None:
    while True:
        size = connection.recv(4, socket.MSG_WAITALL)
        if len(size) < 4:
            return
        frame = connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
        header, start = parse_request_header(frame)
        kind = request_class(header.api_key)
        request, _ = kind.decode(frame, header.api_version, start)
        answer = _versions() if header.api_key == 18 else answers(request)
        if answer is None:
            return
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        body = head + answer.encode(header.api_version)
        connection.sendall(frame_prefix(len(body)) + body)


def _versions() -> ApiVersionsResponse:
    served = (DescribeQuorumRequest, DescribeClusterRequest, AddRaftVoterRequest)
    keys = [
        ApiVersion(api_key=each.API_KEY, min_version=0, max_version=each.MAX_VERSION)
        for each in served
    ]
    return ApiVersionsResponse(api_keys=keys)


def described_by(node_id: int) -> DescribeQuorumResponse:
    voter = ReplicaState(replica_id=node_id, log_end_offset=5)
    partition = ResponsePartitionData(
        leader_id=node_id, leader_epoch=1, high_watermark=5, current_voters=[voter], observers=[]
    )
    topic = ResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])
    return DescribeQuorumResponse(topics=[topic])


def leading(request: Message) -> Message | None:
    """Answer as the leader, node 7, does."""
    if isinstance(request, DescribeQuorumRequest):
        return described_by(7)
    if isinstance(request, AddRaftVoterRequest):
        return AddRaftVoterResponse()
    return DescribeClusterResponse(cluster_id="a-cluster", controller_id=7, endpoint_type=2)


def following(leader: str) -> Answers:
    """Answer as one that follows the leader at an address."""
    host, port = leader.split(":")
    broker = DescribeClusterBroker(broker_id=7, host=host, port=int(port))

    def answers(request: Message) -> Message | None:
        if isinstance(request, DescribeQuorumRequest):
            return DescribeQuorumResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if isinstance(request, AddRaftVoterRequest):
            return AddRaftVoterResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return DescribeClusterResponse(
            cluster_id="a-cluster", controller_id=7, endpoint_type=2, brokers=[broker]
        )

    return answers


def admin(*addresses: str) -> QuorumAdmin:
    return QuorumAdmin(
        EntryPoint(addresses, are_controllers=True), patience_s=0.0, connection_s=5.0
    )


def test_follower_is_asked_for_the_leader_which_is_then_asked_first() -> None:
    asked: list[str] = []

    def counting(request: Message) -> Message | None:
        asked.append(request.NAME)
        return following(leader)(request)

    with controller(leading) as leader, controller(counting) as follower:
        asking = admin(follower)
        assert asking.describe().leader_id == 7
        assert asked == ["DescribeQuorumRequest", "DescribeClusterRequest"]
        assert asking.describe().cluster_id == "a-cluster"
        assert len(asked) == 2, "the leader is remembered"


def test_change_goes_to_the_leader_as_well() -> None:
    """With half a minute for the new voter to catch up."""
    asked: list[Message] = []

    def noting(request: Message) -> Message | None:
        asked.append(request)
        return leading(request)

    with controller(noting) as leader, controller(following(leader)) as follower:
        admin(follower).add_voter(NewVoter(8, Uuid(b"d" * 16), (("CONTROLLER", "h", 1),)))
    assert asked[-1] == AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=30_000,
        voter_id=8,
        voter_directory_id=Uuid(b"d" * 16),
        listeners=[add_raft_voter.Listener(name="CONTROLLER", host="h", port=1)],
    )


def test_change_whose_answer_is_lost_is_not_asked_for_again() -> None:
    asked = 0

    def silent(request: Message) -> Message | None:
        nonlocal asked
        asked += isinstance(request, AddRaftVoterRequest)
        return None

    with controller(silent) as leader, pytest.raises(OutcomeUnknown, match="it is unknown whether"):
        admin(leader).add_voter(NewVoter(8, Uuid(b"d" * 16), (("CONTROLLER", "h", 1),)))
    assert asked == 1


def test_unreachable_addresses_are_passed_over() -> None:
    with controller(leading) as leader:
        assert admin("127.0.0.1:1", leader).describe().leader_id == 7


def test_nobody_leads_is_said_with_the_last_reason() -> None:
    address = "127.0.0.1:1"
    with (
        controller(following(address)) as follower,
        pytest.raises(BrokerConnectionError, match="no leader"),
    ):
        admin(follower).describe()


def test_response_without_the_quorum_is_named() -> None:
    def empty(request: Message) -> Message | None:
        return DescribeQuorumResponse(topics=[])

    with (
        controller(empty) as asked,
        pytest.raises(BrokerConnectionError, match="describes no quorum"),
    ):
        admin(asked).describe()


def test_other_errors_are_refusals() -> None:
    def unknown(request: Message) -> Message | None:
        return DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    with controller(unknown) as asked, pytest.raises(QuorumRefused, match="AUTHORIZATION"):
        admin(asked).describe()
