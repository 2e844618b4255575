"""`kraft-wire dump`: the files of a log directory as lines or JSON."""
