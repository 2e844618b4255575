"""How a node registers with the active controller: incarnation, heartbeats, log directories."""
