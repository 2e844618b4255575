"""The same with aiokafka and pytest-asyncio.

pip install kraft-wire aiokafka pytest pytest-asyncio; then run pytest in this directory.
"""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from kraft_wire.testing import Cluster, once


@pytest.mark.asyncio
async def test_orders_arrive(kraft_wire):
    topic = kraft_wire.create_topic("orders")
    async with AIOKafkaProducer(bootstrap_servers=kraft_wire.bootstrap_servers) as producer:
        await producer.send_and_wait(topic, b"book")
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=kraft_wire.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        assert (await consumer.getone()).value == b"book"


@pytest.mark.asyncio
async def test_a_lost_response_is_asked_for_again(kraft_wire):
    topic = kraft_wire.create_topic("orders")
    rule = kraft_wire.faults.disconnect(
        api="Produce", topic=topic, after_handling=True, when=once()
    )
    async with AIOKafkaProducer(
        bootstrap_servers=kraft_wire.bootstrap_servers, enable_idempotence=True
    ) as producer:
        metadata = await producer.send_and_wait(topic, b"book")
        await asyncio.to_thread(rule.wait)
        assert metadata.offset == 0, "the second request was known as a copy of the first"
        assert (await producer.send_and_wait(topic, b"pen")).offset == 1


@pytest.mark.asyncio
async def test_a_cluster_of_its_own():
    async with Cluster(topics={"orders": 3}) as cluster:
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.send_and_wait("orders", b"book")
        (exchange,) = cluster.requests(api="Produce")
        assert exchange.response.responses[0].partition_responses[0].error_code == 0
