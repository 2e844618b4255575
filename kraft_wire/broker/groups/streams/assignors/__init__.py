"""Task assignors: pure functions from members and a configured topology to tasks (KIP-1071)."""
