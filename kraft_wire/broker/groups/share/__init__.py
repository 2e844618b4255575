"""Share groups (KIP-932): members, targets, and which share partitions have their state begun."""
