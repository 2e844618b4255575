"""Groups and committed offsets, kept in `__consumer_offsets` under the coordinator runtime.

Read `classic/states` (the machine as a table), `classic/rebalance`, `join`, `sync`, `leave`; then
`offsets/`; `records` and `replay` for the log; `partition` and `coordinator` join them to the
runtime (`broker/coordination/`). `consumer/` is KIP-848, `share/` KIP-932; both use `assignors/`.
"""
