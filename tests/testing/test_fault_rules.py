"""The engine of fault rules as a function of frames: which parts of a message a rule reaches."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from math import inf, nan

import pytest

from kraft_wire.model import Uuid
from kraft_wire.testing.faults.documents import InvalidRule, read_rules, rule_of, rule_to_document
from kraft_wire.testing.faults.injecting import Faults
from kraft_wire.testing.faults.rule import When, on_call, times
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.faults.treatment import Fate
from kraft_wire.wire.generated.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.header import (
    RequestHeader,
    encode_request_header,
    encode_response_header,
    parse_request_header,
    parse_response_header,
)
from kraft_wire.wire.message import Message
from tests.waiting import HANG_S

ORDERS = Uuid(bytes(15) + b"\x07")
NOT_LEADER = 6


def rules() -> Faults:
    return Faults(FaultRules(lambda topic_id: "orders" if topic_id == ORDERS else None))


def frame(request: Message, version: int) -> bytes:
    header = RequestHeader(request.API_KEY, version, 5, "shop")
    return encode_request_header(header) + request.encode(version)


def response_frame(response: Message, version: int) -> bytes:
    return encode_response_header(response.API_KEY, version, 5) + response.encode(version)


def produce_request(version: int, *partitions: tuple[str, int]) -> ProduceRequest:
    topics: dict[str, list[PartitionProduceData]] = {}
    for topic, partition in partitions:
        data = PartitionProduceData(index=partition, records=b"records")
        topics.setdefault(topic, []).append(data)
    names = {"name": ""} if version >= 13 else {}
    return ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(
                **(names or {"name": topic}),
                topic_id=ORDERS if version >= 13 else bytes(16),
                partition_data=data,
            )
            for topic, data in topics.items()
        ],
    )


@pytest.mark.parametrize("version", [9, 12, 13])
def test_error_for_one_partition_is_taken_out_and_added_to_the_response(version: int) -> None:
    faults = rules()
    rule = faults.inject_error("NOT_LEADER_OR_FOLLOWER", topic="orders", partition=1)
    request = produce_request(version, ("orders", 0), ("orders", 1))
    treatment = faults.rules.on_request(1, frame(request, version))
    assert treatment is not None
    assert treatment.fate is Fate.PASS
    passed, _ = ProduceRequest.decode(
        treatment.frame, version, parse_request_header(treatment.frame)[1]
    )
    assert [each.index for each in passed.topic_data[0].partition_data] == [0]
    outcome = faults.rules.on_response(treatment, response_frame(ProduceResponse(), version))
    body_at = parse_response_header(outcome.frame, 0, version)[1]
    response, _ = ProduceResponse.decode(outcome.frame, version, body_at)
    (topic,) = response.responses
    assert (topic.name, topic.topic_id) == (
        ("", ORDERS) if version >= 13 else ("orders", bytes(16))
    )
    (refused,) = topic.partition_responses
    assert (refused.index, refused.error_code) == (1, NOT_LEADER)
    assert rule.fired == 1


def test_error_for_every_partition_named_answers_in_place_of_the_node() -> None:
    faults = rules()
    faults.inject_error("NOT_LEADER_OR_FOLLOWER", topic="orders")
    treatment = faults.rules.on_request(1, frame(produce_request(9, ("orders", 0)), 9))
    assert treatment is not None
    assert treatment.fate is Fate.ANSWER


def test_equal_partitions_of_another_topic_stay() -> None:
    faults = rules()
    faults.inject_error("UNSTABLE_OFFSET_COMMIT", topic="orders", partition=0)
    topics = [
        OffsetFetchRequestTopics(name=name, partition_indexes=[0, 1]) for name in ("a", "orders")
    ]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    treatment = faults.rules.on_request(1, frame(request, 8))
    assert treatment is not None
    body_at = parse_request_header(treatment.frame)[1]
    passed, _ = OffsetFetchRequest.decode(treatment.frame, 8, body_at)
    kept = [(each.name, each.partition_indexes) for each in passed.groups[0].topics]
    assert kept == [("a", [0, 1]), ("orders", [1])]
    response = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g")])
    outcome = faults.rules.on_response(treatment, response_frame(response, 8))
    answered, _ = OffsetFetchResponse.decode(outcome.frame, 8, 5)
    refused = [each for group in answered.groups for each in group.topics]
    assert [each.name for each in refused] == ["orders"]


def test_session_that_names_nothing_is_hit_by_its_response() -> None:
    faults = rules()
    rule = faults.inject_error("OFFSET_OUT_OF_RANGE", api="Fetch", topic="orders", when=times(1))
    request = frame(FetchRequest(session_id=9, session_epoch=4), 12)
    treatment = faults.rules.on_request(1, request)
    assert treatment is not None
    empty = response_frame(FetchResponse(session_id=9), 12)
    assert faults.rules.on_response(treatment, empty).frame == empty
    assert rule.fired == 0
    data = PartitionData(partition_index=2, records=b"records")
    topic = FetchableTopicResponse(topic="orders", partitions=[data])
    full = response_frame(FetchResponse(session_id=9, responses=[topic]), 12)
    outcome = faults.rules.on_response(treatment, full)
    hit, _ = FetchResponse.decode(outcome.frame, 12, 5)
    assert hit.responses[0].partitions[0].error_code == 1
    assert bytes(hit.responses[0].partitions[0].records) == b""
    assert rule.fired == 1


def test_rule_about_an_api_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown API 'Fetched'"):
        rules().disconnect(api="Fetched")


def test_frame_that_no_rule_is_about_has_no_treatment() -> None:
    faults = rules()
    request = frame(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
    assert faults.rules.on_request(1, request) is None
    faults.disconnect(api="Fetch")
    faults.disconnect(node=2)
    faults.disconnect(client_id="other")
    faults.disconnect(versions=(0, 8))
    assert faults.rules.on_request(1, request) is None


def test_malformed_request_passes_as_it_is() -> None:
    faults = rules()
    rule = faults.inject_error("NOT_LEADER_OR_FOLLOWER")
    assert faults.rules.on_request(1, b"\0") is None
    cut = frame(produce_request(9, ("orders", 0)), 9)[:-4]
    treatment = faults.rules.on_request(1, cut)
    assert treatment is not None
    assert (treatment.fate, treatment.frame) == (Fate.PASS, cut)
    assert rule.fired == 0


def test_produce_without_acks_is_disconnected_in_place_of_an_error() -> None:
    faults = rules()
    faults.inject_error("NOT_LEADER_OR_FOLLOWER")
    request = produce_request(9, ("orders", 0))
    request.acks = 0
    treatment = faults.rules.on_request(1, frame(request, 9))
    assert treatment is not None
    assert treatment.fate is Fate.DISCONNECT


@pytest.mark.parametrize(
    ("when", "fires"),
    [
        (times(2), [True, True, False, False]),
        (on_call(3), [False, False, True, False]),
        (When(), [True] * 4),
    ],
)
def test_schedule_decides_on_which_requests_a_rule_fires(when: When, fires: list[bool]) -> None:
    faults = rules()
    faults.disconnect(when=when)
    request = frame(produce_request(9, ("orders", 0)), 9)
    treatments = [faults.rules.on_request(1, request) for _ in fires]
    assert [each is not None and each.fate is Fate.DISCONNECT for each in treatments] == fires


def test_wait_ends_with_a_timeout_that_names_the_rule() -> None:
    rule = rules().disconnect(api="Fetch")
    with pytest.raises(TimeoutError, match=r"rule 1 disconnect\(api='Fetch'\) fired 0 times"):
        rule.wait(timeout=0.01)


def test_wait_ends_as_soon_as_the_rule_fires() -> None:
    rule = rules().disconnect(api="Produce")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(rule.wait, timeout=2 * HANG_S)
        while not rule._changed._waiters:  # type: ignore[attr-defined]  # the thread waits
            time.sleep(0.001)
        rule.note_fired()
        assert waiting.result(HANG_S) == 1


def test_versions_of_a_file_are_one_or_a_range() -> None:
    """docs/FAULTS.md: "in files `3-13`"; a number alone is that version."""
    read = read_rules('[{"disconnect": true, "versions": 5}, {"delay": 1, "versions": "3-13"}]')
    assert [each.selector.versions for each in read] == [(5, 5), (3, 13)]


def test_a_rule_that_is_removed_leaves_the_others_in_force() -> None:
    faults = rules()
    first, second, third = (faults.disconnect(api="Produce") for _ in range(3))
    second.remove()
    second.remove()
    assert faults.rules.in_force == (first, third)
    faults.rules.clear()
    assert len(faults.rules.in_force) == 0


def test_file_of_rules_is_read_and_written_the_same() -> None:
    text = """
