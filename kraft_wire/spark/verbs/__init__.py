"""The verbs of `kraft-wire spark`: audit, export, ingest, sim, tables."""
