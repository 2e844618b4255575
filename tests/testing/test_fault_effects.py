"""Every effect of docs/FAULTS.md, before and behind the handling, alone and with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraft_wire.testing.faults.injecting import Faults
from kraft_wire.testing.faults.rule import Effect, Fault, Rule, once, with_probability
from kraft_wire.testing.faults.treatment import Fate, Outcome, Treatment
from kraft_wire.wire.generated.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from kraft_wire.wire.generated.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.produce import ProduceRequest
from kraft_wire.wire.header import parse_request_header, parse_response_header
from kraft_wire.wire.message import Message
from tests.testing.test_fault_rules import frame, produce_request, response_frame, rules

Add = Callable[[Faults], Rule]
OTHERS = MetadataRequest(topics=[MetadataRequestTopic(name="others")])
REQUEST, RESPONSE = frame(OTHERS, 9), response_frame(MetadataResponse(), 9)


def treated(faults: Faults, request: bytes = REQUEST) -> Treatment:
    treatment = faults.rules.on_request(1, request)
    assert treatment is not None
    return treatment


def told(kind: type[Message], version: int, frame_: bytes) -> Any:
    _, body_at = parse_response_header(frame_, kind.API_KEY, version)
    return kind.decode(frame_, version, body_at)[0]


BEFORE: list[tuple[Add, Fate, int]] = [
    (lambda faults: faults.disconnect(), Fate.DISCONNECT, 0),
    (lambda faults: faults.blackhole(), Fate.BLACKHOLE, 0),
    (lambda faults: faults.delay(1.5), Fate.PASS, 1_500),
    (lambda faults: faults.inject_error(5), Fate.ANSWER, 0),
]


@pytest.mark.parametrize(("add", "fate", "delay_ms"), BEFORE)
def test_effect_on_a_request_leaves_its_response_alone(add: Add, fate: Fate, delay_ms: int) -> None:
    faults = rules()
    rule = add(faults)
    treatment = treated(faults)
    assert (treatment.fate, treatment.delay_ms, treatment.frame) == (fate, delay_ms, REQUEST)
    assert treatment.fired == [rule.fault.effect.value]
    assert bool(treatment.answer) == (fate is Fate.ANSWER)
    assert faults.rules.on_response(treatment, RESPONSE) == Outcome(RESPONSE)
    assert rule.fired == 1
    rule.remove()
    rule.remove()
    assert faults.rules.on_request(1, REQUEST) is None


BEHIND: list[tuple[Add, Outcome]] = [
    (lambda faults: faults.disconnect(after_handling=True), Outcome(RESPONSE, Fate.DISCONNECT)),
    (lambda faults: faults.blackhole(after_handling=True), Outcome(RESPONSE, Fate.BLACKHOLE)),
    (lambda faults: faults.delay(0.25, after_handling=True), Outcome(RESPONSE, delay_ms=250)),
    (lambda faults: faults.truncate_response(7), Outcome(RESPONSE, size_bytes_max=7)),
    (lambda faults: faults.truncate_response(0), Outcome(RESPONSE, size_bytes_max=0)),
]


@pytest.mark.parametrize(("add", "outcome"), BEHIND)
def test_effect_on_a_response_lets_its_request_be_handled(add: Add, outcome: Outcome) -> None:
    faults = rules()
    rule = add(faults)
    treatment = treated(faults)
    assert (treatment.fate, treatment.delay_ms, treatment.frame) == (Fate.PASS, 0, REQUEST)
    assert (treatment.fired, rule.fired) == ([], 0)
    assert faults.rules.on_response(treatment, RESPONSE) == outcome
    assert (treatment.fired, rule.fired) == ([rule.fault.effect.value], 1)


def test_throttle_time_is_told_in_ms_where_a_response_has_one() -> None:
    faults = rules()
    rule = faults.throttle(2.5)
    outcome = faults.rules.on_response(treated(faults), RESPONSE)
    assert told(MetadataResponse, 9, outcome.frame).throttle_time_ms == 2_500
    assert rule.fired == 1
    without = response_frame(EndQuorumEpochResponse(), 1)
    other = treated(faults, frame(EndQuorumEpochRequest(), 1))
    assert faults.rules.on_response(other, without) == Outcome(without)
    assert rule.fired == 1, "it had no effect"


def test_delays_add_up_until_a_rule_decides() -> None:
    faults = rules()
    faults.delay(1)
    faults.delay(0.5)
    faults.disconnect(api="Metadata")
    behind = faults.delay(8)
    answer = faults.inject_error(5)
    treatment = treated(faults)
    assert (treatment.fate, treatment.delay_ms) == (Fate.DISCONNECT, 1_500)
    assert treatment.fired == ["delay", "delay", "disconnect"]
    assert (behind.fired, answer.fired) == (0, 0)
    faults.clear()
    assert faults.rules.on_request(1, REQUEST) is None
    faults.delay(0.1, after_handling=True)
    faults.delay(0.2, after_handling=True)
    assert faults.rules.on_response(treated(faults), RESPONSE).delay_ms == 300


def fetch_frames(*records: bytes | None) -> tuple[bytes, bytes]:
    """A Fetch of partitions of two topics, and the answer with these records."""
    asked = [FetchPartition(partition=number) for number in range(len(records))]
    request = FetchRequest(session_epoch=-1, topics=[FetchTopic(topic="orders", partitions=asked)])
    data = [
        PartitionData(partition_index=number, records=each) for number, each in enumerate(records)
    ]
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=data)])
    return frame(request, 12), response_frame(answer, 12)


def records_of(frame_: bytes) -> list[bytes]:
    (topic,) = told(FetchResponse, 12, frame_).responses
    return [bytes(each.records or b"") for each in topic.partitions]


def test_fetched_records_are_damaged_in_the_last_byte_of_the_selected_partitions() -> None:
    request, response = fetch_frames(b"first", b"second", b"")
    for selection, expected in (
        ({}, [b"firs\x8b", b"secon\x9b", b""]),
        ({"partition": 1}, [b"first", b"secon\x9b", b""]),
        ({"topic": "orders", "partition": 0}, [b"firs\x8b", b"second", b""]),
        ({"partition": 2}, [b"first", b"second", b""]),
        ({"topic": "others"}, [b"first", b"second", b""]),
    ):
        faults = rules()
        rule = faults.corrupt_records(**selection)  # type: ignore[arg-type]  # of the table
        treatment = faults.rules.on_request(1, request)
        assert treatment is not None
        outcome = faults.rules.on_response(treatment, response)
        assert records_of(outcome.frame) == expected
        assert rule.fired == int(expected != [b"first", b"second", b""])


def test_answers_without_records_do_not_use_up_the_rule() -> None:
    """A corruption hits fetched records, so it waits for an answer that has some."""
    faults = rules()
    rule = faults.corrupt_records(when=once())
    for sent, expected in ((b"", b""), (b"first", b"firs\x8b"), (b"second", b"second")):
        request, response = fetch_frames(sent)
        outcome = faults.rules.on_response(treated(faults, request), response)
        assert records_of(outcome.frame) == [expected]
    assert rule.fired == 1


def test_requests_without_a_place_for_an_error_do_not_use_up_the_rule() -> None:
    """AlterReplicaLogDirs has no error of the whole answer, and this one names no partition."""
    faults = rules()
    rule = faults.inject_error(5, when=once())
    unrefused = treated(faults, frame(AlterReplicaLogDirsRequest(), 2))
    assert (unrefused.fate, rule.fired) == (Fate.PASS, 0)
    assert (treated(faults).fate, rule.fired) == (Fate.ANSWER, 1)


def test_produced_records_are_damaged_in_the_request() -> None:
    faults = rules()
    rule = faults.corrupt_records(api="Produce", topic="orders", partition=1)
    treatment = treated(faults, frame(produce_request(9, ("orders", 0), ("orders", 1)), 9))
    _, body_at = parse_request_header(treatment.frame)
    request, _ = ProduceRequest.decode(treatment.frame, 9, body_at)
    (topic,) = request.topic_data
    assert [bytes(each.records) for each in topic.partition_data] == [b"records", b"record\x8c"]
    assert (treatment.fate, rule.fired) == (Fate.PASS, 1)


def test_selection_takes_a_request_whose_every_part_is_as_named() -> None:
    name: dict[str, Any]
    for name, is_taken in (
        ({"api": "Metadata"}, True),
        ({"api": "Fetch"}, False),
        ({"versions": (9, 9)}, True),
        ({"versions": (10, 12)}, False),
        ({"versions": (0, 8)}, False),
        ({"client_id": "shop"}, True),
        ({"client_id": "shop", "node": 2}, False),
        ({"node": 1}, True),
        ({"topic": "orders"}, False),
        ({"topic": "others"}, True),
    ):
        faults = rules()
        faults.disconnect(**name)
        treatment = faults.rules.on_request(1, REQUEST)
        is_hit = treatment is not None and treatment.fate is Fate.DISCONNECT
        assert is_hit == is_taken, name


def test_chance_is_that_of_the_seed() -> None:
    def fires(probability: float, seed: int) -> list[bool]:
        faults = rules()
        faults.disconnect(when=with_probability(probability, seed))
        return [treated(faults).fate is Fate.DISCONNECT for _ in range(200)]

    assert fires(0.3, 5) == fires(0.3, 5) != fires(0.3, 6)
    assert 40 < sum(fires(0.3, 5)) < 80
    assert (sum(fires(0.0, 1)), sum(fires(1.0, 1))) == (0, 200)


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [
        ({"error_code": -1}, True),
        ({"error_code": -2}, False),
        ({"error_code": 32_767}, True),
        ({"error_code": 32_768}, False),
        ({"seconds": 2_147_483}, True),
        ({"seconds": 2_147_483.5}, False),
        ({"seconds": -0.1}, False),
        ({"size_bytes": -1}, False),
    ],
)
def test_number_that_no_response_can_carry_is_refused(
    fields: dict[str, Any], is_valid: bool
) -> None:
    if is_valid:
        Fault(Effect.DELAY, **fields)
        return
    with pytest.raises(ValueError, match="is not a"):
        Fault(Effect.DELAY, **fields)


@pytest.mark.parametrize("probability", [-0.1, 1.1])
def test_probability_is_from_0_to_1(probability: float) -> None:
    with pytest.raises(ValueError, match="is not a probability"):
        with_probability(probability)


def test_rule_names_what_it_selects() -> None:
    faults = rules()
    rule = faults.delay(1, api="Fetch", topic="orders", partition=0, node=2, client_id="shop")
    text = "delay(api='Fetch', client_id='shop', topic='orders', partition=0, node=2)"
    assert repr(rule) == f"rule 1 {text}"
    assert repr(faults.blackhole()) == "rule 2 blackhole()"
    assert [each.number for each in faults.rules.in_force] == [1, 2]


def test_response_without_rules_passes_as_it_is() -> None:
    faults = rules()
    faults.delay(1)
    answer = response_frame(ApiVersionsResponse(), 3)
    treatment = treated(faults, frame(ApiVersionsRequest(), 3))
    assert faults.rules.on_response(treatment, answer).frame is answer
