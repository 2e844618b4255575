"""Removing records: compaction (KIP-58) and retention."""
