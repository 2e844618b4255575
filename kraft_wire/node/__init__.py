"""One node: broker, controller and replica over one storage, synchronous; a host drives it.

Read `node`, then `raft_io` (the quorum's effects), `controller_host` and `opening`.
"""
