"""Rules as whole values: documents in every form, what a rule selects, when it fires."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.testing.faults.documents import (
    InvalidRule,
    RuleDocument,
    read_rules,
    rule_of,
    rule_to_document,
)
from kraft_wire.testing.faults.rule import (
    Effect,
    Fault,
    Rule,
    Selector,
    When,
    every_time,
    on_call,
    once,
    times,
    with_probability,
)
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.faults.treatment import Fate, Outcome
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.produce import ProduceRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from tests.testing.test_fault_rules import frame, produce_request, rules

ANY = (0, 32_767)
FETCH, METADATA = 1, 3


@pytest.mark.parametrize(
    ("document", "wanted"),
    [
        (
            {
                "inject_error": "NOT_LEADER_OR_FOLLOWER",
                "api": "Produce",
                "client_id": "c",
                "topic": "t",
                "partition": 0,
                "node": 2,
                "versions": "3-13",
                "when": {"times": 3},
            },
            RuleDocument(
                Fault(Effect.INJECT_ERROR, error_code=6),
                Selector("Produce", (3, 13), "c", "t", 0, 2),
                When(1, 3),
            ),
        ),
        (
            {"delay": 0.5, "after_handling": True, "when": {"on_call": 2}, "versions": 5},
            RuleDocument(
                Fault(Effect.DELAY, seconds=0.5, after_handling=True),
                Selector(versions=(5, 5)),
                When(2, 1),
            ),
        ),
        (
            {"throttle": 2, "when": {"with_probability": 0.5, "seed": 9}},
            RuleDocument(Fault(Effect.THROTTLE, seconds=2), Selector(), When(1, None, 0.5, 9)),
        ),
        (
            {"truncate_response": 7, "when": "once"},
            RuleDocument(Fault(Effect.TRUNCATE_RESPONSE, size_bytes=7), Selector(), When(1, 1)),
        ),
        (
            {"corrupt_records": None},
            RuleDocument(Fault(Effect.CORRUPT_RECORDS), Selector("Fetch"), When()),
        ),
        (
            {"corrupt_records": True, "api": "Produce", "when": "every_time"},
            RuleDocument(Fault(Effect.CORRUPT_RECORDS), Selector("Produce"), When()),
        ),
        (
            {"blackhole": True, "after_handling": False},
            RuleDocument(Fault(Effect.BLACKHOLE), Selector(versions=ANY), When()),
        ),
        (
            {"disconnect": True, "after_handling": True},
            RuleDocument(Fault(Effect.DISCONNECT, after_handling=True), Selector(), When()),
        ),
    ],
)
def test_document_is_a_whole_rule(document: dict[str, object], wanted: RuleDocument) -> None:
    assert rule_of(document, "rule 1") == wanted


EFFECTS = "inject_error, disconnect, delay, blackhole, throttle, truncate_response, corrupt_records"
KNOWN = "after_handling, api, client_id, delay, node, partition, topic, versions, when"
WHEN = "is none of once, every_time, {times: 3}, {on_call: 2}, {with_probability: 0.1, seed: 7}"


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (7, "7 is not an object with an effect"),
        ({}, f"expected one effect of {EFFECTS}"),
        ({"delay": 1, "throttle": 1}, f"expected one effect of {EFFECTS}"),
        ({"delay": 1, "tipic": "t"}, f"unknown key 'tipic'; known: {KNOWN}"),
        ({"delay": 1, 5: "t"}, f"unknown key '5'; known: {KNOWN}"),
        ({"delay": 1, "topic": 5}, "topic: 5 is not a string"),
        ({"delay": 1, "node": "1"}, "node: '1' is not a number"),
        ({"delay": 1, "node": True}, "node: True is not a number"),
        ({"delay": 1, "api": "Fetsh"}, "unknown API 'Fetsh'"),
        ({"delay": "1"}, "delay: '1' is not a number of 0 or more"),
        ({"delay": 1, "after_handling": 1}, "after_handling: 1 is neither true nor false"),
        (
            {"throttle": 1, "after_handling": True},
            "after_handling is not possible with throttle",
        ),
        ({"inject_error": 1.5}, "inject_error: 1.5 is not the name of an error"),
        ({"inject_error": -2}, "-2 is not an error code"),
        ({"inject_error": 32_768}, "32768 is not an error code"),
        ({"delay": 2_147_484}, "2147484 is not a number of seconds up to 2147483"),
        (
            {"delay": 1, "versions": "3-"},
            "versions: '3-' is neither a version nor a range like 3-13",
        ),
        ({"delay": 1, "versions": "4-3"}, "versions: '4-3' ends before it begins"),
        ({"delay": 1, "when": {"times": "3"}}, f"when: {{'times': '3'}} {WHEN}"),
        (
            {"delay": 1, "when": {"times": 1, "on_call": 1}},
            f"when: {{'times': 1, 'on_call': 1}} {WHEN}",
        ),
        ({"delay": 1, "when": {"with_probability": 0.5, "seed": "x"}}, None),
        ({"delay": 1, "when": {"on_call": 0}}, "0: the first request is 1"),
        ({"delay": 1, "when": {"with_probability": -0.1}}, "-0.1 is not a probability"),
    ],
)
def test_document_that_is_no_rule_is_one_line(document: object, line: str | None) -> None:
    with pytest.raises(InvalidRule) as refused:
        rule_of(document, "rule 3")
    if line is not None:
        assert str(refused.value) == f"rule 3: {line}"


def test_largest_and_smallest_numbers_are_taken() -> None:
    for document in (
        {"inject_error": -1},
        {"inject_error": 32_767},
        {"delay": 2_147_483},
        {"delay": 0},
        {"delay": 1, "when": {"with_probability": 0}},
        {"delay": 1, "when": {"with_probability": 1}},
    ):
        rule_of(document, "rule 1")


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (
            {"inject_error": 6, "topic": "t"},
            {"inject_error": "NOT_LEADER_OR_FOLLOWER", "topic": "t"},
        ),
        ({"throttle": 2, "partition": 0}, {"throttle": 2, "partition": 0}),
        ({"truncate_response": 7, "client_id": "c"}, {"truncate_response": 7, "client_id": "c"}),
        ({"blackhole": True, "node": 0}, {"blackhole": True, "node": 0}),
        ({"corrupt_records": None}, {"corrupt_records": True, "api": "Fetch"}),
    ],
)
def test_rule_is_shown_as_its_document(
    document: dict[str, object], shown: dict[str, object]
) -> None:
    rule = FaultRules(lambda _: None).add(*rule_of(document, "rule 1"))
    rule.note_fired()
    rule.note_fired()
    assert rule_to_document(rule) == {"number": 1, "fired": 2, **shown}
    assert len(read_rules("disconnect: true")) == 1


def header(api_key: int = FETCH, version: int = 12, client_id: str | None = "c") -> RequestHeader:
    return RequestHeader(api_key, version, 1, client_id)


@pytest.mark.parametrize(
    ("selector", "takes"),
    [
        (Selector(), True),
        (Selector(api="Fetch"), True),
        (Selector(api="Metadata"), False),
        (Selector(versions=(12, 12)), True),
        (Selector(versions=(0, 11)), False),
        (Selector(versions=(13, 20)), False),
        (Selector(client_id="c"), True),
        (Selector(client_id="d"), False),
        (Selector(node=2), True),
        (Selector(node=0), False),
        (Selector("Fetch", (12, 13), "c", None, None, 2), True),
    ],
)
def test_selector_takes_requests_by_their_head(selector: Selector, takes: bool) -> None:
    assert selector.takes(2, header()) is takes
    assert not selector.needs_partitions


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        (Selector(topic="t"), [("t", 0), ("t", 1), ("t", None)]),
        (Selector(partition=0), [("t", 0), ("u", 0)]),
        (Selector(topic="t", partition=0), [("t", 0)]),
        (Selector(), [("t", 0), ("t", 1), ("t", None), ("u", 0), (None, None)]),
    ],
)
def test_selector_takes_partitions(
    selector: Selector, taken: list[tuple[str | None, int | None]]
) -> None:
    places = [("t", 0), ("t", 1), ("t", None), ("u", 0), (None, None)]
    assert [each for each in places if selector.takes_partition(*each)] == taken
    assert selector.needs_partitions is (selector != Selector())


def fired(when: When, calls: int = 6) -> list[int]:
    rule = Rule(1, Fault(Effect.DELAY), Selector(), when, lambda: None)
    return [number for number in range(1, calls + 1) if rule.is_due()]


def test_schedules_decide_by_the_number_of_the_request() -> None:
    assert fired(once()) == [1]
    assert fired(times(3)) == [1, 2, 3]
    assert fired(on_call(4)) == [4]
    assert fired(every_time()) == [1, 2, 3, 4, 5, 6]
    assert fired(When(2, 3)) == [2, 3, 4]
    assert fired(with_probability(0)) == []
    assert fired(with_probability(1)) == [1, 2, 3, 4, 5, 6]
    assert fired(with_probability(0.5, 3), 99) == fired(with_probability(0.5, 3), 99)
    assert 30 < len(fired(with_probability(0.5, 3), 99)) < 70


def test_topic_in_a_list_of_names_is_refused_alone() -> None:
    """DeleteTopics names topics by strings up to version 5."""
    faults = rules()
    faults.inject_error(3, topic="b")
    treatment = faults.rules.on_request(1, frame(DeleteTopicsRequest(topic_names=["a", "b"]), 5))
    assert treatment is not None
    assert (treatment.fate, treatment.fired) == (Fate.PASS, ["inject_error"])
    assert isinstance(treatment.merged, DeleteTopicsResponse)
    assert [(each.name, each.error_code) for each in treatment.merged.responses] == [("b", 3)]
    kept = frame(DeleteTopicsRequest(topic_names=["a"]), 5)
    assert bytes(treatment.frame) == kept
    whole = faults.rules.on_request(1, frame(DeleteTopicsRequest(topic_names=["b"]), 5))
    assert whole is not None
    assert whole.fate is Fate.ANSWER
    _, body_at = parse_response_header(whole.answer, DeleteTopicsResponse.API_KEY, 5)
    answer, _ = DeleteTopicsResponse.decode(whole.answer, 5, body_at)
    assert [(each.name, each.error_code) for each in answer.responses] == [("b", 3)]


def test_request_that_cannot_be_decoded_meets_only_rules_about_its_head() -> None:
    faults = rules()
    damaged = encode_request_header(header(ProduceRequest.API_KEY, 9)) + b"\xff"
    partial = [faults.disconnect(topic="t"), faults.corrupt_records(api="Produce")]
    refusal = faults.inject_error(6, api="Produce")
    treatment = faults.rules.on_request(1, damaged)
    assert treatment is not None
    assert (treatment.fate, treatment.fired, bytes(treatment.frame)) == (Fate.PASS, [], damaged)
    whole = faults.delay(1)
    treatment = faults.rules.on_request(1, damaged)
    assert treatment is not None
    assert (treatment.delay_ms, treatment.fired) == (1000, ["delay"])
    assert [each.fired for each in (*partial, refusal, whole)] == [0, 0, 0, 1]


def test_response_that_cannot_be_decoded_passes_as_it_is() -> None:
    faults = rules()
    throttle = faults.throttle(1)
    faults.truncate_response(3)
    request = frame(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    treatment = faults.rules.on_request(1, request)
    assert treatment is not None
    outcome = faults.rules.on_response(treatment, b"\x00\x01")
    assert outcome == Outcome(b"\x00\x01", size_bytes_max=3)
    assert throttle.fired == 0
    merging = rules()
    merging.inject_error(3, api="DeleteTopics", topic="b")
    part = merging.rules.on_request(1, frame(DeleteTopicsRequest(topic_names=["a", "b"]), 5))
    assert part is not None
    assert merging.rules.on_response(part, b"\x00") == Outcome(b"\x00")


def test_records_that_are_not_there_are_not_damaged() -> None:
    faults = rules()
    rule = faults.corrupt_records(api="Produce")
    request: Any = produce_request(9, ("orders", 0))
    for topic in request.topic_data:
        for each in topic.partition_data:
            each.records = None
    treatment = faults.rules.on_request(1, frame(request, 9))
    assert treatment is not None
    assert (treatment.fired, rule.fired) == ([], 0)
    fetching = rules()
    fetching.corrupt_records()
    assert fetching.rules.on_request(1, frame(FetchRequest(), 12)) is not None
    assert fetching.rules.on_request(1, frame(MetadataRequest(), 9)) is None
