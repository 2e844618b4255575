"""What clients learn of the metadata: brokers, topics, settings, topics created on demand."""
