"""What rules do to a conversation and to a node's own requests, as its trace has it."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.testing import Cluster
from kraft_wire.testing.exchanges import Client, Recorder
from kraft_wire.testing.faults.rule import once
from kraft_wire.testing.in_process import DidNotStart
from kraft_wire.testing.proxy.conversation import Conversation
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.testing.test_conversation import UPSTREAM, World, request, response, taken

HEARTBEAT = request(HeartbeatRequest(group_id="g"), 4, 1)
SECOND = request(HeartbeatRequest(group_id="h"), 4, 2)
ANSWER, SECOND_ANSWER = (response(HeartbeatResponse(), 4, number) for number in (1, 2))


def recorded() -> tuple[World, Conversation]:
    world = World()
    now_ms = iter(range(100, 200, 10))
    world.recorder = Recorder(lambda: next(now_ms))
    return world, Conversation(world, Client("127.0.0.1:1"), UPSTREAM)


def exchanges(world: World) -> list[tuple[str, bool, int | None, list[str]]]:
    """API, whether there is a response, how long it took, and the effects."""
    return [
        (each.api, each.response_frame is not None, each.took_ms, each.faults)
        for each in world.recorder.exchanges(None, None)
    ]


def test_exchange_without_rules_is_passed_and_recorded() -> None:
    world, talk = recorded()
    world.node_ids[UPSTREAM] = 7
    talk.client_data(HEARTBEAT)
    assert taken(talk.to_upstream) == HEARTBEAT
    talk.upstream_data(ANSWER)
    assert taken(talk.to_client) == ANSWER
    assert exchanges(world) == [("Heartbeat", True, 10, [])]
    (exchange,) = world.recorder.exchanges(None, None)
    assert (exchange.node_id, exchange.client.address) == (7, "127.0.0.1:1")
    assert exchange.request == HeartbeatRequest(group_id="g")


@pytest.mark.parametrize("verb", ["disconnect", "blackhole"])
def test_request_that_a_rule_takes_has_no_response(verb: str) -> None:
    world, talk = recorded()
    getattr(world.faults, verb)(when=once())
    talk.client_data(HEARTBEAT)
    assert (taken(talk.to_upstream), taken(talk.to_client)) == (b"", b"")
    assert talk.is_over is (verb == "disconnect")
    assert exchanges(world) == [("Heartbeat", False, 10, [verb])]
    talk.client_data(SECOND)
    assert taken(talk.to_upstream) == b""
    assert len(exchanges(world)) == 1
    (exchange,) = world.recorder.exchanges(None, None)
    assert exchange.node_id == -1, "no response has named it yet"


@pytest.mark.parametrize("verb", ["disconnect", "blackhole"])
def test_response_that_a_rule_takes_is_not_sent(verb: str) -> None:
    world, talk = recorded()
    getattr(world.faults, verb)(after_handling=True, when=once())
    talk.client_data(HEARTBEAT + SECOND)
    assert taken(talk.to_upstream) == HEARTBEAT + SECOND
    talk.upstream_data(ANSWER + SECOND_ANSWER)
    assert taken(talk.to_client) == b""
    assert talk.is_over is (verb == "disconnect")
    assert exchanges(world)[0] == ("Heartbeat", False, 20, [verb])
    assert talk.responses.is_paused is (verb == "blackhole")
    assert talk.responses.pause_ms == 0


def test_delays_pause_each_direction_alone() -> None:
    world, talk = recorded()
    world.faults.delay(0.25, when=once())
    world.faults.delay(0.5, after_handling=True, when=once())
    talk.client_data(HEARTBEAT)
    assert (talk.requests.pause_ms, talk.requests.is_paused) == (250, True)
    talk.client_data(SECOND)
    assert taken(talk.to_upstream) == b""
    talk.resume(talk.requests)
    assert (talk.requests.pause_ms, talk.requests.is_paused) == (0, False)
    assert taken(talk.to_upstream) == HEARTBEAT + SECOND
    talk.upstream_data(ANSWER)
    assert (talk.responses.pause_ms, talk.responses.is_paused) == (500, True)
    talk.upstream_data(SECOND_ANSWER)
    assert taken(talk.to_client) == b""
    talk.resume(talk.responses)
    assert taken(talk.to_client) == ANSWER + SECOND_ANSWER
    assert [each[3] for each in exchanges(world)] == [["delay", "delay"], []]


@pytest.mark.parametrize("delay_s", [0, 0.5])
def test_truncated_response_is_the_last(delay_s: float) -> None:
    world, talk = recorded()
    world.faults.truncate_response(3)
    if delay_s:
        world.faults.delay(delay_s, after_handling=True)
    talk.client_data(HEARTBEAT)
    talk.upstream_data(ANSWER)
    if delay_s:
        assert (taken(talk.to_client), talk.is_over) == (b"", False)
        talk.resume(talk.responses)
    assert (taken(talk.to_client), talk.is_over) == (ANSWER[:7], True)


def test_cluster_whose_node_fails_at_the_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    nodes = cluster.in_process

    def refuse(*_: object) -> bool:
        nodes.failures.append("node 1 has stopped: no disk")
        return False

    monkeypatch.setattr(nodes, "_is_ready", refuse)
    with pytest.raises(DidNotStart) as refused:
        cluster.start()
    assert str(refused.value).split("; ")[0] == "node 1 has stopped: no disk"
    assert nodes.thread is None
    assert nodes.nodes == {}


def test_time_is_advanced_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    nodes: Any = cluster.in_process
    seen: list[int] = []

    def tick() -> None:
        seen.append(nodes._clock.ahead_ms)

    with cluster:
        monkeypatch.setattr(nodes.nodes[1].host, "tick", tick)
        cluster.advance(1.2)
        assert [each for each in seen if each] == [500, 1_000, 1_200]
        seen.clear()
        cluster.advance(0)
        assert [each for each in seen if each != 1_200] == []
        cluster.advance(2_000)
        steps = sorted(set(seen))
        assert (len(steps), steps[0], steps[-1]) == (2_000, 2_200, 2_001_200)
