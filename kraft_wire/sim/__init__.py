"""Whole clusters over simulated disks, wires and clocks, and the crash campaign of the disks.

The world itself is here: begin with `world`, `stage` and `machine`. Its packages: `disk`, `judge`
(the invariants), `clients`, `faults`, `plans` (the draws of a seed), `runs` (runs of a plan, and
their pages). Separate are `crash`, for every state after a crash, and `quorum_model`.
"""
