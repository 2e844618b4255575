"""Kafka Streams, exactly once: on clusters whose brokers are killed, and in a streams group."""
