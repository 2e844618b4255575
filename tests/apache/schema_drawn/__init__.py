"""Requests of every API, drawn from the schemas: Apache Kafka 4.3.1 and we answer them alike."""
