"""`kraft-wire format` and `random-uuid`: log directories prepared for a node."""
