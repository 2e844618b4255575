"""Committed offsets of groups: commit, fetch, delete, expiry, and what the ISR lacks yet."""
