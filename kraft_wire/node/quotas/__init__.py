"""Quotas: rates, precedence and throttling of clients, connections and replication."""
