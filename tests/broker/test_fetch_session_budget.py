"""The partitions that all sessions together may remember: a bound of ours beside Kafka's slots."""

import pytest

from kraft_wire.broker.fetching.fetch_sessions import DEFAULT_PARTITIONS, EVICTION_MS
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.fetch_client import FakeBroker, Name, fetch_request, listed

NAMES: list[Name] = [("t", index) for index in range(20)]


@pytest.fixture
def broker() -> FakeBroker:
    """Room for ten partitions, whatever the slots say."""
    return FakeBroker(NAMES, slots=80, partitions=10, shards=1)


def open_session(broker: FakeBroker, count: int, *, now_ms: int = 0) -> int:
    """Ask for a session of some partitions; 0 when none was given."""
    return broker.fetch(fetch_request(0, 0, NAMES[:count]), now_ms=now_ms).session_id


def test_session_beyond_the_budget_is_not_created(broker: FakeBroker) -> None:
    assert open_session(broker, 6) > 0
    assert open_session(broker, 5) == 0
    assert open_session(broker, 4) > 0
    assert broker.sessions.partitions_count == 10


def test_session_larger_than_the_budget_evicts_nobody(broker: FakeBroker) -> None:
    kept = open_session(broker, 6)
    assert open_session(broker, 11, now_ms=EVICTION_MS + 1) == 0
    assert broker.fetch(fetch_request(kept, 1)).error_code == ErrorCode.NONE


def test_stale_sessions_make_room_until_there_is_enough(broker: FakeBroker) -> None:
    for _ in range(5):
        open_session(broker, 2)
    assert open_session(broker, 7, now_ms=EVICTION_MS + 1) > 0
    assert broker.sessions.sessions_count == 2
    assert (broker.sessions.partitions_count, broker.sessions.evictions_count) == (9, 4)


def test_session_that_outgrows_the_budget_is_served_once_more_and_closed(
    broker: FakeBroker,
) -> None:
    other = open_session(broker, 6)
    grown = open_session(broker, 2)
    added = NAMES[2:9]
    response = broker.fetch(fetch_request(grown, 1, added))
    assert (response.session_id, listed(response)) == (grown, added)
    assert broker.sessions.partitions_count == 6
    refused = broker.fetch(fetch_request(grown, 2))
    assert refused.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert broker.fetch(fetch_request(other, 1)).error_code == ErrorCode.NONE


def test_forgotten_partitions_give_their_room_back(broker: FakeBroker) -> None:
    session_id = open_session(broker, 10)
    assert open_session(broker, 1) == 0
    broker.fetch(fetch_request(session_id, 1, forget=NAMES[:4]))
    assert open_session(broker, 4) > 0


def test_name_that_no_topic_can_have_is_answered_and_not_remembered(broker: FakeBroker) -> None:
    huge: Name = ("x" * 30_000, 0)
    response = broker.fetch(fetch_request(0, 0, [NAMES[0], huge]))
    assert (response.session_id, listed(response)) == (0, [NAMES[0], huge])
    session_id = open_session(broker, 2)
    response = broker.fetch(fetch_request(session_id, 1, [huge]))
    assert (response.session_id, listed(response)) == (session_id, [huge])
    assert broker.sessions.sessions_count == broker.sessions.partitions_count == 0


def test_unknown_tagged_fields_are_not_remembered(broker: FakeBroker) -> None:
    request = fetch_request(0, 0, NAMES[:1])
    request.topics[0].partitions[0].unknown_tagged_fields = [(99, bytes(60_000))]
    session_id = broker.fetch(request).session_id
    context = broker.begin(fetch_request(session_id, 1))
    assert not isinstance(context, ErrorCode)
    (kept,) = context.partitions()
    assert kept.params.unknown_tagged_fields is None


def test_default_is_the_configured_key() -> None:
    assert BrokerSettings().max_incremental_fetch_session_cache_partitions == DEFAULT_PARTITIONS
    key = BROKER_KEYS["max.incremental.fetch.session.cache.partitions"]
    assert key.default == DEFAULT_PARTITIONS


def test_a_session_in_use_is_not_stale_but_old_and_then_a_larger_one_may_replace_it() -> None:
    """KIP-227: unused for two minutes, or existing for two minutes and worth less."""
    broker = FakeBroker(NAMES, slots=1, shards=1)
    kept = open_session(broker, 3)
    now_ms = 0
    for epoch in (1, 2, 3):
        now_ms += EVICTION_MS // 2
        assert open_session(broker, 4, now_ms=now_ms) == 0, "neither unused nor old"
        assert broker.fetch(fetch_request(kept, epoch), now_ms=now_ms).session_id == kept
    assert open_session(broker, 2, now_ms=now_ms + 1) == 0, "it is worth less"
    assert open_session(broker, 4, now_ms=now_ms + 1) > 0
    gone = broker.fetch(fetch_request(kept, 4))
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
