"""What must hold of transactions, judged from logs, coordinators' memories and clients' histories.

The invariants are T01 to T18 of docs/SIMULATION.md. Nothing here is taken from the broker's code.
"""
