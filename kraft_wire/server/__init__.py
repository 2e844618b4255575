"""The asyncio host of a node: sockets, timers, threads for flushing, signals, metrics."""
