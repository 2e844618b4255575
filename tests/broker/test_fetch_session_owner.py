"""A fetch session belongs to the principal that created it."""

import pytest

from kraft_wire.broker.fetching.fetch_contexts import FetchContext
from kraft_wire.broker.fetching.fetch_sessions import FetchSessionCache
from kraft_wire.model import Principal
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from tests.broker.fetch_client import SeededRandomSource

ANN = Principal("User", "ann", token_authenticated=False)
BOB = Principal("User", "bob", token_authenticated=False)
VERSION = 12


def begin(
    cache: FetchSessionCache, owner: Principal, session_id: int, epoch: int
) -> FetchContext | ErrorCode:
    topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0)])]
    request = FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics)
    return cache.begin(
        request, VERSION, 1, privileged=False, topic_names=lambda _: None, owner=owner
    )


@pytest.fixture
def cache() -> FetchSessionCache:
    return FetchSessionCache(80, SeededRandomSource(1))


def opened(cache: FetchSessionCache, owner: Principal) -> int:
    context = begin(cache, owner, 0, 0)
    assert not isinstance(context, ErrorCode)
    results = [(each, PartitionData(partition_index=0)) for each in context.to_read()]
    return context.finish(results, 1).session_id


def test_others_do_not_find_it(cache: FetchSessionCache) -> None:
    """SEC-API-06: a stranger who knows id and epoch learns nothing, and the epoch stays."""
    session_id = opened(cache, ANN)
    assert begin(cache, BOB, session_id, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not isinstance(begin(cache, ANN, session_id, 1), ErrorCode)


@pytest.mark.parametrize("epoch", [0, -1])
def test_others_do_not_close_it(cache: FetchSessionCache, epoch: int) -> None:
    """SEC-API-06: a full fetch that names a stranger's session leaves it open."""
    session_id = opened(cache, ANN)
    begin(cache, BOB, session_id, epoch)
    assert not isinstance(begin(cache, ANN, session_id, 1), ErrorCode)
    begin(cache, ANN, session_id, epoch)
    assert begin(cache, ANN, session_id, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
