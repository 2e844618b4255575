"""Drawn requests: long sequences that nobody wrote, for the comparison of two brokers.

`scene` holds the objects of a sequence, the `…_requests` modules draw one request each, and
`sequence` makes a case of a seed. Both brokers are sent the same requests: nothing is drawn from an
answer.
"""
