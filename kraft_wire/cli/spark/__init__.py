"""`kraft-wire spark`: the verbs of the data pipeline."""
