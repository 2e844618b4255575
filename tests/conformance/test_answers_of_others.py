"""A release's answers judge brokers that serve other versions, have the id 0, or differ twice."""

from dataclasses import replace

import pytest

from kraft_wire.conformance.answers import AnswerMismatch, Answers, answered
from kraft_wire.conformance.target import Target
from kraft_wire.conformance.verdict import Exchange
from kraft_wire.wire.generated.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraft_wire.wire.generated.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.header import RequestHeader, encode_request_header, encode_response_header
from kraft_wire.wire.message import Message
from tests.conformance.test_subject import TARGET

FIRST = replace(TARGET, node_id=0, advertised=("h", 1))


def exchanged(asked: Message, answer: Message, version: int) -> Exchange:
    """Return the frames of one request and its response."""
    header = encode_request_header(RequestHeader(asked.API_KEY, version, 1, "c"))
    request = header + asked.encode(version)
    response = encode_response_header(asked.API_KEY, version, 1) + answer.encode(version)
    framed = [len(each).to_bytes(4, "big") + each for each in (request, response)]
    return Exchange(asked.API_KEY, version, framed[0], framed[1])


def release(case: str, version: int, node: Target, exchange: Exchange) -> Answers:
    return Answers("a release", {f"{case}/{version}": answered(case, version, node, [exchange])})


def offered(first: int, last: int) -> Exchange:
    features = [SupportedFeatureKey(name="a.version", min_version=first, max_version=last)]
    keys = [ApiVersion(api_key=1, min_version=first, max_version=last)]
    answer = ApiVersionsResponse(api_keys=keys, supported_features=features)
    return exchanged(ApiVersionsRequest(), answer, 4)


def test_other_versions_than_those_of_the_release_are_no_difference() -> None:
    answers = release("api_versions.any", 4, TARGET, offered(1, 5))
    for first, last in ((1, 4), (1, 6), (3, 5)):
        answers.judge("api_versions.any", 4, TARGET, [offered(first, last)])


def coordinators(*codes: int, node_id: int) -> Exchange:
    named = [
        Coordinator(key=str(index), node_id=node_id, host="h", port=1, error_code=code)
        for index, code in enumerate(codes)
    ]
    asked = FindCoordinatorRequest(coordinator_keys=[each.key for each in named])
    return exchanged(asked, FindCoordinatorResponse(coordinators=named), 4)


def test_field_that_a_version_lacks_is_not_taken_for_the_node_0() -> None:
    seventh = replace(FIRST, node_id=7)
    answers = release("find_coordinator.any", 4, seventh, coordinators(0, node_id=7))
    answers.judge("find_coordinator.any", 4, FIRST, [coordinators(0, node_id=0)])
    with pytest.raises(AnswerMismatch):
        answers.judge("find_coordinator.any", 4, seventh, [coordinators(0, node_id=0)])


def test_error_code_is_named_before_an_earlier_field() -> None:
    answers = release("find_coordinator.any", 4, FIRST, coordinators(0, 0, node_id=0))
    with pytest.raises(AnswerMismatch) as found:
        answers.judge("find_coordinator.any", 4, FIRST, [coordinators(0, 15, node_id=-1)])
    assert found.value.path == "coordinators[1].error_code"
