"""Server assignors: pure functions from members and their targets to new targets (KIP-848)."""
