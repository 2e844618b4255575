"""The asyncio host of a node: sockets, timers, one thread for flushing, the order of a stop."""
