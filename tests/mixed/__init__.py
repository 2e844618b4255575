"""Quorums of which some controllers are Apache Kafka's and some ours, as processes on this host."""
