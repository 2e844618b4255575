"""Whole clusters over simulated disks, wires and clocks, and the crash campaign of the disks.

The world itself is here: begin with `world`, `stage` and `machine`. Its rooms: `disk`, `judge`
(what must hold), `clients`, `faults`, `plans` (what a seed draws), `runs` (what plays a
plan, and shows it). Beside them `crash`, every state that a crash may leave, and `quorum_model`.
"""
