"""Share state: its coordinator, kept in `__share_group_state`, and the client of all coordinators.

Read `state` and `state_table` (what the records mean), `decisions` (what each call checks and
writes), `batch_merging`; `records` and `replay` for the log; `shard` writes, `pruning` tells what
the log needs no more, `coordinator` joins the shards to the runtime (`broker/coordination/`).
`persister` is the client, `coordinator_requests` its requests to other brokers. Not here: the
delivery of records (`share_fetch/`), the members of share groups (`groups/`).
"""
