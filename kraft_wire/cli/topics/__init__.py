"""`kraft-wire topics`: list, create, describe, move, delete and configure topics."""
