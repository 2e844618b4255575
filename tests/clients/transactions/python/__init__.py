"""Drivers of transactions for clients written in Python."""
