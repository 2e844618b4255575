"""A shop's outbox, tested with confluent-kafka against a Kafka inside the test.

pip install kraft-wire confluent-kafka pytest; then run pytest in this directory.
"""

from confluent_kafka import Consumer, KafkaError, Producer

from kraft_wire.testing import times


def publish(producer, topic, orders):
    """Send orders; return the errors of those that could not be delivered."""
    errors = []
    for order in orders:
        producer.produce(topic, order, on_delivery=lambda error, _: error and errors.append(error))
    producer.flush(30)
    return errors


def read(bootstrap_servers, topic, count):
    """Read so many records from the beginning of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    values = []
    while len(values) < count:
        message = consumer.poll(30)
        assert message is not None, "no record came"
        if message.error() is None:
            values.append(message.value())
    consumer.close()
    return values


def test_orders_arrive(kraft_wire):
    topic = kraft_wire.create_topic("orders", partitions=3)
    producer = Producer({"bootstrap.servers": kraft_wire.bootstrap_servers})
    assert publish(producer, topic, ["book", "pen"]) == []
    assert sorted(read(kraft_wire.bootstrap_servers, topic, 2)) == [b"book", b"pen"]


def test_orders_survive_a_leader_that_moves(kraft_wire):
    topic = kraft_wire.create_topic("orders")
    rule = kraft_wire.faults.inject_error(
        "NOT_LEADER_OR_FOLLOWER", api="Produce", topic=topic, when=times(2)
    )
    producer = Producer({"bootstrap.servers": kraft_wire.bootstrap_servers})
    assert publish(producer, topic, ["book"]) == []
    assert rule.fired == 2
    assert read(kraft_wire.bootstrap_servers, topic, 1) == [b"book"]


def test_an_order_that_is_too_large_is_reported(kraft_wire):
    topic = kraft_wire.create_topic("orders", configs={"max.message.bytes": 100})
    producer = Producer({"bootstrap.servers": kraft_wire.bootstrap_servers})
    (error,) = publish(producer, topic, ["x" * 1_000])
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_orders_survive_a_broker_that_dies(kraft_wire_cluster):
    cluster = kraft_wire_cluster(nodes=3)
    cluster.create_topic("orders", replication_factor=3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    assert publish(producer, "orders", ["book"]) == []
    cluster.kill_node(1)
    cluster.advance(10)  # what takes a broker's session timeout is over at once
    assert publish(producer, "orders", ["pen"]) == []
    assert read(cluster.bootstrap_servers, "orders", 2) == [b"book", b"pen"]