- inject_error: NOT_LEADER_OR_FOLLOWER
  api: Produce
  topic: orders
  partition: 1
  versions: 3-13
  when: {times: 3}
- delay: 0.5
  client_id: shop
  after_handling: true
  when: {with_probability: 0.1, seed: 7}
- corrupt_records:
- blackhole: true
  api: Vote
  node: 2
  when: once
"""
    faults = rules()
    added = [faults.rules.add(*each) for each in read_rules(text)]
    error, delay, corrupt, vote = added
    assert (error.selector.versions, error.when.times_max) == ((3, 13), 3)
    assert (delay.fault.after_handling, delay.when.probability, delay.when.seed) == (True, 0.1, 7)
    assert (corrupt.selector.api, delay.selector.api) == ("Fetch", None)
    (unseeded,) = read_rules("- disconnect: true\n  when: {with_probability: 0.1}")
    assert faults.rules.add(*unseeded).when.seed == 0
    assert rule_to_document(vote) == {
        "number": 4,
        "fired": 0,
        "blackhole": True,
        "api": "Vote",
        "node": 2,
    }


@pytest.mark.parametrize("number", [inf, nan, -0.5])
@pytest.mark.parametrize("effect", ["delay", "throttle", "truncate_response"])
def test_numbers_of_a_rule_are_finite(effect: str, number: float) -> None:
    """YAML has `.inf` and `.nan`, and JSON as Python reads it has 1e999."""
    with pytest.raises(InvalidRule, match=f"rule 1: {effect}: {number} is not a number of 0 or"):
        rule_of({effect: number}, "rule 1")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("text", "is not an object"),
        ({"api": "Fetch"}, "expected one effect of"),
        ({"delay": 1, "disconnect": True}, "expected one effect of"),
        ({"delay": 1, "colour": "red"}, "unknown key 'colour'"),
        ({"delay": -1}, "not a number of 0 or more"),
        ({"delay": True, "after_handling": 1}, "is neither true nor false"),
        ({"disconnect": False}, "not a number of 0 or more"),
        ({"inject_error": True}, "is not the name of an error"),
        ({"disconnect": True, "partition": True}, "partition: True is not a number"),
        ({"disconnect": True, "versions": "7-3"}, "ends before it begins"),
        ({"throttle": 3_000_000}, "is not a number of seconds up to"),
        ({"inject_error": 40_000}, "40000 is not an error code"),
        ({"inject_error": "NOT_AN_ERROR"}, "unknown error 'NOT_AN_ERROR'"),
        ({"disconnect": True, "partition": "one"}, "partition: 'one' is not a number"),
        ({"disconnect": True, "versions": "new"}, "neither a version nor a range"),
        ({"disconnect": True, "when": "often"}, "is none of once"),
        ({"disconnect": True, "when": {"times": 0}}, "the first request is 1"),
        ({"disconnect": True, "when": {"with_probability": 2}}, "is not a probability"),
        ({"inject_error": "NONE", "after_handling": True}, "is not possible with"),
    ],
)
def test_document_that_is_no_rule_is_refused(document: object, reason: str) -> None:
    with pytest.raises(InvalidRule, match=reason) as refusal:
        read_rules(json.dumps([{"disconnect": True}, document]))
    assert str(refusal.value).startswith("rule 2: ")
