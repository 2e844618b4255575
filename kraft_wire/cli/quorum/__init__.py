"""`kraft-wire quorum`: describe, watch and change a metadata quorum."""
