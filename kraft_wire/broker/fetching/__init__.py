"""Fetch requests: sessions (KIP-227), and one fetch as it is read."""
