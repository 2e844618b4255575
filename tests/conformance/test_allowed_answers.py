"""Where Kafka's promises leave a choice, a case accepts each answer that it names, and no other.

A recorded response is one of them; here a case gets each of the others in its place.
"""

import pytest

from kraft_wire.conformance import expect
from kraft_wire.conformance.verdict import Difference, Mismatch
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import encode_response_header, parse_response_header
from kraft_wire.wire.message import Message
from tests.conformance.noticing import judged_responses, newest_stories
from tests.conformance.stories import Received, Recording

STORIES = newest_stories()
ACCEPTED, DIFFERENT, WRONG = "accepted", "different", "wrong"

_PRODUCED = "responses[0].partition_responses[0].error_code"
_DELETED = "topics[0].partitions[0].low_watermark"


def _with(heard: Received, path: str, value: object) -> Received:
    """Return a response with another value in a field."""
    assert heard.frame is not None
    kind = response_class(heard.api_key)
    correlation_id, begin = parse_response_header(heard.frame, heard.api_key, heard.version)
    message, _ = kind.decode(heard.frame, heard.version, begin)
    parent, _, name = path.rpartition(".")
    holder = expect.at(message, parent) if parent else message
    assert getattr(holder, name) != value, "the recorded answer"
    setattr(holder, name, value)
    head = encode_response_header(heard.api_key, heard.version, correlation_id)
    assert isinstance(message, Message)
    return Received(heard.api_key, heard.version, head + message.encode(heard.version))


def judged(name: str, path: str, value: object) -> str:
    """Return the verdict on another value in the last response of a case's API."""
    return _judgment(name, path, value)[0]


def _judgment(name: str, path: str, value: object) -> tuple[str, str]:
    """Run a case with it; return the verdict, and what is said to be expected."""
    story = STORIES[name]
    number, at = judged_responses(story)[-1]
    connections: list[Recording] = [list(kept) for kept in story.connections]
    heard = connections[number][at]
    assert isinstance(heard, Received)
    connections[number][at] = _with(heard, path, value)
    try:
        story.play_with(connections)
    except Difference as problem:
        return DIFFERENT, problem.expected
    except Mismatch as problem:
        return WRONG, problem.expected
    return ACCEPTED, ""


@pytest.mark.parametrize(
    ("name", "path", "value", "verdict"),
    [
        ("offset_delete.empty_group_id", "error_code", ErrorCode.GROUP_ID_NOT_FOUND, ACCEPTED),
        ("offset_delete.empty_group_id", "error_code", ErrorCode.NONE, WRONG),
        ("produce.older_format", _PRODUCED, ErrorCode.CORRUPT_MESSAGE, ACCEPTED),
        ("produce.older_format", _PRODUCED, ErrorCode.MESSAGE_TOO_LARGE, WRONG),
        (
            *("produce.compressed_records_that_are_damaged", _PRODUCED),
            *(ErrorCode.CORRUPT_MESSAGE, ACCEPTED),
        ),
        (
            *("produce.compressed_records_that_are_damaged", _PRODUCED),
            *(ErrorCode.MESSAGE_TOO_LARGE, DIFFERENT),
        ),
        ("produce.compressed_records_that_are_damaged", _PRODUCED, ErrorCode.NONE, WRONG),
        ("delete_records.same_partition_twice", _DELETED, 2, DIFFERENT),
        ("delete_records.same_partition_twice", _DELETED, 3, WRONG),
        ("init_producer_id.open_transaction_is_aborted", "error_code", 0, DIFFERENT),
        (
            *("init_producer_id.open_transaction_is_aborted", "error_code"),
            *(ErrorCode.NOT_COORDINATOR, WRONG),
        ),
    ],
)
def test_case_with_a_choice(name: str, path: str, value: object, verdict: str) -> None:
    assert judged(name, path, value) == verdict


@pytest.mark.parametrize(
    ("value", "judgment"),
    [(2, (DIFFERENT, "0")), (1, (WRONG, "0 or 2"))],
)
def test_other_starts_of_a_share_partition_are_told_with_that_of_the_release(
    value: int, judgment: tuple[str, str]
) -> None:
    name = "describe_share_group_offsets.accepted_records"
    path = "groups[0].topics[0].partitions[0].start_offset"
    assert _judgment(name, path, value) == judgment
