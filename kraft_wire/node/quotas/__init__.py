"""Quotas of clients, enforced (KIP-13, 55, 124, 219): rates, precedence, throttling."""
