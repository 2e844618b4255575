"""Transactions: their coordinator, kept in `__transaction_state` under the coordinator runtime.

Read `states` (the machine as a table) and `transition`; then `init_producer_id`, `add_partitions`,
`end_transaction`, `fencing` and `expiry` for the changes of an id, `markers` for the markers to
partitions; `records` and `replay` for the log; `shard` writes every change, `coordinator` joins the
shards to the runtime (`broker/coordination/`). Not here: the side of partitions and groups.
"""
