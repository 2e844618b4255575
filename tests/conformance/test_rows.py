"""A row is run again while its broker may only have been late, and fails if it stays so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Case, Listener
from kraft_wire.conformance.run import Row, _delete_topics, run_rows
from kraft_wire.conformance.share_records import expect_acquired
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import Exchange, Mismatch, Verdict
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from tests.conformance.test_subject import TARGET
from tests.ports import free_port

SHARE_FETCH = 78
names: list[str] = []
"""Names that the cases below got."""


def answer(*acquired: tuple[int, int, int]) -> ShareFetchResponse:
    runs = [
        AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
        for first, last, count in acquired
    ]
    partition = PartitionData(acquired_records=runs)
    return ShareFetchResponse(responses=[ShareFetchableTopicResponse(partitions=[partition])])


def judged(*answers: ShareFetchResponse) -> tuple[Verdict, int, int]:
    """Judge a broker that gives these answers; return how many were taken, and are reported."""
    left = list(answers)

    def judge(broker: Subject, version: int) -> None:
        names.append(broker.name("group"))
        broker.exchanges.append(Exchange(SHARE_FETCH, version, b"", b""))
        expect_acquired(left.pop(0), (0, 2, 1))

    fetch = Case("share_fetch.drawn", "ShareFetch", (1, 2), "", "", "", Listener.CONTROLLER, judge)
    target = replace(TARGET, versions={SHARE_FETCH: (1, 2)})
    (outcome,) = run_rows([Row(fetch, 1)], {Listener.CONTROLLER: target}, keeps_exchanges=True)
    return outcome.verdict, len(answers) - len(left), len(outcome.exchanges)


@pytest.mark.parametrize(
    ("answers", "taken", "verdict"),
    [
        ([answer((0, 2, 1))], 1, Verdict.PASSED),
        ([answer(), ShareFetchResponse(), answer((0, 2, 1))], 3, Verdict.PASSED),
        ([answer()] * 5, 3, Verdict.FAILED),
        ([answer(), answer((0, 2, 2)), answer((0, 2, 1))], 2, Verdict.FAILED),
    ],
    ids=["at once", "at the third try", "never", "something else"],
)
def test_an_empty_answer_may_be_early(
    answers: list[ShareFetchResponse], taken: int, verdict: Verdict
) -> None:
    assert judged(*answers) == (verdict, taken, 1)


def test_names_of_another_try_are_new_and_of_the_same_form() -> None:
    """Recordings are compared with names in that form."""
    names.clear()
    judged(answer(), answer((0, 2, 1)))
    first, second = names
    assert first != second
    assert [each.rpartition("-")[2] for each in names] == ["0", "0"]


def test_records_where_none_are_expected_are_a_mismatch_at_once() -> None:
    with pytest.raises(Mismatch, match="acquired_records"):
        expect_acquired(answer((0, 2, 1)))


def unlike_the_release(broker: Subject, version: int) -> None:
    expect.as_release(version == 0, "version 0", version, "a_field")


def test_case_tells_what_is_wrong_from_what_differs() -> None:
    case = Case("fetch.drawn", "Fetch", (0, 1), "", "", "", Listener.CONTROLLER, unlike_the_release)
    target = replace(TARGET, versions={case.api_key: (0, 1)})
    same, other = run_rows([Row(case, 0), Row(case, 1)], {Listener.CONTROLLER: target})
    assert same.verdict is Verdict.PASSED
    assert (other.verdict, other.expected, other.path) == (Verdict.DIFFERS, "version 0", "a_field")


def test_broker_that_died_ends_no_run_before_its_report() -> None:
    key = InitProducerIdRequest.API_KEY
    target = replace(TARGET, address=("127.0.0.1", free_port()), versions={key: (0, 5)})
    first = Case("init_producer_id.a", "InitProducerId", (0, 5), "", "", "", Listener.BROKER, judge)
    (outcome,) = run_rows([Row(first, 0)], {Listener.BROKER: target})
    assert outcome.verdict is Verdict.ERROR
    _delete_topics(replace(target, versions={DeleteTopicsRequest.API_KEY: (1, 6)}), ["conform-1"])


def judge(broker: Subject, version: int) -> None:
    broker.ask(InitProducerIdRequest(), version, InitProducerIdResponse)
