"""The raft core's host: log and snapshots on disk, effects performed, commits replayed."""
