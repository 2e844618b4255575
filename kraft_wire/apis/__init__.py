"""Every API key of the release: one row each, from which all that serves or shows it is made.

Read `api.py` (what a row says), `rows.py` (the rows), `registry.py` (look-ups).
"""
