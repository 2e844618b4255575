"""`kraft-wire server`: the command that serves one node, and its metrics endpoint."""
