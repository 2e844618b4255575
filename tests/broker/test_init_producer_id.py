"""InitProducerId: ids for idempotent producers, from the controller's blocks."""

from typing import Any, cast

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, ReplyTo, RequestContext
from kraft_wire.broker.handlers.init_producer_id import handle
from kraft_wire.broker.producing.producer_ids import ANSWER_AWAITED_MS, PREFETCH_BELOW
from kraft_wire.model import ANONYMOUS
from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.message import Message
from tests.broker.small_broker import Controller, context, image_of, small_broker

BLOCK = 1_000
UNREGISTERED = 99


class Blocks:
    """Answers each request for a block with the next one."""

    def __init__(self) -> None:
        self.given = 0

    def __call__(self, request: Message) -> Message:
        assert isinstance(request, AllocateProducerIdsRequest)
        assert (request.broker_id, request.broker_epoch) == (1, 11)
        self.given += 1
        return AllocateProducerIdsResponse(
            producer_id_start=(self.given - 1) * BLOCK, producer_id_len=BLOCK
        )


@pytest.fixture
def broker() -> Broker:
    return small_broker(image_of({}))


@pytest.fixture
def controller(broker: Broker) -> Controller:
    assert isinstance(broker.controller, Controller)
    return broker.controller


def init(broker: Broker, now_ms: int = 0, **fields: Any) -> tuple[int, int, int]:
    """Error, producer id and epoch of one request."""
    fields.setdefault("transactional_id", None)
    response = handle(broker, context(5, now_ms=now_ms), InitProducerIdRequest(**fields))
    assert isinstance(response, InitProducerIdResponse), response
    return outcome(response)


def outcome(response: InitProducerIdResponse) -> tuple[int, int, int]:
    return response.error_code, response.producer_id, response.producer_epoch


def park(broker: Broker, connection_id: int = 1, now_ms: int = 0) -> ReplyTo:
    """Send a request that must wait."""
    reply_to = ReplyTo(connection_id, 1)
    asked = RequestContext(*reply_to, 5, now_ms, now_ms, None, "10.0.0.7", "L", ANONYMOUS)
    assert handle(broker, asked, InitProducerIdRequest(transactional_id=None)) is PARKED
    return reply_to


def completed(broker: Broker) -> list[tuple[ReplyTo, tuple[int, int, int]]]:
    """Who was answered since, and how."""
    done, broker.completions = broker.completions, []
    assert all(isinstance(response, InitProducerIdResponse) for _, response in done)
    return [(to, outcome(cast("InitProducerIdResponse", response))) for to, response in done]


def test_ids_are_unique_over_blocks(broker: Broker, controller: Controller) -> None:
    controller.answer_at_once = blocks = Blocks()
    given = [init(broker) for _ in range(3 * BLOCK)]
    assert given == [(ErrorCode.NONE, number, 0) for number in range(3 * BLOCK)]
    assert blocks.given == 4


def test_next_block_is_asked_for_before_the_present_one_ends(
    broker: Broker, controller: Controller
) -> None:
    controller.answer_at_once = blocks = Blocks()
    for _ in range(BLOCK - PREFETCH_BELOW + 1):
        init(broker)
    assert blocks.given == 1
    init(broker)
    assert blocks.given == 2


def test_first_producers_wait_for_the_controllers_block(
    broker: Broker, controller: Controller
) -> None:
    """COORDINATOR_LOAD_IN_PROGRESS would have librdkafka warn on every fresh node."""
    first, second = park(broker, 1), park(broker, 2, now_ms=1)
    assert (len(controller.asked), completed(broker)) == (1, [])
    broker.controller_answered(
        controller.asked[0][0], Blocks()(controller.asked[0][1]), broker.now_ms
    )
    assert completed(broker) == [(first, (0, 0, 0)), (second, (0, 1, 0))]
    assert init(broker, 2) == (ErrorCode.NONE, 2, 0)


def test_producer_is_told_to_come_again_when_no_answer_comes(
    broker: Broker, controller: Controller
) -> None:
    asker = park(broker)
    assert broker.deadline_ms() == ANSWER_AWAITED_MS
    broker.tick(ANSWER_AWAITED_MS - 1, 0)
    assert completed(broker) == []
    broker.tick(ANSWER_AWAITED_MS, 0)
    assert completed(broker) == [(asker, (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1))]
    assert broker.deadline_ms() is None


