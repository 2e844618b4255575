"""Clients' own published tests, and the conformance suite, on kraft-wire and on Apache Kafka."""
