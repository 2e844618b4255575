"""A FastStream service, tested with its real broker over a socket, with pytest-asyncio.

pip install kraft-wire 'faststream[kafka]' pytest pytest-asyncio; then run pytest in this directory.
"""

import asyncio

import pytest
from faststream import AckPolicy
from faststream.kafka import KafkaBroker

from kraft_wire.testing import once


def service(bootstrap_servers, orders, confirmations, confirm):
    """The service under test: it confirms each order; a failed order is read again."""
    broker = KafkaBroker(bootstrap_servers)

    @broker.subscriber(
        orders,
        group_id=orders,
        auto_offset_reset="earliest",
        ack_policy=AckPolicy.NACK_ON_ERROR,
    )
    @broker.publisher(confirmations)
    async def handle(order: str) -> str:
        return confirm(order)

    return broker


def watched(broker, topic):
    """Collect what a service publishes to a topic."""
    found = asyncio.Queue()

    @broker.subscriber(topic, auto_offset_reset="earliest")
    async def note(text: str) -> None:
        found.put_nowait(text)

    return found


@pytest.mark.asyncio
async def test_an_order_is_confirmed_although_the_leader_moves(kraft_wire):
    orders, confirmations = kraft_wire.create_topic("orders"), kraft_wire.create_topic("confirmed")
    rule = kraft_wire.faults.inject_error(
        "NOT_LEADER_OR_FOLLOWER", api="Produce", topic=confirmations, when=once()
    )
    broker = service(kraft_wire.bootstrap_servers, orders, confirmations, "{} is sent".format)
    found = watched(broker, confirmations)
    async with broker:
        await broker.start()
        await broker.publish("book", orders)
        assert await asyncio.wait_for(found.get(), 30) == "book is sent"
    assert rule.fired == 1


@pytest.mark.asyncio
async def test_an_order_that_fails_is_read_again(kraft_wire):
    orders, confirmations = kraft_wire.create_topic("orders"), kraft_wire.create_topic("confirmed")
    tries = []

    def confirm(order):
        tries.append(order)
        if len(tries) == 1:
            raise RuntimeError("the printer has no paper")
        return f"{order} is sent"

    broker = service(kraft_wire.bootstrap_servers, orders, confirmations, confirm)
    found = watched(broker, confirmations)
    async with broker:
        await broker.start()
        await broker.publish("book", orders)
        assert await asyncio.wait_for(found.get(), 30) == "book is sent"
    assert tries == ["book", "book"]
