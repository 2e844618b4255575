"""The runtime under every coordinator: state kept in the partitions of one internal topic.

Read `shard` (what one kind of coordinator implements), `runtime` (which partitions are led,
loading, being served, deadlines), `shard_log` and `commit_waits` (appends, and answers that wait
until the ISR has them); `timers`, `memory` and `topic` for the rest. Not here: what the records
mean (`groups/`).
"""
