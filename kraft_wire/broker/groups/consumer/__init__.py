"""Consumer groups (KIP-848): members with epochs, targets, and what the log says of them."""
