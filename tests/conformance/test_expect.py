"""What a case states of a response is compared, and a mismatch names the field and both values."""

from collections.abc import Callable

import pytest

from kraft_wire.conformance import expect
from kraft_wire.conformance.verdict import Difference, Mismatch
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraft_wire.wire.generated.metadata import MetadataResponse
from kraft_wire.wire.message import Message

PARTITIONS = [
    ListOffsetsPartitionResponse(partition_index=7, offset=3),
    ListOffsetsPartitionResponse(partition_index=8, error_code=6),
]
TOPIC = ListOffsetsTopicResponse(name="t" * 300, partitions=PARTITIONS)
ANSWER = ListOffsetsResponse(topics=[TOPIC])
FIRST = "topics[0].partitions[0]"
SECOND = "topics[0].partitions[1]"


def mismatch(state: Callable[[], None]) -> tuple[str, str, str]:
    with pytest.raises(Mismatch) as found:
        state()
    return found.value.expected, found.value.seen, found.value.path


def test_what_holds_is_no_mismatch() -> None:
    expect.equal(ANSWER, f"{FIRST}.offset", 3)
    expect.error(ANSWER, f"{FIRST}.error_code", ErrorCode.NONE)
    expect.error(ANSWER, f"{SECOND}.error_code", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    expect.one_of(ANSWER, f"{SECOND}.partition_index", 7, 8)
    expect.true(True, "anything", "this")
    assert expect.at(ANSWER, "topics[0].partitions") == PARTITIONS


def test_mismatch_has_both_values_and_the_field() -> None:
    path = f"{FIRST}.offset"
    assert mismatch(lambda: expect.equal(ANSWER, path, 4)) == ("4", "3", path)
    assert mismatch(lambda: expect.one_of(ANSWER, path, 4, 5)) == ("4 or 5", "3", path)
    assert mismatch(lambda: expect.true(False, "peace", 7, "a.b")) == ("peace", "7", "a.b")
    assert mismatch(lambda: expect.true(False, "peace", 7)) == ("peace", "7", "")


def test_error_codes_have_their_names() -> None:
    path = f"{SECOND}.error_code"
    assert mismatch(lambda: expect.error(ANSWER, path, ErrorCode.NONE)) == (
        *("NONE (0)", "NOT_LEADER_OR_FOLLOWER (6)"),
        path,
    )


def test_values_that_are_long_are_cut() -> None:
    _, seen, _ = mismatch(lambda: expect.equal(ANSWER, "topics[0].name", ""))
    assert seen == "'" + "t" * 199 + "…"
    shorter = MetadataResponse(cluster_id="t" * 198)
    _, seen, _ = mismatch(lambda: expect.equal(shorter, "cluster_id", 1))
    assert seen == "'" + "t" * 198 + "'"


def test_what_only_the_release_does_is_a_difference() -> None:
    expect.as_release(True, "anything", "this")
    with pytest.raises(Difference) as found:
        expect.as_release(False, "a slash", "none", "host")
    assert (found.value.expected, found.value.seen, found.value.path) == ("a slash", "none", "host")


@pytest.mark.parametrize(
    ("code", "objection"), [(-1, None), (42, Difference), (0, Mismatch)], ids=str
)
def test_internal_error_of_the_release_may_be_another_error(
    code: int, objection: type[Mismatch] | None
) -> None:
    partition = ListOffsetsPartitionResponse(error_code=code)
    answer = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[partition])])
    if objection is None:
        expect.internal_error(answer, f"{FIRST}.error_code")
        return
    with pytest.raises(Mismatch) as found:
        expect.internal_error(answer, f"{FIRST}.error_code")
    assert found.type is objection


@pytest.mark.parametrize(
    ("answer", "path", "expected"),
    [
        (ANSWER, "topics[1].name", ("at least 2 elements", "1", "topics")),
        (ANSWER, "topics[0].partitions[2].offset", ("at least 3 elements", "2", FIRST[:-3])),
        (ListOffsetsResponse(topics=[]), f"{FIRST}.offset", ("at least 1 elements", "0", "topics")),
        (MetadataResponse(cluster_id=None), "cluster_id[0]", ("a value", "null", "cluster_id[0]")),
    ],
)
def test_path_that_leads_nowhere_is_a_mismatch_with_what_is_missing(
    answer: Message, path: str, expected: tuple[str, str, str]
) -> None:
    assert mismatch(lambda: expect.equal(answer, path, 0)) == expected
