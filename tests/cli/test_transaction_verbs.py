"""The verbs of `transactions` on written answers: tables as kafka-transactions.sh prints them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kraft_wire.cli.transactions import admin, command
from kraft_wire.cli.transactions.command import app
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated import (
    describe_producers,
    describe_transactions,
    find_coordinator,
    init_producer_id,
    list_transactions,
    metadata,
    write_txn_markers,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message
from tests.cli.played_cluster import PlayedCluster

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000
BROKER = ("-b", "a:1")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedCluster:
    """A cluster whose coordinator is broker 5."""
    monkeypatch.setattr(command, "wall_ms", lambda: NOW_MS)
    monkeypatch.setattr(admin.RetryDeadline, "pause", lambda _: None)  # type: ignore[attr-defined]  # a module that it imports
    cluster = PlayedCluster(monkeypatch)
    coordinator = find_coordinator.Coordinator(key="x", node_id=5)
    cluster.answers[find_coordinator.FindCoordinatorRequest] = (
        find_coordinator.FindCoordinatorResponse(coordinators=[coordinator], node_id=6)
    )
    return cluster


def listed(*states: tuple[str, int, str], error: int = 0) -> Message:
    """A coordinator's list."""
    return list_transactions.ListTransactionsResponse(
        error_code=error,
        transaction_states=[
            list_transactions.TransactionState(
                transactional_id=name, producer_id=number, transaction_state=state
            )
            for name, number, state in states
        ],
    )


def described(start_ms: int, *partitions: int, error: int = 0) -> Message:
    """A coordinator's description."""
    topics = [describe_transactions.TopicData(topic="t", partitions=list(partitions))]
    state = describe_transactions.TransactionState(
        error_code=error,
        transactional_id="x",
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=start_ms,
        producer_id=7,
        producer_epoch=2,
        topics=topics if partitions else [],
    )
    return describe_transactions.DescribeTransactionsResponse(transaction_states=[state])


def producers(*rows: tuple[int, int, int, int], error: int = 0) -> Message:
    """A replica's producers: id, coordinator's epoch, last time, start of the transaction."""
    states = [
        describe_producers.ProducerState(
            producer_id=number,
            producer_epoch=4,
            last_sequence=9,
            last_timestamp=at_ms,
            coordinator_epoch=epoch,
            current_txn_start_offset=offset,
        )
        for number, epoch, at_ms, offset in rows
    ]
    partition = describe_producers.PartitionResponse(
        partition_index=0, error_code=error, error_message="gone", active_producers=states
    )
    topic = describe_producers.TopicResponse(name="t", partitions=[partition])
    return describe_producers.DescribeProducersResponse(topics=[topic])


def test_list_asks_every_broker_and_sorts(played: PlayedCluster) -> None:
    request = list_transactions.ListTransactionsRequest
    answers = [listed(("b", 3, "Ongoing"), ("a", 1, "Empty")), listed(("a", 2, "Dead"))]
    played.answers[request] = [*answers, *answers]
    assert played.run(app, ["list", *BROKER]) == (
        0,
        "TransactionalId  Coordinator  ProducerId  TransactionState\n"
        "a                1            1           Empty\n"
        "a                2            2           Dead\n"
        "b                1            3           Ongoing\n",
        "",
    )
    played.run(app, ["list", *BROKER, "--duration-filter", "0", "--transactional-id-pattern", "a"])
    filters = [(each.duration_filter, each.transactional_id_pattern) for each in played.sent]
    assert filters == [(-1, None)] * 2 + [(0, "a")] * 2
    assert played.asked[:3] == [15.0, 1, 1]


