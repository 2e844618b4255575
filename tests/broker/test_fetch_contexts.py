"""What a fetch would send is measured before it is sent: the same bytes, and nothing changes."""

from __future__ import annotations

import pytest

from kraft_wire.broker.fetching.fetch_contexts import FetchContext
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.fetch_client import NAMES_VERSION, FakeBroker, fetch_request

NAMES = [("t", 0), ("t", 1), ("u", 0)]


def sessionless(broker: FakeBroker) -> FetchContext:
    return begun(broker, 0, -1)


def full(broker: FakeBroker) -> FetchContext:
    return begun(broker, 0, 0)


def incremental(broker: FakeBroker) -> FetchContext:
    session_id = broker.fetch(fetch_request(0, 0, NAMES)).session_id
    broker.partitions[NAMES[1]].high_watermark = 9
    return begun(broker, session_id, 1)


def overtaken(broker: FakeBroker) -> FetchContext:
    context = incremental(broker)
    (session_id,) = {context.throttled().session_id}
    assert broker.fetch(fetch_request(session_id, 2)).error_code == ErrorCode.NONE
    return context


def begun(broker: FakeBroker, session_id: int, epoch: int) -> FetchContext:
    context = broker.begin(fetch_request(session_id, epoch, NAMES if epoch <= 0 else ()))
    assert not isinstance(context, ErrorCode), context
    return context


@pytest.mark.parametrize("kind", [sessionless, full, incremental, overtaken])
def test_an_answer_is_as_large_as_it_was_measured(kind: object) -> None:
    broker = FakeBroker(NAMES)
    for number, name in enumerate(NAMES):
        broker.partitions[name].high_watermark = 5 + number
    assert callable(kind)
    context = kind(broker)
    results = broker.read(context)
    measured = [len(context.unsent(results).encode(NAMES_VERSION)) for _ in range(2)]
    sent = len(context.finish(results, 0).encode(NAMES_VERSION))
    assert measured == [sent, sent]
