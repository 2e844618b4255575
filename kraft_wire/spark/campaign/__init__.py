"""Campaigns: seeds run on Spark's workers, one row of a table for each.

`kinds` has the kinds of runs of a seed, `table` keeps the rows, `span` is the work of one task, and
`page` shows the results. None of them needs a session; `verbs/sim.py` has one.
"""
