"""The runtime under every coordinator: state kept in the partitions of one internal topic.

Read `shard` (the interface of one kind of coordinator), `runtime` (which partitions are led,
loading, being served, deadlines), `shard_log` and `commit_waits` (appends, and answers that wait
until the ISR has them); `timers`, `memory` and `topic` for the rest. Not here: the meaning of the
records (`groups/`).
"""
