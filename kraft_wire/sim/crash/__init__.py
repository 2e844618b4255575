"""Crash states: what storage and quorum make of every state that a crash may leave on a disk.

Start with `points`, the command; `states` enumerates, `scenarios` and `stories` are the crashed
runs, `harness` and `quorum` judge the result of recovery.
"""
