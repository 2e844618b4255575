"""Two recordings compared: each difference once, with the rows that have it."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.conformance.differences import Difference, differences
from kraft_wire.conformance.recording import RecordedRow, Recording
from kraft_wire.conformance.verdict import Exchange, Verdict
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kraft_wire.wire.header import RequestHeader, encode_request_header, encode_response_header

KEY, VERSION = ListGroupsRequest.API_KEY, 4


def framed(payload: bytes) -> bytes:
    return frame_prefix(len(payload)) + payload


def asked(answer: ListGroupsResponse | None, version: int = VERSION) -> Exchange:
    header = encode_request_header(RequestHeader(KEY, version, 1, "client"))
    request = framed(header + ListGroupsRequest().encode(version))
    if answer is None:
        return Exchange(KEY, version, request, None)
    head = encode_response_header(KEY, version, 1)
    return Exchange(KEY, version, request, framed(head + answer.encode(version)))


def groups(*named: tuple[str, str], error_code: int = 0) -> ListGroupsResponse:
    listed = [ListedGroup(group_id=group, protocol_type=kind) for group, kind in named]
    return ListGroupsResponse(error_code=error_code, groups=listed)


def row(
    *exchanges: Exchange, case: str = "list_groups.x", verdict: Verdict = Verdict.PASSED
) -> RecordedRow:
    return RecordedRow(case, VERSION, verdict, exchanges)


def compared(left: Sequence[RecordedRow], right: Sequence[RecordedRow]) -> list[Difference]:
    return differences(
        Recording("left", "apache-4.3", tuple(left)), Recording("right", "apache-4.3", tuple(right))
    )


ROW = f"list_groups.x/{VERSION}"


def test_rows_of_one_side_are_not_compared() -> None:
    one, other = row(case="list_groups.a"), row(case="list_groups.b")
    assert compared([one], [other]) == []
    assert compared([one, other], [other]) == []


def test_verdicts_that_differ_are_a_difference() -> None:
    found = compared([row()], [row(verdict=Verdict.FAILED)])
    assert found == [Difference("(verdict)", "passed", "failed", (ROW,))]


def test_a_row_that_one_side_does_not_serve_differs_by_its_verdict_alone() -> None:
    served = row(asked(groups()))
    refused = row(verdict=Verdict.NOT_SUPPORTED)
    assert compared([served], [refused]) == [
        Difference("(verdict)", "passed", "not supported", (ROW,))
    ]
    assert compared([refused], [served]) == [
        Difference("(verdict)", "not supported", "passed", (ROW,))
    ]
    assert compared([refused], [row(asked(groups()), verdict=Verdict.NOT_SUPPORTED)]) == []


def test_exchanges_are_counted_and_those_of_both_are_compared() -> None:
    first = asked(groups(error_code=1))
    found = compared([row(first, first)], [row(asked(groups(error_code=2)))])
    assert found == [
        Difference("(exchanges)", "2", "1", (ROW,)),
        Difference("ListGroups error_code", "1", "2", (ROW,)),
    ]


def test_nothing_is_compared_behind_another_request() -> None:
    other = asked(groups(error_code=9))
    left = row(asked(groups(), 3), other)
    right = row(asked(groups(), 4), asked(groups(error_code=8)))
    assert compared([left], [right]) == [
        Difference("(request)", "ListGroups 3", "ListGroups 4", (ROW,))
    ]


def test_a_missing_response_is_a_difference() -> None:
    found = compared([row(asked(None))], [row(asked(groups()))])
    lone = Difference("ListGroups (no response)", "True", "(absent)", (ROW,))
    assert found[0] == lone


def test_a_difference_of_several_rows_is_told_once_with_all_of_them() -> None:
    names = ("list_groups.a", "list_groups.b", "list_groups.c")
    left = [row(asked(groups(error_code=1)), case=name) for name in names]
    right = [row(asked(groups(error_code=2 + (name > names[1]))), case=name) for name in names]
    assert compared(left, right) == [
        Difference("ListGroups error_code", "1", "2", (f"{names[0]}/4", f"{names[1]}/4")),
        Difference("ListGroups error_code", "1", "3", (f"{names[2]}/4",)),
    ]


def test_an_element_that_one_side_lacks_is_told_by_its_path_alone() -> None:
    found = compared([row(asked(groups(("", "consumer"))))], [row(asked(groups()))])
    assert found == [Difference("ListGroups groups[]", "(an element)", "(absent)", (ROW,))]
