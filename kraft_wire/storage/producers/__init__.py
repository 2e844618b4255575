"""Producer state of a partition (KIP-98): the table, its snapshots, and its replay."""
