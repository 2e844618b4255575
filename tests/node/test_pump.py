"""What ends each call of a node: nothing is left behind, and deadlines are those of now."""

from collections.abc import Callable
from typing import Any

import pytest

from kraft_wire.model import Uuid
from kraft_wire.node.node import Node
from kraft_wire.raft.events import TimerFired
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.plans.cluster_plan import drawn_cluster_plan
from kraft_wire.sim.plans.plan import Plan, drawn_plan
from kraft_wire.sim.runs.run import run_plan
from kraft_wire.wire.generated.allocate_producer_ids import AllocateProducerIdsRequest
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.groups.node_door import NodeDoor

FAILED = Uuid(b"f" * 16)
PLANS = [
    *(pytest.param(drawn_plan(seed, events=600), id=f"quorum-{seed}") for seed in (3, 17, 54)),
    *(
        pytest.param(drawn_cluster_plan(seed, events=400), id=f"cluster-{seed}")
        for seed in (1_500, 1_507)
    ),
]


def left_behind(node: Node) -> dict[str, object]:
    """What the call should have carried out, by name; empty where all of it is done."""
    quorum, raft = node.quorum, node.raft
    left: dict[str, object] = {
        "own requests": node._own_requests,
        "steps not followed": quorum.has_news(),
        "quorum events": raft.quorum_events,
        "outputs of the replica's links": raft.take_outputs(),
    }
    apis = quorum.controller_apis_or_none
    if apis is not None:
        left["late answers"] = [*raft.answers, *quorum.host.answers, *apis.forwarder.answers]
        left["answers to the broker's life"] = apis.heartbeats.answers
        left["outputs of the ways to controllers"] = apis.take_outputs()
    if node.has_broker:
        left["completions"] = node.broker.completions
        left["woken fetches"] = node.broker.fetch_purgatory.woken
    return {name: value for name, value in left.items() if value}


def deadline_of_all_parts(node: Node) -> int:
    """The deadline as it is without anything remembered."""
    quorum_ms = node.quorum.deadline_ms()
    return quorum_ms if node._broker is None else min(quorum_ms, node._broker.deadline_ms())


@pytest.mark.parametrize("plan", PLANS)
def test_no_call_leaves_anything_behind_or_an_old_deadline(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = dict.fromkeys(("_pump", "_pump_broker"), 0)

    def judged(name: str) -> Callable[[Node, int, int], None]:
        pump = getattr(Node, name)

        def end(self: Node, now_ms: int, wall_ms: int) -> None:
            pump(self, now_ms, wall_ms)
            calls[name] += 1
            assert left_behind(self) == {}
            assert self.deadline_ms() == deadline_of_all_parts(self)

        return end

    for name in calls:
        monkeypatch.setattr(Node, name, judged(name))
    assert run_plan(plan).failure is None
    assert calls["_pump"] > 100
    assert calls["_pump_broker"] >= 100 * bool(plan.setup.brokers)


def test_own_request_leaves_within_the_call_and_is_answered_behind_it() -> None:
    door, answers = NodeDoor(SimFileSystem()), []
    broker = door.node.broker
    broker.ask_controller(
        MetadataRequest(), lambda response, now_ms: answers.append((response, now_ms))
    )
    assert answers == []
    asked: list[Any] = []

    def answer(tag: str, request: Any, now_ms: int, wall_ms: int) -> Any:
        asked.append((request, now_ms, wall_ms))
        return request

    door.node.controller_apis.ask = answer  # type: ignore[method-assign,assignment]  # it decides no such thing
    assert door.send(ApiVersionsRequest(), 0).response.error_code == 0
    assert asked == [(MetadataRequest(), door.now_ms, door.wall_ms)]
    assert answers == [(MetadataRequest(), door.now_ms)]


def test_what_an_answer_makes_the_broker_ask_leaves_within_the_same_call() -> None:
    door, answers = NodeDoor(SimFileSystem()), []
    broker = door.node.broker

    def once_more(response: Any, now_ms: int) -> None:
        answers.append(response)
        if len(answers) < 3:
            broker.ask_controller(response, once_more)

    door.node.controller_apis.ask = lambda tag, request, *clocks: request  # type: ignore[method-assign,assignment]  # as above
    broker.ask_controller(MetadataRequest(), once_more)
    door.send(ApiVersionsRequest(), 0)
    assert len(answers) == 3


def test_what_a_late_answer_makes_the_broker_ask_leaves_within_the_same_call() -> None:
    door = NodeDoor(SimFileSystem())
    broker, blocks = door.node.broker, []

    def next_block() -> None:
        epoch = door.node.broker_epoch
        request = AllocateProducerIdsRequest(broker_id=broker.node_id, broker_epoch=epoch)
        broker.ask_controller(request, answered)

    def answered(block: Any, now_ms: int) -> None:
        blocks.append(block.producer_id_start)
        if len(blocks) < 3:
            next_block()

    next_block()
    door.send(ApiVersionsRequest(), 0)
    door.flush()
    assert blocks == [0, 1_000, 2_000]


def test_client_is_told_at_once_why_its_topic_is_not_created() -> None:
    """The handler has the controller asked before it answers."""
    door = NodeDoor(SimFileSystem(), default_replication_factor="3")
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    (topic,) = door.send(request, 12).response.topics
    assert topic.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_step_of_the_replica_is_followed_by_the_next_call_whatever_it_is_about() -> None:
    door = NodeDoor(SimFileSystem())
    assert not door.node.quorum.has_news()
    door.node.raft.take(TimerFired(), door.now_ms, door.wall_ms)
    assert door.node.quorum.has_news()
    door.send(ApiVersionsRequest(), 0)
    assert not door.node.quorum.has_news()


def test_failed_directory_is_told_by_the_next_call_whatever_it_is_about() -> None:
    door = NodeDoor(SimFileSystem())
    own = door.node.quorum.local_broker
    assert own is not None
    told: list[tuple[Uuid, int]] = []
    own.lifecycle.directory_failed = lambda *what: told.append(what)  # type: ignore[method-assign]  # only who is told counts
    door.node.quorum.directory_failed(FAILED)
    assert (door.node.quorum.has_news(), told) == (True, [])
    door.send(ApiVersionsRequest(), 0)
    assert told == [(FAILED, door.now_ms)]
