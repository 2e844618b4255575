"""The group coordinator: classic groups and committed offsets, kept in `__consumer_offsets`.

Read `states` (the machine as a table), `rebalance`, `join`, `sync`, `leave`; then `commit` and
`expiry` for offsets; `records` and `replay` for the log; `coordinator` puts partitions together.
Not here: the protocols of KIP-848 and KIP-932, and transactional commits.
"""

from kraft_wire.broker.groups.assembly import group_coordinator
from kraft_wire.broker.groups.coordinator import GroupCoordinator
from kraft_wire.broker.groups.environment import GroupEnvironment

__all__ = ["GroupCoordinator", "GroupEnvironment", "group_coordinator"]
