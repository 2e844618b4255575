"""Groups and committed offsets, kept in `__consumer_offsets` under the coordinator runtime.

Read `classic/states` (the machine as a table), `classic/rebalance`, `join`, `sync`, `leave`; then
`offsets/`; `records` and `replay` for the log; `partition` and `coordinator` join them to the
runtime (`broker/coordination/`). `consumer/` is KIP-848, `share/` KIP-932; both use `assignors/`.
"""

from kraft_wire.broker.groups.assembly import group_coordinator
from kraft_wire.broker.groups.coordinator import GroupCoordinator
from kraft_wire.broker.groups.environment import GroupEnvironment

__all__ = ["GroupCoordinator", "GroupEnvironment", "group_coordinator"]
