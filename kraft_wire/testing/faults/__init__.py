"""Faults on demand: rules over requests and responses, decided without sockets or clocks."""
