"""Clients of controllers and brokers, each an end of the simulated network that speaks in bytes.

Each answer that they get is compared with the committed state at once.
"""
