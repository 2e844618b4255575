"""Classic groups (KIP-62, KIP-345): members, rebalances, and the states as a table."""
