"""The Python side of the client table: one adapter per client, the scenarios written once."""
