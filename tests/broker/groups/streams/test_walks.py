"""Our streams groups answer and write, byte for byte, what Apache's group manager does."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.groups.streams.group import StreamsGroup
from tests.broker.groups.consumer.apache_groups import Answer, Step
from tests.broker.groups.consumer.recorded_walks import fresh, recorded
from tests.broker.groups.streams.our_groups import OurStreamsGroups
from tests.broker.groups.streams.recorded_walks import WALKS
from tests.broker.groups.streams.walk import StreamsWalk

Walked = list[tuple[Step, Answer]]
RECORDED = recorded(WALKS)


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_a_walk_is_answered_and_written_as_by_apache(number: int) -> None:
    compare(RECORDED[number])


@pytest.mark.java
def test_fresh_walks_are_answered_and_written_as_by_apache() -> None:
    for walk in fresh(dict.fromkeys(range(7_000, 7_040), 70), StreamsWalk):
        compare(walk)


def test_the_recorded_walks_have_refusals_every_record_and_every_state() -> None:
    steps = [pair for walk in RECORDED for pair in walk]
    errors = {answer["error"] for _, answer in steps if "error" in answer}
    assert {25, 42, 81, 110, 113} <= errors
    written = {
        (int(key[:4], 16), value is None)
        for _, answer in steps
        for write in answer.get("writes", ())
        for key, value in write
    }
    assert {(kind, False) for kind in (17, 19, 20, 21, 22, 23)} <= written
    assert {(kind, True) for kind in (17, 19, 20, 21, 22, 23)} <= written
    states = {each["groupState"] for _, answer in steps for each in answer.get("groups", ())}
    assert {"Empty", "NotReady", "Assigning", "Reconciling", "Stable"} <= states
    told = {
        status["statusCode"]
        for _, answer in steps
        for status in answer.get("response", {}).get("status") or ()
    }
    assert {0, 1, 3, 4, 5} <= told


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_a_group_is_the_same_after_another_coordinator_has_loaded_it(number: int) -> None:
    ours = OurStreamsGroups()
    for step, _ in RECORDED[number][:-3]:
        ours.ask(step)
        present, loaded = ours.shard.other_groups.get("group"), ours.loaded()
        after = loaded.other_groups.get("group")
        if not isinstance(present, StreamsGroup):
            assert after is None
            continue
        assert isinstance(after, StreamsGroup)
        assert dict(after.members.items()) == dict(present.members.items())
        assert dict(after.targets.items()) == dict(present.targets.items())
        assert (after.epoch, after.state, after.size_bytes) == (
            present.epoch,
            present.state,
            present.size_bytes,
        )


def compare(walk: Walked) -> None:
    ours = OurStreamsGroups()
    for step, answer in walk:
        assert _comparable(step, ours.ask(step)) == _comparable(step, answer), step


def _comparable(step: Step, answer: Answer) -> dict[str, Any]:
    """Leave out what has no meaning: the order of topics at an endpoint, words of offset checks."""
    if step["step"] in ("streams commit", "streams fetch", "delete"):
        return {"error": answer.get("error", 0), "writes": answer.get("writes")}
    if "groups" in answer:
        return {"groups": [_described(each) for each in answer["groups"]]}
    endpoints = answer.get("response", {}).get("partitionsByUserEndpoint")
    for endpoint in endpoints or ():
        for kind in ("activePartitions", "standbyPartitions"):
            endpoint[kind] = sorted(
                ({**each, "partitions": sorted(each["partitions"])} for each in endpoint[kind]),
                key=lambda each: (each["topic"], each["partitions"]),
            )
    if answer.get("error") == -1:
        return {"error": -1}
    return answer


def _described(group: dict[str, Any]) -> dict[str, Any]:
    return {"errorCode": group["errorCode"]} if group["errorCode"] else group
