"""Clients of controllers and brokers, each an end of the simulated network that speaks in bytes.

What they are told is held against what is committed, at once.
"""
