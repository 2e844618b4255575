"""A sidecar in front of any Kafka: byte for byte what it relays, but for addresses and faults."""
