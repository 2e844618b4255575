"""Kafka Streams, exactly once, on clusters whose brokers are killed, and killed itself."""
