"""Share sessions: epochs, lists of partitions, the limit, connections, and what an answer lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kraft_wire.broker.share_fetch.session import (
    SessionKey,
    SessionPartition,
    ShareFetchContext,
    rotated,
)
from kraft_wire.broker.share_fetch.sessions import ShareSessions
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
)
from tests.broker.fetch_client import topic_id

LARGEST_EPOCH = 2**31 - 1
Listed = Mapping[str, Sequence[int]]


def names(each: Uuid) -> str | None:
    """Every topic but `gone` exists."""
    name = bytes(each).rstrip(b".").decode()
    return None if name == "gone" else name


def request(
    epoch: int, wanted: Listed | None = None, forget: Listed | None = None
) -> ShareFetchRequest:
    return ShareFetchRequest(
        share_session_epoch=epoch,
        topics=[
            FetchTopic(
                topic_id=topic_id(topic),
                partitions=[FetchPartition(partition_index=each) for each in numbers],
            )
            for topic, numbers in (wanted or {}).items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic_id=topic_id(topic), partitions=list(numbers))
            for topic, numbers in (forget or {}).items()
        ],
    )


class Member:
    """A member that fetches over one connection."""

    def __init__(self, sessions: ShareSessions, name: str = "m", connection_id: int = 1) -> None:
        self.sessions = sessions
        self.name = name
        self.connection_id = connection_id

    def begin(
        self, epoch: int, wanted: Listed | None = None, forget: Listed | None = None
    ) -> ShareFetchContext | ErrorCode:
        asked = request(epoch, wanted, forget)
        return self.sessions.begin_fetch("g", self.name, asked, self.connection_id, names)

    def fetch(
        self, epoch: int, wanted: Listed | None = None, forget: Listed | None = None
    ) -> ShareFetchContext:
        context = self.begin(epoch, wanted, forget)
        assert isinstance(context, ShareFetchContext), context
        return context


def shown(partitions: Sequence[SessionPartition]) -> list[str]:
    return [f"{each.topic}-{each.partition}" for each in partitions]


def answer(context: ShareFetchContext, **data: PartitionData) -> list[str]:
    """Answer a request with data by partition, nothing for the others; return what is listed."""
    results = [
        (each, data.get(f"{each.topic}{each.partition}", PartitionData(records=b"")))
        for each in context.partitions(names)
    ]
    listed = context.listed(results)
    context.answered(listed)
    return shown([partition for partition, _ in listed])


@pytest.fixture
def sessions() -> ShareSessions:
    return ShareSessions(lambda: 2)


def test_a_session_belongs_to_a_member_of_a_group(sessions: ShareSessions) -> None:
    """932-SESS-01."""
    Member(sessions).fetch(0, {"a": [0]})
    other_group = sessions.begin_fetch("h", "m", request(1), 1, names)
    other_member = Member(sessions, "n").begin(1)
    assert other_group == other_member == ErrorCode.SHARE_SESSION_NOT_FOUND
    elsewhere = Member(sessions, "m", connection_id=2).fetch(1)
    assert elsewhere.session.key == SessionKey("g", "m")


def test_epoch_0_opens_a_session_with_the_whole_list(sessions: ShareSessions) -> None:
    """932-SESS-02."""
    member = Member(sessions)
    assert shown(member.fetch(0, {"a": [1, 0], "b": [2]}).partitions(names)) == [
        "a-1",
        "a-0",
        "b-2",
    ]
    assert shown(member.fetch(1).partitions(names)) == ["a-1", "a-0", "b-2"]


def test_a_request_that_opens_a_session_has_no_acknowledgements(sessions: ShareSessions) -> None:
    """932-SESS-03."""
    asked = request(0, {"a": [0]})
    asked.topics[0].partitions[0].acknowledgement_batches = [AcknowledgementBatch()]
    assert sessions.begin_fetch("g", "m", asked, 1, names) == ErrorCode.INVALID_REQUEST
    assert len(sessions) == 0


def test_epoch_0_replaces_an_open_session(sessions: ShareSessions) -> None:
    """932-SESS-04."""
    member = Member(sessions)
    member.fetch(0, {"a": [0]})
    member.fetch(1)
    member.fetch(0, {"b": [0]})
    assert (len(sessions), sessions.partitions_count) == (1, 1)
    assert shown(member.fetch(1).partitions(names)) == ["b-0"]


def test_later_requests_add_and_forget_partitions(sessions: ShareSessions) -> None:
    """932-SESS-05."""
    member = Member(sessions)
    member.fetch(0, {"a": [0, 1]})
    context = member.fetch(1, {"b": [0], "a": [1]}, forget={"a": [0, 7], "c": [0]})
    assert shown(context.partitions(names)) == ["a-1", "b-0"]
    assert shown(member.fetch(2, {"c": [1]}, forget={"c": [1]}).partitions(names)) == ["a-1", "b-0"]


@pytest.mark.parametrize("epoch", [1, 5, -1])
def test_a_request_without_its_session_is_refused(sessions: ShareSessions, epoch: int) -> None:
    """932-SESS-06."""
    assert Member(sessions).begin(epoch) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert sessions.begin_acknowledge("g", "m", epoch) == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_request_of_another_epoch_is_refused(sessions: ShareSessions) -> None:
    """932-SESS-07: a copy of a request that waits is refused, and the session goes on."""
    member = Member(sessions)
    member.fetch(0, {"a": [0]})
    parked = member.fetch(1)
    for epoch in (1, 3, -2):
        assert member.begin(epoch, {"b": [0]}) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert sessions.begin_acknowledge("g", "m", epoch) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert not parked.is_outdated()
    assert shown(member.fetch(2).partitions(names)) == ["a-0"]
    assert parked.is_outdated()


def test_after_the_largest_epoch_comes_1(sessions: ShareSessions) -> None:
    """932-SESS-08."""
    member = Member(sessions)
    session = member.fetch(0, {"a": [0]}).session
    session.epoch = LARGEST_EPOCH
    assert not member.fetch(LARGEST_EPOCH).is_outdated()
    assert session.epoch == 1
    session.epoch = LARGEST_EPOCH
    assert sessions.begin_acknowledge("g", "m", LARGEST_EPOCH) == ErrorCode.NONE
    assert session.epoch == 1


def test_the_last_epoch_fetches_nothing_and_closes(sessions: ShareSessions) -> None:
    """932-SESS-09: listed and forgotten partitions are not looked at."""
    member = Member(sessions)
    member.fetch(0, {"a": [0, 1]})
    last = member.fetch(-1, {"b": [0]}, forget={"a": [0]})
    assert (last.is_final, last.partitions(names), last.is_outdated()) == (True, [], False)
    closed = sessions.close("g", "m")
    assert closed is not None
    assert shown(closed) == ["a-0", "a-1"]
    assert sessions.close("g", "m") is None
    assert member.begin(1) == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_acknowledging_opens_no_session_and_counts_epochs(sessions: ShareSessions) -> None:
    """932-SESS-10."""
    member = Member(sessions)
    assert sessions.begin_acknowledge("g", "m", 0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert len(sessions) == 0
    member.fetch(0, {"a": [0]})
    assert sessions.begin_acknowledge("g", "m", 1) == ErrorCode.NONE
    assert sessions.begin_acknowledge("g", "m", -1) == ErrorCode.NONE
    assert shown(member.fetch(2).partitions(names)) == ["a-0"]


def test_the_number_of_sessions_is_limited() -> None:
    """932-SESS-11: the limit is read for each new session; one that is replaced makes room."""
    limit = 2
    sessions = ShareSessions(lambda: limit)
    Member(sessions, "m").fetch(0)
    Member(sessions, "n").fetch(0)
    assert Member(sessions, "o").begin(0) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    Member(sessions, "n").fetch(0)
    limit = 1
    assert Member(sessions, "n").begin(0) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert sessions.get("g", "n") is None


def test_a_lost_connection_closes_the_sessions_that_it_opened(sessions: ShareSessions) -> None:
    """932-SESS-12."""
    first, second = Member(sessions, "m", 1), Member(sessions, "n", 2)
    first.fetch(0, {"a": [0]})
    second.fetch(0, {"a": [1]})
    Member(sessions, "n", 1).fetch(1)
    closed = sessions.connection_closed(1)
    assert [each.key.member_id for each in closed.sessions] == ["m"]
    assert closed.empty_groups == []
    assert first.begin(1) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert sessions.close("g", "n") is not None
    assert sessions.connection_closed(2) == ([], ["g"])
    assert sessions.connection_closed(2) == ([], [])


def test_a_session_opened_again_elsewhere_survives_its_first_connection(
    sessions: ShareSessions,
) -> None:
    Member(sessions, "m", 1).fetch(0, {"a": [0]})
    Member(sessions, "m", 2).fetch(0, {"a": [0]})
    assert sessions.connection_closed(1) == ([], [])
    assert shown(Member(sessions, "m", 2).fetch(1).partitions(names)) == ["a-0"]


def test_every_session_of_a_connection_is_closed() -> None:
    sessions = ShareSessions(lambda: 9)
    for name in ("m", "n", "o"):
        Member(sessions, name).fetch(0)
    sessions.close("g", "n")
    assert [each.key.member_id for each in sessions.connection_closed(1).sessions] == ["m", "o"]
    assert len(sessions) == 0


def test_which_partitions_an_answer_lists(sessions: ShareSessions) -> None:
    """932-SESS-13."""
    member = Member(sessions)
    records, error = PartitionData(records=b"r"), PartitionData(error_code=6, records=b"")
    assert answer(member.fetch(0, {"a": [0, 1]})) == ["a-0", "a-1"]
    assert answer(member.fetch(1)) == []
    assert answer(member.fetch(2, {"b": [0]})) == ["b-0"]
    assert answer(member.fetch(3, {"b": [0]})) == []
    assert answer(member.fetch(4), a1=error) == ["a-1"]
    assert answer(member.fetch(5)) == ["a-1"]
    assert answer(member.fetch(6)) == []
    assert answer(member.fetch(7), a0=records, a1=records) == ["a-0", "a-1"]
    assert shown(member.fetch(8).partitions(names)) == ["b-0", "a-0", "a-1"]


def test_a_throttled_answer_leaves_a_new_partition_for_the_next(sessions: ShareSessions) -> None:
    member = Member(sessions)
    member.fetch(0)
    member.fetch(1, {"a": [0]})
    assert answer(member.fetch(2)) == ["a-0"]


def test_each_partition_comes_first_in_turn() -> None:
    assert [rotated(["a", "b", "c"], epoch)[0] for epoch in (-1, 0, 1, 2, 3, 4)] == [*"aabcab"]
    assert rotated(["a", "b", "c"], 2) == ["c", "a", "b"]
    assert rotated([], 5) == []


def test_a_list_with_a_partition_twice_opens_no_session(sessions: ShareSessions) -> None:
    member = Member(sessions)
    member.fetch(0, {"a": [0]})
    assert member.begin(0, {"a": [0, 0]}) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(sessions) == 0


def test_a_topic_that_appears_later_is_found(sessions: ShareSessions) -> None:
    member = Member(sessions)
    member.fetch(0, {"gone": [0]})
    assert [each.topic for each in member.fetch(1).partitions(names)] == [None]
    assert [each.topic for each in member.fetch(2).partitions(lambda _: "new")] == ["new"]
    assert [each.topic for each in member.fetch(3).partitions(names)] == ["new"]


def test_no_session_is_left_when_share_groups_are_switched_off(sessions: ShareSessions) -> None:
    member = Member(sessions)
    member.fetch(0, {"a": [0]})
    sessions.clear()
    assert (len(sessions), sessions.partitions_count) == (0, 0)
    assert sessions.connection_closed(1) == ([], ["g"])
