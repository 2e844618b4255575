"""The host of a node: clients' connections, peers, timers, flushes, accept and stop."""
