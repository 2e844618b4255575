"""What a cluster is asked before anything is read, and what is said where it does not answer."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.client import cluster
from kraft_wire.client.cluster import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ClusterClient,
    ClusterRefused,
    ClusterSettings,
)
from kraft_wire.client.connection import BrokerConnectionError, NotAuthenticated
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.client.test_producing import no_time

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
BOOTSTRAP = ("one:1", "two:2")


class Brokers(ClusterClient):
    """Brokers 1 and 2 lead a partition each; broker 3 has no port that anybody knows."""

    def __init__(self, deadline_seconds: float = 7) -> None:
        super().__init__(ClusterSettings(BOOTSTRAP, deadline_seconds=deadline_seconds))
        self.leaders = {A: 1, B: 2}
        self.down: set[str] = set()
        self.errors: dict[TopicPartition, list[int]] = {}
        self.topic_errors: list[int] = []
        self.partition_errors: dict[TopicPartition, int] = {}
        self.gone: set[int] = set()
        self.asked: list[tuple[str, Any]] = []

    def _connection(self, address: str) -> Any:
        if address in self.down:
            raise BrokerConnectionError(f"{address} is down")
        return _Connection(self, address)

    def metadata(self) -> MetadataResponse:
        code = self.topic_errors.pop() if self.topic_errors else 0
        partitions = [
            MetadataResponsePartition(
                partition_index=key.partition,
                leader_id=leader,
                error_code=self.partition_errors.get(key, 0),
            )
            for key, leader in self.leaders.items()
        ]
        topic = MetadataResponseTopic(name="t", error_code=code, partitions=partitions)
        brokers = [
            MetadataResponseBroker(node_id=number, host=name, port=number)
            for number, name in ((1, "one"), (2, "two"))
            if number not in self.gone
        ]
        inner = MetadataResponseTopic(name="__consumer_offsets", is_internal=True)
        return MetadataResponse(brokers=brokers, topics=[topic, inner])

    def offsets(self, address: str, request: ListOffsetsRequest) -> ListOffsetsResponse:
        (topic,) = request.topics
        answers = []
        for each in topic.partitions:
            key = TopicPartition("t", each.partition_index)
            assert BOOTSTRAP[self.leaders[key] - 1] == address, "only leaders are asked"
            codes = self.errors.get(key, [])
            code = codes.pop() if codes else 0
            offset = 10 * each.partition_index + each.timestamp + 5 * request.isolation_level
            answers.append(
                ListOffsetsPartitionResponse(
                    partition_index=each.partition_index, offset=offset, error_code=code
                )
            )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=answers)])


class _Connection:
    def __init__(self, brokers: Brokers, address: str) -> None:
        self._brokers, self._address = brokers, address

    def send(self, request: Any, _: type[object]) -> Any:
        self._brokers.asked.append((self._address, request))
        if isinstance(request, MetadataRequest):
            return self._brokers.metadata()
        return self._brokers.offsets(self._address, request)

    def close(self) -> None:
        """Nothing is open."""


def test_offsets_are_asked_of_each_leader_until_all_are_there() -> None:
    brokers = Brokers()
    brokers.errors = {
        A: [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3,
        B: [ErrorCode.OFFSET_NOT_AVAILABLE],
    }
    with no_time():
        assert brokers.offsets_at({A: LATEST_TIMESTAMP, B: EARLIEST_TIMESTAMP}) == {A: -1, B: 8}
        assert brokers.offsets_at({A: 100, B: 100}, read_committed=True) == {A: 105, B: 115}


@pytest.mark.parametrize(
    ("key", "code", "words"),
    [
        (A, ErrorCode.NOT_LEADER_OR_FOLLOWER, r"t-0: NOT_LEADER_OR_FOLLOWER at one:1 \(for 7 s\)"),
        (B, ErrorCode.LEADER_NOT_AVAILABLE, r"t-1: LEADER_NOT_AVAILABLE at two:2 \(for 7 s\)"),
        (B, ErrorCode.TOPIC_AUTHORIZATION_FAILED, r"t-1: TOPIC_AUTHORIZATION_FAILED at two:2$"),
    ],
)
def test_offset_that_does_not_come_is_named_with_its_leader(
    key: TopicPartition, code: int, words: str
) -> None:
    brokers = Brokers()
    brokers.errors = {key: [code] * 99}
    with no_time(), pytest.raises(ClusterRefused, match=words):
        brokers.offsets_at({A: 1, B: 1})


def test_partition_without_a_leader_is_named() -> None:
    brokers = Brokers()
    brokers.leaders[B] = 3
    with no_time():
        with pytest.raises(ClusterRefused, match="t-1: no leader"):
            brokers.offsets_at({A: 1, B: 1})
        with pytest.raises(BrokerConnectionError, match="t-1 has no leader at one:1, two:2"):
            brokers.leader_of(B)
        brokers.leader_of(A)
        assert brokers.leader_address(A) == "one:1"
        assert brokers.leader_address(B) == "no leader"


def test_brokers_are_asked_in_turns_until_one_answers() -> None:
    brokers = Brokers()
    brokers.down = {"one:1"}
    with no_time():
        assert brokers.topic_names() == ["t"]
        brokers.down = {"one:1", "two:2"}
        with pytest.raises(ClusterRefused, match="one:1 is down; two:2 is down"):
            brokers.topic_names()


def test_topic_is_waited_for_a_moment_and_made_only_when_asked() -> None:
    brokers = Brokers()
    unknown, no_leader = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE
    with no_time():
        brokers.topic_errors = [unknown, unknown, no_leader]
        assert brokers.partitions_of(["t"], create=True) == {"t": 2}
        assert brokers.partitions_of(["t"]) == {"t": 2}
        asked = [request.allow_auto_topic_creation for _, request in brokers.asked]
        assert asked == [True] * 4 + [False]
        with pytest.raises(ClusterRefused, match="topic 'x' does not exist at one:1, two:2"):
            brokers.partitions_of(["t", "x"])
        brokers.topic_errors = [no_leader] * 99
        begun = cluster.time.monotonic()
        with pytest.raises(ClusterRefused, match=r"topic 't' cannot be read at .*LEADER_NOT_AVAIL"):
            brokers.partitions_of(["t"])
        assert 7 <= cluster.time.monotonic() - begun < 8
        brokers.topic_errors = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        with pytest.raises(ClusterRefused, match="TOPIC_AUTHORIZATION_FAILED"):
            brokers.partitions_of(["t"])


def test_missing_topic_is_waited_for_no_longer_than_the_deadline() -> None:
    for deadline_seconds, waited in ((7.0, 2.0), (0.5, 0.5)):
        brokers = Brokers(deadline_seconds)
        with no_time():
            begun = cluster.time.monotonic()
            with pytest.raises(ClusterRefused, match="'x' does not exist"):
                brokers.partitions_of(["x"])
            assert cluster.time.monotonic() - begun == pytest.approx(waited)


def test_leader_with_an_error_or_that_is_gone_is_none() -> None:
    """Metadata name the last leader of a partition that has none now, with an error."""
    brokers = Brokers()
    brokers.learn_leaders(["t"])
    brokers.partition_errors = {B: ErrorCode.LEADER_NOT_AVAILABLE}
    brokers.learn_leaders(["t"])
    assert (brokers.leader_address(A), brokers.leader_address(B)) == ("one:1", "no leader")
    brokers.gone = {1}
    assert brokers.topic_names() == ["t"]
    assert brokers.leader_address(A) == "no leader", "its leader was not asked for again"
    assert brokers.broker_ids() == [2]


def test_broker_with_an_open_connection_is_asked_first() -> None:
    brokers = Brokers()
    assert brokers.topic_names() == ["t"]
    brokers._connections["two:2"] = brokers._connection("two:2")
    assert brokers.topic_names() == ["t"]
    assert [address for address, _ in brokers.asked] == ["one:1", "two:2"]


def test_pauses_double_up_to_a_second_and_end_at_the_deadline() -> None:
    pauses: list[float] = []
    with no_time() as sleep:
        patience = cluster.RetryDeadline(5.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster.time, "sleep", lambda s: (pauses.append(s), sleep(s)))
            while not patience.is_over:
                patience.pause()
    assert pauses[:7] == [0.02 * 2**number for number in range(6)] + [1.0]
    assert sum(pauses) == pytest.approx(5.0)
    assert max(pauses) == 1.0


RETRIABLE = (
    *("UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER"),
    *("REQUEST_TIMED_OUT", "REPLICA_NOT_AVAILABLE", "NETWORK_EXCEPTION"),
    *("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_ENOUGH_REPLICAS"),
    *("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH"),
    *("UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "UNKNOWN_TOPIC_ID"),
    "INCONSISTENT_TOPIC_ID",
)
"""Marked as retriable by the protocol guide, of the errors that one partition may answer."""


@pytest.mark.parametrize("name", RETRIABLE)
def test_error_that_passes_is_asked_for_again(name: str) -> None:
    brokers = Brokers()
    brokers.errors = {B: [ErrorCode[name]] * 2}
    with no_time():
        assert brokers.offsets_at({B: EARLIEST_TIMESTAMP}) == {B: 8}


def test_what_is_asked_is_asked_again_over_a_new_connection_but_without_a_login() -> None:
    """A connection that is lost passes; a login that is refused would be refused again."""
    brokers = Brokers()
    said: list[Exception | str | None] = [BrokerConnectionError("lost"), "not yet", None]

    def ask() -> str | None:
        problem = said.pop(0)
        if isinstance(problem, Exception):
            raise problem
        return problem

    with no_time():
        brokers.until_done(ask, [A])
        said = [BrokerConnectionError("lost") for _ in range(1_000)]
        with pytest.raises(ClusterRefused, match=r"^lost \(for 7 s\)$"):
            brokers.until_done(ask, [A])
        said = [NotAuthenticated("no login"), None]
        with pytest.raises(ClusterRefused, match=r"^no login$"):
            brokers.until_done(ask, [A])
    assert said == [None]
