"""Every API key of the release: one row each, the source of all code and docs that need it.

Read `api.py` (the fields of a row), `rows.py` (the rows), `registry.py` (look-ups).
"""
