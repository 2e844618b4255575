"""`kraft-wire produce`: write records from standard input or the command line to a topic."""
