"""Our consumer groups answer and write, byte for byte, what Apache's group manager does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.groups.consumer.apache_groups import Answer, Step
from tests.broker.groups.consumer.our_groups import OurGroups
from tests.broker.groups.consumer.recorded_walks import fresh, recorded

Walked = list[tuple[Step, Answer]]
WALKS = recorded()
GROUP_ID_NOT_FOUND = 69
INVALID_REGULAR_EXPRESSION = 128


@pytest.mark.parametrize("number", range(len(WALKS)))
def test_a_walk_is_answered_and_written_as_by_apache(number: int) -> None:
    """848-HB-14, 848-HB-15, 848-HB-16, 848-HB-18, 848-HB-19, 848-HB-20, 848-HB-21, 848-RECON-01,
    848-RECON-02, 848-RECON-03, 848-RECON-04, 848-RECON-05, 848-RECON-06, 848-RECON-07,
    848-RECON-08, 848-REC-03, 848-REC-05."""
    compare(WALKS[number])


@pytest.mark.java
def test_fresh_walks_are_answered_and_written_as_by_apache() -> None:
    for walk in fresh(dict.fromkeys(range(5_000, 5_040), 60)):
        compare(walk)


def test_the_recorded_walks_have_refusals_and_all_states() -> None:
    steps = [pair for walk in WALKS for pair in walk]
    errors = {answer["error"] for _, answer in steps if "error" in answer}
    assert {110, 111, 128} <= errors
    states = {each["groupState"] for _, answer in steps for each in answer.get("groups", ())}
    assert {"Empty", "Assigning", "Reconciling", "Stable"} <= states


def compare(walk: Walked) -> None:
    ours = OurGroups()
    for step, answer in walk:
        assert comparable(ours.ask(step)) == comparable(answer), step


def comparable(answer: Answer) -> dict[str, Any]:
    """Leave out the words of another RE2, and the order of names, which has no meaning."""
    if "groups" in answer:
        return {"groups": [_described(each) for each in answer["groups"]]}
    if answer.get("error") == GROUP_ID_NOT_FOUND:
        return {"error": GROUP_ID_NOT_FOUND}
    if answer.get("error") == INVALID_REGULAR_EXPRESSION:
        return {**answer, "message": answer["message"].partition(" is not a valid")[0]}
    return answer


def _described(group: dict[str, Any]) -> dict[str, Any]:
    if group["errorCode"]:
        return {"errorCode": group["errorCode"]}
    members = [
        {**each, "subscribedTopicNames": sorted(each["subscribedTopicNames"])}
        for each in group["members"]
    ]
    return {**group, "members": members}
