"""What `cluster up` makes of a broker's metadata: counts of each broker, how far replicas lack."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.cli.cluster import facts as cluster_facts
from kraft_wire.cli.cluster import lag as cluster_lag
from kraft_wire.cli.cluster import screens as cluster_screens
from kraft_wire.cli.cluster.facts import BrokerFacts, ClusterFacts, ClusterQuestions
from kraft_wire.cli.cluster.files import BROKER, ClusterState, NodeState
from kraft_wire.cli.quorum.facts import QuorumFacts, ReplicaFacts
from kraft_wire.client import BrokerConnectionError
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

ADDRESSES = {node_id: f"host{node_id}" for node_id in (101, 102, 103)}


def partition(number: int, leader: int, replicas: list[int], isr: list[int]) -> Any:
    return MetadataResponsePartition(
        partition_index=number, leader_id=leader, replica_nodes=replicas, isr_nodes=isr
    )


def metadata(*brokers: int) -> MetadataResponse:
    """Two topics; of 103's replicas two are late, one partition has no leader."""
    topics = {
        "a": [
            partition(0, 101, [101, 102, 103], [101, 102]),
            partition(1, 102, [102, 103], [102, 103]),
        ],
        "b": [
            partition(0, 102, [101, 102, 103], [102]),
            partition(1, -1, [103], []),
        ],
    }
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=each) for each in brokers],
        topics=[MetadataResponseTopic(name=name, partitions=each) for name, each in topics.items()],
    )


class Answers:
    """Stands for every connection; `ends` are offsets by address, topic and partition."""

    def __init__(self, ends: dict[tuple[str, str, int], int], silent: set[str]) -> None:
        self.ends, self.silent = ends, silent
        self.asked: list[tuple[str, str, int]] = []

    def connect(self, address: str, timeout_s: float) -> Any:
        assert timeout_s == 3
        if address in self.silent:
            raise BrokerConnectionError(address)
        answers = self

        class Connection:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None: ...

            def send(self, request: Any, kind: type[Any]) -> Any:
                return answers.answer(address, request)

        return Connection()

    def answer(self, address: str, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            assert (request.topics, request.allow_auto_topic_creation) == (None, False)
            return SimpleNamespace(of=address)
        assert isinstance(request, ListOffsetsRequest)
        assert request.replica_id == -2
        topics = []
        for topic in request.topics:
            found = []
            for each in topic.partitions:
                assert each.timestamp == -1
                key = (address, topic.name, each.partition_index)
                self.asked.append(key)
                end = self.ends.get(key)
                found.append(
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index,
                        error_code=6 if end is None else 0,
                        offset=-1 if end is None else end,
                    )
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=found))
        return ListOffsetsResponse(topics=topics)


def behind(
    monkeypatch: pytest.MonkeyPatch,
    ends: dict[tuple[str, str, int], int],
    silent: set[str] | None = None,
    brokers: tuple[int, ...] = (101, 102, 103),
    addresses: dict[int, str] = ADDRESSES,
) -> tuple[dict[int, int], Answers]:
    answers = Answers(ends, silent or set())
    monkeypatch.setattr(cluster_lag, "BrokerConnection", answers.connect)
    return cluster_lag.offsets_behind(metadata(*brokers), addresses, 3), answers


ENDS = {
    ("host101", "a", 0): 50,
    ("host103", "a", 0): 47,
    ("host102", "b", 0): 20,
    ("host101", "b", 0): 12,
    ("host103", "b", 0): 21,
}


def test_late_replicas_lack_what_their_leaders_have_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found, answers = behind(monkeypatch, ENDS)
    assert found == {103: 3, 101: 8}
    assert sorted(answers.asked) == sorted(ENDS), "nobody is asked about what is in sync"


def test_what_is_not_told_is_not_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    del (ends := dict(ENDS))["host101", "a", 0]
    assert behind(monkeypatch, ends)[0] == {103: 0, 101: 8}
    assert behind(monkeypatch, ENDS, {"host101"})[0] == {103: 0, 101: 0}
    assert behind(monkeypatch, ENDS, {"host103"})[0] == {103: 0, 101: 8}


def test_only_brokers_that_run_and_are_not_fenced_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert behind(monkeypatch, ENDS, brokers=(101, 102))[0] == {101: 8}
    assert behind(monkeypatch, ENDS, addresses={101: "host101", 103: "host103"})[0] == {103: 3}
    assert behind(monkeypatch, ENDS, brokers=())[0] == {}


def state() -> ClusterState:
    nodes = [
        NodeState(1, "kraft-wire", 9001, pid=11),
        NodeState(101, "kraft-wire", 9101, BROKER, pid=12),
        NodeState(102, "kraft-wire", 9102, BROKER, pid=13),
        NodeState(103, "kraft-wire", 9103, BROKER),
    ]
    return ClusterState("c", nodes={each.node_id: each for each in nodes}, cuts=[])


