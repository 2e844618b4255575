"""`kraft-wire sim`: seeds of the simulator from the command line."""
