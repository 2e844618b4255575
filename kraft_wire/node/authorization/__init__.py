"""Rights that are asked for before handlers run: a guard for each API, and audit lines."""