@pytest.mark.parametrize(
    ("version", "words", "found"),
    [
        (0, (), (-1, "unset")),
        (1, (), (-1, "unset")),
        (2, (), (-1, None)),
        (0, ("--duration-filter", "5"), (5, "unset")),
        (0, ("--transactional-id-pattern", "a"), (-1, "a")),
    ],
)
def test_old_coordinator_is_asked_without_new_filters(
    played: PlayedCluster,
    version: int,
    words: tuple[str, ...],
    found: tuple[int, str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A field that is set to other than its default is what an old version refuses."""
    made: list[Any] = []

    def request(**fields: Any) -> Any:
        made.append(list_transactions.ListTransactionsRequest(**fields))
        made[-1].transactional_id_pattern = "unset"
        return made[-1]

    monkeypatch.setattr(admin, "ListTransactionsRequest", request)
    kind = list_transactions.ListTransactionsRequest
    played.versions[kind] = version
    played.answers[kind] = [listed(), listed()]
    assert played.run(app, ["list", *BROKER, *words])[0] == 0
    assert {(each.duration_filter, each.transactional_id_pattern) for each in made} == {found}


def test_describe_shows_a_row_and_json(played: PlayedCluster) -> None:
    request = describe_transactions.DescribeTransactionsRequest
    played.answers[request] = [described(NOW_MS - 1500, 0, 2), described(-1), described(5, 1)]
    words = ["describe", "--transactional-id", "x", *BROKER]
    code, table, _ = played.run(app, words)
    head, row = table.splitlines()
    assert (code, head.split()) == (0, list(command.DESCRIBED))
    cells = ["5", "x", "7", "2", "Ongoing", "60000", str(NOW_MS - 1500), "1500", "t-0,t-2"]
    assert row.split() == cells
    _, table, _ = played.run(app, words)
    assert table.splitlines()[1].split() == [*cells[:6], "None", "None"]
    assert json.loads(played.run(app, [*words, "--json"])[1]) == {
        "coordinator_id": 5,
        "transactional_id": "x",
        "producer_id": 7,
        "producer_epoch": 2,
        "transaction_state": "Ongoing",
        "transaction_timeout_ms": 60_000,
        "current_transaction_start_time_ms": 5,
        "transaction_duration_ms": NOW_MS - 5,
        "topic_partitions": [{"topic": "t", "partition": 1}],
    }
    keys = [
        each for each in played.sent if isinstance(each, find_coordinator.FindCoordinatorRequest)
    ]
    assert {(each.key, each.key_type, *each.coordinator_keys) for each in keys} == {("", 1, "x")}


def test_old_broker_is_asked_for_one_coordinator(played: PlayedCluster) -> None:
    played.versions[find_coordinator.FindCoordinatorRequest] = 3
    played.answers[describe_transactions.DescribeTransactionsRequest] = described(5)
    found = played.run(app, ["describe", "--transactional-id", "x", "--json", *BROKER])
    assert json.loads(found[1])["coordinator_id"] == 6
    request = played.sent[0]
    assert (request.key, request.key_type, request.coordinator_keys) == ("x", 1, [])


def test_passing_errors_are_retried_and_others_are_refused(played: PlayedCluster) -> None:
    request = find_coordinator.FindCoordinatorRequest
    passing = find_coordinator.Coordinator(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    found = find_coordinator.Coordinator(node_id=5)
    refused = find_coordinator.Coordinator(
        error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, error_message="not yours"
    )
    response = find_coordinator.FindCoordinatorResponse
    played.answers[request] = [response(coordinators=[each]) for each in (refused, passing)]
    said = "kraft-wire transactions: transactional id x: "
    words = ["describe", "--transactional-id", "x", *BROKER]
    assert played.run(app, words) == (
        1,
        "",
        f"{said}TRANSACTIONAL_ID_AUTHORIZATION_FAILED: not yours\n",
    )
    assert played.run(app, words) == (1, "", f"{said}COORDINATOR_NOT_AVAILABLE\n")
    assert played.forgotten_count == 0, "the deadline is over"
    played.settings = type(played.settings)(("a:1",), deadline_seconds=60.0)
    again = [passing, found, found]
    played.answers[request] = [response(coordinators=[each]) for each in again]
    moved = described(5, error=ErrorCode.NOT_COORDINATOR)
    played.answers[describe_transactions.DescribeTransactionsRequest] = [moved, described(5)]
    assert played.run(app, words)[0] == 0
    assert played.forgotten_count == 2


def test_producers_are_those_of_the_leader_or_of_a_replica(played: PlayedCluster) -> None:
    request = describe_producers.DescribeProducersRequest
    played.answers[request] = [
        producers((7, -1, 5, -1), (8, 3, 6, 0)),
        producers(error=ErrorCode.UNKNOWN_SERVER_ERROR),
        producers(error=ErrorCode.UNKNOWN_SERVER_ERROR),
    ]
    words = ["describe-producers", "--topic", "t", "--partition", "2", *BROKER]
    _, table, _ = played.run(app, words)
    assert [line.split() for line in table.splitlines()] == [
        list(command.PRODUCERS),
        ["7", "4", "-1", "9", "5", "None"],
        ["8", "4", "3", "9", "6", "0"],
    ]
    said = "kraft-wire transactions: producers of t-2 at its"
    assert played.run(app, words)[2] == f"{said} leader: UNKNOWN_SERVER_ERROR: gone\n"
    replica = played.run(app, [*words, "--broker-id", "0"])
    assert replica == (1, "", f"{said} broker 0: UNKNOWN_SERVER_ERROR: gone\n")
    key = TopicPartition("t", 2)
    assert played.asked == [15.0, key, 15.0, key, 15.0, 0]
    asked = {(each.topics[0].name, *each.topics[0].partition_indexes) for each in played.sent}
    assert asked == {("t", 2)}


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("--start-offset 0", (8, 4, 3)),
        ("--start-offset 50", (7, 4, 0)),
        ("--producer-id 1 --producer-epoch 0 --coordinator-epoch 6", (1, 0, 6)),
        ("--producer-id 0 --producer-epoch 9 --coordinator-epoch -1", (0, 9, 0)),
    ],
)
def test_abort_writes_a_marker_to_the_leader(
    played: PlayedCluster, words: str, ids: tuple[int, int, int]
) -> None:
    def marked(error: int) -> Message:
        made = write_txn_markers
        partition = made.WritableTxnMarkerPartitionResult(partition_index=0, error_code=error)
        topic = made.WritableTxnMarkerTopicResult(name="t", partitions=[partition])
        return made.WriteTxnMarkersResponse(
            markers=[made.WritableTxnMarkerResult(producer_id=1, topics=[topic])]
        )

    found = producers((7, -1, 5, 50), (8, 3, 6, 0))
    played.answers[describe_producers.DescribeProducersRequest] = found
    request = write_txn_markers.WriteTxnMarkersRequest
    played.answers[request] = [marked(0), marked(0), marked(ErrorCode.INVALID_PRODUCER_EPOCH)]
    line = ["abort", "--topic", "t", "--partition", "0", *words.split(), *BROKER]
    text = f"t-0: aborted the transaction of producer {ids[0]} in epoch {ids[1]}\n"
    assert played.run(app, line) == (0, text, "")
    assert json.loads(played.run(app, [*line, "--json"])[1]) == {
        "topic": "t",
        "partition": 0,
        "producer_id": ids[0],
        "producer_epoch": ids[1],
    }
    assert played.run(app, line) == (
        1,
        "",
        f"kraft-wire transactions: abort of producer {ids[0]} on t-0: INVALID_PRODUCER_EPOCH\n",
    )
    (marker,) = played.sent[-1].markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == ids
    assert (marker.transaction_result, marker.topics[0].name) == (False, "t")
    assert marker.topics[0].partition_indexes == [0]
    assert played.asked[-1] == TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("abort --topic t --partition 0 --start-offset 1", 1, "t-0: no open transaction begins at"),
        *(
            (f"abort --topic t --partition 0 {given}", 2, "give --start-offset, or --producer-id,")
            for given in (
                "",
                "--producer-epoch 1 --coordinator-epoch 1",
                "--producer-id 1 --coordinator-epoch 1",
                "--producer-id 1 --producer-epoch 1",
            )
        ),
        ("find-hanging", 2, "give --topic or --broker-id, to bound the search\n"),
        ("find-hanging --broker-id 1 --partition 0", 2, "--partition needs --topic\n"),
    ],
)
def test_wrong_choice_is_refused(played: PlayedCluster, words: str, code: int, text: str) -> None:
    played.answers[describe_producers.DescribeProducersRequest] = producers((7, -1, 5, -1))
    ended, out, err = played.run(app, [*words.split(), *BROKER])
    assert (ended, out) == (code, "")
    assert err.startswith(f"kraft-wire transactions: {text}")


def test_terminating_fences_the_producer(played: PlayedCluster) -> None:
    request = init_producer_id.InitProducerIdRequest
    response = init_producer_id.InitProducerIdResponse
    done = response(producer_id=7, producer_epoch=3)
    played.answers[request] = [done, done, response(error_code=ErrorCode.PRODUCER_FENCED)]
    words = ["forceTerminateTransaction", "--transactionalId", "x", *BROKER]
    assert played.run(app, words) == (0, "x: producer 7 is now in epoch 3\n", "")
    assert json.loads(played.run(app, [*words, "--json"])[1]) == {
        "transactional_id": "x",
        "producer_id": 7,
        "producer_epoch": 3,
    }
    text = "kraft-wire transactions: transactional id x: PRODUCER_FENCED\n"
    assert played.run(app, words) == (1, "", text)
    sent = played.sent[-1]
    assert (sent.transactional_id, sent.transaction_timeout_ms) == ("x", 30_000)
    assert (sent.producer_id, sent.producer_epoch) == (-1, -1)
    assert played.asked == [15.0, 5] * 3


def test_hanging_ones_are_silent_and_expected_nowhere(played: PlayedCluster) -> None:
    """Producer 7 is known without the partition, 8 with it, 9 to none, 10 wrote just now."""
    limit_ms = NOW_MS - 15 * MINUTE_MS
    rows = [(7, 0), (8, 1), (9, -1)]
    played.answers[describe_producers.DescribeProducersRequest] = [
        producers(*((number, epoch, limit_ms - 1, number) for number, epoch in rows)),
        producers((10, 0, limit_ms, 4), (11, 0, 5, -1)),
        producers((12, 0, NOW_MS - 16 * MINUTE_MS - 59_999, 6)),
    ]
    both = listed(("x", 7, "Ongoing"), ("y", 8, "Ongoing"), ("z", 12, "Ongoing"))
    played.answers[list_transactions.ListTransactionsRequest] = [both, listed()]
    played.answers[describe_transactions.DescribeTransactionsRequest] = [
        described(5, 1),
        described(5, 0),
        described(5, error=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    ]
    played.answers[metadata.MetadataRequest] = topic_with_replicas([1], [1, 2], [1])
    code, table, _ = played.run(app, ["find-hanging", "--topic", "t", *BROKER])
    assert code == 0
    assert [line.split() for line in table.splitlines()] == [
        list(command.HANGING),
        ["t", "0", "7", "4", "0", "7", str(limit_ms - 1), "15"],
        ["t", "0", "9", "4", "-1", "9", str(limit_ms - 1), "15"],
        ["t", "2", "12", "4", "0", "6", str(NOW_MS - 16 * MINUTE_MS - 59_999), "16"],
    ]
    (filters,) = {
        tuple(each.producer_id_filters)
        for each in played.sent
        if isinstance(each, list_transactions.ListTransactionsRequest)
    }
    assert filters == (7, 8, 9, 12)


def topic_with_replicas(*replicas: list[int]) -> Message:
    """Metadata of a topic, its partitions in the order opposite to that of their numbers."""
    partitions = [
        metadata.MetadataResponsePartition(partition_index=number, replica_nodes=each)
        for number, each in reversed(list(enumerate(replicas)))
    ]
    topic = metadata.MetadataResponseTopic(name="t", partitions=partitions)
    return metadata.MetadataResponse(topics=[topic])


def test_search_is_bounded_by_broker_partition_and_time(played: PlayedCluster) -> None:
    request = describe_producers.DescribeProducersRequest
    played.answers[metadata.MetadataRequest] = topic_with_replicas([1], [1, 2], [3])
    played.answers[list_transactions.ListTransactionsRequest] = listed()
    silent = producers((7, 0, NOW_MS - MINUTE_MS, 4))
    played.answers[request] = [silent, silent]
    words = ["find-hanging", "--json", *BROKER]
    assert json.loads(played.run(app, [*words, "--broker-id", "2"])[1]) == []
    assert played.asked == [15.0, 2], "one partition has a replica there, and that one is asked"
    asked: list[Any] = [each for each in played.sent if isinstance(each, metadata.MetadataRequest)]
    found = [(each.topics[0].name, each.allow_auto_topic_creation) for each in asked]
    assert found == [("t", False)]
    sooner = ["--topic", "t", "--partition", "9", "--max-transaction-timeout", "0"]
    assert json.loads(played.run(app, [*words, *sooner])[1]) == [
        {
            "topic": "t",
            "partition": 9,
            "producer_id": 7,
            "producer_epoch": 4,
            "coordinator_epoch": 0,
            "start_offset": 4,
            "last_timestamp": NOW_MS - MINUTE_MS,
            "duration_minutes": 1,
        }
    ]
    played.answers[request] = producers((7, 0, NOW_MS - MINUTE_MS, 4))
    played.answers[list_transactions.ListTransactionsRequest] = [
        listed(("x", 7, "Ongoing")),
        listed(),
    ]
    failing = described(5, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    played.answers[describe_transactions.DescribeTransactionsRequest] = failing
    text = "kraft-wire transactions: transactional id x: UNKNOWN_SERVER_ERROR\n"
    assert played.run(app, [*words, *sooner]) == (1, "", text)
