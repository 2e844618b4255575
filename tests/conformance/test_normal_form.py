"""The form in which responses are compared, and how an outcome describes a difference."""

from __future__ import annotations

import pytest

from kraft_wire.conformance.answers import AnswerMismatch, Answers
from kraft_wire.conformance.case import Case, Listener
from kraft_wire.conformance.normal_form import _CLOCK, NormalForm
from kraft_wire.conformance.run import Row, _matches
from kraft_wire.conformance.verdict import Exchange, Mismatch
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.header import RequestHeader, encode_request_header, encode_response_header
from tests.conformance.test_subject import TARGET

CASE, VERSION = "init_producer_id.drawn", 4


def exchanged(producer_id: int, epoch: int = 0) -> Exchange:
    """Return a request for a producer id, and what was answered."""
    key = InitProducerIdRequest.API_KEY
    asked = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
    answer = InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)
    request = encode_request_header(RequestHeader(key, VERSION, 1, "c")) + asked.encode(VERSION)
    response = encode_response_header(key, VERSION, 1) + answer.encode(VERSION)
    framed = [len(each).to_bytes(4, "big") + each for each in (request, response)]
    return Exchange(key, VERSION, framed[0], framed[1])


def test_ids_are_numbered_by_their_first_appearance() -> None:
    form = NormalForm(CASE, VERSION)
    seen = [form.of(exchanged(each))["producer_id"] for each in (4_000, 17, 4_000, -1)]
    assert seen == ["producer 1", "producer 2", "producer 1", -1]


@pytest.mark.parametrize(
    ("recorded", "seen", "agrees"),
    [(4_000, 4_000, True), (4_000, 17, True), (4_000, 0, True), (4_000, -1, False)],
)
def test_ids_of_producers_differ_between_clusters_and_the_first_is_0(
    recorded: int, seen: int, agrees: bool
) -> None:
    rows = {f"{CASE}/{VERSION}": [NormalForm(CASE, VERSION).of(exchanged(recorded))]}
    answers = Answers("a release", rows)
    if agrees:
        answers.judge(CASE, VERSION, TARGET, [exchanged(seen)])
        return
    with pytest.raises(AnswerMismatch) as found:
        answers.judge(CASE, VERSION, TARGET, [exchanged(seen)])
    assert (found.value.path, found.value.seen) == ("producer_id", "-1")


def test_rows_that_a_node_answered_in_more_exchanges_are_not_compared() -> None:
    one, two = [{"error_code": 0}], [{"error_code": 0}, {"error_code": 0}]
    for rows in ((one, two), (two, one)):
        found = Answers.of("nodes", [{"api.case/0": list(each)} for each in rows])
        assert found.rows == {}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-1, -1),
        (0, 0),
        (1_600_000_000_000, 1_600_000_000_000),
        (1_800_000_000_000, "(a time of the broker)"),
    ],
)
def test_only_what_a_clock_shows_now_is_a_time_of_the_broker(value: int, shown: object) -> None:
    """Cases give their records earlier times, which must come back as they are."""
    form = NormalForm(CASE, VERSION)
    assert _CLOCK
    assert {form._value(name, value) for name in _CLOCK} == {shown}


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("init_producer_id", True),
        ("init_producer_id.drawn", True),
        ("init_producer_id.drawn/4", True),
        ("init_producer_id.*", True),
        ("*/4", True),
        ("drawn", False),
        ("init_producer_id.drawn/5", False),
        ("init", False),
    ],
)
def test_only_takes_an_api_a_case_or_a_row(pattern: str, matches: bool) -> None:
    case = Case(CASE, "InitProducerId", (0, 5), "", "", "", Listener.BROKER, lambda _: None)
    assert _matches(Row(case, VERSION), pattern) is matches


def test_a_difference_has_both_values_or_the_field_with_what_was_seen() -> None:
    assert str(Mismatch("1 record", "none")) == "expected 1 record, got none"
    assert str(Mismatch("1", "2", "a[0].b")) == "a[0].b: 2"
