"""Whole clusters over simulated disks, wires and clocks, and the crash campaign of the disks.

Read `world`, `machine` and `judge`; `invariants` is what must hold, `run` and `script` drive it.
"""
