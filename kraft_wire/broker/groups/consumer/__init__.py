"""Consumer groups (KIP-848): members and their epochs, targets, and the records of both."""
