"""Who looks at every node after every event, and what must hold then.

`judge` and `data_judge` notice what changed, in the quorum and on brokers; `invariants` and its
siblings say what must hold; the watches read disks; `ledger`, the histories and `partition_truth`
remember what was committed, and what clients were told.
"""
