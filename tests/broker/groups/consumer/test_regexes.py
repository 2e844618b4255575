"""Regular expressions of members: whose topics they may see, and how much is done at a time."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.broker.groups.consumer import regex_engine, regex_evaluation
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.metadata.image import TopicImage
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness, image_of, partition_led, topic_id_of
from tests.broker.groups.test_consumer_group_heartbeat import group_in, joining, send, staying

pytest.importorskip("re2")


def with_topics(*names: str, **settings: Any) -> Harness:
    harness = Harness(group_consumer_assignment_interval_ms=0, **settings)
    for name in names:
        harness.create_topic(name)
    return harness


def by_regex(regex: str = "t.*", **changes: Any) -> Any:
    return joining(subscribed_topic_names=None, subscribed_topic_regex=regex, **changes)


def matched(harness: Harness, regex: str = "t.*") -> list[str]:
    resolved = group_in(harness).regexes.get(regex)
    return [] if resolved is None else sorted(resolved.topics)


def test_topics_that_the_member_may_not_describe_do_not_match() -> None:
    """848-REGEX-01, 848-REGEX-04: the rights are those of the request that began the run."""
    harness = with_topics("table", "tank", "other")
    asked: list[str] = []

    def rights(context: Any) -> Any:
        asked.append(context.client_id)
        return lambda name: name != "tank"

    harness.rights = SimpleNamespace(topic_rights=rights)
    send(harness, by_regex())
    assert matched(harness) == []
    harness.settle()
    assert matched(harness) == ["table"]
    assert asked == ["client"]


def test_many_topics_are_compared_slice_by_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """848-REGEX-05: requests are served between two slices."""
    monkeypatch.setattr(regex_evaluation, "_MATCHES_MAX", 2)
    harness = with_topics("t1", "t2", "t3", "t4", "t5", "x")
    send(harness, by_regex())
    harness.settle()
    assert matched(harness) == []
    assert send(harness, staying(1)).error == 0
    harness.advance(5)
    assert matched(harness) == ["t1", "t2", "t3", "t4", "t5"]
    assert group_in(harness).evaluation is None


def test_the_answer_to_a_regex_comes_with_a_later_heartbeat() -> None:
    """848-REGEX-03, 848-REGEX-07: names and expression together are a union."""
    harness = with_topics("table", "other")
    request = joining(subscribed_topic_names=["other"], subscribed_topic_regex="t.*")
    assert len(send(harness, request).response.assignment.topic_partitions) == 1
    harness.settle()
    later = send(harness, staying(2)).response
    assert later.member_epoch == 3
    assert len(later.assignment.topic_partitions) == 2


def test_a_full_request_with_an_expression_only_is_answered_with_the_assignment() -> None:
    """848-HB-19: `isFullRequest` of 4.3.1 asks for names or an expression."""
    harness = with_topics("table")
    send(harness, by_regex())
    harness.settle()
    epoch = send(harness, staying(1)).response.member_epoch
    assert send(harness, staying(epoch)).response.assignment is None
    full = by_regex(member_epoch=epoch)
    assert len(send(harness, full).response.assignment.topic_partitions) == 1


def test_an_evaluation_is_due_for_a_topic_that_is_gone_before_a_heartbeat() -> None:
    """848-REGEX-06: Kafka notes new topics with each image, also those that do not last."""
    harness = with_topics("table")
    send(harness, by_regex())
    harness.settle()
    harness.advance(10_001)
    without = harness.image
    tank = TopicImage("tank", topic_id_of("tank"), {0: partition_led(0)})
    having = image_of({**without.topics_by_name, "tank": tank})
    harness.publish(replace(having, offset=without.offset + 1))
    harness.publish(replace(without, offset=without.offset + 2))
    send(harness, staying(1))
    assert group_in(harness).evaluation is not None


def test_a_refresh_is_due_after_the_configured_pause() -> None:
    """848-REGEX-06."""
    harness = with_topics("table", group_consumer_regex_refresh_interval_ms=20_000)
    send(harness, by_regex())
    harness.settle()
    epoch = send(harness, staying(1)).response.member_epoch
    harness.advance(20_000)
    send(harness, staying(epoch))
    assert group_in(harness).evaluation is None
    harness.advance(1)
    send(harness, staying(epoch))
    assert group_in(harness).evaluation is not None


def test_a_new_expression_waits_until_ten_seconds_after_the_last_evaluation() -> None:
    """848-REGEX-06: `REGEX_BATCH_REFRESH_MIN_INTERVAL_MS` of 4.3.1."""
    harness = with_topics("table", "other")
    send(harness, by_regex())
    harness.settle()
    harness.advance(10_000)
    send(harness, by_regex("o.*", member_id="late"))
    assert group_in(harness).evaluation is None
    harness.advance(1)
    epoch = group_in(harness).members["late"].member_epoch
    assert send(harness, staying(epoch, member_id="late")).error == 0
    harness.settle()
    assert matched(harness, "o.*") == ["other"]


def test_an_expression_that_is_dropped_during_its_evaluation_gets_no_topics() -> None:
    """848-REGEX-08: 4.3.1 skips the result of an expression that no member uses any more."""
    harness = with_topics("table", "other")
    send(harness, by_regex())
    send(harness, staying(1, subscribed_topic_names=["other"], subscribed_topic_regex=""))
    epoch = group_in(harness).epoch
    harness.settle()
    assert matched(harness) == []
    assert group_in(harness).epoch == epoch


def test_an_expression_of_nobody_is_dropped() -> None:
    """848-REGEX-08."""
    harness = with_topics("table")
    send(harness, by_regex())
    harness.settle()
    assert matched(harness) == ["table"]
    send(harness, staying(1, subscribed_topic_regex=""))
    assert matched(harness) == []


def test_an_expression_that_one_member_changes_stays_for_the_others() -> None:
    """848-REGEX-08: also its result."""
    harness = with_topics("table", "other")
    for member in ("m1", "m2"):
        send(harness, by_regex(member_id=member))
    harness.settle()
    epoch = group_in(harness).members["m1"].member_epoch
    changed = send(harness, staying(epoch, member_id="m1", subscribed_topic_regex="o.*"))
    assert changed.response.error_code == 0
    assert matched(harness) == ["table"]
    send(harness, staying(-1, member_id="m2"))
    assert matched(harness) == []


def test_a_bad_expression_is_refused_when_it_is_new_to_the_group() -> None:
    """848-REGEX-02."""
    harness = with_topics("table")
    answer = send(harness, by_regex("[")).response
    assert answer.error_code == 128
    assert answer.error_message.startswith("SubscribedTopicRegex `[` is not a valid regular")


def test_an_expression_stays_until_the_last_of_its_members_leaves() -> None:
    """848-REGEX-08."""
    harness = with_topics("table", "other")
    for member in ("m1", "m2"):
        send(harness, by_regex(member_id=member))
    send(harness, joining(member_id="m3", subscribed_topic_names=["other"]))
    harness.settle()
    assert matched(harness) == ["table"]
    send(harness, staying(-1, member_id="m1"))
    assert matched(harness) == ["table"]
    send(harness, staying(-1, member_id="m2"))
    assert matched(harness) == []


def test_expressions_that_are_none_are_refused_without_a_line_of_the_library(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A member's mistake is its answer; RE2 would write it to the standard error itself."""
    refused = regex_engine.matcher_of("(unclosed")
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "missing )" in (refused.message or "")
    assert capfd.readouterr() == ("", "")