def replica(node_id: int, end: int | None, fetched_ms: int | None = 5) -> ReplicaFacts:
    return ReplicaFacts(node_id, None, end, fetched_ms, fetched_ms, ())


def quorum(*replicas: ReplicaFacts) -> QuorumFacts:
    return QuorumFacts("c", 1, 5, 88, (replica(1, 90),), replicas)


@pytest.mark.parametrize(
    ("known", "silent", "asked"),
    [
        (quorum(replica(101, 80), replica(102, 81)), set(), "127.0.0.1:9102"),
        (quorum(replica(101, 82), replica(102, 81)), set(), "127.0.0.1:9101"),
        (quorum(replica(102, None)), set(), "127.0.0.1:9102"),
        (quorum(replica(101, 80), replica(102, 81)), {"127.0.0.1:9102"}, "127.0.0.1:9101"),
        (None, set(), "127.0.0.1:9101"),
        (None, {"127.0.0.1:9101", "127.0.0.1:9102"}, None),
    ],
)
def test_broker_that_is_furthest_is_asked_for_the_metadata(
    known: QuorumFacts | None, silent: set[str], asked: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers({}, silent)
    monkeypatch.setattr(cluster_facts, "BrokerConnection", answers.connect)
    questions = ClusterQuestions(state(), patience_s=1, answer_s=3)
    found = questions._metadata(known)
    assert (None if found is None else getattr(found, "of")) == asked  # noqa: B009  # not of a MetadataResponse


def test_facts_of_each_broker_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = ClusterQuestions(state(), patience_s=1, answer_s=3)
    monkeypatch.setattr(questions, "quorum", lambda: None)
    given: list[dict[int, str]] = []

    def lag(
        metadata: MetadataResponse, addresses: dict[int, str], answer_s: float
    ) -> dict[int, int]:
        given.append(addresses)
        return {103: 3}

    monkeypatch.setattr(cluster_facts, "offsets_behind", lag)
    monkeypatch.setattr(questions, "_metadata", lambda _: metadata(101, 102, 103))
    facts = questions.ask()
    assert given == [{101: "127.0.0.1:9101", 102: "127.0.0.1:9102"}]
    assert facts.brokers == {
        101: BrokerFacts(1, 2, 1, 1, 0),
        102: BrokerFacts(2, 3, 3, 1, 0),
        103: BrokerFacts(0, 4, 1, 0, 3),
    }
    assert facts.partitions == "4 partitions, 3 under-replicated, 1 without a leader"
    monkeypatch.setattr(questions, "_metadata", lambda _: None)
    assert questions.ask() == ClusterFacts(None)


def test_of_two_disks_of_a_node_the_one_counts_that_fetched_last() -> None:
    facts = ClusterFacts(quorum(replica(2, 10, 7), replica(2, 11, 9), replica(2, 12, None)))
    found = facts.replica(2)
    assert found is not None
    assert found.log_end_offset == 11
    assert facts.replica(3) is None
    assert ClusterFacts().replica(2) is None
    assert (facts.leader, ClusterFacts().leader) == ((1, 5), None)
    assert ClusterFacts().partitions is None
    one = ClusterFacts(None, {}, 1, 0, 0)
    assert one.partitions == "1 partition, 0 under-replicated, 0 without a leader"


def test_changes_are_lines_where_nobody_looks_at_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with cluster_screens.chosen_screen(as_json=False) as screen:
        facts = ClusterFacts(quorum(), {}, 1, 0, 0)
        screen.show(state(), ClusterFacts(), [])
        screen.show(state(), facts, ["node 1 runs"])
        screen.show(state(), facts, [])
        screen.show(state(), ClusterFacts(), ["node 1 ended"])
        screen.show(state(), ClusterFacts(quorum(), {}, 2, 0, 0), [])
    assert capsys.readouterr().out.splitlines() == [
        "kraft-wire cluster: node 1 runs",
        "kraft-wire cluster: leader 1, epoch 5",
        "kraft-wire cluster: 1 partition, 0 under-replicated, 0 without a leader",
        "kraft-wire cluster: node 1 ended",
        "kraft-wire cluster: 2 partitions, 0 under-replicated, 0 without a leader",
    ]


def test_changes_are_json_lines_where_that_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = ClusterFacts(quorum(), {101: BrokerFacts()}, 1, 0, 0)
    with cluster_screens.chosen_screen(as_json=True) as screen:
        screen.show(state(), ClusterFacts(), [])
        screen.show(state(), ClusterFacts(), ["node 1 runs"])
        screen.show(state(), facts, [])
        screen.show(state(), facts, [])
        screen.show(state(), ClusterFacts(quorum(), {101: BrokerFacts(1)}, 1, 0, 0), [])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["news"] for line in lines] == [["node 1 runs"], [], []]
    assert [line["leader_id"] for line in lines] == [None, 1, 1]
