"""KIP-227 "Incremental FetchRequests", sentence by sentence; ids are those of docs/KIPS.md.

Shipped Kafka follows the accepted text. Where a draft said otherwise, the test asserts what is
shipped and its docstring says "superseded".
"""

import pytest

from kraft_wire.broker.fetching.fetch_session import next_epoch
from kraft_wire.broker.fetching.fetch_sessions import (
    DEFAULT_SLOTS,
    EVICTION_MS,
    IDS_PER_SHARD,
    FetchContext,
    FetchSessionCache,
)
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kraft_wire.wire.message import UnencodableMessage
from tests.broker.fetch_client import (
    IDS_VERSION,
    FakeBroker,
    Name,
    SeededRandomSource,
    fetch_request,
    listed,
    topic_id,
)

A: Name = ("a", 0)
B: Name = ("b", 0)
C: Name = ("c", 0)
ALL = [A, B, C]


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker(ALL)


def open_session(broker: FakeBroker, names: list[Name] = ALL, **fetch: bool) -> int:
    """Create a session over the partitions and return its id."""
    response = broker.fetch(fetch_request(0, 0, names), **fetch)
    assert response.session_id > 0
    return response.session_id


def accepted(context: FetchContext | ErrorCode) -> FetchContext:
    """The context of a request that must not be refused."""
    assert not isinstance(context, ErrorCode), context
    return context


# ---- session id ------------------------------------------------------------------------------


def test_session_id_is_an_int32_and_zero_below_version_7() -> None:
    """227-ID-01, 227-ID-02, 227-ID-04 (64 bits: superseded)."""
    response = FetchResponse(session_id=2**31 - 1)
    decoded, _ = FetchResponse.decode(response.encode(7), 7)
    assert decoded.session_id == 2**31 - 1
    with pytest.raises(UnencodableMessage):
        FetchResponse(session_id=2**31).encode(7)
    decoded, _ = FetchResponse.decode(FetchResponse().encode(6), 6)
    assert decoded.session_id == 0


def test_full_request_without_session_gets_a_new_session(broker: FakeBroker) -> None:
    """227-ID-03, 227-REQ-04, 227-RESP-04: id 0 with epoch 0 creates a session, named by its id."""
    session_id = broker.fetch(fetch_request(0, 0, ALL)).session_id
    assert session_id > 0
    assert broker.fetch(fetch_request(session_id, 1)).error_code == ErrorCode.NONE


