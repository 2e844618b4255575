"""Campaigns: seeds run on Spark's workers, one row of a table for each.

`kinds` says what can be run with a seed, `table` keeps the rows, `span` is what one task does, and
`page` shows what came of it. None of them needs a session; `verbs/sim.py` has one.
"""