def test_more_waiting_producers_than_a_block_has_ids_come_again(
    broker: Broker, controller: Controller
) -> None:
    for connection_id in range(BLOCK + 1):
        park(broker, connection_id)
    broker.controller_answered(
        controller.asked[0][0], Blocks()(controller.asked[0][1]), broker.now_ms
    )
    *given, last = completed(broker)
    assert [answer for _, answer in given] == [(0, number, 0) for number in range(BLOCK)]
    assert last[1] == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)


def test_closed_connection_takes_no_id(broker: Broker, controller: Controller) -> None:
    park(broker, 1)
    staying = park(broker, 2)
    broker.connection_closed(1)
    broker.controller_answered(
        controller.asked[0][0], Blocks()(controller.asked[0][1]), broker.now_ms
    )
    assert completed(broker) == [(staying, (0, 0, 0))]


def test_stopping_broker_lets_nobody_wait(broker: Broker, controller: Controller) -> None:
    asker = park(broker)
    broker.stop(1)
    assert completed(broker) == [(asker, (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1))]


def test_lost_answer_is_asked_for_again(broker: Broker, controller: Controller) -> None:
    park(broker, 1, 0)
    park(broker, 2, ANSWER_AWAITED_MS - 1)
    assert len(controller.asked) == 1
    park(broker, 3, ANSWER_AWAITED_MS)
    assert len(controller.asked) == 2


def test_late_second_answer_does_not_replace_a_block(
    broker: Broker, controller: Controller
) -> None:
    asker = park(broker, 1, 0)
    other = park(broker, 2, ANSWER_AWAITED_MS)
    blocks = Blocks()
    for tag, request in controller.asked:
        broker.controller_answered(tag, blocks(request), broker.now_ms)
    assert completed(broker) == [(asker, (0, 0, 0)), (other, (0, 1, 0))]
    assert init(broker, ANSWER_AWAITED_MS) == (ErrorCode.NONE, 2, 0)


def test_refusing_controller_is_asked_again(broker: Broker, controller: Controller) -> None:
    controller.answer_at_once = lambda _: AllocateProducerIdsResponse(
        error_code=ErrorCode.STALE_BROKER_EPOCH
    )
    assert init(broker)[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    controller.answer_at_once = Blocks()
    assert init(broker) == (ErrorCode.NONE, 0, 0)


@pytest.mark.parametrize(
    ("start", "count"),
    [(-1, 1_000), (-1_000, 1_000), ((1 << 63) - 1, 2), (0, -1), (7, 0)],
    ids=["-1 is no id", "negative", "beyond int64", "negative count", "empty"],
)
def test_a_block_that_no_producer_can_use_is_none(
    broker: Broker, controller: Controller, start: int, count: int
) -> None:
    asker = park(broker)
    block = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=count)
    broker.controller_answered(controller.asked[0][0], block, broker.now_ms)
    assert completed(broker) == [(asker, (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1))]


@pytest.mark.parametrize(("start", "count"), [((1 << 63) - 1, 1), ((1 << 63) - 3, 3), (0, 1)])
def test_ids_are_used_up_to_the_largest(
    broker: Broker, controller: Controller, start: int, count: int
) -> None:
    asker = park(broker)
    block = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=count)
    broker.controller_answered(controller.asked[0][0], block, broker.now_ms)
    assert completed(broker) == [(asker, (ErrorCode.NONE, start, 0))]
    given = [init(broker, 1) for _ in range(1, count)]
    assert given == [(ErrorCode.NONE, start + number, 0) for number in range(1, count)]


def test_unregistered_broker_asks_nobody(broker: Broker, controller: Controller) -> None:
    broker.node_id = UNREGISTERED
    assert init(broker)[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert controller.asked == []


def test_producer_with_an_id_gets_a_new_one(broker: Broker, controller: Controller) -> None:
    controller.answer_at_once = Blocks()
    assert init(broker, producer_id=77, producer_epoch=3) == (ErrorCode.NONE, 0, 0)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "t"}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (
            {"transactional_id": "t", "transaction_timeout_ms": 900_001},
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
        (
            {"transactional_id": "t", "transaction_timeout_ms": 60_000},
            ErrorCode.NOT_COORDINATOR,
        ),
        (
            {"transactional_id": "", "transaction_timeout_ms": 60_000, "producer_id": 1},
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_request_that_cannot_be_served_gets_its_error(
    broker: Broker, controller: Controller, fields: dict[str, Any], error: ErrorCode
) -> None:
    controller.answer_at_once = Blocks()
    assert init(broker, **fields) == (error, -1, -1)