def test_ids_are_positive_unique_and_drawn_from_their_shard() -> None:
    """227-ID-05: random within the range of the shard, shards in turn."""
    broker = FakeBroker([A], slots=4_000)
    ids = [open_session(broker, [A]) for _ in range(2_000)]
    assert len(set(ids)) == 2_000
    assert all(1 <= each <= 2**31 - 1 for each in ids)
    assert [each // IDS_PER_SHARD for each in ids[:16]] == [*range(8), *range(8)]


def test_drawn_id_that_is_taken_is_drawn_again() -> None:
    """227-ID-05: unique also when chance repeats itself."""

    class Repeating:
        def __init__(self) -> None:
            self.draws = [7, 7, 7, 9]

        def below(self, bound: int) -> int:
            return self.draws.pop(0)

    broker = FakeBroker([A])
    broker.sessions = FetchSessionCache(16, Repeating(), shards=1)
    assert [open_session(broker, [A]), open_session(broker, [A])] == [8, 10]


# ---- epoch -----------------------------------------------------------------------------------


def test_epoch_is_an_int32(broker: FakeBroker) -> None:
    """227-EPOCH-01."""
    decoded, _ = FetchRequest.decode(FetchRequest(session_epoch=2**31 - 1).encode(7), 7)
    assert decoded.session_epoch == 2**31 - 1
    with pytest.raises(UnencodableMessage):
        FetchRequest(session_epoch=2**31).encode(7)


@pytest.mark.parametrize("epoch", [-2, -(2**31)])
def test_negative_epoch_is_never_valid(broker: FakeBroker, epoch: int) -> None:
    """227-EPOCH-02: 0 means "new" and -1 "none"; every other one must be positive."""
    session_id = open_session(broker)
    response = broker.fetch(fetch_request(session_id, epoch))
    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_epoch_starts_at_one_and_rises_with_each_accepted_request(broker: FakeBroker) -> None:
    """227-EPOCH-03, 227-EPOCH-06, 227-EPOCH-08, 227-RESP-05 (clients count)."""
    session_id = open_session(broker)
    for epoch in range(1, 6):
        assert broker.fetch(fetch_request(session_id, epoch)).error_code == ErrorCode.NONE
    assert not hasattr(FetchResponse(), "session_epoch")


def test_epoch_rises_on_acceptance_not_on_the_answer(broker: FakeBroker) -> None:
    """227-EPOCH-03: a request whose answer is still due has used its epoch up."""
    session_id = open_session(broker)
    accepted(broker.begin(fetch_request(session_id, 1)))
    refused = broker.begin(fetch_request(session_id, 1))
    assert refused is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_epoch_after_the_largest_int32_is_one(broker: FakeBroker) -> None:
    """227-EPOCH-04."""
    assert [next_epoch(0), next_epoch(2**31 - 2), next_epoch(2**31 - 1)] == [1, 2**31 - 1, 1]


def test_refused_request_does_not_use_its_epoch_up(broker: FakeBroker) -> None:
    """227-EPOCH-05: a lost or repeated request is noticed, and the session survives it."""
    session_id = open_session(broker)
    for wrong in (2, 3, 2**31 - 1):
        refused = broker.fetch(fetch_request(session_id, wrong))
        assert refused.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert broker.fetch(fetch_request(session_id, 1)).error_code == ErrorCode.NONE


def test_request_overtaken_while_parked_is_refused_with_the_session_id(broker: FakeBroker) -> None:
    """227-EPOCH-05: a copy in flight; the first answer says 71 and names the session."""
    session_id = open_session(broker)
    parked = accepted(broker.begin(fetch_request(session_id, 1)))
    assert broker.fetch(fetch_request(session_id, 2)).error_code == ErrorCode.NONE
    late = parked.finish(broker.read(parked), 0)
    assert (late.error_code, late.session_id) == (
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        session_id,
    )
    assert listed(late) == []
    assert parked.throttled().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_request_has_no_sequence_number_and_no_fetch_type() -> None:
    """227-EPOCH-07, 227-REQ-01, 227-REQ-08 (superseded): the pair of id and epoch decides."""
    fields = set(vars(FetchRequest)) | set(FetchRequest.__slots__)
    assert {"session_id", "session_epoch", "forgotten_topics_data"} <= fields
    assert not fields & {"fetch_type", "fetch_session_id", "sequence_number"}


# ---- kinds of request --------------------------------------------------------------------------


def test_sessionless_request_neither_uses_nor_creates_a_session(broker: FakeBroker) -> None:
    """227-REQ-02, 227-RESP-06: id 0, epoch -1."""
    response = broker.fetch(fetch_request(0, -1, ALL))
    assert (response.session_id, listed(response)) == (0, ALL)
    assert broker.sessions.sessions_count == 0


@pytest.mark.parametrize("version", [4, 5, 6])
def test_request_below_version_7_is_sessionless(broker: FakeBroker, version: int) -> None:
    """227-REQ-03, 227-COMPAT-01: what such a request decodes to means "no session"."""
    old = FetchRequest(
        max_bytes=1 << 20,
        topics=[FetchTopic(topic="a", partitions=[FetchPartition(partition_max_bytes=100)])],
    )
    decoded, _ = FetchRequest.decode(old.encode(version), version)
    assert (decoded.session_id, decoded.session_epoch) == (0, -1)
    response = broker.fetch(decoded, version)
    assert (response.session_id, listed(response)) == (0, [A])
    response.encode(version)


def test_full_request_that_names_a_session_replaces_it(broker: FakeBroker) -> None:
    """227-REQ-05, 227-REQ-11: the old one is closed, the set of partitions is the new one."""
    old = open_session(broker)
    new = broker.fetch(fetch_request(old, 0, [B])).session_id
    assert new not in (0, old)
    assert broker.sessions.sessions_count == 1
    refused = broker.fetch(fetch_request(old, 1))
    assert refused.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    broker.partitions[A].high_watermark = broker.partitions[B].high_watermark = 1
    assert listed(broker.fetch(fetch_request(new, 1))) == [B]


@pytest.mark.parametrize("session_id", [1, 12345, 2**31 - 1, -1, -(2**31)])
@pytest.mark.parametrize("epoch", [0, -1])
def test_full_request_that_names_no_known_session_is_served(
    broker: FakeBroker, session_id: int, epoch: int
) -> None:
    """227-REQ-05: closing what does not exist is silent."""
    response = broker.fetch(fetch_request(session_id, epoch, ALL))
    assert (response.error_code, listed(response)) == (ErrorCode.NONE, ALL)


def test_incremental_request_is_served_when_id_and_epoch_are_right(broker: FakeBroker) -> None:
    """227-REQ-06, 227-REQ-13, 227-RESP-08: answered incrementally, under the same id."""
    session_id = open_session(broker)
    broker.partitions[B].high_watermark = 3
    response = broker.fetch(fetch_request(session_id, 1))
    assert (response.session_id, listed(response)) == (session_id, [B])


def test_final_epoch_closes_the_session_and_fetches_in_full(broker: FakeBroker) -> None:
    """227-REQ-07: epoch -1 with an id."""
    session_id = open_session(broker)
    response = broker.fetch(fetch_request(session_id, -1, ALL))
    assert (response.session_id, listed(response)) == (0, ALL)
    assert broker.sessions.sessions_count == 0


def test_incremental_request_without_session_id_is_refused(broker: FakeBroker) -> None:
    """227-REQ-09, 227-REQ-10: id 0 with a positive epoch is an id that nobody has."""
    response = broker.fetch(fetch_request(0, 1, ALL))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_full_answer_contains_every_requested_partition(broker: FakeBroker) -> None:
    """227-REQ-12: also those with nothing to tell, and those that do not exist."""
    names = [*ALL, ("missing", 4)]
    assert listed(broker.fetch(fetch_request(0, 0, names))) == names


# ---- content of incremental requests -----------------------------------------------------------


def test_listed_partition_takes_the_new_parameters(broker: FakeBroker) -> None:
    """227-INC-01: max bytes, fetch offset, log start offset, leader epoch, last fetched epoch."""
    session_id = open_session(broker)
    broker.partitions[A].high_watermark = 9
    changed = fetch_request(
        session_id,
        1,
        {A: 7},
        partition_max_bytes=10,
        log_start_offset=3,
        current_leader_epoch=5,
        last_fetched_epoch=4,
    )
    broker.fetch(changed)
    context = accepted(broker.begin(fetch_request(session_id, 2)))
    kept = next(each.params for each in context.partitions() if each.topic == "a")
    assert kept == changed.topics[0].partitions[0]


def test_partition_listed_for_the_first_time_joins_the_session(broker: FakeBroker) -> None:
    """227-INC-02: and is answered at once, whatever its state."""
    session_id = open_session(broker, [A])
    assert listed(broker.fetch(fetch_request(session_id, 1, [B]))) == [B]
    broker.partitions[B].high_watermark = 1
    assert listed(broker.fetch(fetch_request(session_id, 2))) == [B]


def test_forgotten_partition_leaves_the_session(broker: FakeBroker) -> None:
    """227-INC-03."""
    session_id = open_session(broker)
    for partition in broker.partitions.values():
        partition.high_watermark = 1
    assert listed(broker.fetch(fetch_request(session_id, 1, forget=[A, C]))) == [B]
    assert broker.sessions.partitions_count == 1


def test_empty_request_fetches_everything_as_remembered(broker: FakeBroker) -> None:
    """227-INC-04: nothing changed, nothing listed."""
    for partition in broker.partitions.values():
        partition.high_watermark = 5
    session_id = broker.fetch(fetch_request(0, 0, dict.fromkeys(ALL, 5))).session_id
    broker.partitions[C].high_watermark = 6
    response = broker.fetch(fetch_request(session_id, 1))
    assert listed(response) == [C]
    assert len(bytes(response.responses[0].partitions[0].records or b"")) == 10  # type: ignore[arg-type]  # bytes


def test_max_bytes_of_zero_does_not_remove_a_partition(broker: FakeBroker) -> None:
    """227-INC-05 (superseded): removal has its own list."""
    session_id = open_session(broker, [A])
    broker.fetch(fetch_request(session_id, 1, [A], partition_max_bytes=0))
    broker.partitions[A].high_watermark = 1
    assert listed(broker.fetch(fetch_request(session_id, 2))) == [A]


def test_position_of_an_unlisted_partition_stays(broker: FakeBroker) -> None:
    """227-INC-06: what is not listed has not moved."""
    session_id = open_session(broker)
    broker.fetch(fetch_request(session_id, 1, {A: 4}))
    context = accepted(broker.begin(fetch_request(session_id, 2, {B: 2})))
    positions = {each.topic: each.params.fetch_offset for each in context.partitions()}
    assert positions == {"a": 4, "b": 2, "c": 0}


def test_session_without_partitions_is_closed(broker: FakeBroker) -> None:
    """227-INC-07: its last request is answered without a session."""
    session_id = open_session(broker, [A, B])
    response = broker.fetch(fetch_request(session_id, 1, forget=[A, B]))
    assert (response.error_code, response.session_id, listed(response)) == (ErrorCode.NONE, 0, [])
    assert broker.sessions.sessions_count == 0
    assert broker.sessions.partitions_count == 0


def test_forgetting_what_is_not_in_the_session_is_harmless(broker: FakeBroker) -> None:
    """227-INC-08."""
    session_id = open_session(broker, [A])
    response = broker.fetch(fetch_request(session_id, 1, forget=[B, ("missing", 9)]))
    assert (response.error_code, response.session_id) == (ErrorCode.NONE, session_id)


def test_partition_listed_and_forgotten_at_once_is_forgotten(broker: FakeBroker) -> None:
    """227-INC-09: additions first, then removals."""
    session_id = open_session(broker, [A])
    response = broker.fetch(fetch_request(session_id, 1, [B], forget=[B]))
    assert listed(response) == []
    assert broker.sessions.partitions_count == 1


def test_schema_of_the_request() -> None:
    """227-SCHEMA-01: id, epoch, forgotten topics from version 7 on, no fetch type."""
    request = FetchRequest(
        session_id=5,
        session_epoch=6,
        forgotten_topics_data=[ForgottenTopic(topic="a", partitions=[1, 2])],
    )
    decoded, _ = FetchRequest.decode(request.encode(7), 7)
    assert decoded.session_id == 5
    assert decoded.session_epoch == 6
    assert decoded.forgotten_topics_data[0].partitions == [1, 2]


def test_schema_of_the_response() -> None:
    """227-SCHEMA-02, 227-SCHEMA-03, 227-SCHEMA-04 (flags: superseded)."""
    response = FetchResponse(error_code=71, session_id=5)
    decoded, _ = FetchResponse.decode(response.encode(7), 7)
    assert (decoded.error_code, decoded.session_id) == (71, 5)
    names = FetchResponse.__slots__
    assert not {"error_string", "fetch_type", "response_flags", "session_epoch"} & set(names)


# ---- responses ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("session_id", "epoch"), [(77, 1), (0, 5)])
def test_error_of_the_whole_request_leaves_every_partition_out(
    broker: FakeBroker, session_id: int, epoch: int
) -> None:
    """227-RESP-01, 227-RESP-02, 227-RESP-06: no partition, no session id."""
    response = broker.fetch(fetch_request(session_id, epoch, ALL))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (response.session_id, response.responses) == (0, [])
    assert all(partition.reads == 0 for partition in broker.partitions.values())


def test_session_id_zero_says_that_none_was_created() -> None:
    """227-RESP-03, 227-RESP-07, 227-CACHE-07: a full cache; the fetch itself succeeds."""
    broker = FakeBroker(ALL, slots=0)
    response = broker.fetch(fetch_request(0, 0, ALL))
    assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
    assert listed(response) == ALL


@pytest.mark.parametrize(
    "change", [{"high_watermark": 2}, {"log_start_offset": 1, "high_watermark": 1}]
)
def test_changed_high_watermark_or_log_start_offset_is_news(
    broker: FakeBroker, change: dict[str, int]
) -> None:
    """227-RESP-09: once, until it changes again."""
    broker.partitions[B].high_watermark = 1
    session_id = broker.fetch(fetch_request(0, 0, dict.fromkeys(ALL, 1))).session_id
    vars(broker.partitions[B]).update(change)
    assert listed(broker.fetch(fetch_request(session_id, 1, {B: 2}))) == [B]
    assert listed(broker.fetch(fetch_request(session_id, 2))) == []


def test_new_data_is_news_until_the_client_moves_on(broker: FakeBroker) -> None:
    """227-RESP-10: records are sent again as long as the fetch offset stays."""
    session_id = open_session(broker)
    broker.partitions[A].high_watermark = 1
    assert listed(broker.fetch(fetch_request(session_id, 1))) == [A]
    assert listed(broker.fetch(fetch_request(session_id, 2))) == [A]
    assert listed(broker.fetch(fetch_request(session_id, 3, {A: 1}))) == []


def test_changed_last_stable_offset_alone_is_no_news(broker: FakeBroker) -> None:
    """227-RESP-11 (dropped from the accepted text)."""
    session_id = open_session(broker)
    broker.partitions[A].last_stable_offset = 5
    assert listed(broker.fetch(fetch_request(session_id, 1))) == []


@pytest.mark.parametrize(
    "extra",
    [{"preferred_read_replica": 2}, {"diverging_epoch": EpochEndOffset(epoch=1, end_offset=0)}],
)
def test_preferred_replica_and_divergence_are_news(
    broker: FakeBroker, extra: dict[str, object]
) -> None:
    """227-RESP-12: every time, not only when they change."""
    broker.partitions[A].extra = extra
    broker.partitions[A].high_watermark = 1
    session_id = broker.fetch(fetch_request(0, 0, {A: 1})).session_id
    for epoch in (1, 2, 3):
        assert listed(broker.fetch(fetch_request(session_id, epoch))) == [A]


def test_error_is_news_every_time(broker: FakeBroker) -> None:
    """227-RESP-12."""
    session_id = open_session(broker)
    broker.partitions[A].error = ErrorCode.KAFKA_STORAGE_ERROR
    broker.partitions[A].offline = True
    for epoch in (1, 2, 3):
        assert listed(broker.fetch(fetch_request(session_id, epoch))) == [A]


def test_nothing_new_lists_nothing(broker: FakeBroker) -> None:
    """227-RESP-13: and nothing is read for it either."""
    session_id = open_session(broker)
    reads = [partition.reads for partition in broker.partitions.values()]
    response = broker.fetch(fetch_request(session_id, 1))
    assert (response.session_id, response.responses) == (session_id, [])
    assert [partition.reads for partition in broker.partitions.values()] == reads


def test_recovered_partition_is_listed_although_nothing_else_changed(broker: FakeBroker) -> None:
    """227-RESP-14: the remembered high watermark is forgotten with the error."""
    session_id = open_session(broker)
    broker.partitions[A].error = ErrorCode.KAFKA_STORAGE_ERROR
    broker.partitions[A].offline = True
    broker.fetch(fetch_request(session_id, 1))
    broker.partitions[A].error = ErrorCode.NONE
    broker.partitions[A].offline = False
    assert listed(broker.fetch(fetch_request(session_id, 2))) == [A]
    assert listed(broker.fetch(fetch_request(session_id, 3))) == []


def test_throttled_answer_lists_nothing_and_remembers_nothing(broker: FakeBroker) -> None:
    """227-RESP-15."""
    session_id = open_session(broker)
    broker.partitions[A].high_watermark = 1
    throttled = accepted(broker.begin(fetch_request(session_id, 1))).throttled()
    assert (throttled.error_code, throttled.session_id) == (ErrorCode.NONE, session_id)
    assert throttled.responses == []
    assert listed(broker.fetch(fetch_request(session_id, 2))) == [A]
    for session, epoch in ((0, 0), (0, -1)):
        full = accepted(broker.begin(fetch_request(session, epoch, ALL))).throttled()
        assert (full.session_id, full.responses) == (0, [])


# ---- fairness ----------------------------------------------------------------------------------


def backlog(broker: FakeBroker, records: int = 100) -> int:
    """A session whose partitions all have more than one answer can carry."""
    session_id = open_session(broker)
    for partition in broker.partitions.values():
        partition.high_watermark = records
    return session_id


def with_records(response: FetchResponse) -> list[str]:
    """Topics of an answer that carry records."""
    return [topic.topic for topic in response.responses if topic.partitions[0].records]


def test_byte_limit_limits_how_many_partitions_carry_records(broker: FakeBroker) -> None:
    """227-FAIR-01."""
    session_id = backlog(broker)
    response = broker.fetch(fetch_request(session_id, 1, ALL, max_bytes=20, partition_max_bytes=10))
    assert with_records(response) == ["a", "b"]


def test_one_record_is_returned_whatever_the_limit(broker: FakeBroker) -> None:
    """227-FAIR-02 (KIP-74): here of the fake broker; the real one has its own test."""
    session_id = backlog(broker)
    assert with_records(broker.fetch(fetch_request(session_id, 1, max_bytes=1))) == ["a"]


def test_partition_with_records_moves_behind_the_others(broker: FakeBroker) -> None:
    """227-FAIR-03, 227-FAIR-04, 227-FAIR-06 (by sequence number: superseded)."""
    session_id = backlog(broker)
    served = [
        with_records(broker.fetch(fetch_request(session_id, epoch, max_bytes=1)))
        for epoch in range(1, 7)
    ]
    assert served == [["a"], ["b"], ["c"], ["a"], ["b"], ["c"]]


def test_metadata_without_records_does_not_move_a_partition(broker: FakeBroker) -> None:
    """227-FAIR-04: only records count."""
    session_id = open_session(broker)
    broker.partitions[A].log_start_offset = broker.partitions[A].high_watermark = 0
    broker.partitions[A].log_start_offset = 1
    assert listed(broker.fetch(fetch_request(session_id, 1))) == [A]
    context = accepted(broker.begin(fetch_request(session_id, 2)))
    assert [each.topic for each in context.partitions()] == ["a", "b", "c"]


def test_every_partition_with_data_is_served_in_the_end() -> None:
    """227-FAIR-05: forty busy partitions, one record an answer."""
    names = [("t", index) for index in range(40)]
    broker = FakeBroker(names)
    session_id = broker.fetch(fetch_request(0, 0, names)).session_id
    for partition in broker.partitions.values():
        partition.high_watermark = 10**6
    seen: list[Name] = []
    for epoch in range(1, 41):
        answer = broker.fetch(fetch_request(session_id, epoch, max_bytes=1))
        (topic,) = answer.responses[:1]
        seen += [("t", d.partition_index) for d in topic.partitions if d.records]
    assert sorted(seen) == names


# ---- errors ------------------------------------------------------------------------------------


def test_unknown_session_id_is_an_error_of_the_whole(broker: FakeBroker) -> None:
    """227-ERR-01: never existed, closed, evicted; retriable."""
    closed = open_session(broker)
    broker.fetch(fetch_request(closed, -1))
    for unknown in (closed, 1, 2**31 - 1, -5):
        response = broker.fetch(fetch_request(unknown, 1, ALL))
        assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert response.session_id == 0
    assert ErrorCode.FETCH_SESSION_ID_NOT_FOUND.retriable


def test_wrong_epoch_keeps_the_session(broker: FakeBroker) -> None:
    """227-ERR-02: retriable, session id 0 in the answer."""
    session_id = open_session(broker)
    response = broker.fetch(fetch_request(session_id, 9))
    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert response.session_id == 0
    assert ErrorCode.INVALID_FETCH_SESSION_EPOCH.retriable
    assert broker.sessions.sessions_count == 1


@pytest.mark.parametrize(("created", "used"), [(12, 13), (13, 12)])
def test_session_is_not_used_with_and_without_topic_ids(
    broker: FakeBroker, created: int, used: int
) -> None:
    """227-ERR-03 (KIP-516)."""
    opening = fetch_request(0, 0, ALL, by_id=created >= 13)
    session_id = broker.fetch(opening, created).session_id
    response = broker.fetch(fetch_request(session_id, 1), used)
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert (response.session_id, response.responses) == (0, [])
    assert broker.fetch(fetch_request(session_id, 1), created).error_code == ErrorCode.NONE


def test_id_is_checked_before_epoch_before_topic_ids(broker: FakeBroker) -> None:
    """227-ERR-04."""
    session_id = open_session(broker)
    assert broker.begin(fetch_request(99, 9), 13) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert broker.begin(fetch_request(session_id, 9), 13) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert broker.begin(fetch_request(session_id, 1), 13) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_full_request_after_an_error_starts_over(broker: FakeBroker) -> None:
    """227-ERR-05: what a client does then works, and leaves one session."""
    session_id = open_session(broker)
    broker.fetch(fetch_request(session_id, 9))
    response = broker.fetch(fetch_request(session_id, 0, ALL))
    assert response.session_id not in (0, session_id)
    assert broker.sessions.sessions_count == 1


def test_topic_id_that_appears_later_is_resolved_once_known() -> None:
    """227-ERR-03 (KIP-516): an unknown id is an error of its partition, not of the session."""
    broker = FakeBroker([A])
    names = dict(broker.names)
    broker.names.clear()
    opening = broker.fetch(fetch_request(0, 0, [A], by_id=True), IDS_VERSION)
    assert opening.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    broker.names.update(names)
    response = broker.fetch(fetch_request(opening.session_id, 1), IDS_VERSION)
    assert response.responses[0].topic_id == topic_id("a")
    assert response.responses[0].partitions[0].error_code == ErrorCode.NONE


# ---- cache -------------------------------------------------------------------------------------

OLD = EVICTION_MS + 1


def one_shard(slots: int) -> FakeBroker:
    """A cache in which every session competes with every other."""
    return FakeBroker(ALL, slots=slots, shards=1)


def try_open(broker: FakeBroker, names: list[Name], now_ms: int, *, follower: bool = False) -> int:
    """Ask for a session; 0 when none was given."""
    request = fetch_request(0, 0, names)
    return broker.fetch(request, now_ms=now_ms, follower=follower).session_id


def is_alive(broker: FakeBroker, session_id: int) -> bool:
    """Whether a session is in the cache, without touching it."""
    answer = broker.begin(fetch_request(session_id, 2**31 - 1))
    return answer is not ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_cache_keeps_a_limited_number_of_sessions() -> None:
    """227-CACHE-01, 227-CACHE-02: the slots are divided over eight shards."""
    broker = FakeBroker(ALL, slots=100)
    ids = [try_open(broker, ALL, 0) for _ in range(500)]
    assert sum(each > 0 for each in ids) == 96
    assert broker.sessions.sessions_count == 96


def test_defaults_of_the_cache() -> None:
    """227-CACHE-02, 227-CACHE-03, 227-CACHE-09 (drafts' settings: not shipped)."""
    assert DEFAULT_SLOTS == BrokerSettings().max_incremental_fetch_session_cache_slots == 1_000
    assert EVICTION_MS == 120_000


def test_follower_evicts_a_consumer_of_any_age_and_size() -> None:
    """227-CACHE-04."""
    broker = one_shard(1)
    consumer = try_open(broker, ALL, 0)
    follower = try_open(broker, [A], 1, follower=True)
    assert follower > 0
    assert not is_alive(broker, consumer)


def test_follower_is_not_evicted_by_a_consumer() -> None:
    """227-CACHE-04: a privileged session is worth more whatever its size, until it is stale."""
    broker = one_shard(1)
    follower = try_open(broker, [A], 0, follower=True)
    broker.fetch(fetch_request(follower, 1), now_ms=OLD)
    assert try_open(broker, ALL, OLD + 1) == 0
    assert is_alive(broker, follower)


def test_unused_session_is_evicted_by_anyone() -> None:
    """227-CACHE-05: the least recently used one, once unused for longer than the time."""
    broker = one_shard(2)
    first = try_open(broker, ALL, 0)
    second = try_open(broker, [A], 1)
    assert try_open(broker, [A], EVICTION_MS) == 0
    assert try_open(broker, [A], OLD) > 0
    assert not is_alive(broker, first)
    assert is_alive(broker, second)


def test_use_protects_from_staleness() -> None:
    """227-CACHE-05: what counts is the last use."""
    broker = one_shard(2)
    first = try_open(broker, ALL, 0)
    second = try_open(broker, ALL, 0)
    broker.fetch(fetch_request(first, 1), now_ms=OLD - 10)
    assert try_open(broker, [A], OLD) > 0
    assert is_alive(broker, first)
    assert not is_alive(broker, second)


def test_larger_session_evicts_a_smaller_old_one_in_use() -> None:
    """227-CACHE-06: strictly more partitions, smallest victim first."""
    broker = one_shard(2)
    small = try_open(broker, [A], 0)
    middle = try_open(broker, [A, B], 0)
    for session_id in (small, middle):
        broker.fetch(fetch_request(session_id, 1), now_ms=OLD)
    assert try_open(broker, [C], OLD + 1) == 0
    assert try_open(broker, [B, C], OLD + 1) > 0
    assert not is_alive(broker, small)
    assert is_alive(broker, middle)


def test_young_session_in_use_is_not_evicted_by_a_larger_one() -> None:
    """227-CACHE-06, 227-CACHE-07: it must be older than the eviction time."""
    broker = one_shard(1)
    small = try_open(broker, [A], 0)
    assert try_open(broker, ALL, EVICTION_MS) == 0
    assert is_alive(broker, small)


def test_old_follower_is_evicted_by_a_larger_follower() -> None:
    """227-CACHE-04, 227-CACHE-06: among followers age and size decide."""
    broker = one_shard(1)
    small = try_open(broker, [A], 0, follower=True)
    assert try_open(broker, ALL, 1, follower=True) == 0
    broker.fetch(fetch_request(small, 1), now_ms=OLD)
    assert try_open(broker, ALL, OLD + 1, follower=True) > 0


def test_session_is_valued_by_its_size_when_it_was_last_used() -> None:
    """227-CACHE-06: a session that grew is worth more."""
    broker = one_shard(1)
    grown = try_open(broker, [A], 0)
    broker.fetch(fetch_request(grown, 1, [B, C]), now_ms=OLD)
    assert try_open(broker, ALL, OLD + 1) == 0
    broker.fetch(fetch_request(grown, 2, forget=[B, C]), now_ms=OLD + 2)
    assert try_open(broker, [A, B], OLD + 3) > 0


def test_metrics_count_sessions_partitions_and_evictions() -> None:
    """227-CACHE-08."""
    broker = one_shard(2)
    first = try_open(broker, ALL, 0)
    try_open(broker, [A], 0)
    cache = broker.sessions
    assert (cache.sessions_count, cache.partitions_count, cache.evictions_count) == (2, 4, 0)
    broker.fetch(fetch_request(first, 1, forget=[B]), now_ms=OLD)
    try_open(broker, [C], OLD)
    assert (cache.sessions_count, cache.partitions_count, cache.evictions_count) == (2, 3, 1)
    broker.fetch(fetch_request(first, -1), now_ms=OLD)
    assert (cache.sessions_count, cache.partitions_count, cache.evictions_count) == (1, 1, 1)


def test_newer_and_older_clients_share_a_broker(broker: FakeBroker) -> None:
    """227-COMPAT-01: a session of one does not change what the other gets."""
    session_id = open_session(broker)
    old = FetchRequest(
        max_bytes=1 << 20,
        topics=[FetchTopic(topic="a", partitions=[FetchPartition(partition_max_bytes=100)])],
    )
    assert listed(broker.fetch(old, 4)) == [A]
    assert broker.fetch(fetch_request(session_id, 1)).error_code == ErrorCode.NONE


def test_answer_for_a_throttled_or_refused_fetch_encodes_in_every_version() -> None:
    """227-SCHEMA-03: the partition's data has the fields that it always had."""
    data = PartitionData(partition_index=1, high_watermark=5, records=b"")
    assert (data.partition_index, data.high_watermark, data.records) == (1, 5, b"")
    for version in range(7, 19):
        FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH).encode(version)


def test_chance_of_the_tests_is_deterministic() -> None:
    """227-ID-05: the same seed draws the same ids, so that a simulation can be repeated."""
    drawn = [FakeBroker([A], seed=3).fetch(fetch_request(0, 0, [A])).session_id for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert SeededRandomSource(1).below(10**9) != SeededRandomSource(2).below(10**9)
